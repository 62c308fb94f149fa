"""Errors of a disk or its server while games are read: no verdict, no lost game, no other batch."""

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from generated_games import game, write_tar

#: Makes the library that refuses to read.
SOURCE = Path(__file__).with_name("faults") / "refuse.c"

#: Takes batches of a run whose files fail in the middle, and compares them with those of a run whose files do not.
RUN = """
import json, sys, warnings
from pathlib import Path
from typing import Any
import gristmill as gm

games, control, fault, policy = sys.argv[1:]
config = gm.presets.lc0(games, pool=100, reservoir=0, batch_size=16, seed=1, threads=2, watch=False, queue_capacity=1,
                        tensors=["ids"], io_errors=policy)

def take(loader, batches):
    return [loader.get_next()["ids"].tobytes() for _ in range(batches)]

with gm.DataLoader(config) as loader:
    expected = take(loader, 80)

loader = gm.DataLoader(config)
taken = take(loader, 1)
Path(control).write_text(fault)
raised = None
try:
    warnings.simplefilter("error", RuntimeWarning)
    while True:
        taken += take(loader, 1)
except (RuntimeWarning, OSError) as error:
    raised = error
metrics = loader.metrics()
state = loader.state_dict()
Path(control).unlink()
warnings.simplefilter("ignore", RuntimeWarning)
if policy == "raise":
    loader.stop()
    loader = gm.DataLoader(config)
    loader.load_state_dict(state)
taken += take(loader, max(80 - len(taken), 0))
print(json.dumps({
    "same": taken[:80] == expected,
    "raised": [type(raised).__name__, str(raised)],
    "errno": getattr(raised, "errno", None),
    "waiting": metrics["io_errors"]["waiting"],
    "bad": metrics["bad_chunks"]["chunks"] + loader.metrics()["bad_chunks"]["chunks"],
}))
loader.stop()
"""


@pytest.fixture(scope="session")
def refuse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that lets opening or reading of games fail while a file says so."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("skipped: needs a C compiler on Linux, to make a library that lets reads fail")
    library = tmp_path_factory.mktemp("faults") / "refuse.so"
    made = [compiler, "-shared", "-fPIC", "-O1", "-D_GNU_SOURCE", "-o", str(library), str(SOURCE)]
    subprocess.run(made, check=True, capture_output=True)
    return library


def environment(library: Path, control: Path, cache: Path) -> dict[str, str]:
    return os.environ | {"LD_PRELOAD": str(library), "REFUSE": str(control), "XDG_CACHE_HOME": str(cache)}


def faulted(library: Path, games: Path, fault: str, policy: str) -> dict[str, Any]:
    control = games.with_name("fault")
    command = [sys.executable, "-c", RUN, str(games), str(control), fault, policy]
    surroundings = environment(library, control, games.with_name("cache"))
    ran = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize("fails", ["o", "r"])
@pytest.mark.parametrize("number", [errno.EIO, errno.ESTALE, errno.EAGAIN, errno.EACCES, errno.ENFILE])
def test_no_error_of_reading_costs_a_game(games: Path, refuse: Path, number: int, fails: str) -> None:
    for tar in range(2):
        write_tar(games / f"hour{tar}.tar", {f"d/training.{100 + tar}.gz": game(100 + tar, 20)})
    found = faulted(refuse, games, f"{number} {fails}", "wait")
    assert found["same"], found
    assert found["bad"] == 0, found
    assert found["waiting"], found
    kind, text = found["raised"]
    assert kind == "RuntimeWarning"
    assert f"os error {number}" in text


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES])
def test_a_stream_that_raises_names_the_error_and_its_state_resumes(games: Path, refuse: Path, number: int) -> None:
    found = faulted(refuse, games, f"{number} r", "raise")
    assert found["same"], found
    assert found["bad"] == 0, found
    assert found["errno"] == number, found
