"""The eight symmetries of boards of 2048 and of Go as tables, and the numbers of the generator that draws them."""

from __future__ import annotations

from functools import cache
from math import isqrt
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

#: Words of a row of `symmetry_draws`: key and number, the lower half first, the words that are drawn before, and how
#: turns and mirrors are drawn.
WORDS = 6

#: Words of a row of `image_draws`: those of `symmetry_draws` but the last.
IMAGE_WORDS = 5

#: What turns with a board of 2048: what its cells are, what stands at its four branches, and what names a branch.
TURNED = {
    "tokens": "cells",
    "branch_values": "branches",
    "branch_bin_targets": "branches",
    "branch_mask": "branches",
    "move_targets": "directions",
}

#: Philox4x32-10 (docs/format/order.md): rounds, multipliers, and what is added to the key after each round.
ROUNDS = 10
MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS = (0x9E3779B9, 0xBB67AE85)

_TRANSPOSE, _LEFT_RIGHT, _UP_DOWN = 1, 2, 4

#: The symmetry of quarter turns (0 to 3) and a mirror (0 none, 1 left-right, 2 up-down): of `3 * turns + mirror`.
NUMBERS = np.array(
    [
        turn ^ mirror
        for turn in (0, _TRANSPOSE | _LEFT_RIGHT, _LEFT_RIGHT | _UP_DOWN, _TRANSPOSE | _UP_DOWN)
        for mirror in (0, _LEFT_RIGHT, _UP_DOWN)
    ],
    np.int32,
)


def _cells(symmetry: int) -> npt.NDArray[np.int32]:
    """The cell that comes to stand at each."""
    cells = np.arange(16, dtype=np.int32).reshape(4, 4)
    cells = cells.T if symmetry & _TRANSPOSE else cells
    cells = cells[:, ::-1] if symmetry & _LEFT_RIGHT else cells
    return (cells[::-1] if symmetry & _UP_DOWN else cells).reshape(16)


def _direction(symmetry: int, old: int) -> int:
    """Where up (0), down, left or right (3) goes."""
    new = old ^ 2 if symmetry & _TRANSPOSE else old
    return new ^ 1 if symmetry & (_LEFT_RIGHT if new >= 2 else _UP_DOWN) else new


#: Of each symmetry, where each direction goes, (8, 4).
DIRECTIONS = np.array([[_direction(symmetry, old) for old in range(4)] for symmetry in range(8)], np.int32)
#: Of each symmetry, what comes to stand at each cell, (8, 16), and at each branch, (8, 4).
PLACES = {
    "cells": np.stack([_cells(symmetry) for symmetry in range(8)]),
    "branches": np.argsort(DIRECTIONS, axis=1).astype(np.int32),
}

#: How the points of a frame of Go lie in a tensor: the last two axes; the last axis, with the pass behind them; bits.
Axes: TypeAlias = Literal["points", "moves", "packed"]

_AXES: dict[str, Axes] = {"planes": "points", "values": "points", "policy": "moves"}
_ENDS: dict[str, Axes] = {"NCHWPacked": "packed", "NCHW": "points", "NCMove": "moves"}


def axes(name: str) -> Axes | None:
    """How points lie in the tensor of this name (docs/format/katago.md); `None` where it has none."""
    ends = (axes for end, axes in _ENDS.items() if name.endswith(end))
    return _AXES.get(name) or next(ends, None)


def edge(of: Axes, shape: tuple[int, ...]) -> int:
    """The edge of the frame of a tensor with this shape.

    Raises:
        ValueError: no frame has this shape.
    """
    last = shape[-1]
    found = {
        "points": last,
        "moves": isqrt(last - 1),
        "packed": next((e for e in range(65) if -(-e * e // 8) == last), 0),
    }[of]
    whole = {"points": len(shape) > 1 and shape[-2] == last, "moves": found * found + 1 == last, "packed": found > 0}
    if not whole[of]:
        raise ValueError(f"a tensor of {of} of a square frame with the shape {shape}")
    return found


@cache
def images(edge: int) -> npt.NDArray[np.int32]:
    """Of each image, the point of the frame from which each of its points comes, (8, edge * edge)."""
    points = np.arange(edge * edge, dtype=np.int32).reshape(edge, edge)

    def image(number: int) -> npt.NDArray[np.int32]:
        found = points[::-1] if number & 1 else points
        found = found[:, ::-1] if number & 2 else found
        return (found.T if number & 4 else found).reshape(-1)

    return np.stack([image(number) for number in range(8)])
