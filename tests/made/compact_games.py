"""Chess records of every input format, as random bytes and as legal games, for tests of compact tensors."""

import gzip
import random
from pathlib import Path

import numpy as np
from generated_games import Records

import gristmill as gm

COMPACT = ["planes:packed", "probs:sparse", "legal:bits", "values"]
FULL = ["planes", "probs", "legal", "values"]
#: With men in place of planes; those of formats 5 and 133 may differ on many squares.
BY_MEN = ["planes:position:96", *COMPACT[1:]]
FORMATS = (1, 2, 3, 4, 5, 132, 133)


def every_format(each: int = 40) -> Records:
    """Records with random planes and scalars, of each format; policies with NaN, -0 and values that are no share."""
    rng = np.random.default_rng(5)
    records = np.zeros(len(FORMATS) * each, gm.chess.V6.dtype)
    records["version"], records["input_format"] = 6, np.repeat(FORMATS, each)
    records["planes"] = rng.integers(0, 2**64, (len(records), 104), np.uint64)
    for name in gm.chess.V6.names[4:12]:
        records[name] = rng.integers(0, 256, len(records))
    records["rule50_count"] = np.resize(np.arange(256), len(records))
    records["probabilities"] = -1
    for i, record in enumerate(records):
        moves = rng.choice(1858, i % 127, replace=False)
        record["probabilities"][moves] = rng.random(len(moves), np.float32)
        record["probabilities"][moves[:3]] = [np.nan, -0.0, np.float32(1e-40)][: len(moves)]
    return records


def every_position(each: int = 40) -> Records:
    """The same with men on boards of which some are empty, and up to 60 changes from each to the one before."""
    rng = np.random.default_rng(6)
    records = every_format(each)
    for i, record in enumerate(records):
        cells = rng.integers(0, 13, 64) * (rng.random(64) < i / len(records))
        planes = np.zeros((8, 13, 64), np.uint8)
        for board in range(8):
            if board:
                cells[rng.integers(0, 64, rng.integers(0, i % 10 + 1))] = rng.integers(0, 13)
            if board == 0 or rng.random() < 0.8:
                planes[board, :12] = cells == np.arange(1, 13)[:, None]
            planes[board, 12] = rng.random() < 0.3
        record["planes"] = np.packbits(planes.reshape(104, 64), axis=1).view(np.uint64)[:, 0]
    return records


def write_formats(folder: Path) -> Path:
    """A folder of legal games, two of each format; needs python-chess."""
    from chess_games import play, write

    folder.mkdir()
    rng = random.Random(2)
    for format in FORMATS:  # noqa: A001
        for i in range(2):
            records = write(play(rng, format), format, 6, rng)
            (folder / f"training.{format:03}{i}.gz").write_bytes(gzip.compress(records.tobytes(), 1))
    return folder


def same_bits(found: object, expected: object) -> bool:
    """Whether two arrays have one dtype, one shape and the same bits, whatever NaN compares to."""
    a, b = np.asarray(found), np.asarray(expected)
    return (a.dtype, a.shape) == (b.dtype, b.shape) and a.tobytes() == b.tobytes()
