"""Builds small files of chess games: V6 records with numpy and gzip, so that tests need no data of their own.

The records are not legal chess. Field `visits` numbers every frame: 1000 * game + ply.
"""

import gzip
import io
import tarfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import gristmill as gm

Records = npt.NDArray[np.void]


def published_record() -> Records:
    """The synthetic record of the format's published test vector, as one V6 record."""
    r = np.zeros(1, gm.chess.V6.dtype)
    r["version"], r["input_format"] = 6, 1
    r["probabilities"] = -1
    for k in range(20):
        r["probabilities"][0, 37 * k] = (k + 1) / 256
    r["probabilities"][0, 740] = 46 / 256
    r["planes"] = [splitmix64(i) for i in range(104)]
    r["castling_us_ooo"], r["castling_us_oo"], r["castling_them_ooo"], r["castling_them_oo"] = 1, 0, 1, 1
    r["side_to_move_or_enpassant"], r["rule50_count"], r["invariance_info"] = 1, 37, 0x28
    floats = (0.25, -0.5, 0.125, 0.375, 40.5, 38.25, 61, 1, 0, -0.625, 0.25, 37.75, np.nan, np.nan, np.nan)
    names = [n for n in gm.chess.V6.names if 8280 <= r.dtype.fields[n][1] < 8340]  # type: ignore[index]
    for name, value in zip(names, floats, strict=True):
        r[name] = value
    r["visits"], r["played_idx"], r["best_idx"], r["policy_kld"] = 800, 148, 703, 0.03125
    return r


def splitmix64(state: int) -> int:
    """Output number `state` of the generator that fills the published record's planes."""
    mask = 2**64 - 1
    z = (state + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def game(number: int, plies: int) -> Records:
    """One game of `plies` V6 frames."""
    rng = np.random.default_rng(number)
    r = np.zeros(plies, gm.chess.V6.dtype)
    r["version"], r["input_format"] = 6, 1
    r["probabilities"] = -1
    r["probabilities"][:, :4] = 0.25
    r["planes"] = rng.integers(0, 2**64, (plies, 104), np.uint64)
    r["side_to_move_or_enpassant"] = np.arange(plies) % 2
    r["rule50_count"] = np.arange(plies) % 100
    for name in ("root_q", "best_q", "played_q", "orig_q"):
        r[name] = rng.uniform(-1, 1, plies)
    r["plies_left"] = np.arange(plies, 0, -1)
    r["result_q"] = np.where(np.arange(plies) % 2, -1, 1)
    r["visits"] = 1000 * number + np.arange(plies)
    r["policy_kld"] = 0.5
    return r


def write_gz(path: Path, records: Records) -> Path:
    """Writes a game as one gzip file."""
    path.write_bytes(gzip.compress(records.tobytes(), 1, mtime=0))
    return path


def write_tar(path: Path, games: dict[str, Records]) -> Path:
    """Writes games as members of a tar, after a LICENSE."""
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as tar:
        members: dict[str, Any] = {"d/LICENSE": b"x" * 600}
        members |= {name: gzip.compress(records.tobytes(), 1, mtime=0) for name, records in games.items()}
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return path


def write_games(directory: Path, count: int, *, plies: int = 20, first: int = 0) -> Path:
    """Writes games `first..first + count` as `training.<number>.gz`; game n has plies + n % 3 frames."""
    directory.mkdir(parents=True, exist_ok=True)
    for number in range(first, first + count):
        write_gz(directory / f"training.{number}.gz", game(number, plies + number % 3))
    return directory


def frames_of(count: int, *, plies: int = 20, first: int = 0) -> list[int]:
    """`visits` of every frame that `write_games` writes, in order of game and ply."""
    return [1000 * n + i for n in range(first, first + count) for i in range(plies + n % 3)]


def frames_in(loader: gm.DataLoader, batches: Iterable[gm.Batch]) -> list[int]:
    """`visits` of every frame of `batches`, which must hold the tensor `ids`."""
    found = []
    for batch in batches:
        for source, _, frame in batch["ids"][: batch.rows].tolist():
            path = loader.source_path(source)
            assert path is not None
            found.append(1000 * int(path.split(".")[1]) + frame)
    return found
