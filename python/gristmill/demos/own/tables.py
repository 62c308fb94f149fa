"""Files of arrays by name -> tables: which arrays there are, and each at its use, checked first."""

from __future__ import annotations

import gzip
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from tokenize import TokenError
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import safe_pickle
from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.names import usual
from gristmill.errors import FormatError

#: Maximum number of that Deflate makes of a byte.
_MAX_RATIO = 1032

#: Maximum number of arrays of one file.
MAX_ARRAYS = 1 << 16


@dataclass
class Table:
    """Arrays by name, with a row for each step."""

    #: Where they are from, for errors: the file, and what of it.
    place: str
    names: list[str]
    #: Reads an array; raises `FormatError` for what is none.
    read: Callable[[str], npt.NDArray[Any]]
    #: They are one episode, whatever flags say.
    whole: bool = False
    #: What is no array, and why.
    left: Mapping[str, str] = field(default_factory=dict)

    def array(self, name: str) -> npt.NDArray[Any]:
        """An array, read and checked.

        Raises:
            FormatError: it is none, or damaged.
        """
        try:
            return self.read(name)
        except FormatError:
            raise
        except (zipfile.BadZipFile, zlib.error, *DAMAGE) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise fault(self.place, "corrupt", f"{type(error).__name__}: {error}", name) from error


def is_shard(path: str) -> bool:
    """Whether an `.npz` is a shard of KataGo, which the engine reads."""
    try:
        with zipfile.ZipFile(path) as file:
            return "binaryInputNCHWPacked.npy" in file.namelist()
    except (OSError, zipfile.BadZipFile, ValueError):
        return False


def of_npz(path: str, max_bytes: int) -> Iterator[Table]:
    """The one table of an `.npz`."""
    try:
        with zipfile.ZipFile(path) as file:
            members = {info.filename.removesuffix(".npy"): info for info in file.infolist()}
            yield Table(path, list(members), lambda name: _of_member(path, file, members[name], max_bytes))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeError) as error:
        raise fault(path, "corrupt", f"no whole .npz: {error}") from error


def of_npy_folder(folder: str, names: list[str]) -> Iterator[Table]:
    """The one table of a folder with an `.npy` file for each array; they are mapped."""

    def read(name: str) -> npt.NDArray[Any]:
        path = os.path.join(folder, f"{name}.npy")
        try:
            with open(path, "rb") as file:
                shape, dtype = _npy_header(path, file)
                held = os.fstat(file.fileno()).st_size - file.tell()
            if held != math.prod(shape) * dtype.itemsize:
                says = f"{dtype} {shape}, {math.prod(shape) * dtype.itemsize} bytes; the file holds {held}"
                raise fault(path, "truncated" if held < math.prod(shape) * dtype.itemsize else "wrong_size", says)
            if not held:
                return np.empty(shape, dtype)
            found: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except FormatError:
            raise
        except ValueError as error:
            raise fault(path, "corrupt", str(error)) from error
        return found

    yield Table(folder, names, read)


def of_pickle(path: str, max_bytes: int) -> Iterator[Table]:
    """The tables of a pickle: a dictionary of arrays, or of lists with an array for each episode, or a list of such."""
    try:
        with open(path, "rb") as file:
            packed = file.read(2) == b"\x1f\x8b"
        opened: Any = gzip.open(path) if packed else open(path, "rb")  # noqa: SIM115
        with opened as file:
            data = file.read(max_bytes + 1)
    except (gzip.BadGzipFile, zlib.error, EOFError) as error:
        raise fault(path, "corrupt", f"gzip: {error}") from error
    if len(data) > max_bytes:
        raise fault(
            path, "too_large", f"more than {max_bytes} bytes of pickle; open_own(..., max_bytes=...) raises the bound"
        )
    try:
        found = safe_pickle.loads(data, max_bytes=max_bytes)
    except FormatError as error:
        raise fault(path, error.kind, str(error)) from error
    yield from _of_value(path, found)


def _of_value(path: str, found: Any) -> Iterator[Table]:
    """Tables of what was pickled."""
    nested = isinstance(found, Mapping) and found and all(isinstance(one, Mapping) for one in found.values())
    if nested and not any(usual(str(name)) for name in found):
        found = list(found.values())
    if isinstance(found, list | tuple) and found and all(isinstance(one, Mapping) for one in found):
        for i, episode in enumerate(found):
            yield _of_mapping(f"{path}: episode {i}", _flat(episode), True)
        return
    if not isinstance(found, Mapping):
        kind = f"a list of {len(found)}" if isinstance(found, list | tuple) else f"a {type(found).__name__}"
        says = f"pickled is {kind}; expected a dictionary of arrays, or a list of them, one for each episode"
        raise fault(path, "empty" if found in ([], ()) else "unknown_format", says)
    arrays = _flat(found)
    by_episode = {name: value for name, value in arrays.items() if _is_list_of_arrays(value)}
    if not by_episode:
        yield _of_mapping(path, arrays, False)
        return
    counts = {name: len(value) for name, value in by_episode.items()}
    if len(set(counts.values())) > 1:
        raise fault(path, "wrong_size", f"lists of different lengths: {counts}; expected one array for each episode")
    for i in range(next(iter(counts.values()))):
        yield _of_mapping(f"{path}: episode {i}", {name: value[i] for name, value in by_episode.items()}, True)


def _of_mapping(place: str, arrays: Mapping[str, Any], whole: bool) -> Table:
    def read(name: str) -> npt.NDArray[Any]:
        try:
            return np.asarray(arrays[name])
        except (ValueError, OverflowError) as error:
            raise fault(place, "unsupported", f"rows of different shapes: {error}", name) from error

    return Table(place, list(arrays), read, whole)


def _flat(found: Mapping[Any, Any], above: str = "", depth: int = 8) -> dict[str, Any]:
    """Arrays of dictionaries within dictionaries, by their path."""
    flat: dict[str, Any] = {}
    for name, value in found.items():
        path = f"{above}{name}"
        if isinstance(value, Mapping) and depth:
            flat.update(_flat(value, f"{path}/", depth - 1))
        else:
            flat[path] = value
    return flat


def _is_list_of_arrays(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, np.ndarray) and one.ndim for one in value)


def _of_member(path: str, file: zipfile.ZipFile, info: zipfile.ZipInfo, max_bytes: int) -> npt.NDArray[Any]:
    """An array of an `.npz`, whose size is believed when the archive agrees."""
    with file.open(info) as member:
        shape, dtype = _npy_header(f"{path}: `{info.filename}`", member)
        size, held = math.prod(shape) * dtype.itemsize, info.file_size - member.tell()
        if dtype.hasobject:
            says = "Python objects; expected an array of numbers (numpy.stack makes one of arrays of one shape)"
            raise fault(path, "unsupported", says, info.filename)
        if size != held:
            says = f"{dtype} {shape}, {size} bytes; the member holds {held}"
            raise fault(path, "truncated" if held < size else "wrong_size", says, info.filename)
        if size > max_bytes or size > _MAX_RATIO * max(info.compress_size, 1):
            raise fault(path, "too_large", f"{size} bytes, the bound is {max_bytes}", info.filename)
        data = bytearray(size)
        view, done = memoryview(data), 0
        while done < size:
            read = member.readinto(view[done : done + (1 << 24)])  # type: ignore[attr-defined]
            if not read:
                raise fault(path, "truncated", f"{done} of {size} bytes", info.filename)
            done += read
    values = np.frombuffer(data, dtype) if size else np.empty(0, dtype)
    return values.reshape(shape[::-1]).transpose() if _is_fortran(file, info) else values.reshape(shape)


def _is_fortran(file: zipfile.ZipFile, info: zipfile.ZipInfo) -> bool:
    with file.open(info) as member:
        return _parse(member)[1]


def _npy_header(place: str, file: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Shape and type of an `.npy` that was opened; the bytes that follow are its values."""
    try:
        shape, _, dtype = _parse(file)
    except (ValueError, TypeError, SyntaxError, TokenError, EOFError, MemoryError, RecursionError) as error:
        raise fault(place, "corrupt", f"no .npy: {error}") from error
    if any(not 0 <= size < 1 << 62 for size in shape):
        raise fault(place, "corrupt", f"shape {shape}")
    return shape, dtype


def _parse(file: Any) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    version = np.lib.format.read_magic(file)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(file)
    return np.lib.format.read_array_header_2_0(file)
