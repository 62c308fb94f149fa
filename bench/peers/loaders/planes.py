"""Decodes a game of chess by NumPy to the tensors that gristmill makes of it (docs/format/chess.md, input format 1)."""

import gzip
from typing import Any

import numpy as np

#: Bytes of a record of version 6.
RECORD = 8356
#: Indices of q, d and m of result, best, played, original and root, among the floats from byte 8280 on.
VALUES = [[7, 8, 6], [1, 3, 5], [9, 10, 11], [12, 13, 14], [0, 2, 4]]


def tensors(stored: bytes) -> tuple[Any, Any, Any]:
    """Returns `planes` (n, 112, 8, 8), `probs` (n, 1858) and `values` (n, 6, 3), all f32, of a gzipped game."""
    rows = np.frombuffer(gzip.decompress(stored), np.uint8).reshape(-1, RECORD)
    planes = np.empty((len(rows), 112, 64), np.float32)
    planes[:, :104] = np.unpackbits(np.ascontiguousarray(rows[:, 7440:8272]), axis=1).reshape(-1, 104, 64)
    planes[:, 104:109] = rows[:, 8272:8277, None]
    planes[:, 109] = rows[:, 8277, None] / np.float32(99)
    planes[:, 110], planes[:, 111] = 0, 1
    floats = np.ascontiguousarray(rows[:, 8280:8340]).view(np.float32)
    values = np.full((len(rows), 6, 3), np.nan, np.float32)
    values[:, :5] = floats[:, VALUES]
    values[:, 5, :2] = np.ascontiguousarray(rows[:, 8352:8356]).view(np.float32)
    probs = np.ascontiguousarray(rows[:, 8:7440]).view(np.float32)
    return planes.reshape(-1, 112, 8, 8), probs, values


def rows_of_game(sample: dict[str, Any]) -> list[tuple[Any, Any, Any]]:
    """Returns the rows of a game as webdataset gives it. The member may have any name."""
    found = next(value for name, value in sample.items() if not name.startswith("__"))
    return list(zip(*tensors(found), strict=True))
