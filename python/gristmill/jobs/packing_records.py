"""Games of one's own, or tables with their rows (`.npz`, `.jsonl`, Parquet) -> files of records to pack."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.own.by_game import Tabled, tabled, tabled_file
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.names import usual
from gristmill.demos.own.parquet import of_parquet
from gristmill.demos.own.recorded import SORTS, write_records
from gristmill.demos.own.tables import Table, is_shard, of_npz
from gristmill.errors import ConfigError
from gristmill.jobs.publish import beside, hidden_folder
from gristmill.packs.games import Games
from gristmill.records.layout import Layout
from gristmill.records.writing import Game, Writer

#: Columns that say of which game a row is, the first that is there, where none is named.
_GAME = ("game_id", "game", "episode_index", "episode_id")

#: Rows of a run, where nothing says of which game they are.
_RUN = 256

#: Maximum number of bytes of one array in memory, and of a line.
_MAX_BYTES, _MAX_LINE = 2 << 30, 64 << 20

_ENDINGS = (".npz", ".jsonl", ".parquet")


def is_table(path: str) -> bool:
    """Whether a file is a table of records: by its ending, where its columns are not those of other data."""
    if not path.endswith(_ENDINGS) or not os.path.isfile(path) or is_shard(path):
        return False
    if path.endswith(".jsonl"):
        return True
    return not any(usual(name) or name == "frame" for name in next(_tables(path)).names)


@contextmanager
def as_records(
    source: Any, pack: str, options: Mapping[str, Any], progress: Callable[[int, int], object] | None
) -> Iterator[str]:
    """The folder beside the pack with files of the games, for as long as the pack is made.

    Raises:
        TypeError: what is no game.
        ConfigError: options that do not fit.
        FormatError: a game or table that does not fit; it says where.
        OSError: a file or folder.
    """
    made = beside(pack, "source")
    with hidden_folder(made):
        count = _write(source, made, options, progress)
        if not count:
            raise ConfigError("`input`: there is no game in it", field="input")
        yield made


def _write(source: Any, folder: str, options: Mapping[str, Any], progress: Callable[[int, int], object] | None) -> int:
    layout, about = options["layout"], {name: options[name] for name in ("columns", "facts", "identity")}
    about = {name: value for name, value in about.items() if value is not None}
    games: Iterator[tuple[str, Game, Mapping[str, Any]]]
    if isinstance(source, Games):
        layout, about, games = _again(source, about)
    elif (table := _of_frames(source)) is not None:
        return write_records(table, folder, options, progress)
    elif isinstance(source, str | os.PathLike):
        layout, games = _of_file(os.path.expanduser(os.fspath(source)), layout, options["game"], about)
    else:
        games = _each(source)
        if layout is None:
            first = next(games, None)
            if first is None:
                return 0
            layout, games = _layout_of(first[1]), _after(first, games)
    count = 0
    with Writer(folder, layout, **about) as writer:
        for place, game, facts in games:
            writer.write_as(place, game, facts)
            count += 1
            if progress is not None:
                progress(count, count)
    return count


def _of_frames(source: Any) -> Tabled | None:
    """What gives Arrow, or a Parquet file of frames as selections write it."""
    if isinstance(source, str | os.PathLike):
        return tabled_file(os.path.expanduser(os.fspath(source)))
    return tabled(source)


def _again(pack: Games, about: Mapping[str, Any]) -> tuple[Layout, dict[str, Any], Iterator[Any]]:
    """The games of a pack of records, with what it says of them."""
    if about:
        raise ConfigError(
            "a pack of records says itself what it has; leave columns, facts, identity out", field="input"
        )
    said = json.loads(pack._compiled.schema() or "{}")
    facts = {name: SORTS[sort] for name, sort in said["facts"]}
    columns = {name: f"{how}:{field}" for name, how, field in said["columns"]}

    def games() -> Iterator[tuple[str, Game, Mapping[str, Any]]]:
        ids = [int(one) for one in pack.game_ids]
        known = {name: values for name, _, values in pack._compiled.facts(ids) if name in facts}
        for i in range(pack.num_games):
            values = {name: known[name][i] for name in facts}
            yield f"{pack.path}: game {ids[i]}", np.asarray(pack.games[i]), values

    return pack.layout, {"columns": columns, "facts": facts, "identity": said["identity"]}, games()


def _each(source: Iterable[Any]) -> Iterator[tuple[str, Game, Mapping[str, Any]]]:
    if isinstance(source, np.ndarray | Mapping) or not isinstance(source, Iterable):
        says = "expected an iterable of games, each a structured array or arrays by field"
        raise TypeError(f"{says}; found {type(source).__name__}: put one game in a list")
    for i, one in enumerate(source):
        game, facts = one if isinstance(one, tuple) and len(one) == 2 else (one, {})
        yield f"game {i}", game, facts


def _after(first: Any, rest: Iterator[Any]) -> Iterator[Any]:
    yield first
    yield from rest


def _layout_of(game: Game) -> npt.DTypeLike:
    """The fields of a game, as it is."""
    if isinstance(game, np.ndarray):
        return game.dtype
    if not isinstance(game, Mapping):
        raise TypeError(f"expected a structured array or arrays by field, found {type(game).__name__}")
    arrays = {name: np.asarray(values) for name, values in game.items()}
    return np.dtype([(name, array.dtype, array.shape[1:]) for name, array in arrays.items()])


def _tables(path: str) -> Iterator[Table]:
    if path.endswith(".npz"):
        return of_npz(path, _MAX_BYTES)
    if path.endswith(".parquet"):
        return of_parquet(path, _MAX_BYTES)
    if path.endswith(".jsonl"):
        return _of_lines(path)
    raise ConfigError(f"{path}: expected a table that ends in {', '.join(_ENDINGS)}", field="input")


def _of_lines(path: str) -> Iterator[Table]:
    """The one table of a file of JSON with an object for each row."""
    columns: dict[str, list[Any]] = {}
    with open(path, "rb") as file:
        number = 0
        while line := file.readline(_MAX_LINE + 1):
            number += 1
            if len(line) > _MAX_LINE:
                raise fault(path, "too_large", f"line {number} has more than {_MAX_LINE} bytes")
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise fault(path, "corrupt", f"line {number} is no JSON: {error}") from error
            if not isinstance(row, dict):
                raise fault(path, "unsupported", f"line {number} is {type(row).__name__}; expected an object of fields")
            if not columns:
                columns = {name: [] for name in row}
            if row.keys() != columns.keys():
                odd = sorted(row.keys() ^ columns.keys())[0]
                raise fault(path, "missing", f"line {number} and the first one differ in this field", odd)
            for name, value in row.items():
                columns[name].append(value)

    def read(name: str) -> npt.NDArray[Any]:
        try:
            found = np.asarray(columns[name])
        except (ValueError, OverflowError) as error:
            raise fault(path, "wrong_size", f"rows of different shapes: {error}", name) from error
        if found.dtype == object:
            raise fault(path, "unsupported", "values that are no numbers, or too large", name)
        return found

    yield Table(path, list(columns), read)


def _of_file(
    path: str, layout: Layout | npt.DTypeLike | None, game: str | None, about: Mapping[str, Any]
) -> tuple[Layout | npt.DTypeLike, Iterator[tuple[str, Game, Mapping[str, Any]]]]:
    """The layout of a table's rows, and its games."""
    tables = _tables(path)
    table = next(tables)
    key = game or next((name for name in _GAME if name in table.names), None)
    if key is not None and key not in table.names:
        raise fault(path, "missing", f"there is no such column; there are {', '.join(table.names)}", key)
    facts = dict(about.get("facts") or {})
    wanted = list((layout.dtype if isinstance(layout, Layout) else np.dtype(layout)).names or ()) if layout else []
    fields = wanted or [name for name in table.names if name != key and name not in facts]
    for name in (*fields, *facts):
        if name not in table.names:
            raise fault(path, "missing", f"there is no such column; there are {', '.join(table.names)}", name)
    arrays = {name: table.array(name) for name in dict.fromkeys((*fields, *facts, *([key] if key else ())))}
    count = len(arrays[fields[0]]) if fields and arrays[fields[0]].ndim else 0
    for name, array in arrays.items():
        if array.ndim == 0 or len(array) != count:
            says = f"an array {array.shape}; `{fields[0] if fields else name}` has {count} rows: expected as many"
            raise fault(path, "wrong_size", says, name)
    if not count:
        raise fault(path, "empty", "there is no row in it")
    for rest in tables:
        raise fault(rest.place, "unsupported", "a second table in the file")
    made = layout or np.dtype([(name, arrays[name].dtype, arrays[name].shape[1:]) for name in fields])
    return made, _games_of(path, arrays, fields, facts, key, count)


def _games_of(
    path: str,
    arrays: Mapping[str, npt.NDArray[Any]],
    fields: Sequence[str],
    facts: Mapping[str, type],
    key: str | None,
    count: int,
) -> Iterator[tuple[str, Game, Mapping[str, Any]]]:
    if key is None:
        bounds = [*range(0, count, _RUN), count]
    else:
        ids = arrays[key]
        if ids.ndim != 1:
            raise fault(path, "wrong_size", f"an array {ids.shape}; expected one value for each row", key)
        bounds = [0, *(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), count]
        starts = ids[np.asarray(bounds[:-1])]
        found, first = np.unique(starts, return_index=True)
        if len(found) != len(starts):
            again = next(i for i in range(len(starts)) if i not in set(first.tolist()))
            says = f"rows of game {starts[again]} are not together: row {bounds[again]}; sort the table by it"
            raise fault(path, "unsupported", says, key)
    for i, (start, end) in enumerate(pairwise(bounds)):
        said = {}
        for name in facts:
            values = arrays[name][start:end]
            if values.ndim != 1 or not (values == values[0]).all():
                raise fault(
                    path, "out_of_range", f"game {i}, from row {start} on, has several values of this fact", name
                )
            said[name] = values[0]
        yield f"{path}: game {i}, from row {start} on", {name: arrays[name][start:end] for name in fields}, said
