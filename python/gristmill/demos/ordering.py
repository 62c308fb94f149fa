"""Sizes and weights of several data sets -> the order of their rows, and how many of them are a pass."""

from __future__ import annotations

from typing import Any, NamedTuple

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.options.weights import Weights, scheduled


class Ordered(NamedTuple):
    """An order of rows."""

    order: _gristmill.Mix
    #: Rows of a pass.
    length: int
    #: The same as the engine takes it.
    mix: dict[str, Any]
    #: The weights, and those that follow them by the batch from which they hold.
    weights: list[Any]


def ordered(
    sizes: list[int],
    weights: Weights | None,
    exhausted: str,
    nominal_length: int | None,
    passes: tuple[int, bool],
    drawn: tuple[int, bool],
) -> Ordered:
    """The order of data sets of these sizes.

    `passes` are the rows of a batch, and whether a last one that is not full is left out; `drawn` the seed, and whether
    rows are shuffled.

    Raises:
        ConfigError: weights that cannot be, or fewer rows than `nominal_length` or than a batch has.
    """
    (batch_size, drop_last), (seed, shuffle) = passes, drawn
    own, later = scheduled(weights, len(sizes))
    endless = nominal_length if nominal_length is not None else sum(sizes)
    per_pass = max(endless // batch_size if drop_last else -(-endless // batch_size), 1)
    starts = [(batch // per_pass * endless + batch % per_pass * batch_size, changed) for batch, changed in later]
    order = _gristmill.Mix(sizes, [(0, own), *starts], seed, shuffle, exhausted)
    most = order.length
    length = nominal_length if nominal_length is not None else most or sum(sizes)
    if most is not None and length > most:
        message = f"{length} pairs; with exhausted={exhausted!r} there are {most} in a pass"
        raise ConfigError(message, field="nominal_length")
    if length < 1 or (drop_last and length < batch_size):
        message = f"{length} pairs do not fill a batch of {batch_size}; lower it, or keep the last one"
        raise ConfigError(message, field="nominal_length")
    mix = {
        "sizes": sizes,
        "weights": own,
        "later": [{"batch": batch, "weights": changed} for batch, changed in later],
        "exhausted": exhausted,
        "length": length,
    }
    return Ordered(order, length, mix, [*own, *([batch, *changed] for batch, changed in later)])
