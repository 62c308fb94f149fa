"""What is said before anything is compiled, and the version of the package."""

import importlib.metadata
import os
import re
import subprocess
from pathlib import Path

import pytest

import gristmill as gm

ROOT = Path(__file__).resolve().parents[1]


def cargo(folder: Path, version: str) -> Path:
    """A program that says that it is this version of Cargo, and fails at all else."""
    path = folder / "cargo"
    path.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "cargo {version} (abc 2024-01-01)" && exit 0\nexit 9\n')
    path.chmod(0o755)
    return path


@pytest.mark.parametrize("version", ["1.63.0", "1.94.9", "1.9.0"])
def test_an_older_cargo_is_named_before_the_demo_compiles(tmp_path: Path, version: str) -> None:
    line = ["make", "demo", f"CARGO={cargo(tmp_path, version)}"]
    env = {**os.environ, "MAKEFLAGS": ""}
    done = subprocess.run(line, cwd=ROOT, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode != 0
    needed = re.search(r'^rust-version = "(.*)"$', (ROOT / "Cargo.toml").read_text(), re.MULTILINE)
    assert needed is not None
    assert f"missing: Rust {needed[1]} or newer; {tmp_path}/cargo is {version}" in done.stderr
    assert "rustup update stable" in done.stderr
    assert "building" not in done.stdout


def test_a_cargo_that_will_do_is_no_fault(tmp_path: Path) -> None:
    for version in ("1.95.0", "1.100.0", "2.0.0"):
        line = ["bash", "scripts/check-tools.sh", "--rust", str(cargo(tmp_path, version))]
        done = subprocess.run(line, cwd=ROOT, capture_output=True, text=True, check=False, timeout=60)
        assert (done.returncode, done.stderr) == (0, "")


def test_the_package_says_its_version() -> None:
    assert gm.__version__ == importlib.metadata.version("gristmill")
