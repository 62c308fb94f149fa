"""Spaces as Minari's JSON texts have them, both ways. The JSON may hold bare `Infinity`."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from gristmill.demos.spaces import MAX_DEPTH, MAX_ELEMENTS
from gristmill.safe_pickle import Instance


def from_json(text: str) -> Instance:
    """The description of a space.

    Raises:
        ValueError: it is none; the message says which part of it.
    """
    return _read(json.loads(text), 0)


def to_json(space: Instance) -> str:
    """The text of a described space."""
    return json.dumps(_written(space))


def _read(found: Any, depth: int) -> Instance:
    if not isinstance(found, dict) or not isinstance(found.get("type"), str):
        raise ValueError(f"expected a space, an object with `type`, found {str(found)[:80]}")
    if depth > MAX_DEPTH:
        raise ValueError(f"spaces nested deeper than {MAX_DEPTH}")
    kind = found["type"]
    try:
        return Instance(kind, (), _made_with(kind, found, depth))
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"a {kind} space that lacks something or has it wrong: {error!r}") from error


def _made_with(kind: str, found: dict[str, Any], depth: int) -> dict[str, Any]:
    if kind == "Dict":
        return {"spaces": {name: _read(one, depth + 1) for name, one in dict(found["subspaces"]).items()}}
    if kind == "Tuple":
        return {"spaces": tuple(_read(one, depth + 1) for one in list(found["subspaces"]))}
    if kind == "Box":
        shape, dtype = _shape(found["shape"]), _dtype(found["dtype"])
        low, high = (np.array(found[name], dtype) for name in ("low", "high"))
        if low.shape != shape or high.shape != shape:
            raise ValueError(f"a Box of shape {shape} with bounds of {low.shape} and {high.shape}")
        return {"low": low, "high": high, "shape": shape, "dtype": dtype}
    if kind == "Discrete":
        return {"n": _whole(found["n"]), "start": _whole(found.get("start", 0))}
    if kind == "MultiDiscrete":
        nvec = np.array(found["nvec"], np.int64)
        start = np.array(found.get("start", np.zeros_like(nvec)), np.int64)
        return {"nvec": nvec, "start": start}
    if kind == "MultiBinary":
        n = found["n"]
        return {"n": _whole(n) if not isinstance(n, list) else _shape(n)}
    if kind == "Text":
        lengths = {name: _whole(found[name]) for name in ("min_length", "max_length")}
        return {**lengths, "charset": str(found.get("charset", ""))}
    raise ValueError(f"a {kind} space; known are Box, Discrete, MultiDiscrete, MultiBinary, Text, Dict, Tuple")


def _written(space: Instance) -> dict[str, Any]:
    kind, state = space.kind, space.state
    if kind == "Dict":
        return {"type": kind, "subspaces": {name: _written(one) for name, one in state["spaces"].items()}}
    if kind == "Tuple":
        return {"type": kind, "subspaces": [_written(one) for one in state["spaces"]]}
    if kind == "Box":
        bounds = {name: state[name].tolist() for name in ("low", "high")}
        return {"type": kind, "dtype": state["dtype"].name, "shape": list(state["shape"]), **bounds}
    if kind == "Discrete":
        return {"type": kind, "dtype": "int64", "start": state["start"], "n": state["n"]}
    if kind == "MultiDiscrete":
        return {"type": kind, "dtype": "int64", "nvec": state["nvec"].tolist(), "start": state["start"].tolist()}
    if kind == "MultiBinary":
        return {"type": kind, "n": list(state["n"]) if isinstance(state["n"], tuple) else state["n"]}
    return {"type": kind, **{name: state[name] for name in ("max_length", "min_length", "charset")}}


def _whole(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not -(1 << 63) <= value < 1 << 63:
        raise ValueError(f"expected a whole number, found {value!r}")
    return value


def _shape(value: Any) -> tuple[int, ...]:
    shape = tuple(_whole(dim) for dim in value)
    if len(shape) > 32 or any(dim < 0 for dim in shape) or math.prod(shape) > MAX_ELEMENTS:
        raise ValueError(f"a shape of {shape}")
    return shape


def _dtype(name: Any) -> np.dtype[Any]:
    dtype = np.dtype(str(name))
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise ValueError(f"elements of type {name}; expected numbers")
    return dtype
