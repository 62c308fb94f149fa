"""Trajectories of a pack of demonstrations: selected like games, their steps taken by number, fields as tensors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from gristmill import safe_pickle
from gristmill.demos.source import plain
from gristmill.games import Games


@dataclass(frozen=True)
class Fields:
    """Which fields a loader makes tensors of, in which order: `Fields(["obs", "acts"])`. Others are not unpacked."""

    names: Sequence[str]


class Trajectories(Games):
    """Some trajectories of a pack of demonstrations, as `gristmill.open` gives them.

    What is said of games is true of trajectories: `where` and `split` select them, `take` and `encode` give steps by
    number, `trajectories[3]` is the records of one. Columns of table `games`, for `where`: form, environment,
    terminated, total_reward, obs_dtype, obs_shape, and those of every pack.
    """

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return [self.frames(i) for i in range(len(self))]

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut (time limit, fragment, end of the data) instead of ended by the environment.

        Raises:
            IndexError: there is no such trajectory.
        """
        return self._compiled.truncated(self._place(index))

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory, in order of step: texts, dictionaries such as `infos`.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: a pickle in it names what is not data.
        """
        found = self._compiled.extras(self._place(index))
        return {name: [plain(kind, data) for _, kind, data in values] for name, values in found}

    def metadata(self, index: int = 0) -> dict[str, Any]:
        """What the file of a trajectory said about itself: for shards `env_cfg`, `observation_space`, `action_space`.

        Raises:
            IndexError: there is no such trajectory.
        """
        place = self._place(index)
        pickled = self._compiled.meta(place)
        if pickled is None:
            return dict(self._compiled.about(place))
        found = safe_pickle.loads(pickled)
        return found if isinstance(found, dict) else {}
