"""Steps of JAX on its default device."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import gristmill as gm
import gristmill.jax
from gristmill.frameworks.ahead import DeviceFeed

BLOCKS, FILTERS = 10, 128


class Steps:
    """Steps of JAX on the default device."""

    def __init__(self) -> None:
        self.name = jax.devices()[0].device_kind
        self.done: Any = None

    def feed(self, loader: gm.DataLoader) -> DeviceFeed:
        """The feed of a loader to the device."""
        return gristmill.jax.feed(loader, ahead=2)

    def wait(self) -> None:
        """Waits until the device has done all steps."""
        jax.block_until_ready(self.done)

    def sum(self) -> Callable[[Any], None]:
        """A step that makes a batch whole and adds it up."""
        self.done = jnp.zeros(())

        @jax.jit
        def added(total: Any, batch: Any) -> Any:
            whole = gristmill.jax.expand(batch, planes="bf16")
            return total + whole["planes"].sum(dtype=jnp.float32) + whole["probs"].sum() + whole["values"].sum()

        def step(batch: Any) -> None:
            self.done = added(self.done, batch)

        return step

    def net(self) -> Callable[[Any], None]:
        """A step that trains the network."""
        keys = iter(jax.random.split(jax.random.key(0), 3 + 2 * BLOCKS))

        def weights(*shape: int) -> Any:
            return jax.random.normal(next(keys), shape) * 0.03

        net = {
            "first": weights(3, 3, 112, FILTERS),
            "tower": [(weights(3, 3, FILTERS, FILTERS), weights(3, 3, FILTERS, FILTERS)) for _ in range(BLOCKS)],
            "policy": weights(FILTERS * 64, 1858),
            "value": weights(FILTERS * 64, 3),
        }

        def conv(found: Any, kernel: Any) -> Any:
            return jax.lax.conv_general_dilated(
                found, kernel.astype(jnp.bfloat16), (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
            )

        def loss(net: Any, batch: Any) -> Any:
            whole = gristmill.jax.expand(batch, planes="bf16")
            found = jax.nn.relu(conv(whole["planes"].astype(jnp.bfloat16).transpose(0, 2, 3, 1), net["first"]))
            for first, second in net["tower"]:
                found = jax.nn.relu(found + conv(jax.nn.relu(conv(found, first)), second))
            found = found.reshape(len(found), -1)
            heads = [(found @ net[head].astype(jnp.bfloat16)).astype(jnp.float32) for head in ("policy", "value")]
            policy, value = map(jax.nn.log_softmax, heads)
            wanted = jnp.maximum(whole["probs"], 0)
            return -(wanted * policy).sum(1).mean() - (whole["values"][:, 0] * value).sum(1).mean()

        @jax.jit
        def train(net: Any, batch: Any) -> Any:
            return jax.tree.map(lambda weight, slope: weight - 0.001 * slope, net, jax.grad(loss)(net, batch))

        self.done = net

        def step(batch: Any) -> None:
            self.done = train(self.done, batch)

        return step
