"""What training code for Macroxue packs did in its own way, for comparison with models that were trained so."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

__all__ = ["RunSplit", "split_runs"]


class RunSplit(NamedTuple):
    """Ids of the runs of both sides, ascending."""

    train: list[int]
    val: list[int]


def split_runs(run_ids: Iterable[int], val_run_pct: float, val_split_seed: int = 42) -> RunSplit:
    """The split by run that `val_run_pct` and `val_split_seed` of existing configurations gave.

    The share is rounded up, so that one run at least is on the val side; nothing may be left for training. Ids depend
    on the pack, and NumPy does not promise its permutations for ever: for new work `Rows.split(val)` goes by the seeds
    of the games.

    `rows.split(val_runs=split_runs(rows.run_ids, 0.005).val)` gives rows.

    Raises:
        ValueError: `val_run_pct` is not from 0 (no val side) to below 1.
    """
    if not 0.0 <= val_run_pct < 1.0:
        raise ValueError(f"val_run_pct is {val_run_pct}; expected 0 or more, and less than 1")
    runs = sorted(set(run_ids))
    if val_run_pct == 0.0 or not runs:
        return RunSplit(runs, [])
    count = max(1, math.ceil(val_run_pct * len(runs)))
    first = np.random.default_rng(val_split_seed).permutation(len(runs))[:count]
    val = sorted(runs[place] for place in first)
    chosen = set(val)
    return RunSplit([run for run in runs if run not in chosen], val)
