"""A Parquet file -> its table: a column for each array, lists of one length as rows of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.tables import MAX_ARRAYS, Table
from gristmill.errors import FormatError
from gristmill.options.optional import optional


def of_parquet(path: str, max_bytes: int) -> Iterator[Table]:
    """The one table of a Parquet file.

    Raises:
        MissingPackageError: pyarrow is not installed.
        FormatError: the file is damaged.
        OSError: it cannot be read.
    """
    pa, parquet = optional("pyarrow", "parquet"), optional("pyarrow.parquet", "parquet")
    with open(path, "rb"):
        pass
    try:
        with parquet.ParquetFile(path) as file:
            names = _leaves(pa, file.schema_arrow)
            if len(names) > MAX_ARRAYS:
                raise fault(path, "too_large", f"{len(names)} columns; at most {MAX_ARRAYS} are read")
            yield Table(path, names, lambda name: _read(pa, path, file, name, max_bytes))
    except FormatError:
        raise
    except (pa.ArrowException, *DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise fault(path, "corrupt", f"Parquet: {error}") from error


def _leaves(pa: Any, fields: Any, above: str = "") -> list[str]:
    """Names of the columns; parts of structures are `obs.image`."""
    found: list[str] = []
    for field in fields:
        name = f"{above}{field.name}"
        found += _leaves(pa, field.type, f"{name}.") if pa.types.is_struct(field.type) else [name]
    return found


def _read(pa: Any, path: str, file: Any, name: str, max_bytes: int) -> npt.NDArray[Any]:
    """A column as an array (rows, ...)."""
    bounded(path, file.metadata, name, max_bytes)
    table = file.read(columns=[name])
    while any(pa.types.is_struct(field.type) for field in table.schema):
        table = table.flatten()
    if name not in table.column_names:
        raise fault(path, "unsupported", f"a column of type {file.schema_arrow}", name)
    return array_of(path, name, table.column(name).combine_chunks())


def bounded(path: str, about: Any, name: str, max_bytes: int, groups: Iterable[int] | None = None) -> None:
    """Refuses a column that takes more than `max_bytes`, by the metadata of its file; of some row groups, or of all.

    Raises:
        FormatError: it takes more, or its file says so.
    """
    values = 0
    for i in range(about.num_row_groups) if groups is None else groups:
        group = about.row_group(i)
        columns = [group.column(j) for j in range(group.num_columns)]
        mine = [one for one in columns if one.path_in_schema == name or one.path_in_schema.startswith(f"{name}.")]
        values += sum(one.num_values for one in mine)
        if (
            values * max(map(_bytes, mine), default=1) > max_bytes
            or sum(one.total_uncompressed_size for one in mine) > max_bytes
        ):
            raise fault(path, "too_large", f"{values} values or more; the bound is {max_bytes} bytes", name)


def _bytes(column: Any) -> int:
    """What a value of a column takes in memory, at least."""
    return {"BOOLEAN": 1, "INT32": 4, "FLOAT": 4}.get(column.physical_type, 8)


def array_of(path: str, name: str, column: Any) -> npt.NDArray[Any]:
    """A column of Arrow as an array (rows, ...); lists of one length are further axes.

    Raises:
        FormatError: values are missing, lists differ in length, or elements are no numbers; it names `path` and `name`.
    """
    pa = optional("pyarrow", "parquet")
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    column.validate(full=True)
    if column.null_count:
        row = int(np.argmax(np.asarray(column.is_null())))
        raise fault(path, "missing", f"no value in row {row}", name)
    types = pa.types
    if isinstance(column, pa.ExtensionArray):
        return array_of(path, name, column.storage)
    if types.is_fixed_size_list(column.type) or types.is_list(column.type) or types.is_large_list(column.type):
        rows = len(column)
        lengths = (
            np.unique(np.asarray(optional("pyarrow.compute", "parquet").list_value_length(column)))
            if rows
            else np.asarray([0])
        )
        if len(lengths) > 1:
            says = f"lists of {lengths[0]} to {lengths[-1]} values; expected as many in every row"
            raise fault(path, "unsupported", says, name)
        inner = array_of(path, name, column.flatten())
        return inner.reshape(rows, int(lengths[0]), *inner.shape[1:])
    if not (types.is_integer(column.type) or types.is_floating(column.type) or types.is_boolean(column.type)):
        raise fault(path, "unsupported", f"elements of type {column.type}; expected numbers", name)
    found: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False)
    return found
