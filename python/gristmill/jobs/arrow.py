"""Rows of 2048 as Parquet or Arrow files: `gristmill convert INPUT OUTPUT --to parquet`. Needs pyarrow.

A folder `steps.parquet` (or `steps-00000.parquet`, ...) with one line for each step, in order of game and step, and
`runs.parquet` with one for each game; for Arrow the same names ending in `.arrow`.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet

from gristmill import _gristmill
from gristmill.config import to_json
from gristmill.errors import ConfigError
from gristmill.jobs.publish import published_folder
from gristmill.packs.arrow import column
from gristmill.packs.rows import Rows

To: TypeAlias = Literal["parquet", "arrow"]

#: Rows that are in memory at a time.
_BATCH = 1 << 16


def convert(options: dict[str, Any], to: To) -> dict[str, Any]:
    """Converts as `gristmill.convert` does, which see; the result as its JSON.

    Rows are brought into order and joined in a hidden folder beside the output first, as large as they are.
    """
    output = os.path.abspath(options["output"])
    _check(options, output, to)
    parent, name = os.path.split(output)
    rows_at = os.path.join(parent, f".{name}.part", "rows")
    exponents = {**options, "to": "exponents", "output": rows_at, "overwrite": True}
    exponents.pop("shard_rows", None)
    if options.get("dry_run"):
        return {**json.loads(_gristmill.convert_rows(to_json(exponents))), "output": options["output"], "to": to}
    with published_folder(output) as made:
        result: dict[str, Any] = json.loads(_gristmill.convert_rows(to_json(exponents)))
        rows = Rows(_gristmill.open_pack(rows_at, False, None, None))
        files = _write_steps(rows, made, to, options.get("shard_rows"))
        _write_runs(rows_at, made, to)
    return {**result, "output": options["output"], "to": to, "files": files}


def _check(options: dict[str, Any], output: str, to: To) -> None:
    source = os.path.realpath(options["input"])
    if os.path.commonpath([source, os.path.realpath(output)]) == source:
        raise ConfigError("`output`: it is the input or lies in it; choose a folder outside", field="output")
    there = os.listdir(output) if os.path.isdir(output) else []
    strange = [name for name in there if not name.endswith(f".{to}")]
    if there and (strange or not options.get("overwrite")):
        advice = f"{strange[0]} is none of ours" if strange else "overwrite=True (--overwrite) replaces it"
        raise ConfigError(f"`output`: {output}: there is something already; {advice}", field="output")


def _batches(rows: Rows) -> Iterator[pa.RecordBatch]:
    names = pa.array(rows.valuation_types, pa.string())
    for first in range(0, max(len(rows), 1), _BATCH):
        records: npt.NDArray[Any] = np.asarray(rows.take(np.arange(first, min(first + _BATCH, len(rows)))))
        if first == 0 and not len(rows):
            records = np.zeros(0, rows.layout.dtype)
        columns = {name: column(records[name]) for name in records.dtype.names or ()}
        if "valuation_type" in columns:
            columns["valuation_type"] = pa.DictionaryArray.from_arrays(columns["valuation_type"], names)
        yield pa.RecordBatch.from_arrays(list(columns.values()), list(columns))


def _writer(path: str, schema: pa.Schema, to: To) -> Any:
    if to == "parquet":
        return pa.parquet.ParquetWriter(path, schema, compression="zstd")
    return pa.ipc.new_file(path, schema)


def _write_steps(rows: Rows, folder: str, to: To, shard_rows: int | None) -> int:
    files, room, writer = 0, 0, None
    for batch in _batches(rows):
        while writer is None or batch.num_rows:
            if writer is None:
                name = "steps" if shard_rows is None else f"steps-{files:05}"
                writer = _writer(os.path.join(folder, f"{name}.{to}"), batch.schema, to)
                files, room = files + 1, shard_rows or sys.maxsize
            taken = min(room, batch.num_rows)
            writer.write_batch(batch.slice(0, taken))
            batch, room = batch.slice(taken), room - taken
            if room == 0:
                writer.close()
                writer = None
                if not batch.num_rows:
                    break
    if writer is not None:
        writer.close()
    return files


def _write_runs(source: str, folder: str, to: To) -> None:
    uri = f"file:{os.path.join(source, 'metadata.db').replace('?', '%3f').replace('#', '%23')}?mode=ro&immutable=1"
    with closing(sqlite3.connect(uri, uri=True)) as database:
        cursor = database.execute("SELECT * FROM runs ORDER BY id")
        names = [described[0] for described in cursor.description]
        lines = cursor.fetchall()
        session = dict(database.execute("SELECT meta_key, meta_value FROM session"))
    columns = dict(zip(names, zip(*lines, strict=True) if lines else ((),) * len(names), strict=True))
    # The database keeps the 64 bits of a seed as a signed number.
    arrays = {
        name: pa.array([value % 2**64 for value in values], pa.uint64()) if name in ("id", "seed") else pa.array(values)
        for name, values in columns.items()
    }
    table = pa.table(arrays).replace_schema_metadata({"session": json.dumps(session)})
    with _writer(os.path.join(folder, f"runs.{to}"), table.schema, to) as writer:
        writer.write_table(table)
