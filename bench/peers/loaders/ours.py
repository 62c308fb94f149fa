"""Gristmill, used as its guide says: packs of rows and steps, shards of demonstrations, streams and packs of games."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from loaders.records import stored

sys.path.append(str(Path(__file__).resolve().parents[3] / "scripts"))

from bench_take import made

#: Number of rows in a game, and of steps in a trajectory.
GAME = 250
FIELDS = ("obs", "acts")


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes packs of the work's data. Streams and open shards need no pack."""
    if work == "rows":
        found = stored(data)
        games = (found[i : i + GAME].view([("row", "u1", 48)])[:, 0] for i in range(0, len(found), GAME))
        gm.pack(games, folder / "pack", layout=[("row", "u1", 48)])
        made(folder / "rows of 2048", len(found))
    elif work == "steps":
        demos = arrays(data)
        if "zstd" in packings:
            gm.pack(demos, folder / "pack")
        if "raw" in packings:
            gm.pack(demos, folder / "raw", codec="raw")
    elif work == "games":
        gm.pack(data / "games", folder / "pack")


def arrays(data: Path) -> Any:
    """Returns the steps as mapped arrays."""
    obs = np.load(data / "pictures.npy", mmap_mode="r")
    lengths = [min(GAME, len(obs) - i) for i in range(0, len(obs), GAME)]
    return gm.demos.from_arrays(lengths, {"obs": obs, "acts": np.arange(len(obs))})


def source(work: str, data: Path, folder: Path, form: str, options: dict[str, Any]) -> Any:
    """Returns the source or the configuration of a loader, and the encoder if it needs one."""
    if form in ("pack", "raw"):
        encoder = {"rows": gm.Fields(["row"]), "steps": gm.Fields(FIELDS)}.get(work)
        return gm.open(folder / form), encoder
    if form == "packed bits of a pack":
        return gm.open(folder / "pack"), gm.chess.Tensors(["planes", "probs", "values"], planes="bits")
    if form == "tokens of 2048":
        return gm.open(folder / "rows of 2048"), gm.g2048.HardMove(dtype="u8")
    if form == "arrays":
        return arrays(data), gm.Fields(FIELDS)
    if form == "open":
        return gm.open(data / "shards"), gm.Fields(FIELDS)
    if work == "games":
        planes = "planes:bits" if form == "bits" else "planes"
        return gm.presets.lc0(data / "games", tensors=[planes, "probs", "values"], reservoir=8192, **options), None
    shown = {"encoder": "fields", "tensors": ["obs:u8[3,64,64]", "acts:i64"], "max_solid_bytes": "16MiB"}
    # A whole pass unpacks each shard once. Endless draws would keep half of the data in memory.
    return gm.presets.lc0(data / "shards", reservoir=1024, epochs=1_000_000, **shown, **options), None


def batches(
    work: str,
    data: Path,
    folder: Path,
    batch: int,
    form: str,
    threads: int,
    place: str = "",
    cache: str = "",
    shuffle: str = "whole",
) -> Iterator[Any]:
    """Yields batches for ever."""
    options: dict[str, Any] = {"batch_size": batch, "seed": 1, "threads": threads}
    if place:
        gm.stores.cache(cache)
        options["shuffle"] = gm.Blocks() if shuffle == "blocks" else True
        found = gm.open(place, verify="off") if work == "rows" else gm.open(place)
        encoder: Any = gm.g2048.HardMove() if work == "rows" else gm.Fields(FIELDS)
    else:
        found, encoder = source(work, data, folder, form, options)
    if isinstance(found, gm.DataLoaderConfig):
        loader = gm.DataLoader(found)
    else:
        if form in ("open", "arrays"):
            del options["threads"]
        loader = gm.DataLoader(found, encoder=encoder, joined=True, **options)
    while True:
        yield loader.get_next()
