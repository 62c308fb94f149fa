"""Pictures cut into tiles and put together in another order."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from gristmill import _gristmill
from gristmill.errors import ConfigError, FormatError
from gristmill.options.arguments import named_fields
from gristmill.pairs.constructor import (
    Classes,
    Numbers,
    PairBatch,
    PairConstructor,
    PairSet,
    Piece,
    Tiles,
    Whole,
    numbers,
)


@named_fields
@dataclass(frozen=True)
class Jigsaw(PairConstructor):
    """Tiles of a picture in the order of a permutation as the context, the permutation's number as the target.

    The picture (C, H, W) is cut into cells of H/3 x W/3; of each the upper left part, smaller by two in both
    directions, is placed in the order of the permutation, row by row. All permutations are used once, in an order drawn
    for the epoch, then again. `compat` leaves out the first step of all, as the original did, which counts from the
    step after it: the first trajectory that is left has the ids (0, 0), (0, 1), ...
    """

    permutation_path: str | os.PathLike[str]
    n_tiles: int = 9
    compat: bool = False

    draws = True

    def __post_init__(self) -> None:
        if self.n_tiles < 1 or math.isqrt(self.n_tiles) ** 2 != self.n_tiles:
            raise ConfigError(f"{self.n_tiles} tiles; expected a square number", field="n_tiles")

    def describe(self) -> dict[str, Any]:
        """The permutations themselves count, not the place of their file."""
        import hashlib

        table = hashlib.blake2b(self._table().tobytes(), digest_size=16).hexdigest()
        told = {**super().describe(), "permutations": table}
        del told["permutation_path"]
        return told

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Reads the permutations and draws their order."""
        table = self._table()
        if self.compat:
            pairs.leave_out_first()
            pairs.drawn["first"] = pairs.ids(np.arange(min(len(pairs), 1)))
        pairs.drawn["class"] = numbers(_gristmill.class_order(len(pairs), len(table), seed, epoch))
        pairs.drawn["table"] = table

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """Tiles put together, and the class of each."""
        pictures = pairs.values(self.obs, pairs.context(rows))
        if pictures.ndim != 4:
            raise ConfigError(f"observations of shape {pictures.shape[1:]}; expected (C, H, W)", field="obs")
        side = math.isqrt(self.n_tiles)
        batch, channels, height, width = pictures.shape
        h, w = height // side, width // side
        if h < 3 or w < 3:
            raise ConfigError(f"pictures of {height} x {width} are too small for {self.n_tiles} tiles", field="obs")
        cells = pictures[:, :, : side * h, : side * w].reshape(batch, channels, side, h, side, w)
        tiles = cells.transpose(0, 2, 4, 1, 3, 5).reshape(batch, self.n_tiles, channels, h, w)[..., : h - 2, : w - 2]
        classes = pairs.drawn["class"][rows]
        placed = tiles[np.arange(batch)[:, None], pairs.drawn["table"][classes]]
        grid = placed.reshape(batch, side, side, channels, h - 2, w - 2).transpose(0, 3, 1, 4, 2, 5)
        context = np.ascontiguousarray(grid).reshape(batch, channels, side * (h - 2), side * (w - 2))
        return {"context": context, "target": classes[:, None], "traj_ts_ids": self._ids(pairs, rows)}

    def whole(self, pairs: PairSet[PairBatch]) -> dict[str, Whole]:
        """Tiles in the order of each pass, and its class."""
        rows = np.arange(len(pairs))
        tiles = Tiles(self.obs, pairs.context(rows), pairs.drawn["table"])
        return {"context": tiles, "target": Classes(tiles), "traj_ts_ids": self._ids(pairs, rows)}

    def _ids(self, pairs: PairSet[PairBatch], rows: Numbers) -> Numbers:
        """Trajectory and step, both counted from the first pair of all in the compatible form."""
        ids = pairs.ids(rows)
        for trajectory, step in pairs.drawn.get("first", ()):
            ids[ids[:, 0] == trajectory, 1] -= step
            ids[:, 0] -= trajectory
        return ids

    def _table(self) -> Numbers:
        try:
            table = np.load(self.permutation_path, allow_pickle=False)
        except (ValueError, EOFError) as error:
            says = f"{os.fspath(self.permutation_path)}: corrupt: no array of permutations: {error}"
            raise FormatError(says, kind="corrupt", source=os.fspath(self.permutation_path)) from error
        if not isinstance(table, np.ndarray):
            says = f"{os.fspath(self.permutation_path)}: unsupported: an .npz; expected the array itself"
            raise FormatError(says, kind="unsupported", source=os.fspath(self.permutation_path))
        if table.ndim != 2 or table.shape[1] != self.n_tiles or (np.sort(table) != np.arange(self.n_tiles)).any():
            message = f"{os.fspath(self.permutation_path)}: expected rows of the numbers 0 to {self.n_tiles - 1}"
            raise ConfigError(message, field="permutation_path")
        return np.ascontiguousarray(table, np.int64)
