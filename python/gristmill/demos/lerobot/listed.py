"""The lists of `meta/`, lines of JSON or Parquet: which episodes there are, where each lies, and the texts of tasks."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from gristmill.demos.minari.catalogue import DAMAGE, refused
from gristmill.demos.own.hdf5 import natural
from gristmill.demos.own.parquet import bounded
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: Maximum number of bytes of a list.
_MAX_BYTES = 1 << 28


class Listed(NamedTuple):
    """An episode, as a list has it."""

    #: The list.
    file: str
    length: int
    #: Steps of the episodes before, where the list says it.
    first: int | None
    #: What stands for the file of the steps in its pattern.
    data: dict[str, Any]
    #: By video what stands for its file, and the seconds at which the episode begins in it.
    videos: dict[str, tuple[dict[str, Any], float]]


def listed_in_lines(folder: str, chunk: int, videos: Iterable[str]) -> tuple[list[Listed], list[str]]:
    """The episodes of version 2, of `episodes.jsonl`, and the files that say it; `chunk` of them have a folder.

    Raises:
        OSError: it cannot be read.
        FormatError: a line is none, or episodes are not in order.
    """
    path, found = os.path.join(folder, "meta", "episodes.jsonl"), []
    for number, one in enumerate(_lines(path)):
        values = {"episode_chunk": number // chunk, "episode_index": number}
        _in_order(path, one.get("episode_index"), number)
        length = _length(path, one.get("length"), number)
        found.append(Listed(path, length, None, values, dict.fromkeys(videos, (values, 0.0))))
    return found, [path]


def listed_in_parquet(folder: str, fps: float, videos: Iterable[str]) -> tuple[list[Listed], list[str]]:
    """The episodes of version 3, of the files in `meta/episodes`, and these files.

    Raises:
        OSError: it cannot be read.
        MissingPackageError: pyarrow is not installed.
        FormatError: a file is damaged, lacks a column, or episodes are not in order.
    """
    above = os.path.join(folder, "meta", "episodes")
    names = [
        os.path.join(place, name) for place, _, inside in os.walk(above) for name in inside if name.endswith(".parquet")
    ]
    if not names:
        raise refused(above, "no Parquet file that lists the episodes", kind="missing")
    names.sort(key=lambda name: natural(os.path.relpath(name, above)))
    keys, found = list(videos), list[Listed]()
    columns = ["episode_index", "length", "data/chunk_index", "data/file_index", "dataset_from_index"]
    ends = ("from_timestamp", "to_timestamp")
    columns += [f"videos/{key}/{what}" for key in keys for what in ("chunk_index", "file_index", *ends)]
    for path in names:
        read = _columns(path, columns)
        for row in range(len(read["episode_index"])):
            one, number = {name: values[row] for name, values in read.items()}, len(found)
            _in_order(path, one["episode_index"], number)
            first, length, places = one["dataset_from_index"], _length(path, one["length"], number), {}
            for key in keys:
                start, end = (one[f"videos/{key}/{what}"] for what in ends)
                if not all(isinstance(time, int | float) and 0 <= time < 1e9 for time in (start, end)):
                    says = f"from {start!r} to {end!r}; expected seconds"
                    raise refused(path, says, episode=number, field=f"videos/{key}")
                if abs((end - start) * fps - length) > 0.5:
                    says = f"from {start:.6g} to {end:.6g} s; {length} steps take {length / fps:.6g} s"
                    raise refused(path, says, episode=number, field=f"videos/{key}", kind="wrong_size")
                places[key] = (_indices(path, one, f"videos/{key}", number), float(start))
            found.append(Listed(path, length, int(first or 0), _indices(path, one, "data", number), places))
    return found, names


def tasks_in_lines(folder: str) -> tuple[list[str], str]:
    """The texts of the tasks of version 2 by their number, and the file that has them; none where it is not there."""
    path, found = os.path.join(folder, "meta", "tasks.jsonl"), []
    for number, one in enumerate(_lines(path) if os.path.exists(path) else ()):
        found.append(_task(path, one.get("task_index"), one.get("task"), number))
    return found, path


def tasks_in_parquet(folder: str) -> tuple[list[str], str]:
    """The texts of the tasks of version 3 by their number, and the file that has them; none where it is not there."""
    path = os.path.join(folder, "meta", "tasks.parquet")
    if not os.path.exists(path):
        return [], path
    # The text is the index of a table of pandas, under a name of its own or none.
    read = _columns(path, None)
    numbers = read.pop("task_index", None)
    texts = next((read[name] for name in ("task", "__index_level_0__", *read) if name in read), None)
    if numbers is None or texts is None:
        raise refused(path, "expected the columns `task_index` and `task`", kind="missing")
    rows = sorted(zip(numbers, texts, strict=True), key=lambda row: row[0] if isinstance(row[0], int) else -1)
    return [_task(path, index, text, number) for number, (index, text) in enumerate(rows)], path


def _lines(path: str) -> Iterator[dict[str, Any]]:
    """The objects of a file of JSON lines."""
    with open(path, "rb") as file:
        text = file.read(_MAX_BYTES + 1)
    if len(text) > _MAX_BYTES:
        raise refused(path, f"more than {_MAX_BYTES} bytes", kind="too_large")
    for number, line in enumerate(text.splitlines()):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise refused(path, f"line {number + 1}: no JSON: {error}") from error
        if not isinstance(found, dict):
            raise refused(path, f"line {number + 1}: expected a JSON object, found a {type(found).__name__}")
        yield found


def _columns(path: str, names: list[str] | None) -> dict[str, list[Any]]:
    """Columns of a Parquet file as lists; all of them without `names`."""
    pa, parquet = optional("pyarrow", "lerobot"), optional("pyarrow.parquet", "lerobot")
    with open(path, "rb"):
        pass
    try:
        with parquet.ParquetFile(path) as file:
            there = file.schema_arrow.names
            for name in names or ():
                if there.count(name) != 1:
                    raise refused(path, "there is no such column", field=name, kind="missing")
            wanted = names or there
            for name in wanted:
                bounded(path, file.metadata, name, _MAX_BYTES)
            table = file.read(columns=wanted)
            table.validate(full=True)
            return {name: table.column(name).to_pylist() for name in wanted}
    except FormatError:
        raise
    except (pa.ArrowException, *DAMAGE) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise refused(path, f"Parquet: {error}") from error


def _in_order(path: str, index: Any, number: int) -> None:
    if index != number or isinstance(index, bool):
        raise refused(path, f"`episode_index` is {index!r}; expected {number}, in order", episode=number)


def _length(path: str, length: Any, number: int) -> int:
    if not isinstance(length, int) or isinstance(length, bool) or not 0 < length < 1 << 48:
        raise refused(path, f"{length!r}; expected a number of steps from 1 on", episode=number, field="length")
    return length


def _indices(path: str, one: dict[str, Any], above: str, number: int) -> dict[str, Any]:
    """Chunk and number of a file."""
    found = {name: one[f"{above}/{name}"] for name in ("chunk_index", "file_index")}
    for name, value in found.items():
        if isinstance(value, float) and value.is_integer():
            found[name] = value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 48:
            raise refused(path, f"{value!r}; expected a number", episode=number, field=f"{above}/{name}")
    return found


def _task(path: str, index: Any, text: Any, number: int) -> str:
    if index != number or not isinstance(text, str):
        says = f"`task_index` {index!r}, `task` {text!r}; expected number {number} and its text"
        raise refused(path, says)
    return text
