"""moto's services of AWS on loopback, and the keys that they take."""

import contextlib
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

KEYS = {"aws_access_key_id": "test", "aws_secret_access_key": "test", "region_name": "us-east-1"}


def use_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Puts the keys where the tools of AWS look for them."""
    for name, value in KEYS.items():
        monkeypatch.setenv(name.upper().replace("REGION_NAME", "AWS_REGION"), value)


@contextlib.contextmanager
def moto(folder: Path, *options: str | Path) -> Iterator[str]:
    """The address of a server of moto while it runs."""
    said = folder / "said"
    with said.open("w") as out:
        line = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", "0", *options]
        server = subprocess.Popen(line, stdout=out, stderr=subprocess.STDOUT)
    try:
        yield _address(server, said)
    finally:
        server.kill()
        server.wait()


def _address(server: "subprocess.Popen[bytes]", said: Path) -> str:
    for _ in range(600):
        found = [
            word for word in said.read_text().split() if word.startswith(("http://127.0.0.1:", "https://127.0.0.1:"))
        ]
        if found:
            return found[0]
        assert server.poll() is None, said.read_text()
        time.sleep(0.1)
    raise AssertionError(f"moto did not say where it is: {said.read_text()}")
