"""The extension module of Lc0's trainer, so that its programs run with only the import changed.

    from gristmill.compat.lczero import DataLoader, DataLoaderConfig

Messages may come from any compilation of the interface: the programs' own, the `.proto` files in `PROTOS`, or the
classes here, such as `DataLoaderConfig`, which need the `protobuf` package. Serialized bytes need nothing.
What those messages have no field for stands in the file that the variable `GRISTMILL_OVERLAY` names: it is laid over
every message. What differs on purpose is in docs/guide/from-lczero.md.
"""

from __future__ import annotations

import functools
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from gristmill import _gristmill
from gristmill.config import DataLoaderConfig as _Config
from gristmill.config import Path as _Path
from gristmill.errors import AliasError, ConfigError, EndOfStream, StoppedError
from gristmill.loaders.loader import DataLoader as _Loader
from gristmill.loaders.states import Missing
from gristmill.records.arrays import Array

#: What batches are made of. Programs import the name beside `DataLoader`.
TensorBase = Array

#: The variable with the path of a configuration, TOML or protobuf text, that is laid over each message.
OVERLAY = "GRISTMILL_OVERLAY"

#: Folder of the `.proto` files: `protoc -I <folder> --python_out=... data_loader_config.proto ...`.
PROTOS = Path(__file__).parent / "protos"

_CONFIG = "lczero.training.DataLoaderConfig"
_REQUEST = "lczero.training.StageControlRequest"
_RESPONSE = "lczero.training.StageControlResponse"

_T = TypeVar("_T")


class LoaderConfigError(ConfigError, RuntimeError):
    """A configuration that cannot run, as both loaders call it."""


class UnknownOutputError(AliasError, RuntimeError):
    """No output has this alias, as both loaders call it."""


class QueueClosed(EndOfStream, StoppedError):  # noqa: N818  (the name that existing programs catch)
    """There are no more batches, as both loaders call it."""


class DataLoader:
    """Batches of a stage graph, which is a `lczero.training.DataLoaderConfig` message or its serialized bytes.

    What the file in `GRISTMILL_OVERLAY` sets is laid over it: plain values and lists replace what the message has,
    tables are laid over field by field, stages by their names; a stage with an `input` that the message does not have
    is added. Tables that a rescorer names and that are missing or damaged are logged as a warning, and the run
    continues without them.

    Raises:
        ValueError: neither such a message nor bytes.
        LoaderConfigError: bytes that are no such message, an overlay that cannot be read, or a graph that cannot run.
    """

    def __init__(self, config: Any) -> None:
        self._config = _read(config)
        self._loader = _build(self._config)
        self._started = False
        _warn(self._loader)

    def add_stages(self, config: Any) -> None:
        """Appends the stages of another configuration before the start; its outputs do not count.

        Raises:
            RuntimeError: the loader has started.
            ValueError, LoaderConfigError: as for a new loader.
        """
        if self._started:
            raise RuntimeError("stages cannot be added after the start")
        more = _read(config)
        joined = _Config.from_dict(self._config.to_dict())
        joined.stage += more.stage
        self._loader, self._config = _build(joined), joined
        _warn(self._loader)

    def start(self) -> None:
        """Starts the loader's threads, once.

        Raises:
            RuntimeError: it has started before.
        """
        if self._started:
            raise RuntimeError("the loader has started before")
        self._loader.start()
        self._started = True

    def stop(self) -> None:
        """Stops within a second; does nothing the second time. Metrics keep their last values."""
        self._loader.stop()

    def get_next(self, alias: str = "") -> tuple[Array, ...]:
        """The next batch of an output as writable NumPy arrays over the loader's memory; waits for it.

        Raises:
            UnknownOutputError: no output has this alias; it lists those there are.
            QueueClosed: the stream has ended, or the loader was stopped.
        """
        try:
            return tuple(self._loader.get_next(alias))
        except (AliasError, EndOfStream, StoppedError) as error:
            raise _both(error) from None

    def maybe_get_next(self, alias: str = "") -> tuple[Array, ...] | None:
        """The next batch if it is ready; `None` if it is not, or if there will be none.

        Raises:
            UnknownOutputError: no output has this alias; it lists those there are.
        """
        try:
            batch = self._loader.maybe_get_next(alias)
        except AliasError as error:
            raise _both(error) from None
        except (EndOfStream, StoppedError):
            return None
        return None if batch is None else tuple(batch)

    def send_control_message(self, request: Any) -> list[tuple[str, Any]]:
        """Sends a `lczero.training.StageControlRequest`, message or bytes, to all stages.

        Returns the name and the response of each stage that answers: class `StageControlResponse` beside the
        request's own class, or of this module for bytes.

        Raises:
            ValueError: neither such a message nor its bytes.
        """
        serialized = _bytes(request, _REQUEST)
        response = _beside(request)
        found = _refusing(self._loader._engine.control_message, serialized)
        return [(name, response.FromString(message)) for name, message in found]

    def get_bucket_metrics(self, period_exponent: int, include_pending: bool) -> tuple[bytes, float]:
        """A serialized `lczero.DataLoaderMetricsProto` of the latest whole period of 2^`period_exponent` seconds,
        and its age in seconds: up to this moment with `include_pending`, else to the last quarter of a second.

        Raises:
            ValueError: a period below a quarter of a second.
        """
        return _refusing(self._loader._engine.bucket_metrics, period_exponent, include_pending)

    def get_aggregate_ending_now(self, duration_seconds: float, include_pending: bool) -> tuple[bytes, float]:
        """A serialized `lczero.DataLoaderMetricsProto` of the last seconds (`inf`: since the start), and the
        seconds that it covers: up to this moment with `include_pending`, else to the last quarter of a second.

        Raises:
            ValueError: a duration that is negative or no number.
        """
        return _refusing(self._loader._engine.aggregate_metrics, duration_seconds, include_pending)

    @property
    def seed(self) -> int | None:
        """Root of every random draw; `None` until one was drawn."""
        return self._loader.seed

    def state_dict(self) -> dict[str, Any]:
        """The state after the last delivered batch: small, plain, and ready at once."""
        return self._loader.state_dict()

    def load_state_dict(
        self, state: Mapping[str, Any] | Sequence[Mapping[str, Any]], *, missing: Missing = "refuse"
    ) -> None:
        """Continues from a state, to the bit; call it before the start. As `gristmill.DataLoader.load_state_dict`.

        Raises:
            StateError: the state belongs to another configuration or other files, or the loader runs already.
        """
        self._loader.load_state_dict(state, missing=missing)

    def save(self, path: _Path) -> None:
        """Writes the state to disk; durable when it returns, and at no moment half written.

        Raises:
            OSError: it cannot be written.
        """
        self._loader.save(path)

    def load(self, path: _Path, *, missing: Missing = "refuse") -> None:
        """Continues from what `save` wrote; call it before the start.

        Raises:
            StateError: as `load_state_dict`.
            OSError: it cannot be read.
        """
        self._loader.load(path, missing=missing)

    def serve_metrics(self, address: str = "127.0.0.1:0", *, token: str | None = None) -> str:
        """Serves the loader's numbers until it stops, for Prometheus and `gristmill top`; starts the loader.

        Returns the address with the port that was taken.

        Raises:
            LoaderConfigError: the address cannot be listened on, or the token is missing or too simple.
        """
        bound = _refusing(self._loader.serve_metrics, address, token=token)
        self._started = True
        return bound


def make_dataloader(config: Any) -> DataLoader:
    """A loader that has started."""
    loader = DataLoader(config)
    loader.start()
    return loader


def _both(error: Exception, more: str = "") -> Exception:
    """The error of ours as one of both loaders, with more words to it."""
    if isinstance(error, ConfigError):
        text = f"{error}{more}"
        return LoaderConfigError(text, stage=error.stage, field=error.field, line=error.line, column=error.column)
    if isinstance(error, AliasError):
        return UnknownOutputError(str(error))
    return QueueClosed(f"Queue is closed: {error}")


def _refusing(call: Callable[..., _T], *args: Any, **options: Any) -> _T:
    try:
        return call(*args, **options)
    except ConfigError as error:
        raise _both(error) from None


def _read(config: Any) -> _Config:
    """What a message says, with tables of rescorers that may be missing, as they may to those who wrote it."""
    read: _Config = _refusing(_Config.from_proto_bytes, _bytes(config, _CONFIG))
    for stage in read.stage:
        # As the Lc0 trainer does where the first games are yet to come.
        if stage.file_path_provider is not None and stage.file_path_provider.watch is None:
            stage.file_path_provider.watch = True
    for stage in read.stage:
        if stage.chunk_rescorer is not None:
            stage.chunk_rescorer.allow_missing_tables = True
    return read


def _build(config: _Config) -> _Loader:
    """A loader of a message with the overlay, if there is one, laid over it."""
    path = os.environ.get(OVERLAY)
    if not path:
        return _refusing(_Loader, config)
    try:
        return _Loader(config.overlaid(path))
    except ConfigError as error:
        raise _both(error, f" ({OVERLAY}={path} is laid over the message)") from None
    except (OSError, UnicodeDecodeError) as error:
        raise LoaderConfigError(f"{OVERLAY} names a file that cannot be read: {path}: {error}") from None


def _warn(loader: _Loader) -> None:
    """Logs what a loader runs without."""
    for warning in loader._engine.warnings():
        logging.getLogger(__name__).warning("%s", warning)


def _bytes(message: Any, expected: str) -> bytes:
    """Serialized bytes of a message, which may be serialized already."""
    if isinstance(message, bytes | bytearray | memoryview):
        return bytes(message)
    descriptor, serialize = getattr(message, "DESCRIPTOR", None), getattr(message, "SerializeToString", None)
    if descriptor is None or not callable(serialize):
        raise ValueError(f"expected a {expected} message or its bytes, found {type(message).__name__}")
    if descriptor.full_name != expected:
        raise ValueError(f"expected a {expected} message, found a {descriptor.full_name}")
    serialized: bytes = serialize()
    return serialized


def _beside(request: Any) -> Any:
    """The class of responses that belongs to a request."""
    descriptor = getattr(request, "DESCRIPTOR", None)
    if descriptor is None:
        return _class(_RESPONSE)
    factory = _protobuf("message_factory")
    return factory.GetMessageClass(descriptor.file.pool.FindMessageTypeByName(_RESPONSE))


def _protobuf(module: str) -> Any:
    import importlib

    try:
        return importlib.import_module(f"google.protobuf.{module}")
    except ImportError:
        raise ImportError("message classes need the `protobuf` package: pip install protobuf") from None


@functools.cache
def _pool() -> Any:
    """The interface's messages, apart from those that a program has compiled itself."""
    pool = _protobuf("descriptor_pool").DescriptorPool()
    for file in _protobuf("descriptor_pb2").FileDescriptorSet.FromString(_gristmill.proto_descriptors()).file:
        pool.Add(file)
    return pool


def _class(name: str) -> Any:
    return _protobuf("message_factory").GetMessageClass(_pool().FindMessageTypeByName(name))


def __getattr__(name: str) -> Any:
    """Message classes by their names, such as `DataLoaderConfig` and `StageControlRequest`."""
    if not name.startswith("_"):
        for package in ("lczero.training", "lczero"):
            try:
                made = _class(f"{package}.{name}")
            except KeyError:
                continue
            globals()[name] = made
            return made
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
