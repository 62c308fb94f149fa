"""Episodes of a Minari data set in Arrow files, a folder for each. A field is read at its first use."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE, METADATA, Catalogue, of_files, read_json, refused
from gristmill.demos.minari.pictures import decoded
from gristmill.demos.spaces import Leaf
from gristmill.errors import GristmillError
from gristmill.options.optional import optional

#: At most this many steps in a byte of a file: callers may allocate arrays of the length that it states.
_MAX_RATIO = 1032

_T = TypeVar("_T")


class ArrowEpisodes:
    """The folders `<i>` of a data set; each has its `part-<n>.arrow` and a `metadata.json`.

    A table has a row for every observation. In the last one, which no action follows, everything else is filler.

    Raises:
        MissingPackageError: pyarrow is not installed.
        FormatError: an episode is missing.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._pa = optional("pyarrow", "minari")
        self._pc = optional("pyarrow.compute", "minari")
        self._folder = catalogue.folder
        found = [name for name in os.listdir(catalogue.folder) if name.isdecimal()]
        if len(found) != catalogue.episodes:
            says = f"{len(found)} folders of episodes; `total_episodes` of metadata.json is {catalogue.episodes}"
            raise refused(catalogue.folder, says, kind="wrong_size")
        #: Steps of each episode.
        self.lengths = [self._steps(i) for i in range(catalogue.episodes)]

    def file(self, episode: int) -> str:
        """Path of the file that holds an episode."""
        return os.path.join(self._folder, str(episode), "part-0.arrow")

    @of_files("Arrow")
    def stored(self, episode: int, head: str, leaf: Leaf) -> tuple[np.dtype[Any] | None, bool]:
        """Element type of a field as it is stored, `None` for texts; and whether it is pictures in JPEG."""
        if leaf.dtype is None:
            return None, False
        kind = self._column(episode, head, leaf).type
        if self._pa.types.is_binary(kind):
            return np.dtype(np.uint8), True
        element, field = kind.value_type if self._pa.types.is_fixed_size_list(kind) else kind, _field(head, leaf)
        dtype: np.dtype[Any] = self._of(episode, field, lambda: np.dtype(element.to_pandas_dtype()))
        if dtype.kind not in "biuf":
            raise refused(self.file(episode), f"elements of type {element}", episode=episode, field=field)
        return dtype, False

    @of_files("Arrow")
    def values(self, episode: int, head: str, leaf: Leaf, rows: int) -> Any:
        """The values of a field: an array (rows, ...), or a list of texts."""
        field = _field(head, leaf)
        column = self._column(episode, head, leaf).slice(0, rows)
        path = self.file(episode)
        if column.null_count:
            raise refused(path, "values are missing", episode=episode, field=field, kind="missing")
        types = self._pa.types
        if leaf.dtype is None:
            if not types.is_string(column.type) and not types.is_large_string(column.type):
                raise refused(path, f"{column.type}; expected texts", episode=episode, field=field)
            return column.to_pylist()
        if types.is_binary(column.type):
            if len(leaf.shape) not in (2, 3) or leaf.dtype != np.uint8:
                raise refused(path, f"pictures; expected {leaf.dtype} {leaf.shape}", episode=episode, field=field)
            return decoded((one.as_py() for one in column), rows, leaf.shape, (path, episode, field))
        return self._numbers(column, episode, field).reshape(rows, *leaf.shape)

    @of_files("Arrow")
    def flags(self, episode: int, name: str, rows: int) -> npt.NDArray[Any]:
        """`rewards`, `terminations` or `truncations` of an episode."""
        return self._numbers(self._read(episode, name).slice(0, rows), episode, name)

    @of_files("Arrow")
    def infos(self, episode: int) -> dict[str, Any]:
        """The infos, arrays and lists of texts by name at every depth; empty where none were recorded."""
        column = self._read(episode, "infos", needed=False)
        return {} if column is None else self._infos(column, episode, "infos")

    @of_files("Arrow")
    def begun(self, episode: int) -> dict[str, Any]:
        """How an episode was reset: `seed` and `options`, where they were recorded."""
        found = read_json(os.path.join(self._folder, str(episode), METADATA))
        return {name: found[name] for name in ("seed", "options") if found.get(name) is not None}

    def _of(self, episode: int, field: str | None, read: Callable[[], _T]) -> _T:
        """What `read` gives; what Arrow says against it, with its place."""
        try:
            return read()
        except GristmillError:
            raise
        except (self._pa.ArrowException, *DAMAGE) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise refused(self.file(episode), f"Arrow: {error}", episode=episode, field=field) from error

    @of_files("Arrow")
    def _steps(self, episode: int) -> int:
        path = os.path.join(self._folder, str(episode), METADATA)
        if not os.path.exists(path):
            raise refused(path, "there is no such file", episode=episode, kind="missing")
        steps = read_json(path).get("total_steps")
        if not isinstance(steps, int) or isinstance(steps, bool) or not 0 < steps < 1 << 48:
            says = f"expected a number from 1 on, found {steps!r}"
            raise refused(path, says, episode=episode, field="total_steps")
        size = sum(os.path.getsize(part) for part in self._parts(episode))
        if steps > _MAX_RATIO * size:
            says = f"{steps} steps in {size} bytes"
            raise refused(path, says, episode=episode, field="total_steps", kind="too_large")
        return steps

    def _parts(self, episode: int) -> list[str]:
        """The files of an episode, in order."""
        folder = os.path.join(self._folder, str(episode))
        numbers = [name[len("part-") : -len(".arrow")] for name in os.listdir(folder) if name.endswith(".arrow")]
        parts = sorted((number for number in numbers if number.isdecimal()), key=int)
        if not parts or [int(part) for part in parts] != list(range(len(parts))):
            says = f"parts {', '.join(parts) or 'none'}; expected part-0.arrow and what follows it"
            raise refused(folder, says, episode=episode, kind="missing")
        return [os.path.join(folder, f"part-{part}.arrow") for part in parts]

    def _read(self, episode: int, name: str, *, needed: bool = True) -> Any:
        """One column of an episode, checked from end to end; `None` where there is none and it is not needed."""
        chunks = []
        for part in self._parts(episode):
            column = self._of(episode, name, partial(self._read_part, part, name))
            if column is None:
                if needed:
                    raise refused(part, "there is no such column", episode=episode, field=name, kind="missing")
                return None
            chunks += column.chunks
        kind = chunks[0].type if chunks else self._pa.null()
        column = self._of(episode, name, lambda: self._pa.chunked_array(chunks, type=kind))
        rows = self.lengths[episode] + 1
        if len(column) != rows:
            says = f"{len(column)} rows; expected {rows} for {self.lengths[episode]} steps"
            raise refused(self.file(episode), says, episode=episode, field=name, kind="wrong_size")
        return self._of(episode, name, column.combine_chunks)

    def _read_part(self, part: str, name: str) -> Any:
        """One column of one file, `None` where there is none."""
        with self._pa.memory_map(part) as file:
            places = self._pa.ipc.open_file(file).schema.get_all_field_indices(name)
            if len(places) != 1:
                return None
            options = self._pa.ipc.IpcReadOptions(included_fields=places)
            column = self._pa.ipc.open_file(file, options=options).read_all().column(0)
            column.validate(full=True)
            return column

    def _column(self, episode: int, head: str, leaf: Leaf) -> Any:
        column = self._read(episode, head)
        for part in map(str, leaf.path):
            if not self._pa.types.is_struct(column.type) or len(column.type.get_all_field_indices(part)) != 1:
                raise refused(self.file(episode), "missing", episode=episode, field=_field(head, leaf), kind="missing")
            column = self._pc.struct_field(column, [column.type.get_field_index(part)])
        kind = column.type
        width = math.prod(leaf.shape)
        if leaf.dtype is not None and not self._pa.types.is_binary(kind):
            held = kind.list_size if self._pa.types.is_fixed_size_list(kind) else 1
            if held != width:
                says = f"{held} elements; expected {leaf.shape}, as the space says"
                raise refused(self.file(episode), says, episode=episode, field=_field(head, leaf), kind="wrong_size")
        return column

    def _numbers(self, column: Any, episode: int, field: str) -> npt.NDArray[Any]:
        """The numbers of a column; of a list column flat."""
        if self._pa.types.is_fixed_size_list(column.type):
            column = column.flatten()
        if not self._is_plain(column):
            says = f"{column.type} with {column.null_count} values missing; expected numbers"
            raise refused(self.file(episode), says, episode=episode, field=field)
        return np.asarray(self._of(episode, field, lambda: column.to_numpy(zero_copy_only=False)))

    def _is_plain(self, column: Any) -> bool:
        """Whether it holds numbers or truth values, none missing."""
        kind, types = column.type, self._pa.types
        return not column.null_count and (types.is_integer(kind) or types.is_floating(kind) or types.is_boolean(kind))

    def _infos(self, column: Any, episode: int, field: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not self._pa.types.is_struct(column.type):
            raise refused(self.file(episode), f"{column.type}; expected a structure", episode=episode, field=field)
        for place, about in enumerate(column.type):
            values, at = self._pc.struct_field(column, [place]), f"{field}/{about.name}"
            if self._pa.types.is_struct(about.type):
                found[about.name] = self._infos(values, episode, at)
            elif self._pa.types.is_fixed_size_list(about.type):
                text = (about.metadata or {}).get(b"shape", b"%d" % about.type.list_size).decode("ascii", "replace")
                shape = [int(dim) for dim in text.split(",") if dim.isdecimal()]
                numbers = self._numbers(values, episode, at)
                found[about.name] = self._of(episode, at, partial(numbers.reshape, len(values), *shape))
            else:
                found[about.name] = self._numbers(values, episode, at) if self._is_plain(values) else values.to_pylist()
        return found


def _field(head: str, leaf: Leaf) -> str:
    return "/".join((head, *map(str, leaf.path)))
