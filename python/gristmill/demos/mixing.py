"""Pairs of several data sets as one stream of batches: seeded, weighted, of exact length, the same for all ranks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import ConfigError, StateError
from gristmill.pairs import Constructor, Identity, PairBatch, PairSet, Trajectories, numbers


class PairLoader:
    """Batches of pairs from one or several data sets.

    Each data set gives its pairs in a new order in each of its passes; a short one starts over. The order of all is a
    function of the seed: ranks together have every row of it once, and a saved state goes on where it stood.
    """

    def __init__(
        self,
        datasets: Sequence[Trajectories] | Trajectories,
        pairs: Constructor | None = None,
        *,
        batch_size: int,
        nominal_length: int | None = None,
        weights: Sequence[float] | None = None,
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = True,
        pad: bool = False,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        """Makes the loader; nothing is read but what pairs need to be counted.

        Args:
            datasets: `Demos`, or what `load_wds_datasets` gives.
            pairs: which steps stand together; `Identity()` by default.
            batch_size: pairs of a batch of one rank.
            nominal_length: pairs of all batches and ranks together; by default as many as the data sets have.
            weights: how often each data set is chosen; equally often by default.
            seed: of all that is drawn.
            shuffle: without it, pairs come in stored order, from one data set only.
            drop_last: leave out a last batch that is not full.
            pad: where shapes differ, fill up with zeros to the largest; without it that is an error.
            rank: which of `world_size` this is.
            world_size: how many share the stream.

        Raises:
            ConfigError: a number is out of range, a data set has no pairs, or shapes differ.
        """
        several = list(datasets) if isinstance(datasets, Sequence) else [datasets]
        if not several:
            raise ConfigError("no data set; expected at least one", field="datasets")
        if batch_size < 1:
            raise ConfigError(f"batches of {batch_size}; expected at least 1", field="batch_size")
        if not 0 <= rank < world_size:
            raise ConfigError(f"rank {rank} of {world_size}; ranks count from 0", field="rank")
        if not shuffle and len(several) > 1:
            raise ConfigError("several data sets have no stored order; shuffle them", field="shuffle")
        self._epochs = [{0: (pairs or Identity()).over(data, seed=seed)} for data in several]
        sizes = [len(own[0]) for own in self._epochs]
        if 0 in sizes:
            message = f"data set {sizes.index(0)} gives no pairs: its trajectories are too short"
            raise ConfigError(message, field="datasets")
        self._length = sum(sizes) if nominal_length is None else nominal_length
        self._global = batch_size * world_size
        self._rank, self._world, self._drop = rank, world_size, drop_last
        if self._length < 1 or (drop_last and self._length < self._global):
            message = f"{self._length} pairs do not fill a batch of {self._global}; lower it, or keep the last one"
            raise ConfigError(message, field="nominal_length")
        own = [float(weight) for weight in weights] if weights is not None else [1.0] * len(several)
        self._order = _gristmill.Mix(sizes, own, seed, shuffle)
        self._shapes = self._agree(pad)
        self._batch = 0
        self._described = [sizes, own, seed, shuffle, self._length, repr(pairs)]

    def __len__(self) -> int:
        """Batches of a pass."""
        whole, rest = divmod(self._length, self._global)
        return whole if self._drop or rest == 0 else whole + 1

    def __iter__(self) -> Iterator[PairBatch]:
        """The batches of a pass; the next pass goes on with the order where this one ended."""
        while True:
            number = self._batch % len(self)
            start = (self._batch // len(self)) * self._length + number * self._global
            count = min(self._global, self._length - number * self._global)
            batch = self._gather(start, count)
            self._batch += 1
            last = self._batch % len(self) == 0
            yield batch
            if last:
                return

    def state_dict(self) -> dict[str, Any]:
        """Where it stands: batches that were taken from it."""
        return {"version": 1, "row": self._row(), "of": self._described}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes on where another loader of the same data stood, of any number of ranks whose batches fit.

        Raises:
            StateError: it is of other data, another seed or configuration, or says nowhere to go.
        """
        if state.get("version") != 1 or state.get("of") != self._described:
            raise StateError(f"it is of {state.get('of')}; this loader is of {self._described}")
        row = state.get("row")
        if not isinstance(row, int) or not 0 <= row < 1 << 63:
            raise StateError(f"it stands at row {row!r}; expected a number from 0 on")
        passes, within = divmod(row, self._length)
        number, rest = divmod(within, self._global)
        if rest:
            raise StateError(f"it stands at row {within}, which is no multiple of {self._global}")
        self._batch = passes * len(self) + number

    def _row(self) -> int:
        passes, number = divmod(self._batch, len(self))
        return passes * self._length + number * self._global

    def _gather(self, start: int, count: int) -> PairBatch:
        """The share of one rank in the rows from `start` on."""
        self._order.seek(start)
        parts = [numbers(part)[self._rank :: self._world] for part in self._order.take(count)]
        sources, rows, passes = parts
        out: dict[str, npt.NDArray[Any]] = {
            name: np.zeros((len(rows), *shape), dtype) for name, (shape, dtype) in self._shapes.items()
        }
        for source, epoch in sorted(set(zip(sources.tolist(), passes.tolist(), strict=True))):
            places = np.flatnonzero((sources == source) & (passes == epoch))
            for name, array in self._pairs(source, epoch)[rows[places]].items().items():
                index: Any = (places, *(slice(0, dim) for dim in array.shape[1:]))
                out[name][index] = array
        return PairBatch(out["context"], out["target"], out.get("extra_context"), out["traj_ts_ids"])

    def _pairs(self, source: int, epoch: int) -> PairSet:
        known = self._epochs[source]
        if epoch not in known:
            # A batch reaches over one end of a pass at most a few times; older epochs are not needed again.
            for old in [one for one in known if one < epoch - 1 and one != 0]:
                del known[old]
            known[epoch] = known[0].at_epoch(epoch)
        return known[epoch]

    def _agree(self, pad: bool) -> dict[str, tuple[tuple[int, ...], np.dtype[Any]]]:
        """Shape and type of each array without the batch axis."""
        firsts = [own[0][:1].items() for own in self._epochs]
        agreed: dict[str, tuple[tuple[int, ...], np.dtype[Any]]] = {}
        for name, one in firsts[0].items():
            shapes = [first[name].shape[1:] for first in firsts]
            dtypes = {first[name].dtype for first in firsts}
            same = len(set(shapes)) == 1
            if len(dtypes) > 1 or not (same or (pad and len({len(shape) for shape in shapes}) == 1)):
                told = ", ".join(f"{first[name].dtype} {list(first[name].shape[1:])}" for first in firsts)
                message = f"`{name}` differs between the data sets: {told}; pad=True fills up smaller shapes"
                raise ConfigError(message, field="datasets")
            agreed[name] = (tuple(max(dims) for dims in zip(*shapes, strict=True)), one.dtype)
        return agreed
