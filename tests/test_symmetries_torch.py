"""Symmetries drawn in PyTorch are those that the host draws, bit for bit: each batch, after a resume, on every rank."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_draws import check_a_resumed_run, check_draws_by_the_page, check_every_batch
from packs2048 import make_rows, write_pack

import gristmill as gm

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
adapter: Any = pytest.importorskip("gristmill.torch")


def expand(batch: Any) -> dict[str, Any]:
    given = batch if isinstance(batch, gm.Batch) else {name: torch.from_numpy(array) for name, array in batch.items()}
    return {name: tensor.numpy() for name, tensor in adapter.expand(given, tokens="i32").items()}


def test_every_batch_is_that_of_the_host(tmp_path: Path) -> None:
    check_every_batch(tmp_path, expand)


def test_a_resumed_run_draws_what_the_first_would_have_drawn(tmp_path: Path) -> None:
    check_a_resumed_run(tmp_path, expand)


def test_any_place_of_any_sequence_is_drawn_as_the_page_says() -> None:
    check_draws_by_the_page(expand)


def test_a_compiled_step_draws_the_same(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(3)))
    options: dict[str, Any] = {"rotate": "changed", "flip": True}
    numbers = np.arange(len(rows))
    drawn = rows.encode(gm.g2048.HardMove(board="nibbles", draw="device", **options), numbers, seed=3)
    compiled = torch.compile(adapter.expand, backend="eager", fullgraph=True)
    made = compiled({name: torch.from_dlpack(array) for name, array in drawn.items()})
    for name, array in rows.encode(gm.g2048.HardMove(**options), numbers, seed=3).items():
        np.testing.assert_array_equal(made[name].numpy(), array)
