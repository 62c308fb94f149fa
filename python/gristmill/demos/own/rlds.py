"""Episodes of RLDS, as TFDS writes them: TFRecord files of `tf.train.Example` beside `features.json` -> tables."""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Iterator
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import read_json
from gristmill.demos.minari.pictures import decoded
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.tables import MAX_ARRAYS, Table
from gristmill.demos.own.tfrecord import records
from gristmill.errors import FormatError
from gristmill.options.optional import optional

#: What the fields of a record are, and which files there are.
_FEATURES, _INFO = "features.json", "dataset_info.json"

#: What the name of a file ends with.
ENDING = re.compile(r"\.tfrecord(-\d{5}-of-\d{5})?$")

#: How TFDS calls files, unless it was told otherwise.
_TEMPLATE = "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}"

#: Features within each other.
_DEPTH = 16

#: Formats of pictures, as Pillow calls them.
_FORMATS = ("PNG", "JPEG")


class Leaf(NamedTuple):
    """An array in `features.json`, of each step or of the whole episode."""

    #: `numbers`, `image`, or why it is neither.
    sort: str
    dtype: np.dtype[Any]
    #: Of a step; -1 where it is not known.
    shape: tuple[int, ...]


def is_rlds(path: str) -> bool:
    """Whether TFDS wrote the data set in a folder."""
    return all(os.path.isfile(os.path.join(path, name)) for name in (_FEATURES, _INFO))


def files_of_rlds(folder: str) -> list[str]:
    """The files of all splits of a data set, in order, as `dataset_info.json` lists them.

    Raises:
        OSError: it cannot be read.
        FormatError: it lists no files, or those of another format.
    """
    found = list(_listed(folder))
    if not found:
        raise fault(os.path.join(folder, _INFO), "empty", "no files in `splits`")
    return [os.path.join(folder, name) for name in found]


def features_of(path: str) -> str:
    """What says which features the records of a file have."""
    return os.path.join(os.path.dirname(path) or ".", _FEATURES)


def split_of(path: str) -> str:
    """Name of the split of a file."""
    name = ENDING.sub("", os.path.basename(path))
    return name.rpartition("-")[2]


def of_rlds(path: str, max_bytes: int) -> Iterator[Table]:
    """The tables of a file: a record is an episode.

    Raises:
        MissingPackageError: the extra `rlds` brings protobuf, google-crc32c and Pillow.
        FormatError: a record is damaged or disagrees with `features.json`, or `dataset_info.json` says another number.
        OSError: it cannot be read.
    """
    folder = os.path.dirname(path) or "."
    steps, beside = _leaves_of(features_of(path))
    expected = _listed(folder).get(os.path.basename(path)) if os.path.exists(os.path.join(folder, _INFO)) else None
    number = 0
    for data in records(path, max_bytes):
        yield _episode(f"{path}: episode {number}", data, steps, beside, max_bytes)
        number += 1
    if expected not in (None, number):
        says = f"{number} episodes; dataset_info.json says {expected}"
        raise fault(path, "truncated" if number < int(expected or 0) else "wrong_size", says)


def _listed(folder: str) -> dict[str, int]:
    """By name of each file how many records it has."""
    path = os.path.join(folder, _INFO)
    info = read_json(path)
    form = info.get("fileFormat", "tfrecord")
    if form != "tfrecord":
        raise fault(path, "unsupported", f"files of the format {form!r}; expected tfrecord", "fileFormat")
    found: dict[str, int] = {}
    try:
        for split in info.get("splits", []):
            lengths = [int(length) for length in split["shardLengths"]]
            names = {"DATASET": info["name"], "SPLIT": split["name"], "FILEFORMAT": form}
            if split.get("filepathTemplate", _TEMPLATE) != _TEMPLATE:
                raise fault(path, "unsupported", f"files called {split['filepathTemplate']!r}; expected {_TEMPLATE}")
            for i, length in enumerate(lengths):
                name = f"{names['DATASET']}-{names['SPLIT']}.{form}-{i:05}-of-{len(lengths):05}"
                if "/" in name or "\\" in name or "\0" in name:
                    raise fault(path, "forbidden", f"{name!r}; expected the name of a file beside it")
                found[name] = length
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        says = f"expected `name`, and `splits` with `name` and `shardLengths`: {error!r}"
        raise fault(path, "corrupt", says) from error
    return found


def _leaves_of(path: str) -> tuple[dict[str, Leaf], dict[str, Leaf]]:
    """The arrays of the steps, and those of the whole episode, by their names."""
    found = read_json(path)
    try:
        above = dict(found["featuresDict"]["features"])
        steps = above.pop("steps")["sequence"]["feature"]
        leaves = dict(_leaves(path, steps, "", _DEPTH)), dict(_whole(path, above))
    except FormatError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        says = f"expected the features of episodes, with the steps of each under `steps`: {error!r}"
        raise fault(path, "unsupported", says) from error
    if len(leaves[0]) + len(leaves[1]) > MAX_ARRAYS:
        raise fault(path, "too_large", f"more than {MAX_ARRAYS} features")
    return leaves


def _whole(path: str, above: dict[str, Any]) -> Iterator[tuple[str, Leaf]]:
    for name, one in above.items():
        yield from _leaves(path, one, name, _DEPTH)


def _leaves(path: str, said: dict[str, Any], name: str, depth: int) -> Iterator[tuple[str, Leaf]]:
    """The arrays at or below a feature."""
    if not depth:
        raise fault(path, "too_large", f"features within more than {_DEPTH} others", name)
    if "featuresDict" in said:
        for part, one in said["featuresDict"]["features"].items():
            yield from _leaves(path, one, f"{name}/{part}" if name else str(part), depth - 1)
    elif "tensor" in said or "image" in said:
        about = said.get("tensor") or said["image"]
        shape = tuple(int(one) for one in about.get("shape", {}).get("dimensions", []))
        yield name, _leaf("image" if "image" in said else "numbers", about, shape)
    elif "classLabel" in said:
        yield name, Leaf("numbers", np.dtype(np.int64), ())
    else:
        kind = next((key for key in said if key != "pythonClassName"), "nothing")
        yield name, Leaf(f"{kind}; expected numbers or pictures", np.dtype(np.uint8), ())


def _leaf(sort: str, about: dict[str, Any], shape: tuple[int, ...]) -> Leaf:
    dtype, encoding = about.get("dtype"), about.get("encoding", "none")
    if re.fullmatch(r"bool|float(16|32|64)|u?int(8|16|32|64)", str(dtype)) is None:
        return Leaf(f"elements of type {dtype}; expected numbers", np.dtype(np.uint8), ())
    channels = {"uint8": (1, 3, 4), "uint16": (1,)}.get(str(dtype), ())
    if sort == "image" and (len(shape) != 3 or shape[2] not in channels):
        says = f"pictures of {dtype} {list(shape)}; expected uint8 with 1, 3 or 4 channels, or uint16 with one"
        return Leaf(says, np.dtype(np.uint8), ())
    if sort == "numbers" and (encoding != "none" or min(shape, default=1) < 1):
        return Leaf(f"numbers of shape {list(shape)}, encoded as {encoding}", np.dtype(np.uint8), ())
    return Leaf(sort, np.dtype(str(dtype)), shape)


def _episode(place: str, data: bytes, steps: dict[str, Leaf], beside: dict[str, Leaf], max_bytes: int) -> Table:
    decode_error = optional("google.protobuf.message", "rlds").DecodeError
    try:
        found = _example().FromString(data).features.feature
    except decode_error as error:
        raise fault(place, "corrupt", f"no tf.train.Example: {error}") from error
    # Ragged features have keys of their own beside their values.
    keys = [key.removeprefix("steps/") if key.startswith("steps/") else key for key in found]
    others = [key for key in keys if key not in steps and key not in beside]

    def read(name: str) -> npt.NDArray[Any]:
        leaf = steps.get(name)
        if leaf is None:
            says = "of the whole episode, not of its steps" if name in beside else "features.json does not list it"
            raise fault(place, "unsupported", says, name)
        if leaf.sort not in ("numbers", "image"):
            raise fault(place, "unsupported", leaf.sort, name)
        if f"steps/{name}" not in found:
            raise fault(place, "missing", "features.json lists it, the record lacks it", name)
        value = found[f"steps/{name}"]
        make = _pictures if leaf.sort == "image" else _numbers
        return make(place, name, leaf, value, max_bytes)

    return Table(place, [*steps, *beside, *others], read, True)


def _numbers(place: str, name: str, leaf: Leaf, value: Any, max_bytes: int) -> npt.NDArray[Any]:
    kind = value.WhichOneof("kind")
    if kind not in ("float_list", "int64_list") or (kind == "float_list") != (leaf.dtype.kind == "f"):
        raise fault(place, "wrong_size", f"{kind}; features.json says {leaf.dtype}", name)
    values = np.asarray(getattr(value, kind).value, np.float32 if kind == "float_list" else np.int64)
    width = math.prod(leaf.shape)
    if len(values) % width:
        says = f"{len(values)} values; features.json says {list(leaf.shape)} for each step"
        raise fault(place, "wrong_size", says, name)
    if len(values) * leaf.dtype.itemsize > max_bytes:
        raise fault(place, "too_large", f"{len(values)} values; the bound is {max_bytes} bytes", name)
    cast = values.astype(leaf.dtype)
    if kind == "int64_list":
        off = np.flatnonzero(cast.astype(np.int64) != values)
        if len(off):
            says = f"{values[off[0]]} in step {off[0] // width}; features.json says {leaf.dtype}"
            raise fault(place, "wrong_size", says, name)
    return cast.reshape(-1, *leaf.shape)


def _pictures(place: str, name: str, leaf: Leaf, value: Any, max_bytes: int) -> npt.NDArray[Any]:
    """Pictures (steps, channels, height, width); where their size is not known, all have that of the first."""
    pillow = optional("PIL.Image", "rlds")
    if value.WhichOneof("kind") != "bytes_list":
        raise fault(place, "wrong_size", f"{value.WhichOneof('kind')}; features.json says pictures", name)
    files, (height, width, channels) = value.bytes_list.value, leaf.shape
    if files and min(height, width) < 1:
        try:
            with pillow.open(BytesIO(files[0]), formats=_FORMATS) as first:
                height, width = first.height, first.width
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            raise fault(place, "corrupt", f"row 0: {error}", name) from error
    if len(files) * height * width * channels * leaf.dtype.itemsize > max_bytes:
        says = f"{len(files)} pictures of {height} x {width}; the bound is {max_bytes} bytes"
        raise fault(place, "too_large", says, name)
    path, _, number = place.rpartition(": episode ")
    found = decoded(files, len(files), (height, width, channels), (path, int(number), name), _FORMATS, leaf.dtype)
    return np.moveaxis(found, -1, 1)


@functools.cache
def _example() -> Any:
    """The class of `tf.train.Example`, of a pool of its own: a program may have compiled that of TensorFlow."""
    descriptors = optional("google.protobuf.descriptor_pb2", "rlds")
    file = descriptors.FileDescriptorProto(name="gristmill/example.proto", package="tensorflow", syntax="proto3")
    kind = descriptors.FieldDescriptorProto
    add: Callable[..., Any] = file.message_type.add
    for name, of in (("BytesList", kind.TYPE_BYTES), ("FloatList", kind.TYPE_FLOAT), ("Int64List", kind.TYPE_INT64)):
        add(name=name).field.add(name="value", number=1, type=of, label=kind.LABEL_REPEATED)
    feature = add(name="Feature")
    feature.oneof_decl.add(name="kind")
    for number, name in enumerate(("bytes_list", "float_list", "int64_list"), 1):
        of = "".join(part.capitalize() for part in name.split("_"))
        feature.field.add(
            name=name, number=number, type=kind.TYPE_MESSAGE, type_name=f".tensorflow.{of}", label=1, oneof_index=0
        )
    features = add(name="Features")
    entry = features.nested_type.add(name="FeatureEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=kind.TYPE_STRING, label=1)
    entry.field.add(name="value", number=2, type=kind.TYPE_MESSAGE, type_name=".tensorflow.Feature", label=1)
    of = ".tensorflow.Features.FeatureEntry"
    features.field.add(name="feature", number=1, type=kind.TYPE_MESSAGE, type_name=of, label=kind.LABEL_REPEATED)
    add(name="Example").field.add(
        name="features", number=1, type=kind.TYPE_MESSAGE, type_name=".tensorflow.Features", label=1
    )
    pool = optional("google.protobuf.descriptor_pool", "rlds").DescriptorPool()
    pool.Add(file)
    return optional("google.protobuf.message_factory", "rlds").GetMessageClass(
        pool.FindMessageTypeByName("tensorflow.Example")
    )
