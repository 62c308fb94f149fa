"""Pairs or steps of several data sets as one stream: seeded, weighted, of exact length, the same for all ranks."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from types import TracebackType
from typing import Any, Generic, Literal, Self, TypeAlias, TypedDict, TypeVar, Unpack

import numpy.typing as npt

from gristmill import _gristmill
from gristmill.demos import standing
from gristmill.demos.crossing import Crossing, Ring
from gristmill.demos.feeding import PairFeed
from gristmill.demos.ordering import ordered
from gristmill.errors import ConfigError, StateError
from gristmill.frameworks import turns
from gristmill.loaders.metrics import Counted
from gristmill.loaders.ranks import find_rank
from gristmill.options.arguments import named, named_with
from gristmill.options.weights import Weights
from gristmill.pairs import BC, Constructor, Identity, PairBatch, Prepare, StepBatch, Steps, Trajectories
from gristmill.pairs.generated import Generated, Generator
from gristmill.pairs.prepare import KEEP
from gristmill.pairs.trajectories import as_trajectories

Made = TypeVar("Made")

#: A data set.
Data: TypeAlias = Trajectories | Mapping[str, npt.ArrayLike]

#: What happens when a data set has given all its rows.
Exhausted: TypeAlias = Literal["restart", "stop", "drop"]

#: Rows that an order can have.
_ROWS = 1 << 62


class Options(TypedDict, total=False):
    """Options that all loaders have, as `MixedLoader` explains them."""

    nominal_length: int | None
    weights: Weights | None
    exhausted: Exhausted
    seed: int
    shuffle: bool
    drop_last: bool
    pad: bool
    prepare: Prepare | None
    rank: int | None
    world_size: int | None
    threads: int | None
    queue_capacity: int


class MixedLoader(Generic[Made]):
    """Batches of what a constructor makes of one or several data sets; `PairLoader` and `StepLoader` are its faces.

    Each data set gives its rows in a new order in each of its passes. The order of all is a function of the seed: ranks
    together have every row of it once, any batch can be had at once, and a saved state resumes where it stood.
    """

    @named
    def __init__(
        self,
        datasets: Sequence[Data] | Data,
        constructor: Constructor[Made],
        *,
        batch_size: int,
        nominal_length: int | None = None,
        weights: Weights | None = None,
        exhausted: Exhausted = "restart",
        seed: int = 0,
        shuffle: bool = True,
        drop_last: bool = True,
        pad: bool = False,
        prepare: Prepare | None = None,
        rank: int | None = None,
        world_size: int | None = None,
        threads: int | None = None,
        queue_capacity: int = 4,
    ) -> None:
        """Makes the loader; nothing is read but what rows need to be counted.

        Args:
            datasets: one or several: `Demos` or some of them (`demos[0:5]`), `Columns`, packed `Trajectories`, what
                `load_wds_datasets` gives, or a dictionary of arrays as `load_dataset_dict` gives it.
            constructor: what a row is.
            batch_size: rows of a batch of all ranks together; their number divides it.
            nominal_length: rows of all batches of a pass and of all ranks together; by default as many as the data sets
                have, or as there are until a pass ends by `exhausted`.
            weights: how often each data set is chosen; equally often by default. Weights that change are given by the
                batch from which they hold: `{0: [1, 1], 1000: [3, 1]}`.
            exhausted: when a data set has given all its rows it starts over in a new order (`"restart"`), the pass ends
                (`"stop"`), or it is left out and the weights of the others stand (`"drop"`).
            seed: of all that is drawn.
            shuffle: without it, rows come in stored order, from one data set only.
            drop_last: leave out a last batch that is not full.
            pad: where shapes differ, fill up with zeros to the largest; without it that is an error.
            prepare: conversions of pictures and floats; nothing is converted by default.
            rank: which of `world_size` this is. Without both, what `torch.distributed`, `jax.distributed` or the
                variables RANK and WORLD_SIZE say, else 0 of 1.
            world_size: how many share the stream.
            threads: worker threads; never changes a batch.
            queue_capacity: batches that may wait for the consumer.

        Raises:
            ConfigError: a number is out of range, a data set has no rows or lacks a field, or shapes differ.
            TypeError: paths, which are to be opened first.
        """
        several: list[Any] = list(datasets) if isinstance(datasets, Sequence) else [datasets]
        if not several:
            raise ConfigError("no data set; expected at least one", field="datasets")
        # The letters of a path are paths too, by their type.
        if any(isinstance(data, str | os.PathLike) for data in several):
            raise TypeError("expected data sets, found a path: open it by gristmill.open")
        several = [as_trajectories(data) for data in several]
        if batch_size < 1:
            raise ConfigError(f"batches of {batch_size}; expected at least 1", field="batch_size")
        if not shuffle and len(several) > 1:
            raise ConfigError("several data sets have no stored order; shuffle them", field="shuffle")
        self._rank, self._world = find_rank(rank, world_size)
        if batch_size % self._world:
            near = max(batch_size // self._world, 1) * self._world
            message = f"{batch_size} rows for {self._world} ranks; it is the size of all ranks together, and they must"
            raise ConfigError(f"{message} divide it. {near} would do", field="batch_size")
        self._prepare = prepare or KEEP
        if prepare is not None:
            for data in several:
                prepare.check_space(getattr(data, "metadata", {}))
        self._constructor = constructor
        self._sets = [constructor.over(data, seed=seed) for data in several]
        sizes = [len(pairs) for pairs in self._sets]
        if 0 in sizes:
            message = f"data set {sizes.index(0)} gives no pairs: its trajectories are too short"
            raise ConfigError(message, field="datasets")
        passes, drawn = (batch_size, drop_last), (seed, shuffle)
        self._order, self._length, mix, own = ordered(sizes, weights, exhausted, nominal_length, passes, drawn)
        self._batch_size = batch_size
        self._drop = drop_last
        config = {
            "mix": mix,
            "batch_size": batch_size,
            # Passes are as many as there are loops.
            "epochs": None,
            "apart": True,
            "shuffle": "rows" if shuffle else "off",
            "last_batch": "drop" if drop_last else "keep",
            "seed": seed,
            "threads": threads,
            "queue_capacity": queue_capacity,
            "rank": self._rank,
            "world_size": self._world,
        }
        self._feed = PairFeed(self._sets, self._order, (self._prepare, pad), config)
        self._pass, self._row = 0, 0
        self._options: dict[str, Any] = {
            "nominal_length": self._length,
            "weights": own,
            "exhausted": exhausted,
            "seed": seed,
            "shuffle": shuffle,
            "pad": pad,
        }
        self._threads = {"threads": threads, "queue_capacity": queue_capacity}
        self._data: list[dict[str, Any]] | None = None
        self._counted = Counted(isinstance(self, PairLoader), seed, self._rank, self._world)
        self._stream: Any = None

    @property
    def rank(self) -> int:
        """Which of `world_size` this is."""
        return self._rank

    @property
    def world_size(self) -> int:
        """How many share the stream."""
        return self._world

    @property
    def epoch(self) -> int:
        """The pass that the next batch belongs to, from 0."""
        return self._pass

    def __len__(self) -> int:
        """Batches of a pass."""
        whole, rest = divmod(self._length, self._batch_size)
        return whole if self._drop or rest == 0 else whole + 1

    def __iter__(self) -> Iterator[Made]:
        """The batches that are left of this pass; iterate again for the next one. Workers of PyTorch take turns."""
        if turns.of_worker() is not None:
            return iter(self._turns())
        return self._left()

    def _turns(self) -> Iterable[Made]:
        """The same batches for a worker of PyTorch, the same one for all its iterations."""
        from gristmill.torch import BatchStream

        if self._stream is None:
            self._stream = BatchStream(self, raw=True)
        stream: Iterable[Made] = self._stream
        return stream

    def _left(self) -> Iterator[Made]:
        epoch = self._pass
        for start in self.starts():
            yield self._next(epoch, start, None)

    def get_next(self, *, timeout: float | None = None) -> Made:
        """The next batch, of the next pass where this one is over; waits for it.

        Raises:
            TimeoutError: `timeout` seconds have passed.
            StoppedError: the loader was stopped, perhaps while this call waited.
        """
        return self._next(self._pass, self.starts()[0], timeout)

    def maybe_get_next(self) -> Made | None:
        """The next batch if it is ready, else `None`."""
        try:
            return self.get_next(timeout=0.0)
        except TimeoutError:
            return None

    def start(self) -> None:
        """Starts the threads that make batches ahead, unless they run already."""
        self._feed.engine((self._pass, self.starts()[0])).start()

    def stop(self) -> list[str]:
        """Stops within a second, and returns the names of threads left behind. Delivered batches stay valid.

        The next call for a batch starts again where the loader stands.
        """
        return self._feed.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def xray(self, batch: int, row: int | None = None) -> list[dict[str, int]]:
        """Which pair stands in each row that this rank has of a past or future batch, counted over all passes.

        Of each `batch`, `row`, `epoch`, `data_set`, `pair` (its number there), `trajectory`, `step`. Nothing is read.

        Raises:
            ConfigError: there is no such batch or row.
        """
        epoch, number = divmod(batch, len(self))
        if not 0 <= epoch < self._passes():
            raise ConfigError(f"batch {batch}; expected one from 0 on", field="batch")
        sources, pairs, _ = self._feed.rows((epoch, number * self._batch_size))
        if row is not None and not 0 <= row < len(pairs):
            raise ConfigError(f"row {row} of batch {batch}, which has {len(pairs)} here", field="row")
        found = []
        for place in range(len(pairs)) if row is None else [row]:
            source, pair = int(sources[place]), int(pairs[place])
            trajectory, step = self._sets[source].ids(pairs[place : place + 1])[0].tolist()
            where = {"data_set": source, "pair": pair, "trajectory": trajectory, "step": step}
            found.append({"batch": batch, "row": place, "epoch": epoch, **where})
        return found

    def _next(self, epoch: int, start: int, timeout: float | None) -> Made:
        """The batch that begins at a row of a pass; the loader stands after it then."""
        after = (epoch, start + self._batch_size)
        if after[1] >= self._end():
            after = (epoch + 1, 0)
        found = self.counted(epoch, start, partial(self._feed.next, (epoch, start), after, timeout))
        self.move(*after)
        return self._constructor.batch(found)

    def counted(self, epoch: int, start: int, wait: Callable[[], Any]) -> Any:
        """What `wait` gives: the batch that begins at a row of a pass, counted among those that were given."""
        rows = -(-(min(self._batch_size, self._length - start) - self._rank) // self._world)
        return self._counted.during(rows, epoch, wait)

    def metrics(self, *, flat: bool = False) -> dict[str, Any]:
        """What was given since the loader was made, and how long the consumer waited for it. Batches are made in its
        thread, or by workers of `gristmill.torch.DataLoader`; workers of PyTorch's own have loaders of their own.

        Args:
            flat: nothing is nested here, so that it changes nothing; as for `DataLoader.metrics`.
        """
        found = self._counted.numbers()
        return {**found, "epoch": self._pass, "rank": self._rank, "world_size": self._world}

    def serve_metrics(self, address: str = "127.0.0.1:0", *, token: str | None = None) -> str:
        """Serves these numbers for as long as the loader lives, as `DataLoader.serve_metrics` does those of streams:
        for Prometheus, and for `gristmill top <address>`. Returns the address with the port that was taken.

        Raises:
            ConfigError: the address cannot be listened on, or the token is missing or too simple.
        """
        return self._counted.serve(address, token)

    def starts(self) -> range:
        """The rows of this pass, counted over all ranks, at which its batches begin that are still to come."""
        return range(self._row, self._end(), self._batch_size)

    def _end(self) -> int:
        """No batch of a pass begins at this row or later."""
        return self._length - self._batch_size + 1 if self._drop else self._length

    def move(self, epoch: int, row: int = 0) -> None:
        """Goes to a row of a pass, or to the pass after it where no batch is left."""
        self._pass, self._row = epoch, row
        if not self.starts():
            self._pass, self._row = epoch + 1, 0

    def set_epoch(self, epoch: int) -> None:
        """Goes to the beginning of a pass.

        Raises:
            ConfigError: there is no such pass; or a loader of accelerate with a state asks, which counts passes again.
        """
        turns.refuse_other_counting()
        if not 0 <= epoch < self._passes():
            raise ConfigError(f"epoch {epoch}; expected 0 to {self._passes() - 1}", field="epoch")
        self.move(epoch)

    def batch_at(self, epoch: int, start: int) -> Made:
        """What this rank has of the batch that begins at a row of a pass; any batch is as near as the next."""
        return self._constructor.batch(self._feed.at((epoch, start)))

    def ring(self, slots: int) -> Ring:
        """Memory for batches of this loader that another process makes.

        Raises:
            OSError: there is none.
        """
        return Ring(self._batch_size // self._world, self._feed.row_bytes, slots)

    def crossing_at(self, epoch: int, start: int, ring: Ring, made: Callable[[dict[str, Any]], Any]) -> Crossing | None:
        """`batch_at` in a slot of `ring`, on its way to the process that made the ring; `None` while no slot is free.

        What arrives is what `made` makes of the values of the batch by name.
        """
        return self._feed.crossing((epoch, start), ring, self._values, made)

    def _values(self, found: dict[str, Any]) -> Any:
        """What a batch of these arrays has, by name."""
        batch: Any = self._constructor.batch(found)
        return vars(batch) if isinstance(batch, PairBatch) else batch

    def state_dict(self) -> dict[str, Any]:
        """Where it stands after the last batch that was taken from it: small, plain, the same for every rank."""
        return self.state_at(self._pass, self._row)

    def state_at(self, epoch: int, row: int) -> dict[str, Any]:
        """The state of a loader that stands at a row of a pass."""
        given = self._order.given(self._place(epoch, row))
        about = self._about()
        state = {"gristmill_pairs_state": standing.VERSION, "pass": epoch, "row": row, "given": given, **about}
        return standing.sealed(state)

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Resumes where another loader of the same data stood, at no cost; batch size and ranks may be others.

        Raises:
            StateError: it is of other data, another seed or configuration (the message has each difference), or says
                nowhere to go.
        """
        standing.check(state, self._about())
        epoch = standing.whole(state, "pass", self._passes())
        row = standing.whole(state, "row", self._length)
        given = self._order.given(self._place(epoch, row))
        if state.get("given") != given:
            raise StateError(f"`given` is {state.get('given')!r}; at row {row} of pass {epoch} it is {given}")
        self.move(epoch, row)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the state to a file, whole or not at all. It is the same on every rank: let one of them write it.

        Folders above the file are made.

        Raises:
            OSError: it cannot be written.
        """
        os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
        _gristmill.write_whole(os.fspath(path), json.dumps(self.state_dict()).encode())

    def load(self, path: str | os.PathLike[str]) -> None:
        """Resumes from a file that `save` wrote.

        Raises:
            OSError: it cannot be read.
            StateError: it is no state, or of something else.
        """
        with open(path, "rb") as file:
            text = file.read()
        try:
            state = json.loads(text)
        except ValueError as error:
            raise StateError(f"{os.fspath(path)}: no state: {error}; take another copy of it") from None
        if not isinstance(state, dict):
            raise StateError(f"{os.fspath(path)}: no state: expected an object, found {type(state).__name__}")
        try:
            self.load_state_dict(state)
        except StateError as error:
            raise StateError(f"{os.fspath(path)}: {error}") from None

    def _about(self) -> dict[str, Any]:
        """What the order and the values depend on."""
        fields = self._constructor.fields()
        if self._data is None:
            self._data = [standing.described(pairs, fields) for pairs in self._sets]
        parts = {"pairs": self._constructor.describe(), "prepare": self._prepare.describe()}
        return {"config": {**self._options, **parts}, "data": self._data}

    def _passes(self) -> int:
        """Passes that an order has room for."""
        return _ROWS // (self._order.length or self._length) - 1

    def _place(self, epoch: int, row: int) -> int:
        """Where a row of a pass stands in the order."""
        return epoch * (self._order.length or self._length) + row

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """The loader as another process makes it again: with the fields that it takes values of, where it stands."""
        data = [pairs.frozen() for pairs in self._sets]
        options = {
            **self._options,
            "batch_size": self._batch_size,
            "drop_last": self._drop,
            "prepare": self._prepare,
            "rank": self._rank,
            "world_size": self._world,
            **self._threads,
        }
        return _again, (type(self), data, self._constructor, options, self._pass, self._row)


class PairLoader(MixedLoader[PairBatch]):
    """Batches of pairs: context, target, extra context and ids.

    loader = gm.PairLoader(datasets, gm.pairs.TemporalOffset("dynamics"), batch_size=384, seed=1)

    A function that makes pairs of a stream of steps is a constructor, too: see `gm.pairs.Generated`. Options are those
    of `MixedLoader`.
    """

    @named_with(Options)
    def __init__(
        self,
        datasets: Sequence[Data] | Data,
        pairs: Constructor[PairBatch] | Generator | None = None,
        *,
        batch_size: int,
        **options: Unpack[Options],
    ) -> None:
        if pairs is not None and not isinstance(pairs, Constructor):
            pairs = Generated(pairs)
        super().__init__(datasets, pairs or Identity(), batch_size=batch_size, **options)


class StepLoader(MixedLoader[StepBatch]):
    """Batches of single steps as dictionaries of their fields.

    loader = gm.StepLoader(datasets, gm.pairs.GAIL, batch_size=48, seed=1)

    Options are those of `MixedLoader`.
    """

    @named_with(Options)
    def __init__(
        self,
        datasets: Sequence[Data] | Data,
        steps: Steps = BC,
        *,
        batch_size: int,
        **options: Unpack[Options],
    ) -> None:
        super().__init__(datasets, steps, batch_size=batch_size, **options)


def _again(
    cls: Callable[..., MixedLoader[Any]],
    data: list[Trajectories],
    constructor: Any,
    options: dict[str, Any],
    epoch: int,
    row: int,
) -> MixedLoader[Any]:
    loader = cls(data, constructor, **options)
    loader.move(epoch, row)
    return loader
