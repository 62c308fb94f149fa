"""Binpacks: opened, fed from a folder and from a pack, filtered by marks, converted, and refused with their place."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from feeds import check_resuming

import gristmill as gm

#: Written by sfbinpack: 189 chains of 1597 positions.
GOLDEN = Path(__file__).resolve().parents[1] / "fuzz/corpus/binpack/golden"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    shutil.copy(GOLDEN, tmp_path / "in/a.binpack")
    return tmp_path / "in"


def test_a_file_opens_as_records(folder: Path) -> None:
    source = gm.open(folder / "a.binpack")
    assert (source.format, len(source), source.num_frames) == ("stockfish.binpack", 189, 1597)
    records = np.concatenate([np.asarray(source[i]) for i in range(len(source))])
    assert records.dtype.itemsize == 33
    assert set(records["result"]) == {-1, 0, 1}
    first = np.asarray(source[0])
    np.testing.assert_array_equal(np.diff(first["game_ply"].astype(int)), 1)
    np.testing.assert_array_equal(first["result"][1:], -first["result"][:-1])


def test_a_folder_is_a_stream_that_resumes(folder: Path) -> None:
    config = gm.presets.lc0(folder, encoder="binpack", epochs=1, batch_size=64, seed=5, reservoir=100)
    batches = [{name: np.array(array) for name, array in batch.items()} for batch in gm.DataLoader(config)]
    assert set(batches[0]) >= {"stm", "nstm", "score", "result"}
    assert sum(len(batch["score"]) for batch in batches) == 1597
    check_resuming(config, "stm", [batch["stm"] for batch in batches[3:]])


def test_filters_are_a_mark_that_loaders_draw_from(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder, tmp_path / "positions")
    positions = gm.open(tmp_path / "positions")
    assert (positions.num_games, positions.num_frames) == (189, 1597)
    positions.mark("train", "no_score = 0 AND game_ply >= 16 AND in_check = 0 AND capture = 0 AND repeated < 2")
    kept = positions.marked("train")
    assert 200 < kept.num_frames < 1597
    loader = gm.DataLoader(kept, batch_size=100, epochs=1, seed=1, encoder=gm.Fields(["board", "score"]))
    boards = np.concatenate([np.array(batch["board"]) for batch in loader])
    assert boards.shape == (kept.num_frames, 32)
    # The bytes are those of the file that `convert` makes of the same positions.
    gm.convert(folder, tmp_path / "all.bf", to="bulletformat")
    every = {row.tobytes() for row in np.fromfile(tmp_path / "all.bf", np.uint8).reshape(-1, 32)}
    assert {row.tobytes() for row in boards} <= every
    resumed = gm.DataLoader(kept, batch_size=100, epochs=1, seed=1, encoder=gm.Fields(["board", "score"]))
    stream = iter(resumed)
    next(stream)
    state = resumed.state_dict()
    again = gm.DataLoader(kept, batch_size=100, epochs=1, seed=1, encoder=gm.Fields(["board", "score"]))
    again.load_state_dict(state)
    np.testing.assert_array_equal(np.concatenate([np.array(batch["board"]) for batch in again]), boards[100:])
    won = positions.where("white_result = 1 AND fewest_men > 4")
    assert 0 < won.num_games < 189


def test_files_and_packs_become_each_other(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder, tmp_path / "positions")
    told = gm.convert(tmp_path / "positions", tmp_path / "again.binpack", to="binpack")
    assert (told.frames, told.unscored, told.made_up) == (1597, 0, [])
    assert (tmp_path / "again.binpack").read_bytes() == GOLDEN.read_bytes()
    boards = gm.convert(folder, tmp_path / "boards.bf", to="bulletformat")
    assert boards.frames + boards.unscored == 1597
    assert boards.unscored > 0
    back = gm.convert(tmp_path / "boards.bf", tmp_path / "back.binpack", to="binpack")
    assert "White moves" in back.made_up[0]
    lines = gm.convert(folder, tmp_path / "lines.fen", to="fen")
    assert len((tmp_path / "lines.fen").read_text().splitlines()) == lines.frames


def test_a_selection_is_packed_by_itself(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder, tmp_path / "positions")
    positions = gm.open(tmp_path / "positions")
    long = positions.where("frames > 20")
    gm.pack(long, tmp_path / "long")
    again = gm.open(tmp_path / "long")
    assert (again.num_games, again.num_frames) == (long.num_games, long.num_frames)
    for old, new in zip(long.games, again.games, strict=True):
        np.testing.assert_array_equal(np.asarray(old), np.asarray(new))


def test_another_encoder_and_what_is_no_binpack_are_refused(folder: Path) -> None:
    with pytest.raises(gm.StageError, match=r"holds chains of Stockfish's binpack, of which the encoder `binpack`"):
        list(gm.DataLoader(gm.presets.lc0(folder, epochs=1)))
    (folder / "b.binpack").write_bytes(b"BINP\xff\xff\xff\xff")
    with pytest.raises(gm.FormatError, match="expected at most 104857600") as refused:
        gm.open(folder / "b.binpack")
    assert refused.value.offset == 0
