"""Compact tensors -> those of the host encoder, in JAX: compiled once for each shape."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from gristmill.frameworks import compact
from gristmill.frameworks.compact import FIXED, MOVES, STORED
from gristmill.frameworks.turn_jax import image, imaged, symmetry, turned
from gristmill.loaders.batch import Batch

_PLANES = {"f32": jnp.float32, "bf16": jnp.bfloat16, "f16": jnp.float16, "u8": jnp.uint8}
_TOKENS = {"i64": jnp.int64, "i32": jnp.int32, "u8": jnp.uint8}


def expand(
    batch: Batch | Mapping[str, Any], *, planes: compact.Planes = "f32", tokens: compact.Tokens = "i32"
) -> dict[str, Any]:
    """The tensors of the host encoder, bit for bit, made of the compact ones where these lie.

    `planes_packed` or `planes_position` becomes `planes` (..., 112, 8, 8), `probs_indices` and `probs_values` become
    `probs` (..., 1858), `legal_bits` becomes `legal` (bool, (..., 1858)), `board_nibbles` becomes `tokens` (..., 16);
    docs/format/compact.md has their bytes. Where `symmetry_draws` lies, which is taken out, the symmetry of each row is
    drawn of it as the host draws it, and board, values, moves and masks are turned; so are planes, values and moves of
    KataGo's rows where `image_draws` lies, which becomes `symmetry` (uint8, (...)).
    All else passes as it is. Each is compiled once for each shape; within a jitted step it becomes part of the step.

    Args:
        batch: a batch, or arrays by name, with any leading axes.
        planes: element type of `planes`, as the outputs `planes:f32`, `planes:bf16`, `planes:f16` and `planes:u8` have.
        tokens: element type of `tokens`: what the encoder's `dtype` would be.

    Raises:
        ValueError: a compact tensor of another type or shape; a name that is there twice; an element type not known.
        TypeError: `tokens="i64"` without `jax_enable_x64`.
    """
    of_planes, of_tokens = compact.choice("planes", planes, _PLANES), compact.choice("tokens", tokens, _TOKENS)
    if tokens == "i64" and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise TypeError('tokens="i64", which JAX would cut: take "i32", or set jax_enable_x64')
    made: dict[str, Callable[..., Any]] = {
        "planes": partial(_planes, dtype=of_planes),
        "position": partial(_position, dtype=of_planes),
        "probs": _probs,
        "legal": _legal,
        "tokens": partial(_tokens, dtype=of_tokens),
        "symmetry": symmetry,
        "turned": turned,
        "image": image,
        "imaged": imaged,
    }
    return compact.expanded(batch, made, lambda array: str(array.dtype))


def _bits(numbers: jax.Array, *, highest_first: bool = False) -> jax.Array:
    """The bits of bytes, with an axis of 8 more."""
    places = np.arange(8, dtype=np.uint8)
    return (numbers[..., None] >> (places[::-1] if highest_first else places)) & 1


def _nibbles(numbers: jax.Array) -> jax.Array:
    """The halves of bytes, the upper one first."""
    return jnp.stack([numbers >> 4, numbers & 15], axis=-1).reshape(*numbers.shape[:-1], -1)


@partial(jax.jit, static_argnames="dtype")
def _planes(packed: jax.Array, dtype: Any) -> jax.Array:
    stored = _bits(packed[..., :STORED], highest_first=True).reshape(*packed.shape[:-1], 104, 8, 8)
    rest = packed[..., STORED:]
    return _whole(stored, jnp.concatenate([rest[..., :7], rest[..., 8:9]], axis=-1), dtype)


@partial(jax.jit, static_argnames="dtype")
def _position(packed: jax.Array, dtype: Any) -> jax.Array:
    changes = compact.room(packed.shape[-1])
    cells = _nibbles(packed[..., :32])
    repeated, shown, changed = (_bits(packed[..., i]) for i in (32, 33, 34))
    squares, men = packed[..., FIXED : FIXED + changes], _nibbles(packed[..., FIXED + changes :])[..., :changes]
    # Of each changed square, and of each board, which of the boards with changes it is.
    of_square = jnp.cumsum((squares >> 6) & 1, axis=-1, dtype=jnp.int32)
    of_board = jnp.cumsum(changed, axis=-1, dtype=jnp.int32)
    is_there = (squares[..., None] & 191) == np.arange(64, dtype=np.uint8)
    boards = []
    for board in range(8):
        is_of = (of_square == of_board[..., board, None]) & (changed[..., board, None] == 1)
        here = is_there & is_of[..., None]
        put = jnp.max(jnp.where(here, men[..., None] + jnp.uint8(1), 0), axis=-2)
        cells = jnp.where(put > 0, put - 1, cells)
        kinds = (cells[..., None, :] == np.arange(1, 13, dtype=np.uint8)[:, None]) & (
            shown[..., board, None, None] == 1
        )
        mark = jnp.broadcast_to(repeated[..., board, None, None] == 1, (*cells.shape[:-1], 1, 64))
        boards += [kinds, mark]
    stored = jnp.concatenate(boards, axis=-2).astype(jnp.uint8).reshape(*packed.shape[:-1], 104, 8, 8)
    return _whole(stored, packed[..., 35:FIXED], dtype)


def _whole(stored: jax.Array, scalars: jax.Array, dtype: Any) -> jax.Array:
    """The stored planes, and those of seven scalars and the input format behind them."""
    lead = stored.shape[:-3]
    # Scalars with two axes more, which are rank and file.
    us_ooo, us_oo, them_ooo, them_oo, side, count, info, form = (scalars[..., i, None, None] for i in range(8))
    square = jnp.zeros((8, 8), jnp.uint8)
    ranks, files = np.arange(8)[:, None], np.arange(8, dtype=np.uint8)

    def edge(first: jax.Array, last: jax.Array) -> jax.Array:
        return jnp.where(ranks == 0, (first >> files) & 1, jnp.where(ranks == 7, (last >> files) & 1, 0)).astype(
            jnp.uint8
        )

    masks = form >= 2
    nothing = jnp.zeros_like(form)
    whole = [
        jnp.where(masks, edge(us_ooo, them_ooo), us_ooo),
        jnp.where(masks, edge(us_oo, them_oo), us_oo),
        jnp.where(masks, nothing, them_ooo),
        jnp.where(masks, nothing, them_oo),
        jnp.where(form >= 3, edge(nothing, side), side),
        count,
        ((form >= 132) & (info >= 128)).astype(jnp.uint8),
        jnp.ones_like(form),
    ]
    planes = jnp.concatenate([stored, jnp.stack([plane + square for plane in whole], axis=-3)], axis=-3).astype(dtype)
    if dtype == jnp.uint8:
        return planes
    table = jnp.asarray(compact.quotients()).astype(dtype)
    counted = table[(form >= 4).astype(jnp.int32), count.astype(jnp.int32)]
    return planes.at[..., 109, :, :].set(jnp.broadcast_to(counted, (*lead, 8, 8)))


@jax.jit
def _probs(indices: jax.Array, values: jax.Array) -> jax.Array:
    # As whole numbers: a NaN keeps its bits.
    bits = jax.lax.bitcast_convert_type(values, jnp.uint32).reshape(-1, values.shape[-1])
    moves = indices.reshape(-1, values.shape[-1]).astype(jnp.int32)
    rows = np.arange(len(bits))[:, None]
    policy = jnp.broadcast_to(bits[:, -1:], (len(bits), MOVES))
    policy = policy.at[rows, jnp.where(moves < 0, MOVES, moves)].set(bits, mode="drop")
    return jax.lax.bitcast_convert_type(policy, jnp.float32).reshape(*values.shape[:-1], MOVES)


@jax.jit
def _legal(packed: jax.Array) -> jax.Array:
    return _bits(packed).reshape(*packed.shape[:-1], -1)[..., :MOVES].astype(bool)


@partial(jax.jit, static_argnames="dtype")
def _tokens(packed: jax.Array, dtype: Any) -> jax.Array:
    large = _bits(packed[..., 8:]).reshape(*packed.shape[:-1], 16)
    return jnp.where(large == 1, 16, _nibbles(packed[..., :8])).astype(dtype)
