"""Runs one loader over a bucket in this process, for a number of rows or a time. The consumer may take a step a batch.

It runs in the environment of its peer, like `worker.py`, and prints one line of JSON.
"""

import importlib
import json
import os
import sys
import time
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from worker import rows_of


def main() -> None:
    """Takes batches, measures them and prints the figures."""
    job = json.loads(sys.argv[1])
    loader = importlib.import_module(f"loaders.{job['module']}")
    nowhere = Path(job["folder"])
    began = time.perf_counter()
    batches = loader.batches(job["work"], nowhere, nowhere, job["batch"], **job["options"])
    first, rows, since, late, waited = 0.0, 0, 0.0, 0, 0.0
    seen = 0
    while rows < job["rows"] and time.perf_counter() - began < job["seconds"]:
        asked = time.perf_counter()
        batch: dict[str, Any] = next(batches)
        now = time.perf_counter()
        first = first or now - began
        rows += rows_of(batch)
        if job["check"]:
            for array in batch.values():
                seen = zlib.crc32(np.ascontiguousarray(array).data, seen)
        if since:
            late += rows_of(batch)
            waited += now - asked
        elif now - began > first + 1:
            since = now
        if job["step"]:
            time.sleep(job["step"])
    spent = time.perf_counter() - since if since else 0.0
    found = {
        "rows": rows,
        "seconds": time.perf_counter() - began,
        "first_batch_s": first,
        "rows_per_second": late / spent if spent else 0.0,
        "waited": waited / spent if spent else 0.0,
        "checksum": seen,
    }
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()
    # A loader whose workers still live would keep the process alive.
    os._exit(0)


if __name__ == "__main__":
    main()
