"""Batches of any loader for PyTorch's loaders and for trainers, pass after pass, with states that lose none."""

from __future__ import annotations

import itertools
import json
import sys
from collections.abc import Iterator, Mapping
from multiprocessing.context import get_spawning_popen
from typing import Any, NamedTuple

from torch.utils.data import DataLoader as TorchDataLoader
from torch.utils.data import IterableDataset, get_worker_info

from gristmill.demos.crossing import Crossing, Ring, can_share
from gristmill.demos.mixing import MixedLoader, PairLoader
from gristmill.errors import ConfigError, StateError
from gristmill.frameworks import turns
from gristmill.frameworks.tensors import named, tensors
from gristmill.loaders.batch import Batch
from gristmill.loaders.loader import DataLoader as RowLoader
from gristmill.pairs import PairBatch

#: Batches of a worker that a consumer may keep before PyTorch has to bring others over.
_KEPT = 6


def _named_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """`named` of the batch that has these values."""
    return named(PairBatch(**values))


class BatchStream(IterableDataset[dict[str, Any]]):
    """The batches of a `PairLoader` or `StepLoader` for PyTorch's loaders: `DataLoader(stream, batch_size=None)`.

    Workers take turns batch by batch, so that their number changes nothing. Each iteration goes over the next pass, an
    abandoned one is not taken up again. Workers that are made anew for each iteration know nothing of the last: call
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
            ConfigError: there is no such pass; or a loader of accelerate with a state asks, which counts passes anew.
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
        """Goes on behind the batches that were taken.

        Raises:
            StateError: it is of another worker, of another number of them, or of other batches.
        """
        own = self.state_dict()
        for key in ("worker", "pass", "starts"):
            if state.get(key) != own[key]:
                raise StateError(f"`{key}` is {state.get(key)!r}, here {own[key]!r}")
        self._next = int(state["taken"])


class Feed(IterableDataset[dict[str, Any]]):
    """What a loader gives, pass after pass, in the process that has it, with its state: what a trainer loops over.

    There is no `set_epoch`: passes follow each other, and who counts them from 0 after a resume repeats none.
    """

    _loader: Any

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The batches that are left of this pass.

        Raises:
            ConfigError: accelerate reads in one process for all, and the ranks of the loader share its rows already.
        """
        world = self._world()
        for found in _callers() if world > 1 else ():
            processes = getattr(getattr(found, "state", None), "num_processes", 1)
            if type(found).__name__ == "DataLoaderDispatcher" and processes > 1:
                message = f"accelerate reads in one process for all, of {world} ranks that share the rows themselves"
                advice = "loop over gristmill.torch.DataLoader itself, or make its loader with rank=0, world_size=1"
                raise ConfigError(f"{message}: what the others have would be lost; {advice}")
        return self._left()

    def _left(self) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def _world(self) -> int:
        """How many ranks share the rows."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader behind the last batch that was used."""
        state: dict[str, Any] = self._loader.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says."""
        self._loader.load_state_dict(state)


class PairFeed(Feed):
    """Pairs or steps, made here or by workers."""

    def __init__(self, loader: MixedLoader[Any], workers: int, options: Mapping[str, Any]) -> None:
        super().__init__()
        self._loader, self._stream = loader, BatchStream(loader)
        self._made: TorchDataLoader[dict[str, Any]] = TorchDataLoader(
            self._stream, batch_size=None, num_workers=workers, **options
        )
        self._expected: tuple[int, int] | None = None

    def __len__(self) -> int:
        """Batches of a pass."""
        return len(self._loader)

    def _world(self) -> int:
        world: int = self._loader.world_size
        return world

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


class _Ahead(NamedTuple):
    """A batch that a trainer holds and has not used."""

    #: The state before it.
    state: dict[str, Any]
    batch: dict[str, Any]
    #: What follows it in its pass.
    rest: Iterator[Batch]


class RowFeed(Feed):
    """A stream, or rows of a pack, which come from the loader's own threads.

    Lightning takes a batch ahead where it knows no length. That batch counts as given once the next one is taken: a
    state is from before it, and where training ends meanwhile the next iteration begins with it.
    """

    def __init__(self, loader: RowLoader, alias: str = "", length: int | None = None) -> None:
        super().__init__()
        if length is not None and length < 1:
            raise ValueError(f"length {length}; expected at least 1 batch")
        self._loader, self._alias, self._length = loader, alias, length
        self._ahead: _Ahead | None = None
        # A stream starts when its state is wanted.
        self._asked = False

    def __len__(self) -> int:
        """Batches of an iteration.

        Raises:
            TypeError: their number is unknown.
        """
        return len(self._loader) if self._length is None else self._length

    def _world(self) -> int:
        return int(json.loads(self._loader._engine.config()).get("world_size") or 1)

    def _left(self) -> Iterator[dict[str, Any]]:
        takes_ahead = _takes_ahead()
        rest: Iterator[Batch]
        if self._ahead is None:
            rest = itertools.islice(self._loader.batches(self._alias), self._length)
        else:
            _, batch, rest = self._ahead
            if not takes_ahead:
                self._ahead = None
            yield batch
        while True:
            before = self._stands() if takes_ahead else {}
            found = next(rest, None)
            if found is None:
                break
            batch = tensors(found.asdict())
            if takes_ahead:
                self._ahead = _Ahead(before, batch, rest)
            yield batch
        self._ahead = None

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader behind the last batch that was used."""
        return self._stands() if self._ahead is None else self._ahead.state

    def _stands(self) -> dict[str, Any]:
        self._asked = True
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says; a loader that runs begins anew for it.

        Raises:
            StateError: it is of other data or another configuration.
        """
        self._ahead = None
        if self._loader._begun or self._asked:
            turns.renew(self._loader)
        super().load_state_dict(state)


def _takes_ahead() -> bool:
    """Whether Lightning iterates here and knows no length: then it takes a batch ahead, and says so nowhere."""
    for found in _callers():
        if type(found).__name__ == "_PrefetchDataFetcher":
            return getattr(found, "length", None) is None
    return False


def _callers() -> Iterator[Any]:
    """The objects whose methods lead here, the nearest first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_locals.get("self")
        frame = frame.f_back  # type: ignore[assignment]


#: Options that are the loader's.
_OF_LOADER = ("batch_size", "shuffle", "sampler", "batch_sampler", "drop_last", "collate_fn")
#: Options of workers, where none is started.
_OF_WORKERS = ("prefetch_factor", "persistent_workers", "multiprocessing_context", "worker_init_fn", "timeout")


class DataLoader(TorchDataLoader[dict[str, Any]]):
    """PyTorch's `DataLoader` over the batches of any loader, from where it stands: for Lightning, Fabric,
    `accelerate`, and loops of one's own.

        for batch in gm.torch.DataLoader(loader, num_workers=4, pin_memory=True): ...

    Each iteration goes over what is left of a pass; the next one over the next pass, whatever the number of workers.
    The state is that of the loader behind the last batch that was delivered, however many are under way. Options are
    PyTorch's, but for those of batches, samplers and shuffling, which are the loader's.

    Of a `PairLoader` or `StepLoader` workers make batches in memory that this process has, too, so that no array is
    copied or pickled on its way; there is room for `prefetch_factor` and six more batches of each worker. Streams and
    rows of packs come from the loader's own threads: no worker is started, whatever `num_workers` says. Of those
    `alias` is one of several outputs, and `length` says how many batches one iteration gives at most: epochs of an
    endless stream. How many a stream with `epochs=` has is known only when its games were read: Lightning then takes a
    batch ahead, which its checkpoints count as not given. `accelerate` takes one ahead always: what it prepared with
    `DataLoaderConfiguration(use_stateful_dataloader=True)` resumes behind the last batch that was used.
    """

    def __init__(
        self,
        loader: MixedLoader[Any] | RowLoader,
        *,
        num_workers: int = 0,
        alias: str = "",
        length: int | None = None,
        **options: Any,
    ) -> None:
        for name in _OF_LOADER:
            if name in options:
                raise TypeError(f"`{name}` is the loader's: batches are made before they come here")
        feed: Feed
        if isinstance(loader, RowLoader):
            feed = RowFeed(loader, alias, length)
            options = {name: value for name, value in options.items() if name not in _OF_WORKERS}
        elif isinstance(loader, MixedLoader):
            if alias or length is not None:
                raise TypeError(f"`{'alias' if alias else 'length'}` belongs to streams and rows of packs")
            feed, options = PairFeed(loader, num_workers, options), {}
        else:
            raise TypeError(f"expected a loader of gristmill, got {type(loader).__name__}")
        super().__init__(feed, batch_size=None, collate_fn=_as_it_is, **options)
        self._loader, self._feed = loader, feed

    def __iter__(self) -> Any:
        """The batches that are left of this pass."""
        # Workers, and what PyTorch does with what they made, are those of the feed.
        return iter(self._feed) if isinstance(self._feed, PairFeed) else super().__iter__()

    def set_epoch(self, epoch: int) -> None:
        """The next iteration goes over this pass of pairs or steps. Elsewhere passes follow each other by themselves.

        Raises:
            ConfigError: there is no such pass.
        """
        if isinstance(self._loader, MixedLoader):
            self._loader.set_epoch(epoch)

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader behind the last batch that was delivered, but for one that Lightning took ahead."""
        return self._feed.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says, with any number of workers.

        Raises:
            StateError: it is of other data or another configuration, or says nowhere to go.
        """
        self._feed.load_state_dict(state)


def _as_it_is(batch: dict[str, Any]) -> dict[str, Any]:
    return batch


# PyTorch iterates over what calls itself an iterable data set.
IterableDataset.register(RowLoader)
IterableDataset.register(MixedLoader)
