"""Batches as JAX arrays, without a copy on the CPU; over several processes as parts of global arrays.

Once this is imported, `Batch` and `PairBatch` are pytrees: `jax.device_put(batch)`, `jax.tree.map(f, batch)` and
`jax.jit` take them as they are. The number of a batch is no part of the tree: a jitted step is compiled once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

import jax
import numpy as np

from gristmill.demos.mixing import MixedLoader
from gristmill.frameworks.expand_jax import expand as expand
from gristmill.frameworks.feed_jax import feed as feed
from gristmill.loaders.batch import Batch
from gristmill.loaders.loader import DataLoader
from gristmill.pairs import PairBatch
from gristmill.records.arrays import Array


def _register() -> None:
    """Makes pytrees of batches: their arrays are the leaves, by name."""

    def parts(batch: Batch) -> tuple[list[tuple[Any, Any]], tuple[tuple[str, ...], int]]:
        return [(jax.tree_util.DictKey(name), array) for name, array in batch.items()], (batch.names, batch.rows)

    def again(told: tuple[tuple[str, ...], int], arrays: Iterable[Any]) -> Batch:
        names, rows = told
        return Batch(-1, rows, dict(zip(names, arrays, strict=True)))

    jax.tree_util.register_pytree_with_keys(Batch, parts, again)
    fields = ("context", "target", "extra_context", "traj_ts_ids")
    jax.tree_util.register_dataclass(PairBatch, data_fields=fields, meta_fields=())


_register()


def arrays(batch: Batch | Mapping[str, Array]) -> dict[str, jax.Array]:
    """The same memory as JAX arrays, by name.

    JAX has no 64-bit types unless `jax_enable_x64` is set: make whole numbers with `dtype="i32"`.

    Raises:
        TypeError: a 64-bit array, without `jax_enable_x64`.
    """
    wide = [name for name, array in batch.items() if array.dtype.itemsize == 8]
    if wide and not _has_wide():
        raise TypeError(f'`{wide[0]}` is 64-bit, which JAX would cut: take an encoder with dtype="i32"')
    return {name: jax.dlpack.from_dlpack(array) for name, array in batch.items()}


@overload
def batches(
    loader: DataLoader, alias: str = "", *, sharding: jax.sharding.Sharding | None = None
) -> Iterator[dict[str, jax.Array]]: ...
@overload
def batches(loader: MixedLoader[Any], *, sharding: jax.sharding.Sharding | None = None) -> Iterator[dict[str, Any]]: ...
def batches(
    loader: DataLoader | MixedLoader[Any], alias: str = "", *, sharding: jax.sharding.Sharding | None = None
) -> Iterator[dict[str, Any]]:
    """The batches of a loader as JAX arrays, by name.

    Args:
        loader: a `DataLoader`; or a `PairLoader` or `StepLoader`, with arrays as `named` gives them.
        alias: which output of a `DataLoader`.
        sharding: how the batches of all processes together lie on their devices: each process puts its rows on its
            own. Without it, arrays are on the first device.
    """
    found = loader.batches(alias) if isinstance(loader, DataLoader) else loader
    # What encoders make can be made small; what lies in data sets is as it is.
    made: Any = arrays if isinstance(loader, DataLoader) and not loader.of_steps else named
    return (_placed(made(batch), sharding) for batch in found)


def named(batch: Batch | PairBatch | Mapping[str, Any]) -> dict[str, Any]:
    """A batch of pairs or steps as JAX arrays, by name; without `extra_context` where there is none.

    Unless `jax_enable_x64` is set, whole numbers become int32. Of steps, `infos` stays a list of dictionaries.

    Raises:
        TypeError: 64-bit floats, without `jax_enable_x64`: take `prepare=gm.pairs.Prepare()`.
        OverflowError: a whole number that int32 does not hold.
    """
    found = batch.asdict() if isinstance(batch, PairBatch) else batch
    return {name: value if isinstance(value, list) else _array(name, value) for name, value in found.items()}


def _array(name: str, array: np.ndarray[Any, Any]) -> Any:
    if array.dtype.itemsize == 8 and not _has_wide():
        if array.dtype.kind not in "iu":
            message = f"`{name}` is {array.dtype}, which JAX would cut"
            raise TypeError(f"{message}: make floats of 32 bits with prepare=gm.pairs.Prepare()")
        narrow = array.astype(np.int32)
        if not np.array_equal(narrow, array):
            raise OverflowError(f"`{name}` has whole numbers beyond int32; set jax_enable_x64")
        return jax.numpy.array(narrow)
    return jax.dlpack.from_dlpack(array) if isinstance(array, Array) else jax.numpy.array(array)


def _placed(found: dict[str, Any], sharding: jax.sharding.Sharding | None) -> dict[str, Any]:
    if sharding is None:
        return found
    put: Any = jax.make_array_from_process_local_data
    return {name: value if isinstance(value, list) else put(sharding, value) for name, value in found.items()}


def _has_wide() -> bool:
    return bool(jax.config.jax_enable_x64)  # type: ignore[attr-defined]
