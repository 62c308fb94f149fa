"""What pairs are made over: steps of trajectories one after another, by field."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from gristmill.errors import ConfigError, FormatError
from gristmill.layout import Layout


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


def field_names(data: Trajectories) -> tuple[str, ...]:
    """Fields of a step."""
    demos: Any = getattr(data, "demos", data)
    return tuple(demos.layout.names)


def infos_of(data: Trajectories) -> list[Any]:
    """One dictionary for each step; empty ones where the data has none."""
    lengths = data.lengths
    if isinstance(data, Columns):
        own = data.infos()
        return own if own is not None else [{} for _ in range(sum(lengths))]
    demos: Any = getattr(data, "demos", data)
    found: list[Any] = []
    for i, length in enumerate(lengths):
        values = demos.extras(i).get("infos", [])
        found.extend(values[:length] if len(values) >= length else [{} for _ in range(length)])
    return found


def frozen(data: Trajectories, fields: Sequence[str], infos: bool) -> Columns:
    """Some fields of the trajectories, so that they can be sent to another process."""
    wanted = [name for name in field_names(data) if name in fields or name == "dones"]
    return Columns(data.lengths, {name: data.column(name) for name in wanted}, infos_of(data) if infos else None)
