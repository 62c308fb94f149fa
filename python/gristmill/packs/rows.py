"""Rows of 2048 in a pack: what they have beside the rest of packs: values, vectors, filters by value."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.packs.again import remembered
from gristmill.packs.selection import Selection, places
from gristmill.records.arrays import Array
from gristmill.records.drawing import table, with_card
from gristmill.records.layout import Layout

if TYPE_CHECKING:
    from gristmill.packs.encoders import Steps

#: One number, or the lowest and highest of a range, both inclusive; `None` leaves an end open.
Bounds: TypeAlias = int | tuple[int | None, int | None] | None


class Rows(Selection):
    """Some rows of a pack of 2048, in the order in which they are stored. A row is a frame, a run is a game."""

    #: The encoder of the last call, its JSON, and the engine's encoding for it. A call with an equal encoder takes that
    #: encoding, and reads no file for it again.
    _last: tuple[Steps, str, _gristmill.RowEncoding] | None = None

    @property
    def num_runs(self) -> int:
        """How many runs are selected: `num_games`, as rows of 2048 call their games."""
        return self.num_games

    @property
    def run_ids(self) -> list[int]:
        """Ids of the selected runs, ascending: `game_ids`."""
        return self.game_ids

    @property
    def form(self) -> str:
        """What kind of rows these are: `steps` (packs), `self-play`, `legacy` or `exponents`."""
        return self._compiled.form

    @property
    def embedding_size(self) -> int | None:
        """Numbers in the vector of each row, where the folder has `embeddings-*.npy` beside the rows; else `None`."""
        return self._compiled.embedding_size

    @property
    def valuation_types(self) -> list[str]:
        """Names of the pack's valuations, by id: what `valuation_types.json` says, in any of its forms."""
        return self._compiled.valuations

    @remembered
    def filter(
        self, *, step_index: Bounds = None, max_rank: Bounds = None, valuation: str | Iterable[str] | None = None
    ) -> Rows:
        """Those rows that pass all the tests given. Reads every selected row once.

        Args:
            step_index: one step, or the first and last, both inclusive.
            max_rank: one rank, or the lowest and highest.
            valuation: names of valuations, such as `"search"`.

        Raises:
            ConfigError: the pack has no such valuation, or rows of its form have no such field.
        """
        names = [valuation] if isinstance(valuation, str) else None if valuation is None else list(valuation)
        return Rows(self._compiled.filter(_range("step_index", step_index), _range("max_rank", max_rank), names))

    def take_embeddings(self, indices: npt.ArrayLike) -> Array:
        """The vectors of the rows at `indices`: float32 of shape (..., `embedding_size`).

        Raises:
            IndexError: there is no such row.
            FormatError: the rows have no vectors.
        """
        found = places(indices, len(self))
        memory = self._compiled.take_embeddings(found.reshape(-1).view(np.uint8))
        return Array.over(memory, (*found.shape, self.embedding_size or 0), "<f4")

    @property
    def has_values(self) -> bool:
        """Whether rewards and returns lie beside the rows: `values.npy`, or shards of it.

        Raises:
            FormatError: there are values, of other rows than these.
        """
        return self._compiled.has_values()

    def take_values(self, indices: npt.ArrayLike) -> Array:
        """Rewards and returns of the rows at `indices`, as a structured array of the same shape.

        Fields (24 bytes, packed): `run_id`, `step_index` (uint32), `reward` (float32, points of the game's score),
        `reward_scaled`, `return_raw` (float32, points, discounted within the game), `return_scaled` (float32, h of
        `return_raw`). `gristmill values` makes them.

        Raises:
            IndexError: there is no such row.
            FormatError: the rows have no values, or values of other rows.
        """
        found = places(indices, len(self))
        memory = self._compiled.take_values(found.reshape(-1).view(np.uint8))
        return Array.over(memory, found.shape, Layout(_gristmill.g2048_layouts()[2]).dtype)

    def encode(self, encoder: Steps, indices: npt.ArrayLike, *, seed: int = 0, epoch: int = 0) -> dict[str, Array]:
        """Tensors of the rows at `indices`, by name, just as a loader of `seed` makes them in `epoch`.

        What the encoder needs is read at its first use: values beside the rows, a tokenizer.

        Raises:
            IndexError: there is no such row.
            EncoderError: the rows do not have what the encoder needs.
            FormatError: a row that cannot be encoded; it says which.
        """
        found = places(indices, len(self))
        made = self._making(encoder).encode(found.reshape(-1).view(np.uint8), seed, epoch)
        return {name: Array.over(memory, (*found.shape, *shape[1:]), dtype) for name, dtype, shape, memory in made}

    def _making(self, encoder: Steps) -> _gristmill.RowEncoding:
        last = self._last
        if last is not None and last[0] is encoder:
            return last[2]
        config = encoder.to_json()
        making = last[2] if last is not None and last[1] == config else self._compiled.encoding(config, [])
        self._last = (encoder, config, making)
        return making

    def _repr_html_(self) -> str:
        shown = [self[i] for i in range(min(len(self), 5))]
        names = [name for name in (shown[0].dtype.names or ()) if shown[0].dtype[name].shape == ()] if shown else []
        found = table(repr(self), names, ([row[name] for name in names] for row in shown))
        return with_card(found, lambda: _gristmill.card_of_selection(self._compiled, 0))

    def _shown(self, frames: str) -> str:
        return f"rows={frames}, runs={self.num_games}"


def _range(name: str, bounds: Bounds) -> tuple[int | None, int | None]:
    low, high = bounds if isinstance(bounds, tuple) else (bounds, bounds)
    for end in (low, high):
        if end is not None and operator.index(end) < 0:
            raise ValueError(f"{name}: {end} is negative")
    return low, high
