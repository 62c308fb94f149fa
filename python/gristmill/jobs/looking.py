"""Every check over every frame, and what data is like: as `gristmill verify` and `gristmill stats` do it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

from gristmill import _gristmill
from gristmill.config import Path, to_json
from gristmill.jobs import part
from gristmill.options.arguments import named


@dataclass(frozen=True)
class Verification:
    """What came of `verify`."""

    #: Whether nothing is wrong.
    ok: bool
    #: Frames, chunks (of a pack of rows its runs) and files that were checked, bad ones included.
    checked: int
    chunks: int
    files: int
    #: Files in folders that are of no known format.
    skipped: int
    #: Files that could not be read, which says nothing of what is in them.
    unreadable: int
    #: What is wrong, at most `max_faults`: where (`file`, `member`, `chunk`, `frame`, `offset`, ...), `kind`, `detail`.
    faults: list[dict[str, Any]]
    #: How many faults there are in all, and how many each check found.
    fault_count: int
    checks: dict[str, int]
    #: Of rows of 2048 the first fault of each check, drawn.
    examples: list[dict[str, Any]]
    #: Whole records that can still be had from damaged chunks.
    salvageable: int

    def __repr__(self) -> str:
        found = "ok" if self.ok else f"{self.fault_count} faults"
        return f"Verification({found}: {self.checked} frames in {self.chunks} chunks of {self.files} files)"


@dataclass(frozen=True)
class ReportShare:
    """A share of a report: its folder, which it is, and how many files, chunks and frames it read."""

    folder: str
    share: part.Share
    files: int
    chunks: int
    frames: int
    #: Whether nothing was written: then nothing was read, either.
    dry_run: bool


@overload
def verify(
    *paths: Path, against: Path | None = None, max_faults: int = 100, workers: int | None = None
) -> Verification: ...
@overload
def verify(
    *paths: Path,
    against: Path | None = None,
    max_faults: int = 100,
    workers: int | None = None,
    share: part.OneOf,
    output: Path,
    dry_run: bool = False,
) -> ReportShare: ...
@named
def verify(
    *paths: Path,
    against: Path | None = None,
    max_faults: int = 100,
    workers: int | None = None,
    share: part.OneOf | None = None,
    output: Path | None = None,
    dry_run: bool = False,
) -> Verification | ReportShare:
    """Checks every frame of files, packs and folders of them. Damage is what it reports, and raises nothing.

    Args:
        paths: files, packs, folders.
        against: folder of games that one pack, the only path then, is compared with: each must be in it.
        max_faults: faults that are listed; all are counted.
        workers: threads; one per core by default. They change nothing in the result.
        share: of a report that many machines make, the share that is made now, `"17/400"` or `(17, 400)`, counted from
            1. It is made beside `output`, once however often this is called; `commit` makes the report of all.
        output: with `share`, the file of the report: the line that `gristmill verify --json` prints.
        dry_run: with `share`, see what the share would be only.

    Raises:
        ConfigError: options that do not fit each other; a share of another plan than those that are there, of paths
            that cannot be listed, or of a report that is there.
        FileNotFoundError: a path where nothing is.
        OSError: a share that cannot be written.
        TypeError: no path.
    """
    of_share = part.of_report(share, output, dry_run)
    options = to_json({"max_faults": max_faults, "workers": workers, "share": of_share})
    found = json.loads(_gristmill.verify_paths(_texts(paths), against, options))
    return Verification(**found) if of_share is None else _reported(found)


@overload
def stats(
    *paths: Path, q_weight: float = 6.0, pol_scale: float = 3.5, workers: int | None = None
) -> dict[str, Any]: ...
@overload
def stats(
    *paths: Path,
    q_weight: float = 6.0,
    pol_scale: float = 3.5,
    workers: int | None = None,
    share: part.OneOf,
    output: Path,
    dry_run: bool = False,
) -> ReportShare: ...
@named
def stats(
    *paths: Path,
    q_weight: float = 6.0,
    pol_scale: float = 3.5,
    workers: int | None = None,
    share: part.OneOf | None = None,
    output: Path | None = None,
    dry_run: bool = False,
) -> dict[str, Any] | ReportShare:
    """What data is like, as plain data: results, lengths, plies, men, visits, weights, versions, bytes.

    Just what `gristmill stats --json` prints. Bad chunks are counted and left out; `verify` says what is wrong.

    Args:
        paths: files, packs, folders.
        q_weight: weight of the difference in value, by which positions are weighed (difference focus).
        pol_scale: weight of the difference in policy.
        workers: threads; one per core by default. They change nothing in the result.
        share: as for `verify`.
        output: with `share`, the file of the report: the line that `gristmill stats --json` prints.
        dry_run: as for `verify`.

    Raises:
        ConfigError: options out of range; of shares as for `verify`.
        FileNotFoundError: a path where nothing is.
        OSError: a share that cannot be written.
        TypeError: no path.
    """
    of_share = part.of_report(share, output, dry_run)
    options = to_json({"q_weight": q_weight, "pol_scale": pol_scale, "workers": workers, "share": of_share})
    found: dict[str, Any] = json.loads(_gristmill.stats_of_paths(_texts(paths), options))
    return found if of_share is None else _reported(found)


def _reported(found: dict[str, Any]) -> ReportShare:
    """A share of a report, as the engine says it."""
    return ReportShare(**{**found, "share": part.Share(**found["share"])})


def _texts(paths: Iterable[Path]) -> list[str | os.PathLike[str]]:
    found: list[str | os.PathLike[str]] = [os.fspath(path) for path in paths]
    if not found:
        raise TypeError("expected at least one path")
    return found
