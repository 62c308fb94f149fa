"""The stub file says exactly what the compiled module has."""

import subprocess
import sys
from pathlib import Path

import pytest

# Names and parameters are compared, for which no other module is read; types are checked with the rest of the package.
ALONE = """[mypy]
follow_imports = skip
follow_imports_for_stubs = True
"""


def test_the_stub_matches_the_library(tmp_path: Path) -> None:
    pytest.importorskip("mypy")
    alone = tmp_path / "alone.ini"
    alone.write_text(ALONE)
    words = [sys.executable, "-m", "mypy.stubtest", "gristmill._gristmill", "--mypy-config-file", str(alone)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
