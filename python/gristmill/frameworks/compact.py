"""Compact tensors (docs/format/compact.md) by name: what is checked of them, and what no device computes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill.frameworks import symmetries
from gristmill.frameworks.symmetries import IMAGE_WORDS, TURNED, WORDS

#: Moves of the policy vector.
MOVES = 1858
#: Bytes of the 104 stored planes in a row of `planes_packed`; eight scalars and the input format follow.
STORED = 832
#: Bytes of a row of `planes_position` before its changed squares.
FIXED = 43

#: Element types of planes, and of the exponents of 2048.
Planes: TypeAlias = Literal["f32", "bf16", "f16", "u8"]
Tokens: TypeAlias = Literal["i64", "i32", "u8"]

#: What each compact tensor is, and what `made` makes of it.
_COMPACT: dict[str, tuple[str, int, str]] = {
    "planes_packed": ("uint8", STORED + 12, "planes"),
    "planes_position": ("uint8", 0, "position"),
    "probs_values": ("float32", 0, "probs"),
    "legal_bits": ("uint8", -(-MOVES // 8), "legal"),
    "board_nibbles": ("uint8", 10, "tokens"),
}

#: What the tensors of the step after the row's begin with, in batches that have both.
_NEXT = "next_"


def quotients() -> npt.NDArray[np.float32]:
    """Plane 109 by the fifty-move count, (2, 256): divided by 99, and by 100.

    On a device a compiler may multiply by the inverse instead, which has another last bit.
    """
    counts = np.arange(256, dtype=np.float32)
    return np.stack([counts / np.float32(99), counts / np.float32(100)])


def expanded(
    batch: Mapping[str, Any] | Any, made: Mapping[str, Callable[..., Any]], kind: Callable[[Any], str]
) -> dict[str, Any]:
    """A batch with each compact tensor replaced, at its place, by what `made` makes of it; all else as it is.

    Where it has `symmetry_draws`, what turns with a board of 2048 is turned; where it has `image_draws`, which becomes
    `symmetry`, what turns with one of Go. Names may begin with `next_`.

    Args:
        batch: arrays by name.
        made: by the name of what is made, planes of men by `position`; the policy of indices and values, what is
            `turned` of its name, the `symmetry` and itself, what is `imaged` of its axes, the `image` and itself, all
            else of one tensor.
        kind: the NumPy name of an array's element type.

    Raises:
        ValueError: a compact tensor of another type or shape; both a compact tensor and what becomes of it.
    """
    found: dict[str, Any] = {}
    draws: dict[str, Any] = {}
    images: dict[str, Any] = {}
    for name, value in _items(batch):
        begin, own = _parts(name)
        if own == "symmetry_draws":
            _check(name, value, "int32", WORDS, kind)
            draws[begin] = value
        elif own == "image_draws":
            _check(name, value, "int32", IMAGE_WORDS, kind)
            images[begin] = made["image"](value)
            _put(found, f"{begin}symmetry", images[begin])
        elif own == "probs_indices":
            if f"{begin}probs_values" not in batch:
                raise ValueError(f"`{name}` without `{begin}probs_values`; the output probs:sparse makes both")
        elif own in _COMPACT:
            dtype, width, becomes = _COMPACT[own]
            _check(name, value, dtype, width, kind)
            values = [value]
            if own == "probs_values":
                indices = batch.get(f"{begin}probs_indices")
                if indices is None:
                    raise ValueError(f"`{name}` without `{begin}probs_indices`; the output probs:sparse makes both")
                _check(f"{begin}probs_indices", indices, "int16", value.shape[-1], kind)
                values = [indices, value]
            _put(found, begin + ("planes" if becomes == "position" else becomes), made[becomes](*values))
        else:
            _put(found, name, value)
    for begin, drawn in draws.items():
        symmetry = made["symmetry"](drawn)
        for own in TURNED:
            if (name := begin + own) in found:
                found[name] = made["turned"](own, symmetry, found[name])
    for begin, image in images.items():
        for name in found:
            if _parts(name)[0] == begin and (axes := symmetries.axes(_parts(name)[1])):
                found[name] = made["imaged"](axes, image, found[name])
    return found


def _parts(name: str) -> tuple[str, str]:
    """What a name begins with, and the rest of it."""
    begin = _NEXT if name.startswith(_NEXT) else ""
    return begin, name.removeprefix(begin)


def _items(batch: Any) -> Iterable[tuple[str, Any]]:
    if not hasattr(batch, "items"):
        raise TypeError(f"expected a batch or arrays by name, found {type(batch).__name__}")
    items: Iterable[tuple[str, Any]] = batch.items()
    return items


def _put(found: dict[str, Any], name: str, value: Any) -> None:
    if name in found:
        raise ValueError(f"the batch has `{name}` and a compact form of it; select one of them")
    found[name] = value


def _check(name: str, value: Any, dtype: str, width: int, kind: Callable[[Any], str]) -> None:
    shape = tuple(value.shape)
    if kind(value) != dtype or not shape or (width and shape[-1] != width):
        wanted = f"{dtype}(..., {width or 'N'})"
        raise ValueError(f"`{name}` is {kind(value)}{shape}; expected {wanted}, as docs/format/compact.md has it")


def room(width: int) -> int:
    """How many changed squares a row of `planes_position` of this number of bytes has room for.

    Raises:
        ValueError: no row has this width.
    """
    squares = (width - FIXED) * 2 // 3
    if squares < 1 or FIXED + squares + -(-squares // 2) != width:
        raise ValueError(
            f"`planes_position` has rows of {width} bytes; the output planes:position:N makes 43 + N + N / 2"
        )
    return squares


def choice(option: str, given: object, known: Mapping[str, Any]) -> Any:
    """The value of an option.

    Raises:
        ValueError: it is none of those that are known.
    """
    if not isinstance(given, str) or given not in known:
        raise ValueError(f"{option}={given!r}; expected {', '.join(known)}")
    return known[given]
