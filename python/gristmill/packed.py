"""What is known of a pack beside its frames: marks, games that are the same, and how it came to be."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt


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
class Step:
    """A job in the lineage of a pack."""

    #: `pack`, `append`, `merge`, `convert`, `rescore`, ...; `unrecorded` for what nobody wrote down.
    job: str
    #: Name and version of the program.
    writer: str
    options: dict[str, Any] = field(default_factory=dict)
    #: The games that it took from files: `name` of the folder, `games`, `stored_bytes`, `xxh3_128`.
    sources: dict[str, Any] | None = None
    #: The lineage of each thing that went into it.
    made_from: list[list[Step]] = field(default_factory=list)


class Compiled(Protocol):
    """What selections of every kind of pack have."""

    def mark(self, marking: dict[str, Any]) -> str:
        """Makes or extends a mark; what came of it, in JSON."""
        ...

    def marks(self) -> str:
        """The marks, in JSON."""
        ...

    def duplicates(self, name: str | None, replace: bool) -> str:
        """Games that are the same, in JSON; marked where there is a name."""
        ...


def make(
    compiled: Compiled,
    name: str,
    which: str | npt.ArrayLike | None,
    *,
    replace: bool = False,
    workers: int | None = None,
) -> Mark:
    """Makes a mark by a rule or a mask, or extends it where neither is given."""
    marking: dict[str, Any] = {
        "name": name,
        "rule": None,
        "mask": None,
        "replace": replace,
        "dry_run": False,
        "workers": workers,
    }
    if isinstance(which, str):
        marking["rule"] = which
    elif which is not None:
        mask = np.asarray(which)
        if mask.dtype != np.bool_ or mask.ndim != 1:
            raise TypeError(f"expected SQL or a mask of booleans along one axis, found {mask.dtype} {mask.shape}")
        marking["mask"] = np.ascontiguousarray(mask).view(np.uint8)
    compiled.mark(marking)
    return next(mark for mark in listed(compiled) if mark.name == name)


def listed(compiled: Compiled) -> list[Mark]:
    """The marks of a pack, by name."""
    return [Mark(**mark) for mark in json.loads(compiled.marks())]


def duplicates(compiled: Compiled, mark: str | None, replace: bool) -> Duplicates:
    """Finds games that are the same, and marks all but the first of each group where there is a name."""
    found = json.loads(compiled.duplicates(mark, replace))
    counts = {name: found[name] for name in ("games", "different", "exact", "same", "mirrored", "frames")}
    return Duplicates(**counts, groups=[[Duplicate(**game) for game in group["games"]] for group in found["groups"]])


def steps(text: str) -> list[Step]:
    """A lineage from JSON."""

    def step(told: dict[str, Any]) -> Step:
        made_from = [[step(inner) for inner in steps] for steps in told.pop("from", [])]
        return Step(**told, made_from=made_from)

    return [step(told) for told in json.loads(text)]
