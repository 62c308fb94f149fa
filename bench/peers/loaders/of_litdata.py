"""LitData: chunks of 64 MB, as `optimize` writes them."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import litdata
from litdata.streaming import Cache, downloader

from loaders.records import joined, stored


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes the chunks of each packing."""
    for name in packings:
        shutil.rmtree(folder / name, ignore_errors=True)
        cache = Cache(str(folder / name), chunk_bytes=64 << 20, compression=None if name == "raw" else name)
        for i, row in enumerate(stored(data)):
            cache[i] = row.tobytes()
        cache.done()
        cache.merge()


def batches(
    work: str, data: Path, folder: Path, batch: int, packing: str = "raw", workers: int = 0, **options: Any
) -> Iterator[Any]:
    """Yields batches of a loader that shuffles, one pass after another."""
    place = options.pop("place", str(folder / packing))
    # LitData fetches by obstore where it is installed, without an option to allow http, and by boto3 else.
    downloader._OBSTORE_AVAILABLE = False
    rows = litdata.StreamingDataset(place, shuffle=True, drop_last=True, **options)

    def collate(found: list[Any]) -> Any:
        return joined(work, found)

    loader = litdata.StreamingDataLoader(rows, batch_size=batch, num_workers=workers, collate_fn=collate)
    while True:
        yield from loader
