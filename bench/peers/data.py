"""The data of each work, made once from a seed: rows of 48 bytes, steps with pictures of 64x64, shards of them, games.

NumPy and gristmill make all of it. Each peer then writes its own form of it; the bench does not time the writing.
"""

import gzip
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames

#: Steps of a trajectory.
LENGTH = 250
PICTURE = (3, 64, 64)
#: The file suffix of each form of shards.
SHARDS = {"shards.tar": "tar", "shards.gz": "tgz", "shards.zst": "tar.zst"}


def rows(folder: Path, count: int) -> None:
    """Writes `records.npy`: rows of 48 bytes. The last eight bytes of a row are its number."""
    found = np.random.default_rng(1).integers(0, 16, (count, 48), np.uint8)
    found[:, 40:] = np.arange(count).view(np.uint8).reshape(-1, 8)
    np.save(folder / "records.npy", found)


def pictures(count: int) -> Iterator[np.ndarray[Any, Any]]:
    """Yields trajectories of pictures (n, 3, 64, 64), u8: a smooth texture scrolls, and a square jumps on it."""
    rng = np.random.default_rng(2)
    for begin in range(0, count, LENGTH):
        steps = min(LENGTH, count - begin)
        coarse = rng.integers(0, 256, (3, 10, 50))
        texture = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2).astype(np.float32)
        for axis in (1, 2):
            texture = (texture + np.roll(texture, 3, axis) + np.roll(texture, 5, axis)) / 3
        texture += rng.normal(0, 1.5, texture.shape)
        wide = np.clip(texture, 0, 255).astype(np.uint8)
        found = np.stack([wide[:, 8:72, t : t + 64] for t in range(steps)])
        for t in range(steps):
            y, x = rng.integers(0, 56, 2)
            found[t, :, y : y + 8, x : x + 8] = 255
        yield found


def steps(folder: Path, count: int) -> None:
    """Writes `pictures.npy`, and `records.npy`: the bytes of each picture, then the step's number in eight bytes."""
    size = int(np.prod(PICTURE))
    shown = np.lib.format.open_memmap(folder / "pictures.npy", "w+", np.uint8, (count, *PICTURE))
    found = np.lib.format.open_memmap(folder / "records.npy", "w+", np.uint8, (count, size + 8))
    begin = 0
    for part in pictures(count):
        end = begin + len(part)
        shown[begin:end] = part
        found[begin:end, :size] = part.reshape(len(part), size)
        found[begin:end, size:] = np.arange(begin, end).view(np.uint8).reshape(-1, 8)
        begin = end


def frames(folder: Path) -> Iterator[dict[str, Any]]:
    """Yields steps as a writer of shards takes them. `acts` is the step's number."""
    shown = np.load(folder / "pictures.npy", mmap_mode="r")
    for t in range(len(shown)):
        last = t % LENGTH == LENGTH - 1 or t == len(shown) - 1
        yield {"obs": np.array(shown[t]), "acts": np.int64(t), "dones": np.bool_(last)}


def shards(folder: Path, source: Path, suffix: str) -> None:
    """Writes tar shards of 1000 steps. Their members are `.npy` files; `suffix` says how a shard is packed."""
    for name in ("pictures.npy", "records.npy"):
        (folder / name).symlink_to(source / name)
    meta = get_meta_dict({}, spaces.Box(0, 255, PICTURE, np.uint8), spaces.Discrete(1 << 31))
    write_frames(folder / "shards" / f"demos.{suffix}", meta, frames(folder), max_frames=1000, members="npy")


def games(folder: Path, count: int) -> None:
    """Writes the folder `games`, a file for each game, and the folder `tars`, plain tars of 100 games each."""
    gm.generate("chess", folder / "games", games=count, seed=1)
    paths = sorted((folder / "games").rglob("*.gz"))
    (folder / "tars").mkdir()
    for begin in range(0, len(paths), 100):
        with tarfile.open(folder / "tars" / f"games-{begin // 100:04}.tar", "w") as tar:
            for path in paths[begin : begin + 100]:
                tar.add(path, path.name)


def ready(root: Path, work: str, counts: dict[str, int]) -> Path:
    """Returns the folder of a work's data, and makes it if it is missing. The file `.made` marks a whole folder."""
    name = f"{work}-{counts[work]}"
    folder = root / name
    if (folder / ".made").exists():
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    if work == "rows":
        rows(folder, counts[work])
    elif work == "steps":
        steps(folder, counts[work])
    elif work in SHARDS:
        shards(folder, ready(root, "steps", counts), SHARDS[work])
    else:
        games(folder, counts[work])
    (folder / ".made").touch()
    return folder


def records_of(path: Path) -> np.ndarray[Any, Any]:
    """Returns the records of a game in a `.gz` file."""
    return np.frombuffer(gzip.decompress(path.read_bytes()), gm.chess.V6.dtype)
