"""Pickles of unknown origin as plain values: nothing is imported or called, any name that is not data is refused.

from gristmill import safe_pickle

value = safe_pickle.load("demo.pkl")
"""

from __future__ import annotations

import ast
import os
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from gristmill import _gristmill
from gristmill.errors import FormatError

#: Maximum number of bytes that the values of one pickle may take, its own bytes not counted.
MAX_BYTES = 1 << 30


class Readable(Protocol):
    """Anything opened for reading bytes."""

    def read(self, size: int = ..., /) -> bytes:
        """At most `size` bytes; all there are by default."""
        ...


@dataclass(frozen=True, slots=True)
class Name:
    """A listed class that was pickled by its name alone."""

    #: Its short name, such as `Box`.
    name: str


@dataclass(slots=True)
class Instance:
    """An instance of a listed class, as the data that it was pickled as: a space, a trajectory, a random state."""

    #: Short name of its class: `Box`, `Discrete`, `Dict`, `Trajectory`, ...
    kind: str
    #: What its constructor was given, in order.
    args: tuple[Any, ...] = ()
    #: Its attributes: most often a dict.
    state: Any = None


class TrajectoryTuple(NamedTuple):
    """One demonstration of MAGICAL and older releases of imitation, in the order in which they pickled its fields."""

    acts: Any
    obs: Any
    rews: Any
    infos: Any


def load(
    file: str | os.PathLike[str] | Readable,
    *,
    max_bytes: int = MAX_BYTES,
    max_file_bytes: int | None = None,
    copy: bool = False,
) -> Any:
    """The one value that is pickled in a file: a path, or anything opened for reading bytes (`gzip.open(...)`).

    Args:
        file: the file; all of it is read.
        max_bytes: as for `loads`.
        max_file_bytes: most bytes that are read.
        copy: as for `loads`.

    Raises:
        OSError: the file cannot be read.
        FormatError: as for `loads`, with the file; kind `too_large` where it has more than `max_file_bytes`.
    """
    if isinstance(file, str | os.PathLike):
        with open(file, "rb") as opened:
            return _read(opened, os.fspath(file), max_bytes, max_file_bytes, copy)
    name = getattr(file, "name", None)
    return _read(file, name if isinstance(name, str) else None, max_bytes, max_file_bytes, copy)


def loads(data: bytes | bytearray | memoryview, *, max_bytes: int = MAX_BYTES, copy: bool = False) -> Any:
    """The value that is pickled in `data`, protocols 0 to 5.

    Numbers, texts and containers are Python's own; arrays, NumPy scalars and dtypes are NumPy's; a colour space is its
    text; what else is listed is an `Instance`, a `TrajectoryTuple` or a `Name`. Shared and recursive values stay so.

    Args:
        data: the pickle and nothing after it.
        max_bytes: most bytes that the values may take, the data itself not counted.
        copy: give every array memory of its own that can be written to. Without it, arrays are read-only and lie over
            `data` wherever their alignment allows, which costs nothing and keeps `data` alive.

    Raises:
        FormatError: kind `forbidden` for a name that is not on the list (the message gives it); `unsupported`,
            `corrupt`, `truncated`, `wrong_size`, `too_large` for what else is wrong; always with the byte (`offset`).
    """
    return _gristmill.unpickle(data, None, max_bytes, copy)


def _read(file: Readable, name: str | None, max_bytes: int, most: int | None, copy: bool) -> Any:
    data = file.read() if most is None else file.read(most + 1)
    if most is not None and len(data) > most:
        message = f"more than max_file_bytes={most} bytes; raise it if the file is real"
        raise FormatError(f"{name or 'the file'}: too_large: {message}", kind="too_large", source=name)
    return _gristmill.unpickle(data, name, max_bytes, copy)


def _record_dtype(descr: str) -> np.dtype[Any]:
    """The structured dtype of a list of fields; called by the compiled part."""
    return np.lib.format.descr_to_dtype(ast.literal_eval(descr))
