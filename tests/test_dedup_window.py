"""The stage `dedup_window` from Python: what it drops, its states, and its refusals."""

from pathlib import Path

import numpy as np
import pytest
from generated_games import frames_in, game, write_gz

import gristmill as gm


def config_of(games: Path, window: int) -> gm.DataLoaderConfig:
    """Two passes over the games, with such a stage after the unpacker."""
    config = gm.presets.lc0(games, epochs=2, reservoir=0, batch_size=16, seed=1, tensors=["ids", "values"], index="off")
    tensors = next(stage for stage in config.stage if stage.tensor_generator)
    config.stage.append(gm.StageConfig("dedup", tensors.input, dedup_window=gm.DedupWindowConfig(window=window)))
    tensors.input = ["dedup"]
    return config


def test_each_position_comes_once_within_the_window(games: Path) -> None:
    assert gm.DataLoaderConfig.from_toml(config_of(games, 300).to_toml()) == config_of(games, 300)
    with gm.DataLoader(config_of(games, 300)) as loader:
        frames = frames_in(loader, list(loader.batches()))
        dedup = next(stage for stage in loader.metrics()["stages"] if stage["kind"] == "dedup_window")
    assert len(frames) == len(set(frames)) == 252
    assert {count["name"]: count["total"] for count in dedup["counts"]} == {"frames": 252, "duplicates": 252}
    with gm.DataLoader(config_of(games, 100)) as loader:
        assert len(frames_in(loader, [*loader.batches(), *loader.batches()])) == 504


def test_loops_are_passes_of_what_comes_out(tmp_path: Path) -> None:
    for number in range(12):
        records = game(number, 20 + number % 3)
        write_gz(tmp_path / f"training.{number}.a.gz", records)
        records["visits"] += 500_000
        # What ends a pass is known once its last game was judged: that one gives rows.
        if number < 11:
            write_gz(tmp_path / f"training.{number}.b.gz", records)
    for batch_size, resumed in [(12, 0), (12, 21), (10, 3)]:
        config = config_of(tmp_path, 30)
        next(stage.tensor_generator for stage in config.stage if stage.tensor_generator).batch_size = batch_size
        loader = gm.DataLoader(config)
        if resumed:
            for _ in range(resumed):
                loader.get_next()
            state = loader.state_dict()
            loader.stop()
            loader = gm.DataLoader(config)
            loader.load_state_dict(state)
        # A loop over nothing is an error: after the end of the first pass there is one left.
        loops = [len(list(loader.batches())) for _ in range(1 if resumed == 21 else 2)]
        loader.stop()
        of_pass = -(-252 // batch_size)
        whole = -(-504 // batch_size)
        assert loops == {0: [of_pass, whole - of_pass], 21: [21], 3: [of_pass - 3, whole - of_pass]}[resumed]


def test_a_state_resumes_to_the_bit(games: Path) -> None:
    original = gm.DataLoader(config_of(games, 90))
    for _ in range(9):
        original.get_next()
    state = original.state_dict()
    assert set(state["outputs"][""]["lanes"]["0"]["steps"]["dedup"]["own"]) == {"keys", "dropped_in_a_row"}
    expected = [np.array(original.get_next()["ids"]) for _ in range(9)]
    original.stop()
    restored = gm.DataLoader(config_of(games, 90))
    restored.load_state_dict(state)
    for rows in expected:
        np.testing.assert_array_equal(restored.get_next()["ids"], rows)
    restored.stop()
    with pytest.raises(gm.StateError, match="window: saved 90, configured 91"):
        gm.DataLoader(config_of(games, 91)).load_state_dict(state)


def test_rows_of_a_planned_batch_are_those_that_come(games: Path) -> None:
    loader = gm.DataLoader(config_of(games, 300))
    foreseen = loader.xray(5, survey=True)
    for _ in range(5):
        loader.get_next()
    ids = np.asarray(loader.get_next()["ids"])
    assert [(row["file"], row["ply"]) for row in foreseen] == [
        (loader.source_path(int(source)), frame) for source, _, frame in ids
    ]
    loader.stop()


def test_what_cannot_be_is_refused_by_name(games: Path) -> None:
    for window in (0, 1 << 40):
        with pytest.raises(gm.ConfigError, match="expected 1 to") as caught:
            gm.DataLoader(config_of(games, window))
        assert (caught.value.stage, caught.value.field) == ("dedup", "window")
    with pytest.raises(TypeError, match="window"):
        gm.DedupWindowConfig(windw=3)  # type: ignore[call-arg]
    with pytest.raises(gm.ConfigError, match=r"no form in protobuf|dedup_window"):
        config_of(games, 3).to_textproto()
