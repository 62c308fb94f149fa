"""Games of a chunk pack: their positions taken by number, and their records game by game."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Self, overload

import numpy as np
import numpy.typing as npt

from gristmill.packs.again import remembered
from gristmill.packs.selection import Selection, places, span
from gristmill.records.arrays import Array
from gristmill.records.drawing import table

if TYPE_CHECKING:
    from gristmill.chess import Tensors
    from gristmill.packs.trajectories import Fields


class Games(Selection):
    """Some games of a chunk pack, in the order in which they are stored. Selecting decodes and copies nothing.

    `games[3]` is the records of one game, `games[10:20]` a selection of ten; iteration goes over the games.
    """

    def __len__(self) -> int:
        """How many games there are."""
        return self.num_games

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    @remembered
    def __getitem__(self, index: int | slice) -> Array | Self:
        """The records of one game as a structured array, or some of the games.

        Raises:
            IndexError: there is no such game.
            ValueError: a slice with a step.
            FormatError: a game that is damaged; it says which.
        """
        if isinstance(index, slice):
            return type(self)(self._compiled.slice_games(*span(index, len(self))))
        place = self._place(index)
        return Array.over(self._compiled.game(place), (self._compiled.frames(place),), self.layout.dtype)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def encode(self, indices: npt.ArrayLike, encoder: Tensors | Fields | None = None) -> dict[str, Array]:
        """Tensors of the positions at `indices`, by name, just as a loader makes them.

        Raises:
            IndexError: there is no such position.
            ConfigError: a tensor that does not exist.
            FormatError: a game that is damaged; it says which.
            TypeError: an encoder of something else.
        """
        found = places(indices, self.num_frames)
        if encoder is not None and not hasattr(encoder, "names"):
            advice = "gristmill.chess.Tensors is for games of chess, gristmill.Fields for trajectories"
            raise TypeError(f"{type(encoder).__name__} makes nothing of whole games: {advice}")
        making = self._compiled.encoding(None, [] if encoder is None else list(encoder.names))
        made = making.encode(found.reshape(-1).view(np.uint8), 0, 0)
        return {name: Array.over(memory, (*found.shape, *shape[1:]), dtype) for name, dtype, shape, memory in made}

    def _repr_html_(self) -> str:
        fields = self.layout.dtype
        rows = ((name, fields[name].base, fields[name].shape) for name in fields.names or ())
        return table(repr(self), ("field", "dtype", "shape"), rows)
