"""The simulation of a job in shares, `bench/shares.py`: it agrees with arithmetic, and its sums add up."""

import dataclasses
import importlib.util
import json
import math
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPT = ROOT / "bench/shares.py"
PAGE = ROOT / "docs/design/2026-11-25-past-one-machine.md"


def loaded() -> Any:
    spec = importlib.util.spec_from_file_location("bench_shares", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Dataclasses look their module up.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bench = loaded()

#: A share takes 10 s, and a listing a tenth of a second.
SMALL = bench.Job(
    positions=1e9, shares=1000, inputs=1e4, machines=7, processors=3, position_us=10, listing_us=10, away=60, noticed=5
)
SHARE, LISTING = 10.0, 0.1

#: Everything that can go wrong.
BAD = {"spread": 0.4, "slow": 0.3, "lost": 20.0, "failing": 0.1}


def of(**differs: float) -> Any:
    return bench.simulated(dataclasses.replace(SMALL, **differs))


@pytest.mark.parametrize(
    ("shares", "machines", "processors"), [(1, 1, 1), (1000, 7, 3), (21, 7, 3), (22, 7, 3), (5, 8, 2)]
)
def test_equal_shares_take_whole_rounds(shares: int, machines: int, processors: int) -> None:
    made = of(positions=1e6 * shares, shares=shares, machines=machines, processors=processors)
    rounds = math.ceil(shares / (machines * processors))
    assert made.seconds == pytest.approx(rounds * (SHARE + LISTING))
    assert made.ideal == pytest.approx(SHARE * shares / (machines * processors))
    assert (made.attempts, made.lost, made.repeated, made.away) == (shares, 0, 0, 0)
    assert made.work == pytest.approx(SHARE * shares)
    assert made.listing == pytest.approx(LISTING * shares)
    assert made.listed == shares * 1e4


def test_one_machine_that_is_lost_begins_again() -> None:
    lost = 100.0
    draws = random.Random("losses 1 0")
    first, second = (draws.expovariate(1) * 3600 / lost for _ in range(2))
    work = (first + second) / 2
    assert first < work < second, "the machine is lost once"
    alone = {"shares": 1, "machines": 1, "processors": 1, "inputs": 0, "positions": work * 1e5, "lost": lost}
    made = of(**alone)
    assert made.seconds == pytest.approx(first + 60 + work), "what it did is lost, and it comes back after a minute"
    assert (made.attempts, made.lost) == (2, 1)
    assert made.repeated == pytest.approx(first)
    assert made.away == pytest.approx(60)
    # Another machine takes the share when the loss is noticed, if that comes before.
    assert of(**alone, away=1).seconds == pytest.approx(first + 5 + work)


def test_a_slow_machine_takes_longer() -> None:
    made = of(slow=1.0, slowness=2.5)
    assert made.seconds == pytest.approx(2.5 * of().seconds)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("option", "values"), [("lost", [0, 1, 10, 40]), ("failing", [0, 0.01, 0.1, 0.5])])
def test_more_failures_never_make_it_faster(option: str, values: list[float], seed: int) -> None:
    made = [of(**{option: value}, seed=seed) for value in values]
    times = [one.seconds for one in made]
    assert times == sorted(times)
    assert times[0] < times[-1]
    repeated = [one.repeated for one in made]
    assert repeated == sorted(repeated)
    assert repeated[0] == 0 < repeated[-1]


@pytest.mark.parametrize("seed", range(5))
def test_the_processor_time_adds_up(seed: int) -> None:
    made = of(**BAD, seed=seed)
    parts = made.work + made.repeated + made.listing + made.idle + made.away
    assert parts == pytest.approx(made.seconds * 21)
    assert min(made.work, made.repeated, made.listing, made.idle, made.away) > 0
    assert made.attempts > 1000
    assert made.operations >= made.attempts * SMALL.operations


def test_the_commit_is_of_bytes_games_and_notes() -> None:
    made = of(
        positions=8e6,
        shares=8,
        game_positions=100,
        position_bytes=50,
        row_bytes=100,
        row_us=5,
        copied=1e6,
        note_bytes=80,
    )
    assert (made.rows, made.metadata_bytes) == (8e4, 8e6)
    assert made.noted_bytes == 80 * (1 + 2), "two files of 4 million positions: one is noted twice"
    assert made.commit == pytest.approx((8e6 * 50 + 240 + 2 * 8e6) / 1e6 + 8e4 * 5e-6)


def test_a_job_that_cannot_end_is_refused() -> None:
    with pytest.raises(SystemExit, match="machines are lost before a share is done"):
        of(shares=1, lost=3600.0, away=1)


def run(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run([sys.executable, SCRIPT, *words], capture_output=True, text=True, check=False)


def test_the_same_options_give_the_same_numbers() -> None:
    line = ["--shares", "3000", "--lost", "0.5", "--spread", "0.3", "--failing", "0.02", "--json"]
    one, two, other = run(*line), run(*line), run(*line, "--seed", "2")
    assert one.stdout == two.stdout != other.stdout
    job = bench.Job(shares=3000, lost=0.5, spread=0.3, failing=0.02)
    assert json.loads(one.stdout) == dataclasses.asdict(bench.simulated(job))
    shown = run(*line[:-1])
    assert shown.stdout.startswith("last share")
    assert "at 3000 shares" in shown.stdout


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("--shares 0", "at least one share"),
        ("--machines 0", "at least one share"),
        ("--failing 1", "less than all attempts"),
        ("--lost -1", "numbers from 0 on"),
        ("--copied 0", "bytes a second"),
        ("--shares 1.5", "invalid int value"),
        ("--inputs nan", "numbers from 0 on"),
    ],
)
def test_options_that_make_no_job_are_refused(words: str, says: str) -> None:
    done = run(*words.split())
    assert done.returncode == 2
    assert says in done.stderr


@pytest.mark.parametrize("option", ["--table", "--costs"])
def test_a_table_of_the_page_is_what_the_script_prints(option: str) -> None:
    done = run(option)
    assert done.returncode == 0, done.stderr
    assert done.stdout in PAGE.read_text()
