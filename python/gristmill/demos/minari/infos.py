"""Values of each step, of any kind, as columns: what Minari can hold as `infos`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

#: Stands for a step that says nothing under a name.
ABSENT = object()


@dataclass
class Losses:
    """What a data set holds after all that its source did not say, and the other way round; each once."""

    #: Made up, such as `rewards: 0`.
    filled: list[str] = field(default_factory=list)
    #: Left out.
    lost: list[str] = field(default_factory=list)

    def fill(self, what: str) -> None:
        """Notes what was made up."""
        if what not in self.filled:
            self.filled.append(what)

    def lose(self, what: str) -> None:
        """Notes what is left out."""
        if what not in self.lost:
            self.lost.append(what)


def columns(steps: Sequence[Any], losses: Losses, name: str = "infos") -> dict[str, Any]:
    """Arrays, lists of texts and dictionaries of them, by name: a row for each of `steps`, which are mappings.

    The first of them is the reset's, of which most sources know nothing. Where a later step lacks a name there is a
    column `_name` of truth values beside it, as Gymnasium has for many environments; the value is filler.
    """
    names = dict.fromkeys(key for step in steps if isinstance(step, Mapping) for key in step)
    found: dict[str, Any] = {}
    for key in names:
        at = f"{name}.{key}"
        given = [step.get(key) if isinstance(step, Mapping) else None for step in steps]
        column = _column([ABSENT if value is None else value for value in given], losses, at)
        if column is None or not isinstance(key, str):
            losses.lose(f"{at}: values of several kinds or shapes, which have no column")
            continue
        found[key] = column
        if any(value is None and isinstance(step, Mapping) for value, step in zip(given[1:], steps[1:], strict=True)):
            found[f"_{key}"] = np.array([value is not None for value in given])
            losses.fill(f"{at}: filler where it is absent and `_{key}` is false")
    return found


def row(values: Any, number: int) -> Any:
    """One row of columns by name, without the names that are absent there."""
    if not isinstance(values, Mapping):
        return values[number]
    masks = {name: values[f"_{name}"] for name in values if _is_mask(values.get(f"_{name}"))}
    hidden = {f"_{name}" for name in masks}
    kept = (name for name in values if name not in hidden and (name not in masks or masks[name][number]))
    return {name: row(values[name], number) for name in kept}


def _is_mask(column: Any) -> bool:
    return isinstance(column, np.ndarray) and column.dtype == np.bool_ and column.ndim == 1


def _column(values: list[Any], losses: Losses, at: str) -> Any:
    """One column, or `None` where the values do not make one."""
    present = [value for value in values if value is not ABSENT]
    if not present:
        return None
    if all(isinstance(value, Mapping) for value in present):
        return columns(values, losses, at)
    if all(isinstance(value, str) for value in present):
        return ["" if value is ABSENT else str(value) for value in values]
    try:
        arrays = [np.asarray(value) for value in present]
        dtype = np.result_type(*arrays)
    except (TypeError, ValueError):
        return None
    if dtype.kind not in "biuf" or len({array.shape for array in arrays}) > 1:
        return None
    column = np.full((len(values), *arrays[0].shape), np.nan if dtype.kind == "f" else 0, dtype)
    rows = [number for number, value in enumerate(values) if value is not ABSENT]
    for number, array in zip(rows, arrays, strict=True):
        column[number] = array
        if not np.array_equal(column[number], array, equal_nan=dtype.kind == "f"):
            return None
    return column
