"""Self-play recorded from Python, read back by NumPy, sqlite3 and gristmill; legacy packs and what fits which rows."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm

SELF_PLAY: Any = np.dtype([("run_id", "<u8"), ("step_idx", "<u4"), ("exps", "u1", (16,))])
LEGACY: Any = np.dtype(
    [
        ("board", "<u8"),
        ("move", "u1"),
        ("ev_legal", "u1"),
        ("ev_values", "<f4", (4,)),
        ("run_id", "<u4"),
        ("step_index", "<u2"),
    ]
)


def play(games: int, steps: int) -> np.ndarray[Any, Any]:
    """Games that are played side by side, in NumPy's hands."""
    rows = np.zeros(games * steps, SELF_PLAY)
    rows["run_id"], rows["step_idx"] = np.tile(np.arange(games), steps), np.repeat(np.arange(steps), games)
    rows["exps"] = np.random.default_rng(0).integers(0, 16, (len(rows), 16))
    return rows


def vectors(rows: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    return np.stack([rows["run_id"], rows["step_idx"], rows["exps"][:, 3]], axis=1).astype("<f4")


def record(folder: Path, rows: np.ndarray[Any, Any], *, embedded: bool = True, **options: Any) -> None:
    size = 3 if embedded else None
    with gm.g2048.SelfPlayWriter(folder, shard_max_steps=100, embedding_size=size, **options) as writer:
        for some in np.array_split(rows, 7):
            writer.write(some["run_id"], some["step_idx"], some["exps"], vectors(some) if embedded else None)
        ids, counts = np.unique(rows["run_id"], return_counts=True)
        for run, steps in zip(ids.tolist(), counts.tolist(), strict=True):
            writer.put_run(run, seed=2**63 + run, steps=steps, max_score=run * 100, highest_tile=2048)
        writer.set_meta("model_id", "v1")
        writer.set_meta("model_id", "v2")


def test_what_is_recorded_is_read_by_numpy_and_sqlite_alone(tmp_path: Path) -> None:
    rows = play(5, 51)
    record(tmp_path / "play", rows)
    names = sorted(path.name for path in (tmp_path / "play").iterdir())
    assert names == [
        *(f"embeddings-{i:06}.npy" for i in (1, 2, 3)),
        "metadata.db",
        *(f"steps-{i:06}.npy" for i in (1, 2, 3)),
    ]
    shards = [np.load(tmp_path / "play" / f"steps-{i:06}.npy") for i in (1, 2, 3)]
    assert [len(shard) for shard in shards] == [100, 100, 55]
    assert shards[0].dtype == SELF_PLAY
    np.testing.assert_array_equal(np.concatenate(shards), rows)
    np.testing.assert_array_equal(np.load(tmp_path / "play/embeddings-000002.npy"), vectors(shards[1]))
    with closing(sqlite3.connect(tmp_path / "play/metadata.db")) as database:
        assert database.execute("SELECT * FROM runs WHERE id = 3").fetchall() == [(3, -(2**63) + 3, 51, 300, 2048)]
        session = dict(database.execute("SELECT * FROM session"))
    assert session["model_id"] == "v2"
    assert session["ts"].isdigit()


def test_self_play_is_selected_and_fed(tmp_path: Path) -> None:
    rows = play(5, 51)
    record(tmp_path / "play", rows)
    opened = gm.open(tmp_path / "play")
    assert (opened.form, len(opened), opened.num_runs, opened.embedding_size) == ("self-play", len(rows), 5, 3)
    some = opened.where("max_score >= ?", 200).filter(step_index=(10, 20))
    chosen = rows[(rows["run_id"] >= 2) & (rows["step_idx"] >= 10) & (rows["step_idx"] <= 20)]
    np.testing.assert_array_equal(some.take(np.arange(len(some))), chosen)
    np.testing.assert_array_equal(some.take_embeddings([[0, -1]]), [vectors(chosen)[[0, -1]]])
    loader = gm.DataLoader(some, encoder=gm.g2048.Steps(), batch_size=10, shuffle=False, epochs=1)
    fed = [{name: np.array(array) for name, array in batch.asdict().items()} for batch in loader.batches()]
    np.testing.assert_array_equal(np.concatenate([batch["tokens"] for batch in fed]), chosen["exps"])
    np.testing.assert_array_equal(np.concatenate([batch["step_index"] for batch in fed]), chosen["step_idx"])
    for encoder in (gm.g2048.HardMove(), gm.g2048.BinnedEV()):
        with pytest.raises(gm.EncoderError, match="what fits them: steps"):
            gm.DataLoader(opened, encoder=encoder)
    with pytest.raises(gm.ConfigError, match="self-play"):
        opened.filter(max_rank=3)
    with pytest.raises(gm.EncoderError, match="self-play"):
        gm.g2048.fit_tokenizer(opened, tmp_path / "tokenizer.json")


def test_legacy_rows_feed_moves_and_values(tmp_path: Path) -> None:
    steps = make_rows(4)
    legacy = np.zeros(len(steps), LEGACY)
    for name, own in (("board", "board"), ("move", "move_dir"), ("ev_legal", "ev_legal"), ("ev_values", "branch_evs")):
        legacy[name] = steps[own]
    legacy["run_id"], legacy["step_index"] = steps["run_id"], steps["step_index"]
    folder = write_pack(tmp_path / "legacy", steps)
    np.save(folder / "steps.npy", legacy)
    (folder / "valuation_types.json").unlink()
    rows = gm.open(folder)
    assert rows.form == "legacy"
    made = rows.encode(gm.g2048.HardMove(), np.arange(len(rows)))
    np.testing.assert_array_equal(made["move_targets"], legacy["move"])
    np.testing.assert_array_equal(made["branch_values"], legacy["ev_values"])
    np.testing.assert_array_equal(made["tokens"], gm.g2048.unpack_boards(legacy["board"]))
    bare = np.zeros(len(steps), [(name, LEGACY[name]) for name in ("board", "run_id", "step_index")])
    for name in bare.dtype.names or ():
        bare[name] = legacy[name]
    np.save(folder / "steps.npy", bare)
    with pytest.raises(gm.EncoderError, match="what fits them: steps"):
        gm.open(folder).encode(gm.g2048.HardMove(), [0])


def test_recordings_are_gone_on_with_and_never_overwritten(tmp_path: Path) -> None:
    rows = play(4, 40)
    folder = tmp_path / "play"
    first, second = rows[rows["run_id"] < 2], rows[rows["run_id"] >= 2]
    record(folder, first)
    with pytest.raises(gm.ConfigError, match="recording already"):
        gm.g2048.SelfPlayWriter(folder)
    with pytest.raises(gm.FormatError, match="earlier recording") as refused:
        record(folder, first, append=True)
    assert refused.value.frame == 0
    record(folder, second, append=True)
    opened = gm.open(folder)
    np.testing.assert_array_equal(opened.take(np.arange(len(opened))), np.concatenate([first, second]))
    with gm.g2048.SessionRecorder(folder) as session:
        session.put_run(9, seed=1, steps=0, max_score=7, highest_tile=2)
        assert session.get_meta("model_id") == "v2"
        assert session.get_meta("none") is None
    with pytest.raises(ValueError, match="finished"):
        session.set_meta("a", "b")
    assert gm.open(folder).where("max_score = 7").run_ids == [9]


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"run_id": [-1, 0]}, "run_id: expected 0 to"),
        ({"step_idx": 2**32}, "step_idx: expected 0 to"),
        ({"step_idx": [0.5, 1.5]}, "step_idx: expected integers"),
        ({"exps": np.zeros((2, 15), int)}, "exps: expected integers of shape"),
        ({"exps": np.full((2, 16), 300)}, "exps: expected 0 to 255"),
        ({"embeddings": np.zeros((2, 4))}, "embeddings: expected shape"),
        ({"embeddings": None}, "embeddings: expected shape"),
        ({"exps": np.full((2, 16), 17)}, "exponent 17"),
    ],
)
def test_steps_that_do_not_fit_are_refused(tmp_path: Path, wrong: dict[str, Any], match: str) -> None:
    right: dict[str, Any] = {
        "run_id": [0, 1], "step_idx": [0, 0], "exps": np.zeros((2, 16), int), "embeddings": np.zeros((2, 3))
    }  # fmt: skip
    with gm.g2048.SelfPlayWriter(tmp_path / "play", embedding_size=3) as writer:
        with pytest.raises(ValueError, match=match):
            writer.write(**{**right, **wrong})
        writer.write(**right)
    assert len(gm.open(tmp_path / "play")) == 2


KILLED = """
import os, sys
import numpy as np
import gristmill as gm
writer = gm.g2048.SelfPlayWriter(sys.argv[1], shard_max_steps=100)
for step in range(130):
    writer.write(0, step, np.full(16, step % 16))
writer.put_run(0, seed=1, steps=130, max_score=1, highest_tile=2)
writer.write(1, 0, np.zeros(16, int))
os._exit(9)
"""


def test_a_killed_recorder_loses_no_game_that_it_had_told_of(tmp_path: Path) -> None:
    folder = tmp_path / "play"
    assert subprocess.run([sys.executable, "-c", KILLED, str(folder)], check=False).returncode == 9
    assert len(gm.open(folder)) == 100
    with gm.g2048.SelfPlayWriter(folder, shard_max_steps=100, append=True) as writer:
        assert writer.recovered == 30
        writer.write(2, 0, np.zeros(16, int))
    rows = gm.open(folder)
    assert rows.take(np.arange(len(rows)))["step_idx"].tolist() == [*range(130), 0]
    assert rows.run_ids == [0, 2]
