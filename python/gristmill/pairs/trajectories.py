"""What pairs are made over: steps of trajectories one after another, by field."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.errors import ConfigError, FormatError
from gristmill.records.layout import Layout


class Trajectories(Protocol):
    """Steps of trajectories, one after another: `Demos`, a `Part` of them, or `Columns`."""

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        ...

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps."""
        ...


class Columns:
    """Trajectories as arrays of one's own, one for each field; nothing is copied.

    gm.pairs.Columns([7, 5], {"obs": obs, "acts": acts, "dones": dones})  # 12 rows each
    gm.pairs.Columns.from_dict(gm.load_dataset_dict(...))  # `dones` says where each one ends

    Pickled, arrays that `numpy.memmap` has mapped travel as the name of their file.
    """

    def __init__(
        self,
        lengths: Sequence[int],
        columns: Mapping[str, npt.NDArray[Any]],
        infos: Sequence[Any] | None = None,
    ) -> None:
        """Trajectories of these lengths.

        Args:
            lengths: steps of each trajectory.
            columns: by field, an array with one row for each step of all.
            infos: one dictionary for each step of all.

        Raises:
            ConfigError: an array has another number of rows.
        """
        self._lengths = [int(length) for length in lengths]
        self._columns = {name: np.asanyarray(column) for name, column in columns.items()}
        self._infos = None if infos is None else list(infos)
        steps = sum(self._lengths)
        if any(length < 0 for length in self._lengths):
            raise ConfigError(f"a trajectory of {min(self._lengths)} steps", field="lengths")
        rows = {name: len(column) if column.ndim else 0 for name, column in self._columns.items()}
        if self._infos is not None:
            rows["infos"] = len(self._infos)
        for name, count in rows.items():
            if count != steps:
                message = f"`{name}` has {count} rows; the trajectories have {steps} steps"
                raise ConfigError(message, field=name)

    @classmethod
    def from_dict(cls, arrays: Mapping[str, npt.ArrayLike]) -> Columns:
        """The trajectories of a dictionary of arrays, as `load_dataset_dict` gives them.

        An episode ends where `dones` or `truncated` is true; steps after the last end are an episode without one.

        Args:
            arrays: all steps one after another. `infos`, objects, travels beside them.

        Raises:
            ConfigError: there is no `dones`, an array has another number of rows, or holds Python objects.
        """
        found = {name: np.asanyarray(array) for name, array in arrays.items()}
        if "dones" not in found:
            names = ", ".join(found) or "nothing"
            message = f"there is no `dones` among {names}, so nothing says where trajectories end"
            raise ConfigError(
                f"{message}; Columns(lengths, arrays) takes arrays whose lengths are known", field="dones"
            )
        infos = found.pop("infos", None)
        for name, array in found.items():
            if array.dtype == object:
                message = f"`{name}` holds Python objects; only `infos` can. Leave it out, or give an array of numbers"
                raise ConfigError(message, field=name)
        if not found["dones"].ndim:
            raise ConfigError("`dones` is one value; expected one for each step", field="dones")
        steps = len(found["dones"])
        marks = [array for name, array in found.items() if name in ("dones", "truncated") and len(array) == steps]
        ended = np.any([(array != 0).any(tuple(range(1, array.ndim))) for array in marks], axis=0)
        ends = np.flatnonzero(ended) + 1
        if steps and (not len(ends) or ends[-1] < steps):
            ends = np.append(ends, steps)
        return cls(np.diff(ends, prepend=0).tolist(), found, None if infos is None else infos.tolist())

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return list(self._lengths)

    @property
    def layout(self) -> Layout:
        """The fields of a step."""
        fields = [(name, column.dtype, column.shape[1:]) for name, column in self._columns.items()]
        return Layout.from_dtype(np.dtype(fields))

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps.

        Raises:
            FormatError: there is no such field.
        """
        if name not in self._columns:
            raise FormatError(f"there is no `{name}` among {', '.join(self._columns)}", kind="missing")
        return self._columns[name]

    def infos(self) -> list[Any] | None:
        """What was given besides, for each step of all."""
        return self._infos

    def __len__(self) -> int:
        """How many trajectories there are."""
        return len(self._lengths)

    def __repr__(self) -> str:
        return f"Columns(trajectories={len(self)}, frames={sum(self._lengths)}, fields={list(self._columns)})"

    def __getstate__(self) -> dict[str, Any]:
        state = dict(self.__dict__)
        state["_columns"] = {name: _Mapped.of(column) or np.asarray(column) for name, column in self._columns.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        columns = self._columns.items()
        self._columns = {name: column.map() if isinstance(column, _Mapped) else column for name, column in columns}


class _Mapped:
    """Where an array lies in a file."""

    def __init__(self, path: str, dtype: np.dtype[Any], shape: tuple[int, ...], offset: int) -> None:
        self.place = (path, dtype, shape, offset)

    @classmethod
    def of(cls, array: npt.NDArray[Any]) -> _Mapped | None:
        """The place of an array; `None` where it lies in memory alone, or not in one piece."""
        base: Any = array
        while isinstance(base, np.ndarray) and isinstance(base.base, np.ndarray):
            base = base.base
        if not isinstance(base, np.memmap) or not array.flags.c_contiguous or base.mode == "c":
            return None
        name = base.filename
        if name is None:
            return None
        offset = base.offset + array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
        return cls(os.path.abspath(name), array.dtype, array.shape, offset)

    def map(self) -> npt.NDArray[Any]:
        """The array, mapped again."""
        path, dtype, shape, offset = self.place
        return np.memmap(path, dtype, "r", offset, shape)


def as_trajectories(data: Trajectories | Mapping[str, npt.ArrayLike]) -> Trajectories:
    """Trajectories as they are; a dictionary of arrays as its trajectories.

    Raises:
        ConfigError: as of `Columns.from_dict`.
    """
    return Columns.from_dict(data) if isinstance(data, Mapping) else data


def field_names(data: Trajectories) -> tuple[str, ...]:
    """Fields of a step."""
    demos: Any = getattr(data, "demos", data)
    return tuple(demos.layout.names)


def find_field(data: Trajectories, name: str, option: str = "") -> str:
    """What the data calls a field: parts of dictionaries are `obs.ego` in files of the agents and packs, `obs_ego` in
    shards and dictionaries of arrays, and either name is good for both.

    Raises:
        ConfigError: there is none; where it has parts, the message says how one is chosen.
    """
    names = field_names(data)
    if name in names:
        return name
    plain = name.replace(".", "_")
    same = [other for other in names if other.replace(".", "_") == plain]
    if len(same) == 1:
        return same[0]
    message = f"the data has no `{name}`; it has {', '.join(names)}"
    parts = [other for other in names if other.startswith((f"{name}.", f"{name}_"))]
    if option and parts:
        message = f"{message}. Choose one of its parts: {option}={parts[0]!r}"
    raise ConfigError(message, field=name)


def infos_of(data: Trajectories) -> list[Any]:
    """One dictionary for each step; empty ones where the data has none."""
    lengths = data.lengths
    if isinstance(data, Columns):
        own = data.infos()
        return own if own is not None else [{} for _ in range(sum(lengths))]
    demos: Any = data if hasattr(data, "extras") else getattr(data, "demos", data)
    found: list[Any] = []
    for i, length in enumerate(lengths):
        values = demos.extras(i).get("infos", [])
        found.extend(values[:length] if len(values) >= length else [{} for _ in range(length)])
    return found


def frozen(data: Trajectories, fields: Sequence[str], infos: bool) -> Columns:
    """Some fields of the trajectories, so that they can be sent to another process."""
    own = {find_field(data, name) for name in fields}
    wanted = [name for name in field_names(data) if name in own or name == "dones"]
    return Columns(data.lengths, {name: data.column(name) for name in wanted}, infos_of(data) if infos else None)
