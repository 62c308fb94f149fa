"""Rows of KataGo a second, beside a shuffle of shards in NumPy: `python bench/katago.py [--rows 40000] [--folder DIR]`.

Makes shards, then does three things with the same rows, and prints rows for each second of CPU and of the clock:

- in NumPy: an exact uniform shuffle by two passes over compressed files. Each shard is read and each of its rows dealt
  to one of several buckets at random; then each bucket is put together, permuted and written as a shard. A trainer that
  reads the shuffled shards is measured as well: bits unpacked, one symmetry for each batch.
- here, once: `gristmill.pack`.
- here, each epoch: batches in exact uniform order, a symmetry for each row; of bits, and of planes as float32.
"""

import argparse
import resource
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm

BATCH = 256
EDGE = 19


def shard(rows: int, seed: int) -> dict[str, Any]:
    """Rows that compress a little better than those of self-play: 726 bytes each, where 102 400 of those took 88 MB."""
    rng = np.random.default_rng(seed)
    planes = np.zeros((rows, 22, EDGE, EDGE), np.uint8)
    planes[:, 0] = 1
    stones = rng.integers(0, 3, (rows, EDGE, EDGE), np.uint8) * (rng.random((rows, EDGE, EDGE)) < 0.5)
    planes[:, 1], planes[:, 2] = stones == 1, stones == 2
    planes[:, 3:6] = (rng.integers(1, 4, (rows, 1, EDGE, EDGE)) == np.arange(1, 4)[:, None, None]) & (stones > 0)[
        :, None
    ]
    planes[:, 9:18] = rng.random((rows, 9, EDGE, EDGE)) < 0.03
    visits = np.zeros((rows, 2, EDGE * EDGE + 1), np.int16)
    moves = rng.integers(0, EDGE * EDGE + 1, (rows, 2, 20))
    np.put_along_axis(visits, moves, rng.integers(1, 300, (rows, 2, 20)).astype(np.int16), axis=2)
    values = np.repeat(rng.integers(-1, 2, (rows, 5, EDGE, 1)), EDGE, axis=3).astype(np.int8)
    scores = np.zeros((rows, 842), np.int8)
    places = rng.integers(0, 800, (rows, 1)) + np.arange(40)
    np.put_along_axis(scores, places, rng.integers(0, 6, (rows, 40)).astype(np.int8), axis=1)
    return {
        "binaryInputNCHWPacked": np.packbits(planes.reshape(rows, 22, -1), axis=2),
        "globalInputNC": rng.integers(0, 2, (rows, 19)).astype(np.float32),
        "policyTargetsNCMove": visits,
        "globalTargetsNC": rng.standard_normal((rows, 64)).astype(np.float32),
        "scoreDistrN": scores,
        "valueTargetsNCHW": values,
    }


def shuffled(shards: list[Path], to: Path, buckets: int) -> None:
    """An exact uniform shuffle by two passes."""
    rng = np.random.default_rng(1)
    for i, path in enumerate(shards):
        with np.load(path) as file:
            arrays = dict(file)
        which = rng.integers(0, buckets, len(arrays["globalInputNC"]))
        for bucket in range(buckets):
            rows = np.flatnonzero(which == bucket)
            np.savez_compressed(to / f"part{bucket}-{i}.npz", **{name: array[rows] for name, array in arrays.items()})
    for bucket in range(buckets):
        parts: list[dict[str, Any]] = []
        for i in range(len(shards)):
            with np.load(to / f"part{bucket}-{i}.npz") as file:
                parts.append(dict(file))
        order = rng.permutation(sum(len(part["globalInputNC"]) for part in parts))
        whole = {name: np.concatenate([part[name] for part in parts])[order] for name in parts[0]}
        np.savez_compressed(to / f"data{bucket}.npz", **whole)


def read(folder: Path, buckets: int) -> Iterator[Any]:
    """Batches of shuffled shards, as a trainer takes them: float32 planes, one symmetry for each batch."""
    rng = np.random.default_rng(2)
    for bucket in range(buckets):
        with np.load(folder / f"data{bucket}.npz") as file:
            arrays = dict(file)
        for first in range(0, len(arrays["globalInputNC"]), BATCH):
            one = {name: array[first : first + BATCH] for name, array in arrays.items()}
            symmetry = int(rng.integers(8))
            bits = np.unpackbits(one["binaryInputNCHWPacked"], axis=2)[:, :, : EDGE * EDGE].reshape(-1, 22, EDGE, EDGE)
            planes = np.ascontiguousarray(turned(bits, symmetry)).astype(np.float32)
            visits = one["policyTargetsNCMove"].astype(np.float32)
            moves = turned(visits[:, :, :-1].reshape(-1, 2, EDGE, EDGE), symmetry).reshape(len(visits), 2, -1)
            visits = np.concatenate([moves, visits[:, :, -1:]], axis=2)
            values = np.ascontiguousarray(turned(one["valueTargetsNCHW"], symmetry)).astype(np.float32)
            yield planes, visits / np.maximum(visits.sum(axis=2, keepdims=True), 1), values


def turned(points: Any, symmetry: int) -> Any:
    """Planes in one of their eight images."""
    points = points[..., ::-1, :] if symmetry & 1 else points
    points = points[..., ::-1] if symmetry & 2 else points
    return points.swapaxes(-1, -2) if symmetry & 4 else points


def cpu() -> float:
    """Seconds of CPU that this process and its threads have used."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def measured(name: str, rows: int, work: Callable[[], None]) -> float:
    """Runs the work, prints its rates, and gives rows for each second of CPU."""
    start, before = time.perf_counter(), cpu()
    work()
    spent, wall = cpu() - before, time.perf_counter() - start
    print(f"{name:52} {rows / spent:10.0f} rows/CPU-s {rows / wall:10.0f} rows/s")
    return rows / spent


def main() -> None:
    """Makes shards in a folder, compares, and removes it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=40_000, help="rows in all")
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--folder", type=Path, help="where files are made; by default in the folder for temporary ones")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(dir=given.folder))
    try:
        compare(folder, given.rows // given.shards * given.shards, given.shards, given.threads)
    finally:
        shutil.rmtree(folder)


def compare(folder: Path, rows: int, count: int, threads: int) -> None:
    """Prints what each way takes, and the ratios."""
    (folder / "shards").mkdir()
    (folder / "shuffled").mkdir()
    shards = [folder / "shards" / f"data{i}.npz" for i in range(count)]
    for i, path in enumerate(shards):
        np.savez_compressed(path, **shard(rows // count, i))
    stored = sum(path.stat().st_size for path in shards)
    print(f"{rows} rows in {count} shards, {stored / rows:.0f} bytes a row; {threads} threads")

    numpy = measured("NumPy: shuffle of shards, each epoch", rows, lambda: shuffled(shards, folder / "shuffled", count))
    reading = measured(
        "NumPy: reading them, f32 planes", rows, lambda: [None for _ in read(folder / "shuffled", count)] and None
    )
    packing = measured(
        "here: pack, once", rows, lambda: gm.pack(folder / "shards", folder / "pack", workers=threads) and None
    )
    pack = gm.open(folder / "pack")
    rates = {}
    for name, planes in {"bits": "binaryInputNCHWPacked", "u8 planes": "planes:u8", "f32 planes": "planes"}.items():
        tensors = [planes, "globalInputNC", "policy", "globalTargetsNC", "scoreDistrN", "values", "symmetry"]

        def epoch(tensors: list[str] = tensors) -> None:
            loader = gm.DataLoader(
                pack, encoder=gm.Fields(tensors), batch_size=BATCH, seed=1, epochs=1, threads=threads
            )
            assert sum(len(batch["symmetry"]) for batch in loader) == rows

        epoch()
        rates[name] = measured(f"here: an epoch, {name}, a symmetry for each row", rows, epoch)
    both = 1 / (1 / numpy + 1 / reading)
    for name, rate in rates.items():
        first = 1 / (1 / rate + 1 / packing)
        print(f"{name}: {rate / numpy:.0f} times the shuffle, {rate / both:.0f} times shuffle and reading, ", end="")
        print(f"{first / both:.1f} times in the first epoch, with packing")


if __name__ == "__main__":
    main()
