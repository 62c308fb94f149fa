"""Games of a chunk pack: tensors of their positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.packs.selection import Selection, places
from gristmill.records.arrays import Array
from gristmill.records.drawing import table, with_card

if TYPE_CHECKING:
    from gristmill.chess import Tensors
    from gristmill.packs.trajectories import Fields


class Games(Selection):
    """Some games of a chunk pack, in the order in which they are stored. A frame is a position."""

    @property
    def kind(self) -> str:
        """What the frames are of: `"chess"`, `"demo"`, `"bullet"`, `"binpack"` or `"records"`."""
        return self._compiled.form

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
        shown = table(repr(self), ("field", "dtype", "shape"), rows)
        return with_card(shown, lambda: _gristmill.card_of_selection(self._compiled, 0))
