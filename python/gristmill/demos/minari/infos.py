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

    #: Made up, such as `infos.success: false where it is absent`.
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

    The first of them is the reset's, of which most sources know nothing. A name that a step lacks becomes false, 0,
    not-a-number or an empty text there.
    """
    names = dict.fromkeys(key for step in steps if isinstance(step, Mapping) for key in step)
    found: dict[str, Any] = {}
    for key in names:
        at = f"{name}.{key}"
        values = [step.get(key, ABSENT) if isinstance(step, Mapping) else ABSENT for step in steps]
        column = _column([ABSENT if value is None else value for value in values], losses, at)
        if column is None or not isinstance(key, str):
            losses.lose(f"{at}: values of several kinds or shapes, which have no column")
        else:
            found[key] = column
    return found


def _column(values: list[Any], losses: Losses, at: str) -> Any:
    """One column, or `None` where the values do not make one."""
    present = [value for value in values if value is not ABSENT]
    absent = any(value is ABSENT for value in values[1:])
    if not present:
        return None
    if all(isinstance(value, Mapping) for value in present):
        return columns(values, losses, at)
    if all(isinstance(value, str) for value in present):
        if absent:
            losses.fill(f"{at}: an empty text where it is absent")
        return ["" if value is ABSENT else str(value) for value in values]
    try:
        arrays = [np.asarray(value) for value in present]
        dtype = np.result_type(*arrays)
    except (TypeError, ValueError):
        return None
    if dtype.kind not in "biuf" or len({array.shape for array in arrays}) > 1:
        return None
    filler = np.zeros((), dtype) if dtype.kind != "f" else np.full((), np.nan, dtype)
    if absent:
        losses.fill(f"{at}: {filler.item()} where it is absent".lower())
    column = np.empty((len(values), *arrays[0].shape), dtype)
    given = iter(arrays)
    for row, value in enumerate(values):
        column[row] = filler if value is ABSENT else next(given)
    rows = [row for row, value in enumerate(values) if value is not ABSENT]
    exact = all(
        np.array_equal(column[row], array, equal_nan=dtype.kind == "f") for row, array in zip(rows, arrays, strict=True)
    )
    return column if exact else None
