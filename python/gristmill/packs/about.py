"""What a pack is, gathered for documents about it: counts, files with their hashes, columns, how it came to be."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from gristmill.packs.arrow import FRAME, declared_type, named_columns
from gristmill.packs.packed import LineageStep
from gristmill.packs.rows import Rows
from gristmill.packs.selection import Selection

#: The documents, and the tables that they may have beside them.
CROISSANT, CARD = "croissant.json", "README.md"
FRAMES, GAMES = "frames.parquet", "games.parquet"

#: Files beside rows of 2048 that are no rows.
_BESIDE = ("values", "embeddings")

#: What the frames of a pack are, and what they are grouped by, for people.
_OF = {
    "chess": ("positions of chess", "games"),
    "demo": ("steps", "demonstrations"),
    "binpack": ("positions of chess", "chains"),
    "bullet": ("boards of chess", "blocks"),
    "2048": ("positions of 2048", "games"),
}


@dataclass(frozen=True)
class Words:
    """What people say of a data set, and no file of it does."""

    name: str | None = None
    description: str | None = None
    #: An SPDX id, such as `CC0-1.0`, or a URL.
    license: str | None = None
    creators: Sequence[str] = ()
    url: str | None = None
    #: BibTeX, or any text.
    citation: str | None = None
    version: str | None = None
    #: As `2026-11-24`.
    published: str | None = None


@dataclass(frozen=True)
class StoredFile:
    """A file of a data set: its name below the folder, its bytes, and their hash."""

    name: str
    size: int
    sha256: str


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, and what a value is: the dtype of a number, with its shape, or of bytes."""

    name: str
    dtype: np.dtype[np.generic]


@dataclass(frozen=True)
class About:
    """A pack, as documents tell of it."""

    words: Words
    name: str
    #: `chess`, `demo`, `bullet`, `2048`.
    kind: str
    #: What frames are, and what they are grouped by, in words.
    of: tuple[str, str]
    frames: int
    games: int
    files: list[StoredFile]
    frame_columns: list[Column]
    game_columns: list[Column]
    lineage: list[LineageStep] = field(default_factory=list)

    @property
    def has_tables(self) -> bool:
        """Whether frames and games lie beside the pack as Parquet."""
        return any(file.name == FRAMES for file in self.files)

    @property
    def data_files(self) -> list[str]:
        """The files that hold the frames."""
        names = [file.name for file in self.files]
        return [
            name
            for name in names
            if name.endswith(".chunks") or (name.endswith(".npy") and not name.startswith(_BESIDE))
        ]


def about(
    pack: Selection,
    words: Words,
    folders: Sequence[str],
    progress: Callable[[int, int], object] | None = None,
) -> About:
    """What is known of a pack.

    Args:
        pack: all of it.
        words: what people say of it.
        folders: where its files lie, and tables beside them; a name is of the last folder that has it.
        progress: called with files that were hashed, and all of them.

    Raises:
        OSError: a file cannot be read.
    """
    paths: dict[str, str] = {}
    for folder in folders:
        paths |= _files(folder)
    found = []
    for number, (name, path) in enumerate(sorted(paths.items()), 1):
        with open(path, "rb") as file:
            found.append(
                StoredFile(name, os.fstat(file.fileno()).st_size, hashlib.file_digest(file, "sha256").hexdigest())
            )
        if progress is not None:
            progress(number, len(paths))
    facts, fields = named_columns(pack)
    dtype = pack.layout.dtype
    kind = "2048" if isinstance(pack, Rows) else str(getattr(pack, "kind", ""))
    return About(
        words=words,
        name=words.name or os.path.basename(os.path.abspath(pack.path)),
        kind=kind,
        of=_OF.get(kind, ("frames", "games")),
        frames=pack.num_frames,
        games=pack.num_games,
        files=found,
        frame_columns=[
            Column(FRAME, np.dtype("<i8")),
            *(Column(name, _dtype(declared)) for name, declared in facts),
            *(Column(name, dtype[field]) for name, field in fields.items()),
        ],
        game_columns=[Column(name, _dtype(declared)) for name, declared, _ in pack._compiled.facts([])],
        lineage=pack.lineage,
    )


def _files(folder: str) -> dict[str, str]:
    """The files in a folder and in those in it, by name; hidden ones and these documents left out."""
    found = {}
    for at, below, names in os.walk(folder):
        below[:] = [name for name in below if not name.startswith(".")]
        for name in names:
            path = os.path.join(at, name)
            inside = os.path.relpath(path, folder)
            if not name.startswith(".") and inside not in (CROISSANT, CARD):
                found[inside] = path
    return found


def _dtype(declared: str) -> np.dtype[np.generic]:
    """What a column of the database holds; text and bytes have no length."""
    return np.dtype({"int64": "<i8", "float64": "<f8", "string": "U", "binary": "S"}[declared_type(declared)])
