"""How often each of several sources is chosen, and from which batch on -> the same for every loader."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from gristmill.errors import ConfigError

#: Weights of several sources in their order; or those from each of some batches on, by number of the batch.
Weights = Sequence[float] | Mapping[int, Sequence[float]]


def scheduled(weights: Weights | None, count: int) -> tuple[list[float], list[tuple[int, list[float]]]]:
    """The weights of the first batch, and those that follow with the batch from which they hold, ascending.

    Raises:
        ConfigError: a schedule that does not begin with batch 0, or whose keys are no batches.
    """
    if weights is None:
        return [1.0] * count, []
    if not isinstance(weights, Mapping):
        return [float(weight) for weight in weights], []
    if wrong := next((batch for batch in weights if not isinstance(batch, int) or batch < 0), None):
        raise ConfigError(f"weights from batch {wrong!r} on; expected whole numbers of at least 0", field="weights")
    changes = sorted((batch, [float(weight) for weight in own]) for batch, own in weights.items())
    if not changes or changes[0][0] != 0:
        raise ConfigError("no weights for batch 0; expected such as {0: [1, 1], 1000: [3, 1]}", field="weights")
    return changes[0][1], changes[1:]


def named(weights: object, names: Sequence[object]) -> object:
    """Weights by name of the source as those in the order of `names`, those from some batches on among them.

    Raises:
        TypeError: weights of other names.
    """
    if not isinstance(weights, Mapping):
        return weights
    if set(weights) != set(names):
        if weights and all(isinstance(batch, int) for batch in weights):
            return {batch: named(own, names) for batch, own in weights.items()}
        raise TypeError(f"weights of {sorted(weights)}; expected those of {sorted(map(str, names))}")
    return [weights[name] for name in names]
