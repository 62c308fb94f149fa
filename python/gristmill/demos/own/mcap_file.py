"""The messages of an MCAP file by topic, decoded: JSON, protobuf, and CDR of ROS 2; every bound and checksum held."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE
from gristmill.demos.minari.pictures import PICTURES, pictures
from gristmill.demos.own.episodes import fault
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: When a message was logged, in nanoseconds: every topic has it.
TIME = "log_time"

#: Values within each other.
_DEPTH = 16

#: What a message lacks.
_NOTHING = "nothing"

#: What a value takes in memory beside its bytes.
_BESIDE = 64


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture in a message, PNG or JPEG."""

    file: bytes

    @property
    def nbytes(self) -> int:
        """Bytes of the file."""
        return len(self.file)


class Topic:
    """The messages of a topic, in the order of their times."""

    def __init__(self, path: str, name: str, max_bytes: int) -> None:
        self._path, self._name, self._max_bytes = path, name, max_bytes
        self._times: list[int] = []
        self._values: dict[str, list[Any]] = {}
        #: Values that are no column, and why.
        self.others: dict[str, str] = {}

    def add(self, time: int, values: Mapping[str, Any]) -> int:
        """Takes a message; returns how many bytes of memory it takes."""
        number, size = len(self._times), _BESIDE
        self._times.append(time)
        for name in [*values, *(name for name in self._values if name not in values)]:
            value, there = values.get(name, _NOTHING), self._values.setdefault(name, [])
            if name in self.others:
                continue
            if value is _NOTHING or len(there) != number:
                lacking = number if value is _NOTHING else number - 1
                self.others[name] = f"message {lacking} has no such value"
            elif isinstance(value, str):
                self.others[name] = value
            elif there and isinstance(value, Picture) != isinstance(there[0], Picture):
                self.others[name] = f"message {number} differs from message 0 in whether it is a picture"
            elif there and not isinstance(value, Picture) and np.shape(value) != np.shape(there[0]):
                shapes = f"message {number} has the shape {np.shape(value)}, message 0 {np.shape(there[0])}"
                self.others[name] = f"{shapes}; expected one shape"
            else:
                there.append(value)
                size += _BESIDE + (value.nbytes if isinstance(value, np.ndarray | Picture) else 0)
            if name in self.others:
                there.clear()
        return size

    @property
    def names(self) -> list[str]:
        """Names of the values, and `log_time`."""
        return list(dict.fromkeys([*self._values, *self.others, *([TIME] if self._times else [])]))

    def times(self) -> npt.NDArray[np.int64]:
        """When the messages were logged, ascending."""
        return np.sort(np.asarray(self._times, np.int64))

    def taken(self, name: str, numbers: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """A value of the messages with these numbers, in the order of their times; `log_time` is the time itself.

        Raises:
            MissingPackageError: pictures need Pillow.
            FormatError: it is no column, or a picture is none.
        """
        if name in self.others:
            raise fault(self._path, "unsupported", self.others[name], f"{self._name}.{name}")
        if name not in self._values:
            return self.times()[numbers]
        places = np.argsort(np.asarray(self._times, np.int64), kind="stable")[numbers]
        values = self._values[name]
        if not isinstance(values[0], Picture):
            return np.asarray(values)[places]
        once, back = np.unique(places, return_inverse=True)
        place = (self._path, 0, f"{self._name}.{name}")
        return pictures([values[i].file for i in once], place, self._max_bytes)[back]


def topics_of(path: str, max_bytes: int, fields: Mapping[str, str] | None) -> dict[str, Topic]:
    """The topics of a file by name, in order of name; those that `fields` does not name have no values.

    Raises:
        MissingPackageError: a package that reads it is not installed.
        FormatError: it is cut or damaged, or holds more than `max_bytes`; it says at which byte.
        OSError: it cannot be read.
    """
    decode, known = _Decoders(), dict[int, tuple[Topic, Callable[[bytes], Any] | None]]()
    topics, held, count, said = dict[str, Topic](), 0, 0, None
    schemas: dict[int, Any] = {}
    place = [0]
    try:
        for one in _records(path, max_bytes, place):
            kind = type(one).__name__
            if kind == "Schema":
                schemas[one.id] = one
            elif kind == "Channel" and one.id not in known:
                name, wanted = _named(one.topic, fields)
                topic = topics.setdefault(name, Topic(path, name, max_bytes))
                known[one.id] = topic, decode.of(one, schemas.get(one.schema_id), topic) if wanted else None
            elif kind == "Message":
                if one.channel_id not in known:
                    raise ValueError(f"a message of channel {one.channel_id}, of which nothing is said before")
                count += 1
                topic, decoder = known[one.channel_id]
                held += topic.add(one.log_time, {} if decoder is None else _values(decoder(one.data)))
                if held > max_bytes:
                    raise fault(path, "too_large", f"its messages take more than {max_bytes} bytes; choose fields")
            elif kind == "Statistics":
                said = one.message_count
    except FormatError:
        raise
    except (*DAMAGE, zlib.error, optional("mcap.exceptions", "mcap").McapError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise _damaged(path, place[0], error) from error
    except Exception as error:
        # What decodes messages raises errors of its own.
        if type(error).__module__.split(".")[0] not in ("google", "lz4", "mcap_ros2", "struct", "zstd", "zstandard"):
            raise
        raise _damaged(path, place[0], error) from error
    if said not in (None, count):
        raise fault(path, "wrong_size", f"{count} messages; its statistics say {said}")
    if not count:
        raise fault(path, "empty", "no messages in it")
    return {name: topics[name] for name in sorted(topics) if topics[name].names}


def _named(topic: str, fields: Mapping[str, str] | None) -> tuple[str, bool]:
    """What a topic is called here, and whether its messages are read; its first slash stays where `fields` has it."""
    for name in (topic.lstrip("/"), topic):
        below = (f"{name}.", f"{name}/")
        for source in (fields or {}).values():
            if source == name or source.startswith(below) or name.startswith((f"{source}.", f"{source}/")):
                return name, True
    return topic.lstrip("/"), fields is None


def _damaged(path: str, at: int, error: Exception) -> FormatError:
    cut = type(error).__name__ == "EndOfFile"
    what = "the file ends in it; `mcap recover` writes what is whole" if cut else f"{type(error).__name__}: {error}"
    kind = "truncated" if cut else "corrupt"
    return FormatError(f"{path}: {kind}: record at byte {at}: {what}", kind=kind, source=path, offset=at)


def _records(path: str, max_bytes: int, place: list[int]) -> Iterator[Any]:
    """The records of a file, those of chunks one by one; `place` has the byte at which the one or its chunk begins."""
    reading = optional("mcap.stream_reader", "mcap")
    with open(path, "rb") as file:
        records = reading.StreamReader(file, emit_chunks=True, validate_crcs=True, record_size_limit=max_bytes).records
        while (one := next(records, None)) is not None:
            if type(one).__name__ != "Chunk":
                yield one
            else:
                one.data, one.compression = _unpacked(one, max_bytes), ""
                yield from reading.breakup_chunk(one, validate_crc=True)
            place[0] = file.tell()


def _unpacked(chunk: Any, max_bytes: int) -> bytes:
    """The bytes of a chunk, as many as it says."""
    size = chunk.uncompressed_size
    if size > max_bytes:
        raise ValueError(f"a chunk of {size} bytes; the bound is {max_bytes}")
    data = chunk.data
    if chunk.compression == "zstd":
        with optional("zstandard", "mcap").ZstdDecompressor().stream_reader(data) as file:
            data = file.read(size + 1)
    elif chunk.compression == "lz4":
        data = optional("lz4.frame", "mcap").LZ4FrameDecompressor().decompress(data, max_length=size + 1)
    elif chunk.compression:
        raise ValueError(f"a chunk packed by {chunk.compression!r}; expected zstd, lz4 or none")
    if len(data) != size:
        raise ValueError(f"a chunk of {len(data)} bytes or more; it says {size}")
    return bytes(data)


class _Decoders:
    """What decodes messages, by their encoding."""

    def __init__(self) -> None:
        self._factories: dict[str, Any] = {}

    def of(self, channel: Any, schema: Any, topic: Topic) -> Callable[[bytes], Any] | None:
        """What decodes the messages of a channel; where nothing does, the topic says why."""
        encoding = channel.message_encoding
        if encoding == "json":
            return json.loads
        module = {"protobuf": "mcap_protobuf.decoder", "cdr": "mcap_ros2.decoder"}.get(encoding)
        if module is not None and module not in self._factories:
            self._factories[module] = optional(module, "mcap").DecoderFactory()
        found = None if module is None else self._factories[module].decoder_for(encoding, schema)
        if found is None:
            by = getattr(schema, "encoding", "no schema")
            topic.others["message"] = f"{encoding} ({by}); expected json, protobuf, or cdr with ros2msg"
        return found


def _values(message: Any) -> dict[str, Any]:
    """The numbers of a message by their paths; a text says what another value is."""
    found: dict[str, Any] = {}
    for name, value in _leaves(message, "", _DEPTH):
        if name in found:
            raise ValueError(f"two values are called `{name}`")
        found[name or "value"] = value
    return found


def _leaves(value: Any, name: str, depth: int) -> Iterator[tuple[str, Any]]:
    parts = _parts(value)
    if parts is not None and not depth:
        yield name, f"values within more than {_DEPTH} others"
    elif parts is not None:
        for part, one in parts:
            yield from _leaves(one, f"{name}.{part}" if name else str(part), depth - 1)
    elif isinstance(value, bool | int | float):
        yield name, value
    elif isinstance(value, bytes | bytearray):
        yield name, Picture(bytes(value)) if value.startswith(PICTURES) else np.frombuffer(value, np.uint8)
    elif isinstance(value, str) or value is None:
        yield name, "a text, or nothing; expected numbers"
    else:
        yield name, _array(value)


def _parts(value: Any) -> Iterator[tuple[Any, Any]] | None:
    """What a value consists of by name, where it does."""
    if isinstance(value, Mapping):
        return iter(value.items())
    if hasattr(value, "DESCRIPTOR"):
        return ((field.name, getattr(value, field.name)) for field in value.DESCRIPTOR.fields)
    if hasattr(value, "__slots__") and type(value).__module__.startswith("mcap_ros2"):
        return ((slot, getattr(value, slot)) for slot in value.__slots__)
    return None


def _array(value: Any) -> npt.NDArray[Any] | str:
    """A list as an array; the list itself where NumPy makes no array of it."""
    items = list(value)
    if not items:
        return "an empty list"
    if not all(isinstance(one, bool | int | float | list) for one in items):
        return "a list of texts or messages; expected numbers"
    try:
        found = np.asarray(items)
    except (ValueError, OverflowError):
        return "lists of several lengths"
    return found if found.dtype.kind in "biuf" else "a list of texts or messages; expected numbers"
