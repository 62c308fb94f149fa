"""2048 from raw logs to a trained head: pack, fit a tokenizer, learn its classes from the board.

python examples/07_train_on_2048.py [logs/]
"""

import os
import sys
import tempfile

import numpy as np
import numpy.typing as npt

import gristmill as gm

Numbers = npt.NDArray[np.float64]

RANKS, MOVES, EPOCHS = 18, 4, 6


def main(directory: str = "example-logs") -> None:
    if not os.path.isdir(directory):
        gm.generate("2048", directory, games=12, seed=1, moves_max=200)
    with tempfile.TemporaryDirectory() as folder:
        pack, tokenizer = os.path.join(folder, "2048-pack"), os.path.join(folder, "tokenizer.json")
        gm.pack(directory, pack)
        rows = gm.open(pack, expect=gm.Rows)
        kinds = [name for name in rows.valuation_types if len(rows.filter(valuation=name))]
        train, val = rows.split(0.2, seed=1)
        gm.g2048.fit_tokenizer(train, tokenizer, num_bins=8, valuations=kinds)
        print(rows, "valued by", ", ".join(kinds))
        encoder = gm.g2048.HardMove(rotate=True, flip=True)
        weights = np.zeros((16 * RANKS, MOVES))
        for batch in gm.DataLoader(train, encoder=encoder, batch_size=256, seed=1, epochs=EPOCHS):
            weights -= 2.0 * gradient(weights, batch)
        found = next(iter(gm.DataLoader(val, encoder=gm.g2048.HardMove(), batch_size=len(val), shuffle=False)))
        right = float(np.mean((one_hot(found) @ weights).argmax(1) == found["move_targets"]))
        print(f"the move of the search is found in {right:.0%} of {len(val)} rows that were held out")
        classes = train.encode(gm.g2048.Tokens(tokenizer), [0])
        print("classes of the four branches of the first row:", classes["targets"][0].tolist())


def one_hot(batch: gm.Batch) -> Numbers:
    """The ranks of each board, (rows, 16 * RANKS)."""
    tokens = np.asarray(batch["tokens"])
    ranks: Numbers = np.eye(RANKS)[tokens]
    return ranks.reshape(len(tokens), -1)


def gradient(weights: Numbers, batch: gm.Batch) -> Numbers:
    """Of the cross entropy of a linear head."""
    inputs = one_hot(batch)
    scores = inputs @ weights
    chances = np.exp(scores - scores.max(1, keepdims=True))
    chances /= chances.sum(1, keepdims=True)
    chances[np.arange(len(chances)), np.asarray(batch["move_targets"])] -= 1
    slope: Numbers = inputs.T @ chances / len(inputs)
    return slope


if __name__ == "__main__":
    main(*sys.argv[1:])
