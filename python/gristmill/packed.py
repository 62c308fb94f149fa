"""What selections of every kind of pack have: marks, games that are the same, and how the pack came to be."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.again import derive_again, remembered, select_again
from gristmill.errors import StateError


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

    #: `pack`, `append`, `merge`, `convert`, `rescore`, ...; `unrecorded` where no job recorded it.
    job: str
    #: Name and version of the program.
    writer: str
    options: dict[str, Any] = field(default_factory=dict)
    #: The games that it took from files: `name` of the folder, `games`, `stored_bytes`, `xxh3_128`.
    sources: dict[str, Any] | None = None
    #: The lineage of each thing that went into it.
    made_from: list[list[Step]] = field(default_factory=list)


class Compiled(Protocol):
    """What compiled selections of every kind of pack have."""

    def packed(self) -> _gristmill.Packed:
        """The pack, with what all kinds of packs have."""
        ...

    def marked(self, name: str) -> Self:
        """The frames that a mark marks."""
        ...

    def without(self, name: str) -> Self:
        """The frames that a mark does not mark."""
        ...


C = TypeVar("C", bound=Compiled)


class Selection(Generic[C]):
    """A selection of a pack's frames: rows of 2048, positions of chess games, steps of trajectories."""

    #: The selection that it was made of: itself, and the method, arguments and options, and which of the results it is.
    made_from: tuple[Any, str, tuple[Any, ...], dict[str, Any], tuple[int, ...]] | None = None

    def __init__(self, compiled: C) -> None:
        self._compiled = compiled

    def __reduce__(self) -> tuple[Any, ...]:
        """The folder of the pack and which games or runs are selected: another process opens it and selects them again.

        Where frames were selected within games (by a mark, a filter, a slice of rows), it does what was done here.
        """
        own: Any = self
        packed = self._compiled.packed()
        folder, size = os.path.abspath(packed.folder), (len(own), own.num_frames)
        whole = own.num_frames == packed.frames
        ids = None if whole else list(own.game_ids if hasattr(own, "game_ids") else own.run_ids)
        try:
            select_again(folder, ids, size)
        except StateError:
            if self.made_from is None:
                raise
            return derive_again, (self.made_from, folder, size)
        return select_again, (folder, ids, size)

    @property
    def lineage(self) -> list[Step]:
        """How the pack came to be: jobs in order, with what went into each; empty where its manifest does not tell."""
        return steps(self._compiled.packed().lineage())

    def mark(self, name: str, which: str | npt.ArrayLike, *, replace: bool = False, workers: int | None = None) -> Mark:
        """Marks frames of the pack, in a file beside the data, which is not changed.

        Args:
            name: letters, digits, `.`, `-` and `_`.
            which: a condition in SQL over every frame of the pack, whatever is selected here: the fields of its
                records, what is made of them, and `game.` with the columns of its table of games. Of chess: `best_q`,
                `plies_left`, ..., `ply`, `men`, `black_to_move`. Of 2048: `move_dir`, `branch_evs_0`, ...,
                `max_exponent`, `empty_cells`, `tile_sum`, and `reward`, `return_raw`, `return_scaled` of values beside
                the rows. Or a mask: a boolean for each frame of this selection.
            replace: replace a mark of this name.
            workers: threads that ask the rule; one per core by default.

        Raises:
            ConfigError: SQLite does not understand it, or there is a mark of this name.
            FormatError: a frame that cannot be read; it says which.
            TypeError: neither SQL nor a mask of booleans.
            ValueError: a mask of another length.
        """
        return self._marked_as({"name": name, "replace": replace, "workers": workers, **_which(which)})

    def update_mark(self, name: str, *, workers: int | None = None) -> Mark:
        """Extends a mark by the frames that were added to the pack since it was made.

        Raises:
            ConfigError: it is no mark of a rule.
            FormatError: there is none of this name, or it is of another pack.
        """
        return self._marked_as({"name": name, "replace": False, "workers": workers, "rule": None, "mask": None})

    def _marked_as(self, marking: dict[str, Any]) -> Mark:
        self._compiled.packed().mark(marking)
        return next(mark for mark in self.marks() if mark.name == marking["name"])

    def remove_mark(self, name: str) -> None:
        """Removes a mark.

        Raises:
            FormatError: there is none of this name.
        """
        self._compiled.packed().remove_mark(name)

    def marks(self) -> list[Mark]:
        """The marks of the pack, by name; those too that are of other frames or cannot be read."""
        return [Mark(**mark) for mark in json.loads(self._compiled.packed().marks())]

    @remembered
    def marked(self, name: str) -> Self:
        """Those of the frames that a mark marks. All games remain, even without a frame.

        Raises:
            FormatError: there is no such mark, it is damaged, of another pack, or of fewer frames than are there.
        """
        return type(self)(self._compiled.marked(name))

    @remembered
    def without(self, name: str) -> Self:
        """Those of the frames that a mark does not mark.

        Raises:
            FormatError: as `marked`.
        """
        return type(self)(self._compiled.without(name))

    def duplicates(self, *, mark: str | None = None, replace: bool = False) -> Duplicates:
        """Games of the pack that are the same: to the byte, recorded otherwise, or as images: with colours exchanged in
        chess, turned and mirrored in 2048.

        Args:
            mark: mark the frames of all but the first of each group under this name, for `without`.
            replace: replace a mark of this name.

        Raises:
            ConfigError: there is a mark of this name.
            FormatError: a frame that cannot be read; it says which.
        """
        found = json.loads(self._compiled.packed().duplicates(mark, replace))
        groups = [[Duplicate(**game) for game in group["games"]] for group in found.pop("groups")]
        counts = {name: found[name] for name in ("games", "different", "exact", "same", "mirrored", "frames")}
        return Duplicates(**counts, groups=groups)


def _which(which: str | npt.ArrayLike) -> dict[str, Any]:
    if isinstance(which, str):
        return {"rule": which, "mask": None}
    mask = np.asarray(which)
    if mask.dtype != np.bool_ or mask.ndim != 1:
        raise TypeError(f"expected SQL or a mask of booleans along one axis, found {mask.dtype} {mask.shape}")
    return {"rule": None, "mask": np.ascontiguousarray(mask).view(np.uint8)}


def steps(text: str) -> list[Step]:
    """A lineage from JSON."""

    def step(told: dict[str, Any]) -> Step:
        made_from = [[step(inner) for inner in steps] for steps in told.pop("from", [])]
        return Step(**told, made_from=made_from)

    return [step(told) for told in json.loads(text)]
