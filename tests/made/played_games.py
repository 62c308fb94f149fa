"""Plays games with python-chess and writes them as V6 records, as a second opinion on boards and moves."""

import random

import chess
import numpy as np
import numpy.typing as npt

import gristmill as gm

Records = npt.NDArray[np.void]

INDEX = {move: i for i, move in enumerate(gm.chess.policy_moves())}


def policy_index(board: chess.Board, move: chess.Move) -> int:
    """The policy index of a legal move: as the side to move sees it, castling as king takes rook."""
    to = move.to_square
    if board.is_castling(move):
        to = chess.square(7 if chess.square_file(to) == 6 else 0, chess.square_rank(to))
    squares = [move.from_square, to] if board.turn else [move.from_square ^ 56, to ^ 56]
    promotion = chess.piece_symbol(move.promotion) if move.promotion not in (None, chess.KNIGHT) else ""
    return INDEX["".join(chess.square_name(s) for s in squares) + promotion]


def records(start: chess.Board, moves: list[chess.Move]) -> Records:
    """The records of a game in the classical format: policies uniform, results drawn, plies left counted."""
    boards = [start.copy()]
    for move in moves:
        boards.append(boards[-1].copy())
        boards[-1].push(move)
    r = np.zeros(len(boards), gm.chess.V6.dtype)
    r["version"], r["input_format"], r["visits"] = 6, 1, 100
    r["probabilities"] = -1
    r["result_d"] = 1
    r["plies_left"] = np.arange(len(boards), 0, -1)
    for name in ("orig_q", "orig_d", "orig_m"):
        r[name] = np.nan
    for k, board in enumerate(boards):
        legal = [policy_index(board, move) for move in board.legal_moves]
        r["probabilities"][k, legal] = 1 / len(legal)
        r["played_idx"][k] = r["best_idx"][k] = policy_index(board, moves[k]) if k < len(moves) else legal[0]
        for h, seen in enumerate(reversed(boards[max(0, k - 7) : k + 1])):
            r["planes"][k, 13 * h : 13 * h + 12] = men(seen, board.turn)
            r["planes"][k, 13 * h + 12] = 2**64 - 1 if seen.is_repetition(2) else 0
        for side, color in (("us", board.turn), ("them", not board.turn)):
            r[f"castling_{side}_ooo"][k] = board.has_queenside_castling_rights(color)
            r[f"castling_{side}_oo"][k] = board.has_kingside_castling_rights(color)
        r["side_to_move_or_enpassant"][k] = not board.turn
        r["rule50_count"][k] = board.halfmove_clock
    return r


def men(board: chess.Board, us: chess.Color) -> list[int]:
    """The twelve stored words of a board, as `us` sees it."""
    masks = [int(board.pieces(piece, color)) for color in (us, not us) for piece in chess.PIECE_TYPES]
    seen = masks if us else [chess.flip_vertical(mask) for mask in masks]
    return [chess.flip_horizontal(mask) for mask in seen]


def random_moves(rng: random.Random, start: chess.Board, most: int) -> list[chess.Move]:
    """At most `most` random legal moves, none of which ends the game."""
    board = start.copy()
    moves: list[chess.Move] = []
    while len(moves) < most:
        choices = [move for move in board.legal_moves if not ends(board, move)]
        if not choices:
            break
        moves.append(rng.choice(choices))
        board.push(moves[-1])
    return moves


def ends(board: chess.Board, move: chess.Move) -> bool:
    """Whether no move is left after it, or the fifty-move rule ends the game."""
    board.push(move)
    over = not any(board.legal_moves) or board.halfmove_clock >= 100
    board.pop()
    return over


def random_board(rng: random.Random, men: int, pawns: float = 0.4, en_passant: float = 0.2) -> chess.Board:
    """A legal position of `men` men without castling rights."""
    while True:
        board = chess.Board(None)
        squares = rng.sample(range(64), men)
        for square, color in zip(squares[:2], chess.COLORS, strict=True):
            board.set_piece_at(square, chess.Piece(chess.KING, color))
        for square in squares[2:]:
            piece = chess.PAWN if rng.random() < pawns else rng.choice(chess.PIECE_TYPES[1:5])
            board.set_piece_at(square, chess.Piece(piece, rng.random() < 0.5))
        board.turn = rng.random() < 0.5
        if rng.random() < en_passant:
            passed = chess.square(rng.randrange(8), 5 if board.turn else 2)
            behind = passed - 8 if board.turn else passed + 8
            if board.piece_at(behind) == chess.Piece(chess.PAWN, not board.turn):
                board.ep_square = passed
        if board.is_valid() and any(board.legal_moves):
            return board
