"""Trajectories as arrays of one's own, one for each field, with the face of all other demonstrations."""

from __future__ import annotations

import copyreg
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos.own.episodes import Ends, fault, find_ends, whole_lengths
from gristmill.demos.own.names import ENDS, usual
from gristmill.demos.source import Demos
from gristmill.errors import ConfigError, FormatError
from gristmill.packs.again import open_again
from gristmill.pairs.trajectories import Columns
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout

#: Numbers that are searched for NaN at a time.
_BLOCK = 1 << 22

#: Fields in the order in which records have them; others follow, flags come last.
ORDER = ("obs", "next_obs", "acts", "rews")


class ArrayDemos(Demos):
    """Trajectories whose fields are arrays, in memory or mapped. Nothing is copied until it is used.

    Records have the fields that were given, `dones`, true in the last step of each trajectory, and `truncated`, true
    there where it was cut instead of ended by the environment.
    """

    def __init__(self, path: str, form: str, columns: Mapping[str, npt.NDArray[Any]], ends: Ends) -> None:
        """Trajectories with these ends.

        Args:
            path: where they are from, for people.
            form: short name of the form, such as `demo.own.hdf5`.
            columns: by field, one row for each step of all, as `checked` gives them; flags of episodes too.
            ends: steps of each trajectory, and whether it was cut.
        """
        self._path, self._form, self._cut = path, form, ends.cut
        self._starts = np.cumsum([0, *ends.lengths]).tolist()
        head = [name for first in ORDER for name in columns if name.split(".")[0] == first]
        kept = {name: columns[name] for name in [*head, *(name for name in columns if name not in head)]}
        self._made: dict[str, npt.NDArray[np.bool_]] = {}
        for name in ("dones", "truncated"):
            stored = kept.pop(name, None)
            # What a file says of other steps than the last is no end, and is not lost.
            if stored is not None and not np.array_equal(stored.reshape(len(stored), -1)[:, 0] != 0, self._flag(name)):
                kept[f"stored_{name}"] = stored
        self._columns = Columns(ends.lengths, kept)
        described = [(name, column.dtype, column.shape[1:]) for name, column in kept.items()]
        described += [(name, np.dtype("?"), ()) for name in ("dones", "truncated")]
        self._layout = Layout.from_dtype(np.dtype(described, align=True))
        #: How `open_own` read them, and what it says about them.
        self._options: dict[str, Any] | None = None
        self.about: dict[str, Any] = {}

    @property
    def key(self) -> str:
        """Name of the file or folder."""
        return os.path.basename(os.path.abspath(self._path))

    @property
    def format(self) -> str:
        """Short name of the form, such as `demo.own.hdf5`."""
        return self._form

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return self._layout

    @property
    def num_frames(self) -> int:
        """Steps of all trajectories."""
        return int(self._starts[-1])

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return self._columns.lengths

    @property
    def metadata(self) -> dict[str, Any]:
        """Of files: `fields`, the name of the array that each field is of, and `left_out`, what is no field and why."""
        return dict(self.about)

    def frames(self, index: int) -> int:
        """Steps of one trajectory."""
        return self._columns.lengths[self._place(index)]

    def member(self, index: int) -> str | None:
        """Nothing: the arrays are of all trajectories."""
        self._place(index)
        return None

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut (time limit, end of the recording) instead of ended by the environment."""
        return self._cut[self._place(index)]

    def extras(self, index: int) -> dict[str, list[Any]]:
        """Nothing travels beside arrays."""
        self._place(index)
        return {}

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps of all trajectories: the array itself.

        Raises:
            FormatError: there is no such field.
        """
        if name in ("dones", "truncated"):
            return self._flag(name)
        if name not in self._layout.names:
            says = f"no field is called `{name}`; there are {', '.join(self._layout.names)}"
            raise fault(self._path, "missing", says)
        return self._columns.column(name)

    def columns(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Some fields of all steps by name, as `column` gives them."""
        return {name: self.column(name) for name in names}

    def __len__(self) -> int:
        return len(self._columns)

    def _trajectory(self, index: int) -> Array:
        place = self._place(index)
        first, last = self._starts[place], self._starts[place + 1]
        records = Array.over(
            _gristmill.allocate((last - first) * self._layout.itemsize), (last - first,), self._layout.dtype
        )
        for name in self._layout.names:
            if name in ("dones", "truncated"):
                records[name] = False
                records[name][-1] = name == "dones" or self._cut[place]
            elif name:
                records[name] = self._columns.column(name)[first:last]
        return records

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        return f"ArrayDemos({self._path!r}, format={self.format!r}, chunks={len(self)}, frames={self.num_frames})"

    def __reduce__(self) -> tuple[Any, ...]:
        """Of files their place; another process opens them again. Else the arrays, mapped ones by their file."""
        if self._options is not None:
            from gristmill.demos.own.opening import open_own

            return open_again, (open_own, os.path.abspath(self._path), self._options, (len(self), self.num_frames))
        return copyreg.__newobj__, (type(self),), self.__dict__  # type: ignore[attr-defined]

    def _flag(self, name: str) -> npt.NDArray[np.bool_]:
        """`dones` or `truncated` of all steps."""
        if name not in self._made:
            flags = np.zeros(self.num_frames, bool)
            flags[np.asarray(self._starts[1:], np.int64) - 1] = True if name == "dones" else self._cut
            flags.flags.writeable = False
            self._made[name] = flags
        return self._made[name]


def from_arrays(
    lengths: Sequence[int] | npt.NDArray[Any],
    fields: Mapping[str, npt.ArrayLike],
    *,
    truncated: Sequence[bool] | npt.NDArray[Any] | None = None,
    nan: bool = False,
) -> ArrayDemos:
    """Demonstrations of arrays; they go wherever those of files go: loaders of pairs and steps, `gristmill.pack`.

        demos = gm.demos.from_arrays([7, 5], {"obs": obs, "acts": acts})  # 12 rows each
        gm.pack(demos, "pack")

    Nothing is copied, arrays of `numpy.memmap` included. Fields with usual names are called `obs`, `acts`, `rews`,
    `next_obs` and `terminated`, as in files (`observations` is `obs`); all others keep their names.

    Args:
        lengths: steps of each episode, in order.
        fields: by name, one array with a row for each step of all. Of `terminals`, `timeouts`, `truncated` and `dones`
            the last step of each episode says whether it was cut; without them it was not.
        truncated: for each episode whether it was cut instead of ended by the environment.
        nan: take values that are not a number, instead of refusing them.

    Raises:
        ConfigError: no episode, lengths that are no whole numbers from 1 on or do not sum to the rows of an array, an
            array of Python objects or texts, NaN; `field` is the name of it.
        TypeError: fields that are no mapping of names to arrays.
    """
    if not isinstance(fields, Mapping):
        says = "fields is a mapping of names to arrays, such as {'obs': obs, 'acts': acts}"
        raise TypeError(f"{says}; found {type(fields).__name__}")
    steps = whole_lengths(lengths, lambda says: ConfigError(f"lengths: {says}", field="lengths"))
    columns: dict[str, npt.NDArray[Any]] = {}
    total = sum(steps)
    try:
        for name, given in fields.items():
            if not isinstance(name, str) or not name:
                raise TypeError(f"a field is called {name!r}; expected a name")
            try:
                array = np.asanyarray(given)
            except (ValueError, OverflowError) as error:
                raise ConfigError(f"`{name}`: rows of different shapes: {error}", field=name) from error
            if array.ndim == 0 or len(array) != total:
                rows = f"has {len(array)} rows" if array.ndim else "is one value"
                raise ConfigError(f"`{name}` {rows}; the lengths sum to {total} steps", field=name)
            field = usual(name) or name
            if field in columns:
                raise ConfigError(f"two of the fields would be `{field}`; `{name}` is one", field=name)
            columns[field] = checked("from_arrays", name, array, nan)
        if not set(columns) - set(ENDS):
            raise ConfigError("no field but ends of episodes; give at least one, such as `obs`", field="fields")
        ends = find_ends("from_arrays", {**columns, "episode_lengths": np.asarray(steps)}, total, False)
    except FormatError as error:
        raise ConfigError(str(error), field=error.member or "fields") from error
    if truncated is not None:
        cut = np.asarray(truncated)
        if cut.shape != (len(steps),) or cut.dtype.kind not in "biu":
            says = f"truncated: expected true or false for each of {len(steps)} episodes, found {cut.dtype} {cut.shape}"
            raise ConfigError(says, field="truncated")
        ends = Ends(ends.lengths, [bool(one) for one in cut])
    return ArrayDemos("from_arrays", "demo.arrays", columns, ends)


def checked(path: str, name: str, array: npt.NDArray[Any], nan: bool = False) -> npt.NDArray[Any]:
    """An array that records can have: numbers or truth values, little-endian.

    Raises:
        FormatError: it has other elements, rows of no size, or holds NaN.
    """
    if array.dtype.kind not in "biuf" or array.dtype.itemsize > 8:
        what = "Python objects" if array.dtype.kind == "O" else f"elements of type {array.dtype}"
        says = f"{what}; expected numbers or truth values in rows of one shape (numpy.stack makes an array of arrays)"
        raise fault(path, "unsupported", says, name)
    if array.size == 0 and len(array):
        raise fault(path, "unsupported", f"shape {array.shape}: rows without a value; leave it out", name)
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.dtype.kind == "f" and not nan:
        # An axis that repeats one value has it once.
        seen = array[tuple(slice(0, 1) if stride == 0 else slice(None) for stride in array.strides)]
        rows = max(1, _BLOCK * len(seen) // max(seen.size, 1))
        for first in range(0, len(seen), rows):
            bad = np.isnan(seen[first : first + rows])
            if bad.any():
                step = first + int(np.argmax(bad.reshape(len(bad), -1).any(axis=1)))
                advice = "leave the field out by `fields`, or gristmill.demos.from_arrays(..., nan=True) takes it"
                raise fault(path, "out_of_range", f"not a number (NaN) in step {step}; {advice}", name)
    return array
