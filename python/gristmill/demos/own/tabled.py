"""Tables whose rows are frames, as `selection.to_arrow` makes them -> the files that the engine packs, game by game.

Whatever gives a stream of Arrow is taken (`datasets.Dataset`, pyarrow, Polars, DuckDB, pandas), and Parquet files. The
names of the columns say what the frames are, since schema metadata do not outlive most programs.
"""

from __future__ import annotations

import json
import sqlite3
import tarfile
from collections.abc import Iterator
from contextlib import closing
from io import BytesIO
from pathlib import Path
from typing import Any
from zlib import compressobj

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.chess import V6, V7
from gristmill.demos.own.arrays import from_arrays
from gristmill.demos.own.by_game import GAME, Game, Tabled, by_game
from gristmill.demos.own.columns import npy_header
from gristmill.demos.own.names import usual
from gristmill.demos.own.recorded import said_of_records, write_records
from gristmill.errors import ConfigError
from gristmill.packs.arrow import FRAME, KEY
from gristmill.records.layout import Layout

#: Fields by which a table is one of demonstrations.
_TELLING = ("obs", "acts", "next_obs", "rews")

#: Boards of bulletformat, docs/format/bulletformat.md.
_BOARD = np.dtype(
    [
        *(("occ", "<u8"), ("pcs", "u1", 16), ("score", "<i2"), ("result", "u1")),
        *(("ksq", "u1"), ("opp_ksq", "u1"), ("extra", "u1", 3)),
    ]
)

#: Bytes of arrays in one file on the way.
_PART = 1 << 28


def write(table: Tabled, folder: Path) -> bool:
    """Writes the games of a table to files in `folder`; whether they are rows of 2048, else games to pack.

    What has no columns of frames that are known is of a game of one's own.

    Raises:
        ConfigError: a column is missing, or rows of a game are: not whole, not together, not in order.
        FormatError: a value that the field of a record cannot hold.
    """
    names = set(table.schema.names)
    if said_of_records(table):
        write_records(table, folder, {})
        return False
    steps = Layout(_gristmill.g2048_layouts()[0])
    if {"frames", "first_frame"} <= names and FRAME not in names:
        raise ConfigError(f"`input`: {table.path}: a table of games; a pack is made of their frames", field="input")
    for layout, made in ((V7, _games), (V6, _games), (steps, _rows), (Layout.from_dtype(_BOARD), _boards)):
        columns = {name: _column_of(name, names) for name in layout.names}
        # What the longer records of chess have alone is no sign of them.
        if set(columns.values()) <= names:
            made(by_game(table, columns, layout.dtype), folder, table)
            return made is _rows
    fields = {_field_of(name): name for name in table.schema.names if name != FRAME and not name.startswith("game_")}
    fields = {field: name for field, name in fields.items() if name not in GAME}
    if any((usual(field) or "").split(".")[0] in _TELLING for field in fields):
        _trajectories(by_game(table, fields, None), folder, table)
        return False
    if (lacking := _lacking(table.schema.names, steps)) is not None:
        raise ConfigError(f"`input`: {table.path}: {lacking}", field="input")
    write_records(table, folder, {})
    return False


def _lacking(names: list[str], steps: Layout) -> str | None:
    """Which column records of a game that is known lack; none where the columns are of no such game."""
    if "game_highest_tile" in names or "run_id" in names:
        lacking = [name for name in steps.names if name not in names]
        says = "a pack has rows of the form `steps`, with all of them: pack the logs that the rows came from"
        return f"rows of 2048 without the column `{lacking[0]}`; {says}"
    if "game_input_format" in names or "probabilities" in names:
        lacking = [name for name in V6.names if name not in names]
        says = "a pack has whole records: write the table with all columns, as `to_parquet` without `columns` does"
        return f"games of chess without the column `{lacking[0]}`; {says}"
    return None


def _column_of(field: str, names: set[str]) -> str:
    return f"field_{field}" if f"field_{field}" in names else field


def _field_of(column: str) -> str:
    inner = column.removeprefix("field_")
    return inner if inner == FRAME or inner.startswith(("game_", "field_")) else column


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
    with (
        open(folder / "steps.npy", "wb") as steps,
        closing(sqlite3.connect(folder / "metadata.db")) as database,
        database,
    ):
        columns = "id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL, "
        database.execute(f"CREATE TABLE runs ({columns}max_score INT NOT NULL, highest_tile INT NOT NULL)")
        database.execute("CREATE TABLE session (meta_key TEXT PRIMARY KEY, meta_value TEXT NOT NULL)")
        dtype, rows = Layout(_gristmill.g2048_layouts()[0]).dtype, 0
        steps.write(npy_header(dtype, (), 0))
        for game in games:
            steps.write(game.frames.tobytes())
            rows += len(game.frames)
            run = (game.id, game.facts["game_seed"], len(game.frames), *(game.facts[name] for name in wanted[1:]))
            database.execute("INSERT INTO runs VALUES (?, ?, ?, ?, ?)", run)
        steps.seek(0)
        steps.write(npy_header(dtype, (), rows))
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
