"""Train on nine games of ten and validate on the tenth: the same game is always on the same side.

python examples/03_validate_on_held_out_games.py [games/]
"""

import os
import sys

import gristmill as gm


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    split = {"train": 9, "test": 1}
    train = gm.DataLoader(gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=64, seed=1, split=split))
    with train:
        for _ in range(10):
            batch = train.get_next("train")
            print("train on batch", batch.number, batch["planes"].shape)
    held_out = gm.DataLoader(gm.presets.lc0(directory, epochs=1, batch_size=64, split=split))
    rows = sum(batch.rows for batch in held_out.batches("test"))
    print("validated on", rows, "positions, each once")


if __name__ == "__main__":
    main(*sys.argv[1:])
