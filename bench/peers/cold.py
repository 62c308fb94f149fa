"""Measures the first batch of a pack of 10^9 rows from a bucket, with an empty cache.

A request takes 50 ms, an answer 200 MB/s.

    python bench/peers/cold.py SERVER [--out target/peers]

SERVER is the program `gristmill-faultserver`. The bench needs the package xxhash. The files of the pack are sparse, so
all rows are zeros and have no checksums. Its index is written by docs/format/opening.md. Each line of the output is a
process of its own.
"""

import argparse
import json
import resource
import shutil
import subprocess
import sys
import time
from pathlib import Path
from struct import pack

import numpy as np
import xxhash
from bucket import NETWORK

import gristmill as gm

sys.path.append(str(Path(__file__).resolve().parents[2] / "scripts"))
sys.path.append(str(Path(__file__).resolve().parents[2] / "tests" / "made"))

from bench_take import ROW
from buckets import FaultServer

SHARDS, RUNS, STEPS = 12, 3_333_334, 300
#: Bytes before the rows of a file, and numbers in a group of the index.
OFFSET, GROUP = 384, 128
#: The orders that are measured, and the rows of a batch in each.
ORDERS = {"blocks": 4096, "whole": 1024}


def text(words: bytes) -> bytes:
    """Returns `words` as the index stores a text."""
    return pack("<Q", len(words)) + words


def numbered(count: int) -> bytes:
    """Returns the numbers below `count` in groups as the index stores them."""
    out = bytearray()
    for begin in range(0, count, GROUP):
        size = min(GROUP, count - begin)
        width = (size - 1).bit_length()
        bits = sum(place << width * place for place in range(size))
        out += pack("<Q", begin) + bytes([width]) + bits.to_bytes((width * size + 7) // 8, "little")
    return bytes(out)


def sparse(path: Path, size: int) -> None:
    """Makes a file of `size` zeros that takes no room."""
    with path.open("wb") as file:
        file.truncate(size)


def made(folder: Path) -> int:
    """Makes the pack in `folder`. Returns the bytes of its index."""
    folder.mkdir(parents=True)
    rows, types, manifest = RUNS * STEPS, b'{\n  "search": 0\n}\n', b'{"of": "a bench"}\n'
    descr = str(np.lib.format.dtype_to_descr(ROW)).encode()
    body = text(descr) + pack("<3Q", 77, xxhash.xxh3_64_intdigest(types), SHARDS)
    for shard in range(SHARDS):
        own = rows // SHARDS + (rows % SHARDS if shard == SHARDS - 1 else 0)
        name, size = f"steps-{shard:05}.npy", OFFSET + own * ROW.itemsize
        head = b"GMXXH301" + pack("<2I", 256, ROW.itemsize) + pack("<3Q", own, OFFSET, 5)
        body += text(name.encode()) + pack("<4Q", size, own, OFFSET, 5) + text(head)
        sparse(folder / name, size)
        sparse(folder / f"{name}.xxh3", 40 - own // -256 * 8)
    body += pack("<Q", RUNS) + b"\1" + numbered(RUNS)
    for same in (9, STEPS, 100, 2048):
        body += (pack("<Q", same) + b"\0") * -(-RUNS // GROUP)
    index = b"GMOPEN01" + b"rows".ljust(8, b"\0") + xxhash.xxh3_128_intdigest(manifest).to_bytes(16, "little") + body
    (folder / "opening.index").write_bytes(index + pack("<Q", xxhash.xxh3_64_intdigest(index)))
    (folder / "manifest.json").write_bytes(manifest)
    (folder / "valuation_types.json").write_bytes(types)
    sparse(folder / "metadata.db", 1 << 30)
    return len(index) + 8


def first_batch(order: str, address: str, cache: Path) -> None:
    """Opens the pack, takes a batch, and prints what both took."""
    gm.stores.reach("s3://bucket", endpoint=address, anonymous=True)
    gm.stores.cache(cache, limit=10**12)
    began, cpu = time.perf_counter(), time.process_time()
    rows = gm.open("s3://bucket/pack", verify="off")
    opened, opened_cpu = time.perf_counter(), time.process_time()
    shuffle = gm.Blocks() if order == "blocks" else True
    encoder = gm.g2048.HardMove()
    with gm.DataLoader(rows, encoder=encoder, batch_size=ORDERS[order], seed=1, epochs=1, shuffle=shuffle) as loader:
        next(iter(loader))
        took = time.perf_counter() - opened
    found = {
        "rows": len(rows),
        "opened_s": opened - began,
        "opened_cpu_s": opened_cpu - cpu,
        "first_batch_s": took,
        "first_batch_cpu_s": time.process_time() - opened_cpu,
        "memory_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
    }
    sys.stdout.write(json.dumps(found) + "\n")


def main() -> None:
    """Makes the pack, starts the server, and prints a line of JSON for each order."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("server", help="the program gristmill-faultserver")
    said.add_argument("--out", type=Path, default=Path("target/peers"), help="pack, cache and results")
    said.add_argument("--first-batch", nargs=3, metavar=("ORDER", "ADDRESS", "CACHE"), help=argparse.SUPPRESS)
    options = said.parse_args()
    if options.first_batch:
        order, address, cache = options.first_batch
        first_batch(order, address, Path(cache))
        return
    served, cache = options.out.resolve() / "buckets" / "cold", options.out.resolve() / "buckets" / "cache"
    shutil.rmtree(served, ignore_errors=True)
    index = made(served / "bucket" / "pack")
    found = []
    with FaultServer(Path(options.server), served, "--anonymous", *NETWORK) as server:
        for order in ORDERS:
            shutil.rmtree(cache, ignore_errors=True)
            server.counts(reset=True)
            command = [sys.executable, __file__, options.server, "--first-batch", order, server.address, str(cache)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            counts = server.counts()
            asked = {"requests": counts.get("get", 0), "bytes": counts.get("bytes", 0)}
            found.append({"order": order, "index": index, **json.loads(done.stdout), **asked})
            sys.stdout.write(json.dumps(found[-1]) + "\n")
    for folder in (served, cache):
        shutil.rmtree(folder, ignore_errors=True)
    (options.out / "cold.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
