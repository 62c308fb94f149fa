"""One rule for loops: iterating again begins the next pass; after the last one it raises. Never silently empty."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack
from steps_in_memory import columns

import gristmill as gm

ROWS: dict[str, Any] = {"encoder": gm.g2048.Steps(), "batch_size": 48, "seed": 1}


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    return gm.open(write_pack(tmp_path / "rows", make_rows(6)))


def steps(batches: Any) -> list[tuple[int, int]]:
    """Run and step of every row."""
    found = [zip(b["run_id"].tolist(), b["step_index"].tolist(), strict=True) for b in batches]
    return [step for batch in found for step in batch]


def test_each_loop_over_rows_is_a_pass_of_its_own(rows: Any) -> None:
    every = sorted(steps([rows.take(np.arange(len(rows)))]))
    assert len(rows) % 48, "a pass does not end with a whole batch"
    loader = gm.DataLoader(rows, **ROWS)
    passes = []
    for epoch in range(4):
        assert loader.epoch == epoch
        batches = list(loader)
        assert len(batches) == len(loader) == -(-len(rows) // 48)
        passes.append(steps(batches))
        assert sorted(passes[-1]) == every
    assert len({tuple(one) for one in passes}) == 4, "each in an order of its own"
    assert loader.num_batches is None
    joined = gm.DataLoader(rows, epochs=4, joined=True, **ROWS)
    assert steps(joined) == [step for one in passes for step in one], "joined passes have the same order"


def test_configured_epochs_are_so_many_passes_and_then_it_raises(rows: Any, games: Path) -> None:
    def of_rows() -> gm.DataLoader:
        return gm.DataLoader(rows, epochs=3, **ROWS)

    def of_stream() -> gm.DataLoader:
        return gm.DataLoader(gm.presets.lc0(games, epochs=1, batch_size=16, seed=1, index="off"))

    makers: list[tuple[Callable[[], gm.DataLoader], int]] = [(of_rows, 3), (of_stream, 1)]
    for make, passes in makers:
        loader = make()
        for _ in range(passes):
            assert sum(1 for _ in loader) > 1
        for _ in range(2):
            with pytest.raises(gm.EndOfStream, match=rf"\(epochs={passes}\).*larger epochs="):
                list(loader)
        with pytest.raises(gm.EndOfStream):
            loader.get_next()
    taken = of_rows()
    assert [taken.get_next().number for _ in range(taken.num_batches or 0)] == list(range(3 * len(taken)))


@pytest.mark.parametrize("last", ["keep", "drop", "pad"])
def test_what_is_left_over_ends_each_pass(rows: Any, last: Any) -> None:
    loader = gm.DataLoader(rows, last_batch=last, **ROWS)
    left = len(rows) % 48
    for _ in range(2):
        batches = list(loader)
        end = {"keep": (left, left), "pad": (left, 48), "drop": (48, 48)}[last]
        assert (batches[-1].rows, len(batches[-1]["run_id"])) == end
        assert len(batches) == len(loader)
    with pytest.raises(gm.ConfigError, match="fill no batch"):
        gm.DataLoader(rows, last_batch="drop", **{**ROWS, "batch_size": 1 << 16})


def test_a_state_at_every_batch_says_the_pass_and_resumes_it(rows: Any) -> None:
    whole = gm.DataLoader(rows, **ROWS)
    passes = [[b["step_index"].tolist() for b in whole] for _ in range(3)]
    for at in range(2 * len(whole) + 1):
        first = gm.DataLoader(rows, **ROWS)
        for _ in range(at):
            first.get_next()
        state = json.loads(json.dumps(first.state_dict()))
        assert state["pass"] == at // len(whole)
        again = gm.DataLoader(rows, threads=1, **ROWS)
        again.load_state_dict(state)
        rest = [[b["step_index"].tolist() for b in again] for _ in range(3 - at // len(whole))]
        taken = at % len(whole)
        assert rest == [passes[at // len(whole)][taken:], *passes[at // len(whole) + 1 :]]
    with pytest.raises(gm.StateError, match=r"passes end: saved with a batch.*now in the midst of batches \(joined\)"):
        gm.DataLoader(rows, joined=True, **ROWS).load_state_dict(state)
    other = gm.DataLoader(rows, last_batch="drop", **ROWS)
    with pytest.raises(gm.StateError, match="passes end"):
        other.load_state_dict(state)


def test_ranks_end_their_passes_together(rows: Any) -> None:
    alone = gm.DataLoader(rows, **ROWS)
    parts = [gm.DataLoader(rows, rank=rank, world_size=3, **ROWS) for rank in range(3)]
    for _ in range(2):
        expected = [set(steps([b])) for b in alone]
        shares = [[set(steps([b])) for b in part] for part in parts]
        assert [set.union(*three) for three in zip(*shares, strict=True)] == expected


def test_batches_that_are_left_out_are_no_reason_to_begin_the_next_pass(rows: Any) -> None:
    length = len(gm.DataLoader(rows, **ROWS))
    skipping = gm.DataLoader(rows, skip=[(length - 2, length), (length + 1, length + 3)], **ROWS)
    assert len(skipping) == length - 2
    assert [b.number for b in skipping] == list(range(length - 2))
    assert len(skipping) == length - 2
    assert [b.number for b in skipping] == [length, *range(length + 3, 2 * length)]


def test_get_next_goes_on_with_the_next_pass(rows: Any) -> None:
    loader = gm.DataLoader(rows, **ROWS)
    length = len(loader)
    assert [loader.get_next().number for _ in range(2 * length + 1)] == list(range(2 * length + 1))
    assert [b.number for b in loader] == list(range(2 * length + 1, 3 * length)), "a loop takes what is left of a pass"


def test_loaders_of_pairs_and_steps_keep_the_same_rule() -> None:
    for loader in (gm.PairLoader(columns([30]), batch_size=4), gm.StepLoader(columns([30]), batch_size=4)):
        counts = [sum(1 for _ in loader) for _ in range(3)]
        assert counts == [len(loader)] * 3
        assert loader.epoch == 3
