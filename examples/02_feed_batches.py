"""Shuffled batches from a directory of games that may still be growing.

python examples/02_feed_batches.py [games/]
"""

import os
import sys
import time

import gristmill as gm

BATCHES = 50


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1)
    with gm.DataLoader(config) as loader:
        loader.get_next()
        begun, rows = time.perf_counter(), 0
        for _ in range(BATCHES):
            planes, probs, values = loader.get_next()
            rows += len(planes)
        seconds = time.perf_counter() - begun
    print(f"{rows} positions in {seconds:.2f} s: {rows / seconds:.0f} a second")
    print("planes", planes.shape, "probs", probs.shape, "values", values.shape)


if __name__ == "__main__":
    main(*sys.argv[1:])
