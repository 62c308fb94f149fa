"""Records of fixed size, as peers that store bytes see them: rows of 48 bytes, or pictures and numbers of steps."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

PICTURE = (3, 64, 64)
SIZE = 3 * 64 * 64


def stored(data: Path) -> np.ndarray[Any, Any]:
    """All records, mapped: (n, bytes of a record), u8."""
    return np.load(data / "records.npy", mmap_mode="r")


def named(work: str, rows: np.ndarray[Any, Any]) -> dict[str, Any]:
    """A batch of records (n, bytes of one), u8, as arrays by name; views, where the work is rows."""
    if work == "rows":
        return {"row": rows}
    return {
        "obs": rows[:, :SIZE].reshape(-1, *PICTURE),
        "acts": np.ascontiguousarray(rows[:, SIZE:]).view(np.int64)[:, 0],
    }


def joined(work: str, found: Sequence[bytes]) -> dict[str, Any]:
    """The same of records that come as `bytes`."""
    return named(work, np.frombuffer(b"".join(found), np.uint8).reshape(len(found), -1))


def shuffled(count: int, batch: int, seed: int = 1) -> Iterator[Any]:
    """Numbers of rows, batch by batch, in a new random order in each pass; for ever."""
    rng = np.random.default_rng(seed)
    while True:
        order = rng.permutation(count)
        for begin in range(0, count - batch + 1, batch):
            yield order[begin : begin + batch]
