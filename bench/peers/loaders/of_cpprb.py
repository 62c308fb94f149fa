"""cpprb: a replay buffer in memory. The loader fills it before the first batch, then draws rows with repeats."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cpprb

from loaders.records import named, stored


def batches(work: str, data: Path, folder: Path, batch: int) -> Iterator[Any]:
    """Fills a buffer with every row, and yields samples of it."""
    rows = stored(data)
    buffer = cpprb.ReplayBuffer(len(rows), {"row": {"shape": rows.shape[1], "dtype": "u1"}})
    for begin in range(0, len(rows), 4096):
        buffer.add(row=rows[begin : begin + 4096])
    while True:
        yield named(work, buffer.sample(batch)["row"])
