"""Runs one loader in this process: first batch, windows of time, then batches until the bench kills the process.

It runs in the environment of its peer. Its argument is one line of JSON. It prints its figures as one line of JSON.
"""

import importlib
import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import processes


def rows_of(batch: dict[str, Any]) -> int:
    """Returns the number of rows of a batch: the length of any of its arrays."""
    return len(next(iter(batch.values())))


def check(batch: dict[str, Any], data: Path) -> None:
    """Compares a batch of rows or steps with the data that it was made of. Does not check other batches.

    Raises:
        ValueError: a row differs from the data, or the rows come in their stored order.
    """
    arrays = {name: np.asarray(array) for name, array in batch.items()}
    if "row" in arrays:
        rows = arrays["row"]
        numbers = np.ascontiguousarray(rows[:, -8:]).view(np.int64)[:, 0]
        same = np.array_equal(np.load(data / "records.npy", mmap_mode="r")[numbers], rows)
    elif "obs" in arrays:
        numbers = arrays["acts"]
        same = np.array_equal(np.load(data / "pictures.npy", mmap_mode="r")[numbers], arrays["obs"])
    else:
        return
    if not same:
        raise ValueError("rows are not as they were written")
    if (np.diff(numbers) == 1).all():
        raise ValueError("rows come in the order in which they lie")


def window(batches: Iterator[dict[str, Any]], seconds: float) -> tuple[float, float]:
    """Takes batches for some `seconds`. Returns rows a second, and CPU microseconds a row of the tree of processes."""
    mine, rows = os.getpid(), 0
    spent, began = processes.cpu_seconds(processes.tree(mine)), time.perf_counter()
    while time.perf_counter() < began + seconds:
        rows += rows_of(next(batches))
    took = time.perf_counter() - began
    spent = processes.cpu_seconds(processes.tree(mine)) - spent
    return rows / took, spent / rows * 1e6


def main() -> None:
    """Measures, prints the figures, and takes batches until it is killed. Writes the form only, if the job says so."""
    job = json.loads(sys.argv[1])
    began = time.perf_counter()
    loader = importlib.import_module(f"loaders.{job['module']}")
    data, folder = Path(job["data"]), Path(job["folder"])
    if job["write"]:
        if hasattr(loader, "write"):
            loader.write(job["work"], data, folder, job["packings"])
        return
    batches = loader.batches(job["work"], data, folder, job["batch"], **job["options"])
    first = next(batches)
    first_batch = time.perf_counter() - began
    check(first, data)
    del first
    end = time.perf_counter() + job["warm"]
    while time.perf_counter() < end:
        next(batches)
    speeds = [window(batches, job["seconds"]) for _ in range(job["windows"])]
    members = processes.tree(os.getpid())
    memory = processes.memory(members)
    found = {
        "rows_per_second": max(speed for speed, _ in speeds),
        "cpu_us_per_row": min(cost for _, cost in speeds),
        "first_batch_s": first_batch,
        "memory_bytes": memory["own"],
        "mapped_bytes": memory["files"],
        "processes": len(members),
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    for _ in itertools.count():
        next(batches)


if __name__ == "__main__":
    main()
