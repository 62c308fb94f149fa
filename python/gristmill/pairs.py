"""What stands together as context and target: constructors of pairs over trajectories. No pair crosses the end of one.

pairs = gm.pairs.TemporalOffset("dynamics", temporal_offset=3).over(gm.open("demos.tar.zst"))
len(pairs), pairs[[0, 5]].context
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.arrays import Array
from gristmill.errors import ConfigError

#: Numbers of pairs.
Rows: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]

Mode: TypeAlias = Literal["dynamics", "inverse_dynamics", "action_prediction"]


class Trajectories(Protocol):
    """Steps of trajectories, one after another: `Demos`, or a `Part` of them."""

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        ...

    def column(self, name: str) -> Array:
        """One field of all steps."""
        ...


@dataclass(frozen=True)
class PairBatch:
    """Some pairs, with a leading batch axis."""

    #: What a model is given.
    context: npt.NDArray[Any]
    #: What it is to tell of it.
    target: npt.NDArray[Any]
    #: What it is given besides; `None` where the constructor has none.
    extra_context: npt.NDArray[Any] | None
    #: Trajectory and step of each pair, int64 of shape (B, 2).
    traj_ts_ids: npt.NDArray[np.int64]

    def items(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that there are, by name."""
        arrays = {"context": self.context, "target": self.target, "traj_ts_ids": self.traj_ts_ids}
        return arrays if self.extra_context is None else {**arrays, "extra_context": self.extra_context}


def numbers(memory: _gristmill.Memory) -> npt.NDArray[np.int64]:
    """Whole numbers of 64 bits in the engine's memory."""
    return Array.over(memory, (memory.nbytes // 8,), np.int64).view(np.ndarray)


class PairSet:
    """The pairs of some trajectories: which steps stand together, and their values when they are asked for."""

    def __init__(self, constructor: Constructor, data: Trajectories, seed: int, epoch: int) -> None:
        self._constructor = constructor
        self._data = data
        self._seed = seed
        kind, least, most = constructor.offsets()
        parts = _gristmill.pair_rows(data.lengths, kind, least, most, seed, epoch)
        self._plan = [numbers(part) for part in parts]
        self._columns: dict[str, npt.NDArray[Any]] = {}
        #: What the constructor keeps for the epoch.
        self.drawn: dict[str, npt.NDArray[Any]] = {}
        constructor.prepare(self, seed, epoch)

    @property
    def data(self) -> Trajectories:
        """The trajectories."""
        return self._data

    def at_epoch(self, epoch: int) -> PairSet:
        """The same pairs, with what is drawn for them drawn for another epoch."""
        other = PairSet(self._constructor, self._data, self._seed, epoch)
        other._columns = self._columns
        return other

    def leave_out_first(self) -> None:
        """Leaves out the first pair of all."""
        self._plan = [part[1:] for part in self._plan]

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self._plan[0])

    def __getitem__(self, rows: Rows | slice) -> PairBatch:
        """The pairs of these numbers.

        Raises:
            IndexError: there is no such pair.
        """
        return self._constructor.batch(self, np.arange(len(self))[rows])

    def values(self, name: str, steps: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """A field at some steps."""
        if name not in self._columns:
            self._columns[name] = np.asarray(self._data.column(name))
        return self._columns[name][steps]

    def context(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the context's step of each pair."""
        return self._plan[0][rows]

    def target(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Number of the target's step of each pair."""
        return self._plan[1][rows]

    def ids(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Trajectory and step of each pair."""
        return np.stack([self._plan[2][rows], self._plan[3][rows]], axis=-1)


class Constructor:
    """Says which steps are paired, and what is made of them."""

    def over(self, data: Trajectories, *, seed: int = 0, epoch: int = 0) -> PairSet:
        """The pairs of some trajectories; what is drawn depends on seed, epoch and step alone.

        Raises:
            ConfigError: the trajectories lack what it needs.
        """
        return PairSet(self, data, seed, epoch)

    def offsets(self) -> tuple[str, int, int]:
        """Kind of pairing, least and greatest offset."""
        return "identity", 0, 0

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """Draws what is drawn once for an epoch."""

    def batch(self, pairs: PairSet, rows: npt.NDArray[np.int64]) -> PairBatch:
        """The values of some pairs."""
        obs = pairs.values("obs", pairs.context(rows))
        return PairBatch(obs, pairs.values("obs", pairs.target(rows)), None, pairs.ids(rows))


@dataclass(frozen=True)
class Identity(Constructor):
    """Each observation with itself."""

    def batch(self, pairs: PairSet, rows: npt.NDArray[np.int64]) -> PairBatch:
        """Context and target are one array."""
        obs = pairs.values("obs", pairs.context(rows))
        return PairBatch(obs, obs, None, pairs.ids(rows))


@dataclass(frozen=True)
class TemporalOffset(Constructor):
    """Observations `temporal_offset` steps apart, and the actions between them.

    | mode | context | target | extra_context |
    |---|---|---|---|
    | `None` | obs[t-k] | obs[t] | |
    | `dynamics` | obs[t-k] | obs[t] | acts[t-k ... t-1], (B, k, ...) |
    | `inverse_dynamics` | obs[t-k] | acts[t-k ... t-1] | obs[t] |
    | `action_prediction` | obs[t-k] | acts[t-k ... t-1] | |

    A trajectory of L steps gives max(0, L - k) pairs, whose step is t.
    """

    mode: Mode | None = None
    temporal_offset: int = 1

    def __post_init__(self) -> None:
        if self.mode not in (None, "dynamics", "inverse_dynamics", "action_prediction"):
            known = "None, dynamics, inverse_dynamics, action_prediction"
            raise ConfigError(f"no mode is called {self.mode!r}; known are {known}", field="mode")
        _check_offset(self.temporal_offset)

    def offsets(self) -> tuple[str, int, int]:
        """One offset."""
        return "offset", self.temporal_offset, self.temporal_offset

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """Nothing is drawn."""
        _need_ends(pairs)

    def batch(self, pairs: PairSet, rows: npt.NDArray[np.int64]) -> PairBatch:
        """As the table says."""
        first, last = pairs.context(rows), pairs.target(rows)
        context, ids = pairs.values("obs", first), pairs.ids(rows)
        if self.mode is None:
            return PairBatch(context, pairs.values("obs", last), None, ids)
        acts = pairs.values("acts", first[:, None] + np.arange(self.temporal_offset))
        if self.mode == "dynamics":
            return PairBatch(context, pairs.values("obs", last), acts, ids)
        extra = pairs.values("obs", last) if self.mode == "inverse_dynamics" else None
        return PairBatch(context, acts, extra, ids)


@dataclass(frozen=True)
class Reverse(Constructor):
    """The later of two observations as the context, the earlier as the target."""

    temporal_offset: int = 1

    def __post_init__(self) -> None:
        _check_offset(self.temporal_offset)

    def offsets(self) -> tuple[str, int, int]:
        """One offset."""
        return "reverse", self.temporal_offset, self.temporal_offset

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """Nothing is drawn."""
        _need_ends(pairs)


@dataclass(frozen=True)
class UniformOffset(Constructor):
    """Two observations, `least` to `most` steps apart: drawn for each step and epoch, from what its trajectory has."""

    least: int = 1
    most: int = 1

    def __post_init__(self) -> None:
        _check_offset(self.least)
        if self.most < self.least:
            raise ConfigError(f"offsets from {self.least} to {self.most}: expected them in order", field="most")

    def offsets(self) -> tuple[str, int, int]:
        """The range."""
        return "uniform", self.least, self.most

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """The offsets are drawn with the pairs."""
        _need_ends(pairs)


@dataclass(frozen=True)
class Windows(Constructor):
    """The last `size` observations as the context, (B, size, ...), oldest first, the next action as the target.

    Where a trajectory began later its first observation is repeated; `extra_context` (bool, (B, size)) says which are
    real.
    """

    size: int = 4

    def __post_init__(self) -> None:
        if self.size < 1:
            raise ConfigError(f"windows of {self.size} steps; expected at least 1", field="size")

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """Nothing is drawn."""
        _need_ends(pairs)
        rows, mask = _gristmill.window_rows(pairs.data.lengths, self.size)
        steps = mask.nbytes // self.size
        pairs.drawn["window"] = Array.over(rows, (steps, self.size), np.int64)
        pairs.drawn["mask"] = Array.over(mask, (steps, self.size), np.bool_)

    def batch(self, pairs: PairSet, rows: npt.NDArray[np.int64]) -> PairBatch:
        """Windows, actions and masks."""
        steps = pairs.context(rows)
        context = pairs.values("obs", pairs.drawn["window"][steps])
        return PairBatch(context, pairs.values("acts", steps), pairs.drawn["mask"][steps], pairs.ids(rows))


@dataclass(frozen=True)
class Jigsaw(Constructor):
    """Tiles of a picture in the order of a permutation as the context, the permutation's number as the target.

    The picture (C, H, W) is cut into cells of H/3 x W/3; of each the upper left part, smaller by two in both
    directions, is placed in the order of the permutation, row by row. All permutations are used once, in an order drawn
    for the epoch, then again. `compat` leaves out the first step of all, as the original did.
    """

    permutation_path: str | os.PathLike[str]
    n_tiles: int = 9
    compat: bool = False

    def __post_init__(self) -> None:
        if self.n_tiles < 1 or math.isqrt(self.n_tiles) ** 2 != self.n_tiles:
            raise ConfigError(f"{self.n_tiles} tiles; expected a square number", field="n_tiles")

    def prepare(self, pairs: PairSet, seed: int, epoch: int) -> None:
        """Reads the permutations and draws their order."""
        table = np.load(self.permutation_path, allow_pickle=False)
        if table.ndim != 2 or table.shape[1] != self.n_tiles or (np.sort(table) != np.arange(self.n_tiles)).any():
            message = f"{os.fspath(self.permutation_path)}: expected rows of the numbers 0 to {self.n_tiles - 1}"
            raise ConfigError(message, field="permutation_path")
        if self.compat:
            pairs.leave_out_first()
        pairs.drawn["class"] = numbers(_gristmill.class_order(len(pairs), len(table), seed, epoch))
        pairs.drawn["table"] = table.astype(np.int64)

    def batch(self, pairs: PairSet, rows: npt.NDArray[np.int64]) -> PairBatch:
        """Tiles put together, and the class of each."""
        pictures = pairs.values("obs", pairs.context(rows))
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
        return PairBatch(context, classes[:, None], None, pairs.ids(rows))


def _check_offset(offset: int) -> None:
    if offset < 1:
        raise ConfigError(f"an offset of {offset} steps; expected at least 1", field="temporal_offset")


def _need_ends(pairs: PairSet) -> None:
    """Without `dones` nothing says where trajectories end, and pairs would join what does not belong together."""
    names = getattr(getattr(pairs.data, "demos", pairs.data), "layout").names  # noqa: B009  (both have it)
    if "dones" not in names:
        raise ConfigError("the data has no `dones`, so nothing says where trajectories end", field="dones")
