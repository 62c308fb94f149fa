"""Trajectories in memory, whose actions say which step they are; and how to compare what is made of them."""

from collections.abc import Sequence
from typing import Any

import numpy as np

import gristmill as gm


def columns(
    lengths: Sequence[int], first: int = 0, shape: tuple[int, ...] = (2, 9, 12), **more: Any
) -> gm.pairs.Columns:
    """Steps whose `acts` count from `first`, with pictures, rewards and ends."""
    steps = sum(lengths)
    ends = np.zeros(steps, bool)
    ends[np.cumsum(lengths) - 1] = True
    rng = np.random.default_rng(first)
    obs = rng.integers(0, 256, (steps, *shape), dtype=np.uint8)
    infos = more.pop("infos", None)
    fields = {
        "obs": obs,
        "next_obs": np.roll(obs, -1, 0),
        "acts": np.arange(first, first + steps),
        "rews": rng.normal(size=steps),
        "dones": ends,
        **more,
    }
    return gm.pairs.Columns(lengths, fields, infos)


def steps_of(loader: gm.PairLoader, passes: int = 1) -> list[int]:
    """The steps of all rows, of a loader of `Windows(1)`."""
    return [int(act) for _ in range(passes) for batch in loader for act in batch.target]


def same(one: Any, other: Any) -> bool:
    """Whether two batches are equal to the bit."""
    if isinstance(one, gm.pairs.PairBatch) and isinstance(other, gm.pairs.PairBatch):
        one, other = one.asdict(), other.asdict()
    if list(one) != list(other):
        return False
    for name, value in one.items():
        if isinstance(value, list):
            if value != other[name]:
                return False
        elif value.dtype != other[name].dtype or value.shape != other[name].shape or (value != other[name]).any():
            return False
    return True
