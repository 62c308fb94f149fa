"""Batches as JAX arrays, without a copy on the CPU."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import jax

from gristmill.arrays import Array
from gristmill.loader import DataLoader


def arrays(batch: Mapping[str, Array]) -> dict[str, jax.Array]:
    """The same memory as JAX arrays, by name.

    JAX has no 64-bit types unless `jax_enable_x64` is set: make whole numbers with `dtype="i32"`.

    Raises:
        TypeError: a 64-bit array, without `jax_enable_x64`.
    """
    wide = [name for name, array in batch.items() if array.dtype.itemsize == 8]
    if wide and not jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        raise TypeError(f'`{wide[0]}` is 64-bit, which JAX would cut: take an encoder with dtype="i32"')
    return {name: jax.dlpack.from_dlpack(array) for name, array in batch.items()}


def batches(loader: DataLoader, alias: str = "") -> Iterator[dict[str, jax.Array]]:
    """The batches of a loader as JAX arrays, by name."""
    return (arrays(batch.asdict()) for batch in loader.batches(alias))
