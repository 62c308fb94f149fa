"""One loader in a process of its own: first batch, windows of time, then batches until the process is killed.

Runs in the environment of its peer; the arguments are one line of JSON. Prints one line of JSON, the measurement.
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
    """Rows of a batch: the length of any of its arrays."""
    return len(next(iter(batch.values())))


def check(batch: dict[str, Any], data: Path) -> None:
    """Holds a batch against the data that it was made of.

    Raises:
        ValueError: a row is not as it was written, or rows come in the order in which they lie.
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
    """Rows a second, and microseconds of CPU for a row, of the whole tree of processes, in one window of time."""
    mine, rows = os.getpid(), 0
    spent, began = processes.cpu_seconds(processes.tree(mine)), time.perf_counter()
    while time.perf_counter() < began + seconds:
        rows += rows_of(next(batches))
    took = time.perf_counter() - began
    spent = processes.cpu_seconds(processes.tree(mine)) - spent
    return rows / took, spent / rows * 1e6


def main() -> None:
    """Measures, prints, and goes on."""
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
