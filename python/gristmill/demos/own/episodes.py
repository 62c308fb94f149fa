"""Flags, starts, lengths or numbers of episodes -> how long each episode is, and whether it was cut."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill.demos.own.names import FLAGS
from gristmill.errors import FormatError


class Ends(NamedTuple):
    """Steps of each episode, and which of them were cut instead of ended by the environment."""

    lengths: list[int]
    cut: list[bool]


def fault(path: str, kind: str, says: str, field: str | None = None) -> FormatError:
    """The error about an array, with its place."""
    place = path if field is None else f"{path}: `{field}`"
    return FormatError(f"{place}: {kind}: {says}", kind=kind, source=path, member=field)


def find_ends(path: str, given: Mapping[str, npt.NDArray[Any]], steps: int, whole: bool, unknown: str = "") -> Ends:
    """Where the episodes of `steps` steps end.

    Args:
        path: where the arrays are from, for errors.
        given: what there is of `terminated`, `truncated`, `dones`, `episode_starts`, `episode_lengths` and
            `episode_index`.
        steps: how many there are.
        whole: they are one episode, whatever the flags say within it.
        unknown: what to say where nothing tells.

    Raises:
        FormatError: nothing says where episodes end, there is none, or what says it contradicts the steps.
    """
    flags = {name: _flags(path, name, given[name], steps) for name in FLAGS if name in given}
    if steps == 0:
        raise fault(path, "empty", "no steps, and so no episode")
    if "episode_lengths" in given and not whole:
        lengths = whole_lengths(
            given["episode_lengths"], lambda says: fault(path, "wrong_size", says, "episode_lengths")
        )
        if sum(lengths) != steps:
            says = f"they sum to {sum(lengths)}; there are {steps} steps"
            raise fault(path, "wrong_size", says, "episode_lengths")
        ends = np.cumsum(lengths)
    elif whole:
        ends = np.asarray([steps])
    else:
        last = np.zeros(steps, bool)
        for name in ("terminated", "truncated", "dones"):
            if name in flags:
                last |= flags[name]
        if "episode_starts" in flags:
            last[:-1] |= flags["episode_starts"][1:]
        if "episode_index" in given:
            last[:-1] |= _changes(path, given["episode_index"], steps)
        if not flags and "episode_index" not in given:
            raise fault(path, "missing", unknown or "nothing says where episodes end")
        ends = np.flatnonzero(last) + 1
        if not len(ends) or ends[-1] < steps:
            ends = np.append(ends, steps)
    return Ends(np.diff(ends, prepend=0).tolist(), _cut(flags, ends - 1))


def whole_lengths(given: Any, refused: Callable[[str], Exception]) -> list[int]:
    """Steps of each episode as whole numbers of at least 1; `refused` makes the error of what they are not."""
    try:
        lengths = np.asarray(given)
    except (ValueError, OverflowError) as error:
        raise refused(f"expected the steps of each episode: {error}") from error
    if lengths.ndim == 2 and lengths.shape[1] == 1:
        lengths = lengths[:, 0]
    if lengths.ndim != 1:
        raise refused(f"shape {lengths.shape}; expected one number for each episode")
    if not len(lengths):
        raise refused("no episodes")
    if lengths.dtype.kind == "f" and np.all(np.isfinite(lengths)) and np.all(lengths == np.floor(lengths)):
        lengths = lengths.astype(object)
    if lengths.dtype.kind not in "iuO":
        raise refused(f"expected whole numbers, found {lengths.dtype} such as {lengths[0]}")
    for i, length in enumerate(lengths.tolist()):
        if not isinstance(length, int | float) or isinstance(length, bool) or length != int(length) or length < 1:
            raise refused(f"episode {i} has {length!r} steps; expected a whole number from 1 on")
    return [int(length) for length in lengths.tolist()]


def _flags(path: str, name: str, values: npt.NDArray[Any], steps: int) -> npt.NDArray[np.bool_]:
    """One truth value for each step."""
    if values.ndim > 1 and values.shape[1:] == (1,) * (values.ndim - 1):
        values = values.reshape(len(values))
    if values.shape != (steps,):
        raise fault(path, "wrong_size", f"shape {values.shape}; expected one value for each of {steps} steps", name)
    if values.dtype.kind not in "biuf":
        raise fault(path, "unsupported", f"elements of type {values.dtype}; expected true and false", name)
    odd = np.flatnonzero((values != 0) & (values != 1))
    if len(odd):
        says = f"{values[odd[0]]} at step {odd[0]}; expected 0 or 1, true or false"
        raise fault(path, "out_of_range", says, name)
    found: npt.NDArray[np.bool_] = values != 0
    return found


def _changes(path: str, values: npt.NDArray[Any], steps: int) -> npt.NDArray[np.bool_]:
    """Where the number of the episode is another in the next step."""
    name = "episode_index"
    if values.shape != (steps,):
        raise fault(path, "wrong_size", f"shape {values.shape}; expected one number for each of {steps} steps", name)
    if values.dtype.kind not in "iuf":
        raise fault(path, "unsupported", f"elements of type {values.dtype}; expected numbers", name)
    changes: npt.NDArray[np.bool_] = values[1:] != values[:-1]
    begun = values[np.flatnonzero(np.append(True, changes))]
    if len(np.unique(begun)) < len(begun):
        again, counts = np.unique(begun, return_counts=True)
        number = again[np.argmax(counts)]
        raise fault(path, "corrupt", f"episode {number} begins twice; sort the steps by episode and time", name)
    return changes


def _cut(flags: Mapping[str, npt.NDArray[np.bool_]], last: npt.NDArray[np.int64]) -> list[bool]:
    """Whether each episode was cut, by what is said of its last step; unless something says so, it was not."""
    if "terminated" in flags:
        cut = ~flags["terminated"][last]
    elif "dones" in flags:
        cut = ~flags["dones"][last] | (flags["truncated"][last] if "truncated" in flags else False)
    elif "truncated" in flags:
        cut = flags["truncated"][last]
    else:
        cut = np.zeros(len(last), bool)
    return [bool(one) for one in cut]
