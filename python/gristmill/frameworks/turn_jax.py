"""Draws of rows -> the symmetry that the host draws, and tensors turned by it, in JAX: words of 32 bits alone."""

from __future__ import annotations

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from gristmill.frameworks import symmetries


def _product(a: jax.Array, by: int) -> tuple[jax.Array, jax.Array]:
    """The upper and the lower half of a product of 64 bits, by halves of 16 bits."""
    low, high = a & 0xFFFF, a >> 16
    by_low, by_high = jnp.uint32(by & 0xFFFF), jnp.uint32(by >> 16)
    one, two = low * by_high, high * by_low
    middle = (low * by_low >> 16) + (one & 0xFFFF) + (two & 0xFFFF)
    return high * by_high + (one >> 16) + (two >> 16) + (middle >> 16), a * jnp.uint32(by)


def _bits(draws: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The lower and the upper half of the random bits of rows."""
    k0, k1, c0, c1, words = (draws[..., i] for i in range(5))
    c2, c3 = words >> 2, jnp.zeros_like(words)
    for _ in range(symmetries.ROUNDS):
        (p_high, p_low), (q_high, q_low) = (
            _product(c, by) for c, by in zip((c0, c2), symmetries.MULTIPLIERS, strict=True)
        )
        c0, c1, c2, c3 = q_high ^ c1 ^ k0, q_low, p_high ^ c3 ^ k1, p_low
        k0, k1 = (k + jnp.uint32(step) for k, step in zip((k0, k1), symmetries.KEY_STEPS, strict=True))
    # Bits are two words, so that an even number of them is drawn before.
    is_first = words & 2 == 0
    return jnp.where(is_first, c0, c2), jnp.where(is_first, c1, c3)


def _choice(how: jax.Array, half: jax.Array, choices: int) -> jax.Array:
    """0 where nothing is drawn; one of all choices, or of all but the first."""
    changed = 1 + _product(half, choices - 1)[0]
    return jnp.where(how == 0, 0, jnp.where(how == 1, _product(half, choices)[0], changed)).astype(jnp.int32)


@jax.jit
def symmetry(draws: jax.Array) -> jax.Array:
    """The symmetry of each row of `symmetry_draws` (int32, (..., 6)), 0 to 7."""
    words = draws.astype(jnp.uint32)
    low, high = _bits(words)
    how = words[..., 5]
    turns, mirror = _choice(how % 3, low, 4), _choice(how // 3, high, 3)
    return jnp.asarray(symmetries.NUMBERS)[3 * turns + mirror]


@partial(jax.jit, static_argnames="name")
def turned(name: str, symmetry: jax.Array, values: jax.Array) -> jax.Array:
    """A tensor of the name as the host turns it. `symmetry` has the leading axes of `values`."""
    what = symmetries.TURNED[name]
    if what == "directions":
        directions = jnp.asarray(symmetries.DIRECTIONS).reshape(-1)
        return directions[4 * symmetry + values.astype(jnp.int32)].astype(values.dtype)
    return _moved(values, jnp.asarray(symmetries.PLACES[what])[symmetry])


@jax.jit
def image(draws: jax.Array) -> jax.Array:
    """The image of each row of `image_draws` (int32, (..., 5)), 0 to 7 (uint8)."""
    return (_bits(draws.astype(jnp.uint32))[0] & 7).astype(jnp.uint8)


@partial(jax.jit, static_argnames="axes")
def imaged(axes: symmetries.Axes, image: jax.Array, values: jax.Array) -> jax.Array:
    """A tensor of Go as the host turns it. `image` has the leading axes of `values`."""
    edge = symmetries.edge(axes, values.shape)
    points = edge * edge
    places = jnp.asarray(symmetries.images(edge))[image.astype(jnp.int32)][..., None, :]
    if axes == "points":
        return _moved(values.reshape(*values.shape[:-2], points), places).reshape(values.shape)
    if axes == "moves":
        return jnp.concatenate([_moved(values[..., :points], places), values[..., points:]], axis=-1)
    weights = np.arange(7, -1, -1, dtype=np.uint8)
    bits = ((values[..., None] >> weights) & 1).reshape(*values.shape[:-1], -1)
    turned = jnp.concatenate([_moved(bits[..., :points], places), jnp.zeros_like(bits[..., points:])], axis=-1)
    return jnp.sum(turned.reshape(*values.shape, 8) << weights, axis=-1, dtype=jnp.uint8)


def _moved(values: jax.Array, places: jax.Array) -> jax.Array:
    """What stands at places of the last axis. As whole numbers: a NaN keeps its bits."""
    if values.dtype != jnp.float32:
        return jnp.take_along_axis(values, places, axis=-1)
    bits = jnp.take_along_axis(jax.lax.bitcast_convert_type(values, jnp.uint32), places, axis=-1)
    return jax.lax.bitcast_convert_type(bits, jnp.float32)
