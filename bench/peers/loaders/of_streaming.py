"""MosaicML's streaming: MDS shards."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from streaming import MDSWriter, StreamingDataLoader, StreamingDataset
from streaming.base.util import clean_stale_shared_memory

from loaders.records import joined, stored


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes shards of 64 MiB for each packing: uncompressed or by zstd."""
    for name in packings:
        packing = {"raw": None, "zstd": "zstd:3"}[name]
        shutil.rmtree(folder / name, ignore_errors=True)
        with MDSWriter(out=str(folder / name), columns={"x": "bytes"}, size_limit=1 << 26, compression=packing) as sink:
            for row in stored(data):
                sink.write({"x": row.tobytes()})


def batches(
    work: str, data: Path, folder: Path, batch: int, packing: str = "raw", workers: int = 0, **places: Any
) -> Iterator[Any]:
    """Yields batches of a loader that shuffles, one pass after another."""
    clean_stale_shared_memory()
    if not places:
        places = {"local": str(folder / packing)}
    rows = StreamingDataset(shuffle=True, batch_size=batch, **places)

    def collate(found: list[Any]) -> Any:
        return joined(work, [row["x"] for row in found])

    loader = StreamingDataLoader(rows, batch_size=batch, num_workers=workers, collate_fn=collate, drop_last=True)
    while True:
        yield from loader
