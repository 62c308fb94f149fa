"""Demonstrations, pairs over them, and several of these with weights -> the engine that feeds their steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

import numpy as np

from gristmill import _gristmill
from gristmill.demos.engine import PairEngine
from gristmill.errors import ConfigError
from gristmill.loaders.ranks import find_rank
from gristmill.packs.trajectories import Fields
from gristmill.pairs import Constructor, Generated, PairSet, Steps
from gristmill.pairs.trajectories import as_trajectories, field_names

#: Options of steps that are handed on as they are.
_PLAIN = (
    *("nominal_length", "weights", "exhausted", "pad", "prepare", "seed"),
    *("batch_size", "epochs", "joined", "skip", "ledger", "shuffle", "threads", "queue_capacity"),
)


def are_arrays(source: Mapping[Any, Any]) -> bool:
    """Whether a dictionary holds the steps of a data set by field, and no configuration."""
    return "dones" in source or any(isinstance(value, np.ndarray) for value in source.values())


def of_steps(sources: Sequence[Any], given: dict[str, Any]) -> tuple[_gristmill.Loader, int, int]:
    """The engine over steps or pairs of data sets; its rank, and how many there are.

    Raises:
        TypeError: an option that steps do not have.
        ConfigError: options that cannot be, or data sets that do not fit together.
    """
    rank, world_size = find_rank(given.pop("rank", None), given.pop("world_size", None))
    constructor = _constructor(sources, given.pop("encoder", None), given.pop("pairs", None))
    seeds = {source._seed for source in sources if isinstance(source, PairSet)}
    if len(seeds) == 1:
        given.setdefault("seed", seeds.pop())
    last = given.pop("last_batch", "keep")
    if last not in ("keep", "drop"):
        raise ConfigError(f"last_batch is {last!r}; of steps expected 'keep' or 'drop'", field="last_batch")
    options: dict[str, Any] = {"batch_size": 1024}
    options |= {name: given.pop(name) for name in _PLAIN if name in given}
    if given:
        raise TypeError(
            f"`{next(iter(given))}` belongs to streams and rows of packs; gristmill.pack makes a pack of steps"
        )
    if "shuffle" in options and not isinstance(options["shuffle"], bool):
        raise TypeError("steps are shuffled or not: `shuffle` is True or False")
    data = [source.data if isinstance(source, PairSet) else source for source in sources]
    own = {"drop_last": last == "drop", "rank": rank, "world_size": world_size}
    # It answers the same calls.
    return cast(_gristmill.Loader, PairEngine(data, constructor, {**options, **own})), rank, world_size


def _constructor(sources: Sequence[Any], encoder: Any, pairs: Any) -> Constructor[Any]:
    """What a row is: as `pairs` or `encoder` say, or pairs that were made already; else a step with all its fields."""
    if encoder is not None and pairs is not None:
        raise TypeError("`encoder` and `pairs` both say what a row is; give one of them")
    made = {repr(source.constructor): source.constructor for source in sources if isinstance(source, PairSet)}
    given = encoder if pairs is None else pairs
    if made:
        if given is not None or len(made) > 1 or not all(isinstance(source, PairSet) for source in sources):
            raise TypeError("pairs that were made already say what a row is, the same for all of them")
        return next(iter(made.values()))
    if given is None:
        return Steps(_fields(sources))
    if isinstance(given, Constructor):
        return given
    if isinstance(given, Fields):
        return Steps(tuple(given.names))
    if pairs is not None and callable(pairs):
        return Generated(pairs)
    expected = "gristmill.Fields, gristmill.pairs.Steps or another constructor"
    raise TypeError(f"demonstrations take {expected}; found {given!r}")


def _fields(sources: Sequence[Any]) -> tuple[str, ...]:
    """The fields that a step has, the same in all data sets."""
    found = [field_names(as_trajectories(source)) for source in sources]
    if other := next((names for names in found if set(names) != set(found[0])), None):
        message = f"data sets have other fields: {', '.join(found[0])}; {', '.join(other)}"
        raise ConfigError(f"{message}. Say which by encoder=gristmill.Fields([...])", field="encoder")
    return tuple(name for name in found[0] if name)
