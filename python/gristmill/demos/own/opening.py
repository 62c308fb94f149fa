"""A path and what the arrays are -> demonstrations: which files, their tables fitted together, columns of all."""

from __future__ import annotations

import glob as globbing
import hashlib
import json
import os
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any

import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.lerobot import LeRobotDemos, data_set, open_lerobot
from gristmill.demos.own.arrays import ArrayDemos, checked
from gristmill.demos.own.columns import Gathered, mapped
from gristmill.demos.own.episodes import Ends, fault, find_ends
from gristmill.demos.own.hdf5 import natural, of_hdf5
from gristmill.demos.own.mcap import of_mcap
from gristmill.demos.own.names import ENDS, FLAGS, TELLING, USUAL, advice, choose, no_ends, usual
from gristmill.demos.own.parquet import of_parquet
from gristmill.demos.own.rlds import ENDING, features_of, files_of_rlds, is_rlds, of_rlds, split_of
from gristmill.demos.own.saved import files_of_saved, is_saved, of_saved
from gristmill.demos.own.tables import Table, is_shard, of_npy_folder, of_npz, of_pickle
from gristmill.demos.own.videos import NAME, of_video
from gristmill.demos.recording.folder import about_of, files_of_recorded, is_recorded, of_recorded
from gristmill.errors import ConfigError, FormatError
from gristmill.jobs.publish import published_folder

#: Kind of a file, by the end of its name.
_KINDS = {
    ".npz": "npz",
    ".pkl": "pickle",
    ".pickle": "pickle",
    ".pkl.gz": "pickle",
    ".hdf5": "hdf5",
    ".h5": "hdf5",
    ".parquet": "parquet",
    ".mcap": "mcap",
}

#: Rows of 2048 lie in files of these names.
_ROWS = ("steps", "values", "embeddings")

#: Maximum number of bytes of columns in memory.
MAX_BYTES = 2 << 30


def is_own(path: str) -> bool:
    """Whether data that Python reads lie here, arrays or LeRobot, as far as names tell; see `could_be_own`."""
    kind = _kind(path)
    if _is_set(path):
        return True
    if os.path.isdir(path):
        npy, others = _inside(path)
        if _are_rows(path, others):
            return False
        if any(name.split("-")[0] in _ROWS for name in npy):
            return False
        return any((usual(name) or "").split(".")[0] in ("obs", "acts") for name in npy) or bool(others)
    if kind == "npz":
        try:
            with zipfile.ZipFile(path) as file:
                return any(name.removesuffix(".npy").split("/")[0] in TELLING for name in file.namelist())
        except (OSError, zipfile.BadZipFile, ValueError):
            return False
    return kind in ("hdf5", "parquet", "rlds", "mcap", "video") and os.path.isfile(path)


def _is_set(path: str) -> bool:
    """Whether a folder is a data set by a file in it."""
    return data_set(path) is not None or is_saved(path) or is_rlds(path) or is_recorded(path)


def could_be_own(path: str) -> bool:
    """Whether `open_own` may be tried where no other form fits, so that its error tells which arrays there are."""
    if _is_set(path):
        return True
    if os.path.isdir(path):
        npy, others = _inside(path)
        own = bool(others) and not _are_rows(path, others)
        return own or (bool(npy) and not any(name.split("-")[0] in _ROWS for name in npy))
    return _kind(path) is not None


def files_of_a_form(path: str) -> list[str]:
    """The files in a folder, where each is demonstrations of a form that has a reader of its own; else none."""
    names = [os.path.join(path, name) for name in _inside(path)[1]] if os.path.isdir(path) else []
    return names if all(not is_own(name) and _gristmill.holds_demos(name) for name in names) else []


def open_own(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str] | None = None,
    columns: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> ArrayDemos | LeRobotDemos:
    """Opens arrays of one's own: `.npz`, a pickle, HDF5, Parquet, MCAP, a folder of `.npy`, or a folder of such files.

    The folder of a LeRobot data set opens as `gristmill.demos.lerobot.open_lerobot` says; a folder of trajectories that
    `imitation` saved has a row for each episode, and the files of one that TFDS wrote a record.

    A folder of files is one data set, in order of name: each file is one episode, unless arrays in it say where
    episodes end. So is a pattern such as `runs/*.npz`.

    Args:
        path: the file, folder or pattern.
        fields: by field the name of its array, such as `{"obs": "observations"}`; only those are read then, and what
            says where episodes end. A group stands for all arrays in it. Without it the usual names are known.
        columns: a folder for data that is larger than memory: columns in it, which are mapped, and found the next time.
        max_bytes: how much may be held in memory; with `columns` of one file.

    Raises:
        OSError: it cannot be read.
        FormatError: an array is missing, damaged, or does not fit the others; the message lists the names that there
            are, those that would do, and the call that takes them.
        MissingPackageError: HDF5 needs the extra `hdf5`, Parquet the extra `parquet`, MCAP the extra `mcap`.
    """
    name = os.path.expanduser(os.fspath(path))
    asked = _asked(fields)
    if data_set(name) is not None:
        return open_lerobot(name, fields=asked, columns=columns, max_bytes=max_bytes)
    files, form = _files(name)
    said = [features_of(files[0])] if form == "rlds" else []
    folder = None if columns is None else _spilled(os.fspath(columns), name, [*files, *said], asked)
    if folder is not None and os.path.exists(os.path.join(folder, "own.json")):
        return _there(name, form, folder, asked, columns, max_bytes)
    if folder is None:
        arrays, ends, about = _gathered(name, files, form, asked, max_bytes, None)
    else:
        with published_folder(folder) as staged:
            arrays, ends, about = _gathered(name, files, form, asked, max_bytes, staged)
            with open(os.path.join(staged, "own.json"), "w", encoding="utf-8") as file:
                json.dump({"about": about, "columns": list(arrays), "lengths": ends.lengths, "cut": ends.cut}, file)
            del arrays
        return _there(name, form, folder, asked, columns, max_bytes)
    return _made(name, form, arrays, ends, about, asked, columns, max_bytes)


def _asked(fields: Mapping[str, str] | None) -> dict[str, str] | None:
    """The fields of the argument, checked.

    Raises:
        ConfigError: none, or names that are none.
        TypeError: no mapping of names to names.
    """
    if fields is None:
        return None
    if not isinstance(fields, Mapping) or not all(isinstance(word, str) for pair in fields.items() for word in pair):
        raise TypeError(
            f"fields maps names of fields to names of arrays, as {{'obs': 'observations'}}; found {fields!r}"
        )
    if not fields or not all(word for pair in fields.items() for word in pair):
        raise ConfigError("fields is empty, or a name in it; expected such as {'obs': 'observations'}", field="fields")
    return {usual(field) or field: source for field, source in fields.items()}


def _files(path: str) -> tuple[list[str], str]:
    """The files of a data set, in order of name, and their kind; `npy` for a folder that is one table."""
    if is_saved(path):
        return files_of_saved(path), "imitation"
    if is_rlds(path):
        return files_of_rlds(path), "rlds"
    if is_recorded(path):
        return files_of_recorded(path), "recorded"
    if os.path.isdir(path):
        npy, others = _inside(path)
        if npy and not others:
            return [path], "npy"
        names = [os.path.join(path, name) for name in others]
    elif not os.path.exists(path) and globbing.has_magic(path):
        names = [name for name in globbing.glob(path) if _kind(name)]
    else:
        kind = _kind(path)
        if kind is None:
            with open(path, "rb"):
                pass
            says = f"no name of a file of arrays; expected one that ends in {', '.join(_KINDS)}, or a folder of .npy"
            raise fault(path, "unknown_format", says)
        return [path], kind
    kinds = sorted({str(_kind(name)) for name in names})
    if len(kinds) > 1:
        raise fault(path, "unsupported", f"files of several kinds: {', '.join(kinds)}; a data set has one of them")
    if not names:
        raise fault(path, "empty", f"no file of arrays; expected names that end in {', '.join(_KINDS)}, or .npy")
    return sorted(names, key=natural), kinds[0]


def _inside(folder: str) -> tuple[list[str], list[str]]:
    """Names of the `.npy` files directly in a folder, without the ending, and of other files of arrays."""
    names = sorted(name for name in os.listdir(folder) if not name.startswith("."))
    return [name.removesuffix(".npy") for name in names if name.endswith(".npy")], [
        name for name in names if _kind(name)
    ]


def _are_rows(folder: str, names: list[str]) -> bool:
    """Whether the first `.npz` in a folder is a shard of KataGo, whose rows are no demonstrations."""
    first = next((name for name in names if _kind(name) == "npz"), None)
    return first is not None and is_shard(os.path.join(folder, first))


def _kind(path: str) -> str | None:
    found = next((kind for end, kind in _KINDS.items() if path.endswith(end)), None)
    if found is None and NAME.search(path):
        return "video"
    return "rlds" if found is None and ENDING.search(path) else found


def _tables(path: str, kind: str, max_bytes: int, fields: Mapping[str, str] | None) -> Iterator[Table]:
    if kind == "npy":
        return of_npy_folder(path, _inside(path)[0])
    if kind == "hdf5":
        return of_hdf5(path, max_bytes, fields)
    if kind == "mcap":
        return of_mcap(path, max_bytes, fields)
    readers = {"npz": of_npz, "pickle": of_pickle, "parquet": of_parquet, "imitation": of_saved, "rlds": of_rlds}
    readers |= {"recorded": of_recorded, "video": of_video}
    return readers[kind](path, max_bytes)


def _gathered(
    path: str, files: list[str], kind: str, fields: dict[str, str] | None, max_bytes: int, folder: str | None
) -> tuple[dict[str, npt.NDArray[Any]], Ends, dict[str, Any]]:
    """The arrays of all files."""
    gathered, ends = Gathered(path, max_bytes, folder), Ends([], [])
    about: dict[str, Any] = {"fields": {}, "left_out": {}}
    alone = len(files) == 1 and not (os.path.isdir(path) and kind != "npy")
    for file in files:
        first = len(ends.lengths)
        for table in _tables(file, kind, max_bytes, fields):
            arrays, found = _fitted(path, table, fields, not alone, about)
            gathered.add(table.place, arrays)
            ends.lengths.extend(found.lengths)
            ends.cut.extend(found.cut)
        if kind == "rlds":
            splits = about.setdefault("splits", {})
            splits[split_of(file)] = [splits.get(split_of(file), [first])[0], len(ends.lengths)]
    if kind == "recorded":
        about["recording"] = {name: value for name, value in about_of(path).items() if name != "schema"}
    if kind == "video":
        about["lossy"] = list(about["fields"])
    if not ends.lengths:
        raise fault(path, "empty", "no episodes in it")
    return gathered.finish(), ends, about


def _fitted(
    path: str, table: Table, fields: dict[str, str] | None, alone: bool, about: dict[str, Any]
) -> tuple[dict[str, npt.NDArray[Any]], Ends]:
    """The fields of a table, with as many rows each, and its episodes; `alone` makes it one where it says nothing."""
    chosen = choose(path, table.place, table.names, fields)
    needed = {
        field for field in chosen if field.split(".")[0] in USUAL or field in (fields or {}) or fields is not None
    }
    arrays: dict[str, npt.NDArray[Any]] = {}
    left: dict[str, str] = {}
    for field, name in chosen.items():
        if name in about["left_out"]:
            continue
        try:
            array = table.array(name)
            if array.ndim == 0:
                raise fault(table.place, "unsupported", "one value; expected a row for each step", name)
            arrays[field] = array if field in ENDS and field not in FLAGS else checked(table.place, name, array)
        except FormatError as error:
            if field in needed or error.kind not in ("unsupported", "out_of_range"):
                raise
            left[name] = error.kind
    counted = next((one for one in ("acts", "rews", *FLAGS, "episode_index", "obs") if one in arrays), None)
    counted = counted or next((one for one in arrays if one.split(".")[0] in ("acts", "obs")), None)
    if counted is None:
        first = next(iter(arrays), None)
        if first is None:
            raise fault(table.place, "missing", f"no field in it {advice(path, table.names)}")
        counted = first
    steps = len(arrays[counted])
    whole = table.whole or (alone and not any(name in arrays for name in ENDS))
    seen = [name for name in arrays if name.split(".")[0] == "obs"]
    if whole and seen and all(len(arrays[name]) == steps + 1 for name in seen):
        for name in seen:
            arrays.setdefault(f"next_{name}", arrays[name][1:])
            arrays[name] = arrays[name][:-1]
    for field in list(arrays):
        if len(arrays[field]) != steps and field != "episode_lengths":
            says = f"{len(arrays[field])} rows; `{chosen.get(counted, counted)}` has {steps}"
            if field in needed or field not in chosen:
                raise fault(table.place, "wrong_size", f"{says}: expected one for each step", chosen.get(field, field))
            left[chosen[field]] = says
            del arrays[field]
    given = {name: array for name, array in arrays.items() if name in ENDS}
    ends = find_ends(table.place, given, steps, whole, no_ends(path, table.names))
    about["left_out"].update({**table.left, **left})
    for field in ("episode_lengths", "episode_starts"):
        arrays.pop(field, None)
    about["fields"].update({field: chosen[field] for field in arrays if field in chosen})
    return {field: _plain(field, array) for field, array in arrays.items()}, ends


def _plain(field: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Flags as one truth value for each step; other fields as they are."""
    return array.reshape(len(array)) != 0 if field in FLAGS else array


def _spilled(folder: str, path: str, files: list[str], fields: dict[str, str] | None) -> str:
    """The folder of the arrays of these files, as they are now, read in this way."""
    digest = hashlib.blake2b(json.dumps(fields, sort_keys=True).encode(), digest_size=12)
    for file in files:
        names = [os.path.join(file, f"{name}.npy") for name in _inside(file)[0]] if os.path.isdir(file) else [file]
        for name in names:
            stat = os.stat(name)
            digest.update(f"{os.path.abspath(name)}\n{stat.st_size} {stat.st_mtime_ns}\n".encode())
    os.makedirs(folder, exist_ok=True)
    return os.path.join(folder, f"{os.path.basename(os.path.abspath(path))}-{digest.hexdigest()}")


def _there(
    path: str,
    form: str,
    folder: str,
    fields: dict[str, str] | None,
    columns: str | os.PathLike[str] | None,
    max_bytes: int,
) -> ArrayDemos:
    """The arrays that were written before."""
    with open(os.path.join(folder, "own.json"), encoding="utf-8") as file:
        known = json.load(file)
    arrays, ends = mapped(folder, known["columns"]), Ends(known["lengths"], known["cut"])
    return _made(path, form, arrays, ends, known["about"], fields, columns, max_bytes)


def _made(
    path: str,
    form: str,
    arrays: dict[str, npt.NDArray[Any]],
    ends: Ends,
    about: dict[str, Any],
    fields: dict[str, str] | None,
    columns: str | os.PathLike[str] | None,
    max_bytes: int,
) -> ArrayDemos:
    demos = ArrayDemos(path, f"demo.own.{form}", arrays, ends)
    demos.about = about
    kept = None if columns is None else os.path.abspath(columns)
    demos._options = {"fields": fields, "columns": kept, "max_bytes": max_bytes}
    return demos
