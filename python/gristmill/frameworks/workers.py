"""Pairs or steps that PyTorch's workers make batch by batch, in memory that the trainer has as well."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from multiprocessing.context import get_spawning_popen
from typing import Any

from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset, get_worker_info

from gristmill.demos.crossing import Crossing, Ring, can_share
from gristmill.demos.mixing import MixedLoader, PairLoader
from gristmill.errors import StateError
from gristmill.frameworks import turns
from gristmill.frameworks.feeds import Feed
from gristmill.frameworks.tensors import named
from gristmill.pairs import PairBatch

#: Batches of a worker that a consumer may keep before PyTorch has to bring others over.
_KEPT = 6


def _named_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """`named` of the batch that has these values."""
    return named(PairBatch(**values))


class BatchStream(IterableDataset[dict[str, Any]]):
    """The batches of a `PairLoader` or `StepLoader` for PyTorch's loaders: `DataLoader(stream, batch_size=None)`.

    Workers take turns batch by batch, so that their number changes nothing. Each iteration goes over the next pass, an
    abandoned one is not taken up again. Workers that are made again for each iteration know nothing of the last: call
    `set_epoch` before each, as with PyTorch's samplers, or use `DataLoader` of this module. It can be pickled, and its
    iterator has a state, as loaders with a state want it.
    """

    def __init__(self, loader: MixedLoader[Any], *, raw: bool = False) -> None:
        super().__init__()
        #: Where the next iteration begins.
        self.loader = loader
        #: Whether batches stay as the loader makes them.
        self.raw = raw
        self._begun: int | None = None
        # For each worker the memory that it makes batches in, where the loader of this module has made some.
        self._rings: list[Ring] = []

    def __getstate__(self) -> dict[str, Any]:
        # Memory is shared with workers alone: while they are started.
        return {**self.__dict__, "_rings": self._rings if get_spawning_popen() is not None else []}

    def __len__(self) -> int:
        """Batches of a pass, of all workers together."""
        return len(self.loader)

    def __iter__(self) -> _Turns:
        """The batches of a pass that fall to this worker."""
        if self._begun is not None:
            self.loader.set_epoch(self._begun + 1)
        self._begun = self.loader.epoch
        return _Turns(self)

    def set_epoch(self, epoch: int) -> None:
        """The next iteration goes over this pass.

        Raises:
            ConfigError: there is no such pass; or a loader of accelerate with a state asks, which counts passes again.
        """
        turns.refuse_other_counting()
        self.loader.set_epoch(epoch)
        self._begun = None

    def state_dict(self) -> dict[str, Any]:
        """Where the current iteration began, or where the next one begins."""
        return self.loader.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration begins where the state says.

        Raises:
            StateError: it is of other data or another configuration, or says nowhere to go.
        """
        self.loader.load_state_dict(state)
        self._begun = None


class _Turns(Iterator[dict[str, Any]]):
    """The batches of one pass that fall to one worker."""

    def __init__(self, stream: BatchStream) -> None:
        worker = get_worker_info()
        self._place = (0, 1) if worker is None else (worker.id, worker.num_workers)
        self._loader, self._raw = stream.loader, stream.raw
        self._epoch = stream.loader.epoch
        self._starts = stream.loader.starts()[self._place[0] :: self._place[1]]
        self._ring = stream._rings[self._place[0]] if worker is not None and stream._rings else None
        self._made = _named_pairs if isinstance(stream.loader, PairLoader) else named
        self._next = 0

    def __next__(self) -> Any:
        if self._next >= len(self._starts):
            raise StopIteration
        start = self._starts[self._next]
        found: Crossing | dict[str, Any] | None = None
        if self._ring is not None:
            found = self._loader.crossing_at(self._epoch, start, self._ring, self._made)
        # Where the consumer keeps many batches, PyTorch brings the others over as it brings any tensors.
        if found is None:
            made = self._loader.batch_at(self._epoch, start)
            found = made if self._raw else named(made)
        self._next += 1
        return found

    def state_dict(self) -> dict[str, Any]:
        """How many batches were taken, of which."""
        starts = [self._starts.start, self._starts.stop, self._starts.step]
        return {"worker": list(self._place), "pass": self._epoch, "starts": starts, "taken": self._next}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues after the batches that were taken.

        Raises:
            StateError: it is of another worker, of another number of them, or of other batches.
        """
        own = self.state_dict()
        for key in ("worker", "pass", "starts"):
            if state.get(key) != own[key]:
                raise StateError(f"`{key}` is {state.get(key)!r}, here {own[key]!r}")
        self._next = int(state["taken"])


class PairFeed(Feed):
    """Pairs or steps, made here or by workers."""

    def __init__(self, loader: MixedLoader[Any], workers: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._loader, self._stream = loader, BatchStream(loader)
        # To start a worker takes as long as thousands of batches: where nothing else is said, it stays for all passes.
        options = {"persistent_workers": workers > 0, **options}
        self._made: TorchDataLoader[dict[str, Any]] = TorchDataLoader(
            self._stream, batch_size=None, num_workers=workers, **options
        )
        self._expected: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Batches of a pass."""
        return len(self._loader)

    def __getstate__(self) -> dict[str, Any]:
        # Workers stay where they are.
        made = copy.copy(self._made)
        made._iterator = None
        return {**self.__dict__, "_made": made}

    def _left(self) -> Iterator[dict[str, Any]]:
        loader, made = self._loader, self._made
        epoch, starts = loader.epoch, loader.starts()
        if self._expected != (epoch, starts.start):
            # Workers that stayed would continue elsewhere.
            made._iterator = None
        self._stream._begun = None
        self._expected = None
        if made.num_workers and (made._iterator is None or not made.persistent_workers):
            self._share()
        batches = iter(made)
        for start in starts:
            batch = loader.counted(epoch, start, batches.__next__)
            loader.move(epoch, start + starts.step)
            yield batch
        if next(batches, None) is not None:
            raise RuntimeError("workers made more batches than the pass has")
        self._expected = (epoch + 1, 0)

    def _share(self) -> None:
        """Memory for the batches of new workers: as many as are on their way, and some that the consumer keeps."""
        slots, workers = (self._made.prefetch_factor or 0) + _KEPT, self._made.num_workers
        try:
            self._stream._rings = [self._loader.ring(slots) for _ in range(workers if can_share() else 0)]
        except OSError:
            # Then PyTorch brings the batches over.
            self._stream._rings = []
