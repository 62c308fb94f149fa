"""Pictures in JPEG, as Minari stores them by default, whose values differ from the original ones; and in PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import refused
from gristmill.demos.spaces import Leaf
from gristmill.options.optional import optional
from gristmill.safe_pickle import Instance

#: Smaller pictures are stored as they are.
_LEAST_SIDE = 32

#: The mode of Pillow for pictures of 8 bits, by number of channels.
_MODES = {1: "L", 3: "RGB", 4: "RGBA"}

#: The modes of Pillow for grey pictures of 16 bits: which one depends on its version.
_DEEP = ("I;16", "I")

#: What PNG begins with, and the byte that says how many bits a value has.
_PNG, _BITS = b"\x89PNG\r\n\x1a\n", 24

#: The first two bytes of a JPEG file, and the second byte of the marker before its values.
_JPEG, _SCAN = b"\xff\xd8", b"\xda"

#: What files of pictures begin with, and their formats as Pillow calls them.
PICTURES, _FORMATS = (_PNG, b"\xff\xd8\xff"), ("PNG", "JPEG")


def is_jpeg_space(space: Instance, leaf: Leaf) -> bool:
    """Whether Minari keeps the values of a leaf as JPEG: pictures of 32 x 32 or more, from 0 to 255.

    `space` is the leaf's own, or the one that it is a part of.
    """
    for part in leaf.path if space.kind in ("Dict", "Tuple") else ():
        space = space.state["spaces"][part]
    if leaf.dtype != np.uint8 or len(leaf.shape) not in (2, 3) or min(leaf.shape[:2]) < _LEAST_SIDE:
        return False
    return bool((space.state["low"] == 0).all() and (space.state["high"] == 255).all())


def encoded(pictures: npt.NDArray[np.uint8]) -> list[bytes]:
    """Each picture as JPEG.

    Raises:
        MissingPackageError: Pillow is not installed.
    """
    pillow, files = optional("PIL.Image", "minari"), []
    for picture in pictures:
        file = io.BytesIO()
        pillow.fromarray(picture).save(file, format="JPEG")
        files.append(file.getvalue())
    return files


def decoded(
    files: Iterable[bytes],
    count: int,
    shape: tuple[int, ...],
    place: tuple[str, int, str],
    formats: Sequence[str] = ("JPEG",),
    dtype: npt.DTypeLike = np.uint8,
) -> npt.NDArray[Any]:
    """Pictures (count, *shape) of as many files of these formats of Pillow; `place` is file, episode and field.

    `dtype` is uint8, or uint16 for grey PNG of 16 bits.

    Raises:
        MissingPackageError: Pillow is not installed.
        FormatError: a file is of another format, size or mode; nothing of another size is decoded, and no value is
            cut to 8 bits.
    """
    pillow = optional("PIL.Image", "minari")
    pictures = np.empty((count, *shape), dtype)
    path, episode, field = place
    bits = 8 * pictures.itemsize
    modes = _DEEP if bits == 16 else (_MODES.get(shape[2] if len(shape) == 3 else 1),)
    # The head (size, mode, tables) of the last JPEG that Pillow opened, and its picture. If a file has the same head,
    # the loop decodes only its values.
    alike, last = b"", pillow.new("L", (1, 1))
    for row, file in enumerate(files):
        if alike and file.startswith(alike) and _decodes(file, last):
            pictures[row] = np.frombuffer(last.tobytes(), dtype).reshape(shape)
            continue
        try:
            with pillow.open(io.BytesIO(file), formats=formats) as picture:
                if (picture.height, picture.width) != shape[:2]:
                    raise ValueError(f"a picture of {picture.height} x {picture.width}; expected {shape}")
                if is_deep(file) != (bits == 16):
                    raise ValueError(f"a picture of {24 - bits} bits; expected {bits}")
                if picture.mode not in modes:
                    raise ValueError(f"a picture of the mode {picture.mode}; expected {modes[0]}")
                pictures[row] = np.asarray(picture).reshape(shape)
                alike, last = _head(file), picture.copy()
        except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
            raise refused(path, str(error), episode=episode, row=row, field=field) from error
    return pictures


def _decodes(file: bytes, picture: Any) -> bool:
    """Decodes a JPEG into `picture`, which has its size and mode.

    Returns `False` if that fails. Pillow names the fault when it opens the file.
    """
    try:
        picture.frombytes(file, "jpeg", (picture.mode, ""))
    except ValueError:
        return False
    return True


def _head(file: bytes) -> bytes:
    """The bytes of a JPEG before its values: size, mode and tables. Returns `b""` for any other file."""
    at = 2
    while file[:2] == _JPEG and file[at : at + 1] == b"\xff":
        end = at + 2 + int.from_bytes(file[at + 2 : at + 4], "big")
        if file[at + 1 : at + 2] == _SCAN:
            return file[:end]
        at = end
    return b""


def pictures(files: Sequence[bytes], place: tuple[str, int, str], max_bytes: int) -> npt.NDArray[Any]:
    """Pictures (count, channels, height, width) of PNG and JPEG files that are all as the first one; `place` as above.

    Raises:
        MissingPackageError: Pillow is not installed.
        FormatError: a file is none, or differs from the first one; all take more than `max_bytes`.
    """
    pillow = optional("PIL.Image", "mcap")
    path, episode, field = place
    try:
        with pillow.open(io.BytesIO(files[0]), formats=_FORMATS) as first:
            (width, height), mode = first.size, first.mode
    except (OSError, ValueError, SyntaxError, pillow.DecompressionBombError) as error:
        raise refused(path, str(error), episode=episode, row=0, field=field) from error
    deep = is_deep(files[0])
    channels = 1 if deep else next((count for count, known in _MODES.items() if known == mode), 0)
    if len(files) * height * width * channels * (1 + deep) > max_bytes:
        says = f"{len(files)} pictures of {height} x {width}; the bound is {max_bytes} bytes"
        raise refused(path, says, episode=episode, field=field, kind="too_large")
    shape, dtype = (height, width, channels), np.uint16 if deep else np.uint8
    return np.moveaxis(decoded(files, len(files), shape, place, _FORMATS, dtype), -1, 1)


def is_deep(file: bytes) -> bool:
    """Whether a file is PNG of 16 bits."""
    return file.startswith(_PNG) and file[_BITS : _BITS + 1] == b"\x10"
