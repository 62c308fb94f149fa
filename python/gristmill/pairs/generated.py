"""Pairs that a function makes of a stream of steps, as projects with constructors of their own write them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill.errors import ConfigError
from gristmill.options.arguments import named_fields
from gristmill.pairs.constructor import At, Constructor, Numbers, PairBatch, PairSet, Piece
from gristmill.pairs.trajectories import Columns, Trajectories

#: A function from steps, one after another, to pairs.
Generator: TypeAlias = Callable[[Iterator[dict[str, Any]]], Iterable[Mapping[str, Any]]]

_NAMES = ("context", "target", "extra_context", "traj_ts_ids")


@named_fields
@dataclass(frozen=True)
class Generated(Constructor[PairBatch]):
    """Pairs of a function, or of any object that is called like one.

        def neighbours(steps):
            before = None
            for step in steps:
                if before is not None:
                    yield {"context": before, "target": step["obs"], "traj_ts_ids": [0, step["frame"]]}
                before = None if step["dones"] else step["obs"]

        loader = gm.PairLoader(demos, neighbours, batch_size=32, seed=1)

    It is called once for each data set, with an iterator over the steps of all its trajectories: dictionaries of the
    fields that it takes and of `frame`, the number of the step. `dones` is true where a trajectory ends, also where it
    was cut. It gives dictionaries of `context`, `target`, `extra_context` (an empty list or nothing where there is
    none) and `traj_ts_ids` (trajectory and step). Values that it passes on as they are (`step["obs"]`) are kept as
    numbers of steps; what it makes of them is kept in memory. They are read-only. What it draws it draws once, for all
    passes.
    """

    function: Generator | None
    #: The fields that steps have.
    takes: tuple[str, ...] = field(default=("obs", "acts", "dones"), kw_only=True)
    #: Maximum number of bytes of values that are kept.
    max_bytes: int = field(default=2 << 30, kw_only=True)
    #: What the function is called in states.
    name: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "takes", tuple(self.takes))
        if not self.name:
            own = self.function if hasattr(self.function, "__qualname__") else type(self.function)
            object.__setattr__(self, "name", f"{own.__module__}.{own.__qualname__}")  # type: ignore[union-attr]
        if self.function is not None and not callable(self.function):
            raise TypeError(f"expected a constructor of pairs or a function, found {type(self.function).__name__}")

    def __reduce__(self) -> tuple[Any, ...]:
        """Without the function: its pairs travel, and another process does not call it again."""
        return _without_function, (self.takes, self.max_bytes, self.name)

    def fields(self) -> tuple[str, ...]:
        """The fields of the steps."""
        return self.takes

    def describe(self) -> dict[str, Any]:
        """The name of the function and the fields."""
        return {"kind": "Generated", "function": self.name, "fields": list(self.takes)}

    def prepare(self, pairs: PairSet[PairBatch], seed: int, epoch: int) -> None:
        """Calls the function, unless its pairs have come with the data.

        Raises:
            ConfigError: it gives no pairs, such that do not fit together, or more than `max_bytes` of them.
        """
        kept = pairs.data.pairs if isinstance(pairs.data, _Kept) else self._called(pairs)
        pairs.replace(kept["traj_ts_ids"])
        pairs.drawn.update(kept)

    def kept(self, pairs: PairSet[PairBatch], data: Columns) -> Columns:
        """The trajectories, and the pairs that were made of them."""
        return _Kept(data, pairs.drawn)

    def digest(self, pairs: PairSet[PairBatch]) -> bytes:
        """A hash of the ids and of what stands under each name."""
        import hashlib

        found = hashlib.blake2b(digest_size=16)
        for name, array in pairs.drawn.items():
            found.update(f"{name} {array.dtype.str}{list(array.shape)}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.digest()

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """Steps of fields, and what was made."""
        found: dict[str, Piece] = {"traj_ts_ids": pairs.ids(rows)}
        for key, array in pairs.drawn.items():
            name, _, steps_of = key.partition(" ")
            if name == "traj_ts_ids":
                continue
            twin = pairs.drawn.get(f"context {steps_of}") if steps_of and name == "target" else None
            if twin is not None and np.array_equal(twin, array):
                found[name] = found["context"]
            else:
                found[name] = At(steps_of, array[rows]) if steps_of else array[rows]
        return found

    def batch(self, arrays: dict[str, Any]) -> PairBatch:
        """Context, target, extra context and ids."""
        return PairBatch(**{"extra_context": None, **arrays})

    def _called(self, pairs: PairSet[PairBatch]) -> dict[str, npt.NDArray[Any]]:
        """What the function gives: `<name> <field>` for numbers of steps, `<name>` for values."""
        if self.function is None:
            raise ConfigError(f"the pairs of `{self.name}` were made in another process, of other data", field="pairs")
        columns = {name: pairs.column(name).view() for name in self.takes}
        for column in columns.values():
            column.flags.writeable = False
        lists: dict[str, list[Any]] = {name: [] for name in _NAMES}
        places = _Places(columns)
        size = 0
        for number, pair in enumerate(self.function(_steps(pairs.data, columns))):
            if not isinstance(pair, Mapping) or set(pair) - {"extra_context"} != set(_NAMES) - {"extra_context"}:
                told = f"{sorted(pair)}" if isinstance(pair, Mapping) else type(pair).__name__
                message = f"pair {number} of `{self.name}` is {told}; expected a dictionary of {', '.join(_NAMES)}"
                raise ConfigError(message, field="pairs")
            for name in _NAMES[:3]:
                value = pair.get(name)
                if name == "extra_context" and (value is None or (isinstance(value, list | tuple) and not value)):
                    continue
                place = places.of(value)
                if place is None:
                    value = np.array(value)
                    size += value.nbytes
                lists[name].append(value if place is None else place)
                if size > self.max_bytes:
                    advice = "pass steps on as they are, select fewer trajectories, or raise it"
                    message = (
                        f"the pairs of `{self.name}` take more than max_bytes={self.max_bytes} in memory; {advice}"
                    )
                    raise ConfigError(message, field="max_bytes")
            lists["traj_ts_ids"].append([int(part) for part in pair["traj_ts_ids"]])
        return self._joined(lists, columns)

    def _joined(
        self, lists: dict[str, list[Any]], columns: Mapping[str, npt.NDArray[Any]]
    ) -> dict[str, npt.NDArray[Any]]:
        ids = np.array(lists.pop("traj_ts_ids"), np.int64).reshape(-1, 2)
        found: dict[str, npt.NDArray[Any]] = {}
        for name, values in lists.items():
            if name == "extra_context" and not values:
                continue
            if len(values) != len(ids):
                message = f"`{self.name}` gives `{name}` for {len(values)} of {len(ids)} pairs; expected all or none"
                raise ConfigError(message, field=name)
            sources = {value[0] if isinstance(value, tuple) else "" for value in values}
            if len(sources) == 1 and "" not in sources:
                found[f"{name} {sources.pop()}"] = np.array([step for _, step in values], np.int64)
                continue
            made = [columns[value[0]][value[1]] if isinstance(value, tuple) else value for value in values]
            kinds = {(value.dtype, value.shape) for value in made}
            if len(kinds) > 1:
                told = " and ".join(f"{dtype} {list(shape)}" for dtype, shape in list(kinds)[:2])
                raise ConfigError(f"`{name}` of `{self.name}` is {told}; expected one type and shape", field=name)
            if made and made[0].dtype == object:
                raise ConfigError(f"`{name}` of `{self.name}` is no array of numbers", field=name)
            found[name] = np.stack(made) if made else np.zeros(0)
        return {**found, "traj_ts_ids": ids}


class _Places:
    """Which rows of columns are which arrays."""

    def __init__(self, columns: Mapping[str, npt.NDArray[Any]]) -> None:
        self._columns = [(name, array, array.__array_interface__["data"][0]) for name, array in columns.items()]

    def of(self, value: Any) -> tuple[str, int] | None:
        """Field and number of the row that an array is."""
        if not isinstance(value, np.ndarray) or not value.size or not value.flags.c_contiguous:
            return None
        address = value.__array_interface__["data"][0]
        for name, column, start in self._columns:
            if (
                value.dtype == column.dtype
                and value.shape == column.shape[1:]
                and start <= address < start + column.nbytes
            ):
                number, rest = divmod(address - start, column[0].nbytes)
                return None if rest else (name, number)
        return None


class _Kept(Columns):
    """Trajectories, and the pairs that a function made of them elsewhere."""

    def __init__(self, data: Columns, pairs: dict[str, npt.NDArray[Any]]) -> None:
        self.__dict__.update(data.__dict__)
        self.pairs = pairs


def _steps(data: Trajectories, columns: Mapping[str, npt.NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """The steps of all trajectories, one after another."""
    first = 0
    for length in data.lengths:
        for number in range(length):
            step = {name: column[first + number] for name, column in columns.items()}
            if "dones" in step:
                step["dones"] = np.bool_(np.any(step["dones"]) or number + 1 == length)
            yield {"frame": first + number, **step}
        first += length


def _without_function(fields: tuple[str, ...], max_bytes: int, name: str) -> Generated:
    return Generated(None, takes=fields, max_bytes=max_bytes, name=name)
