"""Games of a chunk pack: selected by SQL and by side of a split, their positions taken by number."""

from __future__ import annotations

import operator
import os
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.arrays import Array
from gristmill.layout import Layout
from gristmill.rows import Parameter, places


class GameSplit(NamedTuple):
    """The two sides of a split; no game is on both."""

    train: Games
    val: Games


class Games:
    """Some games of a chunk pack, in the order in which they are stored. Selecting decodes and copies nothing."""

    def __init__(self, compiled: _gristmill.Games) -> None:
        self._compiled = compiled

    @property
    def layout(self) -> Layout:
        """Layout of the records: V7, whatever was packed; what V6 lacks is zero."""
        return Layout(self._compiled.layout())

    @property
    def num_frames(self) -> int:
        """Positions of all games."""
        return self._compiled.num_frames

    @property
    def game_ids(self) -> list[int]:
        """Ids of the games in the pack's table `games`, ascending."""
        return self._compiled.game_ids()

    def __len__(self) -> int:
        """How many games there are."""
        return len(self._compiled)

    def frames(self, index: int) -> int:
        """Positions of one game.

        Raises:
            IndexError: there is no such game.
        """
        return self._compiled.frames(self._place(index))

    def member(self, index: int) -> str:
        """Where one game came from: its file below the folder that was packed, and its member.

        Raises:
            IndexError: there is no such game.
        """
        return self._compiled.source(self._place(index))

    def where(self, sql: str, *params: Parameter) -> Games:
        """Those of the games that `sql` names.

        Args:
            sql: a condition on the columns of table `games` (id, frames, source, version, input_format, result, draw,
                adjudicated, ...), such as `"result > ?"`; or a whole query whose first column is ids. It cannot change
                the pack.
            params: values for the question marks.

        Raises:
            ConfigError: SQLite does not understand it.
        """
        return Games(self._compiled.query(sql, list(params)))

    def split(self, val: float, *, seed: int = 42) -> GameSplit:
        """Two sides, by game: `train`, and about the share `val` as `val`.

        The side of a game depends on `seed` and its records alone: it is the same in every pack that the game is in.

        Raises:
            ConfigError: no game falls on the val side, or `val` is no share.
        """
        return GameSplit(*map(Games, self._compiled.split(val, seed)))

    def take(self, indices: npt.ArrayLike) -> Array:
        """The records of the positions at `indices`, counted within this selection, as a structured array of the same
        shape. Negative indices count from the end.

        Raises:
            IndexError: there is no such position.
            FormatError: a game that is damaged; it says which.
        """
        found = places(indices, self.num_frames)
        memory = self._compiled.take(found.reshape(-1).view(np.uint8))
        return Array.over(memory, found.shape, self.layout.dtype)

    def _place(self, index: int) -> int:
        place = operator.index(index)
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(f"game {index} of {len(self)}")
        return place

    def __repr__(self) -> str:
        return f"Games({os.fspath(self._compiled.folder)!r}, games={len(self)}, frames={self.num_frames})"
