"""An HDF5 file -> tables: all data sets of the file, or those of each group where a group is an episode (robomimic)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.names import usual
from gristmill.demos.own.tables import MAX_ARRAYS, Table
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: Maximum number of that the filters of HDF5 make of a byte.
_MAX_RATIO = 1032

#: Groups within each other.
_DEPTH = 8


def of_hdf5(path: str, max_bytes: int, fields: Mapping[str, str] | None) -> Iterator[Table]:
    """The tables of an HDF5 file.

    Raises:
        MissingPackageError: h5py is not installed.
        FormatError: the file is damaged, or leads to others.
        OSError: it cannot be read.
    """
    h5py = optional("h5py", "hdf5")
    # What the system says of it comes first, in its own words.
    with open(path, "rb"):
        pass
    try:
        with h5py.File(path, "r") as file:
            for place, group in _groups(h5py, path, file, set((fields or {}).values())):
                whole = group is not file and place != path
                found = _datasets(h5py, path, group)
                yield Table(place, list(found), _reader(path, found, max_bytes), whole)
    except FormatError:
        raise
    except DAMAGE as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        kind = "truncated" if "truncated" in str(error) else "corrupt"
        raise fault(path, kind, f"HDF5: {error}") from error


def _groups(h5py: Any, path: str, file: Any, wanted: set[str]) -> Iterator[tuple[str, Any]]:
    """The groups that are tables: the file itself, or one for each episode, in the order of their numbers."""
    level = file
    for _ in range(_DEPTH):
        names = _members(h5py, path, level)
        if _tells(names, wanted):
            break
        below = {name: level[name] for name in names if isinstance(level[name], h5py.Group)}
        episodes = [name for name, group in below.items() if _tells(_members(h5py, path, group), wanted)]
        if episodes:
            for name in sorted(episodes, key=natural):
                yield f"{path}: {below[name].name}", below[name]
            return
        if len(below) != 1 and "data" not in below:
            break
        level = below["data"] if "data" in below else next(iter(below.values()))
    else:
        level = file
    yield path, level if _tells(_members(h5py, path, level), wanted) else file


def _tells(names: list[str], wanted: set[str]) -> bool:
    """Whether arrays of observations or actions, or one that is wanted, lie here."""
    heads = {name.split("/")[0].split(".")[0] for name in wanted}
    return any(usual(name) in ("obs", "acts") or name in wanted or name in heads for name in names)


def _members(h5py: Any, path: str, group: Any) -> list[str]:
    """The names in a group; links to other places are refused."""
    names = list(group)
    if len(names) > MAX_ARRAYS:
        raise fault(path, "too_large", f"{len(names)} members of `{group.name}`; at most {MAX_ARRAYS} are read")
    for name in names:
        if not isinstance(group.get(name, getlink=True), h5py.HardLink):
            says = "a link to another place; expected the data themselves"
            raise fault(path, "forbidden", says, f"{group.name.rstrip('/')}/{name}")
    return names


def _datasets(h5py: Any, path: str, group: Any, above: str = "", depth: int = _DEPTH) -> dict[str, Any]:
    """All data sets at or below a group, by their path in it."""
    found: dict[str, Any] = {}
    for name in _members(h5py, path, group):
        member = group[name]
        if isinstance(member, h5py.Group):
            if depth:
                found.update(_datasets(h5py, path, member, f"{above}{name}/", depth - 1))
        elif isinstance(member, h5py.Dataset):
            found[f"{above}{name}"] = member
    return found


def _reader(path: str, found: Mapping[str, Any], max_bytes: int) -> Any:
    def read(name: str) -> npt.NDArray[Any]:
        dataset = found[name]
        place = dataset.name
        if dataset.shape is None:
            raise fault(path, "unsupported", "no array", place)
        if dataset.is_virtual or dataset.external:
            raise fault(path, "forbidden", "its data lie in another file", place)
        if dataset.dtype.kind not in "biuf":
            raise fault(path, "unsupported", f"elements of type {dataset.dtype}; expected numbers", place)
        held = dataset.id.get_storage_size()
        if dataset.nbytes > max_bytes or dataset.nbytes > _MAX_RATIO * max(held, 1):
            says = f"shape {dataset.shape}, {dataset.nbytes} bytes; the file holds {held}, the bound is {max_bytes}"
            raise fault(path, "too_large", says, place)
        return np.asarray(dataset[()])

    return read


def natural(name: str) -> list[tuple[int, int, str]]:
    """`demo_2` before `demo_10`."""
    parts = re.split(r"(\d+)", name)
    return [(0, int(part), "") if part.isdecimal() else (1, 0, part) for part in parts if part]
