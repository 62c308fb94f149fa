"""A feed of JAX arrays: private copies on the CPU, copies under way elsewhere; parts of arrays over processes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import jax
import numpy as np

from gristmill.demos.mixing import MixedLoader
from gristmill.frameworks.ahead import DeviceFeed, pin
from gristmill.loaders.loader import DataLoader
from gristmill.pairs import PairBatch

#: Where arrays lie: all of them alike, or by name.
Placing: TypeAlias = jax.sharding.Sharding | jax.Device | Mapping[str, jax.sharding.Sharding]


def feed(
    loader: DataLoader | MixedLoader[Any], alias: str = "", *, sharding: Placing | None = None, ahead: int = 2
) -> DeviceFeed:
    """The batches of a loader as JAX arrays, by name, some of them on their way while a step runs.

        for batch in gm.jax.feed(loader, sharding=NamedSharding(mesh, PartitionSpec("data"))):
            weights = step(weights, gm.jax.expand(batch))

    No array shares memory with the loader, so that a step may be given any of them (`donate_argnums`). Of pairs and
    steps, the arrays are those of `gristmill.jax.named`.

    Args:
        loader: a `DataLoader`, `PairLoader` or `StepLoader`.
        alias: which output of a `DataLoader`.
        sharding: how the batches of all processes together lie on their devices: each process puts its rows on its
            own. Any sharding over any mesh; a device; or a sharding by name of array. Without it, arrays are on the
            default device.
        ahead: how many batches may be on their way.

    Raises:
        TypeError: no loader, or no sharding; 64-bit arrays of an encoder without `jax_enable_x64` (at the batch).
        ValueError: `ahead` is no such number; arrays that the sharding does not divide.
        ConfigError: there is no such output.
    """
    placing = _placing(sharding)
    made = DeviceFeed(loader, alias, ahead, _bring(placing, isinstance(loader, DataLoader) and not loader.of_steps))
    if isinstance(loader, DataLoader):
        _check(loader, alias, placing)
    return made


def _placing(given: Any) -> Any:
    """The sharding of all arrays, or shardings by name."""
    if given is None or isinstance(given, jax.sharding.Sharding):
        return given
    if isinstance(given, jax.Device):
        return jax.sharding.SingleDeviceSharding(given)
    if isinstance(given, Mapping) and all(isinstance(value, jax.sharding.Sharding) for value in given.values()):
        return dict(given)
    raise TypeError(
        f"sharding is {type(given).__name__}; expected a jax.sharding.Sharding, such as NamedSharding(mesh, "
        'PartitionSpec("data")), a device, or a dictionary of shardings by name of array'
    )


def _check(loader: DataLoader, alias: str, placing: Any) -> None:
    """Refuses before the first batch what would fail at it, where one process has all devices."""
    output = loader.outputs.get(alias) or next(iter(loader.outputs.values()))
    for tensor in output.tensors if placing is not None else ():
        sharding = _of(tensor.name, placing)
        if sharding.is_fully_addressable:
            shape = (output.batch_size, *tensor.row_shape)
            try:
                # A sharding by axes of more than the array has.
                getattr(sharding, "check_compatible_aval", len)(shape)
                sharding.shard_shape(shape)
            except ValueError as error:
                raise _unfit(tensor.name, shape, sharding, error) from None


def _of(name: str, placing: Any) -> jax.sharding.Sharding:
    found = placing.get(name) if isinstance(placing, dict) else placing
    if found is None:
        raise ValueError(f"no sharding is given for `{name}`; there are those of {', '.join(map(repr, placing))}")
    sharding: jax.sharding.Sharding = found
    return sharding


def _unfit(name: str, shape: tuple[int, ...], sharding: jax.sharding.Sharding, error: Exception) -> ValueError:
    return ValueError(
        f"`{name}` has the shape {shape} here, which {sharding} does not divide: take a batch_size that the devices "
        f'divide, and last_batch="drop" or "pad" where the last one has fewer rows ({error})'
    )


def _bring(placing: Any, made: bool) -> Callable[[Any], Callable[[], dict[str, Any]]]:
    devices = _devices(placing)
    # A CPU device would share the memory of the batch, which the loader uses again and a step may be given.
    on_host = any(device.platform == "cpu" for device in devices)
    gpu = next((device.local_hardware_id for device in devices if device.platform == "gpu"), None)

    def bring(batch: Any) -> Callable[[], dict[str, Any]]:
        if gpu is not None:
            # JAX copies other memory to some that is pinned first.
            pin(batch, gpu)
        found = batch.asdict() if isinstance(batch, PairBatch) else dict(batch.items())
        placed = {name: _put(name, _fit(name, value, made), placing, on_host) for name, value in found.items()}
        return lambda: placed

    return bring


def _devices(placing: Any) -> list[Any]:
    """The devices of this process that get arrays."""
    if placing is None:
        default: Any = jax.config.jax_default_device  # type: ignore[attr-defined]
        return [default] if isinstance(default, jax.Device) else jax.local_devices(backend=default)[:1]
    shardings = placing.values() if isinstance(placing, dict) else [placing]
    return [device for sharding in shardings for device in sharding.addressable_devices]


def _fit(name: str, value: Any, made: bool) -> Any:
    """An array that JAX does not cut; of pairs and steps, whole numbers are made int32. Lists stay."""
    if isinstance(value, list) or value.dtype.itemsize != 8 or jax.config.jax_enable_x64:  # type: ignore[attr-defined]
        return value
    if made:
        raise TypeError(f'`{name}` is 64-bit, which JAX would cut: take an encoder with dtype="i32"')
    if value.dtype.kind not in "iu":
        message = f"`{name}` is {value.dtype}, which JAX would cut"
        raise TypeError(f"{message}: make floats of 32 bits with prepare=gm.pairs.Prepare()")
    narrow = np.asarray(value).astype(np.int32)
    if not np.array_equal(narrow, value):
        raise OverflowError(f"`{name}` has whole numbers beyond int32; set jax_enable_x64")
    return narrow


def _put(name: str, value: Any, placing: Any, on_host: bool) -> Any:
    if isinstance(value, list):
        return value
    array = np.array(value) if on_host else np.asarray(value)
    if placing is None:
        return jax.device_put(array)
    sharding = _of(name, placing)
    make: Any = jax.make_array_from_process_local_data
    try:
        return make(sharding, array)
    except ValueError as error:
        raise _unfit(name, array.shape, sharding, error) from None
