"""Observation and action spaces as plain descriptions, and the arrays that their values are made of.

A description is an `Instance` of the kind that metadata of shards give: `Box`, `Discrete`, `MultiDiscrete`,
`MultiBinary`, `Text`, `Dict` or `Tuple`, and what it was made with. No environment and no package is needed for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from gristmill.errors import ConfigError
from gristmill.safe_pickle import Instance

#: How deep spaces may lie within spaces.
MAX_DEPTH = 16

#: Maximum number of elements of one array, bounds included.
MAX_ELEMENTS = 1 << 28

#: Attributes of each kind, each under all the names that Gym and Gymnasium have had for it.
_ATTRIBUTES: dict[str, dict[str, tuple[str, ...]]] = {
    "Box": {"low": ("low",), "high": ("high",), "shape": ("shape", "_shape"), "dtype": ("dtype",)},
    "Discrete": {"n": ("n",)},
    "MultiDiscrete": {"nvec": ("nvec",)},
    "MultiBinary": {"n": ("n",)},
    "Text": {"min_length": ("min_length",), "max_length": ("max_length",)},
    "Dict": {"spaces": ("spaces",)},
    "Tuple": {"spaces": ("spaces",)},
}


class Leaf(NamedTuple):
    """One array of a value: where it is, and what one step of it looks like."""

    #: Keys of dictionaries and numbers of tuples on the way to it; empty where the value is one array.
    path: tuple[str | int, ...]
    #: Shape of one step.
    shape: tuple[int, ...]
    #: Element type; `None` for texts.
    dtype: np.dtype[Any] | None
    #: Kind of its space: `Box`, `Discrete`, `MultiDiscrete`, `MultiBinary` or `Text`.
    kind: str

    @property
    def name(self) -> str:
        """The path with dots."""
        return ".".join(map(str, self.path))

    def under(self, head: str) -> str:
        """Name of the field: `head`, or `head.path`."""
        return f"{head}.{self.name}" if self.path else head

    def flat(self, head: str) -> str:
        """Name of the field where names have neither dots nor upper case, as members of shards: `head_path`."""
        return "_".join((head, *(str(part).replace(".", "_").replace("/", "_").lower() for part in self.path)))


def described(space: Any) -> Instance:
    """The description of a space of Gymnasium or Gym, or of one that was read from a file.

    Raises:
        ConfigError: it is of another kind, or lacks an attribute.
    """
    kind = space.kind if isinstance(space, Instance) else type(space).__name__
    if kind not in _ATTRIBUTES:
        raise ConfigError(f"a {kind} space; known are {', '.join(_ATTRIBUTES)}", field="space")
    values: dict[str, Any] = {}
    for attribute, names in _ATTRIBUTES[kind].items():
        values[attribute] = _attribute(space, kind, names)
    if kind == "Box":
        dtype = np.dtype(values["dtype"])
        shape = tuple(int(dim) for dim in values["shape"])
        values.update(shape=shape, dtype=dtype)
        for bound in ("low", "high"):
            values[bound] = np.broadcast_to(np.asarray(values[bound], dtype), shape)
    elif kind == "Discrete":
        values.update(n=int(values["n"]), start=int(_attribute(space, kind, ("start",), 0)))
    elif kind == "MultiDiscrete":
        nvec = np.asarray(values["nvec"])
        start = _attribute(space, kind, ("start",), None)
        values.update(nvec=nvec, start=np.zeros_like(nvec) if start is None else np.asarray(start))
    elif kind == "MultiBinary":
        n = values["n"]
        values["n"] = int(n) if np.ndim(n) == 0 else tuple(int(dim) for dim in n)
    elif kind == "Text":
        letters = _attribute(space, kind, ("charset", "character_list", "_char_list", "_char_str"), "")
        values.update({name: int(value) for name, value in values.items()}, charset="".join(letters))
    elif kind == "Dict":
        values["spaces"] = {str(name): described(one) for name, one in dict(values["spaces"]).items()}
    else:
        values["spaces"] = tuple(described(one) for one in values["spaces"])
    return Instance(kind, (), values)


def leaves(space: Instance) -> list[Leaf]:
    """The arrays that a value of a described space is made of, in the order of its spaces.

    Raises:
        ConfigError: two of them would have the same name, or one is too large.
    """
    found = _leaves(space, (), 0)
    for names in ([leaf.name for leaf in found], [leaf.flat("") for leaf in found]):
        twice = next((one for one in names if names.count(one) > 1), None)
        if twice is not None:
            raise ConfigError(f"two parts of a space would both be called `{twice}`", field="space")
    return found


def space_of(leaf_spaces: Mapping[tuple[str, ...], Instance]) -> Instance:
    """The space whose parts lie at these paths: itself where the only path is empty, else dictionaries."""
    if () in leaf_spaces:
        return leaf_spaces[()]
    heads = dict.fromkeys(path[0] for path in leaf_spaces)
    parts = {head: {path[1:]: one for path, one in leaf_spaces.items() if path[0] == head} for head in heads}
    return Instance("Dict", (), {"spaces": {head: space_of(part) for head, part in parts.items()}})


def _leaves(space: Instance, path: tuple[str | int, ...], depth: int) -> list[Leaf]:
    if depth > MAX_DEPTH:
        raise ConfigError(f"spaces nested deeper than {MAX_DEPTH}", field="space")
    state = space.state
    if space.kind in ("Dict", "Tuple"):
        spaces = state["spaces"]
        named = spaces.items() if space.kind == "Dict" else enumerate(spaces)
        return [leaf for name, one in named for leaf in _leaves(one, (*path, name), depth + 1)]
    if space.kind == "Text":
        return [Leaf(path, (), None, "Text")]
    if space.kind == "Box":
        shape, dtype = state["shape"], state["dtype"]
    elif space.kind == "Discrete":
        shape, dtype = (), np.dtype(np.int64)
    elif space.kind == "MultiDiscrete":
        shape, dtype = state["nvec"].shape, np.dtype(np.int64)
    else:
        shape, dtype = state["n"] if isinstance(state["n"], tuple) else (state["n"],), np.dtype(np.int8)
    if math.prod(shape) > MAX_ELEMENTS:
        raise ConfigError(f"arrays of {shape}; expected at most {MAX_ELEMENTS} elements", field="space")
    return [Leaf(path, shape, dtype, space.kind)]


def _attribute(space: Any, kind: str, names: tuple[str, ...], *default: Any) -> Any:
    state = space.state if isinstance(space, Instance) else None
    for name in names:
        if isinstance(state, Mapping) and name in state:
            return state[name]
        if state is None and hasattr(space, name):
            return getattr(space, name)
    if default:
        return default[0]
    raise ConfigError(f"a {kind} space without `{names[0]}`", field="space")
