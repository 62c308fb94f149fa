"""bagz: one file. The loader reads records by lists of numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bagz

from loaders.records import joined, shuffled, stored

#: Names of the files. bagz packs a file as the suffix says.
FILES = {"raw": "raw.bag", "zstd": "zstd.bagz"}


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes the records uncompressed (`.bag`) and packed by zstd (`.bagz`)."""
    for packing in packings:
        with bagz.Writer(str(folder / FILES[packing])) as writer:
            for row in stored(data):
                writer.write(row.tobytes())


def batches(work: str, data: Path, folder: Path, batch: int, packing: str = "raw") -> Iterator[Any]:
    """Yields batches of a random permutation of the records."""
    reader = bagz.Reader(str(folder / FILES[packing]))
    for numbers in shuffled(len(reader), batch):
        yield joined(work, reader.read_indices(numbers))
