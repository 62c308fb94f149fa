"""Behaviour cloning with Equinox: frames of Pong and what a simple player did, from a pack to a policy.

pip install gristmill[jax,atari] equinox optax
python examples/14_clone_a_player_with_equinox.py [pong-pack/]
"""

import os
import sys
from collections.abc import Iterator
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax

import gristmill as gm
import gristmill.jax

#: Steps of an episode, and how often the loader gives each of all.
LENGTH, EPOCHS = 400, 16

#: What is done: nothing, up, down.
NOOP, UP, DOWN = 0, 2, 3
ACTIONS = np.array([NOOP, UP, DOWN])

#: How bright the field is where nothing is.
GROUND = 87

#: Where the memory of the console has the height of the own bat and of the ball.
BAT, BALL = 51, 54


def points(frame: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The field of a frame in 40 by 40 points, each as bright as the brightest of its 16, without the ground."""
    field: np.ndarray[Any, Any] = frame[34:194].reshape(40, 4, 40, 4).max((1, 3))
    return np.where(field == GROUND, 0, field)


def episodes(count: int) -> Iterator[np.ndarray[Any, Any]]:
    """Games of a player that follows the ball: frames of 40 by 40 grey points, the frame before, and what it did."""
    import ale_py
    import gymnasium

    gymnasium.register_envs(ale_py)
    step = np.dtype([("obs", "u1", (2, 40, 40)), ("acts", "i4")])
    env = gymnasium.make("ALE/Pong-v5", obs_type="grayscale", frameskip=2, repeat_action_probability=0.0)
    for seed in range(count):
        frame, _ = env.reset(seed=seed)
        steps, before = np.zeros(LENGTH, step), points(frame)
        for at in range(LENGTH):
            memory = env.unwrapped.ale.getRAM()  # type: ignore[attr-defined]  # of the emulator alone
            apart = int(memory[BALL]) - int(memory[BAT]) - 8
            what = 0 if memory[BALL] == 0 or abs(apart) < 4 else 1 if apart < 0 else 2
            now = points(frame)
            steps[at] = (np.stack([before, now]), what)
            before = now
            (
                frame,
                *_,
            ) = env.step(int(ACTIONS[what]))
        yield steps
    env.close()


class Policy(eqx.Module):
    """Two convolutions and a head over the three moves."""

    first: eqx.nn.Conv2d
    second: eqx.nn.Conv2d
    head: eqx.nn.Linear

    def __init__(self, key: jax.Array) -> None:
        keys = jax.random.split(key, 3)
        self.first = eqx.nn.Conv2d(2, 8, 5, 2, key=keys[0])
        self.second = eqx.nn.Conv2d(8, 16, 5, 2, key=keys[1])
        self.head = eqx.nn.Linear(16 * 7 * 7, len(ACTIONS), key=keys[2])

    def __call__(self, frames: jax.Array) -> jax.Array:
        points = jax.nn.relu(self.first(frames.astype(jnp.float32) / 255))
        return self.head(jax.nn.relu(self.second(points)).reshape(-1))


def loss(policy: Policy, batch: dict[str, jax.Array]) -> jax.Array:
    """Cross entropy of what the player did."""
    chances = jax.nn.log_softmax(jax.vmap(policy)(batch["obs"]))
    return -jnp.take_along_axis(chances, batch["acts"][:, None], 1).mean()


def main(pack: str = "example-pong") -> None:
    if not os.path.isdir(pack):
        gm.pack(episodes(6), pack)
    rows = gm.open(pack)
    policy = Policy(jax.random.key(1))
    optimizer = optax.adam(2e-3)
    memory = optimizer.init(eqx.filter(policy, eqx.is_array))

    @eqx.filter_jit
    def step(
        policy: Policy, memory: optax.OptState, batch: dict[str, jax.Array]
    ) -> tuple[Policy, optax.OptState, jax.Array]:
        error, slopes = eqx.filter_value_and_grad(loss)(policy, batch)
        changes, memory = optimizer.update(slopes, memory)
        return eqx.apply_updates(policy, changes), memory, error

    losses: list[float] = []
    loader = gm.DataLoader(rows, encoder=gm.Fields(["obs", "acts"]), batch_size=64, seed=1, epochs=EPOCHS, joined=True)
    with gm.jax.feed(loader) as feed:
        for number, batch in enumerate(feed):
            policy, memory, error = step(policy, memory, batch)
            losses.append(float(error))
            if number % 50 == 0:
                print(number, losses[-1])
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
