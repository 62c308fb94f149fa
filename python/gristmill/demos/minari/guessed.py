"""The fields of demonstrations -> the space that they could be of, where nothing says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.demos.spaces import space_of
from gristmill.errors import ConfigError
from gristmill.safe_pickle import Instance

if TYPE_CHECKING:
    from gristmill.demos.minari.source import MinariDemos
    from gristmill.demos.source import Demos
    from gristmill.packs.trajectories import Trajectories


def space_of_values(demos: MinariDemos | Demos | Trajectories, head: str) -> Instance:
    """The space of `obs` or `acts`: as many single actions as there are; of all else what its type has room for.

    Raises:
        ConfigError: there is no such field.
    """
    names = demos.layout.names
    parts = {name: name.split(".")[1:] for name in names if name.split(".")[0] == head}
    if not parts:
        raise ConfigError(f"{demos.path}: no field is called `{head}`", field=head)
    return space_of({tuple(path): _guessed(demos, name, head) for name, path in parts.items()})


def _guessed(demos: Any, name: str, head: str) -> Instance:
    """The space of a field of which only the values are known."""
    dtype = demos.layout.dtype[name]
    if head == "acts" and dtype.kind in "iu" and not dtype.shape:
        values = np.asarray(demos.column(name))
        least, most = int(values.min(initial=0)), int(values.max(initial=0))
        return Instance("Discrete", (), {"n": most - least + 1, "start": least})
    low, high = (0, 1) if dtype.base.kind == "b" else (-np.inf, np.inf)
    if dtype.base.kind in "iu":
        bounds = np.iinfo(dtype.base)
        low, high = bounds.min, bounds.max
    state = {"low": np.full(dtype.shape, low, dtype.base), "high": np.full(dtype.shape, high, dtype.base)}
    return Instance("Box", (), {**state, "shape": dtype.shape, "dtype": dtype.base})
