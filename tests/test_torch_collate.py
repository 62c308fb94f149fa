"""Collate functions: what they read at their making they hold, whatever becomes of the file."""

import pickle
from pathlib import Path
from typing import Any

import pytest
from packs2048 import make_rows, write_pack, write_tokenizer

import gristmill as gm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning", "ignore:.*fork.*:DeprecationWarning")


def test_torch_collates_by_the_tokenizer_that_it_was_given(tmp_path: Path) -> None:
    from gristmill import torch as adapter

    rows = gm.open(write_pack(tmp_path / "rows", make_rows(6)))
    path = write_tokenizer(tmp_path / "tokenizer.json", bins=4)
    collate: Any = adapter.make_collate_macroxue(rows, path, rotate=True, seed=7)
    feed = torch.utils.data.DataLoader(range(40), batch_size=10, collate_fn=collate)
    before = list(feed)
    write_tokenizer(path, bins=9)
    for _ in range(2):
        for batch, first in zip(feed, before, strict=True):
            assert batch["n_classes"] == first["n_classes"] == 7
            assert torch.equal(batch["targets"], first["targets"])
        path.unlink(missing_ok=True)
    other: Any = adapter.make_collate_macroxue(rows, write_tokenizer(path, bins=9), rotate=True, seed=7)
    assert other(range(10))["n_classes"] == 12
    assert other.encoder.digest != collate.encoder.digest
    # One that was made, and gave no batch before the file was another one, gives none by it.
    write_tokenizer(path, bins=5)
    late: Any = adapter.make_collate_macroxue(rows, path, seed=7)
    write_tokenizer(path, bins=9)
    with pytest.raises(gm.ConfigError, match=f"another one than when the encoder was made: .*{late.encoder.digest}"):
        late(range(10))


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_torch_workers_collate_by_no_other_tokenizer(tmp_path: Path, method: str) -> None:
    from gristmill import torch as adapter

    rows = gm.open(write_pack(tmp_path / "rows", make_rows(6)))
    path = write_tokenizer(tmp_path / "tokenizer.json", bins=4)
    collate: Any = adapter.make_collate_macroxue(rows, path, rotate=True, seed=7)
    workers: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": method}
    feed = torch.utils.data.DataLoader(range(40), batch_size=10, collate_fn=collate, **workers)
    before = list(feed)
    assert {batch["n_classes"] for batch in before} == {7}
    write_tokenizer(path, bins=9)
    with pytest.raises(gm.ConfigError, match=f"another one .*{collate.encoder.digest}"):
        list(feed)
    write_tokenizer(path, bins=4)
    for batch, first in zip(feed, before, strict=True):
        assert torch.equal(batch["targets"], first["targets"])
    sent = pickle.loads(pickle.dumps(collate))
    assert sent.encoder.digest == collate.encoder.digest
    assert torch.equal(sent(range(10))["targets"], before[0]["targets"])
