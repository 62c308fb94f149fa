"""Fit moves and results of chess together with Flax NNX: small batches are expanded within the jitted step.

pip install gristmill[jax] flax optax
python examples/13_train_with_flax.py [games/]
"""

import os
import sys

import jax
import jax.numpy as jnp
import optax
from flax import nnx

import gristmill as gm
import gristmill.jax

STEPS, MOVES = 120, 1858

Batch = dict[str, jax.Array]


class Network(nnx.Module):
    """A convolution over the planes of the position, a head for the move and one for the result."""

    def __init__(self, rngs: nnx.Rngs) -> None:
        self.planes = nnx.Conv(112, 32, (3, 3), rngs=rngs)
        self.move = nnx.Linear(32 * 64, MOVES, rngs=rngs)
        self.result = nnx.Linear(32 * 64, 1, rngs=rngs)

    def __call__(self, planes: jax.Array) -> tuple[jax.Array, jax.Array]:
        found = nnx.relu(self.planes(planes.transpose(0, 2, 3, 1))).reshape(len(planes), -1)
        return self.move(found), jnp.tanh(self.result(found))[:, 0]


def loss(network: Network, batch: Batch) -> jax.Array:
    """Cross entropy of the searched policy over legal moves, and the squared error of the result."""
    whole = gm.jax.expand(batch)
    moves, result = network(whole["planes"])
    legal = whole["probs"] >= 0
    chances = jax.nn.log_softmax(jnp.where(legal, moves, -1e9))
    missed = -jnp.sum(jnp.where(legal, whole["probs"] * chances, 0), 1).mean()
    return missed + jnp.mean((result - batch["values"][:, 0, 0]) ** 2)


@nnx.jit
def step(network: Network, optimizer: nnx.Optimizer[Network], batch: Batch) -> jax.Array:
    error, slopes = nnx.value_and_grad(loss)(network, batch)
    optimizer.update(network, slopes)
    return error


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    network = Network(nnx.Rngs(1))
    optimizer = nnx.Optimizer(network, optax.adam(1e-3), wrt=nnx.Param)
    losses: list[float] = []
    tensors = ["planes:packed", "probs:sparse", "values"]
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=128, seed=1, tensors=tensors)
    with gm.jax.feed(gm.DataLoader(config)) as feed:
        for number, batch in zip(range(STEPS), feed, strict=False):
            losses.append(float(step(network, optimizer, batch)))
            if number % 20 == 0:
                print(number, losses[-1])
        state = feed.state_dict()
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")

    resumed = gm.DataLoader(config)
    resumed.load_state_dict(state)
    with gm.jax.feed(resumed) as feed:
        print("resumes after", STEPS, "batches with", next(iter(feed))["values"].shape)


if __name__ == "__main__":
    main(*sys.argv[1:])
