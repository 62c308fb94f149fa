"""The Parquet files of a LeRobot data set: a column of one episode at a time, held against `info.json`."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.lerobot.catalogue import Catalogue, Feature
from gristmill.demos.minari.catalogue import of_files, refused
from gristmill.demos.minari.pictures import decoded, is_deep
from gristmill.demos.own.arrays import checked
from gristmill.demos.own.parquet import array_of, bounded
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: Formats of pictures in columns, as Pillow calls them.
_FORMATS = ("PNG", "JPEG")

#: Columns that say which step a row is.
_PLACES = ("frame_index", "episode_index", "index")

#: Which part of the time between two steps a timestamp may be off.
TOLERANCE = 0.25


class Steps:
    """The rows of a data set, an episode and a column at a time. The last file and its last row groups are kept.

    Raises:
        MissingPackageError: pyarrow is not installed.
    """

    def __init__(self, catalogue: Catalogue, max_bytes: int) -> None:
        self._pa = optional("pyarrow", "lerobot")
        self._parquet = optional("pyarrow.parquet", "lerobot")
        self._catalogue, self._max_bytes = catalogue, max_bytes
        self._file: tuple[str, Any] | None = None
        self._kept: dict[str, tuple[str, range, Any]] = {}
        self._others: list[str] | None = None
        #: Episodes whose rows are of their steps, and whether all files have the rows that they should.
        self._placed: set[int] = set()
        self._whole = False

    def file(self, episode: int) -> str:
        """Path of the file that holds an episode."""
        return self._catalogue.parts[episode].file

    @of_files("Parquet")
    def others(self, episode: int) -> list[str]:
        """Columns of the file of an episode that `info.json` does not list."""
        names: list[str] = self._opened(episode).schema_arrow.names
        return sorted(set(names) - set(self._catalogue.features))

    def check_all(self) -> None:
        """Holds the rows and columns of every file against what lists the episodes.

        Raises:
            OSError: a file cannot be read.
            FormatError: a file is missing or damaged, or has other rows.
        """
        seen = set[str]()
        for episode, part in enumerate(self._catalogue.parts):
            if part.file not in seen and not self._whole:
                seen.add(part.file)
                self.others(episode)
        self._whole = True

    @of_files("Parquet")
    def places(self, episode: int) -> None:
        """Checks the columns that say of which episode and step each row is.

        Raises:
            FormatError: a row is of another one.
        """
        catalogue = self._catalogue
        if episode in self._placed:
            return
        # How many steps there are is believed when the file agrees.
        self._opened(episode)
        steps, part = catalogue.lengths[episode], catalogue.parts[episode]
        expected = {
            "frame_index": np.arange(steps),
            "episode_index": np.full(steps, episode),
            "index": np.arange(part.first, part.first + steps),
        }
        for name in _PLACES:
            if name in catalogue.features:
                values = self.numbers(episode, catalogue.features[name])
                self._same(episode, name, values, expected[name])
        if "timestamp" in catalogue.features:
            times = self.numbers(episode, catalogue.features["timestamp"])
            off = np.flatnonzero(~(np.abs(times - np.arange(steps) / catalogue.fps) <= TOLERANCE / catalogue.fps))
            if len(off):
                says = f"{times[off[0]]}; expected {off[0] / catalogue.fps:.6g} at {catalogue.fps:g} frames of a second"
                row = int(off[0])
                raise refused(part.file, says, episode=episode, row=row, field="timestamp", kind="out_of_range")
        if "task_index" in catalogue.features and catalogue.tasks:
            tasks = self.numbers(episode, catalogue.features["task_index"])
            off = np.flatnonzero((tasks < 0) | (tasks >= len(catalogue.tasks)))
            if len(off):
                says, row = f"{tasks[off[0]]}; there are {len(catalogue.tasks)} tasks", int(off[0])
                raise refused(part.file, says, episode=episode, row=row, field="task_index", kind="out_of_range")
        self._placed.add(episode)

    @of_files("Parquet")
    def numbers(self, episode: int, feature: Feature) -> npt.NDArray[Any]:
        """A column of an episode as an array (steps, ...), as `info.json` says that it is."""
        column, path = self._column(episode, feature.name), self.file(episode)
        try:
            values = checked(f"{path}: episode {episode}", feature.name, array_of(path, feature.name, column))
        except FormatError as error:
            text = str(error)
            if not text.startswith(f"{path}: episode {episode}"):
                text = text.replace(path, f"{path}: episode {episode}", 1)
            raise FormatError(text, kind=error.kind, source=path, member=feature.name, chunk=episode) from error
        if not feature.shape and values.shape[1:] == (1,):
            values = values[:, 0]
        if values.dtype != feature.dtype or values.shape[1:] != feature.shape:
            says = f"{values.dtype}{list(values.shape[1:])}; info.json says {feature.dtype}{list(feature.shape)}"
            raise refused(path, says, episode=episode, field=feature.name, kind="wrong_size")
        return values

    def depth(self, feature: Feature) -> np.dtype[Any]:
        """Of what the pictures of a feature are, which `info.json` does not say: uint16 where the first one is.

        Where it cannot be read it is of no matter: reading the episode says why.
        """
        if feature.shape[0] == 1:
            try:
                with self._parquet.ParquetFile(self.file(0)) as file:
                    first = next(file.iter_batches(batch_size=1, row_groups=[0], columns=[feature.name]), None)
                value = None if first is None or not len(first) else first.column(0)[0].as_py()
                value = value.get("bytes") if isinstance(value, dict) else value
                return np.dtype(np.uint16 if isinstance(value, bytes) and is_deep(value) else feature.dtype)
            except (OSError, self._pa.ArrowException, LookupError):
                pass
        return feature.dtype

    @of_files("Parquet")
    def pictures(self, episode: int, feature: Feature) -> npt.NDArray[Any]:
        """Pictures of an episode (steps, channels, height, width), decoded: of `feature.dtype`."""
        optional("PIL.Image", "lerobot")
        column, path = self._column(episode, feature.name), self.file(episode)
        if self._pa.types.is_struct(column.type) and column.type.get_field_index("bytes") >= 0:
            column = column.combine_chunks().field("bytes")
        kind = column.type
        if not (self._pa.types.is_binary(kind) or self._pa.types.is_large_binary(kind)):
            raise refused(path, f"{kind}; expected pictures as bytes", episode=episode, field=feature.name)
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            says = "the bytes of the picture are not in the file"
            raise refused(path, says, episode=episode, row=row, field=feature.name, kind="missing")
        place = (path, episode, feature.name)
        channels, height, width = feature.shape
        found = decoded(
            (one.as_py() for one in column), len(column), (height, width, channels), place, _FORMATS, feature.dtype
        )
        return np.moveaxis(found, -1, 1)

    @of_files("Parquet")
    def texts(self, episode: int, feature: Feature) -> list[str]:
        """Texts of an episode, one for each step."""
        column, path = self._column(episode, feature.name), self.file(episode)
        if not (self._pa.types.is_string(column.type) or self._pa.types.is_large_string(column.type)):
            raise refused(path, f"{column.type}; expected texts", episode=episode, field=feature.name)
        if column.null_count:
            row = int(np.argmax(np.asarray(column.is_null())))
            raise refused(path, "no value", episode=episode, row=row, field=feature.name, kind="missing")
        found: list[str] = column.to_pylist()
        return found

    def _same(self, episode: int, name: str, values: npt.NDArray[Any], expected: npt.NDArray[Any]) -> None:
        off = np.flatnonzero(values != expected)
        if len(off):
            row = int(off[0])
            says = f"{values[row]}; expected {expected[row]}"
            raise refused(self.file(episode), says, episode=episode, row=row, field=name, kind="wrong_size")

    def _opened(self, episode: int) -> Any:
        """The file of an episode, with the rows and the columns that it should have."""
        path = self.file(episode)
        if self._file is not None and self._file[0] == path:
            return self._file[1]
        self._kept.clear()
        if self._file is not None:
            self._file[1].close()
            self._file = None
        with open(path, "rb"):
            pass
        file = self._parquet.ParquetFile(path)
        if file.metadata.num_rows != self._catalogue.rows[path]:
            says = f"{file.metadata.num_rows} rows; its episodes have {self._catalogue.rows[path]} steps"
            raise refused(path, says, episode=episode, kind="wrong_size")
        names = file.schema_arrow.names
        wanted = [name for name, feature in self._catalogue.features.items() if feature.sort != "video"]
        for name in wanted:
            if names.count(name) != 1:
                says = "no such column, which info.json lists"
                raise refused(path, says, episode=episode, field=name, kind="missing")
        others = sorted(set(names) - set(self._catalogue.features))
        if self._others is not None and others != self._others:
            says = f"columns {others} that info.json does not list; the first file has {self._others}"
            raise refused(path, says, episode=episode, kind="wrong_size")
        self._others = others
        self._file = (path, file)
        return file

    def _column(self, episode: int, name: str) -> Any:
        """A column of the rows of an episode, as Arrow has it."""
        file, part = self._opened(episode), self._catalogue.parts[episode]
        steps, about = self._catalogue.lengths[episode], file.metadata
        starts = np.cumsum([0, *(about.row_group(i).num_rows for i in range(about.num_row_groups))])
        first = int(np.searchsorted(starts, part.first_row, "right")) - 1
        last = int(np.searchsorted(starts, part.first_row + steps, "left"))
        groups = range(first, last)
        kept = self._kept.get(name)
        if kept is None or kept[:2] != (part.file, groups):
            bounded(part.file, about, name, self._max_bytes, groups)
            column = file.read_row_groups(list(groups), columns=[name]).column(name)
            column.validate(full=True)
            self._kept[name] = kept = (part.file, groups, column)
        found = kept[2].slice(part.first_row - int(starts[first]), steps)
        if len(found) != steps:
            says = f"{len(found)} rows; expected {steps}"
            raise refused(part.file, says, episode=episode, field=name, kind="truncated")
        return found
