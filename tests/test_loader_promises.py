"""What the loader passes on: policies for missing files, the end of a block, skips, waits of no time."""

from pathlib import Path
from typing import Any

import pytest
from generated_games import write_games

import gristmill as gm

STREAM: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "threads": 2, "index": "off"}


def config(games: Path, **more: Any) -> gm.DataLoaderConfig:
    return gm.presets.lc0(games, **{**STREAM, **more})


@pytest.mark.parametrize("way", ["state", "file"])
def test_what_is_done_about_missing_files_is_for_the_caller_to_say(games: Path, tmp_path: Path, way: str) -> None:
    with gm.DataLoader(config(games)) as loader:
        loader.get_next()
        state = loader.state_dict()
        loader.save(tmp_path / "state.json")
    gone = sorted(games.glob("*.gz"))[-1]
    gone.unlink()

    def again(**missing: Any) -> gm.DataLoader:
        new = gm.DataLoader(config(games))
        if way == "state":
            new.load_state_dict(state, **missing)
        else:
            new.load(tmp_path / "state.json", **missing)
        return new

    for missing in ({}, {"missing": "refuse"}):
        with pytest.raises(gm.StateError, match=gone.name):
            again(**missing).start()
    with again(missing="skip") as loader:
        assert [file.name for file in loader.vanished] == [gone.name]
        assert loader.get_next().number == 1
    with pytest.raises(ValueError, match="missing"):
        again(missing="perhaps")
    with pytest.raises(gm.ConfigError, match="spill"):
        again(missing="spill")


def test_leaving_the_block_stops_the_loader(games: Path) -> None:
    with gm.DataLoader(config(games)) as loader:
        batch = loader.get_next()
    with pytest.raises(gm.StoppedError):
        loader.get_next()
    assert batch["probs"].shape == (16, 1858), "what was delivered stays"
    failed = gm.DataLoader(config(games))
    with pytest.raises(ZeroDivisionError), failed:
        1 / 0  # noqa: B018
    with pytest.raises(gm.StoppedError):
        failed.get_next()


def test_skips_are_added_to_those_of_the_configuration(games: Path) -> None:
    skipping = config(games)
    skipping.skip = [(1, 3)]
    for source in (skipping, skipping.to_dict()):
        with gm.DataLoader(source, skip=[(4, 5)]) as loader:
            assert [loader.get_next().number for _ in range(3)] == [0, 3, 5]
            assert [str(skip) for skip in loader.config.skip or ()] == ["1..3", "4..5"]
    assert skipping.skip == [(1, 3)], "the configuration is as it was"


def test_a_wait_of_no_time_is_one_that_can_pass(tmp_path: Path) -> None:
    # A reservoir that takes tens of thousands of positions before the first batch.
    games = write_games(tmp_path / "games", 12)
    with gm.DataLoader(config(games, reservoir=60_000, memory="2GiB")) as loader:
        with pytest.raises(TimeoutError, match="0 seconds"):
            loader.get_next(timeout=0)
        with pytest.raises(TimeoutError, match=r"-1\.0 seconds"):
            loader.get_next(timeout=-1.0)
        assert loader.maybe_get_next() is None
