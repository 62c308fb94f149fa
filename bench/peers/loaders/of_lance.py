"""Lance: a table with a column of fixed size. The loader takes rows by number."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow

from loaders.records import named, shuffled, stored


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes a table of one column."""
    rows = stored(data)
    kind = pyarrow.binary(rows.shape[1])
    schema = pyarrow.schema({"x": kind})

    def parts() -> Any:
        for begin in range(0, len(rows), 4096):
            part = np.ascontiguousarray(rows[begin : begin + 4096])
            column = pyarrow.FixedSizeBinaryArray.from_buffers(kind, len(part), [None, pyarrow.py_buffer(part)])
            yield pyarrow.record_batch([column], schema=schema)

    shutil.rmtree(folder / "table", ignore_errors=True)
    lance.write_dataset(parts(), str(folder / "table"), schema=schema)


def batches(work: str, data: Path, folder: Path, batch: int, place: str = "", **options: Any) -> Iterator[Any]:
    """Yields batches of a random permutation of the rows."""
    table = lance.dataset(place or str(folder / "table"), **options)
    for numbers in shuffled(table.count_rows(), batch):
        column = table.take(numbers)["x"].combine_chunks()
        column = column.chunk(0) if isinstance(column, pyarrow.ChunkedArray) else column
        found = np.frombuffer(column.buffers()[1], np.uint8)[column.offset * column.type.byte_width :]
        yield named(work, found[: len(numbers) * column.type.byte_width].reshape(len(numbers), -1))
