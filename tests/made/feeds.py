"""Loaders of every kind over small data, for tests of feeds: the same one each time."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from generated_games import write_games
from packs2048 import make_rows, write_pack
from steps_in_memory import columns

import gristmill as gm

KINDS = ("stream", "pack", "games", "pairs", "steps", "demos")


def maker(folder: Path) -> Callable[[str], Any]:
    """What makes a loader of a kind over data in a folder."""
    games = write_games(folder / "games", 12)
    gm.pack(games, folder / "chess")
    write_pack(folder / "pack", make_rows(3))
    demos = columns([5, 7, 6, 8])

    def make(kind: str) -> Any:
        tensors = ["planes:packed", "probs:sparse", "values"]
        if kind == "stream":
            options: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 20, "epochs": 2, "index": "off"}
            return gm.DataLoader(gm.presets.lc0(games, seed=1, watch=False, tensors=tensors, **options))
        if kind == "pack":
            encoder = gm.g2048.HardMove(dtype="i32", rotate=True)
            return gm.DataLoader(gm.open(folder / "pack"), encoder=encoder, batch_size=20, epochs=2, seed=1)
        if kind == "games":
            made = gm.chess.Tensors(tensors)
            return gm.DataLoader(gm.open(folder / "chess"), encoder=made, batch_size=50, epochs=2, seed=1)
        if kind == "pairs":
            return gm.PairLoader(demos, gm.pairs.TemporalOffset("dynamics"), batch_size=6, seed=1)
        if kind == "steps":
            return gm.StepLoader(demos, batch_size=6, seed=1)
        return gm.DataLoader(demos, batch_size=6, epochs=2, seed=1)

    return make


def plain(batch: Any) -> dict[str, Any]:
    """Shapes and bytes of a batch, by name; of whole numbers as int64, which frameworks may make narrower."""
    found = batch.asdict() if hasattr(batch, "asdict") else dict(batch.items())
    return {name: value if isinstance(value, list) else _bytes(np.asarray(value)) for name, value in found.items()}


def _bytes(array: Any) -> tuple[tuple[int, ...], bytes]:
    return array.shape, (array.astype(np.int64) if array.dtype.kind in "iub" else array).tobytes()


def check_resuming(config: gm.DataLoaderConfig, tensor: str, expected: list[np.ndarray[Any, Any]]) -> None:
    """Takes a state after three batches, and compares a tensor of those that another loader makes from it."""
    loader = gm.DataLoader(config)
    stream = iter(loader)
    for _ in range(3):
        next(stream)
    resumed = gm.DataLoader(config)
    resumed.load_state_dict(loader.state_dict())
    rest = [np.array(batch[tensor]) for batch in resumed]
    np.testing.assert_array_equal(np.concatenate(rest), np.concatenate(expected))
