"""Batches in JAX and PyTorch without a copy."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jax_processes
import numpy as np
import pytest
from packs2048 import make_rows, write_pack, write_tokenizer
from steps_in_memory import columns

import gristmill as gm

STREAM: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "threads": 2, "index": "off"}


def test_jax_takes_batches_without_a_copy(games: Path) -> None:
    jax = pytest.importorskip("jax")
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        batch = loader.get_next()
        for array in batch:
            where = array.ctypes.data
            assert jax.dlpack.from_dlpack(array).unsafe_buffer_pointer() == where
            assert jax.device_put(array, may_alias=True).unsafe_buffer_pointer() == where
        aliased = jax.dlpack.from_dlpack(batch["planes"])
        expected = np.asarray(batch["planes"]).copy()
        del batch, array
        for _ in range(20):
            loader.get_next()
        np.testing.assert_array_equal(np.asarray(aliased), expected)


def test_torch_takes_batches_without_a_copy(games: Path) -> None:
    torch = pytest.importorskip("torch")
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        for array in loader.get_next():
            assert torch.from_dlpack(array).data_ptr() == array.ctypes.data


def test_jax_takes_rows_of_a_pack(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    from gristmill import jax as adapter

    rows = make_rows(6)
    pack = gm.open(write_pack(tmp_path / "pack", rows))
    with gm.DataLoader(pack, encoder=gm.g2048.HardMove(dtype="i32"), batch_size=50, shuffle=False) as loader:
        batches = list(adapter.batches(loader))
    assert {name: (a.dtype.name, a.shape) for name, a in batches[0].items()} == {
        "tokens": ("int32", (50, 16)),
        "branch_values": ("float32", (50, 4)),
        "move_targets": ("int32", (50,)),
    }
    assert all(isinstance(array, jax.Array) for array in batches[0].values())
    moves = np.concatenate([np.asarray(batch["move_targets"]) for batch in batches])
    np.testing.assert_array_equal(moves, rows["move_dir"])
    with (
        gm.DataLoader(pack, encoder=gm.g2048.HardMove()) as loader,
        pytest.raises(TypeError, match="i32"),
    ):
        next(adapter.batches(loader))


def test_torch_takes_rows_of_a_pack(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from gristmill import torch as adapter

    rows = make_rows(6)
    folder = write_pack(tmp_path / "pack", rows)
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    encoder = gm.g2048.Tokens(tokenizer, rotate=True, flip=True)
    with gm.DataLoader(gm.open(folder), encoder=encoder, batch_size=50, shuffle=False, seed=7) as loader:
        batch = next(adapter.batches(loader))
    assert {name: (t.dtype, tuple(t.shape)) for name, t in batch.items()} == {
        "tokens": (torch.int64, (50, 16)),
        "targets": (torch.int64, (50, 4)),
    }
    collate = adapter.make_collate_macroxue(folder, tokenizer, rotate=True, flip=True, seed=7)
    made = collate(range(50))
    assert made.pop("n_classes") == 7
    for name, tensor in made.items():
        assert torch.equal(tensor, batch[name])
    dataset = torch.utils.data.DataLoader(range(len(rows)), batch_size=20, collate_fn=collate)
    assert sum(len(batch["targets"]) for batch in dataset) == len(rows)
    made = adapter.make_collate_steps(folder, "hard_move")([3, 1])
    assert made["move_targets"].tolist() == rows["move_dir"][[3, 1]].tolist()
    assert made["branch_values"].dtype == torch.float32
    made = adapter.make_collate_steps(folder, "binned_ev")([0])
    assert (made["n_bins"], made["branch_bin_targets"].dtype, made["branch_mask"].dtype) == (
        12,
        torch.int64,
        torch.bool,
    )
    with pytest.raises(ValueError, match="target_mode"):
        adapter.make_collate_steps(folder, "soft")  # type: ignore[arg-type]


def test_jax_takes_pairs_and_steps() -> None:
    jax = pytest.importorskip("jax")
    from gristmill import jax as adapter

    loader = gm.PairLoader(columns([9, 5]), gm.pairs.TemporalOffset("dynamics", 2), batch_size=4, seed=1)
    own = next(iter(loader))
    found = adapter.named(own)
    assert found["context"].unsafe_buffer_pointer() == own.context.ctypes.data, "without a copy"
    batches = list(adapter.batches(loader))
    assert len(batches) == len(loader) - 1
    assert {name: (a.dtype.name, a.shape) for name, a in batches[0].items()} == {
        "context": ("uint8", (4, 2, 9, 12)),
        "target": ("uint8", (4, 2, 9, 12)),
        "extra_context": ("int32", (4, 2)),
        "traj_ts_ids": ("int32", (4, 2)),
    }
    np.testing.assert_array_equal(found["traj_ts_ids"], own.traj_ts_ids)
    assert "extra_context" not in next(adapter.batches(gm.PairLoader(columns([9]), batch_size=4)))
    steps = gm.StepLoader(columns([9]), gm.pairs.Steps(("rews", "infos")), batch_size=4, prepare=gm.pairs.Prepare())
    one = next(adapter.batches(steps))
    assert (one["rews"].dtype.name, one["infos"]) == ("float32", [{}] * 4)
    with pytest.raises(TypeError, match=r"`rews` is float64.*prepare="):
        next(adapter.batches(gm.StepLoader(columns([9]), gm.pairs.Steps(("rews",)), batch_size=4)))
    with pytest.raises(OverflowError, match="`acts`"):
        next(adapter.batches(gm.StepLoader(columns([9], 1 << 40), batch_size=4)))

    # The batches of all processes as global arrays: of this one process, the whole of them.
    mesh = jax.make_mesh((1,), ("data",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("data"))
    loader.set_epoch(0)
    spread = next(adapter.batches(loader, sharding=sharding))
    assert spread["context"].sharding == sharding
    np.testing.assert_array_equal(spread["context"], own.context)


def test_jax_spreads_batches_over_devices() -> None:
    """Four devices of one process: each has a quarter of the rows."""
    pytest.importorskip("jax")
    program = """
import os
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
import jax, numpy as np, gristmill as gm, gristmill.jax
obs = np.arange(40, dtype=np.float32)[:, None]
data = gm.pairs.Columns([40], {"obs": obs, "acts": np.arange(40), "dones": np.zeros(40, bool)})
sharding = jax.sharding.NamedSharding(jax.make_mesh((4,), ("data",)), jax.sharding.PartitionSpec("data"))
for batch in gristmill.jax.batches(gm.StepLoader(data, batch_size=8), sharding=sharding):
    assert [shard.data.shape for shard in batch["obs"].addressable_shards] == [(2, 1)] * 4
    assert (np.asarray(batch["obs"])[:, 0] == np.asarray(batch["acts"])).all()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_jax_processes_share_one_order(tmp_path: Path) -> None:
    """Two real processes of one group, neither told its rank, put their rows into global arrays."""
    pytest.importorskip("jax")
    program = """
import sys, jax, numpy as np, gristmill as gm, gristmill.jax
jax.distributed.initialize(sys.argv[1], num_processes=2, process_id=int(sys.argv[2]))
data = gm.pairs.Columns([40], {"obs": np.zeros((40, 1)), "acts": np.arange(40), "dones": np.zeros(40, bool)})
loader = gm.StepLoader(data, batch_size=8, seed=3, prepare=gm.pairs.Prepare())
assert (loader.rank, loader.world_size) == (int(sys.argv[2]), 2) == (jax.process_index(), jax.process_count())
sharding = jax.sharding.NamedSharding(jax.make_mesh((2,), ("data",)), jax.sharding.PartitionSpec("data"))
for batch in gristmill.jax.batches(loader, sharding=sharding):
    assert batch["acts"].shape == (8,)
    (own,) = batch["acts"].addressable_shards
    print(np.asarray(own.data).tolist())
"""
    shares = jax_processes.two(program)
    data = columns([40], shape=(1,))
    expected = [batch["acts"].tolist() for batch in gm.StepLoader(data, batch_size=8, seed=3, rank=0, world_size=1)]
    assert [[row for two in zip(*both, strict=True) for row in two] for both in zip(*shares, strict=True)] == expected
