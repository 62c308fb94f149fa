"""What is open, whatever it is -> a folder that the engine packs, beside the pack for as long as that is made."""

from __future__ import annotations

import glob
import os
import shutil
import sqlite3
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from gristmill import _gristmill
from gristmill.demos.lerobot import LeRobotDemos, data_set
from gristmill.demos.minari.shards import write_shards
from gristmill.demos.own.arrays import ArrayDemos, from_arrays
from gristmill.demos.own.by_game import Tabled, tabled, tabled_file
from gristmill.demos.own.opening import is_own
from gristmill.demos.own.rlds import is_rlds
from gristmill.demos.own.saved import is_saved
from gristmill.demos.own.tabled import add_game
from gristmill.demos.own.tabled import write as write_table
from gristmill.demos.recording.folder import is_recorded
from gristmill.demos.selected import Selected
from gristmill.demos.source import Demos
from gristmill.errors import ConfigError, FormatError, GristmillError
from gristmill.jobs.publish import beside, hidden_folder
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.source import Source
from gristmill.packs.source import open as open_any
from gristmill.packs.trajectories import Trajectories
from gristmill.pairs.trajectories import Columns, as_trajectories

#: Bytes of arrays in one file on the way.
_PART = 1 << 28

#: What lies beside rows and is of the whole pack.
_NAMES = "valuation_types.json"

#: Files of rows of 2048.
_DATABASE = "metadata.db"


def opened_to_pack(source: Any, fields: Mapping[str, str] | None) -> Any:
    """What is to be packed, open; `None` for a folder that the engine packs itself.

    Raises:
        ConfigError: `fields` for what is open already.
        OSError: it cannot be read.
        FormatError: as of `gristmill.open`.
    """
    if not isinstance(source, str | os.PathLike):
        if fields is not None:
            raise ConfigError("fields goes with a path; what is open has its fields", field="fields")
        return source
    path = os.path.expanduser(os.fspath(source))
    own = is_recorded(path) or (is_own(path) and not _gristmill.holds_games(path))
    engines = os.path.isdir(path) and not own
    if fields is None and (engines or (not os.path.exists(path) and not glob.has_magic(path))):
        return None
    known = data_set(path) is not None or is_saved(path) or is_rlds(path) or is_recorded(path)
    if fields is None and os.path.isdir(path) and not known and _holds_native(path):
        return None
    return (tabled_file(path) if fields is None else None) or open_any(path, fields=fields)


def _holds_native(folder: str) -> bool:
    """Whether the first file in a folder that can be opened is of a form that the engine reads."""
    for name in sorted(os.listdir(folder)):
        try:
            if not name.startswith("."):
                return not isinstance(open_any(os.path.join(folder, name)), ArrayDemos)
        except FormatError as error:
            # One file of an episode need not say where it ends.
            if error.kind == "missing":
                return False
        except (GristmillError, OSError):
            continue
    return False


@contextmanager
def as_folder(source: Any, pack: str, progress: Callable[[int, int], object] | None) -> Iterator[tuple[str, bool]]:
    """The folder that is packed, and whether it holds 2048 rows already, of which `gristmill.convert` makes a pack.

    Raises:
        TypeError: nothing that can be packed.
        ConfigError: positions were selected within games, or there is nothing.
        OSError: it cannot be written.
    """
    if isinstance(source, Rows) and _whole(source):
        yield source.path, True
        return
    made = Path(beside(pack, "source"))
    with hidden_folder(str(made)):
        are_rows = isinstance(source, Rows)
        if isinstance(source, Rows):
            _rows(source, made)
        elif isinstance(source, Columns | Mapping) and not hasattr(source, "with_format"):
            found: Any = as_trajectories(source)
            _arrays(from_arrays(found.lengths, {one: found.column(one) for one in found.layout.names}), made, progress)
        elif isinstance(_whole_of(source), ArrayDemos):
            _arrays(source, made, progress)
        elif isinstance(_whole_of(source), LeRobotDemos):
            _by_episode(source, made, progress)
        elif isinstance(source, Demos | Trajectories | Selected):
            write_shards(made / "demos.tar", _named(source), progress=progress)
        elif isinstance(source, Games) and source.kind == "bullet":
            _boards(source, made / "boards.bf")
        elif isinstance(source, Games) and source.kind == "binpack":
            _chains(source, made / "chains.binpack")
        elif isinstance(source, Games):
            _games(source, made / "games.tar", progress)
        elif isinstance(source, Source):
            # A name that the pack keeps of it.
            os.symlink(os.path.abspath(source._path), made / os.path.basename(source._path))
        elif (table := source if isinstance(source, Tabled) else tabled(source)) is not None:
            are_rows = write_table(table, made)
        else:
            kinds = "a folder, a file, a table of frames, or what gristmill.open and gristmill.demos.from_arrays give"
            raise TypeError(f"{type(source).__name__} cannot be packed; expected {kinds}")
        yield str(made), are_rows


def _arrays(demos: ArrayDemos | Selected, folder: Path, progress: Callable[[int, int], object] | None) -> None:
    """Trajectories of arrays as `.npz` files, whole trajectories in each."""
    names = [name for name in demos.layout.names if name]
    lengths, first, part = demos.lengths, 0, 0
    bytes_of_step = max(1, sum(demos.layout.dtype[name].itemsize for name in names))
    starts = np.cumsum([0, *lengths]).tolist()
    columns = {name: demos.column(name) for name in names}
    while first < len(lengths):
        last = first + 1
        while last < len(lengths) and (starts[last + 1] - starts[first]) * bytes_of_step <= _PART:
            last += 1
        steps = slice(starts[first], starts[last])
        with open(folder / f"arrays-{part:06}.npz", "wb") as file:
            np.savez(file, allow_pickle=False, **{name: column[steps] for name, column in columns.items()})
        first, part = last, part + 1
        if progress is not None:
            progress(first, len(lengths))


def _by_episode(demos: LeRobotDemos | Selected, folder: Path, progress: Callable[[int, int], object] | None) -> None:
    """The same for trajectories that are decoded one after another, a few at a time, with their texts."""
    names, size, part = [name for name in demos.layout.names if name], 0, 0
    together: list[Any] = []
    beside: list[dict[str, list[Any]]] = []
    for i in range(len(demos)):
        together.append(demos[i])
        beside.append(demos.extras(i))
        size += together[-1].nbytes
        if size >= _PART or i + 1 == len(demos):
            arrays = {name: np.concatenate([one[name] for one in together]) for name in names}
            texts = {name: np.array([text for one in beside for text in one[name]], object) for name in beside[0]}
            with open(folder / f"arrays-{part:06}.npz", "wb") as file:
                np.savez(file, allow_pickle=True, **arrays, **texts)
            size, part, together, beside = 0, part + 1, [], []
        if progress is not None:
            progress(i + 1, len(demos))


def _whole_of(demos: Any) -> Any:
    """What trajectories were selected of."""
    while isinstance(demos, Selected):
        demos = demos._whole
    return demos


def _named(demos: Any) -> Any:
    """Demonstrations with the attributes that errors name."""
    return _Chosen(demos, _whole_of(demos)) if isinstance(demos, Selected) else demos


class _Chosen:
    """Some trajectories, with path and form of the whole."""

    def __init__(self, demos: Selected, whole: Any) -> None:
        self._demos = demos
        self.path: str = whole.path
        self.format: str = whole.format

    def __getattr__(self, name: str) -> Any:
        return getattr(self._demos, name)

    def __len__(self) -> int:
        return len(self._demos)

    def __getitem__(self, index: int) -> Any:
        return self._demos[index]


def _whole(source: Any) -> bool:
    """Whether all of a pack is selected."""
    return bool(source.num_frames == source._compiled.total_frames)


def _games(games: Games, path: Path, progress: Callable[[int, int], object] | None) -> None:
    """Games of chess as the chunk files that they were, in a tar, in their order."""
    if not games.num_games:
        raise ConfigError("no game is selected", field="input")
    width = len(str(games.num_games))
    with tarfile.open(path, "w", format=tarfile.USTAR_FORMAT) as file:
        for i, records in enumerate(games.games):
            add_game(file, f"training.{i:0{width}}.gz", np.asarray(records))
            if progress is not None:
                progress(i + 1, games.num_games)


def _boards(boards: Games, path: Path) -> None:
    """Boards of bulletformat, one after another."""
    with open(path, "wb") as file:
        for records in boards.games:
            file.write(np.asarray(records).tobytes())


def _chains(chains: Games, path: Path) -> None:
    """Positions of a binpack as a binpack: those that follow from each other are one chain."""
    held, size = list[np.ndarray[Any, Any]](), 0
    with open(path, "wb") as file:
        for i, records in enumerate(chains.games):
            held.append(np.array(records))
            size += held[-1].nbytes
            if size >= _PART or i + 1 == chains.num_games:
                file.write(_gristmill.binpack_of(np.concatenate(held).view(np.uint8)))
                held, size = [], 0


def _rows(rows: Rows, folder: Path) -> None:
    """Selected games of 2048 as a pack of them alone."""
    runs, there = set(rows.run_ids), rows.path
    if rows.form != "steps":
        raise ConfigError(
            f"a selection of {rows.form} rows; gristmill.convert makes a pack of all of them", field="input"
        )
    shutil.copy2(os.path.join(there, _DATABASE), folder / _DATABASE)
    if os.path.exists(os.path.join(there, _NAMES)):
        shutil.copy2(os.path.join(there, _NAMES), folder / _NAMES)
    records = np.asarray(rows.take(np.arange(len(rows))))
    with closing(sqlite3.connect(folder / _DATABASE)) as database, database:
        known = dict(database.execute("SELECT id, steps FROM runs"))
        database.executemany("DELETE FROM runs WHERE id = ?", [(run,) for run in known if run not in runs])
    ids, counts = np.unique(records["run_id"], return_counts=True)
    there_are = dict(zip(ids.tolist(), counts.tolist(), strict=True))
    if any(known[run] != there_are.get(run, 0) for run in runs) or not runs:
        message = "some steps of these games are selected and others are not; a pack holds whole games"
        raise ConfigError(message, field="input")
    np.save(folder / "steps.npy", records, allow_pickle=False)
