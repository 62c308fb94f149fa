"""Feeds of any loader, without a framework: what is on its way, states of what was given, errors at their place."""

import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from feeds import KINDS, maker, plain
from generated_games import write_games

import gristmill as gm
from gristmill.frameworks.ahead import DeviceFeed


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    return maker(tmp_path_factory.mktemp("data"))


def bring(batch: Any) -> Callable[[], dict[str, Any]]:
    """As a device would have it: a copy."""
    found = plain(batch)
    return lambda: found


def feed(loader: Any, ahead: int = 2, alias: str = "") -> DeviceFeed:
    return DeviceFeed(loader, alias, ahead, bring)


@pytest.mark.parametrize("kind", KINDS)
def test_passes_are_those_of_the_loader(make: Callable[[str], Any], kind: str) -> None:
    loader = make(kind)
    expected = [[plain(batch) for batch in loader] for _ in range(2)]
    for ahead in (0, 1, 5):
        with feed(make(kind), ahead) as fed:
            assert [list(fed) for _ in range(2)] == expected
            if kind not in ("pairs", "steps"):
                with pytest.raises(gm.EndOfStream):
                    next(fed)


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_resumes_after_every_batch_that_was_given(make: Callable[[str], Any], kind: str) -> None:
    with feed(make(kind), 0) as whole:
        expected = [batch for _ in range(2) for batch in whole]
    assert len(expected) >= 6
    with feed(make(kind), 3) as first:
        states = [first.state_dict()]
        for batch in expected:
            assert first.get_next() == batch
            states.append(first.state_dict())
    for given, state in enumerate(states):
        with feed(make(kind), 2) as second:
            second.load_state_dict(json.loads(json.dumps(state)))
            assert [second.get_next() for _ in expected[given:]] == expected[given:]
    # A feed that runs goes back, too.
    with feed(make(kind), 3) as third:
        third.get_next()
        third.load_state_dict(states[2])
        assert third.get_next() == expected[2]


def test_several_outputs_are_fed_and_resumed_together(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 40)
    options: dict[str, Any] = {"pool": 20, "reservoir": 40, "batch_size": 16, "seed": 1, "watch": False, "index": "off"}
    config = gm.presets.lc0(games, split={"train": 3, "test": 1}, tensors=["values", "played_idx"], **options)

    def feeds() -> tuple[DeviceFeed, DeviceFeed]:
        loader = gm.DataLoader(config)
        return feed(loader, 3, "train"), feed(loader, 1, "test")

    train, test = feeds()
    expected = [train.get_next() for _ in range(9)], [test.get_next() for _ in range(5)]
    train.close()
    with pytest.raises(gm.ConfigError, match="no output is called ''; expected alias= of 'train', 'test'") as refused:
        feed(gm.DataLoader(config))
    assert refused.value.field == "alias"
    first, other = feeds()
    for taken, tested in ((0, 1), (1, 1), (3, 1), (3, 2), (6, 3)):
        while first_given(first) < taken:
            first.get_next()
        while first_given(other) < tested:
            other.get_next()
        # While the first scan goes on, a later state knows more files; the place and what follows are the same.
        for state in (first.state_dict(), other.state_dict()):
            assert {alias: output["batch"] for alias, output in state["outputs"].items()} == {
                "train": taken,
                "test": tested,
            }
            again, beside = feeds()
            again.load_state_dict(state)
            assert [again.get_next() for _ in range(3)] == expected[0][taken : taken + 3]
            assert [beside.get_next() for _ in range(2)] == expected[1][tested : tested + 2]
            again.close()
    first.close()


def first_given(one: DeviceFeed) -> int:
    """Batches of its output that a state counts."""
    return int(one.state_dict()["outputs"][one.alias]["batch"])


def test_no_more_are_on_their_way_than_was_said(make: Callable[[str], Any]) -> None:
    for ahead in (0, 1, 3):
        brought = 0

        def count(batch: Any) -> Callable[[], dict[str, Any]]:
            nonlocal brought
            brought += 1
            return dict

        with DeviceFeed(make("games"), "", ahead, count) as fed:
            most = 0
            for given, _ in enumerate(fed, 1):
                assert given <= brought <= given + ahead
                most = max(most, brought - given)
                assert fed.rows in (2, 50)
        assert most <= ahead


def test_an_error_of_the_loader_is_raised_at_its_place_after_all_batches_before(tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 12)
    bad = sorted(games.iterdir())[8]
    bad.write_bytes(bad.read_bytes()[:200])
    options: dict[str, Any] = {"epochs": 1, "batch_size": 10, "seed": 1, "bad_chunks": "raise", "index": "off"}

    def taken(batches: Any) -> tuple[list[Any], str]:
        found = []
        try:
            for batch in batches:
                found.append(batch if isinstance(batches, DeviceFeed) else plain(batch))
        except gm.FormatError as error:
            return found, str(error)
        return found, "no error"

    config = gm.presets.lc0(games, tensors=["values"], **options)
    expected = taken(gm.DataLoader(config))
    assert len(expected[0]) >= 3
    assert bad.name in expected[1]
    for ahead in (0, 8):
        assert taken(feed(gm.DataLoader(config), ahead)) == expected


def test_a_batch_that_cannot_be_brought_over_stops_the_feed(make: Callable[[str], Any]) -> None:
    brought = 0

    def refuse(batch: Any) -> Callable[[], dict[str, Any]]:
        nonlocal brought
        brought += 1
        if brought == 3:
            raise ValueError("no room for it")
        return bring(batch)

    with feed(make("games"), 0) as whole:
        expected = list(whole)
    with DeviceFeed(make("games"), "", 2, refuse) as fed:
        assert [next(fed), next(fed)] == expected[:2]
        for _ in range(2):
            with pytest.raises(ValueError, match="no room for it"):
                next(fed)
        fed.load_state_dict(fed.state_dict())
        assert next(fed) == expected[2]


def test_an_interrupt_loses_no_batch_silently(make: Callable[[str], Any]) -> None:
    brought = 0

    def interrupt(batch: Any) -> Callable[[], dict[str, Any]]:
        nonlocal brought
        brought += 1
        if brought == 2:
            raise KeyboardInterrupt
        return bring(batch)

    with feed(make("games"), 0) as whole:
        expected = list(whole)
    with DeviceFeed(make("games"), "", 0, interrupt) as fed:
        assert next(fed) == expected[0]
        with pytest.raises(KeyboardInterrupt):
            next(fed)
        with pytest.raises(gm.StoppedError, match=r"load feed\.state_dict"):
            next(fed)
        fed.load_state_dict(fed.state_dict())
        assert next(fed) == expected[1]


def test_a_timeout_loses_nothing(tmp_path: Path) -> None:
    (tmp_path / "games").mkdir()
    config = gm.presets.lc0(tmp_path / "games", pool=4, reservoir=20, batch_size=10, seed=1, watch=True, index="off")
    with feed(gm.DataLoader(config)) as fed:
        for _ in range(2):
            with pytest.raises(TimeoutError, match=r"no batch within 0\.05 seconds"):
                fed.get_next(timeout=0.05)
        write_games(tmp_path / "other", 8)
        for path in sorted((tmp_path / "other").iterdir()):
            path.rename(tmp_path / "games" / path.name)
        assert fed.get_next(timeout=60)["probs"][0] == (10, 1858)


def test_a_feed_that_was_closed_gives_no_more(make: Callable[[str], Any]) -> None:
    loader = make("stream")
    fed = feed(loader)
    batch = next(fed)
    fed.close()
    fed.close()
    with pytest.raises(gm.StoppedError, match="the feed was closed"):
        next(fed)
    with pytest.raises(gm.StoppedError):
        loader.get_next()
    assert batch["values"]


def test_what_is_no_loader_and_no_number_is_refused(make: Callable[[str], Any]) -> None:
    for wrong in (-1, 1.5, True, None):
        with pytest.raises(ValueError, match=r"ahead=.*expected how many batches may be on their way"):
            feed(make("games"), wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="expected a loader of gristmill, found list"):
        feed([])
    with pytest.raises(TypeError, match="`alias` belongs to"):
        feed(make("steps"), 2, "train")
    with pytest.raises(gm.ConfigError, match="no output is called 'tests'"):
        feed(make("games"), 2, "tests")
    with pytest.raises(TypeError, match="a feed belongs to its process"):
        pickle.dumps(feed(make("games")))
    fed = feed(make("games"))
    assert (len(fed), bool(fed), fed.ahead) == (len(make("games")), True, 2)
    assert "on_their_way=0" in repr(fed)


@pytest.mark.parametrize("end", ["sys.exit(3)", "raise SystemExit(3)", "os.kill(os.getpid(), signal.SIGINT)"])
def test_a_process_ends_in_the_midst_of_feeding(tmp_path: Path, end: str) -> None:
    games = write_games(tmp_path / "games", 12)
    program = f"""
import os, signal, sys, gristmill as gm
from gristmill.frameworks.ahead import DeviceFeed
signal.signal(signal.SIGINT, signal.default_int_handler)
config = gm.presets.lc0({str(games)!r}, pool=10, reservoir=40, batch_size=16, seed=1, index="off")
feed = DeviceFeed(gm.DataLoader(config), "", 4, lambda batch: lambda: dict(batch.items()))
for number, batch in enumerate(feed):
    if number == 3:
        {end}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode in ((-2, 130) if "SIGINT" in end else (3,)), done.stderr


def test_a_ledger_has_what_was_given(tmp_path: Path) -> None:
    gm.pack(write_games(tmp_path / "games", 12), tmp_path / "pack")
    ledger = tmp_path / "ledger"

    def loader() -> gm.DataLoader:
        return gm.DataLoader(gm.open(tmp_path / "pack"), batch_size=20, epochs=1, seed=1, ledger=ledger)

    def delivered() -> list[tuple[int, int]]:
        found = (json.loads(line.split(" ", 1)[1]).get("delivered") for line in ledger.read_text().splitlines())
        return [(event["first"], event["end"]) for event in found if event]

    first = feed(loader(), 4)
    expected = [next(first) for _ in range(3)]
    state = first.state_dict()
    assert delivered() == [(0, 3)]
    first.close()
    with feed(loader(), 20) as second:
        second.load_state_dict(state)
        expected += list(second)
        with pytest.raises(gm.EndOfStream):
            next(second)
    assert delivered()[-1][1] == len(expected) == 13
    ends = [json.loads(line.split(" ", 1)[1]).get("ended") for line in ledger.read_text().splitlines()]
    assert [end["batch"] for end in ends if end] == [13]
    again = gm.DataLoader(gm.open(tmp_path / "pack"), batch_size=20, epochs=1, seed=1)
    assert [plain(batch) for batch in again] == expected
