"""States and journals: the same batches again, to the bit."""

import time
from pathlib import Path
from typing import Any

import pytest
from generated_games import frames_in, write_games

import gristmill as gm

STREAM: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "threads": 2, "index": "off"}


def test_a_state_continues_to_the_bit(games: Path) -> None:
    config = gm.presets.lc0(games, watch=False, sampling_rate=0.5, **STREAM)
    first = gm.DataLoader(config)
    for _ in range(7):
        first.get_next()
    state = first.state_dict()
    expected = [first.get_next() for _ in range(10)]
    first.stop()
    second = gm.DataLoader(config)
    second.load_state_dict(state)
    for batch in expected:
        again = second.get_next()
        assert again.number == batch.number
        for name in batch.names:
            assert again[name].tobytes() == batch[name].tobytes()


def test_a_state_that_does_not_fit_is_refused(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, watch=False, **STREAM))
    loader.get_next()
    state = loader.state_dict()
    other = gm.DataLoader(gm.presets.lc0(games, watch=False, **(STREAM | {"batch_size": 8})))
    with pytest.raises(gm.StateError):
        other.load_state_dict(state)
    with pytest.raises(gm.StateError):
        other.load_state_dict({"nonsense": 1})
    for wrong in (3, "run/state.json"):
        with pytest.raises(TypeError, match="is no state; expected what state_dict gave"):
            other.load_state_dict(wrong)  # type: ignore[arg-type]


def test_a_journal_replays_the_arrivals(games: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {
        "pool": 30,
        "reservoir": 40,
        "batch_size": 16,
        "seed": 4,
        "index": "off",
        "tensors": ["ids", "planes:bits"],
        "journal": tmp_path / "journal.jsonl",
    }
    with gm.DataLoader(gm.presets.lc0(games, **options)) as loader:
        first = [loader.get_next() for _ in range(5)]
        write_games(games, 3, first=500)
        until = time.monotonic() + 20
        while not any(f >= 500_000 for f in frames_in(loader, first[-1:])):
            assert time.monotonic() < until
            first.append(loader.get_next())
    with gm.DataLoader(gm.presets.lc0(games, replay=True, **options)) as loader:
        for batch in first:
            again = loader.get_next(timeout=20)
            assert again["planes"].tobytes() == batch["planes"].tobytes()
