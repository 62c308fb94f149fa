"""Grey levels and smaller pictures as stored Atari demonstrations have them, equal to OpenCV's to the bit.

Every output pixel is the mean of the input that it covers, in float32 and in the order of columns, then rows; halves
are rounded to even.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import numpy.typing as npt

#: Red, green and blue in a grey level, in units of 2**-15.
_RED, _GREEN, _BLUE = 9798, 19235, 3735

Pixels = npt.NDArray[np.uint8]
_Taps = tuple[npt.NDArray[np.intp], npt.NDArray[np.float32]]


def gray(rgb: Pixels) -> Pixels:
    """Luma of (..., 3) pixels, shape (...): 0.299 R + 0.587 G + 0.114 B, rounded."""
    wide = rgb.astype(np.int32)
    luma: npt.NDArray[np.int32] = wide[..., 0] * _RED + wide[..., 1] * _GREEN + wide[..., 2] * _BLUE
    return ((luma + (1 << 14)) >> 15).astype(np.uint8)


def shrink(picture: Pixels, height: int, width: int) -> Pixels:
    """A picture (H, W) made smaller to (height, width), by area.

    Raises:
        ValueError: the picture is smaller than that.
    """
    if picture.shape[0] < height or picture.shape[1] < width:
        raise ValueError(f"a picture of {picture.shape} cannot be made smaller to {(height, width)}")
    columns, across = _taps(picture.shape[1], width)
    rows, down = _taps(picture.shape[0], height)
    wide = picture.astype(np.float32)
    lines = wide[:, columns[0]] * across[0]
    for column, weight in zip(columns[1:], across[1:], strict=True):
        lines += wide[:, column] * weight
    small: npt.NDArray[np.float32] = lines[rows[0]] * down[0][:, None]
    for row, weight in zip(rows[1:], down[1:], strict=True):
        small += lines[row] * weight[:, None]
    return np.rint(small).astype(np.uint8)


@cache
def _taps(source: int, target: int) -> _Taps:
    """Which inputs an output covers and with what weight: both (taps, target); unused ones weigh nothing."""
    scale = source / target
    covered: list[list[tuple[int, float]]] = []
    for place in range(target):
        start, stop = place * scale, min((place + 1) * scale, source)
        first, last = math.ceil(start), min(math.floor(stop), source - 1)
        taps = [(index, 1.0) for index in range(first, last)]
        # A sliver of less than a thousandth is noise of the division.
        if first - start > 1e-3:
            taps.insert(0, (first - 1, first - start))
        if stop - last > 1e-3:
            taps.append((last, stop - last))
        covered.append([(index, part / (stop - start)) for index, part in taps])
    most = max(len(taps) for taps in covered)
    index = np.zeros((most, target), dtype=np.intp)
    weight = np.zeros((most, target), dtype=np.float32)
    for place, taps in enumerate(covered):
        for tap, (source_index, part) in enumerate(taps):
            index[tap, place], weight[tap, place] = source_index, part
    return index, weight
