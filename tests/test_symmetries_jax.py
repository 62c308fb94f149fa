"""Symmetries drawn in JAX are those that the host draws, bit for bit: every batch, after a resume, on every rank."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_draws import check_a_resumed_run, check_draws_by_the_page, check_every_batch
from packs2048 import make_rows, write_pack, write_tokenizer

import gristmill as gm

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
adapter: Any = pytest.importorskip("gristmill.jax")


def test_every_batch_is_that_of_the_host(tmp_path: Path) -> None:
    check_every_batch(tmp_path, adapter.expand)


def test_a_resumed_run_draws_what_the_first_would_have_drawn(tmp_path: Path) -> None:
    check_a_resumed_run(tmp_path, adapter.expand)


def test_any_place_of_any_sequence_is_drawn_as_the_page_says() -> None:
    check_draws_by_the_page(adapter.expand)


def test_a_jitted_step_draws_the_same(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(3)))
    options: dict[str, Any] = {"dtype": "u8", "rotate": "changed", "flip": True}
    numbers = np.arange(len(rows))
    drawn = rows.encode(gm.g2048.HardMove(board="nibbles", draw="device", **options), numbers, seed=3)
    assert drawn["symmetry_draws"].shape == (len(rows), 6)
    step = jax.jit(lambda batch: adapter.expand(batch, tokens="u8"))
    made = step({name: np.asarray(array) for name, array in drawn.items()})
    for name, array in rows.encode(gm.g2048.HardMove(**options), numbers, seed=3).items():
        np.testing.assert_array_equal(made[name], array)


def test_what_is_wrong_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"`symmetry_draws` is int32\(2, 5\); expected int32\(\.\.\., 6\)"):
        adapter.expand({"symmetry_draws": np.zeros((2, 5), np.int32)})
    with pytest.raises(ValueError, match="draw='gpu'; expected 'host' or 'device'"):
        gm.g2048.Steps(draw="gpu")  # type: ignore[arg-type]
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json", bins=4)
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(1)))
    with pytest.raises(gm.ConfigError, match=r"draw.*heuristic of the turned board.*draw on the host"):
        gm.DataLoader(rows, encoder=gm.g2048.Tokens(tokenizer, rotate=True, draw="device"))
