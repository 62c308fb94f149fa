"""`gristmill view` as users run it: the command on a free port, requests to it, and its end."""

import contextlib
import http.client
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest


def binary() -> str:
    """The command, where `cargo` or an installation put it."""
    root = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    built = [path for path in (root / "debug/gristmill", root / "release/gristmill") if path.exists()]
    found = str(max(built, key=lambda path: path.stat().st_mtime)) if built else shutil.which("gristmill")
    if found is None:
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    return found


def run(*words: object) -> None:
    """Runs another command to its end."""
    done = subprocess.run([binary(), *map(str, words), "-q"], capture_output=True, text=True, check=False)
    assert done.returncode in (0, 3), done


class Viewer:
    """A running view."""

    def __init__(self, child: subprocess.Popen[str], told: dict[str, Any]) -> None:
        self.child, self.url, self.open = child, told["url"], told["open"]
        #: The folder of what was packed, where a test says so.
        self.folder = Path()
        where = urlsplit(self.url)
        self.host, self.port, self.root = str(where.hostname), int(where.port or 0), where.path

    def ask(
        self, target: str, method: str = "GET", headers: dict[str, str] | None = None, rooted: bool = True
    ) -> tuple[int, dict[str, str], bytes]:
        """The status, headers and body that a request gets; `target` is below the site, unless not `rooted`."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=20)
        try:
            connection.request(method, self.root + target if rooted else target, headers=headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()
        finally:
            connection.close()

    def page(self, target: str = "", code: int = 200) -> str:
        """The text of a page."""
        status, _, body = self.ask(target)
        assert status == code, (target, status, body)
        return body.decode()

    def json(self, target: str) -> Any:
        """The data of a document."""
        status, headers, body = self.ask(target)
        assert (status, headers["Content-Type"]) == (200, "application/json"), (target, status, body)
        return json.loads(body)

    def end(self, how: signal.Signals = signal.SIGINT) -> int:
        """Ends it; its exit code."""
        self.child.send_signal(how)
        return self.child.wait(timeout=10)


@contextlib.contextmanager
def viewing(path: object, *words: object) -> Iterator[Viewer]:
    """A view of what lies at a path or URL, on a free port of this machine unless `words` say another."""
    address = [] if "--addr" in words else ["--addr", "127.0.0.1:0"]
    line = [binary(), "view", str(path), "--json", *address, *map(str, words)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            said = child.stdout.readline()
            if not said:
                raise RuntimeError(child.communicate(timeout=10)[1])
            yield Viewer(child, json.loads(said))
        finally:
            if child.poll() is None:
                child.kill()
