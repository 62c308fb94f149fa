"""One batch: named arrays in the order of the configuration."""

from __future__ import annotations

from collections.abc import ItemsView, Iterator, KeysView, ValuesView
from typing import TypeVar, overload

import numpy as np

from gristmill import _gristmill
from gristmill.records.arrays import Array
from gristmill.records.drawing import table, with_card

_Default = TypeVar("_Default")


class Batch:
    """Named, dense arrays with a leading batch axis.

    By name it is a mapping: `batch["planes"]`, `dict(batch)`, `model(**batch)`, `keys`, `items`. By place it is a
    tuple: a loop, and `planes, probs, values = batch`, go over the arrays, not over their names. With
    `gristmill.jax` imported it is a pytree, too: `jax.device_put(batch)`, `jax.tree.map(f, batch)`.

    The memory is the consumer's until the last array over it is dropped; then the loader uses it again.
    """

    __slots__ = ("_arrays", "number", "rows")

    def __init__(self, number: int, rows: int, arrays: dict[str, Array]) -> None:
        self._arrays = arrays
        #: Ordinal of the batch within its output, from 0; -1 of one that was computed from another.
        self.number = number
        #: Rows that hold data; fewer than the arrays' length only in a padded last batch.
        self.rows = rows

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the arrays, in order."""
        return tuple(self._arrays)

    def asdict(self) -> dict[str, Array]:
        """The arrays by name, in order."""
        return dict(self._arrays)

    def keys(self) -> KeysView[str]:
        """Names of the arrays, in order."""
        return self._arrays.keys()

    def values(self) -> ValuesView[Array]:
        """The arrays, in order."""
        return self._arrays.values()

    def items(self) -> ItemsView[str, Array]:
        """Names and arrays, in order."""
        return self._arrays.items()

    @overload
    def get(self, name: str) -> Array | None: ...
    @overload
    def get(self, name: str, default: _Default) -> Array | _Default: ...
    def get(self, name: str, default: _Default | None = None) -> Array | _Default | None:
        """The array called `name`, or `default` where there is none."""
        return self._arrays.get(name, default)

    def __getitem__(self, key: str | int) -> Array:
        """The array called `key`, or the array at place `key`."""
        if isinstance(key, str):
            try:
                return self._arrays[key]
            except KeyError:
                raise KeyError(f"no array is called {key!r}; this batch has: {', '.join(self._arrays)}") from None
        return tuple(self._arrays.values())[key]

    def __iter__(self) -> Iterator[Array]:
        """The arrays, in order."""
        return iter(self._arrays.values())

    def __len__(self) -> int:
        """How many arrays there are."""
        return len(self._arrays)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __repr__(self) -> str:
        arrays = ", ".join(f"{name}: {a.dtype}{list(a.shape)}" for name, a in self._arrays.items())
        return f"Batch(number={self.number}, rows={self.rows}, {arrays})"

    def _repr_html_(self) -> str:
        rows = ((name, array.dtype, tuple(array.shape)) for name, array in self._arrays.items())
        shown = table(f"Batch {self.number}: {self.rows} rows", ("array", "dtype", "shape"), rows)
        return with_card(shown, self._card)

    def _card(self) -> str:
        """The first position of a batch of chess, as the side to move sees it, with the moves its policy prefers."""
        planes, probs = self._arrays.get("planes"), self._arrays.get("probs")
        if planes is None or planes.ndim != 4 or planes.shape[1:] != (112, 8, 8) or not self.rows:
            return ""
        men = np.asarray(planes[0])[:12] > 0
        letters = [["1"] * 8 for _ in range(8)]
        for plane, rank, file in np.argwhere(men):
            letters[7 - rank][file] = "PNBRQKpnbrqk"[plane]
        moves = []
        if probs is not None and probs.shape[1:] == (1858,):
            names, shares = _gristmill.chess_policy_moves(), np.asarray(probs[0])
            best = np.argsort(-shares, kind="stable")[:5]
            moves = [(names[move], float(shares[move])) for move in best]
        title = "Row 0, as the side to move sees it, whose men are white here"
        return _gristmill.card_of_position("/".join(map("".join, letters)), moves, title)
