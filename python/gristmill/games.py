"""Games of a chunk pack: selected by SQL, by marks and by side of a split, their positions taken by number."""

from __future__ import annotations

import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Self, TypeVar, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.again import remembered
from gristmill.arguments import named
from gristmill.arrays import Array
from gristmill.drawing import table
from gristmill.layout import Layout
from gristmill.packed import Selection
from gristmill.rows import Parameter, places, sides, span, three_sides

if TYPE_CHECKING:
    from gristmill.chess import Tensors
    from gristmill.trajectories import Fields

_Side = TypeVar("_Side", bound="Games")


class GameSplit(NamedTuple, Generic[_Side]):
    """The two sides of a split; no game is on both."""

    train: _Side
    val: _Side


class GameThreeWaySplit(NamedTuple, Generic[_Side]):
    """The three sides of a split with a test side; no game is on two."""

    train: _Side
    val: _Side
    test: _Side


class Games(Selection[_gristmill.Games]):
    """Some games of a chunk pack, in the order in which they are stored. Selecting decodes and copies nothing.

    `games[3]` is the records of one game, `games[10:20]` a selection of ten; iteration goes over the games.
    """

    @property
    def layout(self) -> Layout:
        """Layout of the records; of chess V7, whatever was packed: what V6 lacks is zero."""
        return Layout(self._compiled.layout())

    @property
    def num_frames(self) -> int:
        """Selected positions of all games."""
        return self._compiled.num_frames

    @property
    def game_ids(self) -> list[int]:
        """Ids of the games in the pack's table `games`, ascending."""
        return self._compiled.game_ids()

    def __len__(self) -> int:
        """How many games there are."""
        return len(self._compiled)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @remembered
    def __getitem__(self, index: int | slice) -> Array | Self:
        """The records of one game as a structured array, or some of the games.

        Raises:
            IndexError: there is no such game.
            ValueError: a slice with a step.
            FormatError: a game that is damaged; it says which.
        """
        if isinstance(index, slice):
            return type(self)(self._compiled.slice(*span(index, len(self))))
        place = self._place(index)
        return Array.over(self._compiled.game(place), (self._compiled.frames(place),), self.layout.dtype)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def frames(self, index: int) -> int:
        """Selected positions of one game.

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

    @remembered
    def where(self, sql: str, *params: Parameter) -> Self:
        """Those of the games that `sql` names.

        Args:
            sql: a condition on the columns of table `games` (id, frames, source, version, input_format, result, draw,
                adjudicated, ...), such as `"result > ?"`; or a whole query whose first column is ids. It cannot change
                the pack.
            params: values for the question marks.

        Raises:
            ConfigError: SQLite does not understand it, it is more than one condition, it calls a function that may say
                something else the next time (`random()`, `date()`, ...), or it takes more than an hour
                (`GRISTMILL_SQL_SECONDS` says how many seconds instead).
            KeyboardInterrupt: Ctrl-C, also where the SQL has no end.
        """
        return type(self)(self._compiled.query(sql, list(params)))

    @overload
    def split(
        self, val: float, *, test: float, seed: int = 42, by: Literal["records", "content"] = "records"
    ) -> GameThreeWaySplit[Self]: ...
    @overload
    def split(
        self,
        val: float | None = None,
        *,
        seed: int = 42,
        val_where: str | None = None,
        params: Sequence[Parameter] = (),
        val_games: Iterable[int] | None = None,
        by: Literal["records", "content"] = "records",
    ) -> GameSplit[Self]: ...
    @named
    @remembered
    def split(
        self,
        val: float | None = None,
        *,
        test: float | None = None,
        seed: int = 42,
        val_where: str | None = None,
        params: Sequence[Parameter] = (),
        val_games: Iterable[int] | None = None,
        by: Literal["records", "content"] = "records",
    ) -> GameSplit[Self] | GameThreeWaySplit[Self]:
        """Two sides, by game: `train` and `val`. Give exactly one of `val`, `val_where` and `val_games`.

        With `test` there are three: `train, val, test = games.split(0.05, test=0.05)`. The val side is the same as
        without.

        Args:
            val: about this share of the games on the val side. The side of a game depends on `seed` and its records
                alone: it is the same in every pack that the game is in.
            test: beside `val`, about this share of the games on a third side.
            seed: another seed, another split.
            val_where: SQL that names the games of the val side, as for `where`.
            params: values for its question marks.
            val_games: ids of the games of the val side.
            by: what decides the side of a game with `val`: its `records`, to the byte; or its `content`, where its men
                stood, so that a game, its re-recordings and its colour mirror are on one side. Either way it is the
                same in every pack that the game is in.

        Raises:
            ConfigError: no game falls on a side, nothing is left for training, `val` is no share, or SQLite does not
                understand the SQL.
        """
        if test is None:
            found = sides(self._compiled, val, seed, val_where, params, "val_games", val_games, by == "content")
            return GameSplit(*map(type(self), found))
        three = three_sides(self._compiled, val, test, seed, (val_where, val_games), by == "content")
        return GameThreeWaySplit(*map(type(self), three))

    @named
    @remembered
    def folds(
        self, count: int, *, seed: int = 42, by: Literal["records", "content"] = "records"
    ) -> list[GameSplit[Self]]:
        """Splits for cross-validation: each game is on the val side of exactly one of them, and on one side of each.

        Args:
            count: how many, from 2 on. The val sides are about equally large.
            seed: another seed, other folds.
            by: what decides the fold of a game, as for `split`.

        Raises:
            ConfigError: no game falls into a fold.
        """
        found = self._compiled.folds(operator.index(count), seed, by == "content")
        return [GameSplit(*map(type(self), both)) for both in found]

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

    def encode(self, indices: npt.ArrayLike, encoder: Tensors | Fields | None = None) -> dict[str, Array]:
        """Tensors of the positions at `indices`, by name, just as a loader makes them.

        Raises:
            IndexError: there is no such position.
            ConfigError: a tensor that does not exist.
            FormatError: a game that is damaged; it says which.
            TypeError: an encoder of something else.
        """
        found = places(indices, self.num_frames)
        if encoder is not None and not hasattr(encoder, "names"):
            advice = "gristmill.chess.Tensors is for games of chess, gristmill.Fields for trajectories"
            raise TypeError(f"{type(encoder).__name__} makes nothing of whole games: {advice}")
        made = self._compiled.encode([] if encoder is None else list(encoder.names), found.reshape(-1).view(np.uint8))
        return {name: Array.over(memory, (*found.shape, *shape[1:]), dtype) for name, dtype, shape, memory in made}

    def _place(self, index: int) -> int:
        place = operator.index(index)
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(f"game {index} of {len(self)}")
        return place

    def _repr_html_(self) -> str:
        fields = self.layout.dtype
        rows = ((name, fields[name].base, fields[name].shape) for name in fields.names or ())
        return table(repr(self), ("field", "dtype", "shape"), rows)

    def __repr__(self) -> str:
        packed = self._compiled.packed()
        frames = f"{self.num_frames}" if self.num_frames == packed.frames else f"{self.num_frames} of {packed.frames}"
        folder = os.fspath(packed.folder)
        return f"{type(self).__name__}({folder!r}, games={len(self)}, frames={frames})"
