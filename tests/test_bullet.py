"""Boards of bulletformat: opened, fed from a folder and from a pack, resumed, and refused with their place."""

from pathlib import Path

import numpy as np
import pytest
from bullet_boards import board, write_boards
from feeds import check_resuming

import gristmill as gm


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_boards(tmp_path / "in", 600)


def expected(number: int) -> np.ndarray:
    row = np.full(32, -1, np.int32)
    row[:3] = [64 * 5 + 4, 8 + number % 40, 384 + 64 * 5 + 60]
    return row


def test_a_file_opens_as_records(folder: Path) -> None:
    source = gm.open(folder / "a.bf")
    assert (source.format, len(source), source.num_frames) == ("bullet.bf", 3, 600)
    np.testing.assert_array_equal(np.asarray(source[1])["score"], np.arange(156, 412))


def test_a_folder_is_a_stream_that_resumes(folder: Path) -> None:
    config = gm.presets.lc0(folder, encoder="bullet", epochs=1, batch_size=64, seed=5, reservoir=100)
    batches = [{name: np.array(array) for name, array in batch.items()} for batch in gm.DataLoader(config)]
    assert set(batches[0]) >= {"stm", "nstm", "score", "result"}
    scores = np.concatenate([batch["score"] for batch in batches])
    np.testing.assert_array_equal(np.sort(scores), np.arange(-100, 500, dtype=np.float32))
    for batch in batches:
        for row, score in zip(batch["stm"], batch["score"], strict=True):
            np.testing.assert_array_equal(row, expected(int(score) + 100))
    check_resuming(config, "score", [batch["score"] for batch in batches[3:]])


def test_a_pack_is_fed_by_its_own_encoder(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert (pack.num_games, pack.num_frames) == (3, 600)
    made = pack.encode([0, 599])
    np.testing.assert_array_equal(np.asarray(made["stm"]), [expected(0), expected(599)])
    won = gm.DataLoader(
        pack.where("wins > 80"), batch_size=100, epochs=1, seed=1, encoder=gm.Fields(["result", "planes"])
    )
    batch = next(iter(won))
    assert {name: array.shape for name, array in batch.items()} == {"result": (100,), "planes": (100, 12, 8, 8)}
    with pytest.raises(TypeError, match=r"take gristmill\.Fields"):
        gm.DataLoader(pack, encoder=gm.chess.Tensors(["planes"]))


def test_another_encoder_is_refused_with_the_one_that_fits(folder: Path) -> None:
    with pytest.raises(gm.StageError, match=r"holds boards of bulletformat, of which the encoder `bullet`"):
        list(gm.DataLoader(gm.presets.lc0(folder, epochs=1)))


def test_what_is_no_board_is_refused(folder: Path) -> None:
    (folder / "cut.bf").write_bytes(board(1) + b"1234")
    with pytest.raises(gm.FormatError, match="expected boards of 32") as refused:
        gm.open(folder / "cut.bf")
    assert (refused.value.frame, refused.value.offset) == (1, 32)
    with pytest.raises(gm.ConfigError, match=r"unknown encoder `bulet`.*`bullet`"):
        gm.DataLoader(gm.presets.lc0(folder, encoder="bulet"))
