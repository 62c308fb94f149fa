"""Hugging Face's datasets: an Arrow table by number and as an iterable; tar shards through its webdataset builder."""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow

from loaders.records import joined, shuffled, stored

datasets.disable_progress_bars()


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes an Arrow table of one column of bytes. Tar shards exist already."""
    if work not in ("rows", "steps"):
        return
    rows = stored(data)
    parts = (rows[i : i + 4096] for i in range(0, len(rows), 4096))
    tables = [pyarrow.table({"x": pyarrow.array([row.tobytes() for row in part], pyarrow.binary())}) for part in parts]
    datasets.Dataset(pyarrow.concat_tables(tables)).save_to_disk(str(folder / "table"))


def batches(work: str, data: Path, folder: Path, batch: int, form: str) -> Iterator[Any]:
    """Yields batches of `form` for ever."""
    if form == "by number":
        table = datasets.load_from_disk(str(folder / "table"))
        for numbers in shuffled(len(table), batch):
            yield joined(work, table[numbers]["x"])
    if form == "iterable":
        table = datasets.load_from_disk(str(folder / "table"))
        rows: Any = table.to_iterable_dataset(num_shards=16).shuffle(seed=1, buffer_size=8192)
        while True:
            for found in rows.iter(batch, drop_last_batch=True):
                yield joined(work, found["x"])
    files = sorted(map(str, (data / "shards").iterdir()))
    shards: Any = datasets.load_dataset("webdataset", data_files=files, split="train", streaming=True)
    steps = shards.shuffle(seed=1, buffer_size=1000)
    while True:
        for found in steps.iter(batch, drop_last_batch=True):
            yield {name: np.stack([loaded(value) for value in found[f"{name}.npy"]]) for name in ("obs", "acts")}


def loaded(value: Any) -> Any:
    """Returns an array. Newer versions of the package decode it themselves; of older ones it comes as bytes."""
    return np.load(io.BytesIO(value)) if isinstance(value, bytes) else np.asarray(value)
