"""Trajectories of a pack of demonstrations: selected like games, their steps taken by number, fields as tensors."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import safe_pickle
from gristmill.demos.source import plain
from gristmill.errors import ConfigError, FormatError
from gristmill.packs.games import Games
from gristmill.records.arrays import Array

#: Bytes of one field of all steps that are unpacked into memory at once.
_MOST = 2 << 30


@dataclass(frozen=True)
class Fields:
    """Which fields a loader makes tensors of, in which order: `Fields(["obs", "acts"])`. Others are not unpacked.

    `"draw"`, where no field is called so, is 64 random bits of the row (uint64), which depend on the seed, the row and
    the epoch alone: `gristmill.symmetric` turns rows by them.
    """

    names: Sequence[str]


class Trajectories(Games):
    """Some trajectories of a pack of demonstrations, as `gristmill.open` gives them.

    What is said of games is true of trajectories: `where`, `split` and `folds` select them, `take` and `encode` give
    steps by number, `trajectories.games[3]` is the records of one. Loaders of pairs take them like any other
    demonstrations. Columns of table `games`, for `where`: form, environment, terminated, total_reward, obs_dtype,
    obs_shape, and those of every pack.
    """

    @property
    def format(self) -> str:
        """Short name of the container and format, as files have it."""
        return "demo.chunks"

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return [self.frames(i) for i in range(self.num_games)]

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

    def column(self, name: str) -> Array:
        """One field of all steps of all trajectories, unpacked into memory.

        Raises:
            ConfigError: a mark left out steps, so that those that follow each other here did not.
            FormatError: there is no such field, or it takes more than 2 GiB.
        """
        return self.columns([name])[name]

    def columns(self, names: Iterable[str]) -> dict[str, Array]:
        """Some fields of all steps by name, as `column` gives them: each step is looked up once for all of them.

        Raises:
            ConfigError: as of `column`.
            FormatError: as of `column`.
        """
        wanted, dtype = list(names), self.layout.dtype
        if not self._compiled.is_whole():
            message = "a mark left out steps, and what follows each other here did not; feed it by gristmill.DataLoader"
            raise ConfigError(message, field="marked")
        for name in wanted:
            if name not in self.layout.names:
                raise FormatError(f"there is no field `{name}`", kind="missing")
            size = math.prod(dtype[name].shape) * dtype[name].base.itemsize * self.num_frames
            if size > _MOST:
                advice = "select fewer, feed them by gristmill.DataLoader, or give gristmill.open a folder (`columns`)"
                message = f"`{name}` of {self.num_frames} steps takes {size} bytes, more than {_MOST}; {advice}"
                raise FormatError(message, kind="too_large")
        return self.encode(np.arange(self.num_frames), Fields(wanted))

    def _fields_alone(self, fields: list[str], places: npt.NDArray[np.int64]) -> Mapping[str, Array] | None:
        numbers = all(self.layout.dtype[name].base.kind in "biuf" for name in fields)
        return self.encode(places, Fields(fields)) if numbers else None

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file of the first trajectory said about itself; empty where there is none."""
        return self.metadata_of(0) if self.num_games else {}

    def metadata_of(self, index: int) -> dict[str, Any]:
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
