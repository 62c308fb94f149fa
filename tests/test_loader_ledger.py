"""Ledgers and places of rows from Python: what was delivered is noted, any batch says which rows it has."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import write_games

import gristmill as gm

DROP = Path(__file__).parent.parent / "crates/gristmill-jobs/tests/data/drop2048"


def test_rows_of_any_batch_are_known_before_and_after_it(tmp_path: Path) -> None:
    folder = write_games(tmp_path / "games", 8)
    gm.pack(folder, tmp_path / "pack")
    games = gm.open(tmp_path / "pack")
    assert isinstance(games, gm.Games)
    train = games.split(val_games=[2, 5]).train
    for rank in range(2):
        loader = gm.DataLoader(train, batch_size=8, seed=3, rank=rank, world_size=2, ledger=tmp_path / "ledger")
        future = loader.xray(2)
        rows = [loader.xray(number) for number in range(2)]
        for number, batch in zip(range(3), loader, strict=False):
            seen = future if number == 2 else rows[number]
            assert [row["row"] for row in seen] == list(range(batch.rows))
            records = games.take([row["pack_row"] for row in seen])
            expected = gm.chess.encode(np.asarray(records), tensors=["values"])["values"]
            np.testing.assert_array_equal(batch["values"], expected)
        assert loader.xray(0) == rows[0]
        assert loader.xray(1, 2) == rows[1][2:3]
        assert rows[0][0]["member"].endswith(".gz")
        assert rows[0][0]["ply"] < games.frames(rows[0][0]["game"])
        with pytest.raises(gm.ConfigError, match="no row 4"):
            loader.xray(0, 4)
    assert {path.name for path in tmp_path.glob("ledger*")} == {"ledger.0-of-2", "ledger.1-of-2"}
    loader.state_dict()
    loader.stop()
    again = gm.DataLoader(train, batch_size=8, seed=3, rank=0, world_size=2, ledger=tmp_path / "ledger")
    with pytest.raises(FileExistsError, match="resume from its state"):
        again.start()


def test_frames_of_any_batch_of_a_stream_are_known(tmp_path: Path) -> None:
    folder = write_games(tmp_path / "games", 8)
    config = gm.presets.lc0(
        folder, pool=8, batch_size=8, reservoir=16, tensors=["ids"], index=tmp_path / "index", watch=False
    )
    loader = gm.DataLoader(config, ledger=tmp_path / "ledger")
    next(loader)
    loader.state_dict()
    assert '"delivered":{"output":"","first":0,"end":1' in (tmp_path / "ledger").read_text()
    with pytest.raises(gm.StageError, match="never counted"):
        loader.xray(30)
    future = loader.xray(2, survey=True)
    next(loader)
    ids = np.asarray(next(loader)["ids"])
    assert [(row["file"], row["game"], row["ply"]) for row in future] == [
        (loader.source_path(int(source)), game, ply) for source, game, ply in ids
    ]
    assert loader.xray(2, 3, survey=True) == future[3:4]
    with pytest.raises(gm.ConfigError, match="no row 8"):
        loader.xray(2, 8, survey=True)
    saved = gm.DataLoader(config)
    saved.load_state_dict(loader.state_dict())
    assert saved.xray(2, survey=True) == future
    with pytest.raises(gm.ConfigError, match="drawn by the run"):
        gm.DataLoader(config).xray(0)


def test_rows_of_2048_are_known_by_their_log(tmp_path: Path) -> None:
    gm.pack(DROP, tmp_path / "pack")
    steps = gm.open(tmp_path / "pack")
    assert isinstance(steps, gm.Rows)
    logs = sorted(path.name for path in DROP.glob("*.jsonl.gz"))
    seen = gm.DataLoader(steps, encoder=gm.g2048.HardMove(), batch_size=64, seed=1).xray(1)
    assert [row["member"] for row in seen] == [logs[row["game"]] for row in seen]
    assert len({row["member"] for row in seen}) > 1


def test_a_batch_that_is_far_can_be_left_off(tmp_path: Path) -> None:
    folder = write_games(tmp_path / "games", 8)
    loader = gm.DataLoader(gm.presets.lc0(folder, pool=8, batch_size=8, seed=1, index="off", watch=False))

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.2)
    try:
        with pytest.raises(KeyboardInterrupt):
            loader.xray(1 << 40, survey=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
