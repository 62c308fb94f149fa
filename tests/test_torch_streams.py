"""Pairs and steps in PyTorch's loaders: any number of workers, ranks and ways to start them; states; names."""

import multiprocessing
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

torch = pytest.importorskip("torch")
# Other tests have started JAX's threads by then; PyTorch's workers never touch them.
pytestmark = pytest.mark.filterwarnings(
    "ignore:.*fork.*:RuntimeWarning",
    "ignore:.*fork.*:DeprecationWarning",
    "ignore:This DataLoader will create:UserWarning",
    "ignore:'set_vital' is deprecated:UserWarning",
)


def data(lengths: list[int], first: int = 0) -> gm.pairs.Columns:
    steps = sum(lengths)
    ends = np.zeros(steps, bool)
    ends[np.cumsum(lengths) - 1] = True
    obs = np.random.default_rng(first).integers(0, 256, (steps, 1, 4, 4), dtype=np.uint8)
    columns: dict[str, Any] = {"obs": obs, "next_obs": obs + 1, "acts": np.arange(first, first + steps), "dones": ends}
    return gm.pairs.Columns(lengths, columns)


def loader(**options: Any) -> gm.PairLoader:
    options = {"batch_size": 4, "nominal_length": 50, "seed": 3, "drop_last": False, **options}
    return gm.PairLoader([data([7, 1, 5]), data([9], 100)], gm.pairs.Windows(1), **options)


def acts(batches: Any) -> list[list[int]]:
    return [batch["target"].tolist() for batch in batches]


def plain(source: gm.PairLoader, passes: int) -> list[list[int]]:
    return [batch.target.tolist() for _ in range(passes) for batch in source]


@pytest.fixture(autouse=True)
def sharing() -> Iterator[None]:
    """Batches travel by file, so that few descriptors are open at once."""
    before = torch.multiprocessing.get_sharing_strategy()
    torch.multiprocessing.set_sharing_strategy("file_system")
    yield
    torch.multiprocessing.set_sharing_strategy(before)


def test_batches_are_tensors_under_the_names_that_learners_take() -> None:
    from gristmill import torch as adapter

    source = gm.PairLoader(data([7, 5]), gm.pairs.TemporalOffset("dynamics", 2), batch_size=4)
    batch, tensors = next(iter(source)), next(adapter.batches(source))
    shapes = {name: (t.dtype, tuple(t.shape)) for name, t in tensors.items() if name != "traj_ts_ids"}
    assert shapes == {
        "context": (torch.uint8, (4, 1, 4, 4)),
        "target": (torch.uint8, (4, 1, 4, 4)),
        "extra_context": (torch.int64, (4, 2)),
    }
    assert [(t.dtype, tuple(t.shape)) for t in tensors["traj_ts_ids"]] == [(torch.int64, (4,))] * 2
    same = adapter.named(batch)
    assert same["context"].data_ptr() == batch.context.ctypes.data, "without a copy"
    np.testing.assert_array_equal(torch.stack(same["traj_ts_ids"], 1).numpy(), batch.traj_ts_ids)
    assert adapter.named(next(iter(loader())))["extra_context"].dtype == torch.bool
    alone = gm.PairLoader(data([4]), batch_size=2)
    assert next(adapter.batches(alone))["extra_context"] == []
    steps = gm.StepLoader(data([4]), gm.pairs.GAIL, batch_size=2, prepare=gm.pairs.Prepare(check_nchw=False))
    one = next(adapter.batches(steps))
    assert list(one) == ["obs", "acts", "next_obs", "dones", "infos"]
    assert (one["obs"].dtype, one["dones"].dtype, one["infos"]) == (torch.float32, torch.bool, [{}, {}])


@pytest.mark.parametrize("workers", [0, 1, 2, 3])
def test_torch_workers_change_nothing(workers: int) -> None:
    from gristmill import torch as adapter

    expected = plain(loader(), 3)
    fed = adapter.DataLoader(loader(), num_workers=workers)
    assert len(fed) == 13
    assert acts(batch for _ in range(3) for batch in fed) == expected
    stream = adapter.BatchStream(loader())
    theirs = torch.utils.data.DataLoader(stream, batch_size=None, num_workers=workers)
    found = []
    for epoch in range(3):
        stream.set_epoch(epoch)
        found += acts(theirs)
    assert found == expected


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_torch_workers_may_be_started_in_any_way(tmp_path: Path, method: str) -> None:
    from gristmill import torch as adapter

    expected = plain(loader(), 2)
    fed = adapter.DataLoader(loader(), num_workers=2, multiprocessing_context=method, persistent_workers=True)
    # The second pass runs in the workers of the first.
    assert acts(batch for _ in range(2) for batch in fed) == expected


@pytest.mark.parametrize(("options", "stay"), [({}, True), ({"persistent_workers": False}, False)])
def test_workers_stay_for_all_passes_unless_each_is_to_have_its_own(options: dict[str, Any], stay: bool) -> None:
    from gristmill import torch as adapter

    before = {child.pid for child in multiprocessing.active_children()}
    fed = adapter.DataLoader(loader(), num_workers=1, **options)
    started = []
    for _ in range(2):
        batches = iter(fed)
        next(batches)
        started.append({child.pid for child in multiprocessing.active_children()} - before)
        list(batches)
    assert all(started)
    assert (started[0] == started[1]) == stay


def test_abandoned_passes_and_persistent_workers() -> None:
    from gristmill import torch as adapter

    expected = plain(loader(), 3)
    fed = adapter.DataLoader(loader(), num_workers=2, persistent_workers=True)
    found: list[list[int]] = []
    for stop in (4, 9, None, None, 30, None):
        for batch in fed:
            found += acts([batch])
            if len(found) == stop:
                break
    assert found == expected, "it resumes where it stood"
    fed.set_epoch(0)
    assert acts(fed) == expected[:13]


@pytest.mark.parametrize(("before", "behind"), [(0, 2), (2, 0), (3, 2)])
def test_states_count_what_was_delivered(before: int, behind: int) -> None:
    from gristmill import torch as adapter

    expected = plain(loader(), 2)
    for taken in (0, 1, 5, 12, 13, 17):
        first = adapter.DataLoader(loader(), num_workers=before)
        found: list[list[int]] = []
        while len(found) < taken:
            for batch in first:
                found += acts([batch])
                if len(found) == taken:
                    break
        second = adapter.DataLoader(loader(), num_workers=behind)
        second.load_state_dict(pickle.loads(pickle.dumps(first.state_dict())))
        while len(found) < 26:
            found += acts(second)
        assert found == expected, taken
    with pytest.raises(gm.StateError, match=r"config\.seed is 3, here 4"):
        adapter.DataLoader(loader(seed=4)).load_state_dict(first.state_dict())


@pytest.mark.parametrize("workers", [0, 2])
def test_loaders_with_a_state_of_their_own_resume_a_torch_stream(workers: int) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from gristmill import torch as adapter

    def make() -> Any:
        return stateful.StatefulDataLoader(adapter.BatchStream(loader()), batch_size=None, num_workers=workers)

    expected = plain(loader(), 1)
    for taken in (1, 6, 12):
        first = make()
        found, batches = [], iter(first)
        for _ in range(taken):
            found += acts([next(batches)])
        state = first.state_dict()
        second = make()
        second.load_state_dict(state)
        assert found + acts(second) == expected, taken


def test_torch_samplers_take_pairs_by_number() -> None:
    from gristmill import torch as adapter

    pairs = gm.pairs.TemporalOffset("dynamics", 2).over(data([7, 1, 5]))
    dataset = adapter.PairDataset(pairs)
    assert len(dataset) == 8
    by_two = torch.utils.data.DataLoader(dataset, batch_size=2, shuffle=True)
    batches = list(by_two)
    assert [tuple(batch["context"].shape) for batch in batches] == [(2, 1, 4, 4)] * 4
    ids = sorted((int(t), int(s)) for batch in batches for t, s in zip(*batch["traj_ts_ids"], strict=True))
    assert ids == [(0, t) for t in range(2, 7)] + [(2, t) for t in range(2, 5)]
    sampler = torch.utils.data.BatchSampler(torch.utils.data.SequentialSampler(dataset), 3, False)
    whole = list(torch.utils.data.DataLoader(dataset, sampler=sampler, batch_size=None))
    np.testing.assert_array_equal(torch.cat([batch["target"] for batch in whole]).numpy(), pairs[:].target)
    assert torch.equal(dataset[-1]["context"], whole[-1]["context"][-1])
    again = pickle.loads(pickle.dumps(dataset))
    assert torch.equal(again[3]["extra_context"], dataset[3]["extra_context"])


RANKED = """
import sys, torch
sys.path[:0] = [{folder!r}, {folder!r} + "/made"]
from test_torch_streams import acts, loader
import gristmill.torch
rank = int(sys.argv[1])
torch.distributed.init_process_group("gloo", init_method="file://" + {file!r}, rank=rank, world_size=2)
source = loader(batch_size=4)
assert (source.rank, source.world_size) == (rank, 2)
fed = gristmill.torch.DataLoader(source, num_workers=rank + 1)
mine = torch.tensor([row for _ in range(2) for batch in acts(fed) for row in batch])
both = [torch.empty_like(mine) for _ in range(2)]
torch.distributed.all_gather(both, mine)
print(torch.stack(both, 1).reshape(-1).tolist())
torch.distributed.destroy_process_group()
"""


def test_torch_ranks_share_one_order(tmp_path: Path) -> None:
    """Two real processes of one group, with different numbers of workers, neither told its rank."""
    program = RANKED.format(folder=str(Path(__file__).parent), file=str(tmp_path / "meeting"))
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE")}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    expected = [row for batch in plain(loader(), 2) for row in batch]
    for out, _ in said:
        assert [int(row) for row in out.strip("[]\n").split(", ")] == expected


def test_options_of_batches_are_the_loaders() -> None:
    from gristmill import torch as adapter

    with pytest.raises(TypeError, match="`batch_size` is the loader's"):
        adapter.DataLoader(loader(), batch_size=4)
