"""Trajectories of `imitation`, rows of a folder that `datasets` saved -> a table for each of them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.parquet import array_of
from gristmill.demos.own.tables import Table
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: What lists the files of a saved data set, and what says what it is.
_STATE, _INFO = "state.json", "dataset_info.json"

#: Maximum number of bytes of the list.
_MAX_JSON = 1 << 24

#: Columns by which rows are episodes.
_COLUMNS = ("obs", "acts", "terminal")

#: Bytes at the end of a stream of Arrow.
_END = b"\xff\xff\xff\xff\x00\x00\x00\x00"


def is_saved(path: str) -> bool:
    """Whether `datasets` saved a data set in a folder."""
    return all(os.path.isfile(os.path.join(path, name)) for name in (_STATE, _INFO))


def files_of_saved(folder: str) -> list[str]:
    """The files of a saved data set, in order.

    Raises:
        OSError: it cannot be read.
        FormatError: the list is damaged, or a file lies elsewhere.
    """
    path = os.path.join(folder, _STATE)
    with open(path, "rb") as file:
        text = file.read(_MAX_JSON)
    try:
        names = [one["filename"] for one in json.loads(text)["_data_files"]]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise fault(path, "corrupt", f"expected the names of files in `_data_files`: {error}") from error
    for name in names:
        if not isinstance(name, str) or name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise fault(path, "forbidden", f"{name!r}; expected the name of a file beside it")
    if not names:
        raise fault(path, "empty", "no file of episodes")
    return [os.path.join(folder, name) for name in names]


def of_saved(path: str, max_bytes: int) -> Iterator[Table]:
    """The tables of one file of a saved data set: a row of it each.

    Raises:
        MissingPackageError: pyarrow is not installed.
        FormatError: the file is damaged, or has other columns.
        OSError: it cannot be read.
    """
    pa = optional("pyarrow", "parquet")
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - len(_END), 0))
        whole = file.read() == _END
    number = 0
    try:
        with pa.memory_map(path) as source:
            reader = pa.ipc.open_stream(source)
            _check_columns(pa, path, reader.schema)
            for batch in reader:
                batch.validate(full=True)
                for row in range(batch.num_rows):
                    yield _episode(pa, f"{path}: episode {number}", batch, row, max_bytes)
                    number += 1
            # Where a file is cut between two batches, nothing else is missing.
            if not whole or source.tell() != size:
                says = f"the stream does not end where the file does, {number} episodes were read"
                raise fault(path, "truncated" if not whole else "corrupt", says)
    except FormatError:
        raise
    except (pa.ArrowException, *DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise fault(path, "corrupt", f"Arrow: {error}") from error


def _check_columns(pa: Any, path: str, schema: Any) -> None:
    """Rows are episodes where `obs` and `acts` are lists, and `terminal` is one value."""
    kinds = {name: schema.field(name).type for name in schema.names if schema.names.count(name) == 1}
    lists = [name for name, kind in kinds.items() if pa.types.is_list(kind) or pa.types.is_large_list(kind)]
    if len(kinds) < len(schema.names) or not set(_COLUMNS) <= set(kinds) or not {"obs", "acts"} <= set(lists):
        says = f"columns {', '.join(schema.names)}; expected those of trajectories of imitation, {', '.join(_COLUMNS)}"
        advice = "gristmill.pack(datasets.load_from_disk(FOLDER), PACK) takes a data set with a row for each step"
        raise fault(path, "unknown_format", f"{says}; {advice}")
    if not pa.types.is_boolean(kinds["terminal"]):
        raise fault(path, "unsupported", f"{kinds['terminal']}; expected true or false", "terminal")


def _episode(pa: Any, place: str, batch: Any, row: int, max_bytes: int) -> Table:
    def one(name: str) -> Any:
        column = batch.column(name).slice(row, 1)
        if column.null_count:
            raise fault(place, "missing", "no value", name)
        return column

    def read(name: str) -> npt.NDArray[Any]:
        column = one(name)
        if name == "terminal":
            flags = np.zeros(len(one("acts")[0]), bool)
            flags[-1:] = column[0].as_py()
            return flags
        if not (pa.types.is_list(column.type) or pa.types.is_large_list(column.type)):
            raise fault(place, "unsupported", f"{column.type}; expected a list with a value for each step", name)
        if column.nbytes > max_bytes:
            raise fault(place, "too_large", f"{column.nbytes} bytes; the bound is {max_bytes}", name)
        return array_of(place, name, column.flatten())

    return Table(place, batch.schema.names, read, True)
