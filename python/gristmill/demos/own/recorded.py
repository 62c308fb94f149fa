"""A table of frames of a game of one's own -> files of records, with columns, facts and identity.

What `selection.to_arrow` says in the schema is taken where it is still there; without it fields are as the values are,
and what the table says of games are facts.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from gristmill.demos.own.by_game import GAME, Tabled, by_game
from gristmill.errors import ConfigError
from gristmill.options.optional import optional
from gristmill.packs.arrow import FRAME, KEY
from gristmill.records.layout import Layout
from gristmill.records.writing import Writer

#: Types of facts, as files call them.
SORTS: dict[str, type] = {"int": int, "real": float, "text": str}

#: What every pack of whole games says of a game itself.
_EVERY = (
    *("id", "file", "chunk", "first_frame", "frames", "source"),
    *("stored_bytes", "content_xxh3", "key_xxh3", "mirrored"),
)


def said_of_records(table: Tabled) -> dict[str, Any]:
    """What the schema of a table says of the records that it came from; nothing where it is of anything else."""
    try:
        said = json.loads((table.schema.metadata or {}).get(KEY, b"{}"))
        found = said["schema"] if said["form"] == "records" and said["of"] == "frames" else {}
        if not found:
            return {}
        # Fields by the columns that have them.
        layout = {name: one for name, *one in ast.literal_eval(found["layout"])}
        return {
            "fields": {column: (name, layout[name]) for column, name in said["fields"].items()},
            "columns": {name: (how, field) for name, how, field in found["columns"]},
            "facts": {name: SORTS[sort] for name, sort in found["facts"]},
            "identity": [str(name) for name in found["identity"]],
        }
    except (ValueError, SyntaxError, KeyError, TypeError, AttributeError):
        return {}


def write_records(
    table: Tabled,
    folder: str | Path,
    options: Mapping[str, Any],
    progress: Callable[[int, int], object] | None = None,
) -> int:
    """Writes the games of a table to files in `folder`; how many.

    Args:
        table: what has a row for each frame.
        folder: where the files go.
        options: `layout`, `columns`, `facts`, `identity` and `game`, as of `gristmill.pack`; those that are `None` or
            not there are as the table has them.
        progress: called with the games that were written, twice.

    Raises:
        ConfigError: a column is missing, or rows of a game are not whole, not together or not in order.
        FormatError: a value that a record or a fact cannot hold.
    """
    given = {name: value for name, value in options.items() if value is not None}
    said = said_of_records(table)
    fields = _fields(table, said, given)
    dtype = _dtype(said, fields, given)
    columns = given.get("columns", _of_there(said.get("columns", {}), fields))
    facts = _facts(table, said, set(fields.values()), given, columns)
    about = {
        "columns": columns,
        "facts": {name: kind for name, (_, kind) in facts.items()},
        "identity": given.get("identity", [name for name in said.get("identity", []) if name in fields]),
    }
    places = {name: column for name, (column, _) in facts.items()}
    games = by_game(table, fields, dtype, game=given.get("game"), facts=places)
    first = next(games)
    if dtype is None:
        dtype = first.frames.dtype
        texts = [name for name in fields if dtype[name].base.kind == "U"]
        if texts:
            says = f"`{texts[0]}` is text; `layout` says how long it may be, such as [({texts[0]!r}, 'U16'), ...]"
            raise ConfigError(f"`layout`: {table.path}: {says}", field="layout")
    count = 0
    with Writer(str(folder), dtype, **about) as writer:
        for game in chain([first], games):
            writer.write_as(f"{table.path}: game {game.id}", game.frames, game.facts)
            count += 1
            if progress is not None:
                progress(count, count)
    return count


def _fields(table: Tabled, said: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, str]:
    """By field the column that has it."""
    names = table.schema.names
    known = {name: column for column, (name, _) in said.get("fields", {}).items() if column in names}
    if "layout" in given:
        layout = given["layout"]
        wanted = (layout.dtype if isinstance(layout, Layout) else np.dtype(layout)).names or ()
        found = {name: known.get(name) or (f"field_{name}" if f"field_{name}" in names else name) for name in wanted}
    else:
        facts = given.get("facts") or {}
        others = {
            name.removeprefix("field_") if _is_hidden(name) else name: name
            for name in names
            if name not in (FRAME, *GAME, given.get("game"), *facts) and not name.startswith("game_")
        }
        found = {**known, **{field: name for field, name in others.items() if name not in known.values()}}
    missing = [column for column in found.values() if column not in names]
    if missing or not found:
        lacks = f"there is no column `{missing[0]}`" if missing else "no column is a field of frames"
        raise ConfigError(f"`input`: {table.path}: {lacks}; there are {', '.join(names)}", field="input")
    return found


def _is_hidden(name: str) -> bool:
    """Whether a field has another name as a column, since that is one of every table."""
    inner = name.removeprefix("field_")
    return inner != name and (inner == FRAME or inner.startswith(("game_", "field_")))


def _dtype(said: Mapping[str, Any], fields: Mapping[str, str], given: Mapping[str, Any]) -> np.dtype[Any] | None:
    """The records, where something says it."""
    if "layout" in given:
        layout = given["layout"]
        return layout.dtype if isinstance(layout, Layout) else np.dtype(layout)
    known = dict(said.get("fields", {}).values())
    if not all(name in known for name in fields):
        return None
    return np.dtype([(name, *known[name]) for name in fields])


def _of_there(columns: Mapping[str, tuple[str, str]], fields: Mapping[str, str]) -> dict[str, str]:
    """Columns of fields that are there."""
    return {name: f"{how}:{field}" for name, (how, field) in columns.items() if field in fields}


def _facts(
    table: Tabled, said: Mapping[str, Any], taken: set[str], given: Mapping[str, Any], columns: Any
) -> dict[str, tuple[str, type]]:
    """By fact the column that has it, and its type."""
    names, types = table.schema.names, optional("pyarrow", "arrow").types
    wanted: Mapping[str, type] = given.get("facts", said.get("facts", {}))
    found = {}
    for name, kind in wanted.items():
        column = f"game_{name}" if f"game_{name}" in names else name
        if column in names:
            found[name] = (column, kind)
        elif "facts" in given:
            says = f"there is no column `{name}` of this fact; there are {', '.join(names)}"
            raise ConfigError(f"`input`: {table.path}: {says}", field="facts")
    if said or "facts" in given:
        return found
    for column in names:
        name = column.removeprefix("game_")
        if name in (column, *_EVERY) or name in columns or column in taken or column in (*GAME, given.get("game")):
            continue
        kind = table.schema.field(column).type
        if types.is_integer(kind) or types.is_boolean(kind):
            found[name] = (column, int)
        elif types.is_floating(kind):
            found[name] = (column, float)
        elif types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
            found[name] = (column, str)
        else:
            says = f"the column `{column}` is {kind}, which says nothing of a game; leave it out"
            raise ConfigError(f"`input`: {table.path}: {says}", field="input")
    return found
