"""Pairs or steps of data sets, which the engine's threads make, behind the calls that all its loaders answer."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from gristmill import _gristmill
from gristmill.demos.mixing import MixedLoader
from gristmill.errors import AliasError, ConfigError, StateError
from gristmill.pairs import Constructor, PairBatch

#: What a batch has under a name: type and shape of an array, and the array; or a list as it is.
_Column = tuple[str, str, list[int], Any]

#: Options that the engine alone knows.
_OF_ENGINE = ("epochs", "skip", "ledger")


class PairEngine:
    """A `_gristmill.Loader` of pairs, whose batches have what stands beside arrays, too."""

    def __init__(self, data: Sequence[Any], constructor: Constructor[Any], options: Mapping[str, Any]) -> None:
        own = dict(options)
        self._config: dict[str, Any] = {name: own.pop(name) for name in _OF_ENGINE if name in own}
        self._config["apart"] = not own.pop("joined", False)
        seed: int | None = own.pop("seed", None)
        self._make: Callable[[int], MixedLoader[Any]] = lambda seed: MixedLoader(data, constructor, seed=seed, **own)
        # Made twice where the seed comes with a state.
        self._loader = self._make(int.from_bytes(os.urandom(8)) >> 1 if seed is None else seed)
        self._drawn = seed is None
        self._made: _gristmill.Loader | None = None

    @property
    def _engine(self) -> _gristmill.Loader:
        """Made at the first call, which reads some values of the data for its hash."""
        if self._made is None:
            import hashlib

            about = self._loader._about()
            names = ("pairs", "prepare", "pad")
            encoding = json.dumps({name: about["config"][name] for name in names})
            digest = hashlib.blake2b(json.dumps(about["data"]).encode(), digest_size=8).digest()
            self._made = self._loader._feed.whole((int.from_bytes(digest, "little"), encoding), self._config)
        return self._made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._engine, name)

    def seed(self) -> int | None:
        """Root of the order; `None` until one was drawn."""
        return None if self._drawn else int(self._loader._options["seed"])

    def rows(self) -> int:
        """Rows of a pass, of all ranks together."""
        return self._loader._length

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
        self._drawn = False
        self._engine.start()

    def next(self, alias: str, timeout: float | None) -> tuple[int, int, list[_Column]] | None:
        """The next batch; `None` when `timeout` seconds have passed.

        Raises:
            EndOfStream: there is none.
            AliasError: another output is wanted.
            StoppedError: the loader was stopped.
        """
        self._drawn = False
        engine = self._engine
        found = engine.next(alias, timeout)
        if found is None:
            return None
        number, rows, columns = found

        def places() -> list[int]:
            return [row for _, row in engine.placed(number)]

        made = self._loader._feed.named(places, [column[3] for column in columns], rows)
        values = _values(self._loader._constructor.batch(made))
        return number, rows, [_column(name, value) for name, value in values.items()]

    def xray(self, batch: int, row: int | None, alias: str, survey: bool) -> str:
        """Which pair stands in each row of a batch, in JSON.

        Raises:
            ConfigError: there is no such batch or row.
            AliasError: another output is wanted.
        """
        if alias:
            raise AliasError(f"no output is called `{alias}`; this loader has: only the nameless one")
        places = self._engine.placed(batch)
        if not places:
            text = f"there is no batch {batch}: the plan has {self._engine.batches()} batches"
            raise ConfigError(text, field="batch")
        if row is not None and not 0 <= row < len(places):
            raise ConfigError(f"row {row} of batch {batch}, which has {len(places)} here", field="row")
        sources, pairs = self._loader._feed.found([place for _, place in places])
        found = []
        for at in range(len(places)) if row is None else [row]:
            source, pair = int(sources[at]), int(pairs[at])
            trajectory, step = self._loader._sets[source].ids(pairs[at : at + 1])[0].tolist()
            where = {"data_set": source, "pair": pair, "trajectory": trajectory, "step": step}
            found.append({"batch": batch, "row": at, "epoch": places[at][0], **where})
        return json.dumps(found)

    def state(self) -> str:
        """Where it stands, in JSON; its seed holds from here on."""
        self._drawn = False
        return self._engine.state()

    def restore(self, text: str, missing: str) -> None:
        """Takes a state over: one of its own, or one of a loader of pairs of before.

        Raises:
            StateError: it is of something else, or a batch was given.
        """
        state = json.loads(text)
        if not isinstance(state, dict):
            raise StateError("one state is the whole of pairs and steps, the same for all ranks; found parts")
        of_pairs = "gristmill_pairs_state" in state
        config = state.get("config")
        seed = (config.get("seed") if isinstance(config, dict) else None) if of_pairs else state.get("seed")
        if self._drawn and isinstance(seed, int):
            # The seed of a state holds where none was given.
            self._loader, self._made = self._make(seed), None
        if of_pairs:
            self._loader.load_state_dict(state)
            self._engine.seek_row(self._loader.epoch, self._loader._row)
        else:
            self._engine.restore(text, missing)
        self._drawn = False

    def load(self, path: str | os.PathLike[str], missing: str) -> None:
        """Takes over what was saved.

        Raises:
            StateError: as of `restore`; it is no state.
            OSError: it cannot be read.
        """
        with open(path, "rb") as file:
            text = file.read()
        try:
            self.restore(text.decode(), missing)
        except (ValueError, StateError) as error:
            raise StateError(f"{os.fspath(path)}: {error}") from None


def _values(made: Any) -> dict[str, Any]:
    return made.asdict() if isinstance(made, PairBatch) else made


def _column(name: str, value: Any) -> _Column:
    if isinstance(value, list):
        return name, "O", [len(value)], value
    array = np.ascontiguousarray(value)
    return name, array.dtype.str, list(array.shape), array
