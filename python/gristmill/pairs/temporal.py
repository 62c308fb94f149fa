"""Constructors that pair observations by their time: the same, some steps apart, the last few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.options.arguments import named_fields
from gristmill.pairs.constructor import (
    ActingConstructor,
    At,
    Before,
    Numbers,
    PairBatch,
    PairConstructor,
    PairSet,
    Piece,
    Whole,
    need_ends,
)
from gristmill.records.arrays import Array

Mode: TypeAlias = Literal["dynamics", "inverse_dynamics", "action_prediction"]

#: What stands where a trajectory had not begun: its first observation again, or zeros.
Fill: TypeAlias = Literal["first", "zeros"]


@named_fields
@dataclass(frozen=True)
class Identity(PairConstructor):
    """Each observation with itself: context and target are one array."""

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """One piece under two names."""
        obs = At(self.obs, pairs.context(rows))
        return {"context": obs, "target": obs, "traj_ts_ids": pairs.ids(rows)}


@named_fields
@dataclass(frozen=True)
class TemporalOffset(ActingConstructor):
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

    def fields(self) -> tuple[str, ...]:
        """Observations; actions with a mode."""
        return (self.obs,) if self.mode is None else (self.obs, self.action)

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Nothing is drawn."""
        need_ends(pairs)

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """As the table says."""
        first, last = pairs.context(rows), pairs.target(rows)
        found: dict[str, Piece] = {"context": At(self.obs, first), "traj_ts_ids": pairs.ids(rows)}
        later = At(self.obs, last)
        if self.mode is None:
            return {**found, "target": later}
        acts = At(self.action, first[:, None] + np.arange(self.temporal_offset))
        if self.mode == "dynamics":
            return {**found, "target": later, "extra_context": acts}
        extra: dict[str, Piece] = {"extra_context": later} if self.mode == "inverse_dynamics" else {}
        return {**found, "target": acts, **extra}


@named_fields
@dataclass(frozen=True)
class Reverse(PairConstructor):
    """The later of two observations as the context, the earlier as the target."""

    temporal_offset: int = 1

    def __post_init__(self) -> None:
        _check_offset(self.temporal_offset)

    def offsets(self) -> tuple[str, int, int]:
        """One offset."""
        return "reverse", self.temporal_offset, self.temporal_offset

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Nothing is drawn."""
        need_ends(pairs)


@named_fields
@dataclass(frozen=True)
class UniformOffset(PairConstructor):
    """Two observations, `least` to `most` steps apart: drawn for each step and epoch, from what its trajectory has."""

    least: int = 1
    most: int = 1

    draws = True

    def __post_init__(self) -> None:
        _check_offset(self.least)
        if self.most < self.least:
            raise ConfigError(f"offsets from {self.least} to {self.most}: expected them in order", field="most")

    def offsets(self) -> tuple[str, int, int]:
        """The range."""
        return "uniform", self.least, self.most

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """The offsets are drawn with the pairs."""
        need_ends(pairs)

    def whole(self, pairs: PairSet[PairBatch]) -> dict[str, Whole]:
        """The earlier step as it is drawn for each pass."""
        rows = np.arange(len(pairs))
        later, ids = pairs.target(rows), pairs.ids(rows)
        before = Before(self.obs, later, np.ascontiguousarray(ids[:, 1]), self.least, self.most)
        return {"context": before, "target": At(self.obs, later), "traj_ts_ids": ids}


@named_fields
@dataclass(frozen=True)
class Windows(ActingConstructor):
    """The last `size` observations as the context, (B, size, ...), oldest first, the next action as the target.

    Where a trajectory began later, `fill` stands there; `extra_context` (bool, (B, size)) says which are real. With
    `acts="all"` the target is the action after each of them, (B, size, ...), filled likewise.
    """

    size: int = 4
    fill: Fill = "first"
    acts: Literal["last", "all"] = "last"

    def __post_init__(self) -> None:
        _check_window(self.size, self.fill)
        if self.acts not in ("last", "all"):
            raise ConfigError(f"acts={self.acts!r}; expected 'last' or 'all'", field="acts")

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Finds the windows; nothing is drawn."""
        _find_windows(pairs, self.size, self.fill)

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """Windows, actions and masks."""
        steps = pairs.context(rows)
        window = pairs.drawn["window"][steps]
        acts = At(self.action, window if self.acts == "all" else steps)
        mask = pairs.drawn["mask"][steps]
        return {"context": At(self.obs, window), "target": acts, "extra_context": mask, "traj_ts_ids": pairs.ids(rows)}


@named_fields
@dataclass(frozen=True)
class FrameStack(ActingConstructor):
    """The last `size` frames joined on the channel axis, (B, size * C, H, W), oldest first; the next action as target.

    Where a trajectory began later, `fill` stands there; `extra_context` (bool, (B, size)) says which are real.
    """

    size: int = 4
    fill: Fill = "zeros"

    def __post_init__(self) -> None:
        _check_window(self.size, self.fill)

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Finds the windows; nothing is drawn."""
        _find_windows(pairs, self.size, self.fill)
        if pairs.column(self.obs).ndim < 2:
            raise ConfigError("observations are numbers; expected an axis to stack on", field="obs")

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """Stacks, actions and masks."""
        steps = pairs.context(rows)
        stack = At(self.obs, pairs.drawn["window"][steps], joined=True)
        mask = pairs.drawn["mask"][steps]
        return {
            "context": stack,
            "target": At(self.action, steps),
            "extra_context": mask,
            "traj_ts_ids": pairs.ids(rows),
        }


def _find_windows(pairs: PairSet[PairBatch], size: int, fill: Fill) -> None:
    need_ends(pairs)
    rows, mask = _gristmill.window_rows(pairs.data.lengths, size)
    steps = mask.nbytes // size
    window: Numbers = Array.over(rows, (steps, size), np.int64).view(np.ndarray)
    pairs.drawn["mask"] = Array.over(mask, (steps, size), np.bool_).view(np.ndarray)
    pairs.drawn["window"] = window if fill == "first" else np.where(pairs.drawn["mask"], window, -1)


def _check_window(size: int, fill: Fill) -> None:
    if size < 1:
        raise ConfigError(f"windows of {size} steps; expected at least 1", field="size")
    if fill not in ("first", "zeros"):
        raise ConfigError(f"fill={fill!r}; expected 'first' or 'zeros'", field="fill")


def _check_offset(offset: int) -> None:
    if offset < 1:
        raise ConfigError(f"an offset of {offset} steps; expected at least 1", field="temporal_offset")
