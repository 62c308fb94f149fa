"""Tables whose rows are frames, of Arrow or Parquet -> their games, each with all of its frames, in order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.parquet import array_of
from gristmill.errors import ConfigError
from gristmill.options.optional import optional
from gristmill.packs.arrow import FRAME

#: Columns that say of which game a row is, the first that is there.
GAME = ("game_id", "episode_index", "episode_id")

#: Numbers that a table may say of the games that the engine knows.
_KNOWN = ("game_frames", "game_steps", "game_seed", "game_max_score", "game_highest_tile", "game_terminated")

#: How files of Arrow's IPC end.
ARROW = (".arrow", ".feather")

#: Frames in memory at a time.
_BATCH = 1 << 14


@dataclass
class Tabled:
    """A table of frames: its schema, its record batches, and where it is from, for people."""

    path: str
    schema: Any
    batches: Iterator[Any]


class Game(NamedTuple):
    """The rows of one game: its id, a structured array of its frames, and what the table says of the game."""

    id: int | str
    frames: npt.NDArray[Any]
    facts: dict[str, Any]


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
    """An Arrow file, or a Parquet file of frames; `None` for any other file.

    Raises:
        MissingPackageError: pyarrow is not installed.
        FormatError: the file is damaged.
        OSError: it cannot be read.
    """
    if not path.endswith((".parquet", *ARROW)) or not os.path.isfile(path):
        return None
    pa = optional("pyarrow", "parquet")
    with open(path, "rb"):
        pass
    kind, opened = ("Arrow", _arrow_file) if path.endswith(ARROW) else ("Parquet", _parquet_file)
    try:
        schema, batches = opened(path)
    except (pa.ArrowException, *DAMAGE) as error:
        raise fault(path, "corrupt", f"{kind}: {error}") from error
    # No other reader takes files of Arrow.
    if kind == "Parquet" and not {FRAME, GAME[0]} <= set(schema.names):
        return None
    return Tabled(path, schema, _whole_batches(path, kind, batches, pa.ArrowException))


def _parquet_file(path: str) -> tuple[Any, Iterator[Any]]:
    file = optional("pyarrow.parquet", "parquet").ParquetFile(path)
    return file.schema_arrow, file.iter_batches(batch_size=_BATCH)


def _arrow_file(path: str) -> tuple[Any, Iterator[Any]]:
    """A file of Arrow's IPC, with or without its footer; it is mapped."""
    pa, ipc = optional("pyarrow", "arrow"), optional("pyarrow.ipc", "arrow")
    mapped = pa.memory_map(path)
    if mapped.read(6) == b"ARROW1":
        file = ipc.open_file(mapped)
        return file.schema, (file.get_batch(i) for i in range(file.num_record_batches))
    mapped.seek(0)
    stream = ipc.open_stream(mapped)
    return stream.schema, iter(stream)


def _whole_batches(path: str, kind: str, batches: Iterator[Any], damaged: type[Exception]) -> Iterator[Any]:
    try:
        yield from batches
    except (damaged, *DAMAGE) as error:
        raise fault(path, "corrupt", f"{kind}: {error}") from error


def by_game(
    table: Tabled,
    fields: Mapping[str, str],
    dtype: np.dtype[Any] | None,
    *,
    game: str | None = None,
    facts: Mapping[str, str] | None = None,
) -> Iterator[Game]:
    """The games of a table in their order, each with all of its frames.

    Args:
        table: what has a row for each frame.
        fields: of the records, by name the column.
        dtype: of the records; as the values are without it.
        game: the column that says of which game a row is; the first of `GAME` that is there.
        facts: what is said of games instead of the known numbers, by name the column: one value in a game, or none.

    Raises:
        ConfigError: rows of a game are not whole, not together or not in order.
        FormatError: a value that the field of a record cannot hold, or several values of a fact.
    """
    names = table.schema.names
    key = game or next((name for name in GAME if name in names), None)
    if key is None or key not in names:
        expected = key or f"one of {', '.join(GAME)}"
        says = f"no column says of which game a row is; expected {expected}"
        raise ConfigError(f"`input`: {table.path}: {says}", field="input")
    known = _KNOWN if facts is None else _KNOWN[:1]
    beside = [name for name in (FRAME, *known) if name in names and name != key]

    def game_of(at: int | str, parts: list[dict[str, npt.NDArray[Any]]]) -> Game:
        made = _game(table, at, parts, dtype, list(fields))
        return made if facts is None else made._replace(facts={name: made.facts[f"+{name}"] for name in facts})

    seen: set[int | str] = set()
    parts: list[dict[str, npt.NDArray[Any]]] = []
    at: int | str | None = None
    for batch in table.batches:
        found = {name: array_of(table.path, name, batch.column(name)) for name in beside}
        found |= {f"+{name}": _loose(batch.column(column)) for name, column in (facts or {}).items()}
        # Fields may be called like columns beside them.
        found |= {f"={field}": _values(table.path, name, batch.column(name)) for field, name in fields.items()}
        ids = _values(table.path, key, batch.column(key))
        if ids.ndim != 1:
            raise fault(table.path, "wrong_size", f"values of shape {ids.shape[1:]}; expected one for each row", key)
        ends = [*(np.flatnonzero(ids[1:] != ids[:-1]) + 1).tolist(), len(ids)]
        start = 0
        for end in ends if len(ids) else []:
            if at is not None and ids[start] != at:
                yield game_of(at, parts)
                seen.add(at)
                parts = []
            at = ids[start].item()
            if at in seen:
                raise _unordered(table, key, at, "are not together")
            parts.append({name: values[start:end] for name, values in found.items()})
            start = end
    if at is None:
        raise ConfigError(f"`input`: {table.path}: it has no row", field="input")
    yield game_of(at, parts)


def _values(path: str, name: str, column: Any) -> npt.NDArray[Any]:
    """A column of numbers, or of texts or bytes."""
    types, inner = optional("pyarrow", "arrow").types, column.type
    while types.is_fixed_size_list(inner) or types.is_list(inner) or types.is_large_list(inner):
        inner = inner.value_type
    if types.is_string(inner) or types.is_large_string(inner) or types.is_string_view(inner):
        kind = "U"
    elif types.is_fixed_size_binary(inner):
        kind = f"S{inner.byte_width}"
    else:
        kind = ""
    if not kind or column.null_count:
        return array_of(path, name, column)
    try:
        return np.array(column.to_pylist(), kind)
    except ValueError as error:
        raise fault(path, "wrong_size", f"rows of different shapes: {error}", name) from error


def _loose(column: Any) -> npt.NDArray[Any]:
    """Values of any type, or none."""
    found = np.empty(len(column), object)
    found[:] = column.to_pylist()
    return found


def _game(
    table: Tabled,
    at: int | str,
    parts: list[dict[str, npt.NDArray[Any]]],
    dtype: np.dtype[Any] | None,
    fields: list[str],
) -> Game:
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    facts: dict[str, Any] = {name: int(columns[name][0]) for name in columns if name.startswith("game_")}
    whole = facts.get("game_frames", facts.get("game_steps"))
    frames = columns.get(FRAME)
    if frames is not None and np.any(np.diff(frames) <= 0):
        raise _unordered(table, "game", at, "are not in order")
    count = len(columns[f"={fields[0]}"])
    if whole is not None and whole != count:
        raise _unordered(table, "game", at, f"are {count} together and there are {whole}: a pack holds whole games")
    for name in (name for name in columns if name.startswith("+")):
        first = columns[name][0]
        if not all(value == first or (_unknown(value) and _unknown(first)) for value in columns[name]):
            raise fault(table.path, "out_of_range", f"game {at} has several values of this fact", name[1:])
        facts[name] = first
    if dtype is None:
        dtype = np.dtype([(one, columns[f"={one}"].dtype, columns[f"={one}"].shape[1:]) for one in fields])
    records = np.zeros(count, dtype)
    for field in fields:
        values = columns[f"={field}"]
        if values.shape != records[field].shape:
            says = f"expected values of shape {records.dtype[field].shape}, found {values.shape[1:]}"
            raise fault(table.path, "wrong_size", says, field)
        with np.errstate(invalid="ignore", over="ignore"):
            records[field] = values
        floats = values.dtype.kind == "f"
        if values.dtype != records[field].dtype and not np.array_equal(records[field], values, equal_nan=floats):
            raise fault(table.path, "out_of_range", f"values of game {at} do not fit {records[field].dtype}", field)
    return Game(at, records, facts)


def _unknown(value: Any) -> bool:
    """Whether a value is none: libraries without nulls have no number there."""
    return value is None or bool(value != value)


def _unordered(table: Tabled, key: str, at: int | str, what: str) -> ConfigError:
    says = f"rows of `{key}` {at} {what}; sort the table by {GAME[0]} and {FRAME}"
    return ConfigError(f"`input`: {table.path}: {says}", field="input")
