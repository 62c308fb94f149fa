"""bagz: one file, records by lists of numbers."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import bagz

from loaders.records import joined, shuffled, stored

#: Its name says how a file is packed.
FILES = {"raw": "raw.bag", "zstd": "zstd.bagz"}


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """As they are (`.bag`), and with zstd (`.bagz`)."""
    for packing in packings:
        with bagz.Writer(str(folder / FILES[packing])) as writer:
            for row in stored(data):
                writer.write(row.tobytes())


def batches(work: str, data: Path, folder: Path, batch: int, packing: str = "raw") -> Iterator[Any]:
    """Records of a random permutation."""
    reader = bagz.Reader(str(folder / FILES[packing]))
    for numbers in shuffled(len(reader), batch):
        yield joined(work, reader.read_indices(numbers))
