"""Features of NNUE, man by man from docs/format/nnue-features.md, by python-chess: slow, and no code of gristmill."""

from __future__ import annotations

import chess


def halfkp(board: chess.Board, view: chess.Color) -> list[int]:
    """The features of HalfKP as the side `view` sees them, ascending."""

    def seen(square: chess.Square) -> int:
        return square if view == chess.WHITE else 63 - square

    king = seen(_king(board, view))
    found = []
    for square, man in board.piece_map().items():
        if man.piece_type != chess.KING:
            piece = 2 * (man.piece_type - 1) + (man.color != view)
            found.append(1 + seen(square) + 64 * piece + 641 * king)
    return sorted(found)


def halfkav2_hm(board: chess.Board, view: chess.Color) -> list[int]:
    """The features of HalfKAv2_hm as the side `view` sees them, ascending."""
    mirrored = chess.square_file(_king(board, view)) < 4

    def seen(square: chess.Square) -> int:
        rank, file = chess.square_rank(square), chess.square_file(square)
        return chess.square(7 - file if mirrored else file, rank if view == chess.WHITE else 7 - rank)

    king = seen(_king(board, view))
    bucket = 31 - (4 * chess.square_rank(king) + chess.square_file(king) - 4)
    found = []
    for square, man in board.piece_map().items():
        piece = 10 if man.piece_type == chess.KING else 2 * (man.piece_type - 1) + (man.color != view)
        found.append(seen(square) + 64 * piece + 704 * bucket)
    return sorted(found)


def row(features: list[int]) -> list[int]:
    """A row of a tensor: the features, then -1."""
    return features + [-1] * (32 - len(features))


def _king(board: chess.Board, view: chess.Color) -> chess.Square:
    king = board.king(view)
    assert king is not None
    return king
