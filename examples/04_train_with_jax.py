"""Fit a value head with JAX: small batches are on their way while a step runs, and are expanded on the device.

pip install gristmill[jax]
python examples/04_train_with_jax.py [games/]
"""

import os
import sys

import jax
import jax.numpy as jnp

import gristmill as gm
import gristmill.jax

STEPS = 300


def loss(weights: jax.Array, batch: dict[str, jax.Array]) -> jax.Array:
    """How far the result is from what a linear head of the twelve planes of men tells."""
    planes, results = gm.jax.expand(batch)["planes"][:, :12], batch["values"][:, 0, 0]
    predicted = jnp.tanh(planes.reshape(len(planes), -1) @ weights)
    return jnp.mean((predicted - results) ** 2)


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    step = jax.jit(jax.value_and_grad(loss))
    weights = jnp.zeros(12 * 64)
    losses = []
    tensors = ["planes:packed", "values"]
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1, tensors=tensors)
    with gm.jax.feed(gm.DataLoader(config), ahead=2) as feed:
        for number, batch in zip(range(STEPS), feed, strict=False):
            error, gradient = step(weights, batch)
            weights = weights - 0.05 * gradient
            losses.append(float(error))
            if number % 20 == 0:
                print(number, losses[-1])
    first, last = sum(losses[:20]) / 20, sum(losses[-20:]) / 20
    print(f"mean loss of the first 20 steps {first:.4f}, of the last 20 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
