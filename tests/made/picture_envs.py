"""A small environment with pictures, registered with Gymnasium on import: each pixel says whose frame it is."""

from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete


class Numbered(gymnasium.Env[npt.NDArray[np.uint8], np.int64]):
    """Pictures (4, 6, 3): channel 0 is the episode's number, 1 its step, 2 a draw.

    Episode e of a seed takes 1 + (seed + e) % 4 steps; odd ones are cut, even ones end by themselves.
    """

    observation_space = Box(0, 255, (4, 6, 3), np.uint8)
    action_space = Discrete(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        super().reset(seed=seed)
        if seed is not None:
            self._base, self._episode = seed, 0
        self._episode += 1
        self._step = 0
        return self._picture(), {}

    def step(self, action: np.int64) -> Any:
        self._step += 1
        ended = self._step >= 1 + (self._base + self._episode) % 4
        by_itself = self._episode % 2 == 0
        info = {"episode_number": self._episode}
        return self._picture(), float(action), ended and by_itself, ended and not by_itself, info

    def _picture(self) -> npt.NDArray[np.uint8]:
        draw = int(self.np_random.integers(1, 255))
        return np.broadcast_to(np.array([self._episode, self._step, draw], np.uint8), (4, 6, 3)).copy()


gymnasium.register("Numbered-v0", entry_point="picture_envs:Numbered")
