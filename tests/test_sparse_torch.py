"""Lists with offsets in PyTorch are those of NumPy, and give an EmbeddingBag what ones and zeros give a matrix."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bullet_boards import write_boards

import gristmill as gm

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
adapter: Any = pytest.importorskip("gristmill.torch")

VIEWS = ["halfkav2_hm_stm", "halfkp_nstm", "stm"]


@pytest.fixture
def batch(tmp_path: Path) -> gm.Batch:
    folder = write_boards(tmp_path / "in", 64)
    config = gm.presets.lc0(folder, encoder="bullet", epochs=1, batch_size=64, seed=5, tensors=[*VIEWS, "score"])
    (made,) = gm.DataLoader(config)
    return made


def test_lists_are_those_of_numpy(batch: gm.Batch) -> None:
    for name in VIEWS:
        of_numpy = gm.chess.sparse(batch, name)
        for given in (batch, adapter.convert(batch)):
            made = adapter.sparse(given, name)
            assert (made.indices.dtype, made.offsets.dtype) == (torch.int32, torch.int32)
            np.testing.assert_array_equal(made.indices.numpy(), of_numpy.indices)
            np.testing.assert_array_equal(made.offsets.numpy(), of_numpy.offsets)


def test_a_bag_of_a_list_is_a_product_with_ones(batch: gm.Batch) -> None:
    torch.manual_seed(1)
    for name in VIEWS:
        bag = torch.nn.EmbeddingBag(gm.chess.FEATURES[name], 8, mode="sum")
        ones = torch.from_numpy(gm.chess.dense(batch, name))
        torch.testing.assert_close(bag(*adapter.sparse(batch, name)), ones @ bag.weight)


def test_what_is_not_padded_features_is_refused(batch: gm.Batch) -> None:
    with pytest.raises(ValueError, match=r"`score` is float32\(64,\); expected padded features, int32 \(rows, 32\)"):
        adapter.sparse(batch, "score")
    with pytest.raises(KeyError, match="no array is called 'halfkp_white'"):
        adapter.sparse(batch, "halfkp_white")
