"""Measures gristmill from a bucket beside a disk, and beside other loaders. A request takes 50 ms, an answer 200 MB/s.

    python bench/peers/bucket.py SERVER [--megabytes 2000] [--peers gristmill,Lance] [--out target/peers]

SERVER is the program `gristmill-faultserver`. Each loader reads steps of 12 kB from its own form, with an empty cache.
It runs once as fast as it can, and once for a consumer whose step takes twice the time in which an answer brings a
batch. Gristmill also reads rows of 48 bytes, in both orders, from the bucket and from the same pack on a disk: as fast
as it can, for a consumer at half of that rate, and for one that takes a million rows a second. The bench measures rows
a second and waiting from one second after the first batch on.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import data
import processes
from lines import Line
from loaders.ours import made
from run import HERE, python_of

import gristmill as gm

sys.path.insert(0, str(HERE.parents[1] / "tests" / "made"))

from buckets import FaultServer

NETWORK = ("--latency-ms", "50", "--megabytes-per-second", "200")
#: Bytes of a step, and number of steps in a batch.
STEP, BATCH = 3 * 64 * 64 + 8, 64
#: Seconds that the consumer's step takes for a batch.
PACE = 2 * BATCH * STEP / 200e6
#: Consumers of rows of 48 bytes: what the tables call each of them, rows in a batch, and seconds of its step. None is
#: twice the seconds of a batch from the disk.
CONSUMERS = (("", 1024, 0.0), ("at half the rate of the disk", 1024, None), ("with a step of 8 ms", 8192, 0.008))
KEYS = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "testtest", "AWS_REGION": "us-east-1"}
#: Seconds beyond its limit after which the bench kills a loader that prints nothing.
PATIENCE = 60
#: Module and environment of each peer. The environment of gristmill is this Python.
PEERS = {
    "gristmill": ("ours", ""),
    "gristmill raw": ("ours", ""),
    "webdataset": ("of_webdataset", "webdataset"),
    "streaming": ("of_streaming", "streaming"),
    "LitData": ("of_litdata", "litdata"),
    "Lance": ("of_lance", "lance"),
}


def places(peer: str, bucket: Path, address: str, cache: Path) -> dict[str, Any]:
    """Returns the options by which `peer` finds its form in the bucket, and its `cache` folder if it uses one."""
    if peer == "webdataset":
        names = sorted(path.name for path in (bucket / "of_webdataset").glob("*.tar"))
        return {"urls": [f"{address}/bucket/of_webdataset/{name}" for name in names]}
    if peer == "streaming":
        return {"remote": "s3://bucket/of_streaming/raw", "local": str(cache)}
    if peer == "LitData":
        options = {"endpoint_url": address, "aws_access_key_id": "test", "aws_secret_access_key": "testtest"}
        return {"place": "s3://bucket/of_litdata/raw", "storage_options": options, "cache_dir": str(cache)}
    if peer == "Lance":
        options = {
            "aws_endpoint": address,
            "allow_http": "true",
            **{name.lower(): value for name, value in KEYS.items()},
        }
        return {"place": "s3://bucket/of_lance/table", "storage_options": options}
    form = "raw" if peer == "gristmill raw" else "pack"
    return {"place": f"s3://bucket/ours/{form}", "cache": str(cache), "form": "place", "threads": 2}


def written(peer: str, source: Path, bucket: Path, out: Path) -> None:
    """Writes a loader's form of the steps to the bucket: uncompressed, and of gristmill a compressed pack, too."""
    module, environment = PEERS[peer]
    folder = bucket / module
    if (folder / ".made").exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    line = Line("steps", peer, "", module, environment)
    packings = ["zstd", "raw"] if module == "ours" else ["raw"]
    job = {
        "module": module,
        "work": "steps",
        "write": True,
        "packings": packings,
        "data": str(source),
        "folder": str(folder),
    }
    subprocess.run([python_of(line, out), HERE / "worker.py", json.dumps(job)], check=True)
    (folder / ".made").touch()


def fed(line: Line, out: Path, server: FaultServer, job: dict[str, Any]) -> dict[str, Any]:
    """Runs one loader from the bucket. Returns its figures, and the bytes and requests that the server counted."""
    shutil.rmtree(job["folder"], ignore_errors=True)
    Path(job["folder"]).mkdir(parents=True)
    environment = {**os.environ, **KEYS, "S3_ENDPOINT_URL": server.address, "AWS_ENDPOINT_URL": server.address}
    environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONWARNINGS": "ignore", "AWS_ALLOW_HTTP": "true"}
    job = {"module": line.module, "work": line.work, "options": line.options, "check": False, "step": 0, **job}
    server.counts(reset=True)
    process = subprocess.Popen(
        [python_of(line, out), HERE / "fetching.py", json.dumps(job)],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        told, failed = process.communicate(timeout=job["seconds"] + PATIENCE)
    except subprocess.TimeoutExpired:
        family = processes.tree(process.pid)
        for pid in family:
            os.kill(pid, signal.SIGKILL)
        told, failed = "", f"no batch came, nor an error, in {job['seconds'] + PATIENCE:g} s"
        process.communicate()
    counts = server.counts()
    shutil.rmtree(job["folder"], ignore_errors=True)
    said = told.strip().splitlines()
    if not said:
        lines = failed.strip().splitlines() or ["it ended without a word"]
        return {"error": next((text for text in reversed(lines) if "Error" in text), lines[-1])[:160]}
    return {**json.loads(said[-1]), "bytes": counts.get("bytes", 0), "requests": counts.get("get", 0)}


def beside_peers(
    out: Path, servers: tuple[FaultServer, FaultServer], bucket: Path, size: int, peers: list[str], limit: float
) -> list[dict[str, Any]]:
    """Runs all peers over steps: as fast as they can, and for a consumer with a step. Returns a dict for each run."""
    count = size // STEP
    source = data.ready(out / "data", "steps", {"steps": count})
    found = []
    for peer in peers:
        module, environment = PEERS[peer]
        line = Line("steps", peer, "", module, environment)
        if not python_of(line, out).exists():
            found.append({"peer": peer, "error": "not installed"})
            continue
        written(peer, source, bucket, out)
        of = servers[peer == "webdataset"]
        for step in (0, PACE):
            cache = out / "buckets" / "cache"
            job = {"batch": BATCH, "rows": count, "seconds": limit, "step": step, "folder": str(cache)}
            options = places(peer, bucket, of.address, cache)
            figures = fed(Line("steps", peer, "", module, environment, options), out, of, job)
            found.append({"peer": peer, "step": step, **figures})
            sys.stderr.write(f"{found[-1]}\n")
    return found


def beside_disk(out: Path, server: FaultServer, bucket: Path, size: int) -> list[dict[str, Any]]:
    """Reads rows of 48 bytes from each place, for each of the `CONSUMERS`. Returns a dict for each run."""
    count, folder, found = size // 96 * 2, bucket / "rows", []
    if not folder.exists():
        # The bench merges two halves, since a merge adds what a loader needs to open the pack in a bucket.
        halves = [out / "buckets" / name for name in ("one", "other")]
        for half in halves:
            shutil.rmtree(half, ignore_errors=True)
            made(half, count // 2)
        gm.merge(halves, folder)
        for half in halves:
            shutil.rmtree(half)
    for shuffle in ("blocks", "whole"):
        half = 0.0
        for consumer, batch, step in CONSUMERS:
            for place in ("disk", "bucket"):
                cache = out / "buckets" / "cache"
                options = {"place": str(folder) if place == "disk" else "s3://bucket/rows", "form": "place"}
                options |= {"threads": 2, "shuffle": shuffle, "cache": str(cache)}
                job = {"batch": batch, "rows": count - batch, "seconds": 600, "check": True, "folder": str(cache)}
                job["step"] = half if step is None else step
                figures = fed(Line("rows", "gristmill", "", "ours", "", options), out, server, job)
                of = {"order": shuffle, "place": place, "consumer": consumer, "pack": size, "rows_of_pack": count}
                found.append({**of, **figures})
                sys.stderr.write(f"{found[-1]}\n")
                if not half and figures.get("rows_per_second"):
                    half = 2 * batch / figures["rows_per_second"]
    return found


def cells(line: dict[str, Any], first: list[str]) -> list[str]:
    """Returns the cells of a line of either table. `first` has the loader and its rates."""
    if "error" in line:
        return [*first[:1], line["error"]]
    return [*first, str(line["requests"]), f"{100 * line['waited']:.2f} %", f"{line['first_batch_s']:.2f} s"]


def text(result: dict[str, Any]) -> str:
    """Returns both tables as text."""
    rows = [["rows, gristmill", "rows/s", "of the disk", "fetched/pack", "batches", "requests", "waits", "first batch"]]
    disk: dict[str, Any] = {}
    for line in result["rows"]:
        disk = line if line["place"] == "disk" else disk
        consumer = f", a consumer {line['consumer']}" if line["consumer"] else ""
        first = [f"{line['order']}, {line['place']}{consumer}"]
        if "error" not in line:
            share = line["rows_per_second"] / (disk.get("rows_per_second") or 1)
            first += [f"{line['rows_per_second'] / 1e6:.2f} M", f"{share:.3f}", f"{line['bytes'] / line['pack']:.3f}"]
            first.append("the same" if line["checksum"] == disk.get("checksum") else "OTHERS")
        rows.append(cells(line, first))
    steps = [["steps", "steps/s", "bytes/step", "steps fed", "requests", "waits", "first batch"]]
    for line in result["steps"]:
        first = [f"{line['peer']}, {'a consumer with a step' if line.get('step') else 'as fast as it can'}"]
        if "error" not in line:
            size = line["bytes"] / max(1, line["rows"])
            first += [f"{line['rows_per_second']:.0f}", f"{size:.0f}", str(line["rows"])]
        steps.append(cells(line, first))
    network = "50 ms a request, 200 MB/s an answer"
    found = [
        f"{result['date']}, load {result['load']:.1f}; {result['megabytes']} MB of rows, "
        f"{result['steps_megabytes']} MB of steps; {network}"
    ]
    for grid in (rows, steps):
        widths = [max(len(row[i]) for row in grid if i < len(row)) for i in range(len(grid[0]))]
        found += ["", *("  ".join(c.ljust(w) for c, w in zip(row, widths, strict=False)).rstrip() for row in grid)]
    return "\n".join(found) + "\n"


def main() -> None:
    """Starts the servers, runs the loaders, writes the results and prints the tables."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("server", type=Path, help="the program gristmill-faultserver")
    said.add_argument("--works", default="rows,steps", help="which of %(default)s; only gristmill reads the rows")
    said.add_argument("--megabytes", type=int, default=2000, help="size of the packs")
    said.add_argument("--steps-megabytes", type=int, help="size of the steps as they are; as much by default")
    said.add_argument("--peers", default=",".join(PEERS), help="which of %(default)s")
    said.add_argument("--limit", type=float, default=60, help="seconds of a run over steps")
    said.add_argument("--out", type=Path, default=Path("target/peers"), help="environments, data and results")
    options = said.parse_args()
    out, size, peers = options.out.resolve(), options.megabytes * 1_000_000, options.peers.split(",")
    works = options.works.split(",")
    steps = (options.steps_megabytes or options.megabytes) * 1_000_000
    served = out / "buckets" / f"served-{options.megabytes}"
    bucket = served / "bucket"
    bucket.mkdir(parents=True, exist_ok=True)
    with (
        FaultServer(options.server, served, *NETWORK) as signed,
        FaultServer(options.server, served, "--anonymous", *NETWORK) as anonymous,
    ):
        result = {
            "date": time.strftime("%Y-%m-%d"),
            "load": os.getloadavg()[0],
            "megabytes": options.megabytes,
            "steps_megabytes": steps // 1_000_000,
            "rows": beside_disk(out, signed, bucket, size) if "rows" in works else [],
            "steps": beside_peers(out, (signed, anonymous), bucket, steps, peers, options.limit)
            if "steps" in works
            else [],
        }
    (out / "bucket.json").write_text(json.dumps(result, indent=1) + "\n")
    (out / "bucket.txt").write_text(text(result))
    sys.stdout.write(text(result))


if __name__ == "__main__":
    main()
