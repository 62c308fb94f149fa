"""A Minari data set as demonstrations: trajectories with named arrays, each read at its first use."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.minari.arrow import ArrowEpisodes
from gristmill.demos.minari.catalogue import data_folder, read_catalogue, refused
from gristmill.demos.minari.hdf5 import Hdf5Episodes
from gristmill.demos.minari.infos import row
from gristmill.demos.minari.spill import Spill
from gristmill.demos.source import Demos
from gristmill.demos.spaces import Leaf
from gristmill.errors import FormatError
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout


class _Field(NamedTuple):
    """Where a field of the records comes from: rows `first` to `first + steps` of a leaf of `head`."""

    head: str
    leaf: Leaf
    first: int


class MinariDemos(Demos):
    """A Minari data set. Opening reads its metadata; an episode, or one field of it, is read at its first use.

    Records have `obs`, `next_obs` and `acts` (parts of dictionaries and tuples by name: `obs.image`, `acts.0`), `rews`,
    `terminated` and `truncated` as they are stored, and `dones`, true in the last step. Texts are extras.
    """

    def __init__(self, path: str, folder: str, spill: str | None = None) -> None:
        self._path, self._spill = path, spill
        self._catalogue = read_catalogue(folder)
        reader = Hdf5Episodes if self._catalogue.data_format == "hdf5" else ArrowEpisodes
        self._episodes: Hdf5Episodes | ArrowEpisodes = reader(self._catalogue)
        total = sum(self._episodes.lengths)
        if total != self._catalogue.steps:
            says = f"`total_steps` is {self._catalogue.steps}; the episodes have {total}"
            raise refused(self._catalogue.file, says, kind="wrong_size")
        self._fields: dict[str, _Field] = {}
        self._texts: dict[str, _Field] = {}
        self._lossy: list[str] = []
        described = self._describe()
        self._layout = Layout.from_dtype(np.dtype(described, align=True))

    @property
    def key(self) -> str:
        """Name of the data set's folder."""
        return os.path.basename(os.path.abspath(self._path))

    @property
    def format(self) -> str:
        """`demo.minari.hdf5` or `demo.minari.arrow`."""
        return f"demo.minari.{self._catalogue.data_format}"

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return self._layout

    @property
    def num_frames(self) -> int:
        """Steps of all episodes."""
        return self._catalogue.steps

    @property
    def lengths(self) -> list[int]:
        """Steps of each episode."""
        return list(self._episodes.lengths)

    @property
    def metadata(self) -> dict[str, Any]:
        """`env_cfg`, `observation_space`, `action_space` and `color_space` as shards have them.

        `lossy` lists the fields that were stored as JPEG: their pictures are near what was seen, not equal to it.
        `minari` has what else the data set says: `env_spec` (a JSON text), `author`, `algorithm_name`, ...
        """
        about = dict(self._catalogue.about)
        return {
            "env_cfg": {"benchmark_name": "gymnasium", **_task(about.get("env_spec"))},
            "observation_space": self._catalogue.observation_space,
            "action_space": self._catalogue.action_space,
            "color_space": "RGB",
            "lossy": list(self._lossy),
            "minari": about,
        }

    def frames(self, index: int) -> int:
        """Steps of one episode."""
        return self._episodes.lengths[self._place(index)]

    def member(self, index: int) -> str | None:
        """Name of the episode within the data set."""
        return f"episode_{self._place(index)}"

    def truncated(self, index: int) -> bool:
        """Whether an episode was cut (time limit, end of the recording) instead of ended by the environment."""
        place = self._place(index)
        return not bool(self._flag(place, "terminations")[-1])

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records, one value per step.

        `infos`, where they were recorded: what the environment said after the step. `reset`: in the first step `seed`,
        `options` and `infos` of how the episode began, as far as they are known; empty afterwards. Texts under the
        names of their fields.

        Raises:
            IndexError: there is no such episode.
            FormatError: infos do not fit the steps; it says where.
        """
        place = self._place(index)
        steps = self._episodes.lengths[place]
        found: dict[str, list[Any]] = {name: self._values(place, field) for name, field in self._texts.items()}
        recorded, begun = self._episodes.infos(place), self._episodes.begun(place)
        if recorded:
            rows = self._info_rows(place, recorded, "infos")
            infos = [row(recorded, number) for number in range(rows)]
            if rows == steps + 1:
                begun["infos"] = infos[0]
            found["infos"] = infos[rows - steps :]
        found["reset"] = [begun, *({} for _ in range(steps - 1))]
        return found

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps of all episodes; nothing else is read. With `columns` it is a mapped file.

        Raises:
            FormatError: there is no such field, or an episode is damaged; it says where.
        """
        if name not in self._layout.names:
            says = f"no field is called `{name}`; there are {', '.join(self._layout.names)}"
            raise FormatError(f"{self._path}: missing: {says}", kind="missing", source=self._path)
        dtype = self._layout.dtype[name]
        shape = (self.num_frames, *dtype.shape)
        if self._spill is not None:
            sources = [self._catalogue.file, *dict.fromkeys(map(self._episodes.file, range(len(self))))]
            return Spill(self._spill, self.key, sources).column(name, dtype.base, shape, partial(self._gather, name))
        values = Array.over(_gristmill.allocate(self.num_frames * dtype.itemsize), shape, dtype.base)
        self._gather(name, values)
        return values

    def __len__(self) -> int:
        return len(self._episodes.lengths)

    def _trajectory(self, index: int) -> Array:
        place = self._place(index)
        steps = self._episodes.lengths[place]
        records = Array.over(_gristmill.allocate(steps * self._layout.itemsize), (steps,), self._layout.dtype)
        for head in ("obs", "acts"):
            for name, field in self._fields.items():
                if name.split(".")[0] == head:
                    values = self._values(place, field._replace(first=0), whole=True)
                    records[name] = values[:steps]
                    if head == "obs":
                        records[f"next_{name}"] = values[1:]
        for name in ("rews", "terminated", "truncated", "dones"):
            self._fill(records[name], place, name)
        return records

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"MinariDemos({self._path!r}, format={self.format!r}, chunks={len(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._path, self._catalogue.folder, self._spill)

    def _gather(self, name: str, values: npt.NDArray[Any]) -> None:
        """Puts a field of all episodes together."""
        first = 0
        for place, steps in enumerate(self._episodes.lengths):
            self._fill(values[first : first + steps], place, name)
            first += steps

    def _describe(self) -> list[tuple[str, Any, tuple[int, ...]]]:
        """Finds the fields, by the spaces and by how the first episode is stored."""
        found: list[tuple[str, Any, tuple[int, ...]]] = []
        for head, stored, first in (
            ("obs", "observations", 0),
            ("next_obs", "observations", 1),
            ("acts", "actions", 0),
        ):
            for leaf in self._catalogue.leaves(stored):
                name, dtype, lossy = leaf.under(head), leaf.dtype, False
                field = _Field(stored, leaf, first)
                if len(self):
                    dtype, lossy = self._episodes.stored(0, stored, leaf)
                if dtype is None:
                    self._texts[name] = field
                    continue
                self._fields[name] = field
                if lossy:
                    self._lossy.append(name)
                found.append((name, dtype, leaf.shape))
        return [*found, ("rews", "<f8", ()), *((name, "?", ()) for name in ("dones", "truncated", "terminated"))]

    def _values(self, place: int, field: _Field, *, whole: bool = False) -> Any:
        """The values of a field of one episode; with `whole` those of observations after the last step too."""
        steps = self._episodes.lengths[place]
        rows = steps + 1 if field.head == "observations" else steps
        values = self._episodes.values(place, field.head, field.leaf, rows)
        if field.leaf.dtype is not None:
            expected = self._layout.dtype[field.leaf.under("obs" if rows > steps else "acts")].base
            if values.dtype != expected:
                says = f"elements of type {values.dtype}; in the first episode they are {expected}"
                name = f"{field.head}/{field.leaf.name}".rstrip("/")
                raise refused(self._episodes.file(place), says, episode=place, field=name, kind="wrong_size")
        return values if whole else values[field.first : field.first + steps]

    def _fill(self, target: npt.NDArray[Any], place: int, name: str) -> None:
        """Puts a field of one episode where it belongs."""
        if name == "dones":
            target[:-1], target[-1] = False, True
        elif name in ("terminated", "truncated"):
            target[:] = self._flag(place, "terminations" if name == "terminated" else "truncations")
        elif name == "rews":
            target[:] = self._episodes.flags(place, "rewards", len(target))
        else:
            target[:] = self._values(place, self._fields[name])

    def _flag(self, place: int, name: str) -> npt.NDArray[np.bool_]:
        flags = self._episodes.flags(place, name, self._episodes.lengths[place])
        if flags.dtype != np.bool_:
            says = f"elements of type {flags.dtype}; expected true and false"
            raise refused(self._episodes.file(place), says, episode=place, field=name)
        return flags

    def _info_rows(self, place: int, recorded: Mapping[str, Any], field: str) -> int:
        """How many rows all infos have: one for each observation, or one for each step."""
        steps, rows = self._episodes.lengths[place], set()
        for name, value in recorded.items():
            inner = isinstance(value, Mapping)
            if inner and not value:
                continue
            single = isinstance(value, np.ndarray) and not value.ndim
            size = self._info_rows(place, value, f"{field}/{name}") if inner else -1 if single else len(value)
            rows.add(size)
            if len(rows) > 1 or size not in (steps, steps + 1):
                says = f"{size} rows; expected {steps + 1}, or {steps}, for {steps} steps, in all infos alike"
                at = f"{field}/{name}"
                raise refused(self._episodes.file(place), says, episode=place, field=at, kind="wrong_size")
        return rows.pop() if rows else steps


def open_minari(path: str | os.PathLike[str], *, columns: str | os.PathLike[str] | None = None) -> MinariDemos:
    """Opens a Minari data set: its folder (`<root>/<namespace>/<name>-v<N>`), the `data` in it, or its file.

    Args:
        path: the folder or file.
        columns: a folder for columns larger than memory: each field that is used becomes a `.npy` file there.

    Raises:
        MissingPackageError: h5py or pyarrow is not installed.
        OSError: it cannot be read.
        FormatError: it is none, or is damaged; the message names file, episode and field.
    """
    name = os.fspath(path)
    folder = data_folder(name)
    if folder is None:
        says = "no Minari data set; expected data/metadata.json with `data_format` and `total_episodes`"
        raise FormatError(f"{name}: unknown_format: {says}", kind="unknown_format", source=name)
    return MinariDemos(name, folder, None if columns is None else os.fspath(columns))


def _task(env_spec: Any) -> dict[str, Any]:
    """Id and arguments of the environment, as `env_cfg` has them."""
    try:
        spec = json.loads(env_spec)
        return {"task_name": str(spec["id"]), "gymnasium_kwargs": dict(spec.get("kwargs") or {})}
    except (TypeError, ValueError, KeyError, RecursionError):
        return {}
