"""Syzygy tables against python-chess, another prober, on the real tables of up to four men."""

import os
import random
import shutil
from pathlib import Path

import chess
import chess.syzygy
import pytest
from played_games import random_board

import gristmill as gm

#: Positions to compare; `make soak` asks for ten times as many.
POSITIONS = int(os.environ.get("GRISTMILL_POSITIONS", "10000"))


def test_values_and_plies_agree_on_random_positions(syzygy: Path) -> None:
    tables = gm.chess.Tablebase(syzygy)
    assert (tables.coverage, tables.most_men) == ("35 WDL and 35 DTZ tables of up to 4 men", 4)
    rng = random.Random(POSITIONS)
    with chess.syzygy.open_tablebase(str(syzygy)) as other:
        for i in range(POSITIONS):
            board = random_board(rng, rng.choice((3, 4, 4, 4)))
            fen = board.fen(en_passant="fen")
            assert tables.wdl(fen) == other.probe_wdl(board), fen
            # The other prober takes a hundred times longer to count plies.
            if i % 10 == 0:
                assert tables.dtz(fen) == other.probe_dtz(board), fen


def in_passing(rng: random.Random) -> chess.Board:
    """Kings, a pawn that just moved two squares, and one beside it that may take it."""
    while True:
        board = chess.Board(None)
        board.turn = rng.random() < 0.5
        rank, file = (4 if board.turn else 3), rng.randrange(7)
        squares = [chess.square(file, rank), chess.square(file + 1, rank)]
        rng.shuffle(squares)
        board.set_piece_at(squares[0], chess.Piece(chess.PAWN, board.turn))
        board.set_piece_at(squares[1], chess.Piece(chess.PAWN, not board.turn))
        for color in chess.COLORS:
            board.set_piece_at(rng.choice(list(chess.SquareSet(~board.occupied))), chess.Piece(chess.KING, color))
        board.ep_square = squares[1] + (8 if board.turn else -8)
        if board.is_valid() and board.has_legal_en_passant():
            return board


def test_capturing_in_passing_agrees(syzygy: Path) -> None:
    tables = gm.chess.Tablebase(syzygy)
    rng = random.Random(1)
    with chess.syzygy.open_tablebase(str(syzygy)) as other:
        for _ in range(POSITIONS // 20):
            board = in_passing(rng)
            fen = board.fen(en_passant="fen")
            assert (tables.wdl(fen), tables.dtz(fen)) == (other.probe_wdl(board), other.probe_dtz(board)), fen


@pytest.mark.parametrize(
    ("fen", "kind"),
    [
        ("8/8/4k3/8/8/8/8/R3K3 w Q - 0 1", "castling_at_probe"),
        ("8/8/4k3/8/8/2QRR3/8/K7 b - - 0 1", "too_many_men"),
        ("8/8/8/8/8/8/8/8 w - - 0 1", "out_of_range"),
        ("rubbish", "out_of_range"),
        ("8/8/8/8/8/8/7R/Kk6 w - - 0 1", "illegal_position"),
        ("8/8/8/8/8/8/8/Kk6 b - - 0 1", "illegal_position"),
    ],
)
def test_positions_that_no_table_knows_are_refused_by_kind(syzygy: Path, fen: str, kind: str) -> None:
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.Tablebase(syzygy).wdl(fen)
    assert refused.value.kind == kind


def test_bare_kings_are_a_draw(syzygy: Path) -> None:
    tables = gm.chess.Tablebase(syzygy)
    assert (tables.wdl("8/8/4k3/8/8/8/8/K7 w - - 0 1"), tables.dtz("8/8/4k3/8/8/8/8/K7 b - - 9 1")) == (0, 0)


def test_missing_and_damaged_tables_are_an_error_unless_allowed(syzygy: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    shutil.copytree(syzygy, part)
    (part / "KQvKR.rtbw").unlink()
    with pytest.raises(gm.ConfigError, match=r"KQvKR\.rtbw"):
        gm.chess.Tablebase(part)
    tables = gm.chess.Tablebase(part, allow_missing=True)
    assert tables.wdl("8/8/4k3/8/8/2QR4/8/K7 b - - 0 1") == -2
    with pytest.raises(gm.FormatError) as refused:
        tables.wdl("8/8/4k3/8/5r2/2Q5/8/K7 w - - 0 1")
    assert refused.value.kind == "missing_table"
    (part / "KQvKR.rtbw").write_bytes((syzygy / "KQvKR.rtbw").read_bytes()[:-64])
    with pytest.raises(gm.FormatError, match=r"KQvKR\.rtbw"):
        gm.chess.Tablebase(part)
    assert "KQvKR" in gm.chess.Tablebase(part, allow_missing=True).faults[0]
    with pytest.raises(FileNotFoundError):
        gm.chess.Tablebase(tmp_path / "none")


def test_of_several_directories_the_first_counts(syzygy: Path, tmp_path: Path) -> None:
    one, rest = tmp_path / "one", tmp_path / "rest"
    shutil.copytree(syzygy, rest)
    one.mkdir()
    (rest / "KQvK.rtbw").rename(one / "KQvK.rtbw")
    assert gm.chess.Tablebase([one, rest]).coverage == gm.chess.Tablebase(syzygy).coverage
