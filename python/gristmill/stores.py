"""Places that are not folders of this machine: their names as URLs, and files in memory for notebooks and tests.

Wherever data is read, a place is a path, a `file:` URL, or `memory://NAME/FOLDER`: a stream's `directory`,
`gristmill.open`, packs, and the jobs that read. See docs/guide/places.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, MutableMapping

from gristmill import _gristmill

__all__ = ["Memory"]


class Memory(MutableMapping[str, bytes]):
    """The files of the place `memory://NAME`, by name: bytes that are read like files on disk.

        drops = gristmill.stores.Memory("drops")
        drops["run1/training.1.gz"] = game
        loader = gristmill.DataLoader(gristmill.presets.lc0("memory://drops/run1"))

    They live as long as the process; two objects of one name are the same files. A stream that watches the place takes
    files in as they are written.

    Args:
        name: the name of the place: letters, digits, `.`, `_` and `-`.

    Raises:
        ValueError: the name has other characters.
    """

    def __init__(self, name: str) -> None:
        if not name or not all(letter.isalnum() or letter in "._-" for letter in name):
            raise ValueError(f"{name!r} names no place in memory; expected letters, digits, `.`, `_` and `-`")
        self.name = name
        self._compiled = _gristmill.MemoryFiles(name)

    def __getitem__(self, file: str) -> bytes:
        return self._compiled.read(file)

    def __setitem__(self, file: str, data: bytes) -> None:
        if not file or file.startswith("/") or any(part in ("", ".", "..") for part in file.split("/")):
            raise ValueError(f"{file!r} names no file; expected parts separated by single slashes")
        self._compiled.write(file, bytes(data))

    def __delitem__(self, file: str) -> None:
        if not self._compiled.remove(file):
            raise KeyError(file)

    def __iter__(self) -> Iterator[str]:
        return iter(self._compiled.names())

    def __len__(self) -> int:
        return len(self._compiled.names())

    def __repr__(self) -> str:
        return f"Memory({self.name!r}, files={len(self)})"


def absolute(place: str) -> str:
    """A place as another process of this machine finds it: an absolute path, or the URL as it is."""
    return os.path.abspath(place) if _gristmill.is_local(place) else place
