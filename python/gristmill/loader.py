"""The loader: batches from a configuration, for as long as they are wanted."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from gristmill import _gristmill
from gristmill.arrays import Array
from gristmill.batch import Batch
from gristmill.config import DataLoaderConfig, to_json
from gristmill.errors import ConfigError, EndOfStream


@dataclass(frozen=True)
class TensorSpec:
    """Name, NumPy type string and shape of one row of a tensor."""

    name: str
    dtype: str
    row_shape: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """What a loader delivers under one alias."""

    alias: str
    batch_size: int
    tensors: tuple[TensorSpec, ...]


class DataLoader:
    """Delivers the batches that a `DataLoaderConfig` describes.

    Nothing runs until `start`, `with`, or the first batch is asked for. Any thread may ask; each batch is
    delivered once. While a call waits, other Python threads run and Ctrl-C interrupts it. A loader belongs to
    the process that made it: a forked child gets `ForkedError`, and may drop its copy.

    Raises:
        ConfigError: the configuration cannot run; it names the stage and field.
    """

    def __init__(self, config: DataLoaderConfig | Mapping[str, Any]) -> None:
        values = config.to_dict() if isinstance(config, DataLoaderConfig) else config
        try:
            self._engine = _gristmill.Loader(to_json(values))
        except ConfigError as error:
            if isinstance(config, DataLoaderConfig):
                raise config.locate(error) from None
            raise

    @property
    def config(self) -> DataLoaderConfig:
        """The configuration, with the seed that was drawn for it once the loader has started."""
        return DataLoaderConfig.from_json(self._engine.config())

    @property
    def outputs(self) -> dict[str, Output]:
        """What is delivered, by alias."""
        described = (
            Output(alias, rows, tuple(TensorSpec(name, dtype, tuple(shape)) for name, dtype, shape in tensors))
            for alias, rows, tensors in self._engine.outputs()
        )
        return {output.alias: output for output in described}

    def start(self) -> None:
        """Starts the loader's threads, unless they run already."""
        self._engine.start()

    def stop(self) -> list[str]:
        """Stops within a second and returns the names of threads left behind in a read that hangs.

        Batches that were delivered stay valid; later calls raise `StoppedError`.
        """
        return self._engine.stop()

    def get_next(self, alias: str = "", *, timeout: float | None = None) -> Batch:
        """The next batch of an output; waits for it.

        Raises:
            EndOfStream: there are no more; only finite streams end.
            TimeoutError: `timeout` seconds have passed.
            FormatError: a bad chunk, with `bad_chunks="raise"`.
            StageError: a stage cannot go on.
            StoppedError: the loader was stopped, perhaps while this call waited.
        """
        batch = self._next(alias, timeout)
        if batch is None:
            raise TimeoutError(f"no batch within {timeout} seconds")
        return batch

    def maybe_get_next(self, alias: str = "") -> Batch | None:
        """The next batch if it is ready, else `None`. Raises like `get_next`."""
        return self._next(alias, 0.0)

    def batches(self, alias: str = "") -> Iterator[Batch]:
        """Iterates over an output until its stream ends."""
        while True:
            try:
                batch = self.get_next(alias)
            except EndOfStream:
                return
            yield batch

    def state_dict(self) -> dict[str, Any]:
        """The state after the last delivered batch: small, plain, and ready at once."""
        state: dict[str, Any] = json.loads(self._engine.state())
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continues from a state, to the bit; call it before the loader starts.

        Raises:
            StateError: the state belongs to another configuration or other files, or the loader runs already.
        """
        self._engine.restore(to_json(state))

    def metrics(self) -> dict[str, Any]:
        """Load per stage, queues, pool and reservoir, bad chunks and drops: now and since start."""
        values: dict[str, Any] = json.loads(self._engine.metrics())
        return values

    def serve_metrics(self, address: str = "127.0.0.1:0", *, token: str | None = None) -> str:
        """Serves the loader's numbers until it stops; starts it. Returns the address with the port that was taken.

        `http://<address>/metrics` is text for Prometheus, `/status` what `gristmill top <address>` shows. With a
        token (at least 16 characters) readers have to send `Authorization: Bearer <token>`; an address that other
        machines can reach needs one.

        Raises:
            ConfigError: the address cannot be listened on, or the token is missing or too simple.
        """
        return self._engine.serve_metrics(address, token)

    def source_path(self, source: int) -> str | None:
        """The file that a source number in the tensor `ids` stands for."""
        return self._engine.source_path(source)

    def _next(self, alias: str, timeout: float | None) -> Batch | None:
        found = self._engine.next(alias, timeout)
        if found is None:
            return None
        number, rows, columns = found
        arrays = {name: Array.over(memory, tuple(shape), dtype) for name, dtype, shape, memory in columns}
        return Batch(number, rows, arrays)

    def __iter__(self) -> Iterator[Batch]:
        return self

    def __next__(self) -> Batch:
        try:
            return self.get_next()
        except EndOfStream:
            raise StopIteration from None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def __del__(self) -> None:
        engine = getattr(self, "_engine", None)
        if engine is not None:
            engine.stop()

    def __repr__(self) -> str:
        return f"DataLoader({', '.join(map(repr, self.outputs.values()))})"
