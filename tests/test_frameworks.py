"""Batches in JAX and PyTorch without a copy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack, write_tokenizer

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
