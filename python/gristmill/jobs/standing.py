"""Minari and LeRobot data sets and arrays of one's own, read by Python alone -> shards in their stead, by episode."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.errors import ConfigError, FormatError, GristmillError, MissingPackageError

if TYPE_CHECKING:
    from gristmill.demos.source import Demos

#: Steps of a shard after which the next episode begins another: a shard is read whole.
_STEPS = 1 << 15

#: Data sets of a folder, each open or with the error of its opening.
_Found = dict[str, "Demos | GristmillError | OSError"]


def stand_ins(
    sides: Iterable[tuple[int, str]], folder: str, fields: Mapping[str, str] | None = None
) -> list[dict[str, Any]]:
    """Writes the data sets at or below paths as shards into a folder that exists.

    Args:
        sides: paths, each with the number of the data it belongs to: 0 is examined, others are held out.
        folder: where the shards are written.
        fields: of arrays of one's own, as for `gristmill.open`; they are those of side 0.

    Returns:
        By data set `path`, `side`, `format`, `size` in bytes, `seconds` of reading, `files` (`file`, `episodes`,
        `frames`) and `faults` (`chunk`, `kind`, `rule`, `detail`). What cannot be read is a fault and no error.

    Raises:
        ConfigError: `fields` that do not fit.
        MissingPackageError: the package that reads the form is not installed.
        OSError: the shards cannot be written.
    """
    made: list[dict[str, Any]] = []
    for side, path in sides:
        for name, demos in _found(path, fields if side == 0 else None).items():
            known = {"path": name, "side": side, "size": _size(name)}
            if isinstance(demos, Exception):
                made.append({**known, "format": _form(name), "faults": [_fault(demos, None)]})
            else:
                made.append({**known, "format": demos.format, **_written(demos, Path(folder, str(len(made))))})
    return made


def _found(path: str, fields: Mapping[str, str] | None) -> _Found:
    """The data sets at or below a path that Python reads."""
    from gristmill.demos.minari import data_folder, open_minari
    from gristmill.demos.own.opening import is_own, open_own

    found: _Found = {}
    below = [path]
    if os.path.isdir(path) and data_folder(path) is None and not is_own(path):
        below = []
        for place, folders, _ in os.walk(path):
            folders.sort()
            if place != path and (data_folder(place) is not None or is_own(place)):
                below.append(place)
                folders.clear()
    for name in below:
        try:
            minari = data_folder(name) is not None
            if minari and fields is not None:
                says = f"{name}: a Minari data set says itself what its fields are; leave fields out"
                raise ConfigError(says, field="fields")
            found[name] = open_minari(name) if minari else open_own(name, fields=fields)
        except (ConfigError, MissingPackageError):
            raise
        except (GristmillError, OSError) as error:
            found[name] = error
    return found


def _written(demos: Demos, stem: Path) -> dict[str, Any]:
    """Writes the episodes that can be read; what is known of them."""
    from gristmill.demos.minari.shards import Flat
    from gristmill.demos.writer import ShardWriter

    files: list[dict[str, Any]] = []
    faults: list[dict[str, Any]] = []
    flat, writer, seconds = Flat(demos), None, 0.0
    try:
        for i in range(len(demos)):
            began = time.monotonic()
            try:
                frames = list(flat.frames(i))
            except (FormatError, OSError) as error:
                faults.append(_fault(error, i))
                continue
            finally:
                seconds += time.monotonic() - began
            if _says_neither(frames[-1]):
                detail = "the last step is neither terminated nor truncated"
                faults.append({"chunk": i, "kind": "out_of_range", "rule": "no_end", "detail": detail})
            if writer is None:
                files.append({"file": f"{stem}-{len(files)}.tar.zst", "episodes": [], "frames": 0})
                writer = ShardWriter(files[-1]["file"], flat.meta, level=1)
            for frame in frames:
                writer.write(frame)
            files[-1]["episodes"].append(i)
            files[-1]["frames"] += len(frames)
            if files[-1]["frames"] >= _STEPS:
                writer.close()
                writer = None
        if writer is not None:
            writer.close()
            writer = None
    finally:
        if writer is not None:
            writer.abort()
    return {"files": files, "faults": faults, "seconds": seconds}


def _says_neither(last: Mapping[str, Any]) -> bool:
    """Whether a data set that has both flags of ends sets neither in the last step of an episode."""
    flags = [last[name] for name in ("terminated", "truncated") if name in last]
    return len(flags) == 2 and not any(bool(flag) for flag in flags)


def _fault(error: Exception, episode: int | None) -> dict[str, Any]:
    """An error of a reader as a fault of the data."""
    if isinstance(error, OSError):
        kinds = {PermissionError: "permission", FileNotFoundError: "not_found"}
        kind = next((name for one, name in kinds.items() if isinstance(error, one)), "io")
    else:
        kind = getattr(error, "kind", "corrupt")
    return {"chunk": episode, "kind": kind, "detail": str(error)}


def _form(path: str) -> str:
    """The form of what could not be opened, by its name."""
    if os.path.isfile(path):
        return f"demo.own.{path.rsplit('.', 1)[-1]}"
    known = {"meta/info.json": "demo.lerobot", "features.json": "demo.own.rlds", "state.json": "demo.own.imitation"}
    return next((form for name, form in known.items() if os.path.isfile(os.path.join(path, name))), "demo.minari")


def _size(path: str) -> int:
    """Bytes of the files of a data set."""
    if not os.path.isdir(path):
        return os.path.getsize(path) if os.path.exists(path) else 0
    walked = (os.path.join(place, name) for place, _, names in os.walk(path) for name in names)
    return sum(os.path.getsize(name) for name in walked if os.path.isfile(name))
