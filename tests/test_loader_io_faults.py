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
from generated_games import game, write_gz, write_tar

import gristmill as gm

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


#: Takes batches of a run in which a file is moved in the moment it is opened, while games come or not.
MOVED = """
import json, os, sys, time
from pathlib import Path
import gristmill as gm

games, still, spill, comes = sys.argv[1:]

def loader(folder, held):
    return gm.DataLoader(gm.presets.lc0(folder, pool=100, reservoir=0, batch_size=16, seed=1, threads=2, watch=True,
                                        queue_capacity=1, tensors=["ids"], spill=held or None))

def take(loader, batches):
    return [loader.get_next()["ids"].tobytes() for _ in range(batches)]

def chunks(loader):
    (pool,) = (stage for stage in loader.metrics()["stages"] if stage["kind"] == "shuffling_chunk_pool")
    return next(gauge["value"] for gauge in pool["gauges"] if gauge["name"] == "chunks_total")

with loader(still, "") as quiet:
    expected = take(quiet, 40)
with loader(games, spill) as moving:
    taken = take(moving, 40)
    total = chunks(moving)
    if comes:
        Path(comes).rename(Path(games, Path(comes).name))
        deadline = time.monotonic() + 60
        while chunks(moving) == total and time.monotonic() < deadline:
            take(moving, 1)
    print(json.dumps({"same": taken == expected, "came": chunks(moving) - total,
                      "bad": moving.metrics()["bad_chunks"]["chunks"]}))
"""


def moving(
    library: Path, games: Path, what: str, name: str, *, spill: bool, comes: Path | None = None
) -> dict[str, Any]:
    """What came of a run that opens (`o`) or links (`l`) a file of this name for some time just as it is moved."""
    (games / "elsewhere").mkdir()
    still = games.with_name("still")
    shutil.copytree(games, still)
    moves = f"{what} {games / name} {games / 'elsewhere' / name}"
    surroundings = environment(library, games.with_name("fault"), games.with_name("cache")) | {"MOVE": moves}
    held = str(games.with_name("held")) if spill else ""
    command = [sys.executable, "-c", MOVED, str(games), str(still), held, str(comes or "")]
    ran = subprocess.run(command, env=surroundings, capture_output=True, text=True, timeout=240)
    assert ran.returncode == 0, ran.stderr
    assert (games / "elsewhere" / name).exists(), "it was moved"
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


@pytest.mark.parametrize(
    ("what", "name", "spill"),
    [
        ("o 1", "training.5.gz", False),
        ("l 1", "training.5.gz", True),
        ("o 1", "hour.tar", False),
        ("l 1", "hour.tar", True),
    ],
    ids=["a draw", "held at the first scan", "a tar as it is indexed", "a tar as it is held"],
)
def test_what_is_moved_as_it_is_opened_is_found_again(
    games: Path, refuse: Path, what: str, name: str, spill: bool
) -> None:
    write_tar(games / "hour.tar", {f"d/training.{n}.gz": game(n, 20) for n in (100, 101)})
    found = moving(refuse, games, what, name, spill=spill)
    assert found == {"same": True, "came": 0, "bad": 0}


@pytest.mark.parametrize(
    ("what", "name", "spill", "chunks"),
    # Of an arrival, the search reads the bytes first.
    [("l 1", "training.99.gz", True, 1), ("o 2", "later.tar", False, 2)],
    ids=["held as it comes", "a tar as it comes"],
)
def test_an_arrival_that_is_moved_as_it_is_opened_comes_in_the_same_life(
    games: Path, refuse: Path, what: str, name: str, spill: bool, chunks: int
) -> None:
    comes = games.with_name(name)
    if name.endswith(".tar"):
        write_tar(comes, {f"d/training.{n}.gz": game(n, 20) for n in (200, 201)})
    else:
        write_gz(comes, game(99, 20))
    found = moving(refuse, games, what, name, spill=spill, comes=comes)
    assert found == {"same": True, "came": chunks, "bad": 0}


#: Packs logs of games, and verifies what came of it where that went well.
PACK = """
import sys
import gristmill as gm

logs, pack = sys.argv[1:]
try:
    gm.pack(logs, pack)
except (OSError, gm.FormatError):
    sys.exit(9)
"""


def test_a_write_that_fails_behind_the_last_row_publishes_no_half_of_a_database(tmp_path: Path, refuse: Path) -> None:
    logs = tmp_path / "logs"
    gm.generate("2048", logs, games=2, seed=5, moves_max=40, depth=0)
    ended = {}
    for first in range(1, 40):
        pack = tmp_path / f"pack{first}"
        surroundings = os.environ | {"LD_PRELOAD": str(refuse), "WRITES": str(first)}
        ran = subprocess.run([sys.executable, "-c", PACK, logs, pack], env=surroundings, check=False, timeout=240)
        ended[first] = ran.returncode
        if ran.returncode == 0:
            names = sorted(file.name for file in pack.iterdir())
            assert not [name for name in names if name.startswith("metadata.") and name != "metadata.db"], (
                first,
                names,
            )
            assert len(gm.open(pack)) == 80
            break
        assert ran.returncode == 9, first
        assert not (pack / "metadata.db").exists(), first
    assert ended.popitem()[1] == 0, "each write was the first to fail, and then none"
    assert len(ended) > 5
