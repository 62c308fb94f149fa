"""The bench beside other loaders measures gristmill and NumPy on little data, and reports a peer that is missing."""

import json
import subprocess
import sys
from pathlib import Path

RUN = Path(__file__).resolve().parents[1] / "bench" / "peers" / "run.py"


def test_ours_a_yardstick_and_a_peer_that_is_not_installed(tmp_path: Path) -> None:
    options = ["--works", "rows", "--rows", "3000", "--seconds", "0.05", "--windows", "1"]
    options += ["--peers", "gristmill,numpy,cpprb", "--forms", "pack, 1 thread;mapped;sample"]
    done = subprocess.run(
        [sys.executable, RUN, *options, "--out", tmp_path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    found = {line["peer"]: line for line in json.loads((tmp_path / "peers.json").read_text())["lines"]}
    assert found["gristmill"]["rows_per_second"] > 0, found
    assert found["gristmill"]["left_after_sigkill"] == 0
    assert found["NumPy"]["yardstick"]
    assert found["NumPy"]["cpu_us_per_row"] >= 0
    assert found["cpprb"]["error"] == "not installed"
    assert done.stdout.startswith((tmp_path / "peers.txt").read_text())
