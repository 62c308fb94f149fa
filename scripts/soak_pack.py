"""make soak: a data set of demonstrations that is larger than what packing holds in memory, packed by the real program.
Its memory must stay below the bound, it resumes after a kill, and every step comes back.

    python scripts/soak_pack.py PROGRAM [GIGABYTES]
"""

import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

SIDE, LENGTH = 128, 200

#: What packing may take: half a gigabyte of one data set, and trajectories on their way.
BOUND = 900 << 20


def picture(t: int) -> Any:
    """Step `t`: noise that stands still, with a bright square of its own place."""
    made = np.random.default_rng(t // LENGTH).integers(0, 8, (3, SIDE, SIDE), dtype=np.uint8)
    made[:, t % SIDE, :] = 200
    made[0, 0, :8] = np.frombuffer(np.int64(t).tobytes(), np.uint8)
    return made


def frames(count: int) -> Iterator[dict[str, Any]]:
    """`count` steps."""
    for t in range(count):
        seen, after = picture(t), picture(t + 1)
        yield {"obs": seen, "next_obs": after, "acts": np.int64(t % 6), "dones": np.bool_(t % LENGTH == LENGTH - 1)}


def main(program: str, gigabytes: float) -> None:
    """Writes, packs, kills, resumes, and checks."""
    count = int(gigabytes * 1e9 / (2 * 3 * SIDE * SIDE)) // LENGTH * LENGTH
    shape = {"shape": (3, SIDE, SIDE), "dtype": np.dtype("u1")}
    box = Instance("Box", (), {"low": np.zeros((3, SIDE, SIDE)), "high": np.full((3, SIDE, SIDE), 255), **shape})
    with tempfile.TemporaryDirectory() as name:
        source, pack = Path(name, "demos"), Path(name, "pack")
        source.mkdir()
        meta = get_meta_dict({}, box, Instance("Discrete", (), {"n": 6}))
        write_frames(source / "demos.tar.zst", meta, frames(count), level=1)
        words = [program, "pack", "--input", str(source), "--output", str(pack), "--shard-rows", str(LENGTH), "--json"]
        killed = subprocess.Popen(words, stdout=subprocess.DEVNULL)
        while killed.poll() is None and len(list(pack.glob(".*/games-*.chunks"))) < 4:
            time.sleep(0.01)
        killed.send_signal(signal.SIGKILL)
        killed.wait()
        done = json.loads(subprocess.run([*words, "--resume"], check=True, capture_output=True).stdout)
        print(f"{count} steps of {gigabytes:g} GB: {done['peak_rss'] >> 20} MiB at most, {done['resumed']} resumed")
        assert done["rows"] == count, done
        assert done["resumed"] > 0, done
        assert done["peak_rss"] < BOUND, f"packing took {done['peak_rss'] >> 20} MiB"
        packed = gm.open(pack)
        for t in np.random.default_rng(1).integers(0, count, 200).tolist():
            np.testing.assert_array_equal(packed.take([t])["obs"][0], picture(t))
        left = [path.name for path in pack.parent.iterdir() if path not in (source, pack)]
        assert not left, f"left behind: {left}"


main(sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1.5)
