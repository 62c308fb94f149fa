"""Ranks: which process this is, streams that several share, and states on disk."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from generated_games import write_games

import gristmill as gm
from gristmill.loaders.ranks import find_rank

VARIABLES = (
    "RANK",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_RANK",
    "PMI_SIZE",
    "SLURM_PROCID",
    "GROUP_RANK",
)
STREAM: dict[str, Any] = {
    "pool": 24,
    "reservoir": 48,
    "batch_size": 24,
    "seed": 1,
    "index": "off",
    "watch": False,
    "lanes": 4,
    "tensors": ["planes:bits", "values"],
}


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def crowd(tmp_path: Path) -> Path:
    return write_games(tmp_path / "games", 40)


def values(loaders: list[gm.DataLoader]) -> bytes:
    """The rows of the next batch of all ranks together."""
    batches = [loader.get_next(timeout=60) for loader in loaders]
    rows = [np.asarray(batch["values"]) for batch in batches]
    return b"".join(part[i].tobytes() for i in range(len(rows[0])) for part in rows)


def ranks(folder: Path, world_size: int) -> list[gm.DataLoader]:
    config = gm.presets.lc0(folder, **STREAM)
    return [gm.DataLoader(config, rank=rank, world_size=world_size) for rank in range(world_size)]


def test_a_run_is_saved_by_two_ranks_and_continued_by_four_and_one(crowd: Path, tmp_path: Path) -> None:
    whole = ranks(crowd, 1)
    expected = [values(whole) for _ in range(9)]
    loaders, found = ranks(crowd, 2), []
    for world_size in (4, 1):
        found += [values(loaders) for _ in range(3)]
        for loader in loaders:
            loader.save(tmp_path / "state")
        loaders = ranks(crowd, world_size)
        for loader in loaders:
            loader.load(tmp_path / "state")
    assert found + [values(loaders) for _ in range(3)] == expected
    parts = [loader.state_dict() for loader in ranks(crowd, 2)]
    gm.DataLoader(gm.presets.lc0(crowd, **STREAM)).load_state_dict(parts)
    whole_again = gm.DataLoader(gm.presets.lc0(crowd, **STREAM))
    whole_again.load_state_dict(gm.merge_states(parts))
    assert values([whole_again]) == expected[0]
    with pytest.raises(gm.StateError, match="rank 0 of 2 is not among them"):
        gm.merge_states(parts[1:])
    with pytest.raises(gm.StateError, match="both have lane 0"):
        gm.merge_states([*parts, parts[0]])
    with pytest.raises(gm.StateError, match="no states"):
        gm.merge_states([])
    pairs = {"gristmill_pairs_state": 1, "row": 8}
    assert gm.merge_states([pairs, pairs]) == pairs
    with pytest.raises(gm.StateError, match="row: saved 8, configured 9"):
        gm.merge_states([pairs, pairs | {"row": 9}])
    with pytest.raises(gm.StateError, match="rank 1 of 2 and lacks lane 0"):
        gm.DataLoader(gm.presets.lc0(crowd, **STREAM)).load_state_dict(parts[1])


def test_what_is_older_than_the_oldest_needed_may_go(games: Path, tmp_path: Path) -> None:
    config = gm.presets.lc0(games, **(STREAM | {"lanes": 1, "pool": 4, "reservoir": 30}))
    first = gm.DataLoader(config)
    assert first.oldest_needed == {}
    first.get_next()
    oldest = first.oldest_needed["load"]
    state = first.state_dict()
    assert state["oldest_needed"]["load"] == {"name": oldest.name, "key": oldest.key, "key_order": "natural"}
    gone = [path for path in games.iterdir() if oldest.may_delete(path.name)]
    assert len(gone) == len(list(games.iterdir())) - 4
    for path in gone:
        path.unlink()
    second = gm.DataLoader(config)
    second.load_state_dict(state)
    assert [values([second]) for _ in range(5)] == [values([first]) for _ in range(5)]


def test_files_that_are_gone_are_refused_or_left_out(games: Path, tmp_path: Path) -> None:
    config = gm.presets.lc0(games, **(STREAM | {"lanes": 1}))
    first = gm.DataLoader(config)
    first.get_next()
    first.save(tmp_path / "state.json")
    gone = sorted(games.iterdir())[0]
    gone.unlink()
    refused = gm.DataLoader(config)
    refused.load(tmp_path / "state.json")
    with pytest.raises(gm.StateError, match=gone.name):
        refused.start()
    second = gm.DataLoader(config)
    second.load(tmp_path / "state.json", missing="skip")
    second.get_next()
    [vanished] = second.vanished
    assert (vanished.name, vanished.why, vanished.chunks) == (gone.name, "is gone", 1)
    with pytest.raises(gm.ConfigError, match="spill"):
        gm.DataLoader(config).load(tmp_path / "state.json", missing="spill")
    with pytest.raises(ValueError, match="expected 'refuse', 'skip' or 'spill'"):
        second.load(tmp_path / "state.json", missing="maybe")  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError):
        gm.DataLoader(config).load(tmp_path / "none.json")


def test_files_that_are_gone_are_held(games: Path, tmp_path: Path) -> None:
    config = gm.presets.lc0(games, spill=games / ".spill", spill_limit="1GiB", **(STREAM | {"lanes": 1}))
    first = gm.DataLoader(config)
    first.get_next()
    state = first.state_dict()
    for path in games.glob("*.gz"):
        path.unlink()
    expected = [values([first]) for _ in range(5)]
    second = gm.DataLoader(config)
    second.load_state_dict(state, missing="spill")
    assert [values([second]) for _ in range(5)] == expected
    assert second.vanished == []


def test_ranks_that_cannot_share_are_refused_with_advice(crowd: Path) -> None:
    config = gm.presets.lc0(crowd, **STREAM)
    with pytest.raises(gm.ConfigError, match="expected one of 1, 2, 4"):
        gm.DataLoader(config, rank=0, world_size=3)
    with pytest.raises(gm.ConfigError, match="set lanes = 48"):
        gm.DataLoader(gm.presets.lc0(crowd, **(STREAM | {"lanes": 1})), rank=0, world_size=2)
    with pytest.raises(gm.ConfigError, match="rank is 0, and 1 in the configuration"):
        gm.DataLoader(gm.presets.lc0(crowd, **STREAM, rank=1, world_size=2), rank=0)


def test_ranks_are_found_where_launchers_say_them(crowd: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_rank(None, None) == (0, 1)
    monkeypatch.setenv("RANK", "1")
    assert find_rank(None, None) == (0, 1), "half a pair says nothing"
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert find_rank(None, None) == find_rank(1, None) == find_rank(None, 2) == (1, 2)
    assert find_rank(3, 4) == (3, 4), "what is given holds"
    assert gm.DataLoader(gm.presets.lc0(crowd, **STREAM)).outputs[""].batch_size == 12
    with pytest.raises(gm.ConfigError, match="rank 0, but RANK and WORLD_SIZE says rank 1 of 2"):
        find_rank(0, None)
    monkeypatch.setenv("PMI_RANK", "0")
    monkeypatch.setenv("PMI_SIZE", "8")
    with pytest.raises(gm.ConfigError, match="rank 1 of 2, PMI_RANK and PMI_SIZE says rank 0 of 8"):
        find_rank(None, None)
    monkeypatch.setenv("PMI_SIZE", "many")
    with pytest.raises(gm.ConfigError, match="no numbers"):
        find_rank(None, None)
    for name in ("RANK", "WORLD_SIZE", "PMI_RANK", "PMI_SIZE"):
        monkeypatch.delenv(name)
    with pytest.raises(gm.ConfigError, match="world_size 2 alone"):
        find_rank(None, 2)


def test_one_torchrun_on_each_machine_is_one_group(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Slurm starts torchrun on each of two machines, and each of these four processes."""
    caplog.set_level("INFO", "gristmill")
    variables = {"RANK": 5, "WORLD_SIZE": 8, "GROUP_RANK": 1, "GROUP_WORLD_SIZE": 2}
    for name, value in {**variables, "SLURM_PROCID": 1, "SLURM_STEP_NUM_TASKS": 2}.items():
        monkeypatch.setenv(name, str(value))
    assert find_rank(None, None) == find_rank(None, None) == (5, 8)
    assert caplog.text.count("rank 5 of 8: RANK and WORLD_SIZE says so") == 1
    monkeypatch.setenv("SLURM_PROCID", "0")
    with pytest.raises(gm.ConfigError, match="SLURM_PROCID and SLURM_STEP_NUM_TASKS says rank 0 of 2"):
        find_rank(None, None)


def test_frameworks_that_are_in_use_say_the_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    torch = SimpleNamespace(
        is_available=lambda: True, is_initialized=lambda: True, get_rank=lambda: 2, get_world_size=lambda: 3
    )
    monkeypatch.setitem(sys.modules, "torch.distributed", torch)
    assert find_rank(None, None) == (2, 3)
    torch.is_initialized = lambda: False
    assert find_rank(None, None) == (0, 1)


def test_jax_says_nothing_while_it_is_one_process() -> None:
    pytest.importorskip("jax")
    assert find_rank(None, None) == (0, 1)
    assert "JAX_COORDINATOR_ADDRESS" not in os.environ
