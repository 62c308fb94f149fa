"""The loader and its process: signals, forks, and the end of the interpreter."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

#: How many pairs of interpreters end in mid-stream; `make soak` asks for more.
PAIRS = int(os.environ.get("GRISTMILL_EXITS", "3"))


def test_ctrl_c_interrupts_a_blocked_get_next(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    program = (
        "import sys, gristmill as gm\n"
        f"config = gm.presets.lc0({str(tmp_path / 'empty')!r}, batch_size=4, reservoir=8, index='off', watch=True)\n"
        "loader = gm.DataLoader(config)\n"
        "loader.start(); print('waiting', flush=True)\n"
        "try:\n    loader.get_next()\n"
        "except KeyboardInterrupt:\n    print('interrupted', flush=True)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child, child.stdout as said:
        assert said.readline() == "waiting\n"
        time.sleep(0.3)
        begun = time.monotonic()
        child.send_signal(signal.SIGINT)
        assert said.readline() == "interrupted\n"
        assert child.wait(5) == 0
        assert time.monotonic() - begun < 2


@pytest.mark.parametrize("started", [False, True])
def test_a_forked_child_is_told_so(games: Path, started: bool) -> None:
    """The child uses the loader in every way, then drops it; each must raise or return at once."""
    program = f"""
import gc, os, signal, gristmill as gm
loader = gm.DataLoader(gm.presets.lc0({str(games)!r}, pool=10, batch_size=4, reservoir=8, index="off"))
batch = loader.get_next() if {started} else None
child = os.fork()
if child == 0:
    signal.alarm(10)
    code = 0
    for use in (loader.get_next, loader.maybe_get_next, loader.start, loader.state_dict):
        try:
            use()
            code = 3
        except gm.ForkedError as error:
            code = code if str(os.getpid()) in str(error) else 4
    assert loader.stop() == []
    del loader, batch
    gc.collect()
    os._exit(code)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert loader.get_next().rows == 4
loader.stop()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr


def test_forking_while_other_threads_use_the_loader_hangs_no_child(games: Path) -> None:
    """A thread of the parent may hold any lock of the loader when the child is made; the child must take none."""
    program = f"""
import os, signal, threading, gristmill as gm
loader = gm.DataLoader(gm.presets.lc0({str(games)!r}, pool=10, batch_size=4, reservoir=8, index="off"))
loader.get_next()
done = False
def busy():
    while not done:
        loader.state_dict(), loader.metrics(), loader.source_path(3)
threads = [threading.Thread(target=busy) for _ in range(2)]
for thread in threads:
    thread.start()
for _ in range(30):
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        for use in (loader.state_dict, lambda: loader.load_state_dict({{}}), loader.get_next, loader.start):
            try:
                use()
                os._exit(3)
            except gm.ForkedError:
                pass
        loader.metrics(), loader.source_path(1), loader.stop()
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
done = True
for thread in threads:
    thread.join()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_programs_that_feed_jax_exit_cleanly(games: Path) -> None:
    """Interpreters that end in mid-stream while XLA still holds batches, some of them misaligned."""
    pytest.importorskip("jax")
    program = (
        "import jax, gristmill as gm\n"
        f"loader = gm.DataLoader(gm.presets.lc0({str(games)!r}, pool=10, batch_size=16, reservoir=40, index='off'))\n"
        "step = jax.jit(lambda x: x.sum())\n"
        "for _ in range(5):\n"
        "    batch = loader.get_next(); last = jax.dlpack.from_dlpack(batch['planes']); step(last)\n"
        "    flat = batch['planes'].reshape(-1)[1:]; odd = jax.dlpack.from_dlpack(flat); step(odd)\n"
    )
    for _ in range(PAIRS):
        pair = [subprocess.Popen([sys.executable, "-c", program]) for _ in range(2)]
        assert [child.wait(60) for child in pair] == [0, 0]


def test_a_program_may_end_while_threads_wait(games: Path, tmp_path: Path) -> None:
    """Daemon threads blocked in `get_next` at interpreter exit: one loader has nothing to give, one is full."""
    (tmp_path / "empty").mkdir()
    program = f"""
import threading, time, gristmill as gm
for directory in ({str(tmp_path / "empty")!r}, {str(games)!r}):
    loader = gm.DataLoader(gm.presets.lc0(directory, pool=10, batch_size=4, reservoir=8, index="off", watch=True))
    for _ in range(3):
        threading.Thread(target=lambda loader=loader: [None for _ in loader], daemon=True).start()
time.sleep(0.2)
"""
    for _ in range(3):
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
        assert (done.returncode, done.stderr) == (0, "")
