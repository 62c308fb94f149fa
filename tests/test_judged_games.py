"""Real and generated games, judged by python-chess alone: positions, legal moves, and every input format made of them.

GRISTMILL_GAMES names a folder with more games; `make soak` generates one.
"""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import chess
import numpy as np
import pytest
from chess_games import FORMATS, Game, index, write
from generated_games import Records

import gristmill as gm

DATA = Path(__file__).parent / "data"

#: What a record says of its position; bits 3 to 6 of `invariance_info` are about the game.
POSITION = ("planes", *(f"castling_{who}" for who in ("us_ooo", "us_oo", "them_ooo", "them_oo")))
BITS = 0x87


def judged(file: Path) -> int:
    """Judges every game of a file; how many frames it has."""
    source: gm.Source = gm.open(file)
    frames = 0
    for i in range(len(source)):
        records = source[i]
        assert gm.chess.check(records, "all") == [], f"{file}, game {i}"
        game = replayed(records)
        for there, input_format in formats(records):
            same_position(there, write(game, input_format, 6, by_planes()), f"{file}, game {i}, {input_format}")
        frames += len(records)
    return frames


def replayed(records: Records) -> Game:
    """The game as python-chess plays it: each frame's position and legal moves are those of the board."""
    board = chess.Board(gm.chess.fens(records[:1])[0], chess960=True)
    game = Game([], [])
    for fen, record in zip(gm.chess.fens(records), records, strict=True):
        ours = chess.Board(fen, chess960=True)
        passing = board.ep_square if board.has_pseudo_legal_en_passant() else None
        assert (ours.board_fen(), ours.turn, ours.ep_square) == (board.board_fen(), board.turn, passing)
        assert (ours.castling_rights, ours.halfmove_clock) == (board.castling_rights, board.halfmove_clock)
        legal = {index(board, move, 0, False): move for move in board.legal_moves}
        assert sorted(legal) == np.flatnonzero(record["probabilities"] >= 0).tolist(), fen
        game.boards.append(board.copy(stack=False))
        game.moves.append(legal[int(record["played_idx"])])
        board.push(game.moves[-1])
    return game


def formats(records: Records) -> Iterator[tuple[Records, int]]:
    """The game as it is, and in every other input format."""
    yield records, 1
    for input_format in FORMATS[1:]:
        yield gm.chess.rescore(records, new_input_format=input_format, keep_v6=True).records, input_format


def by_planes() -> random.Random:
    """A generator whose first number makes `write` index moves as the planes are turned."""
    rng = random.Random(2)
    assert random.Random(2).random() >= 0.5
    return rng


def same_position(found: Records, expected: Records, where: str) -> None:
    for name in (*POSITION, "side_to_move_or_enpassant", "rule50_count", "played_idx"):
        np.testing.assert_array_equal(found[name], expected[name], f"{where}: {name}")
    np.testing.assert_array_equal(found["invariance_info"] & BITS, expected["invariance_info"] & BITS, where)
    np.testing.assert_array_equal(found["probabilities"] >= 0, expected["probabilities"] >= 0, where)


def test_generated_games() -> None:
    assert judged(DATA / "generated-chess.tar") == 289


def test_real_games(shared: Path) -> None:
    assert judged(shared / "data" / "lc0" / "lc0-data-sample.tar") == 324


def test_more_games() -> None:
    folder = os.environ.get("GRISTMILL_GAMES")
    if not folder:
        pytest.skip("skipped: GRISTMILL_GAMES names no folder of more games")
    assert sum(judged(file) for file in sorted(Path(folder).iterdir())) > 0
