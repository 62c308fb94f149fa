"""Pairs or steps of data sets, which the engine's threads make, behind the calls that all its loaders answer."""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gristmill.demos.mixing import MixedLoader
from gristmill.errors import AliasError, ConfigError, EndOfStream, StateError, StoppedError
from gristmill.pairs import Constructor, PairBatch

#: What a batch has under a name: type and shape of an array, and the array; or a list as it is.
_Column = tuple[str, str, list[int], Any]


class MixedEngine:
    """What `_gristmill.Loader` answers, of pairs and steps."""

    def __init__(self, data: Sequence[Any], constructor: Constructor[Any], options: Mapping[str, Any]) -> None:
        own = dict(options)
        self._epochs: int | None = own.pop("epochs", None)
        self._seed: int | None = own.pop("seed", None)
        self._make: Callable[[int], MixedLoader[Any]] = lambda seed: MixedLoader(data, constructor, seed=seed, **own)
        # Made twice where the seed comes with a state.
        self._loader = self._make(secrets.randbits(63) if self._seed is None else self._seed)
        self._drawn = self._seed is None
        self._lock = threading.Lock()
        self._ended = 0
        self._begun = self._stopped = False

    def config(self) -> str:
        """What `advice` looks at: epochs and seed, in JSON."""
        return json.dumps({"epochs": self._epochs, "seed": self.seed()})

    def stages(self) -> str:
        """None.

        Raises:
            TypeError: always.
        """
        raise TypeError("a loader of rows has no stages; see `seed` and `num_batches`")

    def seed(self) -> int | None:
        """Root of the order; `None` until one was drawn."""
        return None if self._drawn else int(self._loader._options["seed"])

    def rows(self) -> int:
        """Rows of a pass, of all ranks together."""
        return self._loader._length

    def batches(self) -> int | None:
        """Batches in all passes; `None` without an end."""
        return None if self._epochs is None else self._epochs * len(self._loader)

    def epoch(self) -> int | None:
        """The pass that the next batch belongs to; `None` after the last."""
        return None if self._over() else self._loader.epoch

    def length(self) -> int:
        """Batches of a pass."""
        return len(self._loader)

    def passes_ended(self, alias: str) -> int:
        """How many passes ended with batches that were given."""
        return self._ended

    def outputs(self) -> list[tuple[str, int, list[tuple[str, str, list[int]]]]]:
        """The one output."""
        made = _values(self._loader.batch_at(0, 0)).items()
        tensors = [
            (name, value.dtype.str, list(value.shape[1:])) for name, value in made if not isinstance(value, list)
        ]
        return [("", self._loader._batch_size // self._loader.world_size, tensors)]

    def start(self) -> None:
        """Starts the threads, unless they run already.

        Raises:
            StoppedError: after a stop.
        """
        self._begin()
        self._loader.start()

    def _begin(self) -> None:
        if self._stopped:
            raise StoppedError("the loader was stopped")
        self._begun, self._drawn = True, False

    def stop(self) -> list[str]:
        """Stops the threads within a second; gives the names of those that were left behind."""
        self._stopped = True
        return self._loader.stop()

    def next(self, alias: str, timeout: float | None) -> tuple[int, int, list[_Column]] | None:
        """The next batch; `None` when `timeout` seconds have passed.

        Raises:
            EndOfStream: there is none.
            AliasError: another output is wanted.
        """
        _check(alias)
        with self._lock:
            self._begin()
            if self._over():
                raise EndOfStream("the stream has ended")
            loader, epoch, start = self._loader, self._loader.epoch, self._loader.starts()[0]
            try:
                made = loader.get_next(timeout=timeout)
            except TimeoutError:
                return None
            self._ended += loader.epoch - epoch
        values = _values(made)
        number = epoch * len(loader) + start // loader._batch_size
        rows = len(next(iter(values.values())))
        return number, rows, [_column(name, value) for name, value in values.items()]

    def seek(self, batch: int) -> None:
        """Goes to a batch.

        Raises:
            StateError: after the last one, or a batch was given.
        """
        if self._begun:
            raise StateError("the loader has started; seek in a new one")
        known = self.batches()
        if known is not None and batch > known:
            raise StateError(f"batch {batch} of {known}; raise epochs, or start again")
        epoch, place = divmod(batch, len(self._loader))
        self._loader.move(epoch, place * self._loader._batch_size)

    def xray(self, batch: int, row: int | None, alias: str, survey: bool) -> str:
        """Which pair stands in each row of a batch, in JSON.

        Raises:
            ConfigError: there is no such batch or row.
            AliasError: another output is wanted.
        """
        _check(alias)
        if (known := self.batches()) is not None and batch >= known:
            raise ConfigError(f"there is no batch {batch}: the plan has {known} batches", field="batch")
        return json.dumps(self._loader.xray(batch, row))

    def metrics(self) -> str:
        """What was given, in JSON."""
        return self._loader._counted._engine.metrics()

    def serve_metrics(self, address: str, token: str | None) -> str:
        """Serves the numbers; gives the address with its port."""
        return self._loader.serve_metrics(address, token=token)

    def state(self) -> str:
        """Where it stands, in JSON; its seed holds from here on."""
        self._drawn = False
        return json.dumps(self._loader.state_dict())

    def restore(self, text: str, missing: str) -> None:
        """Takes a state over.

        Raises:
            StateError: it is of something else, or a batch was given.
        """
        state = json.loads(text)
        if not isinstance(state, dict):
            raise StateError("one state is the whole of pairs and steps, the same for all ranks; found parts")
        self._seeded(state)
        self._loader.load_state_dict(state)

    def save(self, path: Any) -> None:
        """Writes the state, of rank 0."""
        if self._loader.rank == 0:
            self._loader.save(path)

    def load(self, path: Any, missing: str) -> None:
        """Takes over what was saved.

        Raises:
            StateError: as of `restore`.
        """
        with open(path, "rb") as file, contextlib.suppress(ValueError):
            self._seeded(json.loads(file.read()))
        self._loader.load(path)

    def _seeded(self, state: Any) -> None:
        """The seed of a state holds where none was given."""
        if self._begun:
            raise StateError("the loader has started; restore into a new one")
        config = state.get("config") if isinstance(state, dict) else None
        seed = config.get("seed") if isinstance(config, dict) else None
        if self._drawn and isinstance(seed, int):
            self._loader = self._make(seed)

    def _over(self) -> bool:
        return self._epochs is not None and self._loader.epoch >= self._epochs

    def vanished(self) -> list[Any]:
        """Nothing is missing: the data is open."""
        return []

    def oldest_needed(self) -> dict[str, Any]:
        """No file may go."""
        return {}

    def control(self, reset: bool, anchor: str | None) -> list[Any]:
        """There is no pool."""
        return []

    def source_path(self, source: int) -> None:
        """There are no numbers of files."""
        return

    def newest_event(self) -> int:
        """Nothing happens by itself."""
        return 0


def _check(alias: str) -> None:
    if alias:
        raise AliasError(f"no output is called `{alias}`; this loader has: only the nameless one")


def _values(made: Any) -> dict[str, Any]:
    return made.asdict() if isinstance(made, PairBatch) else made


def _column(name: str, value: Any) -> _Column:
    if isinstance(value, list):
        return name, "O", [len(value)], value
    array = np.ascontiguousarray(value)
    return name, array.dtype.str, list(array.shape), array
