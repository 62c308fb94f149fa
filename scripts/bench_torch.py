"""How many frames reach a trainer: from PyTorch's loader in its own process, and from one worker, in turns in one run.

    python scripts/bench_torch.py [SECONDS]

Steps are like real ones of Procgen: `obs` and `next_obs` of 12 x 64 x 64 bytes.
"""

import sys
import time
from collections.abc import Iterator
from itertools import chain, repeat
from typing import Any

import numpy as np

import gristmill as gm
import gristmill.torch

STEPS, BATCH = 4000, 128


def frames_per_second(batches: Iterator[Any], seconds: float) -> float:
    """Frames of batches that are read once each, as a model would."""
    next(batches)
    began, frames = time.perf_counter(), 0
    while (took := time.perf_counter() - began) < seconds:
        batch = next(batches)
        frames += len(batch["context"])
        batch["context"].view(-1)[::4096].sum().item()
    return frames / took


def main() -> None:
    """Prints both rates and their ratio, the best of three turns each."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 4.0
    rng = np.random.default_rng(1)
    obs = rng.integers(0, 256, (STEPS, 12, 64, 64), dtype=np.uint8)
    ends = np.arange(STEPS) % 250 == 249
    arrays = {"obs": obs, "acts": np.arange(STEPS) % 15, "dones": ends}
    loader = gm.PairLoader(arrays, gm.pairs.TemporalOffset("dynamics"), batch_size=BATCH, seed=1)
    rates: dict[int, float] = {}
    for workers in (0, 1) * 3:
        fed = gristmill.torch.DataLoader(loader, num_workers=workers, persistent_workers=workers > 0)
        rate = frames_per_second(chain.from_iterable(repeat(fed)), seconds)
        rates[workers] = max(rate, rates.get(workers, 0))
    sys.stdout.write(f"num_workers=0  {rates[0]:8.0f} frames/s\n")
    sys.stdout.write(f"num_workers=1  {rates[1]:8.0f} frames/s  {rates[1] / rates[0]:.2f} of it\n")


if __name__ == "__main__":
    main()
