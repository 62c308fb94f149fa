"""A contrastive learner: pictures a few steps apart are to be alike, and unlike all others of their batch.

pip install gristmill[jax] optax
python examples/16_learn_representations_from_pairs.py
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

import gristmill as gm
import gristmill.jax
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

STEPS, SIZE, COLOURS = 150, 16, 64

PIXELS = {
    "low": np.zeros((3, SIZE, SIZE), np.uint8),
    "high": np.full((3, SIZE, SIZE), 255, np.uint8),
    "shape": (3, SIZE, SIZE),
    "dtype": np.dtype("u1"),
}

Weights = dict[str, jax.Array]


def walks(count: int) -> Iterator[dict[str, Any]]:
    """Each episode is a square of a colour of its own, which walks over noise."""
    rng = np.random.default_rng(1)
    for _ in range(count):
        colour, place = rng.integers(128, 256, 3, dtype=np.uint8), rng.integers(0, SIZE - 6, 2)
        for step in range(30):
            picture = rng.integers(0, 64, (3, SIZE, SIZE), dtype=np.uint8)
            y, x = place
            picture[:, y : y + 6, x : x + 6] = colour[:, None, None]
            yield {"obs": picture, "acts": np.int64(0), "dones": np.bool_(step == 29)}
            place = np.clip(place + rng.integers(-1, 2, 2), 0, SIZE - 6)


def embed(weights: Weights, pictures: jax.Array) -> jax.Array:
    """Points on a sphere."""
    flat = pictures.reshape(len(pictures), -1).astype(jnp.float32) / 255 - 0.3
    found = jax.nn.relu(flat @ weights["in"]) @ weights["out"]
    return found / jnp.linalg.norm(found, axis=1, keepdims=True)


def loss(weights: Weights, context: jax.Array, target: jax.Array) -> jax.Array:
    """InfoNCE: which of the batch's targets belongs to each context (https://arxiv.org/abs/1807.03748)."""
    alike = embed(weights, context) @ embed(weights, target).T / 0.1
    return -jnp.diag(jax.nn.log_softmax(alike)).mean()


def main() -> None:
    keys = jax.random.split(jax.random.key(1))
    weights = {
        "in": jax.random.normal(keys[0], (3 * SIZE * SIZE, 128)) / 28,
        "out": jax.random.normal(keys[1], (128, 32)) / 12,
    }
    optimizer = optax.adam(1e-3)
    memory = optimizer.init(weights)

    @jax.jit
    def step(
        weights: Weights, memory: optax.OptState, context: jax.Array, target: jax.Array
    ) -> tuple[Weights, optax.OptState, jax.Array]:
        error, slopes = jax.value_and_grad(loss)(weights, context, target)
        changes, memory = optimizer.update(slopes, memory)
        return optax.apply_updates(weights, changes), memory, error

    losses: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        task = {"benchmark_name": "gymnasium", "task_name": "Walk-v0"}
        meta = get_meta_dict(task, Instance("Box", (), PIXELS), Instance("Discrete", (), {"n": 2}))
        write_frames(Path(folder, "walks.tar.zst"), meta, walks(COLOURS))
        pairs = gm.pairs.TemporalOffset("dynamics", temporal_offset=4)
        with gm.jax.feed(gm.PairLoader(gm.open(folder), pairs, batch_size=64, seed=1)) as feed:
            while len(losses) < STEPS:
                for batch in feed:
                    weights, memory, error = step(weights, memory, batch["context"], batch["target"])
                    losses.append(float(error))
                    if len(losses) % 30 == 0:
                        print(len(losses), losses[-1])
                    if len(losses) == STEPS:
                        break
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")


if __name__ == "__main__":
    main()
