"""Demonstrations: episodes into shards and a pack, batches of pairs for representation learning, batches of steps.

python examples/08_demonstrations.py
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

PIXELS = {
    "low": np.zeros((3, 16, 16), np.uint8),
    "high": np.full((3, 16, 16), 255, np.uint8),
    "shape": (3, 16, 16),
    "dtype": np.dtype("u1"),
}

DIRECTIONS = np.array([(0, 1), (0, -1), (1, 0), (-1, 0)])


def walks(count: int) -> Iterator[dict[str, Any]]:
    """Steps of a dot that walks over a picture at random."""
    rng = np.random.default_rng(1)
    for length in rng.integers(20, 40, count):
        place = np.array([8, 8])
        for step in range(length):
            picture = np.zeros((3, 16, 16), np.uint8)
            picture[:, place[0], place[1]] = 255
            action = rng.integers(4)
            yield {"obs": picture, "acts": action, "dones": np.bool_(step == length - 1)}
            place = (place + DIRECTIONS[action]) % 16


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pictures = Instance("Box", (), PIXELS)
        # The metadata of a shard says where its episodes come from; spaces of Gymnasium do as well.
        task = {"benchmark_name": "gymnasium", "task_name": "Walk-v0"}
        meta = get_meta_dict(task, pictures, Instance("Discrete", (), {"n": 4}))
        write_frames(folder / "shards" / "walks.tar.zst", meta, walks(8))
        demos = gm.open(folder / "shards", expect=gm.Demos)
        print(demos, "of", demos.lengths, "steps")

        loader = gm.PairLoader(demos, gm.pairs.TemporalOffset("dynamics"), batch_size=32, seed=1)
        pairs = next(iter(loader))
        moved = (pairs.context != pairs.target).any(axis=(1, 2, 3)).mean()
        print("pairs", pairs.context.shape, pairs.target.shape, f"of neighbours: {moved:.0%} differ")

        gm.pack(folder / "shards", folder / "demo-pack")
        pack = gm.open(folder / "demo-pack", expect=gm.Trajectories)
        fields = gm.Fields(["obs", "acts", "dones"])
        rows = sum(batch.rows for batch in gm.DataLoader(pack, encoder=fields, batch_size=64, seed=1))
        print(pack.num_frames, "steps in the pack,", rows, "in an epoch of it")


if __name__ == "__main__":
    main()
