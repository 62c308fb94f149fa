"""Shards of training rows as KataGo writes them, with positions that can be, and their images in NumPy alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

#: Members of a shard: arrays with a row for each position.
Members = dict[str, npt.NDArray[Any]]


def members(rows: int, seed: int = 0, *, edge: int = 19, board: int | None = None, targets: int = 64) -> Members:
    """Rows with boards of `board` x `board` points (by default of 9 or the whole frame) in frames of `edge` x `edge`.

    `globalInputNC[:, 0]` numbers the rows from 1000 times the seed, so that each is known again in any batch.
    """
    rng = np.random.default_rng(seed)
    planes = rng.integers(0, 2, (rows, 22, edge, edge), np.uint8)
    stones = rng.integers(0, 3, (rows, edge, edge))
    planes[:, 1], planes[:, 2] = stones == 1, stones == 2
    visits = rng.integers(0, 200, (rows, 2, edge * edge + 1)) * rng.integers(0, 2, (rows, 2, edge * edge + 1))
    values = rng.integers(-120, 121, (rows, 5, edge, edge))
    for row in range(rows):
        size = board or (edge if row % 3 else min(9, edge))
        on = np.zeros((edge, edge), np.uint8)
        on[:size, :size] = 1
        planes[row] *= on
        planes[row, 0] = on
        visits[row, :, :-1] *= on.reshape(-1)
        values[row] *= on
    visits[rows // 2 : rows // 2 + 1, 1] = 0
    inputs = rng.standard_normal((rows, 19)).astype(np.float32)
    inputs[:, 0] = 1000 * seed + np.arange(rows)
    return {
        "binaryInputNCHWPacked": np.packbits(planes.reshape(rows, 22, edge * edge), axis=2),
        "globalInputNC": inputs,
        "policyTargetsNCMove": visits.astype(np.int16),
        "globalTargetsNC": rng.standard_normal((rows, targets)).astype(np.float32),
        "scoreDistrN": rng.integers(0, 101, (rows, 2 * (edge * edge + 60))).astype(np.int8),
        "valueTargetsNCHW": values.astype(np.int8),
    }


def write_shard(path: Path, arrays: Members) -> None:
    """A compressed shard of these members."""
    named: dict[str, Any] = dict(arrays)
    np.savez_compressed(path, **named)


def write_shards(folder: Path, rows: list[int], **kwargs: Any) -> list[Members]:
    """A shard of each of these lengths, called `data0.npz` and so on, and what is in them."""
    folder.mkdir(parents=True, exist_ok=True)
    made = [members(count, seed, **kwargs) for seed, count in enumerate(rows)]
    for i, arrays in enumerate(made):
        write_shard(folder / f"data{i}.npz", arrays)
    return made


def joined(made: list[Members]) -> Members:
    """The rows of several shards, one after another."""
    return {name: np.concatenate([arrays[name] for arrays in made]) for name in made[0]}


def image(points: npt.NDArray[Any], symmetry: int) -> npt.NDArray[Any]:
    """Planes of one row in an image, step by step as the page says."""
    points = points[..., ::-1, :] if symmetry & 1 else points
    points = points[..., ::-1] if symmetry & 2 else points
    return points.swapaxes(-1, -2) if symmetry & 4 else points


def expected(arrays: Members, row: int, symmetry: int) -> Members:
    """All tensors of one row in an image."""
    edge = arrays["valueTargetsNCHW"].shape[-1]
    bits = np.unpackbits(arrays["binaryInputNCHWPacked"][row], axis=1)[:, : edge * edge].reshape(-1, edge, edge)
    planes = image(bits, symmetry)
    visits = arrays["policyTargetsNCMove"][row]
    moves = image(visits[:, :-1].reshape(-1, edge, edge), symmetry).reshape(len(visits), -1)
    visits = np.concatenate([moves, visits[:, -1:]], axis=1)
    sums = np.maximum(visits.astype(np.int64).sum(axis=1, keepdims=True), 1)
    values = image(arrays["valueTargetsNCHW"][row], symmetry)
    return {
        "binaryInputNCHWPacked": np.packbits(planes.reshape(len(planes), -1), axis=1),
        "globalInputNC": arrays["globalInputNC"][row],
        "policyTargetsNCMove": visits,
        "globalTargetsNC": arrays["globalTargetsNC"][row],
        "scoreDistrN": arrays["scoreDistrN"][row],
        "valueTargetsNCHW": values,
        "planes": planes.astype(np.float32),
        "policy": visits.astype(np.float32) / sums.astype(np.float32),
        "values": values.astype(np.float32),
        "symmetry": np.uint8(symmetry),
    }
