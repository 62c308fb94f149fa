"""Fields of a Minari data set as `.npy` files that are mapped: written once, used while the source is unchanged."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from urllib.parse import quote

import numpy as np
import numpy.typing as npt


class Spill:
    """A folder of columns, in a folder that the user gave."""

    def __init__(self, above: str | os.PathLike[str], key: str, sources: Iterable[str]) -> None:
        """The folder for what `sources` hold; its name has a hash of their places, sizes and times."""
        digest = hashlib.blake2b(digest_size=12)
        for path in sources:
            about = os.stat(path)
            digest.update(f"{os.path.abspath(path)}\n{about.st_size} {about.st_mtime_ns}\n".encode())
        self._folder = os.path.join(os.fspath(above), f"{key}-{digest.hexdigest()}")

    def column(
        self, name: str, dtype: np.dtype[Any], shape: tuple[int, ...], fill: Callable[[npt.NDArray[Any]], None]
    ) -> npt.NDArray[Any]:
        """A field, mapped for reading; `fill` puts its values in where no file has them yet.

        Raises:
            OSError: the folder cannot be written.
        """
        path = os.path.join(self._folder, f"{quote(name, safe='')}.npy")
        if not os.path.exists(path):
            os.makedirs(self._folder, exist_ok=True)
            staged = f"{path}.{os.getpid()}.part"
            try:
                values = np.lib.format.open_memmap(staged, "w+", dtype, shape)
                fill(values)
                values.flush()
                os.replace(staged, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(staged)
        mapped: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        return mapped
