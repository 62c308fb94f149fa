"""Records of fixed size for peers that store bytes: rows of 48 bytes, or pictures and numbers of steps."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PICTURE = (3, 64, 64)
SIZE = 3 * 64 * 64


def stored(data: Path) -> np.ndarray[Any, Any]:
    """Maps all records. Returns an array (n, bytes of a record), u8."""
    return np.load(data / "records.npy", mmap_mode="r")


def named(work: str, rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    """Returns a batch of records (n, bytes of a record), u8, as arrays by name. Rows stay a view of `rows`."""
    if work == "rows":
        return {"row": rows}
    return {
        "obs": rows[:, :SIZE].reshape(-1, *PICTURE),
        "acts": np.ascontiguousarray(rows[:, SIZE:]).view(np.int64)[:, 0],
    }


def joined(work: str, found: Sequence[bytes]) -> dict[str, Any]:
    """Returns a batch of records as arrays by name, as `named` does. The records are `bytes`."""
    return named(work, np.frombuffer(b"".join(found), np.uint8).reshape(len(found), -1))


def shuffled(count: int, batch: int, seed: int = 1) -> Iterator[Any]:
    """Yields the numbers of rows for ever, batch by batch, in a new random order in each pass."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(count)
        for begin in range(0, count - batch + 1, batch):
            yield order[begin : begin + batch]
