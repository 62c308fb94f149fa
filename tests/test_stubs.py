"""The stub file says exactly what the compiled module has."""

import subprocess
import sys

import pytest


def test_the_stub_matches_the_library() -> None:
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "gristmill._gristmill"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
