"""Positions by men: games fit 75 bytes a row, also the longest changes; what does not fit is refused with its place."""

import random
from pathlib import Path

import numpy as np
import pytest
from compact_games import FORMATS, write_formats

import gristmill as gm

chess = pytest.importorskip("chess", reason="skipped: python-chess is not installed")
games = pytest.importorskip("chess_games")


def changes(row: np.ndarray) -> int:
    """The changed squares that a row of `planes:position` lists."""
    room = (len(row) - 43) * 2 // 3
    return int((row[43 : 43 + room] < 128).sum())


@pytest.mark.parametrize("format", FORMATS)
def test_games_fit_without_a_number(format: int) -> None:  # noqa: A002
    rng = random.Random(format)
    for _ in range(8):
        records = games.write(games.play(rng, format), format, 6, rng)
        made = gm.chess.encode(records, "position", ["planes"])
        assert made["planes_position"].shape == (len(records), 75)


def test_two_castlings_and_three_pawns_taken_in_passing_fill_the_row() -> None:
    board = chess.Board("4k2r/2p2p2/8/1P1pP1P1/8/8/8/4K2R w Kk d6 0 1", chess960=True)
    game = games.Game([], [])
    for san in ("exd6", "c5", "bxc6", "f5", "gxf6", "O-O", "O-O", "Rf7"):
        game.boards.append(board.copy(stack=False))
        game.moves.append(board.parse_san(san))
        board.push(game.moves[-1])
    records = games.write(game, 1, 6, random.Random(1))
    made = gm.chess.encode(records, tensors=["planes:position"])["planes_position"]
    assert [changes(row) for row in made[[0, 7]]] == [0, 21]
    with pytest.raises(gm.FormatError, match=r"differ on 21 squares.*has room for 20; take planes:position:21"):
        gm.chess.encode(records, tensors=["planes:position:20"])


def test_what_has_no_room_is_refused_with_file_and_frame(tmp_path: Path) -> None:
    folder = write_formats(tmp_path / "games")
    gm.pack(folder, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    few = gm.chess.Tensors(["planes:position:1"])
    with (
        pytest.raises(gm.FormatError, match=r"frame \d+.*planes:position:1 has room for 1; take planes:position:\d+"),
        gm.DataLoader(pack, encoder=few, batch_size=8, seed=1) as loader,
    ):
        list(loader)
    rng = np.random.default_rng(1)
    broken = np.zeros(3, gm.chess.V6.dtype)
    broken["version"], broken["input_format"] = 6, 1
    broken["planes"] = rng.integers(0, 2**64, (3, 104), np.uint64)
    with pytest.raises(gm.FormatError, match=r"two men on square \d+ of board 0: .* take planes:packed"):
        gm.chess.encode(broken, "position")
