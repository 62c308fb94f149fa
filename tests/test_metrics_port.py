"""The metrics port under readers of every kind: it costs the loader nothing that games need, and leaves nothing."""

import http.client
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

import gristmill as gm

#: A process that serves its metrics, uses up all its other descriptors, and still feeds.
PROGRAM = """
import os, resource, sys, time
import gristmill as gm

resource.setrlimit(resource.RLIMIT_NOFILE, (128, 128))
before = len(os.listdir("/proc/self/task"))
loader = gm.DataLoader(gm.presets.lc0(sys.argv[1], pool=10, reservoir=40, batch_size=16, seed=1, index="off"))
loader.get_next()
print(loader.serve_metrics(), flush=True)
kept = []
for line in sys.stdin:
    if line == "fill\\n":
        try:
            while True:
                kept.append(os.open("/dev/null", os.O_RDONLY))
        except OSError as error:
            print(error.strerror, flush=True)
    elif line == "free\\n":
        [os.close(number) for number in kept]
        print(len(os.listdir("/proc/self/fd")), flush=True)
    elif line == "next\\n":
        print(loader.get_next().number, flush=True)
    else:
        left, end = loader.stop(), time.monotonic() + 20
        # A thread that has said goodbye is there for a moment more.
        while len(os.listdir("/proc/self/task")) > before and time.monotonic() < end:
            time.sleep(0.01)
        print(left, len(os.listdir("/proc/self/task")) - before, flush=True)
"""


class Served:
    """A loader in another process."""

    def __init__(self, child: "subprocess.Popen[str]") -> None:
        self.child = child
        self.host, port = self.read().split(":")
        self.port = int(port)

    def read(self) -> str:
        assert self.child.stdout is not None
        return self.child.stdout.readline().strip()

    def tell(self, word: str) -> str:
        assert self.child.stdin is not None
        self.child.stdin.write(word + "\n")
        self.child.stdin.flush()
        return self.read()

    def ask(self, path: str, host: str | None = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(self.host, self.port, timeout=30)
        connection.request("GET", path, headers={} if host is None else {"Host": host})
        answer = connection.getresponse()
        return answer.status, answer.read()


@pytest.fixture
def served(games: Path) -> Iterator[Served]:
    line = [sys.executable, "-c", PROGRAM, str(games)]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        try:
            yield Served(child)
        finally:
            child.kill()


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="skipped: no /proc to count in")


@needs_proc
def test_hundreds_that_say_nothing_cost_neither_answers_nor_batches(served: Served) -> None:
    number = int(served.tell("next"))
    descriptors = int(served.tell("free"))
    with ExitStack() as silent:
        for _ in range(700):
            one = silent.enter_context(socket.socket())
            one.setblocking(False)
            one.connect_ex((served.host, served.port))
        status, text = served.ask("/metrics")
        assert (status, b"# EOF" in text) == (200, True)
        assert int(served.tell("next")) == number + 1
        # Games are opened and closed meanwhile.
        assert int(served.tell("free")) <= descriptors + 8, "connections have descriptors that were there before"
    assert served.ask("/status")[0] == 200
    assert served.tell("stop") == "[] 0"


@needs_proc
def test_a_process_without_descriptors_is_still_watched(served: Served) -> None:
    assert served.tell("fill") == "Too many open files"
    for _ in range(3):
        assert served.ask("/metrics")[0] == 200
    served.tell("free")
    assert served.ask("/status")[0] == 200
    assert served.tell("stop") == "[] 0"


def test_pages_of_a_browser_learn_nothing(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, pool=10, batch_size=16, index="off")) as loader:
        host, port = loader.serve_metrics().split(":")
        for name, code in [("rebound.example", 403), (f"localhost:{port}", 200), (f"127.0.0.1:{port}", 200)]:
            connection = http.client.HTTPConnection(host, int(port), timeout=30)
            connection.request("GET", "/status", headers={"Host": name})
            assert connection.getresponse().status == code
            connection.close()
