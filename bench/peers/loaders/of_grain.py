"""Grain over ArrayRecord, and the reader of ArrayRecord without Grain."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from array_record.python import array_record_module

from loaders.records import joined, named, shuffled, stored


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes one file for each packing. A group has one record, as random access needs it."""
    for name in packings:
        options = f"group_size:1,{'uncompressed' if name == 'raw' else name}"
        writer = array_record_module.ArrayRecordWriter(str(folder / f"{name}.array_record"), options)
        for row in stored(data):
            writer.write(row.tobytes())
        writer.close()


def batches(
    work: str, data: Path, folder: Path, batch: int, packing: str = "raw", alone: bool = False, workers: int = 0
) -> Iterator[Any]:
    """Yields batches of a shuffled `MapDataset`, or if `alone` of the reader by lists of numbers."""
    path = str(folder / f"{packing}.array_record")
    if alone:
        reader = array_record_module.ArrayRecordReader(path, "readahead_buffer_size:0,max_parallelism:0")
        for numbers in shuffled(reader.num_records(), batch):
            yield joined(work, reader.read(numbers.tolist()))
    import grain

    source = grain.sources.ArrayRecordDataSource([path])
    rows = grain.MapDataset.source(source).shuffle(seed=1).map(lambda row: np.frombuffer(row, np.uint8))
    found = rows.repeat(None).batch(batch).to_iter_dataset(grain.ReadOptions(num_threads=4, prefetch_buffer_size=8))
    if workers:
        found = found.mp_prefetch(grain.MultiprocessingOptions(num_workers=workers))
    for row in found:
        yield named(work, row)
