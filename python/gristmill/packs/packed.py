"""What a pack says of itself: its marks, games that are the same, and how it came to be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gristmill.jobs.part import Share


@dataclass(frozen=True)
class Mark:
    """A mark, and whether it is of the frames that are in the pack now."""

    name: str
    #: How its frames were found: by an SQL `rule`, `given` as a mask, as `duplicates`; empty where it cannot be read.
    origin: str
    rule: str
    #: How many frames it marks, of how many that there were.
    marked: int
    frames: int
    #: `grown`: of the first frames of the pack, and `update_mark` extends it.
    fit: Literal["fits", "grown", "foreign", "damaged"] = "fits"
    #: What is wrong with one that cannot be read.
    fault: str | None = None


@dataclass(frozen=True)
class MarkShare:
    """A share of a mark: its folder, its number, and how many of its frames the rule accepts."""

    folder: str
    share: Share
    asked: int
    marked: int
    #: Whether nothing was written: then no frame was read, either.
    dry_run: bool


@dataclass(frozen=True)
class Duplicate:
    """A game of a group: what it is to the first of it, and where it came from, where the pack knows."""

    id: int
    relation: Literal["first", "exact", "same", "mirrored"]
    source: str | None = None


@dataclass(frozen=True)
class Duplicates:
    """Games of a pack that are the same, in groups, and how many they are."""

    games: int
    #: How many different ones there are among them.
    different: int
    exact: int
    same: int
    mirrored: int
    #: Positions or rows of those that are not the first of their group.
    frames: int
    groups: list[list[Duplicate]]


@dataclass(frozen=True)
class DuplicatesShare:
    """A share of a search for games that are the same: its folder, its number, and how many games it took."""

    folder: str
    share: Share
    games: int
    #: Whether nothing was written: then no game was read, either.
    dry_run: bool


@dataclass(frozen=True)
class LineageStep:
    """A job in the lineage of a pack."""

    #: `pack`, `append`, `merge`, `convert`, `rescore`, ...; `unrecorded` where no job recorded it.
    job: str
    #: Name and version of the program.
    writer: str
    options: dict[str, Any] = field(default_factory=dict)
    #: The games that it took from files: `name` of the folder, `games`, `stored_bytes`, `xxh3_128`.
    sources: dict[str, Any] | None = None
    #: The lineage of each thing that went into it.
    made_from: list[list[LineageStep]] = field(default_factory=list)


def alike(found: dict[str, Any]) -> Duplicates:
    """Games that are the same, as the engine says them."""
    groups = [[Duplicate(**game) for game in group["games"]] for group in found["groups"]]
    counts = {name: found[name] for name in ("games", "different", "exact", "same", "mirrored", "frames")}
    return Duplicates(**counts, groups=groups)


def which_frames(which: str | npt.ArrayLike) -> dict[str, Any]:
    """What a mark is of: SQL, or a mask of booleans.

    Raises:
        TypeError: neither of them.
    """
    if isinstance(which, str):
        return {"rule": which, "mask": None}
    mask = np.asarray(which)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError(f"expected SQL or a mask of booleans along one axis, found {mask.dtype} {mask.shape}")
    return {"rule": None, "mask": np.ascontiguousarray(mask).view(np.uint8)}


def steps(text: str) -> list[LineageStep]:
    """A lineage from JSON."""

    def step(told: dict[str, Any]) -> LineageStep:
        made_from = [[step(inner) for inner in steps] for steps in told.pop("from", [])]
        return LineageStep(**told, made_from=made_from)

    return [step(told) for told in json.loads(text)]
