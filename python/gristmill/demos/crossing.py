"""Batches on their way from one process to another, made in memory that both have: a few numbers are all that is sent.

The memory has no name and no file; it is gone with the last process that has it.
"""

from __future__ import annotations

import ctypes
import itertools
import mmap
import os
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

#: Columns begin at multiples of this, as everywhere.
_ALIGN = 64

#: Rings of this process, by number: what arrives says which it is in.
_RINGS: weakref.WeakValueDictionary[int, Ring] = weakref.WeakValueDictionary()
_NUMBERS = itertools.count()

#: An array in a slot: first byte, type, shape.
Place = tuple[int, str, tuple[int, ...]]


def can_share() -> bool:
    """Whether this system has memory without a name that processes can share."""
    return hasattr(os, "memfd_create")


class Ring:
    """Slots for batches: one process fills them, another one gives them back when it has dropped what was in them."""

    def __init__(self, rows: int, row_bytes: Sequence[int], slots: int) -> None:
        """Room for `slots` batches of up to `rows` rows, with columns of the given bytes a row; taken when it is used.

        Raises:
            OSError: there is no memory.
        """
        fd = os.memfd_create("gristmill", os.MFD_CLOEXEC)
        try:
            self._set(fd, rows, tuple(row_bytes), slots, next(_NUMBERS))
        except BaseException:
            os.close(fd)
            raise
        _RINGS[self.number] = self

    def _set(self, fd: int, rows: int, row_bytes: tuple[int, ...], slots: int, number: int) -> None:
        self._args = (rows, row_bytes, slots, number)
        self.number = number
        ends = np.cumsum([0, *(-(-rows * size // _ALIGN) * _ALIGN for size in row_bytes)]).tolist()
        #: First byte of each column in its slot.
        self.columns: list[int] = ends[:-1]
        self._slot_bytes = -(-max(ends[-1], 1) // mmap.PAGESIZE) * mmap.PAGESIZE
        self._first = -(-slots // mmap.PAGESIZE) * mmap.PAGESIZE
        size = self._first + slots * self._slot_bytes
        if os.fstat(fd).st_size < size:
            os.ftruncate(fd, size)
        self._map = mmap.mmap(fd, size)
        #: For each slot whether a batch is in it: set by the one that fills, cleared by the one that is done with it.
        self._taken = np.frombuffer(self._map, np.uint8, slots)
        self._fd = fd
        self._close = weakref.finalize(self, os.close, fd)
        self._close.atexit = False

    def __reduce__(self) -> tuple[Any, ...]:
        """The same memory in a process that is being started."""
        # Imported already where a process is started.
        from multiprocessing import reduction

        return _of_descriptor, (reduction.DupFd(self._fd), self._args)

    def take(self) -> int | None:
        """A slot that is free, the same ones again and again; `None` while there is none."""
        free = np.flatnonzero(self._taken == 0)
        if not len(free):
            return None
        slot = int(free[0])
        self._taken[slot] = 1
        return slot

    def give_back(self, slot: int) -> None:
        """Frees a slot: nothing holds its memory any more."""
        self._taken[slot] = 0

    def views(self, slot: int, rows: int) -> list[npt.NDArray[np.uint8]]:
        """The first `rows` rows of each column of a slot, to be filled."""
        first = self._first + slot * self._slot_bytes
        starts = zip(self.columns, self._args[1], strict=True)
        return [np.frombuffer(self._map, np.uint8, rows * size, first + start) for start, size in starts]

    def arrays(self, slot: int, places: Sequence[Place]) -> list[npt.NDArray[Any]]:
        """Arrays in a slot, which is given back when the last of them and of their views is gone."""
        first = self._first + slot * self._slot_bytes
        held = (ctypes.c_ubyte * self._slot_bytes).from_buffer(self._map, first)
        weakref.finalize(held, _done, self._taken, slot, os.getpid()).atexit = False
        return [np.ndarray(shape, np.dtype(dtype), held, start) for start, dtype, shape in places]


def _done(taken: npt.NDArray[np.uint8], slot: int, owner: int) -> None:
    # A forked child drops copies of what is its parent's still.
    if os.getpid() == owner:
        taken[slot] = 0


def _of_descriptor(fd: Any, args: tuple[int, tuple[int, ...], int, int]) -> Ring:
    ring = Ring.__new__(Ring)
    ring._set(fd.detach(), *args)
    return ring


class Crossing:
    """What is sent of a batch: which slot it is in, where its arrays are there, and what is no array."""

    def __init__(
        self,
        ring: Ring,
        slot: int,
        values: Mapping[str, Any],
        columns: Mapping[str, int],
        made: Callable[[dict[str, Any]], Any],
    ) -> None:
        """A batch in a slot.

        Args:
            ring: where it is.
            slot: likewise.
            values: the batch, by name.
            columns: which of them are columns of the slot.
            made: what becomes of the values at the other end, by name.
        """
        places: dict[str, Place | None] = dict.fromkeys(values)
        for name, column in columns.items():
            array = values[name]
            places[name] = (ring.columns[column], array.dtype.str, array.shape)
        others = {name: value for name, value in values.items() if name not in columns}
        self._sent = (ring.number, slot, places, others, made)

    def __reduce__(self) -> tuple[Any, ...]:
        """What comes out of it is the batch."""
        return _arrived, self._sent


def _arrived(
    number: int,
    slot: int,
    places: dict[str, Place | None],
    others: dict[str, Any],
    made: Callable[[dict[str, Any]], Any],
) -> Any:
    """A batch that another process has put into a slot."""
    there = {name: place for name, place in places.items() if place is not None}
    arrays = dict(zip(there, _RINGS[number].arrays(slot, list(there.values())), strict=True))
    return made({name: arrays[name] if name in arrays else others[name] for name in places})
