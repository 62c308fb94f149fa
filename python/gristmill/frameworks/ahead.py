"""Batches of any loader that are on their way to a device while a step runs. Imports neither JAX nor PyTorch.

No thread: a copy is begun in the call that asks for a batch, and goes on beside the step.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, NamedTuple, NoReturn, Protocol, Self, TypeAlias

from gristmill.demos.mixing import MixedLoader
from gristmill.errors import ConfigError, EndOfStream, StoppedError
from gristmill.frameworks import turns
from gristmill.loaders.batch import Batch
from gristmill.loaders.loader import DataLoader
from gristmill.loaders.sources import advice

#: Begins to bring a batch over; what it gives is called when a step takes the batch.
Bring: TypeAlias = Callable[[Any], Callable[[], dict[str, Any]]]


class _Source(Protocol):
    """What a feed asks of a loader."""

    def passes(self) -> int:
        """Which pass the next batch belongs to that a step is given."""

    def take(self, timeout: float | None) -> Any:
        """The next batch; `None` where there is none within `timeout`. `EndOfStream` where there is none left."""

    def used(self) -> None:
        """Counts the oldest batch that was taken as given to a step."""

    def state(self) -> dict[str, Any]:
        """Where the loader stands after what was given to steps."""


class _Batches:
    """Of a `DataLoader`, which counts batches itself."""

    def __init__(self, loader: DataLoader, alias: str) -> None:
        self._loader, self._alias = loader, alias

    def passes(self) -> int:
        return self._loader._engine.passes_ended(self._alias)

    def take(self, timeout: float | None) -> Any:
        return self._loader._next(self._alias, timeout, at_once=False)

    def used(self) -> None:
        self._loader._engine.count(self._alias)

    def state(self) -> dict[str, Any]:
        return self._loader.state_dict()


class _Pairs:
    """Of a `PairLoader` or `StepLoader`, which stands at a pass and a row."""

    def __init__(self, loader: MixedLoader[Any]) -> None:
        self._loader = loader
        self._stands = self._place()
        self._later: deque[tuple[int, int]] = deque()

    def _place(self) -> tuple[int, int]:
        return self._loader.epoch, self._loader.starts().start

    def passes(self) -> int:
        return self._stands[0]

    def take(self, timeout: float | None) -> Any:
        try:
            batch = self._loader.get_next(timeout=timeout)
        except TimeoutError:
            return None
        self._later.append(self._place())
        return batch

    def used(self) -> None:
        self._stands = self._later.popleft()

    def state(self) -> dict[str, Any]:
        return self._loader.state_at(*self._stands)


class _Coming(NamedTuple):
    """A batch that is on its way."""

    arrive: Callable[[], dict[str, Any]]
    rows: int


class _Stuck(NamedTuple):
    """A batch that cannot be brought over, or was lost on its way: the feed goes no further."""

    error: Exception


class DeviceFeed:
    """The batches of a loader on a device, some of them on their way while a step runs; `gristmill.jax.feed` and
    `gristmill.torch.feed` make it.

        for batch in feed: ...                     # what is left of a pass; loop again for the next one
        state = feed.state_dict()                  # after the last batch that the loop took

    Asked for a batch, it begins to bring over those that the loader has ready, up to `ahead` more, and waits for none
    but the next one. So the device has at most `ahead` batches beside the one that was given. Each batch
    is a dictionary of arrays by name; `rows` says how many rows of the last one are real.

    An error of the loader is raised at the batch where it belongs, after all batches before it. An interrupt or a
    timeout loses none. The output of the loader is the feed's: take no batch of it elsewhere.
    """

    def __init__(self, loader: DataLoader | MixedLoader[Any], alias: str, ahead: int, bring: Bring) -> None:
        if isinstance(ahead, bool) or not isinstance(ahead, int) or ahead < 0:
            raise ValueError(f"ahead={ahead!r}; expected how many batches may be on their way, such as 2, or 0")
        if isinstance(loader, DataLoader):
            _check_alias(loader, alias)
        elif not isinstance(loader, MixedLoader):
            raise TypeError(f"expected a loader of gristmill, found {type(loader).__name__}")
        elif alias:
            raise TypeError("`alias` belongs to a DataLoader of several outputs")
        self._loader, self._alias, self._ahead, self._bring = loader, alias, ahead, bring
        self._begin_again()
        self._closed, self._rows = False, 0

    def _begin_again(self) -> None:
        loader = self._loader
        source = _Batches(loader, self._alias) if isinstance(loader, DataLoader) else _Pairs(loader)
        self._source: _Source = source
        # Batches that come, and an error of the loader at its place.
        self._queue: deque[_Coming | _Stuck | Exception] = deque()
        # The pass that is gone over, whether a batch of it was given, and whether the loader has no more.
        self._pass: int | None = None
        self._begun, self._over = False, False

    @property
    def alias(self) -> str:
        """Which output of the loader it feeds."""
        return self._alias

    @property
    def ahead(self) -> int:
        """How many batches may be on their way."""
        return self._ahead

    @property
    def rows(self) -> int:
        """Rows of the last batch that hold data; fewer than its arrays have only in a padded last batch."""
        return self._rows

    def __len__(self) -> int:
        """Batches of a pass.

        Raises:
            TypeError: their number is unknown.
        """
        return len(self._loader)

    def __bool__(self) -> bool:
        return True

    def __iter__(self) -> Self:
        """What is left of a pass.

        Raises:
            ConfigError: in a worker of PyTorch's `DataLoader`, which has no batches of its own to bring.
        """
        if turns.of_worker() is not None:
            raise ConfigError(
                "a feed brings batches to the process that steps: take num_workers=0", field="num_workers"
            )
        return self

    def __next__(self) -> dict[str, Any]:
        """The next batch of the pass. Raises as the loader's own loop does."""
        found = self._take(None)
        if found is None:
            raise StopIteration
        return found

    def get_next(self, *, timeout: float | None = None) -> dict[str, Any]:
        """The next batch, of the next pass where one is over; waits for it.

        Raises:
            EndOfStream: there are no more.
            TimeoutError: `timeout` seconds have passed. Nothing is lost.
            StoppedError: the feed was closed, or the loader stopped.
        """
        while True:
            found = self._take(timeout)
            if found is not None:
                return found

    def _take(self, timeout: float | None) -> dict[str, Any] | None:
        """The next batch; `None` where a pass is over."""
        if self._closed:
            raise StoppedError("the feed was closed; make another one of a loader that was given its state")
        passes = self._source.passes()
        if self._pass is None:
            self._pass, self._begun = passes, False
        elif self._pass != passes:
            self._pass = None
            return None
        try:
            if not self._queue:
                self._pull(timeout)
        except EndOfStream as over:
            if not self._begun:
                raise EndOfStream(self._advised(over)) from None
            self._pass = None
            return None
        # The step before runs still, where it runs beside this process.
        while len(self._queue) <= self._ahead and self._pull(0.0):
            pass
        found = self._queue[0]
        if isinstance(found, _Stuck):
            raise found.error
        if isinstance(found, _Coming):
            self._source.used()
        self._queue.popleft()
        if isinstance(found, Exception):
            raise found
        self._begun, self._rows = True, found.rows
        return found.arrive()

    def _pull(self, timeout: float | None) -> bool:
        """Takes the next batch of the loader, or its error, into the queue; `False` where none is ready.

        Raises:
            EndOfStream: the queue is empty, and there is none left.
            TimeoutError: the queue is empty, and `timeout` seconds have passed.
        """
        if self._queue and (self._over or not isinstance(self._queue[-1], _Coming)):
            return False
        try:
            batch = self._source.take(timeout)
        except EndOfStream:
            if not self._queue:
                raise
            self._over = True
            return False
        except Exception as error:
            self._queue.append(error)
            return True
        if batch is None:
            if self._queue:
                return False
            raise TimeoutError(f"no batch within {timeout} seconds")
        try:
            rows = getattr(batch, "rows", None)
            self._queue.append(_Coming(self._bring(batch), _length(batch) if rows is None else rows))
        except Exception as error:
            self._queue.append(_Stuck(error))
        except BaseException:
            self._queue.append(_Stuck(StoppedError("a batch was lost when it was interrupted; load feed.state_dict()")))
            raise
        return True

    def _advised(self, over: EndOfStream) -> str:
        known = advice(self._loader._engine.config()) if isinstance(self._loader, DataLoader) else ""
        return f"{over}; {known}" if known else str(over)

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader after the last batch that was taken from here, however many are on their way.

        Of a `DataLoader` with several outputs it is that of all its feeds, and of what was taken from it directly.
        """
        return self._source.state()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next batch is the one after those that the state has; a `DataLoader` that runs starts again for it.

        Raises:
            StateError: it is of other data or another configuration.
        """
        loader = self._loader
        if isinstance(loader, DataLoader) and loader._begun:
            turns.renew(loader)
        loader.load_state_dict(state)
        self._begin_again()

    def close(self) -> None:
        """Lets go of what is on its way, and stops the loader; what was given stays valid. Twice does no harm."""
        self._queue.clear()
        if not self._closed:
            self._closed = True
            self._loader.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a feed belongs to its process and device; send its state_dict(), and take num_workers=0")

    def __repr__(self) -> str:
        return f"DeviceFeed({self._loader!r}, ahead={self._ahead}, on_their_way={len(self._queue)})"


def pin(batch: Any, device: int) -> None:
    """Lets GPUs read the memory of a loader's batch, which the loader uses again: once for each sheet, not each batch.

    `device` is the number of a GPU that this process uses. Other batches, and what its driver refuses, are left.
    """
    for array in batch.values() if isinstance(batch, Batch) else ():
        memory = array.memory()
        if memory is None or not memory.pin(device):
            return


def _check_alias(loader: DataLoader, alias: str) -> None:
    known = loader.outputs
    if alias not in known and (alias or len(known) > 1):
        raise ConfigError(
            f"no output is called {alias!r}; expected alias= of {', '.join(map(repr, known))}", field="alias"
        )


def _length(batch: Any) -> int:
    """Rows of a batch of pairs or steps."""
    values = batch.asdict() if hasattr(batch, "asdict") else batch
    return next((len(array) for array in values.values()), 0)
