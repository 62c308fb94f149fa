"""Data sets of pairs -> what the engine makes the arrays of their batches of, alike for all data sets."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.pairs.constructor import At, Before, Classes, Numbers, PairSet, Piece, Tiles, Whole
from gristmill.pairs.prepare import Prepare, cast_array
from gristmill.records.arrays import Array


@dataclass(frozen=True)
class _Array:
    """One array of all batches, without the batch axis."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: The array that it is the same as.
    same_as: str | None

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Gatherer:
    """Makes batches whose arrays have the same type and shape for all data sets."""

    def __init__(self, sets: Sequence[PairSet[Any]], prepare: Prepare, pad: bool, seed: int) -> None:
        """Agrees on types and shapes.

        Raises:
            ConfigError: they differ, and nothing says that smaller shapes are to be filled up.
        """
        self._prepare, self._sets = prepare, sets
        firsts = [pairs.pieces(np.zeros(1, np.int64)) for pairs in sets]
        self._lists = [name for name, piece in firsts[0].items() if isinstance(piece, list)]
        self._arrays: dict[str, _Array] = {}
        for name in firsts[0]:
            if name not in self._lists:
                self._arrays[name] = self._agree(name, sets, firsts, pad)
        self._made = {name: array for name, array in self._arrays.items() if array.same_as is None}
        outputs = [(name, array.dtype.str, list(array.shape)) for name, array in self._made.items()]
        described = [
            (len(pairs), list(self._described(pairs, first))) for pairs, first in zip(sets, firsts, strict=True)
        ]
        #: What the engine makes them of.
        self.pairs = _gristmill.Pairs(outputs, described, seed)

    @property
    def has_lists(self) -> bool:
        """Whether something of a batch is no array."""
        return bool(self._lists)

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of a row of each column; arrays that are the same have one."""
        return [array.row_bytes for array in self._made.values()]

    @property
    def columns(self) -> dict[str, int]:
        """Which column each array is."""
        own = list(self._made)
        return {name: own.index(array.same_as or name) for name, array in self._arrays.items()}

    def named(self, columns: Sequence[_gristmill.Memory], rows: int) -> dict[str, Any]:
        """The arrays of a batch, by name, over the memory of its columns."""
        made = {
            name: Array.over(column, (rows, *array.shape), array.dtype)
            for (name, array), column in zip(self._made.items(), columns, strict=True)
        }
        return {name: made[array.same_as or name] for name, array in self._arrays.items()}

    def placed(self, room: Sequence[npt.NDArray[np.uint8]], rows: int) -> dict[str, Any]:
        """The same over memory of the caller."""
        made = {
            name: column.view(array.dtype).reshape((rows, *array.shape))
            for (name, array), column in zip(self._made.items(), room, strict=True)
        }
        return {name: made[array.same_as or name] for name, array in self._arrays.items()}

    def lists(self, sources: Numbers, rows: Numbers) -> dict[str, list[Any]]:
        """What of a batch is no array: of these rows of data sets."""
        found: dict[str, list[Any]] = {name: [None] * len(rows) for name in self._lists}
        for source in np.unique(sources).tolist() if self._lists else ():
            places = np.flatnonzero(sources == source)
            pieces: Any = self._sets[source].pieces(rows[places])
            for name, values in found.items():
                for place, value in zip(places.tolist(), pieces[name], strict=True):
                    values[place] = value
        return found

    def _described(self, pairs: PairSet[Any], first: dict[str, Piece]) -> Iterator[dict[str, Any]]:
        """What stands in each array of a data set, as the engine takes it."""
        whole = pairs.constructor.whole(pairs)
        for name, array in self._made.items():
            piece = first[name]
            values: Any = pairs.column(piece.field) if isinstance(piece, At) else piece
            shape = piece.row_shape(values) if isinstance(piece, At) else values.shape[1:]
            cast, _ = self._prepare.cast(name, values.dtype, shape)
            padding = None if shape == array.shape else (list(shape), list(array.shape), array.dtype.itemsize)
            yield {**_piece(pairs, whole[name], cast), "padding": padding}

    def _agree(self, name: str, sets: Sequence[PairSet[Any]], firsts: Sequence[dict[str, Piece]], pad: bool) -> _Array:
        """What all data sets give under a name."""
        told: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        for pairs, first in zip(sets, firsts, strict=True):
            piece = first[name]
            values: Any = pairs.column(piece.field) if isinstance(piece, At) else piece
            shape = piece.row_shape(values) if isinstance(piece, At) else values.shape[1:]
            _, dtype = self._prepare.cast(name, values.dtype, shape)
            told.append((dtype, shape))
        dtypes, shapes = {dtype for dtype, _ in told}, [shape for _, shape in told]
        same = len(set(shapes)) == 1
        if len(dtypes) > 1 or not (same or (pad and len({len(shape) for shape in shapes}) == 1)):
            words = ", ".join(f"{dtype} {list(shape)}" for dtype, shape in told)
            advice = "pad=True fills up smaller shapes" if len(dtypes) == 1 else "prepare= makes one type of floats"
            raise ConfigError(f"`{name}` differs between the data sets: {words}; {advice}", field="datasets")
        twin = next((other for other in self._arrays if all(first[other] is first[name] for first in firsts)), None)
        if twin is not None and self._arrays[twin].dtype != told[0][0]:
            twin = None
        return _Array(tuple(max(dims) for dims in zip(*shapes, strict=True)), told[0][0], twin)


def _piece(pairs: PairSet[Any], piece: Whole, cast: str) -> dict[str, Any]:
    """Rows of a column, and which of them; what NumPy has to cast is cast before."""
    found: dict[str, Any] = {"steps": None, "each": 1, "before": None, "cast": cast, "puzzle": None}
    if isinstance(piece, Classes):
        puzzle = _piece(pairs, piece.tiles, "same")["puzzle"]
        return {**found, "column": None, "row_bytes": 8, "puzzle": puzzle}
    if isinstance(piece, list):
        raise TypeError("a list is no array")
    column = piece if isinstance(piece, np.ndarray) else pairs.column(piece.field)
    if cast == "numpy":
        column, found["cast"] = cast_array(column, cast), "same"
    if isinstance(piece, Before):
        found["before"] = (_bytes(piece.later), _bytes(piece.within), piece.least, piece.most)
    elif isinstance(piece, At | Tiles):
        found["steps"], found["each"] = _bytes(piece.steps), math.prod(piece.steps.shape[1:])
    if isinstance(piece, Tiles):
        side = math.isqrt(piece.orders.shape[1])
        found["puzzle"] = (list(column.shape[1:]), column.dtype.itemsize, side, piece.orders.reshape(-1).tolist())
    return {**found, "column": _bytes(column), "row_bytes": math.prod(column.shape[1:]) * column.dtype.itemsize}


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
