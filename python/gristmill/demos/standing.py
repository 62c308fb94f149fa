"""The state of a loader of pairs: what it is of, and where it stands; what differs between two of them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from gristmill import _gristmill
from gristmill.errors import StateError
from gristmill.pairs.constructor import PairSet

#: Version of the document, and of the same without a checksum.
VERSION = 2
_UNSEALED = 1

_DAMAGED = "it was damaged or changed; take another copy of it, or an earlier one"

#: Steps of each data set that its hash looks at.
_SAMPLES = 64


def described(pairs: PairSet[Any], fields: Sequence[str]) -> dict[str, Any]:
    """What tells a data set from another: counts, fields, and a hash of its lengths and of some steps."""
    import hashlib

    lengths = np.asarray(pairs.data.lengths, dtype="<i8")
    steps = int(lengths.sum())
    chosen = np.unique(np.linspace(0, steps - 1, min(_SAMPLES, steps)).astype(np.int64))
    digest = hashlib.blake2b(lengths.tobytes(), digest_size=16)
    about = {}
    for name in fields:
        column = pairs.column(name)
        about[name] = f"{column.dtype.str}{list(column.shape[1:])}"
        digest.update(np.ascontiguousarray(column[chosen]).tobytes())
    digest.update(pairs.constructor.digest(pairs))
    return {
        "trajectories": len(lengths),
        "steps": steps,
        "pairs": len(pairs),
        "fields": about,
        "hash": digest.hexdigest(),
    }


def sealed(state: Mapping[str, Any]) -> dict[str, Any]:
    """The same with a checksum of what it says."""
    return {**state, "checksum": _gristmill.checksum_of(json.dumps(state))}


def check(state: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Compares what a state is of with what a loader is of.

    Raises:
        StateError: it is no state of such a loader, or is of something else; the message has each difference.
    """
    version = state.get("gristmill_pairs_state")
    if version not in (_UNSEALED, VERSION):
        said = "it is no state of a loader of pairs" if version is None else f"it is of version {version!r}"
        raise StateError(f"{said}; expected `gristmill_pairs_state` {VERSION}")
    _check_seal(state, version)
    found = [line for part in ("config", "data") for line in _differences(state.get(part), own[part], part)]
    if found:
        raise StateError("the state belongs to something else: " + "; ".join(found))


def _check_seal(state: Mapping[str, Any], version: int) -> None:
    if "checksum" not in state and version == _UNSEALED:
        return
    try:
        expected = _gristmill.checksum_of(json.dumps(dict(state)))
    except (TypeError, ValueError) as error:
        raise StateError(f"it cannot be written as JSON: {error}") from None
    said = state.get("checksum")
    if version == _UNSEALED:
        raise StateError(f"it has a checksum, which its version has not: {_DAMAGED}")
    if said is None:
        raise StateError(f"it lacks its checksum: {_DAMAGED}")
    if said != expected:
        raise StateError(f"its checksum is {said!r}, that of what it says {expected!r}: {_DAMAGED}")


def whole(state: Mapping[str, Any], key: str, below: int) -> int:
    """A number of the state.

    Raises:
        StateError: it is none, or out of range.
    """
    value = state.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < below:
        raise StateError(f"`{key}` is {value!r}; expected a number from 0 to {below - 1}")
    return value


def _differences(theirs: Any, own: Any, path: str) -> Iterator[str]:
    if isinstance(theirs, Mapping) and isinstance(own, Mapping):
        for key in dict.fromkeys([*own, *theirs]):
            yield from _differences(theirs.get(key), own.get(key), f"{path}.{key}")
    elif isinstance(theirs, list) and isinstance(own, list) and len(theirs) == len(own):
        for i, (one, other) in enumerate(zip(theirs, own, strict=True)):
            yield from _differences(one, other, f"{path}[{i}]")
    elif isinstance(theirs, list) and isinstance(own, list) and path == "data":
        yield f"it has {len(theirs)} data sets, this loader {len(own)}"
    elif theirs != own:
        yield f"{path} is {theirs!r}, here {own!r}"
