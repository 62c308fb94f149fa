"""Buckets on loopback: a server of folders that fails as tests order it to, and counts requests."""

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

from gristmill import stores

ROOT = Path(__file__).resolve().parents[2]


def built() -> Path:
    """The server, as the Rust tests made it, else built where cargo is; a test is skipped where it cannot be had."""
    program = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "debug", "gristmill-faultserver")
    sources = (ROOT / "tests" / "faultserver").rglob("*.*")
    if program.exists() and program.stat().st_mtime > max(source.stat().st_mtime for source in sources):
        return program
    cargo = shutil.which(os.environ.get("CARGO", "cargo"))
    if cargo is None:
        pytest.skip("skipped: no cargo to build the server of buckets with")
    # With the features of the whole workspace, so that little is compiled again.
    command = [cargo, "build", "--locked", "--quiet", "--workspace", "--bin", "gristmill-faultserver"]
    subprocess.run(command, cwd=ROOT, check=True)
    return program


@contextlib.contextmanager
def serving(folder: Path, cache: Path) -> "Iterator[FaultServer]":
    """A server over a folder, which the environment names, and a cache of packs; both as they were afterwards."""
    with pytest.MonkeyPatch.context() as patch, FaultServer(built(), folder) as server:
        for name, value in server.environment.items():
            patch.setenv(name, value)
        stores.reach("s3://", patience=20)
        stores.cache(cache)
        yield server
    stores.cache()


@contextlib.contextmanager
def empty_bucket(folder: Path) -> "Iterator[FaultServer]":
    """Starts a server with an empty bucket `out`. Its files and the cache of the reader lie in `folder`."""
    (folder / "served" / "out").mkdir(parents=True)
    with serving(folder / "served", folder / "twins") as server:
        yield server


class FaultServer:
    """A server whose buckets are the folders of a directory."""

    def __init__(self, program: Path, folder: Path, *options: str) -> None:
        self.folder = folder
        self._process = subprocess.Popen(
            [program, folder, *options], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self.address = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline().strip()
        assert line, f"the server ended with {self._process.poll()}"
        return line

    def _order(self, order: Any) -> str:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        return self._line()

    def fail(self, fault: str | dict[str, int], **rule: Any) -> None:
        """From now on requests fail: `operation`, `key` (a part of it), `after`, `times` say which."""
        assert self._order({"fail": {"fault": fault, **rule}}) == "ok"

    def mend(self) -> None:
        """No request fails any more."""
        assert self._order("mend") == "ok"

    def counts(self, *, reset: bool = False) -> dict[str, int]:
        """Requests of each kind, and the bytes of their answers."""
        counts: dict[str, int] = json.loads(self._order({"counts": reset}))
        return counts

    @property
    def environment(self) -> dict[str, str]:
        """What tools of this cloud take from the environment to reach the server."""
        return {
            "AWS_ENDPOINT_URL": self.address,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "testtest",
            "AWS_REGION": "us-east-1",
        }

    def close(self) -> None:
        """Ends the server."""
        with self._process as process:
            process.kill()

    def __enter__(self) -> "FaultServer":
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()
