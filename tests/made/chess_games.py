"""Random games of python-chess as records in any input format, written from docs/format/chess.md alone.

Nothing here uses gristmill beyond the names of the fields and the moves of the policy vector, so that agreement
says something.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

import chess
import numpy as np
from generated_games import Records

import gristmill as gm

FORMATS = (1, 2, 3, 4, 5, 132, 133)
PIECES = (chess.PAWN, chess.KNIGHT, chess.BISHOP, chess.ROOK, chess.QUEEN, chess.KING)
INDEX = {move: i for i, move in enumerate(gm.chess.policy_moves())}
REVERSED = bytes(int(f"{byte:08b}"[::-1], 2) for byte in range(256))


@dataclass
class Game:
    """Positions, and the move that was played in each."""

    boards: list[chess.Board]
    moves: list[chess.Move]


def play(rng: random.Random, format: int) -> Game:  # noqa: A002
    """A random game: from a start position, or a few plies from a random position with few men."""
    if rng.random() < 0.6:
        board = chess.Board.from_chess960_pos(rng.randrange(960)) if format >= 2 else chess.Board()
        plies = rng.randint(1, 150)
    else:
        board, plies = few_men(rng), rng.randint(1, 25)
    board.chess960 = True
    game = Game([], [])
    while len(game.moves) < plies and board.halfmove_clock < 100:
        moves = list(board.legal_moves)
        if not moves:
            break
        lively = [m for m in moves if board.is_capture(m) or m.promotion or board.piece_type_at(m.from_square) == 1]
        back = [m for m in moves if len(game.moves) > 1 and m.from_square == game.moves[-2].to_square]
        back = [m for m in back if m.to_square == game.moves[-2].from_square]
        some = rng.choices([moves, lively or moves, back or moves], [5, 2, 3])[0]
        move = rng.choice(some)
        game.boards.append(board.copy(stack=False))
        game.moves.append(move)
        board.push(move)
    return game


def few_men(rng: random.Random) -> chess.Board:
    """A legal position with up to seven men and no castling."""
    while True:
        board = chess.Board(None)
        squares = rng.sample(range(64), 7)
        for color in chess.COLORS:
            board.set_piece_at(squares.pop(), chess.Piece(chess.KING, color))
        pawns = rng.random() < 0.4
        for square in squares[: rng.randint(0, 5)]:
            board.set_piece_at(square, chess.Piece(rng.choice(PIECES[0 if pawns else 1 : 5]), rng.random() < 0.5))
        board.turn = rng.random() < 0.5
        board.halfmove_clock = rng.randrange(40)
        if board.is_valid() and any(board.legal_moves):
            return board


def men(board: chess.Board, us: chess.Color) -> list[int]:
    """The twelve masks of a board as one side sees it."""
    masks = [board.pieces_mask(piece, color) for color in (us, not us) for piece in PIECES]
    return masks if us else [chess.flip_vertical(mask) for mask in masks]


def rights(board: chess.Board) -> tuple[int, int, int, int]:
    """Rook files of the queenside and kingside rights of the side to move, then of the other, as file masks."""
    found = []
    for color in (board.turn, not board.turn):
        king = board.king(color)
        assert king is not None
        rooks = board.clean_castling_rights() & (chess.BB_RANK_1 if color else chess.BB_RANK_8)
        files = [chess.square_file(rook) for rook in chess.scan_forward(rooks)]
        for side in (
            [f for f in files if f < chess.square_file(king)],
            [f for f in files if f > chess.square_file(king)],
        ):
            found.append(1 << side[0] if side else 0)
    return found[0], found[1], found[2], found[3]


def same(a: chess.Board, b: chess.Board) -> bool:
    """Whether the two boards are one position: men, side, rights and en passant."""
    return (
        men(a, True) == men(b, True) and a.turn == b.turn and rights(a) == rights(b) and en_passant(a) == en_passant(b)
    )


def repeated(boards: list[chess.Board], i: int) -> bool:
    """Whether position `i` occurred before, as far back as the fifty-move counter reaches in this game."""
    back = min(boards[i].halfmove_clock, i)
    return any(same(boards[i], boards[i - n]) for n in range(4, back + 1, 2))


def en_passant(board: chess.Board) -> int:
    """The file mask of a pawn that a pawn beside it may take, pins or not."""
    return 1 << chess.square_file(board.ep_square or 0) if board.has_pseudo_legal_en_passant() else 0


def transform_of(board: chess.Board) -> int:
    """The canonical transform: bit 0 flip, bit 1 mirror, bit 2 transpose."""
    masks = men(board, board.turn)
    if board.clean_castling_rights():
        return 0
    transform = 1 if chess.square_file(chess.lsb(masks[5])) < 4 else 0
    if masks[0] | masks[6]:
        return transform
    transform |= 2 if chess.square_rank(chess.lsb(masks[5])) >= 4 else 0
    seen = [transformed(mask, transform) for mask in masks]
    if seen[5] & 0xE0C08000:
        return transform | 4
    if seen[5] & 0x10204080:
        ours = range(6)
        for planes in (range(12), ours, (5, 11), (4, 10), (3, 9), (1, 7), (2, 8)):
            value = 0
            for plane in planes:
                value |= seen[plane]
            if value != chess.flip_anti_diagonal(value):
                return transform | (4 if chess.flip_anti_diagonal(value) < value else 0)
    return transform


def transformed(mask: int, transform: int) -> int:
    if transform & 1:
        mask = chess.flip_horizontal(mask)
    if transform & 2:
        mask = chess.flip_vertical(mask)
    if transform & 4:
        mask = chess.flip_anti_diagonal(mask)
    return mask


def index(board: chess.Board, move: chess.Move, transform: int, half_turn: bool) -> int:
    """The policy index of a move; with `half_turn` a transposed board is turned by half a circle instead."""
    squares = []
    for square in (move.from_square, move.to_square):
        seen = square if board.turn else chess.square_mirror(square)
        turned = 63 - seen if half_turn and transform & 4 else chess.lsb(transformed(1 << seen, transform))
        squares.append(chess.SQUARE_NAMES[turned])
    promotion = "" if move.promotion in (None, chess.KNIGHT) else chess.piece_symbol(move.promotion or 0)
    return INDEX["".join(squares) + promotion]


def history(game: Game, i: int, flags: list[bool], format: int) -> Iterator[int]:  # noqa: A002
    """Indices of the positions in the planes of frame `i`, the current one first."""
    yield i
    now, boards = game.boards[i], game.boards
    slots = 1
    for j in range(i - 1, -1, -1):
        if slots == 8 or (format >= 3 and boards[j + 1].halfmove_clock == 0):
            return
        if format >= 3:
            a, b, c, d = rights(boards[j])
            seen = (a, b, c, d) if (i - j) % 2 == 0 else (c, d, a, b)
            if seen != rights(now) or en_passant(boards[j]):
                return
        if format % 128 == 5 and not flags[j]:
            continue
        slots += 1
        yield j


def write(game: Game, format: int, version: int, rng: random.Random) -> Records:  # noqa: A002
    """The records of a game."""
    plies = len(game.boards)
    layout = gm.chess.V7 if version == 7 else gm.chess.V6
    records = np.zeros(plies, layout.dtype)
    records["version"], records["input_format"] = version, format
    records["probabilities"] = -1
    canonical, half_turn = format >= 3, rng.random() < 0.5
    flags = [repeated(game.boards, i) for i in range(plies)]
    result = rng.choice([1, 0, -1])
    for i, (board, move) in enumerate(zip(game.boards, game.moves, strict=True)):
        r = records[i]
        transform = transform_of(board) if canonical else 0
        words = []
        for j in history(game, i, flags, format):
            masks = [transformed(mask, transform) for mask in men(game.boards[j], board.turn)]
            words += [*masks, 2**64 - 1 if flags[j] else 0]
        raw = b"".join(word.to_bytes(8, "little").translate(REVERSED) for word in words)
        r["planes"][: len(words)] = np.frombuffer(raw, "<u8")
        legal = [index(board, m, transform, half_turn) for m in board.legal_moves]
        r["probabilities"][legal] = 1 / len(legal)
        files = rights(board) if format >= 2 else tuple(int(mask != 0) for mask in rights(board))
        for name, value in zip(("us_ooo", "us_oo", "them_ooo", "them_oo"), files, strict=True):
            r[f"castling_{name}"] = value
        byte = en_passant(board)
        r["side_to_move_or_enpassant"] = (REVERSED[byte] if transform & 1 else byte) if canonical else not board.turn
        r["invariance_info"] = transform | (128 if canonical and not board.turn else 0)
        r["rule50_count"] = board.halfmove_clock
        r["played_idx"], r["best_idx"] = index(board, move, transform, half_turn), rng.choice(legal)
        r["result_q"], r["result_d"] = result if board.turn else -result, result == 0
    records["visits"] = 100
    records["plies_left"] = np.arange(plies, 0, -1) + 20
    for name in ("root_q", "best_q", "played_q", "orig_q"):
        records[name] = [rng.uniform(-1, 1) for _ in range(plies)]
    if version == 7:
        played = [*records["played_idx"].tolist(), 65535, 65535]
        records["opp_played_idx"], records["next_played_idx"] = played[1:-1], played[2:]
    return records
