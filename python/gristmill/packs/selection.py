"""Frames of a pack: selected by SQL over its games, by marks, by side of a split; taken and encoded by number."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Literal, NamedTuple, Self, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import StateError
from gristmill.options.arguments import named
from gristmill.packs.again import derive_again, remembered, select_again
from gristmill.packs.arrow import Frames, GameFacts, Tabular
from gristmill.packs.marking import Marking
from gristmill.packs.packed import LineageStep, steps
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout
from gristmill.stores import absolute

#: A value bound to a question mark of SQL.
Parameter: TypeAlias = int | float | str | bytes | None

#: What decides the side of a game: the game itself (by its seed, or its records), or its content.
By: TypeAlias = Literal["seed", "records", "content"]

_Side = TypeVar("_Side", bound="Selection")

#: Bytes of records that iteration reads at a time.
_TOGETHER = 1 << 20


class Split(NamedTuple, Generic[_Side]):
    """The two sides of a split; no game is on both."""

    train: _Side
    val: _Side


class ThreeWaySplit(NamedTuple, Generic[_Side]):
    """The three sides of a split with a test side; no game is on two."""

    train: _Side
    val: _Side
    test: _Side


class GamesOf(Tabular, Generic[_Side]):
    """The games of a selection: `pack.games[3]` is the records of one, `pack.games[10:20]` a selection of ten.

    As a table (`pack.games.to_arrow()`, `pl.DataFrame(pack.games)`) they are the columns of the database.
    """

    def __init__(self, selection: _Side) -> None:
        self._selection = selection

    def __len__(self) -> int:
        """How many games there are."""
        return self._selection.num_games

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> _Side: ...
    def __getitem__(self, index: int | slice) -> Array | _Side:
        """The records of one game as a structured array, or a selection of some of the games.

        Raises:
            IndexError: there is no such game.
            ValueError: a slice with a step.
            FormatError: a game that is damaged; it says which.
        """
        if isinstance(index, slice):
            return self._selection._slice_of_games(*span(index, len(self)))
        return self._selection._records(index)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def _rows(self, columns: Sequence[str] | None, batch_size: int | None) -> GameFacts:
        return GameFacts(self._selection, columns, batch_size)

    def __repr__(self) -> str:
        return f"{self._selection!r}.games"


class Selection(Marking, Tabular):
    """A selection of a pack's frames: rows of 2048, positions of chess games, steps of trajectories.

    `pack[3]` is the record of one frame, `pack[10:20]` a selection of ten; `len` counts frames, iteration goes over
    their records. `pack.games` has the games by number. Selecting gives new selections; nothing is copied or decoded.
    Polars, pandas, DuckDB and pyarrow take a selection as a table of its frames (`to_arrow`).
    """

    #: The selection that it was made of: itself, and the method, arguments and options, and which of the results it is.
    made_from: tuple[Any, str, tuple[Any, ...], dict[str, Any], tuple[int, ...]] | None = None

    def __init__(self, compiled: _gristmill.Selection) -> None:
        self._compiled = compiled

    @property
    def path(self) -> str:
        """The folder of the pack."""
        return self._compiled.folder

    @functools.cached_property
    def layout(self) -> Layout:
        """Layout of the records; of chess V7, whatever was packed: what V6 lacks is zero."""
        return Layout(self._compiled.layout())

    @property
    def games(self) -> GamesOf[Self]:
        """The games by number: `pack.games[3]`, `pack.games[10:20]`."""
        return GamesOf(self)

    def __len__(self) -> int:
        """How many frames there are."""
        return self.num_frames

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @remembered
    def __getitem__(self, index: int | slice) -> Array | Self:
        """The record of one frame as a structured array of no axis, or some of the frames.

        Raises:
            IndexError: there is no such frame.
            ValueError: a slice with a step.
        """
        if isinstance(index, slice):
            return type(self)(self._compiled.slice(*span(index, self.num_frames)))
        return self.take(operator.index(index))

    def __iter__(self) -> Iterator[npt.NDArray[np.void]]:
        together = max(1, _TOGETHER // self.layout.dtype.itemsize)
        for first in range(0, self.num_frames, together):
            block = self.take(np.arange(first, min(first + together, self.num_frames)))
            yield from (block[i, ...] for i in range(len(block)))

    @remembered
    def _slice_of_games(self, start: int, stop: int) -> Self:
        return type(self)(self._compiled.slice_games(start, stop))

    def _records(self, game: int) -> Array:
        place = self._place(game)
        return Array.over(self._compiled.game(place), (self._compiled.frames(place),), self.layout.dtype)

    @property
    def num_frames(self) -> int:
        """How many frames are selected."""
        return self._compiled.num_frames

    @property
    def num_games(self) -> int:
        """How many games are selected, those included that have no frame left."""
        return self._compiled.num_games

    @property
    def game_ids(self) -> list[int]:
        """Ids of the selected games in the pack's database, ascending."""
        return self._compiled.game_ids()

    def frames(self, index: int) -> int:
        """Selected frames of one game.

        Raises:
            IndexError: there is no such game.
        """
        return self._compiled.frames(self._place(index))

    def member(self, index: int) -> str:
        """Where one game came from: its file below the folder that was packed, and its member.

        Raises:
            IndexError: there is no such game.
        """
        return self._compiled.source(self._place(index)) or ""

    def _place(self, index: int) -> int:
        place, count = operator.index(index), self.num_games
        place += count if place < 0 else 0
        if not 0 <= place < count:
            raise IndexError(f"game {index} of {count}")
        return place

    @remembered
    def where(self, sql: str, *params: Parameter) -> Self:
        """Those of the games that `sql` names.

        Args:
            sql: a condition on the columns of the database's table of games, such as `"result > ?"`; or a whole query
                whose first column is ids. It cannot change the pack. Rows of 2048 have table `runs` (id, seed, steps,
                max_score, highest_tile), other packs `games` (id, frames, source, version, input_format, result, draw,
                adjudicated, ...).
            params: values for the question marks.

        Raises:
            ConfigError: SQLite does not understand it, it is more than one condition, it calls a function that may say
                something else the next time (`random()`, `date()`, ...), or it takes more than an hour
                (`GRISTMILL_SQL_SECONDS` says how many seconds instead).
            TypeError: `sql` is no text.
            KeyboardInterrupt: Ctrl-C, also where the SQL has no end.
        """
        if not isinstance(sql, str):
            raise TypeError(f"sql={sql!r}; expected a condition in SQL, such as 'result > 0'")
        return type(self)(self._compiled.query(sql, list(params)))

    @overload
    def split(self, val: float, *, test: float, seed: int = 42, by: By | None = None) -> ThreeWaySplit[Self]: ...
    @overload
    def split(
        self,
        val: float | None = None,
        *,
        seed: int = 42,
        val_where: str | None = None,
        params: Sequence[Parameter] = (),
        val_games: Iterable[int] | None = None,
        val_runs: Iterable[int] | None = None,
        by: By | None = None,
    ) -> Split[Self]: ...
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
        val_runs: Iterable[int] | None = None,
        by: By | None = None,
    ) -> Split[Self] | ThreeWaySplit[Self]:
        """Two sides, by game: `train` and `val`. Give exactly one of `val`, `val_where`, `val_games` and `val_runs`.

        With `test` there are three: `train, val, test = pack.split(0.05, test=0.05)`. The val side is the same as
        without.

        Args:
            val: about this share of the games on the val side. The side of a game depends on `seed` and the game alone:
                it is the same in every pack that the game is in.
            test: beside `val`, about this share of the games on a third side.
            seed: another seed, another split.
            val_where: SQL that names the games of the val side, as for `where`.
            params: values for its question marks.
            val_games: ids of the games of the val side.
            val_runs: the same, as rows of 2048 call their games.
            by: what decides the side of a game with `val`: of rows of 2048 the `seed` of the game, of other packs its
                `records`, to the byte; or its `content`: where its men stood, or boards and moves, so that a game, its
                copies, its re-recordings and its images (colours exchanged; turned and mirrored) are on one side. That
                may read every frame once.

        Raises:
            ConfigError: no game falls on a side, nothing is left for training, `val` is no share, or SQLite does not
                understand the SQL.
            TypeError: not exactly one of those options is given.
        """
        ids = val_games if val_games is not None else val_runs
        compiled, by_content = self._compiled, by == "content"
        if test is not None:
            if val is None or val_where is not None or ids is not None:
                raise TypeError("a test side goes with the share val; for other ones split the train side again")
            three = compiled.split_three(float(val), float(test), seed, by_content)
            return ThreeWaySplit(*map(type(self), three))
        if sum(given is not None for given in (val, val_where, val_games, val_runs)) != 1:
            raise TypeError("split() takes exactly one of val, val_where, val_games and val_runs")
        if val_where is not None:
            found = compiled.split_by(val_where, list(params))
        elif ids is not None:
            found = compiled.split_ids([operator.index(one) for one in ids])
        else:
            found = compiled.split(float(val or 0.0), seed, by_content)
        return Split(*map(type(self), found))

    @named
    @remembered
    def folds(self, count: int, *, seed: int = 42, by: By | None = None) -> list[Split[Self]]:
        """Splits for cross-validation: each game is on the val side of exactly one of them, and on one side of each.

        Args:
            count: how many, from 2 on. The val sides are about equally large.
            seed: another seed, other folds.
            by: what decides the fold of a game, as for `split`.

        Raises:
            ConfigError: no game falls into a fold.
        """
        found = self._compiled.folds(operator.index(count), seed, by == "content")
        return [Split(*map(type(self), both)) for both in found]

    def take(self, indices: npt.ArrayLike) -> Array:
        """The records of the frames at `indices`, counted within this selection: a structured array of the same shape.

        Negative indices count from the end.

        Raises:
            IndexError: there is no such frame.
            FormatError: a game that is damaged, or rows without the checksum of their block; it says which.
        """
        array = np.asarray(indices)
        if array.dtype != np.int64:
            # What is no place has the words of `places`; what is one fits.
            array = places(array, self.num_frames).view(np.int64)
        flat = array if array.ndim == 1 and array.flags.c_contiguous else np.ascontiguousarray(array).reshape(-1)
        memory = self._compiled.take(flat)
        return Array.over(memory, array.shape, self.layout.dtype)

    def _rows(self, columns: Sequence[str] | None, batch_size: int | None) -> Frames:
        return Frames(self, columns, batch_size)

    def _fields_alone(self, fields: list[str], places: npt.NDArray[np.int64]) -> Mapping[str, Array] | None:
        """Some fields of some frames, where they are stored apart from the others."""
        return None

    @property
    def lineage(self) -> list[LineageStep]:
        """How the pack came to be: jobs in order, with what went into each; empty where its manifest does not tell."""
        return steps(self._compiled.lineage())

    @remembered
    def marked(self, name: str) -> Self:
        """Those of the frames that a mark marks. All games remain, even without a frame.

        Raises:
            FormatError: there is no such mark, it is damaged, of another pack, or of fewer frames than are there.
        """
        return type(self)(self._compiled.marked(name))

    @remembered
    def without(self, name: str) -> Self:
        """Those of the frames that a mark does not mark.

        Raises:
            FormatError: as `marked`.
        """
        return type(self)(self._compiled.without(name))

    def __reduce__(self) -> tuple[Any, ...]:
        """The folder of the pack and which games are selected: another process opens it and selects them again.

        Where frames were selected within games (by a mark, a filter, a slice), it does what was done here.
        """
        folder, size = absolute(self.path), (self.num_games, self.num_frames)
        ids = None if self.num_frames == self._compiled.total_frames else self.game_ids
        try:
            select_again(folder, ids, size)
        except StateError:
            if self.made_from is None:
                raise
            return derive_again, (self.made_from, folder, size)
        return select_again, (folder, ids, size)

    def __repr__(self) -> str:
        total = self._compiled.total_frames
        frames = f"{self.num_frames}" if self.num_frames == total else f"{self.num_frames} of {total}"
        return f"{type(self).__name__}({self.path!r}, {self._shown(frames)})"

    def _shown(self, frames: str) -> str:
        """Counts, for people."""
        return f"games={self.num_games}, frames={frames}"


def span(index: slice, count: int) -> tuple[int, int]:
    """First place of a slice, and the one after its last.

    Raises:
        ValueError: a slice with a step.
    """
    start, stop, step = index.indices(count)
    if step != 1:
        raise ValueError(f"slices have no step here, found {step}; take(range(...)) reads every N-th")
    return start, max(start, stop)


def places(indices: npt.ArrayLike, count: int) -> npt.NDArray[np.uint64]:
    """Indices as places from 0 on, in the same shape; negative ones count from the end.

    Raises:
        IndexError: there is no such place.
        TypeError: what is no whole number.
    """
    array = np.asarray(indices)
    if array.size == 0:
        return np.empty(array.shape, np.uint64)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected indices, found {array.dtype}")
    if array.dtype.itemsize < 8:
        # Of 64 bits, in which the count has room.
        array = array.astype(np.int64)
    low, high = int(array.min()), int(array.max())
    if low < -count or high >= count:
        raise IndexError(f"row {array[(array >= count) | (array < -count)].flat[0]} of {count}")
    return np.ascontiguousarray(np.where(array < 0, array + count, array) if low < 0 else array, dtype=np.uint64)
