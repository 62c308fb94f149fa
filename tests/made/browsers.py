"""Headless Chromium, driven over a pipe by its own protocol; no package and no driver is needed."""

import base64
import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


def chromium() -> str:
    """CHROMIUM, else a browser by its usual names. Skips without one, or fails where GRISTMILL_BROWSER is set."""
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        text = "no Chromium; `apt-get install chromium`, or set CHROMIUM"
        if os.environ.get("GRISTMILL_BROWSER"):
            pytest.fail(text)
        pytest.skip(f"skipped: {text}")
    return found


class NavigatedError(Exception):
    """The page gave way to another one before it answered."""


class Browser:
    """A page of a running browser."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read, self._rest, self._number, self._session = write, read, b"", 0, ""
        #: What the browser complained of, and the addresses that it asked for.
        self.complaints: list[str] = []
        self.asked: list[str] = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")

    def _call(self, method: str, **params: Any) -> Any:
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            self._hear(answer)
        if "navigated" in answer.get("error", {}).get("message", ""):
            raise NavigatedError(answer["error"]["message"])
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self) -> Any:
        while b"\0" not in self._rest:
            more = os.read(self._read, 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self._rest += more
        one, _, self._rest = self._rest.partition(b"\0")
        return json.loads(one)

    def _hear(self, event: Any) -> None:
        params = event.get("params", {})
        if event.get("method") == "Network.requestWillBeSent":
            self.asked.append(params["request"]["url"])
        elif event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(str(params["exceptionDetails"]))
        elif event.get("method") == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(params["entry"]["text"])

    def evaluate(self, text: str) -> Any:
        """The value of an expression on the page."""
        return self._call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)["result"].get(
            "value"
        )

    def wait(self, text: str) -> None:
        """Waits until an expression on the page is true."""
        end = time.monotonic() + 20
        while not self._holds(text):
            assert time.monotonic() < end, (text, self.evaluate("document.body.innerText"), self.complaints)
            time.sleep(0.02)

    def _holds(self, text: str) -> bool:
        """Whether an expression is true; not on a page that gives way to another one meanwhile."""
        try:
            return bool(self.evaluate(text))
        except NavigatedError:
            return False

    def open(self, url: str) -> None:
        """Loads a page, and waits until all of it is there."""
        self.wait("window.leaving = true")
        self._call("Page.navigate", url=url)
        self.wait("document.readyState === 'complete' && !window.leaving")

    def press(self, key: str) -> None:
        """Presses a key."""
        text = {"text": key} if len(key) == 1 else {}
        for kind in ("keyDown", "keyUp"):
            self._call("Input.dispatchKeyEvent", type=kind, key=key, **(text if kind == "keyDown" else {}))

    def click(self, selector: str, across: float = 0.5) -> None:
        """Clicks into an element, at a share of its width."""
        box = self.evaluate(
            f"(() => {{ const e = document.querySelector({selector!r}); e.scrollIntoView({{block: 'center'}});"
            " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()"
        )
        place = {"x": box[0] + box[2] * across, "y": box[1] + box[3] / 2, "button": "left", "clickCount": 1}
        for kind in ("mousePressed", "mouseReleased"):
            self._call("Input.dispatchMouseEvent", type=kind, **place)

    def drag(self, places: list[list[float]]) -> None:
        """Presses the button at the first place, goes to the others, and lets go at the last."""
        for i, (x, y) in enumerate(places):
            where = {"x": x, "y": y, "button": "left", "buttons": 1}
            self._call("Input.dispatchMouseEvent", type="mouseMoved", **where | ({"buttons": 0} if i == 0 else {}))
            if i == 0:
                self._call("Input.dispatchMouseEvent", type="mousePressed", clickCount=1, **where)
        self._call("Input.dispatchMouseEvent", type="mouseReleased", clickCount=1, **where | {"buttons": 0})

    def leave(self) -> None:
        """Leaves the page: it asks for nothing any more."""
        self.open("about:blank")

    def looks(self, scheme: str = "light", width: int = 1280, height: int = 1000, scripts: bool = True) -> None:
        """Sets the colour scheme, the size of the window, and whether scripts run."""
        self._call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self._call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def picture(self) -> bytes:
        """What it shows, as PNG."""
        return base64.b64decode(self._call("Page.captureScreenshot", format="png")["data"])


@contextlib.contextmanager
def browsing() -> Iterator[Browser]:
    """A browser without a past, and without a way to any other machine."""
    program = chromium()
    # Its last processes may still write when it has ended.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        to_read, write = os.pipe()
        read, to_write = os.pipe()
        words = [
            *("--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={home}"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *("--disable-dev-shm-usage", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"),
        ]
        # The protocol wants descriptors 3 and 4.
        line = ["bash", "-c", f'exec "$0" "$@" 3<&{to_read} 4>&{to_write}', program, *words]
        log = Path(home) / "log"
        with (
            log.open("wb") as said,
            subprocess.Popen(line, stdout=said, stderr=said, pass_fds=(to_read, to_write)) as child,
        ):
            os.close(to_read)
            os.close(to_write)
            try:
                yield Browser(write, read)
            finally:
                # A browser that closes by itself ends its own processes first.
                with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                    os.write(write, b'{"id": 0, "method": "Browser.close"}\0')
                    child.wait(timeout=5)
                os.close(write)
                os.close(read)
                child.terminate()
                child.wait(timeout=20)
