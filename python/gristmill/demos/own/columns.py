"""Fields of one file after another -> one column for each: in memory, or as `.npy` files in a folder that is mapped."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt

from gristmill.demos.own.episodes import fault


class Gathered:
    """Columns that grow by the fields of each file; in memory at most `max_bytes` of them."""

    def __init__(self, path: str, max_bytes: int, folder: str | None = None) -> None:
        """Columns of what lies at `path`, as files in `folder` where it is given."""
        self._path, self._left, self._folder = path, max_bytes, folder
        self._parts: dict[str, list[npt.NDArray[Any]]] = {}
        self._files: dict[str, tuple[io.BufferedWriter, int]] = {}
        self._kinds: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}

    def add(self, place: str, fields: Mapping[str, npt.NDArray[Any]]) -> None:
        """Adds the fields of the next file, `place`.

        Raises:
            FormatError: it has other fields, types or shapes than the first, or all are more than fits.
            OSError: a column cannot be written.
        """
        kinds = {name: (array.dtype, array.shape[1:]) for name, array in fields.items()}
        if not self._kinds:
            self._kinds = kinds
        if kinds != self._kinds:
            raise fault(place, "wrong_size", f"{_told(kinds)}; those before it have {_told(self._kinds)}")
        for name, array in fields.items():
            if self._folder is not None:
                self._write(name, array)
                continue
            # What is mapped takes no memory.
            self._left -= 0 if _is_mapped(array) else array.nbytes
            if self._left < 0:
                advice = "`columns=FOLDER` keeps the columns in mapped files instead"
                raise fault(self._path, "too_large", f"more than fits into memory as its bound is; {advice}")
            self._parts.setdefault(name, []).append(array)

    def finish(self) -> dict[str, npt.NDArray[Any]]:
        """The columns; those of files are complete and closed."""
        if self._folder is None:
            joined = {}
            for name in list(self._parts):
                parts = self._parts.pop(name)
                joined[name] = parts[0] if len(parts) == 1 else np.concatenate(parts)
            return joined
        for name, (file, rows) in self._files.items():
            file.seek(0)
            file.write(npy_header(*self._kinds[name], rows))
            file.close()
        return mapped(self._folder, list(self._files))

    def _write(self, name: str, array: npt.NDArray[Any]) -> None:
        if name not in self._files:
            file = open(column_file(self._folder or "", name), "wb")  # noqa: SIM115  (closed by `finish`)
            file.write(npy_header(*self._kinds[name], 0))
            self._files[name] = (file, 0)
        file, rows = self._files[name]
        step = max(1, (1 << 24) // max(array[:1].nbytes, 1))
        for first in range(0, len(array), step):
            file.write(np.ascontiguousarray(array[first : first + step]).tobytes())
        self._files[name] = (file, rows + len(array))


def column_file(folder: str, name: str) -> str:
    """The file of a column."""
    return os.path.join(folder, f"{quote(name, safe='')}.npy")


def mapped(folder: str, names: list[str]) -> dict[str, npt.NDArray[Any]]:
    """The columns in a folder, of which nothing is read."""
    return {name: np.load(column_file(folder, name), mmap_mode="r", allow_pickle=False) for name in names}


def npy_header(dtype: np.dtype[Any], shape: tuple[int, ...], rows: int) -> bytes:
    """The first bytes of a `.npy`, as many for any number of rows: NumPy leaves room for the first axis to grow."""
    made = io.BytesIO()
    described = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, *shape)}
    np.lib.format.write_array_header_1_0(made, described)
    return made.getvalue()


def _is_mapped(array: npt.NDArray[Any]) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray) and not isinstance(base, np.memmap):
        base = base.base
    return isinstance(base, np.memmap)


def _told(kinds: Mapping[str, tuple[np.dtype[Any], tuple[int, ...]]]) -> str:
    return ", ".join(f"{name} {dtype}{list(shape)}" for name, (dtype, shape) in sorted(kinds.items()))
