"""Pieces of several data sets put together into the arrays of one batch, by the engine and in its memory."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.pairs.constructor import At, Numbers, PairSet, Piece
from gristmill.pairs.prepare import Prepare, cast_array
from gristmill.records.arrays import Array

#: At most this many free batches of memory are kept.
_KEEP = 4


@dataclass(frozen=True)
class _Array:
    """One array of all batches, without the batch axis."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    #: What the engine makes of each element.
    cast: str
    #: Whether data sets differ, so that rows are cast and filled up before the engine has them.
    uneven: bool
    #: The array that it is the same as.
    same_as: str | None

    @property
    def row_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Gatherer:
    """Makes batches whose arrays have the same type and shape for all data sets."""

    def __init__(self, sets: Sequence[PairSet[Any]], prepare: Prepare, pad: bool, batch_size: int) -> None:
        """Agrees on types and shapes.

        Raises:
            ConfigError: they differ, and nothing says that smaller shapes are to be filled up.
        """
        self._prepare = prepare
        self._batch_size = batch_size
        firsts = [pairs.pieces(np.zeros(1, np.int64)) for pairs in sets]
        self._lists = [name for name, piece in firsts[0].items() if isinstance(piece, list)]
        self._arrays: dict[str, _Array] = {}
        for name in firsts[0]:
            if name not in self._lists:
                self._arrays[name] = self._agree(name, sets, firsts, pad)
        self._memory: tuple[int, _gristmill.BatchMemory] | None = None

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of a row of each column; arrays that are the same have one."""
        return [array.row_bytes for array in self._arrays.values() if array.same_as is None]

    @property
    def columns(self) -> dict[str, int]:
        """Which column each array is."""
        own = [name for name, array in self._arrays.items() if array.same_as is None]
        return {name: own.index(array.same_as or name) for name, array in self._arrays.items()}

    def gather(
        self,
        rows: int,
        groups: Sequence[tuple[PairSet[Any], Numbers, Numbers]],
        room: Callable[[int], list[npt.NDArray[np.uint8]]] | None = None,
    ) -> dict[str, Any]:
        """The arrays of a batch: for each group its pairs, their numbers, and their places in the batch.

        `room` gives the memory for the columns of a number of rows; the loader's own serves without it.
        """
        pieces = [pairs.pieces(numbers) for pairs, numbers, _ in groups]
        found: dict[str, Any] = {}
        for name in self._lists:
            values: list[Any] = [None] * rows
            for own, (_, _, places) in zip(pieces, groups, strict=True):
                listed: Any = own[name]
                for place, value in zip(places.tolist(), listed, strict=True):
                    values[place] = value
            found[name] = values
        wanted: list[Any] = []
        made = {name: array for name, array in self._arrays.items() if array.same_as is None}
        for name, array in made.items():
            parts = [
                self._part(array, name, pairs, own[name], None if len(groups) == 1 else places)
                for own, (pairs, _, places) in zip(pieces, groups, strict=True)
            ]
            sizes = {size for size, _ in parts}
            size = sizes.pop() if sizes else array.row_bytes
            wanted.append((size, "same" if array.uneven else array.cast, [part for _, part in parts]))
        if room is None:
            columns = self._own_memory().gather(rows, wanted)
            for (name, array), column in zip(made.items(), columns, strict=True):
                found[name] = Array.over(column, (rows, *array.shape), array.dtype)
        else:
            given = room(rows)
            _gristmill.gather_into(given, wanted)
            for (name, array), room_of in zip(made.items(), given, strict=True):
                found[name] = room_of.view(array.dtype).reshape((rows, *array.shape))
        for name, array in self._arrays.items():
            if array.same_as is not None:
                found[name] = found[array.same_as]
        return found

    def _own_memory(self) -> _gristmill.BatchMemory:
        """Memory of this process: a forked child takes none of its parent's."""
        if self._memory is None or self._memory[0] != os.getpid():
            self._memory = (os.getpid(), _gristmill.BatchMemory(self._batch_size, self.row_bytes, _KEEP))
        return self._memory[1]

    def _part(
        self, array: _Array, name: str, pairs: PairSet[Any], piece: Piece, places: Numbers | None
    ) -> tuple[int, tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint8] | None]]:
        """Bytes of a row; the rows, which of them, and where they go."""
        if isinstance(piece, At) and not array.uneven:
            column, numbers = pairs.column(piece.field), piece.steps
            size = math.prod(column.shape[1:]) * column.dtype.itemsize
            if places is not None and numbers.ndim > 1:
                places = places[:, None] * numbers.shape[1] + np.arange(numbers.shape[1])
        else:
            column = pairs.made(piece)
            if array.uneven:
                cast, _ = self._prepare.cast(name, column.dtype, column.shape[1:])
                column = _filled(cast_array(column, cast), array)
            numbers = np.arange(len(column))
            size = math.prod(column.shape[1:]) * column.dtype.itemsize
        return size, (_bytes(column), _bytes(numbers), None if places is None else _bytes(places))

    def _agree(self, name: str, sets: Sequence[PairSet[Any]], firsts: Sequence[dict[str, Piece]], pad: bool) -> _Array:
        """What all data sets give under a name."""
        told: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        casts: list[str] = []
        for pairs, first in zip(sets, firsts, strict=True):
            piece = first[name]
            values: Any = pairs.column(piece.field) if isinstance(piece, At) else piece
            shape = piece.row_shape(values) if isinstance(piece, At) else values.shape[1:]
            cast, dtype = self._prepare.cast(name, values.dtype, shape)
            told.append((dtype, shape))
            casts.append(cast)
        dtypes, shapes = {dtype for dtype, _ in told}, [shape for _, shape in told]
        same = len(set(shapes)) == 1
        if len(dtypes) > 1 or not (same or (pad and len({len(shape) for shape in shapes}) == 1)):
            words = ", ".join(f"{dtype} {list(shape)}" for dtype, shape in told)
            advice = "pad=True fills up smaller shapes" if len(dtypes) == 1 else "prepare= makes one type of floats"
            raise ConfigError(f"`{name}` differs between the data sets: {words}; {advice}", field="datasets")
        uneven = not same or len(set(casts)) > 1 or "numpy" in casts
        twin = next((other for other in self._arrays if all(first[other] is first[name] for first in firsts)), None)
        if twin is not None and self._arrays[twin].dtype != told[0][0]:
            twin = None
        return _Array(tuple(max(dims) for dims in zip(*shapes, strict=True)), told[0][0], casts[0], uneven, twin)


def _filled(rows: npt.NDArray[Any], array: _Array) -> npt.NDArray[Any]:
    """Rows with zeros behind them on every axis."""
    if rows.shape[1:] == array.shape:
        return rows
    whole = np.zeros((len(rows), *array.shape), array.dtype)
    whole[(slice(None), *(slice(0, dim) for dim in rows.shape[1:]))] = rows
    return whole


def _bytes(array: npt.NDArray[Any]) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(array).reshape(-1).view(np.uint8)
