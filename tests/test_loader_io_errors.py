"""Files that cannot be read for a while: the loader waits and says so, or ends with the error; no batch changes."""

import re
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from generated_games import game, write_tar

import gristmill as gm

RUN: dict[str, Any] = {
    "pool": 100,
    "reservoir": 0,
    "batch_size": 16,
    "seed": 1,
    "threads": 2,
    "index": "off",
    "tensors": ["ids"],
    "watch": False,
    "queue_capacity": 1,
}

#: Takes all descriptors away from a loader before its start and while it runs, and compares what it gives meanwhile.
DESCRIPTORS = """
import errno, os, resource, sys, warnings
import gristmill as gm

config = gm.presets.lc0(sys.argv[1], pool=100, reservoir=0, batch_size=16, seed=1, threads=2, index="off",
                        tensors=["ids"], watch=False, queue_capacity=1)

def take(loader, batches):
    return [loader.get_next()["ids"].tobytes() for _ in range(batches)]

with gm.DataLoader(config) as loader:
    expected = take(loader, 60)

def use_up():
    held = []
    while True:
        try:
            held.append(os.open(os.devnull, os.O_RDONLY))
        except OSError as error:
            assert error.errno == errno.EMFILE
            return held

resource.setrlimit(resource.RLIMIT_NOFILE, (256, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
taken, told = [], []
loader = gm.DataLoader(config)
for _ in range(3):
    held = use_up()
    warnings.simplefilter("error", RuntimeWarning)
    try:
        while True:
            taken += take(loader, 1)
            # A worker held some of them just now.
            held += use_up()
    except RuntimeWarning as warning:
        told.append(str(warning))
    finally:
        for descriptor in held:
            os.close(descriptor)
    warnings.simplefilter("ignore", RuntimeWarning)
    taken += take(loader, 3)
taken += take(loader, max(60 - len(taken), 0))
assert taken[:60] == expected, "another stream"
assert loader.metrics()["bad_chunks"]["chunks"] == 0
assert all("Too many open files" in text for text in told), told
loader.stop()
print("the same")
"""


def ids(loader: gm.DataLoader, batches: int) -> list[bytes]:
    return [bytes(loader.get_next()["ids"].tobytes()) for _ in range(batches)]


def take_all(loader: gm.DataLoader, taken: list[bytes]) -> None:
    while True:
        taken += ids(loader, 1)


def test_the_policy_is_part_of_every_form_of_a_configuration() -> None:
    config = gm.presets.lc0("games", io_errors="raise")
    assert (gm.presets.lc0("games").io_errors, config.io_errors) == ("wait", "raise")
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    assert gm.DataLoaderConfig.from_textproto(config.to_textproto()) == config
    with pytest.raises(gm.ConfigError, match="io_errors"):
        gm.presets.lc0("games", io_errors="never")  # type: ignore[arg-type]


def test_a_wait_is_warned_of_once_and_ends_when_the_folder_is_back(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **RUN)) as undisturbed:
        expected = ids(undisturbed, 60)
    away = games.with_name("away")
    loader = gm.DataLoader(gm.presets.lc0(games, **RUN))
    taken = ids(loader, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for batches in (1, 1, 3):
            games.rename(away)
            with pytest.raises(RuntimeWarning, match=r"(?s)cannot be read, and the loader waits.*training\."):
                take_all(loader, taken)
            assert loader.maybe_get_next() is None
            metrics = loader.metrics()["io_errors"]
            assert metrics["waiting"] > 0
            assert metrics["by_kind"]["away"] > 0
            assert "its folder" in metrics["latest"][0]
            away.rename(games)
            with warnings.catch_warnings():
                # Files rest for up to a second before they are tried again, which is a wait of its own.
                warnings.simplefilter("ignore", RuntimeWarning)
                taken += ids(loader, batches)
    taken += ids(loader, max(60 - len(taken), 0))
    assert taken[:60] == expected
    assert loader.metrics()["bad_chunks"]["chunks"] == 0
    loader.stop()


def test_ctrl_c_and_stop_end_a_wait(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, **RUN))
    ids(loader, 1)
    games.rename(games.with_name("away"))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.2)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            with pytest.raises(KeyboardInterrupt):
                take_all(loader, [])
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert loader.stop() == []


def test_a_loader_that_is_not_to_wait_raises_and_its_state_goes_on(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **RUN)) as undisturbed:
        expected = ids(undisturbed, 40)
    loader = gm.DataLoader(gm.presets.lc0(games, io_errors="raise", **RUN))
    taken = ids(loader, 1)
    away = games.rename(games.with_name("away"))
    with pytest.raises(FileNotFoundError, match="its folder") as raised:
        take_all(loader, taken)
    assert re.search(r"training\.\d+\.gz", str(raised.value.filename))
    state = loader.state_dict()
    loader.stop()
    away.rename(games)
    again = gm.DataLoader(gm.presets.lc0(games, **RUN))
    again.load_state_dict(state)
    assert (taken + ids(again, max(40 - len(taken), 0)))[:40] == expected
    again.stop()


@pytest.mark.parametrize("tars", [False, True])
def test_descriptors_that_others_use_up_are_waited_for(games: Path, tars: bool) -> None:
    if tars:
        for number in range(3):
            write_tar(games / f"hour{number}.tar", {f"d/training.{100 + number}.gz": game(100 + number, 20)})
    ran = subprocess.run([sys.executable, "-c", DESCRIPTORS, games], capture_output=True, text=True, timeout=300)
    assert ran.stdout == "the same\n", ran.stderr
