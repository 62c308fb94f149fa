"""One report on data that somebody brings: what is wrong and where, what repeats, what leaks; as `gristmill doctor`."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.options.arguments import named


@dataclass(frozen=True)
class Diagnosis:
    """What came of `doctor`; the guide on it says what each check means."""

    #: What was examined.
    path: str
    #: Whether no check found anything.
    healthy: bool
    #: Files (data sets, where Python reads them) by format, and files of no known format.
    formats: dict[str, int]
    other_files: int
    #: Games or trajectories, bad ones included, and frames.
    chunks: int
    frames: int
    #: What was found: `check`, `says`, `count`, `of`, `cause`, `remedy`, and `first`, places as those of `verify`.
    findings: list[dict[str, Any]]
    #: `games`, `different`, `complete`: how many games repeat, and whether all were compared.
    games: dict[str, Any]
    #: Bytes: `files`, `stored`, `inflated`, and where packing was tried `packed`.
    sizes: dict[str, int]
    #: What `stats` gives.
    stats: dict[str, Any]
    #: `seconds` of one pass here, `frames_per_second` of one thread, `workers`, `sample`; `None` without frames.
    epoch: dict[str, Any] | None = None

    def __repr__(self) -> str:
        found = "healthy" if self.healthy else ", ".join(f"{one['check']} {one['count']}" for one in self.findings)
        return f"Diagnosis({found}: {self.frames} frames in {self.chunks} chunks)"


@named
def doctor(
    path: Path,
    *,
    held_out: Iterable[Path] = (),
    fields: Mapping[str, str] | None = None,
    workers: int | None = None,
) -> Diagnosis:
    """Examines data: every check over every frame, and signs that no rule forbids. Nothing is changed.

    What Python alone reads (Minari data sets, arrays of one's own in HDF5, Parquet, `.npz`, pickles or `.npy`) is
    written as shards into the folder for temporary files meanwhile; places are those in the data themselves.

    Args:
        path: a file, a pack, a Minari data set, arrays, or a folder of them.
        held_out: data that must share no game with it, such as the other side of a split.
        fields: of arrays, as for `gristmill.open`: by field the name of its array.
        workers: threads; one per core by default. They change nothing in what is found.

    Raises:
        ConfigError: options that do not fit the data; held-out data that are an empty folder.
        MissingPackageError: the package that reads the form is not installed.
        FileNotFoundError: data or held-out data that are not there.
        OSError: the folder for temporary files cannot be written.
    """
    sides = list(enumerate([os.fspath(path), *(os.fspath(one) for one in held_out)]))
    there = [(side, place) for side, place in sides if _is_for_python(place) or (side == 0 and fields is not None)]
    others = [place for _, place in sides[1:]]
    if not there:
        return Diagnosis(**json.loads(_gristmill.examine(sides[0][1], others, "[]", workers)))
    # Loading these takes longer than all other imports.
    import tempfile

    from gristmill.jobs.standing import stand_ins

    with tempfile.TemporaryDirectory(prefix="gristmill-doctor-") as folder:
        made = json.dumps(stand_ins(there, folder, fields))
        return Diagnosis(**json.loads(_gristmill.examine(sides[0][1], others, made, workers)))


def _is_for_python(path: str) -> bool:
    """Whether Python reads what lies at a path, at least a part of it."""
    if not os.path.exists(path):
        return False
    from gristmill.demos.minari import data_folder
    from gristmill.demos.own.opening import is_own

    if data_folder(path) is not None or is_own(path):
        return True
    walked = (place for place, _, _ in os.walk(path)) if os.path.isdir(path) else iter(())
    return any(data_folder(place) is not None or is_own(place) for place in walked)
