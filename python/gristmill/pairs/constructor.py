"""Which steps stand together, and their values on request."""

from __future__ import annotations

from collections.abc import KeysView, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.pairs.trajectories import (
    Columns,
    Trajectories,
    as_trajectories,
    field_names,
    find_field,
    frozen,
    infos_of,
)
from gristmill.records.arrays import Array
from gristmill.records.drawing import table

#: Numbers of pairs.
Rows: TypeAlias = Sequence[int] | npt.NDArray[np.integer[Any]]

Numbers: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class At:
    """Values of a field at some steps: (B,) or (B, k) numbers of steps, -1 for a row of zeros."""

    field: str
    steps: Numbers
    #: Whether the k values of a row are joined on their first axis: (B, k, C, H, W) to (B, k * C, H, W).
    joined: bool = False

    def row_shape(self, column: npt.NDArray[Any]) -> tuple[int, ...]:
        """Shape of a row of the batch."""
        shape = (*self.steps.shape[1:], *column.shape[1:])
        return (shape[0] * shape[1], *shape[2:]) if self.joined else shape


#: What a batch has under one name: steps of a field, or what was computed of them.
Piece: TypeAlias = At | npt.NDArray[Any] | list[Any]


@dataclass(frozen=True, eq=False)
class Before:
    """Values of a field at one step before another, by an offset that is drawn for each pass."""

    field: str
    #: Number of the later step of each pair among all, and within its trajectory.
    later: Numbers
    within: Numbers
    least: int
    most: int


@dataclass(frozen=True, eq=False)
class Tiles:
    """Pictures cut into tiles, which are put together in the order of the class of each pair in each pass."""

    field: str
    steps: Numbers
    #: Numbers of tiles, a row for each class.
    orders: Numbers


@dataclass(frozen=True, eq=False)
class Classes:
    """The classes of `Tiles`."""

    tiles: Tiles


#: What all pairs have under one name, in any pass.
Whole: TypeAlias = Piece | Before | Tiles | Classes


@dataclass(frozen=True)
class PairBatch:
    """Some pairs, with a leading batch axis."""

    #: What a model is given.
    context: npt.NDArray[Any]
    #: What it is to tell of it.
    target: npt.NDArray[Any]
    #: What it is given besides; `None` where the constructor has none.
    extra_context: npt.NDArray[Any] | None
    #: Trajectory and step of each pair, int64 of shape (B, 2).
    traj_ts_ids: npt.NDArray[np.int64]

    def asdict(self) -> dict[str, npt.NDArray[Any]]:
        """The arrays that there are, by name."""
        arrays = {"context": self.context, "target": self.target, "traj_ts_ids": self.traj_ts_ids}
        return arrays if self.extra_context is None else {**arrays, "extra_context": self.extra_context}

    def keys(self) -> KeysView[str]:
        """Names of the arrays that there are: `dict(batch)` gives them by name."""
        return self.asdict().keys()

    def __getitem__(self, name: str) -> npt.NDArray[Any]:
        """The array of this name."""
        return self.asdict()[name]

    def _repr_html_(self) -> str:
        rows = ((name, array.dtype, tuple(array.shape)) for name, array in self.asdict().items())
        return table(f"PairBatch: {len(self.traj_ts_ids)} pairs", ("array", "dtype", "shape"), rows)


#: What a constructor makes batches of: `PairBatch`, or a dictionary.
Made = TypeVar("Made")


def numbers(memory: _gristmill.Memory) -> Numbers:
    """Whole numbers of 64 bits in the engine's memory."""
    return Array.over(memory, (memory.nbytes // 8,), np.int64).view(np.ndarray)


class PairSet(Generic[Made]):
    """The pairs of some trajectories: which steps stand together, and their values on request."""

    def __init__(self, constructor: Constructor[Made], data: Trajectories, seed: int, epoch: int) -> None:
        self._constructor = constructor
        self._data = data
        self._seed, self._epoch = seed, epoch
        # What each field is called in the data.
        self._names = {name: find_field(data, name, constructor.option(name)) for name in constructor.fields()}
        kind, least, most = constructor.offsets()
        parts = _gristmill.pair_rows(data.lengths, kind, least, most, seed, epoch)
        self._plan = [numbers(part) for part in parts]
        self._columns: dict[str, npt.NDArray[Any]] = {}
        # Decoded once, for all epochs: empty, or the one list.
        self._infos: list[list[Any]] = []
        #: What the constructor keeps for the epoch.
        self.drawn: dict[str, npt.NDArray[Any]] = {}
        constructor.prepare(self, seed, epoch)

    @property
    def constructor(self) -> Constructor[Made]:
        """What says which steps are paired."""
        return self._constructor

    @property
    def data(self) -> Trajectories:
        """The trajectories."""
        return self._data

    def at_epoch(self, epoch: int) -> PairSet[Made]:
        """The same pairs, with what is drawn for them drawn for another epoch."""
        if not self._constructor.draws:
            return self
        other = PairSet(self._constructor, self._data, self._seed, epoch)
        other._columns, other._infos = self._columns, self._infos
        return other

    def leave_out_first(self) -> None:
        """Leaves out the first pair of all."""
        self._plan = [part[1:] for part in self._plan]

    def replace(self, ids: Numbers) -> None:
        """Puts other pairs in the place of all: trajectory and step of each, (n, 2); they count from 0."""
        own = np.arange(len(ids))
        self._plan = [own, own, np.ascontiguousarray(ids[:, 0]), np.ascontiguousarray(ids[:, 1])]

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self._plan[0])

    def __getitem__(self, rows: Rows | slice) -> Made:
        """The pairs of these numbers.

        Raises:
            IndexError: there is no such pair.
        """
        known: dict[int, Any] = {}
        pieces = self.pieces(np.arange(len(self))[rows])
        for piece in pieces.values():
            if id(piece) not in known:
                known[id(piece)] = self.made(piece)
        return self._constructor.batch({name: known[id(piece)] for name, piece in pieces.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        """The pairs as another process makes them again: with the fields that they take values of."""
        return type(self), (self._constructor, self.frozen(), self._seed, self._epoch)

    def frozen(self) -> Columns:
        """The trajectories with the fields that the pairs take values of, as they can be sent to another process."""
        infos = "infos" in getattr(self._constructor, "names", ())
        return self._constructor.kept(self, frozen(self._data, self._constructor.fields(), infos))

    def pieces(self, rows: Numbers) -> dict[str, Piece]:
        """What stands under each name of a batch of these pairs."""
        return self._constructor.pieces(self, rows)

    def made(self, piece: Piece) -> Any:
        """The values of a piece."""
        if not isinstance(piece, At):
            return piece
        found = self.values(piece.field, piece.steps)
        found[piece.steps < 0] = 0
        return found.reshape((len(found), *piece.row_shape(self.column(piece.field))))

    def column(self, name: str) -> npt.NDArray[Any]:
        """A field of all steps, in one piece and in this machine's byte order."""
        if name not in self._columns:
            column = self._data.column(self._names.get(name, name)).view(np.ndarray)
            self._columns[name] = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
        return self._columns[name]

    def values(self, name: str, steps: Numbers) -> npt.NDArray[Any]:
        """A field at some steps."""
        return self.column(name)[steps]

    def infos(self, rows: Numbers) -> list[Any]:
        """What travels beside the steps of some pairs."""
        if not self._infos:
            self._infos.append(infos_of(self._data))
        return [self._infos[0][step] for step in self.context(rows).tolist()]

    def context(self, rows: Numbers) -> Numbers:
        """Number of the context's step of each pair."""
        return self._plan[0][rows]

    def target(self, rows: Numbers) -> Numbers:
        """Number of the target's step of each pair."""
        return self._plan[1][rows]

    def ids(self, rows: Numbers) -> Numbers:
        """Trajectory and step of each pair."""
        return np.stack([self._plan[2][rows], self._plan[3][rows]], axis=-1)


class Constructor(Generic[Made]):
    """Says which steps are paired, and what is made of them."""

    #: Whether anything is drawn for each epoch again.
    draws = False

    def over(self, data: Trajectories | Mapping[str, npt.ArrayLike], *, seed: int = 0, epoch: int = 0) -> PairSet[Made]:
        """The pairs of some trajectories; what is drawn depends on seed, epoch and step alone.

        Args:
            data: demonstrations, or some of them; a dictionary of arrays, as `load_dataset_dict` gives it.
            seed: of what is drawn.
            epoch: of what is drawn.

        Raises:
            ConfigError: the trajectories lack what it needs.
        """
        return PairSet(self, as_trajectories(data), seed, epoch)

    def offsets(self) -> tuple[str, int, int]:
        """Kind of pairing, least and greatest offset."""
        return "identity", 0, 0

    def fields(self) -> tuple[str, ...]:
        """The fields that it takes values of."""
        return ("obs",)

    def option(self, name: str) -> str:
        """The option that chooses another field than the one of this name; empty where there is none."""
        return ""

    def prepare(self, pairs: PairSet[Made], seed: int, epoch: int) -> None:
        """Draws what is drawn once for an epoch."""

    def kept(self, pairs: PairSet[Made], data: Columns) -> Columns:
        """The trajectories of some pairs as they are sent to another process."""
        return data

    def digest(self, pairs: PairSet[Made]) -> bytes:
        """What tells pairs from others of the same data and the same number; nothing where the data tells it."""
        return b""

    def describe(self) -> dict[str, Any]:
        """What its batches depend on, as plain data."""
        return {"kind": type(self).__name__, **asdict(self)}  # type: ignore[call-overload]

    def pieces(self, pairs: PairSet[Made], rows: Numbers) -> dict[str, Piece]:
        """What stands under each name of a batch of these pairs."""
        raise NotImplementedError

    def whole(self, pairs: PairSet[Made]) -> Mapping[str, Whole]:
        """What stands under each name for all pairs, in whatever pass."""
        return self.pieces(pairs, np.arange(len(pairs)))

    def batch(self, arrays: dict[str, Any]) -> Made:
        """The batch that has these arrays."""
        raise NotImplementedError


#: Options that name a field, and the field that each names by default.
_USUAL = {"obs": "obs", "action": "acts"}


@dataclass(frozen=True)
class PairConstructor(Constructor[PairBatch]):
    """A constructor of contexts and targets."""

    #: The field of the observations: of data whose observations are dictionaries one of their parts, such as `obs.ego`.
    obs: str = field(default="obs", kw_only=True)

    def fields(self) -> tuple[str, ...]:
        """Observations."""
        return (self.obs,)

    def option(self, name: str) -> str:
        """The option of this class, or of `ActingConstructor`, that has this value."""
        return next((option for option in _USUAL if getattr(self, option, None) == name), "")

    def describe(self) -> dict[str, Any]:
        """The options; which fields only where they are not the usual ones, as states of older releases have it."""
        return {name: value for name, value in super().describe().items() if _USUAL.get(name) != value}

    def batch(self, arrays: dict[str, Any]) -> PairBatch:
        """Context, target, extra context and ids."""
        return PairBatch(**{"extra_context": None, **arrays})

    def pieces(self, pairs: PairSet[PairBatch], rows: Numbers) -> dict[str, Piece]:
        """Observations at both steps."""
        context, target = At(self.obs, pairs.context(rows)), At(self.obs, pairs.target(rows))
        return {"context": context, "target": target, "traj_ts_ids": pairs.ids(rows)}


@dataclass(frozen=True)
class ActingConstructor(PairConstructor):
    """A constructor that takes actions, too."""

    #: The field of the actions: of data whose actions are dictionaries or tuples one of their parts, such as `acts.0`.
    action: str = field(default="acts", kw_only=True)

    def fields(self) -> tuple[str, ...]:
        """Observations and actions."""
        return (self.obs, self.action)


def need_ends(pairs: PairSet[Any]) -> None:
    """Without `dones` nothing says where trajectories end, and pairs would join what does not belong together."""
    if "dones" not in field_names(pairs.data):
        raise ConfigError("the data has no `dones`, so nothing says where trajectories end", field="dones")
