"""A pack of 2048 rows in a bucket beside the same pack on disk: rows a second, bytes fetched, and time spent waiting.

    python scripts/bench_buckets.py SERVER [ROWS]

SERVER is the program `gristmill-faultserver`; each of its answers takes 50 ms and comes at 200 MB/s. Rows are shuffled
in blocks, as for a pack that is read for the first time, and then wholly, from what was kept. Ratios are of one run.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "made"))

from bench_take import made
from buckets import FaultServer

import gristmill as gm

BATCH = 1024


def fed(source: Any, shuffle: Any) -> tuple[float, float, float]:
    """Rows a second after the first second, seconds to the first batch, and the share of the time spent waiting."""
    loader = gm.DataLoader(source, encoder=gm.g2048.HardMove(), batch_size=BATCH, seed=1, epochs=1, shuffle=shuffle)
    began = time.perf_counter()
    first, rows, since, waited = 0.0, 0, 0.0, 0.0
    batches = iter(loader)
    while True:
        asked = time.perf_counter()
        batch = next(batches, None)
        now = time.perf_counter()
        if batch is None:
            break
        if not first:
            first = now - began
        if now - began > 1:
            since = since or asked
            rows += batch.rows
            waited += now - asked
    spent = time.perf_counter() - since if since else 0.0
    loader.stop()
    return (rows / spent if spent else 0.0), first, (waited / spent if spent else 0.0)


def main() -> None:
    """Prints a line for each order and place."""
    program, count = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 20_000_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "bucket").mkdir()
        made(folder / "bucket" / "pack", count)
        size = (folder / "bucket" / "pack" / "steps.npy").stat().st_size
        options = ("--anonymous", "--latency-ms", "50", "--megabytes-per-second", "200")
        with FaultServer(program, folder, *options) as server:
            gm.stores.reach("s3://bucket", endpoint=server.address, anonymous=True)
            gm.stores.cache(folder / "twins")
            near = gm.open(folder / "bucket" / "pack", verify="off")
            began = time.perf_counter()
            far = gm.open("s3://bucket/pack", verify="off")
            print(f"{count} rows, {size / 1e6:.0f} MB; opened in {time.perf_counter() - began:.2f} s")
            for order, shuffle in (("blocks", gm.Blocks()), ("whole", True)):
                here = fed(near, shuffle)
                server.counts(reset=True)
                there = fed(far, shuffle)
                counts = server.counts()
                print(
                    f"{order:7} disk {here[0] / 1e6:6.2f} M rows/s   bucket {there[0] / 1e6:6.2f} M rows/s   "
                    f"{there[0] / here[0] if here[0] else 0:.3f} x   first batch {there[1]:.2f} s   "
                    f"fetched {counts.get('bytes', 0) / size:.3f} x the pack in {counts.get('get', 0)} requests   "
                    f"waited {there[2] * 100:.1f} % (disk {here[2] * 100:.1f} %)"
                )


if __name__ == "__main__":
    main()
