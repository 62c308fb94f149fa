"""Fit a linear value head with JAX; batches reach it without a copy.

pip install gristmill[jax]
python examples/04_train_with_jax.py games/
"""

import sys

import jax
import jax.numpy as jnp

import gristmill as gm


def loss(weights: jax.Array, planes: jax.Array, results: jax.Array) -> jax.Array:
    predicted = jnp.tanh(planes.reshape(planes.shape[0], -1) @ weights)
    return jnp.mean((predicted - results) ** 2)


def main(directory: str, steps: int = 100) -> None:
    step = jax.jit(jax.value_and_grad(loss))
    weights = jnp.zeros(112 * 64)
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1)
    with gm.DataLoader(config) as loader:
        for number in range(steps):
            batch = loader.get_next()
            planes, values = jax.dlpack.from_dlpack(batch["planes"]), jax.dlpack.from_dlpack(batch["values"])
            error, gradient = step(weights, planes, values[:, 0, 0])
            weights = weights - 0.001 * gradient
            if number % 10 == 0:
                print(number, float(error))


if __name__ == "__main__":
    main(sys.argv[1])
