"""Marks of the frames of a pack, and its games that are the same; or shares of them, which many machines make."""

from __future__ import annotations

import json
from typing import Any, overload

import numpy.typing as npt

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.errors import ConfigError
from gristmill.jobs import part
from gristmill.packs.packed import Duplicates, DuplicatesShare, Mark, MarkShare, alike, which_frames


class Marking:
    """What a selection of a pack says and writes of all frames of the pack."""

    _compiled: _gristmill.Selection

    @overload
    def mark(
        self, name: str, which: str | npt.ArrayLike, *, replace: bool = False, workers: int | None = None
    ) -> Mark: ...
    @overload
    def mark(
        self, name: str, which: str, *, workers: int | None = None, share: part.OneOf, dry_run: bool = False
    ) -> MarkShare: ...
    def mark(
        self,
        name: str,
        which: str | npt.ArrayLike,
        *,
        replace: bool = False,
        workers: int | None = None,
        share: part.OneOf | None = None,
        dry_run: bool = False,
    ) -> Mark | MarkShare:
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
            share: of a rule that many machines apply, the share of the frames that it is applied to now, `"17/400"` or
                `(17, 400)`, counted from 1. It is made beside the pack, once however often this is called;
                `gristmill.commit` puts the mark of all into the pack.
            dry_run: with `share`, see what the share would be only.

        Raises:
            ConfigError: SQLite does not understand it, or there is a mark of this name; a share of another plan than
                those that are there, or of a mask.
            FormatError: a frame that cannot be read; it says which.
            TypeError: neither SQL nor a mask of booleans.
            ValueError: a mask of another length.
        """
        if share is None and dry_run:
            raise ConfigError("it goes with share, for one share of a mark", field="dry_run")
        of_share = None if share is None else part.words(share)
        marking = {"name": name, "replace": replace, "workers": workers, "share": of_share, "dry_run": dry_run}
        if of_share is None:
            return self._marked_as(marking | which_frames(which))
        made = json.loads(self._compiled.mark(marking | which_frames(which)))
        return MarkShare(**{**made, "share": part.Share(**made["share"])})

    def update_mark(self, name: str, *, workers: int | None = None) -> Mark:
        """Extends a mark by the frames that were added to the pack since it was made.

        Raises:
            ConfigError: it is no mark of a rule.
            FormatError: there is none of this name, or it is of another pack.
        """
        marking = {"name": name, "replace": False, "workers": workers, "rule": None, "mask": None}
        return self._marked_as(marking | {"share": None, "dry_run": False})

    def _marked_as(self, marking: dict[str, Any]) -> Mark:
        self._compiled.mark(marking)
        return next(mark for mark in self.marks() if mark.name == marking["name"])

    def remove_mark(self, name: str) -> None:
        """Removes a mark.

        Raises:
            FormatError: there is none of this name.
        """
        self._compiled.remove_mark(name)

    def marks(self) -> list[Mark]:
        """The marks of the pack, by name; those too that are of other frames or cannot be read."""
        return [Mark(**mark) for mark in json.loads(self._compiled.marks())]

    @overload
    def duplicates(
        self, *, mark: str | None = None, replace: bool = False, workers: int | None = None
    ) -> Duplicates: ...
    @overload
    def duplicates(
        self,
        *,
        mark: str | None = None,
        workers: int | None = None,
        share: part.OneOf,
        output: Path,
        dry_run: bool = False,
    ) -> DuplicatesShare: ...
    def duplicates(
        self,
        *,
        mark: str | None = None,
        replace: bool = False,
        workers: int | None = None,
        share: part.OneOf | None = None,
        output: Path | None = None,
        dry_run: bool = False,
    ) -> Duplicates | DuplicatesShare:
        """Games of the pack that are the same: to the byte, recorded otherwise, or as images: with colours exchanged in
        chess, turned and mirrored in 2048.

        Args:
            mark: mark the frames of all but the first of each group under this name, for `without`.
            replace: replace a mark of this name.
            workers: threads that read games; one per core by default. They change nothing in the result.
            share: of a search that many machines make, the share of the games whose keys are found now, `"17/400"` or
                `(17, 400)`, counted from 1. It is made beside `output`, once however often this is called;
                `gristmill.commit` makes the report of all, and the mark.
            output: with `share`, the file of the report: the line that `gristmill dedup --json` prints.
            dry_run: with `share`, see what the share would be only.

        Raises:
            ConfigError: there is a mark of this name, or a report; a share of another plan than those that are there,
                or one that is to replace a mark, which the commit does.
            FormatError: a frame that cannot be read; it says which.
            OSError: a share that cannot be written.
        """
        of_share = part.of_report(share, output, dry_run)
        found = json.loads(
            self._compiled.duplicates({"mark": mark, "replace": replace, "workers": workers, "share": of_share})
        )
        if of_share is None:
            return alike(found)
        return DuplicatesShare(**{**found, "share": part.Share(**found["share"])})
