"""Pairs and steps fed by threads: the same batches as NumPy takes, however many threads, ranks and stops there are."""

import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps_in_memory import columns, same

import gristmill as gm

OPTIONS: dict[str, dict[str, Any]] = {
    "Identity": {},
    "TemporalOffset": {"mode": "dynamics", "temporal_offset": 2},
    "Reverse": {},
    "UniformOffset": {"least": 1, "most": 3},
    "Windows": {"size": 3, "acts": "all", "fill": "zeros"},
    "FrameStack": {"size": 3},
    "Jigsaw": {},
    "Steps": {"names": ("obs", "rews", "dones", "infos")},
}


def made(kind: str, folder: Path) -> Any:
    options = dict(OPTIONS[kind])
    if kind == "Jigsaw":
        orders = np.stack(
            [np.random.default_rng(seed).permutation(9) for _, seed in zip("abcde", range(5), strict=True)]
        )
        np.save(folder / "orders.npy", orders)
        options["permutation_path"] = folder / "orders.npy"
    return getattr(gm.pairs, kind)(**options)


def loader(constructor: Any, **more: Any) -> Any:
    infos = [{"at": t} for t in range(13)]
    face = gm.StepLoader if isinstance(constructor, gm.pairs.Steps) else gm.PairLoader
    data = more.pop("data", [columns([7, 1, 5], infos=infos), columns([6, 4], 100)])
    options: dict[str, Any] = {"batch_size": 4, "seed": 3, "drop_last": False, **more}
    return face(data, constructor, **options)


def whole(source: Any, passes: int = 3) -> list[Any]:
    return [batch for _ in range(passes) for batch in source]


@pytest.mark.parametrize("prepare", [None, gm.pairs.Prepare(check_nchw=False)])
@pytest.mark.parametrize("kind", list(OPTIONS))
def test_threads_change_nothing(tmp_path: Path, kind: str, prepare: gm.pairs.Prepare | None) -> None:
    constructor = made(kind, tmp_path)
    expected = whole(loader(constructor, threads=1, prepare=prepare))
    for threads, capacity in ((1, 1), (2, 4), (4, 64)):
        source = loader(constructor, threads=threads, queue_capacity=capacity, prepare=prepare)
        assert all(same(*both) for both in zip(whole(source), expected, strict=True))
        starts = [(epoch, start) for epoch in range(3) for start in loader(constructor).starts()]
        at_once = (source.batch_at(epoch, start) for epoch, start in starts)
        assert all(same(*both) for both in zip(at_once, expected, strict=True))


@pytest.mark.parametrize("kind", list(OPTIONS))
def test_batches_have_the_pairs_of_their_pass(tmp_path: Path, kind: str) -> None:
    """Each row is the one that the pairs themselves give by its number."""
    constructor = made(kind, tmp_path)
    data = columns([7, 1, 5], infos=[{"at": t} for t in range(13)])
    source = loader(constructor, data=[data])
    per_pass = len(source)
    for number, batch in enumerate(whole(source)):
        pairs = constructor.over(data, seed=3, epoch=number // per_pass)
        seen = source.xray(number)
        assert same(batch, pairs[[row["pair"] for row in seen]])
        if isinstance(batch, gm.pairs.PairBatch):
            assert [[row["trajectory"], row["step"]] for row in seen] == batch.traj_ts_ids.tolist()


def test_an_xray_names_any_row_of_any_batch() -> None:
    source = loader(gm.pairs.Identity(), rank=1, world_size=2)
    expected = [batch.traj_ts_ids.tolist() for batch in whole(loader(gm.pairs.Identity(), rank=1, world_size=2), 2)]
    found = [[[row["trajectory"], row["step"]] for row in source.xray(number)] for number in range(2 * len(source))]
    assert found == expected
    assert source.xray(3, 1) == source.xray(3)[1:2]
    assert {row["data_set"] for number in range(4) for row in source.xray(number)} == {0, 1}
    for batch, row, words in ((-1, None, "batch -1"), (0, 2, "row 2 of batch 0, which has 2")):
        with pytest.raises(gm.ConfigError, match=words):
            source.xray(batch, row)


@pytest.mark.parametrize("kind", ["UniformOffset", "Jigsaw", "Steps"])
def test_a_loader_resumes_in_the_midst_of_what_others_call_a_batch(tmp_path: Path, kind: str) -> None:
    constructor = made(kind, tmp_path)
    first = loader(constructor, batch_size=4)
    iterator = iter(first)
    next(iterator)
    state = first.state_dict()
    for batch_size in (3, 8):
        source = loader(constructor, batch_size=batch_size)
        source.load_state_dict(state)
        starts = list(source.starts())
        assert starts[0] == 4
        rest = [source.batch_at(0, start) for start in starts]
        assert all(same(*both) for both in zip(source, rest, strict=True))
        assert source.epoch == 1
        again = loader(constructor, batch_size=batch_size)
        again.set_epoch(1)
        assert all(same(*both) for both in zip(source, again, strict=True))


def test_calls_wait_for_a_time_only_and_a_stop_is_no_end() -> None:
    expected = whole(loader(gm.pairs.Identity()))
    source = loader(gm.pairs.Identity(), threads=2)
    found = [source.get_next(timeout=30)]
    with source:
        found.append(source.get_next())
    assert source.stop() == []
    while len(found) < len(expected):
        batch = source.maybe_get_next()
        found += [] if batch is None else [batch]
    assert all(same(*both) for both in zip(found, expected, strict=True))
    assert not [thread for thread in threading.enumerate() if "gristmill" in thread.name]


def test_a_forked_child_feeds_by_threads_of_its_own() -> None:
    # In a process of its own: other tests may have started JAX here, which warns of forks.
    program = """
import os, signal, numpy as np, gristmill as gm
from steps_in_memory import columns
data = [columns([7, 1, 5]), columns([6, 4], 100)]
loader = gm.PairLoader(data, gm.pairs.Identity(), batch_size=4, seed=1, threads=2)
first = next(iter(loader)).traj_ts_ids.tolist()
received, sent = os.pipe()
child = os.fork()
batches = repr([batch.traj_ts_ids.tolist() for batch in loader])
if child == 0:
    signal.alarm(60)
    os.write(sent, batches.encode())
    os._exit(0)
os.close(sent)
with os.fdopen(received) as said:
    found = said.read()
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert found == batches, (found, batches)
assert len(eval(found)) > 2
"""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, env=env)
    assert done.returncode == 0, done.stderr


def test_smaller_rows_are_filled_up_on_every_axis() -> None:
    data = [columns([4], shape=(2, 9, 12)), columns([3], 100, shape=(1, 10, 5))]
    source = gm.PairLoader(data, gm.pairs.FrameStack(2), batch_size=7, seed=1, pad=True, weights=[4, 3])
    (batch,) = source
    assert batch.context.shape == (7, 4, 10, 12)
    for row, (seen, stack) in enumerate(zip(source.xray(0), batch.context, strict=True)):
        pairs = gm.pairs.FrameStack(2).over(data[seen["data_set"]])
        own = pairs[[seen["pair"]]].context[0]
        assert (stack[tuple(slice(0, dim) for dim in own.shape)] == own).all(), row
        assert int(stack.sum(dtype=np.int64)) == int(own.sum(dtype=np.int64))
