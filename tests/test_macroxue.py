"""The split by run of existing Macroxue configurations, beside ours."""

import json
from pathlib import Path

import pytest

from gristmill.compat.macroxue import RunSplit, split_runs


@pytest.mark.parametrize(
    ("runs", "share", "seed", "val"),
    [
        (10, 0.2, 42, [5, 6]),
        (72, 0.05, 42, [18, 25, 28, 48]),
        (1000, 0.005, 42, [127, 859, 916, 933, 978]),
        (7, 0.5, 0, [2, 3, 4, 6]),
        (3, 0.9, 1, [0, 1, 2]),
    ],
)
def test_published_splits_come_back(runs: int, share: float, seed: int, val: list[int]) -> None:
    split = split_runs(range(runs), share, seed)
    assert split.val == val
    assert split.train == [run for run in range(runs) if run not in val]
    # Ids need not begin at 0, be in order or stand there once.
    shifted = split_runs([run + 9 for run in reversed(range(runs))] * 2, share, seed)
    assert shifted.val == [run + 9 for run in val]


def test_all_vectors(shared: Path) -> None:
    path = shared / "vectors/macroxue/loader_vectors.json"
    if not path.exists():
        pytest.skip(f"no {path}")
    cases = json.loads(path.read_text())["run_splits"]
    assert len(cases) > 3
    for case in cases:
        split = split_runs(range(case["runs"]), case["val_run_pct"], case["val_split_seed"])
        assert (split.val, len(split.train)) == (case["val_ids"], case["n_train"])


def test_the_ends_of_the_range() -> None:
    assert split_runs([3, 1], 0.0) == RunSplit([1, 3], [])
    assert split_runs([], 0.5) == RunSplit([], [])
    for share in (1.0, -0.1, float("nan")):
        with pytest.raises(ValueError, match="val_run_pct"):
            split_runs([1], share)
