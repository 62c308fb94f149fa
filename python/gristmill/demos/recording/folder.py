"""A folder of recorded episodes: files of records, with a description beside them. Each file is read as a table."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.minari.catalogue import read_json
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.tables import Table
from gristmill.errors import ConfigError
from gristmill.packs.source import Source
from gristmill.packs.source import open as open_any

#: The file by which such a folder is known, and the key that has its version.
ABOUT, VERSION = "gristmill-recording.json", "gristmill_recording"

#: What files of records begin with: bytes before the schema, and before each game, which has no facts here.
_HEAD, _ENTRY = 24, 16

#: How files of records are called.
_FIRST, _ENDING = "games-", ".records"

#: Fields that have a value for each step; observations have one more.
_OBSERVED = "obs"


def is_recorded(path: str) -> bool:
    """Whether a folder holds recorded episodes."""
    return os.path.isfile(os.path.join(path, ABOUT))


def begin(folder: str, about: dict[str, Any]) -> None:
    """Says what a folder has recordings of, where nothing says it yet. Any number of processes may do so at once.

    Raises:
        ConfigError: it has recordings of something else.
        OSError: it cannot be written.
    """
    path = os.path.join(folder, ABOUT)
    os.makedirs(folder, exist_ok=True)
    text = json.dumps({VERSION: 1, **about}, indent=2)
    made = os.path.join(folder, f".{ABOUT}.{os.getpid()}")
    try:
        with open(made, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileExistsError):
            os.link(made, path)
    finally:
        with suppress(FileNotFoundError):
            os.unlink(made)
    there = read_json(path)
    for name, value in json.loads(text).items():
        if there.get(name) != value:
            says = f"{folder}: it has recordings with `{name}` {there.get(name)!r:.200}; these have {value!r:.200}"
            raise ConfigError(f"{says}: choose another folder", field="out")


def files_of_recorded(folder: str) -> list[str]:
    """The files of a folder in order; what killed processes left is put in place first.

    Raises:
        OSError: it cannot be read, or what was left not be put in place.
        FormatError: nothing is recorded, or what says of what is damaged.
    """
    about = about_of(folder)
    names = os.listdir(folder)
    if any(name.startswith(f".{_FIRST}") for name in names):
        # Who may not write here reads the files that are in place.
        if os.access(folder, os.W_OK):
            _gristmill.GameWriter(folder, str(about.get("schema")), 1).finish()
        names = os.listdir(folder)
    files = sorted(name for name in names if name.startswith(_FIRST) and name.endswith(_ENDING))
    if not files:
        raise fault(folder, "empty", "no recorded episodes; files appear by `flush`, `close`, or at their size")
    return [os.path.join(folder, name) for name in files]


def about_of(folder: str) -> dict[str, Any]:
    """What the recordings of a folder are of.

    Raises:
        OSError: it cannot be read.
        FormatError: it is no JSON, or of another version.
    """
    path = os.path.join(folder, ABOUT)
    found = read_json(path)
    if found.get(VERSION) != 1:
        raise fault(path, "unknown_version", f"`{VERSION}` is {found.get(VERSION)!r}; expected 1")
    return found


def of_recorded(path: str, max_bytes: int) -> Iterator[Table]:
    """The tables of a file: each game is an episode, whose last row has an observation alone.

    Raises:
        FormatError: the file is cut or damaged; it says where.
        OSError: it cannot be read.
    """
    source = open_any(path, expect=Source)
    dtype, size = source.layout.dtype, os.path.getsize(path)
    with open(path, "rb") as file:
        whole = _HEAD + int.from_bytes(file.read(12)[8:], "little")
    whole += sum(_ENTRY + source.frames(i) * dtype.itemsize for i in range(len(source)))
    if whole != size:
        raise fault(path, "truncated", f"{size} bytes; its {len(source)} whole episodes have {whole}")
    for i in range(len(source)):
        if source.frames(i) * dtype.itemsize > max_bytes:
            raise fault(path, "too_large", f"episode {i} has {source.frames(i)} steps; the bound is {max_bytes} bytes")
        yield _table(f"{path}: episode {i}", source[i])


def _table(place: str, rows: npt.NDArray[Any]) -> Table:
    def read(name: str) -> npt.NDArray[Any]:
        values: npt.NDArray[Any] = rows[name]
        return values if name.split(".")[0] == _OBSERVED else values[:-1]

    return Table(place, list(rows.dtype.names or ()), read, True)
