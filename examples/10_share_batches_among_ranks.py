"""Two ranks share each batch; a third run with one rank resumes where they stopped, with the same rows.

python examples/10_share_batches_among_ranks.py [games/]
"""

import os
import sys
import tempfile

import numpy as np

import gristmill as gm


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    # Rows of all ranks together; any number of ranks that divides lanes and batch can share them.
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=96, lanes=4, seed=1, watch=False)
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = os.path.join(folder, "loader")
        # In training each of these is a process: rank and world size are then those of torch.distributed or JAX.
        ranks = [gm.DataLoader(config, rank=rank, world_size=2) for rank in range(2)]
        for _ in range(10):
            parts = [loader.get_next() for loader in ranks]
        print("rows of each rank:", [batch.rows for batch in parts])
        for loader in ranks:
            loader.save(checkpoint)
        expected = np.concatenate([np.asarray(loader.get_next()["probs"]) for loader in ranks])
        for loader in ranks:
            loader.stop()
        alone = gm.DataLoader(config, rank=0, world_size=1)
        alone.load(checkpoint)
        with alone:
            found = np.asarray(alone.get_next()["probs"])
        same = sorted(map(bytes, found)) == sorted(map(bytes, expected))
        print("one rank resumes with the same rows:", same)


if __name__ == "__main__":
    main(*sys.argv[1:])
