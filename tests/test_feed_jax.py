"""Feeds of JAX arrays: the values of the loader, any mesh, several processes, steps that are given their batches."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax_processes
import numpy as np
import pytest
from feeds import KINDS, maker, plain
from steps_in_memory import columns

import gristmill as gm

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
adapter: Any = pytest.importorskip("gristmill.jax")


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Any]:
    return maker(tmp_path_factory.mktemp("data"))


def loader_of(make: Callable[[str], Any], kind: str) -> Any:
    """A loader whose floats JAX takes as they are."""
    if kind == "pairs":
        demos = columns([5, 7, 6, 8])
        return gm.PairLoader(demos, gm.pairs.TemporalOffset("dynamics"), batch_size=6, seed=1)
    if kind in ("steps", "demos"):
        demos = columns([5, 7, 6, 8])
        made: Any = gm.StepLoader if kind == "steps" else gm.DataLoader
        return made(demos, batch_size=6, seed=1, prepare=gm.pairs.Prepare())
    return make(kind)


@pytest.mark.parametrize("kind", KINDS)
def test_arrays_are_those_of_the_loader_and_resume(make: Callable[[str], Any], kind: str) -> None:
    expected = [plain(batch) for batch in adapter.batches(loader_of(make, kind))]
    fed = adapter.feed(loader_of(make, kind))
    found = []
    for batch in fed:
        assert all(isinstance(value, list | jax.Array) for value in batch.values())
        found.append(plain(batch))
        if len(found) == 2:
            state = fed.state_dict()
    assert found == expected
    again = adapter.feed(loader_of(make, kind), ahead=3)
    again.load_state_dict(state)
    assert [plain(batch) for batch in again] == expected[2:]


def test_a_step_may_be_given_its_batch(make: Callable[[str], Any]) -> None:
    """Whatever a donated step writes, the loader's memory and the batches that follow are what they were."""

    def step(batch: dict[str, Any]) -> dict[str, Any]:
        return {name: array + array.dtype.type(1) for name, array in batch.items()}

    donating = jax.jit(step, donate_argnums=0)
    kept = [{name: np.array(array) for name, array in batch.items()} for batch in make("games").batches()]
    mesh = jax.make_mesh((1,), ("data",))
    whole = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    for sharding in (None, whole):
        for expected, batch in zip(kept, adapter.feed(make("games"), sharding=sharding), strict=True):
            names = list(batch)
            made = donating(batch)
            for name in names:
                np.testing.assert_array_equal(made[name], expected[name] + expected[name].dtype.type(1))


def test_shardings_that_do_not_fit_are_refused(make: Callable[[str], Any]) -> None:
    loader = make("games")
    for wrong in ("data", 3, {"values": "data"}, [None]):
        with pytest.raises(TypeError, match=r"expected a jax\.sharding\.Sharding, such as NamedSharding"):
            adapter.feed(loader, sharding=wrong)
    device = jax.sharding.SingleDeviceSharding(jax.devices()[0])
    with pytest.raises(ValueError, match="no sharding is given for `planes_packed`; there are those of 'values'"):
        adapter.feed(loader, sharding={"values": device})
    mesh = jax.make_mesh((1,), ("data",))
    many = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(None, None, None, "data"))
    with pytest.raises(ValueError, match=r"`planes_packed` has the shape \(50, 844\) here"):
        adapter.feed(loader, sharding=many)


def test_what_jax_would_cut_is_refused_at_the_batch(make: Callable[[str], Any]) -> None:
    loader = gm.DataLoader(make("games")._given["source"], encoder=gm.chess.Tensors(["ids"]), batch_size=8)
    with pytest.raises(TypeError, match="`ids` is 64-bit, which JAX would cut"):
        next(adapter.feed(loader))
    floats = gm.pairs.Columns([4], {"obs": np.zeros((4, 1)), "acts": np.full(4, 2**40), "dones": np.zeros(4, bool)})
    with pytest.raises(TypeError, match="`obs` is float64"):
        next(adapter.feed(gm.StepLoader(floats, batch_size=2)))
    with pytest.raises(OverflowError, match="`acts` has whole numbers beyond int32"):
        next(adapter.feed(gm.StepLoader(floats, batch_size=2, prepare=gm.pairs.Prepare())))


def test_any_mesh_has_the_rows_where_they_belong() -> None:
    """In a process of its own, whose CPU counts as four devices."""
    program = """
import jax, numpy as np, gristmill as gm, gristmill.jax
from jax.sharding import NamedSharding, PartitionSpec as P, SingleDeviceSharding
data = gm.pairs.Columns([42], {"obs": np.arange(84, dtype=np.float32).reshape(42, 2), "acts": np.arange(42),
                               "dones": np.zeros(42, bool)})
loader = lambda **more: gm.StepLoader(data, batch_size=8, seed=3, **more)
expected = [{k: np.array(v) for k, v in batch.items() if k != "infos"} for batch in loader()]
line, square = jax.make_mesh((4,), ("data",)), jax.make_mesh((2, 2), ("data", "model"))
last = SingleDeviceSharding(jax.devices()[3])
by_name = dict.fromkeys(expected[0], NamedSharding(line, P("data"))) | {"dones": NamedSharding(line, P())}
for sharding in (NamedSharding(line, P("data")), NamedSharding(line, P()), NamedSharding(square, P("data")),
                 NamedSharding(square, P(("data", "model"))), last, jax.devices()[3], by_name):
    feed = gristmill.jax.feed(loader(), sharding=sharding)
    donate = jax.jit(lambda batch: {k: v + v.dtype.type(1) if v.dtype != bool else ~v for k, v in batch.items()},
                     donate_argnums=0)
    for batch, rows in zip(feed, expected, strict=True):
        batch = {name: array for name, array in batch.items() if name != "infos"}
        for name, array in batch.items():
            assert array.shape == rows[name].shape, name
            for shard in array.addressable_shards:
                np.testing.assert_array_equal(np.asarray(shard.data), rows[name][shard.index])
            where = sharding[name] if isinstance(sharding, dict) else sharding
            where = SingleDeviceSharding(where) if isinstance(where, jax.Device) else where
            assert array.sharding.is_equivalent_to(where, array.ndim)
        made = donate(batch)
        np.testing.assert_array_equal(made["obs"], rows["obs"] + 1)
feed = gristmill.jax.feed(loader(drop_last=False), sharding=NamedSharding(line, P("data")))
for _ in range(5):
    next(feed)
try:
    next(feed)
except ValueError as error:
    assert "here, which NamedSharding" in str(error) and 'last_batch="drop" or "pad"' in str(error), error
else:
    raise AssertionError("two rows on four devices")
"""
    environment = os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=4", "JAX_PLATFORMS": "cpu"}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr


def test_processes_feed_global_arrays_and_resume(tmp_path: Path) -> None:
    """Two real processes of one group: each puts its rows on its device; both resume from one state."""
    program = """
import json, sys, jax, numpy as np, gristmill as gm, gristmill.jax
from jax.sharding import NamedSharding, PartitionSpec
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
fields = {"obs": np.zeros((40, 1), np.float32), "acts": np.arange(40), "dones": np.zeros(40, bool)}
data = gm.pairs.Columns([40], fields)
sharding = NamedSharding(jax.make_mesh((2,), ("data",)), PartitionSpec("data"))
def rows(batch):
    assert batch["acts"].shape == (8,)
    (own,) = batch["acts"].addressable_shards
    return np.asarray(own.data).tolist()
feed = gristmill.jax.feed(gm.StepLoader(data, batch_size=8, seed=3), sharding=sharding)
for number, batch in enumerate(feed):
    print(json.dumps(rows(batch)))
    if number == 1:
        state = feed.state_dict()
again = gristmill.jax.feed(gm.StepLoader(data, batch_size=8, seed=3), sharding=sharding)
again.load_state_dict(state)
for batch in again:
    print(json.dumps(rows(batch)))
"""
    shares = jax_processes.two(program)
    data = columns([40], shape=(1,))
    whole = [batch["acts"].tolist() for batch in gm.StepLoader(data, batch_size=8, seed=3, rank=0, world_size=1)]
    joined = [[row for two in zip(*both, strict=True) for row in two] for both in zip(*shares, strict=True)]
    assert joined == whole + whole[2:]
