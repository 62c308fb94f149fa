"""Batches in JAX and PyTorch without a copy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

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
