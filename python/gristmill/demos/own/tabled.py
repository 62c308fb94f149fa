"""Tables whose rows are frames, as `selection.to_arrow` makes them -> the files that the engine packs, game by game.

Whatever gives a stream of Arrow is taken (`datasets.Dataset`, pyarrow, Polars, DuckDB, pandas), and Parquet files. The
names of the columns say what the frames are, since schema metadata do not outlive most programs.
"""

from __future__ import annotations

import json
import os
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from zlib import compressobj

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.chess import V6, V7
from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.arrays import from_arrays
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.names import usual
from gristmill.demos.own.parquet import array_of
from gristmill.errors import ConfigError
from gristmill.options.optional import optional
from gristmill.packs.arrow import FRAME, KEY
from gristmill.records.layout import Layout

#: Columns that say of which game a row is, the first that is there.
_GAME = ("game_id", "episode_index", "episode_id")

#: Fields by which a table is one of demonstrations.
_TELLING = ("obs", "acts", "next_obs", "rews")

#: Boards of bulletformat, docs/format/bulletformat.md.
_BOARD = np.dtype(
    [
        *(("occ", "<u8"), ("pcs", "u1", 16), ("score", "<i2"), ("result", "u1")),
        *(("ksq", "u1"), ("opp_ksq", "u1"), ("extra", "u1", 3)),
    ]
)

#: Frames in memory at a time, and bytes of arrays in one file on the way.
_BATCH, _PART = 1 << 14, 1 << 28


@dataclass
class Tabled:
    """A table of frames: its schema, its record batches, and where it is from, for people."""

    path: str
    schema: Any
    batches: Iterator[Any]


class Game(NamedTuple):
    """The rows of one game: its id, a structured array of its frames, and what the table says of the game."""

    id: int
    frames: npt.NDArray[Any]
    facts: dict[str, int]


def tabled(source: Any) -> Tabled | None:
    """What gives Arrow as a table of frames; `None` for anything else.

    Raises:
        ConfigError: several splits of a data set of Hugging Face.
        MissingPackageError: pyarrow is not installed.
    """
    if type(source).__module__.split(".")[0] == "datasets" and hasattr(source, "with_format"):
        if hasattr(source, "keys"):
            says = f"splits {', '.join(map(str, source.keys()))}; pack one of them"
            raise ConfigError(f"`input`: {type(source).__name__}: {says}", field="input")
        schema = source.features.arrow_schema
        tables = source.with_format("arrow").iter(batch_size=_BATCH)
        batches = (batch for table in tables for batch in table.to_batches())
        return Tabled(type(source).__name__, schema, batches)
    if not hasattr(source, "__arrow_c_stream__"):
        return None
    reader = optional("pyarrow", "arrow").RecordBatchReader.from_stream(source)
    return Tabled(type(source).__name__, reader.schema, reader)


def tabled_file(path: str) -> Tabled | None:
    """A Parquet file of frames; `None` for any other file.

    Raises:
        MissingPackageError: pyarrow is not installed.
        FormatError: the file is damaged.
        OSError: it cannot be read.
    """
    if not path.endswith(".parquet") or not os.path.isfile(path):
        return None
    pa, parquet = optional("pyarrow", "parquet"), optional("pyarrow.parquet", "parquet")
    with open(path, "rb"):
        pass
    try:
        file = parquet.ParquetFile(path)
    except (pa.ArrowException, *DAMAGE) as error:
        raise fault(path, "corrupt", f"Parquet: {error}") from error
    if not {FRAME, _GAME[0]} <= set(file.schema_arrow.names):
        return None
    return Tabled(path, file.schema_arrow, _whole_batches(path, file, pa.ArrowException))


def _whole_batches(path: str, file: Any, damaged: type[Exception]) -> Iterator[Any]:
    try:
        yield from file.iter_batches(batch_size=_BATCH)
    except (damaged, *DAMAGE) as error:
        raise fault(path, "corrupt", f"Parquet: {error}") from error


def write(table: Tabled, folder: Path) -> bool:
    """Writes the games of a table to files in `folder`; whether they are rows of 2048, else games to pack.

    Raises:
        ConfigError: a column is missing, or rows of a game are: not whole, not together, not in order.
        FormatError: a value that the field of a record cannot hold.
    """
    names = set(table.schema.names)
    steps = Layout(_gristmill.g2048_layouts()[0])
    if {"frames", "first_frame"} <= names and FRAME not in names:
        raise ConfigError(f"`input`: {table.path}: a table of games; a pack is made of their frames", field="input")
    for layout, made in ((V7, _games), (V6, _games), (steps, _rows), (Layout.from_dtype(_BOARD), _boards)):
        columns = {name: _column_of(name, names) for name in layout.names}
        # What the longer records of chess have alone is no sign of them.
        if set(columns.values()) <= names:
            made(_by_game(table, columns, layout.dtype), folder, table)
            return made is _rows
    fields = {_field_of(name): name for name in table.schema.names if name != FRAME and not name.startswith("game_")}
    fields = {field: name for field, name in fields.items() if name not in _GAME}
    if not any((usual(field) or "").split(".")[0] in _TELLING for field in fields):
        raise ConfigError(f"`input`: {table.path}: {_lacking(table.schema.names, steps)}", field="input")
    _trajectories(_by_game(table, fields, None), folder, table)
    return False


def _lacking(names: list[str], steps: Layout) -> str:
    """Why the columns are those of no frames."""
    if "game_highest_tile" in names or "run_id" in names:
        lacking = [name for name in steps.names if name not in names]
        return f"rows of 2048 without the column `{lacking[0]}`; a pack has rows of the form `steps`, with all of them"
    if "game_input_format" in names or "probabilities" in names:
        lacking = [name for name in V6.names if name not in names]
        return f"games of chess without the column `{lacking[0]}`; a pack has whole records"
    return f"no column is a field of frames: neither records of a game nor one of {', '.join(_TELLING)}"


def _column_of(field: str, names: set[str]) -> str:
    return f"field_{field}" if f"field_{field}" in names else field


def _field_of(column: str) -> str:
    inner = column.removeprefix("field_")
    return inner if inner == FRAME or inner.startswith(("game_", "field_")) else column


def _by_game(table: Tabled, fields: dict[str, str], dtype: np.dtype[Any] | None) -> Iterator[Game]:
    """The games of a table in their order, each with all of its frames."""
    names = table.schema.names
    key = next((name for name in _GAME if name in names), None)
    if key is None:
        says = f"no column says of which game a row is; expected one of {', '.join(_GAME)}"
        raise ConfigError(f"`input`: {table.path}: {says}", field="input")
    known = ("game_frames", "game_steps", "game_seed", "game_max_score", "game_highest_tile", "game_terminated")
    beside = [name for name in (FRAME, *known) if name in names]
    seen: set[int] = set()
    parts: list[dict[str, npt.NDArray[Any]]] = []
    at: int | None = None
    for batch in table.batches:
        found = {name: array_of(table.path, name, batch.column(name)) for name in (key, *beside)}
        read = {field: array_of(table.path, name, batch.column(name)) for field, name in fields.items()}
        ids = found[key]
        ends = [*(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
        start = 0
        for end in ends if len(ids) else []:
            if at is not None and ids[start] != at:
                yield _game(table, at, parts, dtype, list(fields))
                seen.add(at)
                parts = []
            at = int(ids[start])
            if at in seen:
                raise _unordered(table, key, at, "are not together")
            part = {name: values[start:end] for name, values in found.items()}
            # Fields may be called like columns beside them.
            parts.append(part | {f"={field}": values[start:end] for field, values in read.items()})
            start = end
    if at is None:
        raise ConfigError(f"`input`: {table.path}: it has no row", field="input")
    yield _game(table, at, parts, dtype, list(fields))


def _game(
    table: Tabled, at: int, parts: list[dict[str, npt.NDArray[Any]]], dtype: np.dtype[Any] | None, fields: list[str]
) -> Game:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    facts = {name: int(columns[name][0]) for name in columns if name.startswith("game_")}
    whole = facts.get("game_frames", facts.get("game_steps"))
    frames = columns.get(FRAME)
    if frames is not None and np.any(np.diff(frames) <= 0):
        raise _unordered(table, "game", at, "are not in order")
    count = len(columns[f"={fields[0]}"])
    if whole is not None and whole != count:
        raise _unordered(table, "game", at, f"are {count} together and there are {whole}: a pack holds whole games")
    if dtype is None:
        dtype = np.dtype([(one, columns[f"={one}"].dtype, columns[f"={one}"].shape[1:]) for one in fields])
    records = np.zeros(count, dtype)
    for field in fields:
        values = columns[f"={field}"]
        if values.shape != records[field].shape:
            says = f"expected values of shape {records.dtype[field].shape}, found {values.shape[1:]}"
            raise fault(table.path, "invalid", says, field)
        with np.errstate(invalid="ignore", over="ignore"):
            records[field] = values
        floats = values.dtype.kind == "f"
        if values.dtype != records[field].dtype and not np.array_equal(records[field], values, equal_nan=floats):
            raise fault(table.path, "out_of_range", f"values of game {at} do not fit {records[field].dtype}", field)
    return Game(at, records, facts)


def _unordered(table: Tabled, key: str, at: int, what: str) -> ConfigError:
    says = f"rows of `{key}` {at} {what}; sort the table by {_GAME[0]} and {FRAME}"
    return ConfigError(f"`input`: {table.path}: {says}", field="input")


def add_game(file: tarfile.TarFile, name: str, plies: npt.NDArray[Any]) -> None:
    """Adds a game of chess to a tar, as the gzip file that it was: records of version 6 are the first bytes of 7."""
    size = V6.itemsize if (plies["version"] == 6).all() else plies.dtype.itemsize
    data = plies.view(np.uint8).reshape(len(plies), -1)[:, :size].tobytes()
    packer = compressobj(1, wbits=31)
    stored = packer.compress(data) + packer.flush()
    about = tarfile.TarInfo(name)
    about.size = len(stored)
    file.addfile(about, BytesIO(stored))


def _games(games: Iterator[Game], folder: Path, table: Tabled) -> None:
    with tarfile.open(folder / "games.tar", "w", format=tarfile.USTAR_FORMAT) as file:
        for i, game in enumerate(games):
            add_game(file, f"training.{i:012}.gz", game.frames)


def _boards(games: Iterator[Game], folder: Path, table: Tabled) -> None:
    with open(folder / "boards.bf", "wb") as file:
        for game in games:
            file.write(game.frames.tobytes())


def _rows(games: Iterator[Game], folder: Path, table: Tabled) -> None:
    wanted = ("game_seed", "game_max_score", "game_highest_tile")
    missing = [name for name in wanted if name not in table.schema.names]
    if missing:
        raise ConfigError(f"`input`: {table.path}: rows of 2048 need the column `{missing[0]}`, too", field="input")
    records, runs = [], []
    for game in games:
        records.append(game.frames)
        runs.append((game.id, game.facts["game_seed"], len(game.frames), *(game.facts[name] for name in wanted[1:])))
    np.save(folder / "steps.npy", np.concatenate(records), allow_pickle=False)
    with closing(sqlite3.connect(folder / "metadata.db")) as database, database:
        columns = "id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL, "
        database.execute(f"CREATE TABLE runs ({columns}max_score INT NOT NULL, highest_tile INT NOT NULL)")
        database.execute("CREATE TABLE session (meta_key TEXT PRIMARY KEY, meta_value TEXT NOT NULL)")
        database.executemany("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", runs)
    said = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
    if said.get("valuations"):
        names = {name: number for number, name in enumerate(said["valuations"])}
        (folder / "valuation_types.json").write_text(json.dumps(names))


def _trajectories(games: Iterator[Game], folder: Path, table: Tabled) -> None:
    part, size = 0, 0
    together: list[Game] = []
    for game in games:
        together.append(game)
        size += game.frames.nbytes
        if size > _PART:
            _some(together, folder / f"arrays-{part:06}.npz")
            part, size, together = part + 1, 0, []
    if together:
        _some(together, folder / f"arrays-{part:06}.npz")


def _some(games: list[Game], path: Path) -> None:
    frames = np.concatenate([game.frames for game in games])
    fields = {name: np.ascontiguousarray(frames[name]) for name in frames.dtype.names or ()}
    if all("game_terminated" in game.facts for game in games):
        cut: Any = [not game.facts["game_terminated"] for game in games]
    else:
        cut = [bool(game.frames["truncated"][-1]) for game in games] if "truncated" in fields else None
    demos = from_arrays([len(game.frames) for game in games], fields, truncated=cut, nan=True)
    with open(path, "wb") as file:
        np.savez(file, allow_pickle=False, **{name: demos.column(name) for name in demos.layout.names if name})
