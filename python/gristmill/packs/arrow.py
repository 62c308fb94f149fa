"""Frames or games of a selection as Arrow record batches, some at a time. pyarrow is imported when it is used first."""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from gristmill.errors import ConfigError, FormatError
from gristmill.jobs.publish import published_file
from gristmill.options.optional import optional

if TYPE_CHECKING:
    from gristmill.packs.selection import Selection

#: Bytes of records, and frames or games, that are in memory at a time.
_TOGETHER, _MOST = 16 << 20, 1 << 16

#: What stands before the columns of a frame's game, and before a field that has the name of another column.
_OF_GAME, _OF_FIELD = "game_", "field_"

#: The number of a frame in its pack.
FRAME = "frame"

#: Where the schema says what its rows are.
KEY = b"gristmill"


def pyarrow() -> Any:
    """The package.

    Raises:
        MissingPackageError: it is not installed.
    """
    return optional("pyarrow", "arrow")


def column(values: npt.NDArray[Any]) -> Any:
    """An Arrow array with an item for each row of `values`; numbers that lie one after another are not copied.

    Each further axis is a list of a fixed length, a record a struct, bytes are of a fixed length, a complex number is
    a list of two.
    """
    pa = pyarrow()
    dtype = values.dtype
    if values.ndim > 1:
        inner = column(values.reshape(-1, *values.shape[2:]))
        kind = pa.list_(inner.type, values.shape[1])
        return pa.Array.from_buffers(kind, len(values), [None], children=[inner])
    if dtype.names is not None:
        return pa.StructArray.from_arrays([column(values[name]) for name in dtype.names], names=dtype.names)
    plain = np.ascontiguousarray(values, dtype.newbyteorder("="))
    if dtype.kind == "c":
        return column(plain.view(f"f{dtype.itemsize // 2}").reshape(-1, 2))
    if dtype.kind in "SV":
        return pa.Array.from_buffers(pa.binary(dtype.itemsize), len(plain), [None, pa.py_buffer(plain.view(np.uint8))])
    return pa.array(plain)


def named_columns(selection: Selection) -> tuple[list[tuple[str, str]], dict[str, str]]:
    """The columns of the frames after `frame`: those of the game with their declared types, then fields by column."""
    facts = [(f"{_OF_GAME}{name}", declared) for name, declared, _ in selection._compiled.facts([])]
    taken = {FRAME, *(name for name, _ in facts)}
    fields: dict[str, str] = {}
    for field in selection.layout.names:
        name = field
        while name in taken:
            name = f"{_OF_FIELD}{name}"
        taken.add(name)
        fields[name] = field
    return facts, fields


def declared_type(declared: str) -> Literal["int64", "string", "binary", "float64"]:
    """Arrow's name of the type of a column that the database declares so, by the rules of SQLite."""
    said = declared.upper()
    if "INT" in said:
        return "int64"
    if re.search("CHAR|CLOB|TEXT", said):
        return "string"
    return "binary" if "BLOB" in said else "float64"


class Frames:
    """The columns of a selection's frames: `frame`, those of the game, and the fields of the record.

    A field that has the name of another column gets `field_` before its own, as in SQL over frames.
    """

    def __init__(self, selection: Selection, wanted: Sequence[str] | None, batch: int | None) -> None:
        self._selection = selection
        facts, fields = named_columns(selection)
        chosen = _chosen([FRAME, *(name for name, _ in facts), *fields], wanted)
        self._facts = [(name, declared) for name, declared in facts if name in chosen]
        self._fields = {name: field for name, field in fields.items() if name in chosen}
        self._names = chosen
        bytes_of_frame = sum(selection.layout.dtype[field].itemsize for field in self._fields.values())
        self._batch = batch or max(1, min(_MOST, _TOGETHER // max(bytes_of_frame, 1)))
        about = {
            "of": "frames",
            "form": selection._compiled.form,
            "layout": selection.layout.descr,
            "games": [name for name, _ in self._facts],
            "fields": self._fields,
            "valuations": selection._compiled.valuations,
        }
        if (said := selection._compiled.schema()) is not None:
            about["schema"] = json.loads(said)
        self.schema = self._made(0, 0).schema.with_metadata({KEY: json.dumps(about).encode()})

    def batches(self) -> Iterator[Any]:
        """The record batches, one after another."""
        count = self._selection.num_frames
        for first in range(0, count, self._batch):
            batch = self._made(first, min(first + self._batch, count))
            yield batch.replace_schema_metadata(self.schema.metadata)

    def _made(self, first: int, end: int) -> Any:
        pa, compiled = pyarrow(), self._selection._compiled
        found: dict[str, Any] = {}
        if self._facts or FRAME in self._names:
            stretches = np.array(compiled.stretches(first, end), np.int64).reshape(-1, 3)
            games, firsts, counts = stretches.T
            found[FRAME] = column(np.repeat(firsts - (np.cumsum(counts) - counts), counts) + np.arange(end - first))
            ids, place = np.unique(games, return_inverse=True)
            rows = column(np.repeat(place.astype(np.int64), counts))
            told = {name: values for name, _, values in compiled.facts(ids.tolist() if self._facts else [])}
            for name, declared in self._facts:
                values = told[name.removeprefix(_OF_GAME)]
                found[name] = _values(name, declared, values, self._selection.path).take(rows)
        found |= {name: column(values) for name, values in self._records(first, end).items()}
        return pa.RecordBatch.from_arrays([found[name] for name in self._names], self._names)

    def _records(self, first: int, end: int) -> dict[str, npt.NDArray[Any]]:
        selection = self._selection
        if not self._fields:
            return {}
        if end == first:
            records = np.zeros(0, selection.layout.dtype)
        else:
            places, fields = np.arange(first, end), self._fields
            alone = selection._fields_alone(list(fields.values()), places)
            if alone is not None:
                return {name: np.asarray(alone[field]) for name, field in fields.items()}
            records = np.asarray(selection.take(places))
        return {name: records[field] for name, field in self._fields.items()}


class GameFacts:
    """The columns that the database has of a selection's games."""

    def __init__(self, selection: Selection, wanted: Sequence[str] | None, batch: int | None) -> None:
        self._selection, self._batch = selection, batch or _MOST
        self._names = _chosen([name for name, _, _ in selection._compiled.facts([])], wanted)
        about = {"of": "games", "form": selection._compiled.form}
        self.schema = self._made([]).schema.with_metadata({KEY: json.dumps(about).encode()})

    def batches(self) -> Iterator[Any]:
        """The record batches, one after another."""
        ids = self._selection.game_ids
        for first in range(0, len(ids), self._batch):
            batch = self._made(ids[first : first + self._batch])
            yield batch.replace_schema_metadata(self.schema.metadata)

    def _made(self, ids: list[int]) -> Any:
        pa, facts = pyarrow(), self._selection._compiled.facts(ids)
        found = {name: _values(name, kind, values, self._selection.path) for name, kind, values in facts}
        return pa.RecordBatch.from_arrays([found[name] for name in self._names], self._names)


class Tabular:
    """What has rows that go out as Arrow: `pl.DataFrame(it)`, `duckdb.sql("FROM it")` and `pa.table(it)` take it."""

    def _rows(self, columns: Sequence[str] | None, batch_size: int | None) -> Frames | GameFacts:
        raise NotImplementedError

    def to_arrow(self, *, columns: Sequence[str] | None = None, batch_size: int | None = None) -> Any:
        """The rows as a `pyarrow.RecordBatchReader`, which reads some at a time: never the whole pack at once.

            pack.to_arrow().read_pandas()
            for batch in pack.to_arrow(columns=["frame", "game_result", "best_q"]): ...

        Of frames the columns are `frame` (its number in the pack), those of its game in the database with `game_`
        before their names, and the fields of its record; a field that has one of these names gets `field_` before it.
        Arrays are lists of a fixed length. Of games (`pack.games.to_arrow()`) they are the columns of the database.

        Args:
            columns: their names, in the order that is wanted; all by default. Those of demonstrations alone are
                unpacked.
            batch_size: rows of a batch; by default, their records take about 16 MiB.

        Raises:
            ConfigError: there is no such column.
            FormatError: a game that is damaged, raised where the reader comes to it.
            MissingPackageError: pyarrow is not installed: `pip install gristmill[arrow]`.
            ValueError: a batch of no rows.
        """
        if batch_size is not None and operator.index(batch_size) < 1:
            raise ValueError(f"batch_size={batch_size}; expected at least 1")
        rows = self._rows(columns, batch_size)
        return pyarrow().RecordBatchReader.from_batches(rows.schema, rows.batches())

    def to_parquet(
        self, path: str | os.PathLike[str], *, columns: Sequence[str] | None = None, overwrite: bool = False
    ) -> None:
        """Writes the rows of `to_arrow` to a Parquet file, which appears whole or not at all.

        Args:
            path: the file.
            columns: as of `to_arrow`.
            overwrite: replace a file that is there.

        Raises:
            ConfigError: as of `to_arrow`, and where there is a file already.
            OSError: the file cannot be written.
        """
        parquet = optional("pyarrow.parquet", "arrow")
        output = _free(path, overwrite)
        rows = self._rows(columns, None)
        with published_file(output) as made, parquet.ParquetWriter(made, rows.schema, compression="zstd") as writer:
            for batch in rows.batches():
                writer.write_batch(batch)

    def to_dataset(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        columns: Sequence[str] | None = None,
        overwrite: bool = False,
    ) -> Any:
        """The rows as a `datasets.Dataset` of Hugging Face; `gristmill.pack` makes a pack of one.

        Args:
            path: an Arrow file, which is written and mapped: what is larger than memory. Without it all is in memory.
            columns: as of `to_arrow`.
            overwrite: replace a file that is there.

        Raises:
            ConfigError: as of `to_parquet`.
            MissingPackageError: datasets is not installed.
            OSError: the file cannot be written.
        """
        made = optional("datasets", "datasets").Dataset
        if path is None:
            return made(self.to_arrow(columns=columns).read_all())
        ipc, output = optional("pyarrow.ipc", "arrow"), _free(path, overwrite)
        rows = self._rows(columns, None)
        with published_file(output) as file, ipc.new_stream(file, rows.schema) as writer:
            for batch in rows.batches():
                writer.write_batch(batch)
        return made.from_file(output)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """A stream of Arrow's C interface; each call begins a new one."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)


def _free(path: str | os.PathLike[str], overwrite: bool) -> str:
    """The place of a file that may be written."""
    found = os.path.abspath(os.path.expanduser(os.fspath(path)))
    if os.path.isdir(found) or (os.path.lexists(found) and not overwrite):
        advice = "a folder; name a file" if os.path.isdir(found) else "it is there already; overwrite=True replaces it"
        raise ConfigError(f"`path`: {found}: {advice}", field="path")
    return found


def _chosen(there: list[str], wanted: Sequence[str] | None) -> list[str]:
    """The names that are wanted, in their order; all without a choice."""
    if wanted is None:
        return there
    if isinstance(wanted, str):
        raise TypeError(f"columns is a list of names, found {wanted!r}")
    strange = [name for name in wanted if name not in there]
    if strange or len(set(wanted)) < len(wanted):
        fault = f"no column {strange[0]!r}" if strange else "a column twice"
        raise ConfigError(f"`columns`: {fault}; there are {', '.join(there)}", field="columns")
    return list(wanted)


def _values(name: str, declared: str, values: Iterable[Any], path: str) -> Any:
    """A column of the database, by the rules of SQLite for types that are declared."""
    pa = pyarrow()
    kind = getattr(pa, declared_type(declared))()
    values = list(values)
    try:
        return pa.array(values, kind)
    except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError, TypeError) as error:
        message = f"column `{name}` is declared {declared or 'without a type'} and holds something else: {error}"
        raise FormatError(message, kind="corrupt", source=path) from error
