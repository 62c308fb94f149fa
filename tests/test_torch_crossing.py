"""Batches of PyTorch's workers: made in memory that the trainer has, too; kept, dropped, and brought over otherwise."""

import contextlib
import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps_in_memory import columns

import gristmill as gm
from gristmill.demos.crossing import Ring, can_share

torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.skipif(not can_share(), reason="skipped: this system has no memory without a name"),
    pytest.mark.filterwarnings(
        "ignore:.*fork.*:RuntimeWarning",
        "ignore:.*fork.*:DeprecationWarning",
        "ignore:This DataLoader will create:UserWarning",
        "ignore:'set_vital' is deprecated:UserWarning",
    ),
]


def loader(**options: Any) -> gm.PairLoader:
    options = {"batch_size": 8, "nominal_length": 100, "seed": 3, "drop_last": False, **options}
    return gm.PairLoader([columns([30, 9]), columns([20], 100)], gm.pairs.TemporalOffset("dynamics", 2), **options)


def flat(batches: Any) -> list[list[np.ndarray[Any, Any]]]:
    """Copies of the arrays of batches."""
    return [
        [t.numpy().copy() for name in sorted(b) for t in (b[name] if isinstance(b[name], list) else [b[name]])]
        for b in batches
    ]


def assert_equal(one: Any, other: Any) -> None:
    assert len(one) == len(other)
    for mine, theirs in zip(one, other, strict=True):
        assert len(mine) == len(theirs)
        for a, b in zip(mine, theirs, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)


def is_shared(tensor: Any) -> bool:
    """Whether a tensor lies in memory of ours that has no name."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        first, last = (int(part, 16) for part in line.split()[0].split("-"))
        if first <= tensor.data_ptr() < last:
            return "memfd:gristmill" in line
    return False


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_torch_workers_make_batches_where_the_trainer_has_them(method: str) -> None:
    from gristmill import torch as adapter

    expected = flat(adapter.batches(loader()))
    fed = adapter.DataLoader(loader(), num_workers=2, multiprocessing_context=method)
    found = []
    for batch in fed:
        assert all(is_shared(tensor) for tensor in (batch["context"], batch["target"], batch["extra_context"]))
        found += flat([batch])
    assert_equal(found, expected)


@pytest.mark.parametrize("persistent", [False, True])
def test_torch_batches_that_are_kept_stay_as_they_are(persistent: bool) -> None:
    from gristmill import torch as adapter

    source = loader()
    expected = flat(batch for _ in range(3) for batch in adapter.batches(source))
    fed = adapter.DataLoader(loader(), num_workers=1, persistent_workers=persistent)
    kept = [batch for _ in range(3) for batch in fed]
    assert is_shared(kept[0]["context"])
    assert not all(is_shared(batch["context"]) for batch in kept), "PyTorch brings over what there is no room for"
    assert_equal(flat(kept), expected)
    del fed
    assert_equal(flat(kept), expected)


def test_torch_steps_arrive_in_order_with_what_is_no_array() -> None:
    from gristmill import torch as adapter

    data = columns([9, 5], infos=[{"at": t} for t in range(14)])
    expected = list(adapter.batches(gm.StepLoader(data, gm.pairs.GAIL, batch_size=4, seed=1)))
    for batch, known in zip(
        adapter.DataLoader(gm.StepLoader(data, gm.pairs.GAIL, batch_size=4, seed=1), num_workers=1),
        expected,
        strict=True,
    ):
        assert list(batch) == ["obs", "acts", "next_obs", "dones", "infos"]
        assert batch["infos"] == known["infos"]
        assert is_shared(batch["obs"])
        assert all(torch.equal(batch[name], known[name]) for name in list(batch)[:4])


def test_a_slot_is_free_again_when_the_last_array_in_it_is_gone() -> None:
    source = loader()
    ring = source.ring(2)
    sent = [source.crossing_at(0, start, ring, dict) for start in (0, 8)]
    assert source.crossing_at(0, 16, ring, dict) is None, "both are taken"
    data = pickle.dumps(sent[0])
    assert len(data) < 1000
    batch = pickle.loads(data)
    known = source.batch_at(0, 0)
    for name in ("context", "target", "extra_context", "traj_ts_ids"):
        np.testing.assert_array_equal(batch[name], getattr(known, name))
    context = torch.from_numpy(batch["context"])[1:]
    del batch
    assert source.crossing_at(0, 16, ring, dict) is None, "a view of a view is left"
    child = os.fork()
    if child == 0:
        del context
        os._exit(0)
    os.waitpid(child, 0)
    assert source.crossing_at(0, 16, ring, dict) is None, "what a child drops is its copy"
    del context
    again = source.crossing_at(0, 16, ring, dict)
    assert again is not None
    third = pickle.loads(pickle.dumps(again))
    np.testing.assert_array_equal(third["context"], source.batch_at(0, 16).context)


def test_a_batch_that_cannot_be_made_leaves_its_slot() -> None:
    source = loader()
    ring = source.ring(1)
    with pytest.raises(OverflowError):
        source.crossing_at(0, -8, ring, dict)
    assert source.crossing_at(0, 0, ring, dict) is not None


def test_identity_pairs_share_one_column() -> None:
    from gristmill import torch as adapter

    source = gm.PairLoader(columns([9]), batch_size=4, seed=1)
    (batch, *_), (known, *_) = (
        adapter.DataLoader(source, num_workers=1),
        gm.PairLoader(columns([9]), batch_size=4, seed=1),
    )
    assert batch["context"].data_ptr() == batch["target"].data_ptr()
    np.testing.assert_array_equal(batch["context"].numpy(), known.context)
    assert batch["extra_context"] == []


def test_streams_pickle_without_the_memory_of_their_workers() -> None:
    from gristmill import torch as adapter

    fed = adapter.DataLoader(loader(), num_workers=1)
    next(iter(fed))
    stream = pickle.loads(pickle.dumps(fed.dataset))
    assert_equal(flat(stream), flat(adapter.batches(loader()))[1:])


def open_rings() -> int:
    """Descriptors of memory of ours that this process has."""
    names = []
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            names.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    return sum("memfd:gristmill" in name for name in names)


def test_rings_are_gone_with_their_loader() -> None:
    before = open_rings()
    rings = [Ring(4, [100, 8], 3) for _ in range(5)]
    assert open_rings() > before
    (held,) = rings[0].arrays(0, [(0, "|u1", (4, 100))])
    del rings
    held[:] = 7
    assert held.sum() == 2800, "arrays keep their memory"
    del held
    assert open_rings() == before
