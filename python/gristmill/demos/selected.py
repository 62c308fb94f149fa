"""Some trajectories of demonstrations that are open: a slice of them, with everything that the whole has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, Self, overload

import numpy as np
import numpy.typing as npt

from gristmill.errors import FormatError
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout

#: A field is read by trajectory where fewer than one step in this many is selected, and whole otherwise.
_FEW = 4


class Whole(Protocol):
    """What trajectories can be selected of: `Demos` of any form, or a `Part` of them."""

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        ...

    @property
    def metadata(self) -> dict[str, Any]:
        """What the data says about itself."""
        ...

    @property
    def num_frames(self) -> int:
        """Steps of all trajectories."""
        ...

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        ...

    def __getitem__(self, index: int) -> Array:
        """One trajectory."""
        ...

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut."""
        ...

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory."""
        ...

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps."""
        ...


class Selected:
    """Some trajectories, in the order of a slice: `demos[0:5]`, `demos[::-1]`. Opening it reads nothing.

    Loaders of pairs and steps, constructors and `load_dataset_dict` take it like the whole.
    """

    def __init__(self, whole: Whole, indices: range) -> None:
        self._whole, self._indices = whole, indices
        self._lengths = whole.lengths

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return self._whole.layout

    @property
    def metadata(self) -> dict[str, Any]:
        """What the data says about itself."""
        return self._whole.metadata

    @property
    def num_frames(self) -> int:
        """Steps of these trajectories."""
        return sum(self.lengths)

    @property
    def games(self) -> Self:
        """The trajectories by number, as packs have them: these themselves."""
        return self

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return [self._lengths[i] for i in self._indices]

    def frames(self, index: int) -> int:
        """Steps of one trajectory.

        Raises:
            IndexError: there is no such trajectory.
        """
        return self._lengths[self._indices[index]]

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut (time limit, fragment, end of the data) instead of ended by the environment.

        Raises:
            IndexError: there is no such trajectory.
        """
        return self._whole.truncated(self._indices[index])

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory, one value per step.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: a pickle in it names what is not data.
        """
        return self._whole.extras(self._indices[index])

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps of these trajectories.

        Raises:
            FormatError: there is no such field, or it takes more than the data was opened with.
        """
        return self.columns([name])[name]

    def columns(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Some fields of all steps by name, as `column` gives them.

        Raises:
            FormatError: as of `column`.
        """
        names = list(names)
        for name in names:
            if name not in self.layout.names:
                there = ", ".join(name for name in self.layout.names if name)
                raise FormatError(f"there is no field `{name}` among {there}", kind="missing")
        if self.num_frames * _FEW < sum(self._lengths):
            return self._by_trajectory(names)
        ends = np.cumsum([0, *self._lengths])
        found: dict[str, npt.NDArray[Any]] = {}
        for name in names:
            column = self._whole.column(name)
            if self._indices.step == 1:
                found[name] = column[ends[self._indices.start] : ends[max(self._indices.stop, self._indices.start)]]
            else:
                parts = [column[ends[i] : ends[i + 1]] for i in self._indices]
                found[name] = np.concatenate(parts) if parts else column[:0]
        return found

    def _by_trajectory(self, names: list[str]) -> dict[str, npt.NDArray[Any]]:
        """The fields of trajectories that are read one by one."""
        dtype = self.layout.dtype
        found = {name: np.empty((self.num_frames, *dtype[name].shape), dtype[name].base) for name in names}
        first = 0
        for i in self._indices:
            records = self._whole[i]
            for name, column in found.items():
                column[first : first + len(records)] = records[name]
            first += len(records)
        return found

    def __len__(self) -> int:
        """How many trajectories there are."""
        return len(self._indices)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Selected: ...
    def __getitem__(self, index: int | slice) -> Array | Selected:
        """One trajectory as a structured array, or some of them.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: it is damaged; it says where.
        """
        if isinstance(index, slice):
            return Selected(self._whole, self._indices[index])
        return self._whole[self._indices[index]]

    def __iter__(self) -> Iterator[Array]:
        return (self._whole[i] for i in self._indices)

    def __repr__(self) -> str:
        return f"Selected({self._whole!r}, trajectories={len(self)} of {len(self._lengths)}, frames={self.num_frames})"
