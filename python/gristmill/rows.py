"""Rows of a pack by number: selected by SQL, by value, by marks and by side of a split, taken and encoded at random."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, TypeVar, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.again import remembered
from gristmill.arrays import Array
from gristmill.drawing import table
from gristmill.layout import Layout
from gristmill.packed import Selection

if TYPE_CHECKING:
    from gristmill.encoders import Steps

#: A value bound to a question mark of SQL.
Parameter: TypeAlias = int | float | str | bytes | None

_Selection = TypeVar("_Selection", _gristmill.Rows, _gristmill.Games)

#: Rows that iteration reads at a time.
_TOGETHER = 4096

#: One number, or the lowest and highest of a range, both inclusive; `None` leaves an end open.
Bounds: TypeAlias = int | tuple[int | None, int | None] | None


class Split(NamedTuple):
    """The two sides of a split; no run is on both."""

    train: Rows
    val: Rows


class ThreeWaySplit(NamedTuple):
    """The three sides of a split with a test side; no run is on two."""

    train: Rows
    val: Rows
    test: Rows


class Rows(Selection[_gristmill.Rows]):
    """Some rows of a pack, in the order in which they are stored. Selecting gives new `Rows`; nothing is copied.

    `rows[3]` is one record, `rows[10:20]` a selection of ten; iteration goes over the records.
    """

    @functools.cached_property
    def layout(self) -> Layout:
        """Layout of the records."""
        return Layout(self._compiled.layout())

    @functools.cached_property
    def _made(self) -> dict[str, _gristmill.RowEncoding]:
        """What makes tensors, for the encoder that was used last: nothing is read twice for it."""
        return {}

    @property
    def num_frames(self) -> int:
        """How many rows there are, as `len`: a row is a frame."""
        return len(self)

    @property
    def num_runs(self) -> int:
        """How many runs are selected, those included that have no row left."""
        return len(self._compiled.run_ids())

    @property
    def run_ids(self) -> list[int]:
        """Ids of the selected runs, ascending."""
        return self._compiled.run_ids()

    @property
    def form(self) -> str:
        """What kind of rows these are: `steps` (packs), `self-play`, `legacy` or `exponents`."""
        return self._compiled.form

    @property
    def embedding_size(self) -> int | None:
        """Numbers in the vector of each row, where the folder has `embeddings-*.npy` beside the rows; else `None`."""
        return self._compiled.embedding_size

    @property
    def valuation_types(self) -> list[str]:
        """Names of the pack's valuations, by id: what `valuation_types.json` says, in any of its forms."""
        return self._compiled.valuations

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self._compiled)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    @remembered
    def __getitem__(self, index: int | slice) -> Array | Rows:
        """One row as a structured array of no axis, or some of the rows.

        Raises:
            IndexError: there is no such row.
            ValueError: a slice with a step.
        """
        if isinstance(index, slice):
            return Rows(self._compiled.slice(*span(index, len(self))))
        return self.take(operator.index(index))

    def __iter__(self) -> Iterator[npt.NDArray[np.void]]:
        for first in range(0, len(self), _TOGETHER):
            block = self.take(np.arange(first, min(first + _TOGETHER, len(self))))
            yield from (block[i, ...] for i in range(len(block)))

    @remembered
    def where(self, sql: str, *params: Parameter) -> Rows:
        """Those of the runs that `sql` names.

        Args:
            sql: a condition on the columns of table `runs` (id, seed, steps, max_score, highest_tile), such as
                `"max_score > ?"`; or a whole query whose first column is run ids. It cannot change the pack.
            params: values for the question marks.

        Raises:
            ConfigError: SQLite does not understand it, it is more than one condition, it calls a function that may say
                something else the next time (`random()`, `date()`, ...), or it takes more than an hour
                (`GRISTMILL_SQL_SECONDS` says how many seconds instead).
            KeyboardInterrupt: Ctrl-C, also where the SQL has no end.
        """
        return Rows(self._compiled.query(sql, list(params)))

    @remembered
    def filter(
        self, *, step_index: Bounds = None, max_rank: Bounds = None, valuation: str | Iterable[str] | None = None
    ) -> Rows:
        """Those rows that pass all the tests given. Reads every selected row once.

        Args:
            step_index: one step, or the first and last, both inclusive.
            max_rank: one rank, or the lowest and highest.
            valuation: names of valuations, such as `"search"`.

        Raises:
            ConfigError: the pack has no such valuation, or rows of its form have no such field.
        """
        names = [valuation] if isinstance(valuation, str) else None if valuation is None else list(valuation)
        return Rows(self._compiled.filter(_range("step_index", step_index), _range("max_rank", max_rank), names))

    @overload
    def split(
        self, val: float, *, test: float, seed: int = 42, by: Literal["seed", "content"] = "seed"
    ) -> ThreeWaySplit: ...
    @overload
    def split(
        self,
        val: float | None = None,
        *,
        seed: int = 42,
        val_where: str | None = None,
        params: Sequence[Parameter] = (),
        val_runs: Iterable[int] | None = None,
        by: Literal["seed", "content"] = "seed",
    ) -> Split: ...
    @remembered
    def split(
        self,
        val: float | None = None,
        *,
        test: float | None = None,
        seed: int = 42,
        val_where: str | None = None,
        params: Sequence[Parameter] = (),
        val_runs: Iterable[int] | None = None,
        by: Literal["seed", "content"] = "seed",
    ) -> Split | ThreeWaySplit:
        """Two sides, by run: `train` and `val`. Give exactly one of `val`, `val_where` and `val_runs`.

        With `test` there are three: `train, val, test = rows.split(0.05, test=0.05)`. The val side is the same as
        without.

        Args:
            val: about this share of the runs on the val side. The side of a game depends on `seed` and the game's own
                seed alone: it is the same in every pack that the game is in.
            test: beside `val`, about this share of the runs on a third side.
            seed: another seed, another split.
            val_where: SQL that names the runs of the val side, as for `where`.
            params: values for its question marks.
            val_runs: ids of the runs of the val side.
            by: what decides the side of a run with `val`: the `seed` of its game; or its `content`, boards and moves,
                so that a run, its copies and its eight images are on one side. That reads every row once.

        Raises:
            ConfigError: no run falls on a side, nothing is left for training, or SQLite does not understand the SQL.
        """
        if test is None:
            found = sides(self._compiled, val, seed, val_where, params, "val_runs", val_runs, by == "content")
            return Split(*map(Rows, found))
        three = three_sides(self._compiled, val, test, seed, (val_where, val_runs), by == "content")
        return ThreeWaySplit(*map(Rows, three))

    @remembered
    def folds(self, count: int, *, seed: int = 42, by: Literal["seed", "content"] = "seed") -> list[Split]:
        """Splits for cross-validation: each run is on the val side of exactly one of them, and on one side of each.

        Args:
            count: how many, from 2 on. The val sides are about equally large.
            seed: another seed, other folds.
            by: what decides the fold of a run, as for `split`.

        Raises:
            ConfigError: no run falls into a fold.
        """
        found = self._compiled.folds(operator.index(count), seed, by == "content")
        return [Split(*map(Rows, both)) for both in found]

    def take(self, indices: npt.ArrayLike) -> Array:
        """The rows at `indices`, counted within this selection, as a structured array of the same shape.

        Negative indices count from the end.

        Raises:
            IndexError: there is no such row.
            FormatError: rows that do not have the checksum of their block; it says which.
        """
        array = np.asarray(indices)
        if array.dtype != np.int64:
            # What is no row has the words of `places`; what is one fits.
            array = places(array, len(self)).view(np.int64)
        memory = self._compiled.take(np.ascontiguousarray(array).reshape(-1).view(np.uint8))
        return Array.over(memory, array.shape, self.layout.dtype)

    def take_embeddings(self, indices: npt.ArrayLike) -> Array:
        """The vectors of the rows at `indices`: float32 of shape (..., `embedding_size`).

        Raises:
            IndexError: there is no such row.
            FormatError: the rows have no vectors.
        """
        found = places(indices, len(self))
        memory = self._compiled.take_embeddings(found.reshape(-1).view(np.uint8))
        return Array.over(memory, (*found.shape, self.embedding_size or 0), "<f4")

    @property
    def has_values(self) -> bool:
        """Whether rewards and returns lie beside the rows: `values.npy`, or shards of it.

        Raises:
            FormatError: there are values, of other rows than these.
        """
        return self._compiled.has_values()

    def take_values(self, indices: npt.ArrayLike) -> Array:
        """Rewards and returns of the rows at `indices`, as a structured array of the same shape.

        Fields (24 bytes, packed): `run_id`, `step_index` (uint32), `reward` (float32, points of the game's score),
        `reward_scaled`, `return_raw` (float32, points, discounted within the game), `return_scaled` (float32, h of
        `return_raw`). `gristmill values` makes them. Source: the 2048 data specification, section 5.5.

        Raises:
            IndexError: there is no such row.
            FormatError: the rows have no values, or values of other rows.
        """
        found = places(indices, len(self))
        memory = self._compiled.take_values(found.reshape(-1).view(np.uint8))
        return Array.over(memory, found.shape, Layout(_gristmill.g2048_layouts()[2]).dtype)

    def encode(self, encoder: Steps, indices: npt.ArrayLike, *, seed: int = 0, epoch: int = 0) -> dict[str, Array]:
        """Tensors of the rows at `indices`, by name, just as a loader of `seed` makes them in `epoch`.

        What the encoder needs is read at its first use: values beside the rows, a tokenizer.

        Raises:
            IndexError: there is no such row.
            EncoderError: the rows do not have what the encoder needs.
            FormatError: a row that cannot be encoded; it says which.
        """
        found = places(indices, len(self))
        config = encoder.to_json()
        making = self._made.get(config)
        if making is None:
            making = self._compiled.encoding(config)
            self._made.clear()
            self._made[config] = making
        made = making.encode(found.reshape(-1).view(np.uint8), seed, epoch)
        return {name: Array.over(memory, (*found.shape, *shape[1:]), dtype) for name, dtype, shape, memory in made}

    def _repr_html_(self) -> str:
        shown = [self[i] for i in range(min(len(self), 5))]
        names = [name for name in (shown[0].dtype.names or ()) if shown[0].dtype[name].shape == ()] if shown else []
        return table(repr(self), names, ([row[name] for name in names] for row in shown))

    def __repr__(self) -> str:
        packed = self._compiled.packed()
        rows = f"{len(self)}" if len(self) == packed.frames else f"{len(self)} of {packed.frames}"
        return f"Rows({os.fspath(packed.folder)!r}, rows={rows}, runs={self.num_runs})"


def sides(
    compiled: _Selection,
    val: float | None,
    seed: int,
    val_where: str | None,
    params: Sequence[Parameter],
    name: str,
    val_ids: Iterable[int] | None,
    by_content: bool,
) -> tuple[_Selection, _Selection]:
    """The two sides of a split by share, by SQL or by the ids that the option `name` gives.

    Raises:
        TypeError: not exactly one of the three is given.
    """
    if sum(given is not None for given in (val, val_where, val_ids)) != 1:
        raise TypeError(f"split() takes exactly one of val, val_where and {name}")
    if val_where is not None:
        return compiled.split_by(val_where, list(params))
    if val_ids is not None:
        return compiled.split_ids([operator.index(one) for one in val_ids])
    return (compiled.split_by_content if by_content else compiled.split)(float(val or 0.0), seed)


def three_sides(
    compiled: _Selection, val: float | None, test: float, seed: int, others: tuple[object, ...], by_content: bool
) -> tuple[_Selection, _Selection, _Selection]:
    """The three sides of a split by shares; `others` are the options that name a val side otherwise.

    Raises:
        TypeError: no share `val`, or one of the others.
    """
    if val is None or any(given is not None for given in others):
        raise TypeError("a test side goes with the share val; for other ones split the train side again")
    return compiled.split_three(float(val), float(test), seed, by_content)


def span(index: slice, count: int) -> tuple[int, int]:
    """First place of a slice, and the one behind its last.

    Raises:
        ValueError: a slice with a step.
    """
    start, stop, step = index.indices(count)
    if step != 1:
        raise ValueError(f"slices have no step here, found {step}; take(range(...)) reads every N-th")
    return start, max(start, stop)


def _range(name: str, bounds: Bounds) -> tuple[int | None, int | None]:
    low, high = bounds if isinstance(bounds, tuple) else (bounds, bounds)
    for end in (low, high):
        if end is not None and operator.index(end) < 0:
            raise ValueError(f"{name}: {end} is negative")
    return low, high


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
    wrong = (array >= count) | (array < -count if array.dtype.kind == "i" else False)
    if np.any(wrong):
        raise IndexError(f"row {array[wrong].flat[0]} of {count}")
    return np.ascontiguousarray(np.where(array < 0, array + count, array), dtype=np.uint64)
