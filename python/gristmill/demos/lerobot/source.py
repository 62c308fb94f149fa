"""A LeRobot data set as demonstrations: trajectories with named arrays, each read at its first use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.lerobot.catalogue import Feature, data_set, read_catalogue
from gristmill.demos.lerobot.tables import Steps
from gristmill.demos.lerobot.videos import fill
from gristmill.demos.minari.catalogue import refused
from gristmill.demos.minari.spill import Spill
from gristmill.demos.own.arrays import ORDER
from gristmill.demos.own.names import choose, usual
from gristmill.demos.source import Demos
from gristmill.errors import ConfigError, FormatError
from gristmill.options.arguments import named
from gristmill.options.optional import optional
from gristmill.packs.again import open_again
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout

#: Maximum number of bytes that are held of an episode or a field.
MAX_BYTES = 2 << 30

#: What says whether the last step ended the episode.
_DONE = "next.done"

#: Files of `meta/` that are read by nobody here, and why.
_BESIDE = {
    "stats.json": "statistics of the values, of which the loader needs none",
    "episodes_stats.jsonl": "statistics of the values, of which the loader needs none",
    "subtasks.parquet": "texts of subtasks",
    "modality.json": "what another program says of the columns",
}


class LeRobotDemos(Demos):
    """A LeRobot data set. Opening reads `meta/`, and the first of pictures with one channel, which may have 16 bits; an
    episode, or one field of it, is read and decoded at its first use.

    Records have the features under the usual names (`obs.state`, `obs.images.top`, `acts`, `rews`; others as they are
    called), `dones`, true in the last step, and `truncated`, true there where the data says `next.done` and it is
    false. Pictures are (channels, height, width), as LeRobot gives them: uint8, or uint16 of depth. Texts are extras.
    """

    def __init__(
        self, path: str, folder: str, fields: Mapping[str, str] | None, columns: str | None, max_bytes: int
    ) -> None:
        self._path, self._spill, self._max_bytes = path, columns, max_bytes
        self._catalogue = read_catalogue(folder)
        self._steps = Steps(self._catalogue, max_bytes)
        features = self._catalogue.features
        texts = [name for name, feature in features.items() if feature.sort == "text"]
        chosen = choose(path, self._catalogue.file, [name for name in features if name not in texts], fields)
        for field in ("dones", "truncated"):
            if field in chosen:
                raise ConfigError(
                    f"{path}: `{field}`: a LeRobot data set says itself where episodes end", field="fields"
                )
        if fields is not None:
            asked = {usual(field) or field for field in fields}
            chosen = {field: name for field, name in chosen.items() if name != "episode_index" or field in asked}
        heads = [field for first in ORDER for field in chosen if field.split(".")[0] == first]
        self._fields = {field: features[chosen[field]] for field in dict.fromkeys([*heads, *chosen])}
        for field, feature in self._fields.items():
            if feature.sort == "image":
                self._fields[field] = feature._replace(dtype=self._steps.depth(feature))
        self._texts = [features[name] for name in texts] if fields is None else []
        if any(feature.sort == "video" for feature in self._fields.values()):
            optional("av", "lerobot")
        described: list[tuple[str, Any, tuple[int, ...]]] = [
            (field, feature.dtype, feature.shape) for field, feature in self._fields.items()
        ]
        described += [(name, np.dtype("?"), ()) for name in ("dones", "truncated")]
        self._layout = Layout.from_dtype(np.dtype(described, align=True))
        self._asked = None if fields is None else dict(fields)

    @property
    def key(self) -> str:
        """Name of the data set's folder."""
        return os.path.basename(os.path.abspath(self._catalogue.folder))

    @property
    def format(self) -> str:
        """`demo.lerobot.v2` or `demo.lerobot.v3`."""
        return f"demo.lerobot.{self._catalogue.version.split('.')[0]}"

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return self._layout

    @property
    def num_frames(self) -> int:
        """Steps of all episodes."""
        return sum(self._catalogue.lengths)

    @property
    def lengths(self) -> list[int]:
        """Steps of each episode."""
        return list(self._catalogue.lengths)

    @property
    def metadata(self) -> dict[str, Any]:
        """`fields`, the feature that each field is of, and `left_out`, what is no field and why.

        `lossy` lists the fields that come from videos. `lerobot` has `codebase_version`, `fps`, `robot_type`, `tasks`
        (their texts, by number), `splits`, and `names` of the parts of features.

        Raises:
            FormatError: the first Parquet file is damaged.
        """
        info = self._catalogue.info
        folder = os.path.join(self._catalogue.folder, "meta")
        taken = {feature.name for feature in (*self._fields.values(), *self._texts)}
        left = {name: "not asked for" for name in self._catalogue.features if name not in taken}
        left.update((name, "a column that info.json does not list") for name in self._steps.others(0))
        left.update((f"meta/{name}", why) for name, why in _BESIDE.items() if os.path.exists(f"{folder}/{name}"))
        about = {key: info[key] for key in ("codebase_version", "fps", "robot_type", "splits") if key in info}
        said = {name: one.get("names") for name, one in info["features"].items()}
        return {
            "fields": {field: feature.name for field, feature in self._fields.items()},
            "left_out": left,
            "lossy": [field for field, feature in self._fields.items() if feature.sort == "video"],
            "lerobot": {
                **about,
                "tasks": list(self._catalogue.tasks),
                "names": {name: names for name, names in said.items() if names},
            },
        }

    def frames(self, index: int) -> int:
        """Steps of one episode."""
        return self._catalogue.lengths[self._place(index)]

    def member(self, index: int) -> str | None:
        """Name of the episode within the data set."""
        return f"episode_{self._place(index):06d}"

    def truncated(self, index: int) -> bool:
        """Whether `next.done` is false in the last step; an episode of data that does not say it was not cut."""
        place, done = self._place(index), self._catalogue.features.get(_DONE)
        return done is not None and not bool(self._steps.numbers(place, done)[-1])

    def extras(self, index: int) -> dict[str, list[Any]]:
        """Texts that travel beside the records, one for each step: `task`, and features of texts under their names.

        Raises:
            IndexError: there is no such episode.
            FormatError: the file of the episode is damaged; it says where.
        """
        place = self._place(index)
        found: dict[str, list[Any]] = {one.name: self._steps.texts(place, one) for one in self._texts}
        tasks = self._catalogue.features.get("task_index")
        if self._asked is None and tasks is not None and self._catalogue.tasks and "task" not in found:
            numbers = self._steps.numbers(place, tasks)
            self._steps.places(place)
            found["task"] = [self._catalogue.tasks[number] for number in numbers.tolist()]
        return found

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps of all episodes; nothing else is read. With `columns` it is a mapped file.

        Raises:
            FormatError: no such field, more than `max_bytes` of it, or a damaged episode; it says where.
        """
        if name not in self._layout.names:
            says = f"no field is called `{name}`; there are {', '.join(self._layout.names)}"
            raise FormatError(f"{self._path}: missing: {says}", kind="missing", source=self._path)
        self._steps.check_all()
        dtype = self._layout.dtype[name]
        shape = (self.num_frames, *dtype.shape)
        if self._spill is not None and name in self._fields:
            feature = self._fields[name]
            spill = Spill(self._spill, self.key, self._catalogue.files())
            return spill.column(feature.name, dtype.base, shape, partial(self._gather, name))
        self._bound(
            self.num_frames * dtype.itemsize, f"`{name}`", "gristmill.open(..., columns=FOLDER) keeps it on disk"
        )
        values = Array.over(_gristmill.allocate(self.num_frames * dtype.itemsize), shape, dtype.base)
        self._gather(name, values)
        return values

    def columns(self, names: Any) -> dict[str, npt.NDArray[Any]]:
        """Some fields of all steps by name, as `column` gives them."""
        return {name: self.column(name) for name in names}

    def __len__(self) -> int:
        return len(self._catalogue.lengths)

    def _trajectory(self, index: int) -> Array:
        place = self._place(index)
        steps = self._catalogue.lengths[place]
        self._steps.places(place)
        size = steps * self._layout.itemsize
        self._bound(size, f"episode {place}", "gristmill.open(..., fields={...}) leaves pictures out")
        records = Array.over(_gristmill.allocate(size), (steps,), self._layout.dtype)
        for name in self._layout.names:
            if name:
                self._fill(records[name], place, name)
        return records

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"LeRobotDemos({self._path!r}, format={self.format!r}, chunks={len(self)}, frames={self.num_frames})"

    def __reduce__(self) -> tuple[Any, ...]:
        options = {"fields": self._asked, "columns": self._spill, "max_bytes": self._max_bytes}
        return open_again, (open_lerobot, os.path.abspath(self._path), options, (len(self), self.num_frames))

    def _bound(self, size: int, what: str, advice: str) -> None:
        if size > self._max_bytes:
            says = f"{what} takes {size} bytes, the bound is {self._max_bytes}; {advice}"
            raise refused(self._path, says, kind="too_large")

    def _gather(self, name: str, values: npt.NDArray[Any]) -> None:
        """Puts a field of all episodes together."""
        first = 0
        for place, steps in enumerate(self._catalogue.lengths):
            self._steps.places(place)
            self._fill(values[first : first + steps], place, name)
            first += steps

    def _fill(self, target: npt.NDArray[Any], place: int, name: str) -> None:
        """Puts a field of one episode where it belongs."""
        feature = self._fields.get(name)
        if feature is None:
            target[:-1], target[-1] = False, name == "dones" or self.truncated(place)
        else:
            self._fill_of(feature, target, place)

    def _fill_of(self, feature: Feature, target: npt.NDArray[Any], place: int) -> None:
        if feature.sort == "video":
            clip = self._catalogue.parts[place].clips[feature.name]
            fill(target, clip, self._catalogue.fps, place, feature.name)
        elif feature.sort == "image":
            target[:] = self._steps.pictures(place, feature)
        else:
            target[:] = self._steps.numbers(place, feature)


@named
def open_lerobot(
    path: str | os.PathLike[str],
    *,
    fields: Mapping[str, str] | None = None,
    columns: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> LeRobotDemos:
    """Opens a LeRobot data set, version 2.0, 2.1 or 3: its folder, or `meta/info.json` in it.

    Args:
        path: the folder or file.
        fields: by field the name of its feature, such as `{"obs": "observation.state", "acts": "action"}`; only those
            are read, and no video that is not among them.
        columns: a folder for columns larger than memory: each field that is used becomes a `.npy` file there.
        max_bytes: how much may be held of an episode, or of a field without `columns`.

    Raises:
        MissingPackageError: the extra `lerobot` brings pyarrow, Pillow and PyAV.
        OSError: it cannot be read.
        ConfigError: `fields` of ends of episodes, which the data set itself says.
        FormatError: it is none, or `meta/` contradicts itself; the message names file, episode and field.
    """
    name = os.path.expanduser(os.fspath(path))
    folder = data_set(name)
    if folder is None:
        says = "no LeRobot data set; expected meta/info.json with `codebase_version` and `features`"
        raise FormatError(f"{name}: unknown_format: {says}", kind="unknown_format", source=name)
    return LeRobotDemos(name, folder, fields, None if columns is None else os.path.abspath(columns), max_bytes)
