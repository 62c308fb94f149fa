"""Many environments of which one seed decides everything."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from gymnasium.vector import VectorEnv, VectorWrapper


class SeededVectorEnv(VectorWrapper):
    """Environments whose first `reset` has a seed by default. Later ones continue the sequence.

    Leaving a `with` block closes them.
    """

    def __init__(self, env: VectorEnv[Any, Any, Any], seed: int) -> None:
        super().__init__(env)
        self._first: int | None = seed
        self._seed_actions(seed)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode everywhere.

        Args:
            seed: starts everything again as `load_vec_env` does with that seed; several are one for each environment.
            options: passed on.
        """
        if seed is None:
            seed = self._first
        self._first = None
        if isinstance(seed, int):
            self._seed_actions(seed)
            seed = env_seeds(seed, self.num_envs)
        return self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the environments and ends their processes."""
        self.close()

    def _seed_actions(self, seed: int) -> None:
        self.action_space.seed(seed)
        self.single_action_space.seed(seed)


def env_seeds(seed: int, count: int) -> list[int]:
    """The seeds of `count` environments, in [0, 2**31 - 1): drawn from a Mersenne twister."""
    twister = np.random.RandomState(seed)
    return [int(twister.randint(2**31 - 1)) for _ in range(count)]
