"""Learn moves and returns of 2048 together in JAX: nibbles come while a step runs, which makes tokens of them.

pip install gristmill[jax]
python examples/12_train_2048_with_values.py [logs/]
"""

import os
import sys
import tempfile

import jax
import jax.numpy as jnp

import gristmill as gm
import gristmill.jax

RANKS, MOVES, EPOCHS = 18, 4, 12

Weights = dict[str, jax.Array]


def loss(weights: Weights, batch: dict[str, jax.Array]) -> jax.Array:
    """Cross entropy of the move, and half the squared error of the rescaled return, of two linear heads."""
    tokens = gm.jax.expand(batch)["tokens"]
    board = jax.nn.one_hot(tokens, RANKS).reshape(len(tokens), -1)
    chances = jax.nn.log_softmax(board @ weights["moves"])
    missed = -jnp.take_along_axis(chances, batch["move_targets"][:, None], 1).mean()
    value = (board @ weights["value"] + weights["mean"])[:, 0]
    return missed + 0.5 * jnp.mean((value - batch["value_targets"]) ** 2)


@jax.jit
def step(weights: Weights, batch: dict[str, jax.Array]) -> tuple[jax.Array, Weights]:
    error, slopes = jax.value_and_grad(loss)(weights, batch)
    return error, jax.tree.map(lambda weight, slope: weight - 0.05 * slope, weights, slopes)


def main(directory: str = "example-logs") -> None:
    if not os.path.isdir(directory):
        gm.generate("2048", directory, games=12, seed=1, moves_max=200)
    weights = {"moves": jnp.zeros((16 * RANKS, MOVES)), "value": jnp.zeros((16 * RANKS, 1)), "mean": jnp.zeros(1)}
    losses = []
    with tempfile.TemporaryDirectory() as folder:
        pack = os.path.join(folder, "2048-pack")
        gm.pack(directory, pack)
        gm.value_rows(pack)
        rows = gm.open(pack, expect=gm.Rows)
        encoder = gm.g2048.HardMove(
            rotate=True, flip=True, dtype="i32", board="nibbles", value_targets="scalar", value_field="return_scaled"
        )
        loader = gm.DataLoader(rows, encoder=encoder, batch_size=128, seed=1, epochs=EPOCHS, joined=True)
        with gm.jax.feed(loader) as feed:
            for number, batch in enumerate(feed):
                error, weights = step(weights, batch)
                losses.append(float(error))
                if number % 20 == 0:
                    print(number, losses[-1])
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
