"""`Rows.take` of 1024 random rows of 2 million in memory beside NumPy and PyTorch on the same array, by turns.

    python scripts/bench_take.py [ROWS]

CPU time of the thread, so that other programs do not count; the best of the turns. Without PyTorch the script leaves
its part out and says so. A ratio above 1 says that the peer takes longer.
"""

import importlib.util
import sqlite3
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm

TAKEN, CALLS, TURNS, RUN = 1024, 400, 40, 1000

ROW = np.dtype(
    [
        ("run_id", "<u4"),
        ("step_index", "<u4"),
        ("board", "<u8"),
        ("board_eval", "<i4"),
        ("tile_65536_mask", "<u2"),
        ("move_dir", "u1"),
        ("valuation_type", "u1"),
        ("ev_legal", "u1"),
        ("max_rank", "u1"),
        ("seed", "<u4"),
        ("branch_evs", "<f4", (4,)),
    ],
    align=True,
)


def made(folder: Path, count: int) -> np.ndarray[Any, Any]:
    """Writes a pack of `count` rows; gives the rows."""
    rows = np.zeros(count, ROW)
    rows["run_id"], rows["step_index"] = np.arange(count) // RUN, np.arange(count) % RUN
    rows["board"] = np.random.default_rng(1).integers(0, 1 << 62, count)
    folder.mkdir()
    np.save(folder / "steps.npy", rows)
    (folder / "valuation_types.json").write_text('{"search": 0}')
    db = sqlite3.connect(folder / "metadata.db")
    db.execute("CREATE TABLE runs(id INTEGER PRIMARY KEY, steps INT, max_score INT, highest_tile INT)")
    lengths = np.bincount(rows["run_id"])
    db.executemany("INSERT INTO runs VALUES(?, ?, 0, 2048)", [(i, int(n)) for i, n in enumerate(lengths)])
    db.commit()
    db.close()
    return rows


def best(calls: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Microseconds of each call, in turns."""
    found: dict[str, float] = {}
    for _ in range(TURNS):
        for name, call in calls.items():
            call()
            began = time.thread_time()
            for _ in range(CALLS):
                call()
            took = (time.thread_time() - began) / CALLS * 1e6
            found[name] = min(took, found.get(name, took))
    return found


def main() -> None:
    """Prints what each takes, and how many times that is what `Rows.take` takes with checksums and without."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "pack"
        rows = made(folder, count)
        plain = gm.open(folder, memory=True)
        gm.checksum(folder)
        checked = gm.open(folder, memory=True)
        places = np.random.default_rng(2).integers(0, count, TAKEN)
        # What is measured is not the first touch, which holds each block against its checksum once.
        checked.take(np.arange(count))
        out = np.empty(TAKEN, ROW)
        calls: dict[str, Callable[[], Any]] = {
            "Rows.take": lambda: plain.take(places),
            "Rows.take, checksums": lambda: checked.take(places),
            "np.take": lambda: np.take(rows, places),
            "np.take(out=)": lambda: np.take(rows, places, out=out),
            'np.take(out=, mode="clip")': lambda: np.take(rows, places, out=out, mode="clip"),
        }
        if importlib.util.find_spec("torch"):
            import torch

            torch.set_num_threads(1)
            table = torch.from_numpy(rows.view(np.uint8).reshape(count, ROW.itemsize))
            numbers = torch.from_numpy(places)
            kept = torch.empty((TAKEN, ROW.itemsize), dtype=torch.uint8)
            calls["index_select"] = lambda: torch.index_select(table, 0, numbers)
            calls["index_select(out=)"] = lambda: torch.index_select(table, 0, numbers, out=kept)
        else:
            sys.stdout.write("skipped: torch is not installed\n")
        found = best(calls)
    for name, took in found.items():
        ratios = " ".join(f"{took / found[own]:6.2f}" for own in ("Rows.take", "Rows.take, checksums"))
        sys.stdout.write(f"{name:28} {took:8.1f} us  {ratios} of Rows.take without and with checksums\n")


if __name__ == "__main__":
    main()
