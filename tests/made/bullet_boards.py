"""Boards of bulletformat: the kings and a pawn."""

import struct
from pathlib import Path


def board(number: int) -> bytes:
    """The kings and a pawn; the score is `number - 100`."""
    men = sorted([(4, 5), (8 + number % 40, 0), (60, 13)])
    codes = [man for _, man in men] + [0] * 29
    halves = bytes(codes[i] | codes[i + 1] << 4 for i in range(0, 32, 2))
    return struct.pack("<Q16shBBB3x", sum(1 << at for at, _ in men), halves, number - 100, number % 3, 4, 60 ^ 56)


def write_boards(folder: Path, count: int) -> Path:
    """Writes boards `0..count` as `a.bf`."""
    folder.mkdir()
    (folder / "a.bf").write_bytes(b"".join(map(board, range(count))))
    return folder
