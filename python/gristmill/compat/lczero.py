"""The extension module of Lc0's trainer, so that its programs run with only the import changed.

    from gristmill.compat.lczero import DataLoader, DataLoaderConfig

Messages may come from any compilation of the interface: the programs' own, the `.proto` files in `PROTOS`, or the
classes here, such as `DataLoaderConfig`, which need the `protobuf` package. Serialized bytes need nothing.
What differs on purpose is in docs/guide/from-lczero.md.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from gristmill import _gristmill
from gristmill.arrays import Array
from gristmill.config import DataLoaderConfig as _Config
from gristmill.errors import AliasError, ConfigError, EndOfStream, StoppedError
from gristmill.loader import DataLoader as _Loader

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

    Raises:
        ValueError: neither such a message nor bytes.
        LoaderConfigError: bytes that are no such message, or a graph that cannot run.
    """

    def __init__(self, config: Any) -> None:
        self._config = _read(config)
        self._loader = _build(self._config)
        self._started = False

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
        found = _refusing(_engine(self._loader).control_message, serialized)
        return [(name, response.FromString(message)) for name, message in found]

    def get_bucket_metrics(self, period_exponent: int, include_pending: bool) -> tuple[bytes, float]:
        """A serialized `lczero.DataLoaderMetricsProto` of the latest whole period of 2^`period_exponent` seconds,
        and its age in seconds: up to this moment with `include_pending`, else to the last quarter of a second.

        Raises:
            ValueError: a period below a quarter of a second.
        """
        return _refusing(_engine(self._loader).bucket_metrics, period_exponent, include_pending)

    def get_aggregate_ending_now(self, duration_seconds: float, include_pending: bool) -> tuple[bytes, float]:
        """A serialized `lczero.DataLoaderMetricsProto` of the last seconds (`inf`: since the start), and the
        seconds that it covers: up to this moment with `include_pending`, else to the last quarter of a second.

        Raises:
            ValueError: a duration that is negative or no number.
        """
        return _refusing(_engine(self._loader).aggregate_metrics, duration_seconds, include_pending)


def make_dataloader(config: Any) -> DataLoader:
    """A loader that has started."""
    loader = DataLoader(config)
    loader.start()
    return loader


def _both(error: Exception) -> Exception:
    """The error of ours as one of both loaders."""
    if isinstance(error, ConfigError):
        return LoaderConfigError(str(error), stage=error.stage, field=error.field, line=error.line, column=error.column)
    if isinstance(error, AliasError):
        return UnknownOutputError(str(error))
    return QueueClosed(f"Queue is closed: {error}")


def _engine(loader: _Loader) -> _gristmill.Loader:
    """What interprets messages below a loader of a graph."""
    engine = loader._engine
    assert isinstance(engine, _gristmill.Loader)
    return engine


def _refusing(call: Callable[..., _T], *args: Any) -> _T:
    try:
        return call(*args)
    except ConfigError as error:
        raise _both(error) from None


def _read(config: Any) -> _Config:
    return _refusing(_Config.from_proto_bytes, _bytes(config, _CONFIG))


def _build(config: _Config) -> _Loader:
    return _refusing(_Loader, config)


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
