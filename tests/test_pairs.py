"""Pairs over trajectories, against loops that are plainly right; their stream: permuted, mixed, sharded, resumed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

LENGTHS = [7, 1, 5]


def store(
    path: Path, lengths: list[int], shape: tuple[int, ...] = (2, 9, 12), acts: int = 0, first: int = 0
) -> gm.Demos:
    rng = np.random.default_rng(first)
    box = Instance("Box", (), {"low": np.uint8(0), "high": np.uint8(255), "shape": shape, "dtype": np.dtype("u1")})
    rows = [
        {
            "obs": rng.integers(0, 256, shape, dtype=np.uint8),
            "acts": np.int64(first + i) if acts == 0 else rng.normal(size=acts).astype(np.float32),
            "dones": np.bool_(t == length - 1),
        }
        for i, (length, t) in enumerate((length, t) for length in lengths for t in range(length))
    ]
    write_frames(path, get_meta_dict({}, box, Instance("Discrete", (), {"n": 9})), rows)
    demos = gm.open(path)
    assert isinstance(demos, gm.Demos)
    return demos


@pytest.fixture
def demos(tmp_path: Path) -> gm.Demos:
    return store(tmp_path / "demos.tar.zst", LENGTHS)


def spans() -> list[tuple[int, int, int]]:
    """Trajectory, its first step among all, its length."""
    return [(i, sum(LENGTHS[:i]), length) for i, length in enumerate(LENGTHS)]


@pytest.mark.parametrize("mode", [None, "dynamics", "inverse_dynamics", "action_prediction"])
@pytest.mark.parametrize(("k", "count"), [(1, 10), (3, 6), (8, 0)])
@pytest.mark.parametrize("acts", [0, 2])
def test_temporal_offsets(tmp_path: Path, mode: Any, k: int, count: int, acts: int) -> None:
    demos = store(tmp_path / "demos.tar.zst", LENGTHS, acts=acts)
    pairs = gm.pairs.TemporalOffset(mode, k).over(demos)
    assert len(pairs) == count
    found = pairs[:]
    obs, actions = np.asarray(demos.column("obs")), np.asarray(demos.column("acts"))
    row = 0
    for trajectory, first, length in spans():
        for t in range(k, length):
            at = first + t
            between = actions[at - k : at]
            target = obs[at] if mode in (None, "dynamics") else between
            extra = {"dynamics": between, "inverse_dynamics": obs[at]}.get(str(mode))
            np.testing.assert_array_equal(found.context[row], obs[at - k])
            np.testing.assert_array_equal(found.target[row], target)
            assert found.traj_ts_ids[row].tolist() == [trajectory, t]
            assert (found.extra_context is None) == (extra is None)
            if extra is not None and found.extra_context is not None:
                np.testing.assert_array_equal(found.extra_context[row], extra)
            row += 1
    assert row == count
    assert found.context.dtype == np.uint8
    assert found.traj_ts_ids.dtype == np.int64
    assert found.traj_ts_ids.shape == (count, 2)
    if mode == "action_prediction":
        assert found.target.shape == (count, k, *actions.shape[1:])
        assert found.target.dtype == actions.dtype


def test_identity_reverse_and_windows(demos: gm.Demos) -> None:
    obs, acts = np.asarray(demos.column("obs")), np.asarray(demos.column("acts"))
    same = gm.pairs.Identity().over(demos)[:]
    assert same.context is same.target
    np.testing.assert_array_equal(same.context, obs)
    assert same.traj_ts_ids.tolist() == [[i, t] for i, _, length in spans() for t in range(length)]
    assert set(same.asdict()) == {"context", "target", "traj_ts_ids"}

    turned = gm.pairs.Reverse(2).over(demos)[[0, -1]]
    np.testing.assert_array_equal(turned.context, obs[[2, 12]])
    np.testing.assert_array_equal(turned.target, obs[[0, 10]])

    found = gm.pairs.Windows(3).over(demos)[:]
    assert found.context.shape == (13, 3, 2, 9, 12)
    np.testing.assert_array_equal(found.target, acts)
    assert found.extra_context is not None
    for _, first, length in spans():
        for t in range(length):
            steps = [first + max(0, t - back) for back in (2, 1, 0)]
            np.testing.assert_array_equal(found.context[first + t], obs[steps])
            assert found.extra_context[first + t].tolist() == [t >= 2, t >= 1, True]


def test_uniform_offsets_stay_within_range_and_trajectory(demos: gm.Demos) -> None:
    acts = np.asarray(demos.column("acts"))
    constructor = gm.pairs.UniformOffset(1, 3)
    orders = []
    for epoch in range(20):
        found = constructor.over(demos, seed=1, epoch=epoch)[:]
        assert len(found.context) == 6 + 0 + 4
        starts = np.array([first for _, first, _ in spans()])[found.traj_ts_ids[:, 0]]
        obs = np.asarray(demos.column("obs"))
        offsets = [
            next(k for k in (1, 2, 3) if np.array_equal(obs[start + t - k], context))
            for start, (_, t), context in zip(starts, found.traj_ts_ids, found.context, strict=True)
        ]
        assert all(k <= t for k, t in zip(offsets, found.traj_ts_ids[:, 1], strict=True))
        orders.append(tuple(offsets))
    assert set(sum(orders, ())) == {1, 2, 3}
    assert len(set(orders)) > 10, "drawn again for each epoch"
    again = constructor.over(demos, seed=1, epoch=0)[:]
    np.testing.assert_array_equal(again.context, constructor.over(demos, seed=1, epoch=0)[:].context)
    assert len(acts) == 13


def jigsaw(picture: npt.NDArray[np.uint8], order: npt.NDArray[np.int64]) -> npt.NDArray[np.uint8]:
    _, height, width = picture.shape
    h, w = height // 3, width // 3
    tiles = [picture[:, r * h : r * h + h - 2, c * w : c * w + w - 2] for r in range(3) for c in range(3)]
    return np.concatenate([np.concatenate([tiles[order[3 * r + c]] for c in range(3)], 2) for r in range(3)], 1)


def test_jigsaw(tmp_path: Path, demos: gm.Demos) -> None:
    rng = np.random.default_rng(4)
    table = np.stack([rng.permutation(9) for _ in range(5)])
    np.save(tmp_path / "permutations.npy", table)
    obs = np.asarray(demos.column("obs"))
    found = gm.pairs.Jigsaw(tmp_path / "permutations.npy").over(demos, seed=2)[:]
    assert (found.context.shape, found.target.shape) == ((13, 2, 3, 6), (13, 1))
    assert found.target.dtype == np.int64
    for picture, context, (label,) in zip(obs, found.context, found.target, strict=True):
        np.testing.assert_array_equal(context, jigsaw(picture, table[label]))
    labels = found.target[:, 0].tolist()
    assert sorted(labels[:5]) == list(range(5)), "each once, then again"
    assert labels[5:10] == labels[:5]
    later = gm.pairs.Jigsaw(tmp_path / "permutations.npy").over(demos, seed=2, epoch=1)[:]
    assert later.target[:, 0].tolist() != labels
    old = gm.pairs.Jigsaw(tmp_path / "permutations.npy", compat=True).over(demos, seed=2)[:]
    assert len(old.context) == 12, "the originals lose the first step of all"
    ids = gm.pairs.Jigsaw(tmp_path / "permutations.npy").over(demos)[:].traj_ts_ids
    assert old.traj_ts_ids[:6].tolist() == [[0, t] for t in range(6)], "counted from the step after it"
    np.testing.assert_array_equal(old.traj_ts_ids[6:], ids[7:])
    np.testing.assert_array_equal(old.context[0], jigsaw(obs[1], table[old.target[0, 0]]))


def test_jigsaw_with_the_real_table(shared: Path) -> None:
    table = shared / "data/demos/jigsaw_permutations_1000.npy"
    found = gm.pairs.Jigsaw(table).over(gm.open(shared / "data/demos/pong.tar.zst"), seed=3)[:100]
    assert found.context.shape == (100, 4, 78, 78)
    assert len(set(found.target[:, 0].tolist())) == 100


def test_what_cannot_be_paired_is_refused(tmp_path: Path, demos: gm.Demos) -> None:
    cases: list[tuple[Callable[[], Any], str]] = [
        (lambda: gm.pairs.TemporalOffset(None, 0), "offset of 0"),
        (lambda: gm.pairs.TemporalOffset("forward"), "no mode"),  # type: ignore[arg-type]
        (lambda: gm.pairs.UniformOffset(3, 1), "in order"),
        (lambda: gm.pairs.Windows(0), "at least 1"),
        (lambda: gm.pairs.Jigsaw("x.npy", n_tiles=8), "square"),
    ]
    for make, words in cases:
        with pytest.raises(gm.ConfigError, match=words):
            make()
    np.save(tmp_path / "bad.npy", np.zeros((2, 9), np.int64))
    with pytest.raises(gm.ConfigError, match=r"bad\.npy"):
        gm.pairs.Jigsaw(tmp_path / "bad.npy").over(demos)
    np.save(tmp_path / "good.npy", np.arange(9)[None])
    small = store(tmp_path / "small.tar", [2], shape=(1, 6, 6))
    with pytest.raises(gm.ConfigError, match="too small"):
        gm.pairs.Jigsaw(tmp_path / "good.npy").over(small)[:]
    rows = [{"obs": np.zeros(2, np.uint8)}] * 3
    write_frames(tmp_path / "plain.tar", demos.metadata, rows)
    with pytest.raises(gm.ConfigError, match="no `dones`"):
        gm.pairs.TemporalOffset().over(gm.open(tmp_path / "plain.tar"))


def acts_of(loader: gm.PairLoader, passes: int = 1) -> list[int]:
    """The first action of each window of one step: which step each row is."""
    return [int(act) for _ in range(passes) for batch in loader for act in batch.target]


ROWS = gm.pairs.Windows(1)


def test_each_pass_is_a_permutation_of_its_own(demos: gm.Demos) -> None:
    loader = gm.PairLoader(demos, ROWS, batch_size=4, seed=5, drop_last=False)
    assert len(loader) == 4
    passes = [acts_of(loader) for _ in range(3)]
    assert all(sorted(one) == list(range(13)) for one in passes)
    assert len({tuple(one) for one in passes}) == 3
    assert acts_of(gm.PairLoader(demos, ROWS, batch_size=4, seed=5, drop_last=False)) == passes[0]
    assert acts_of(gm.PairLoader(demos, ROWS, batch_size=4, seed=6, drop_last=False)) != passes[0]
    assert acts_of(gm.PairLoader(demos, ROWS, batch_size=4, shuffle=False)) == list(range(12)), "the last is dropped"


def test_sources_are_mixed_by_weight_to_an_exact_length(tmp_path: Path, demos: gm.Demos) -> None:
    other = store(tmp_path / "other.tar", [4], first=100)
    for weights, share in [(None, 0.5), ([3.0, 1.0], 0.75)]:
        loader = gm.PairLoader([demos, other], ROWS, batch_size=10, nominal_length=2005, weights=weights, seed=1)
        rows = acts_of(loader)
        assert (len(loader), len(rows)) == (200, 2000)
        assert abs(sum(row < 100 for row in rows) / 2000 - share) < 0.04
        small = [row for row in rows if row >= 100]
        for start in range(0, len(small) - 3, 4):
            assert sorted(small[start : start + 4]) == [100, 101, 102, 103], (
                "a short source starts over, in a new order"
            )


@pytest.mark.parametrize("world", [2, 3, 6])
def test_ranks_share_one_order(tmp_path: Path, demos: gm.Demos, world: int) -> None:
    other = store(tmp_path / "other.tar", [4], first=100)
    common: dict[str, Any] = {"nominal_length": 60, "seed": 8}
    alone = acts_of(gm.PairLoader([demos, other], ROWS, batch_size=6, **common), passes=2)
    shares = [
        acts_of(gm.PairLoader([demos, other], ROWS, batch_size=6, rank=r, world_size=world, **common), passes=2)
        for r in range(world)
    ]
    assert [row for rows in zip(*shares, strict=True) for row in rows] == alone


def test_a_state_goes_on_anywhere(tmp_path: Path, demos: gm.Demos) -> None:
    other = store(tmp_path / "other.tar", [4], first=100)

    def loader(batch: int = 5, seed: int = 2) -> gm.PairLoader:
        return gm.PairLoader([demos, other], ROWS, batch_size=batch, nominal_length=30, seed=seed)

    both = loader()
    whole = [batch.target.tolist() for _ in range(2) for batch in both]
    for taken in range(12):
        first = loader()
        seen: list[Any] = []
        while len(seen) < taken:
            for batch in first:
                seen.append(batch.target.tolist())
                if len(seen) == taken:
                    state = first.state_dict()
                    break
        state = first.state_dict() if taken == 0 else state
        second = loader()
        second.load_state_dict(state)
        left: list[Any] = []
        while len(left) < 12 - taken:
            left.extend(batch.target.tolist() for batch in second)
        assert seen + left[: 12 - taken] == whole, taken
    with pytest.raises(gm.StateError):
        loader(seed=3).load_state_dict(loader().state_dict())
    # As states were before they had a checksum.
    older = {name: value for name, value in loader().state_dict().items() if name != "checksum"}
    for row in (-10, 1 << 80, "10", None):
        with pytest.raises(gm.StateError, match="row"):
            loader().load_state_dict({**older, "gristmill_pairs_state": 1, "row": row})


def test_layouts_that_differ_are_refused_or_padded(tmp_path: Path, demos: gm.Demos) -> None:
    wide = store(tmp_path / "wide.tar", [30], shape=(2, 9, 15))
    with pytest.raises(gm.ConfigError, match=r"\[2, 9, 12\].*\[2, 9, 15\]"):
        gm.PairLoader([demos, wide], batch_size=4)
    batches = list(gm.PairLoader([demos, wide], batch_size=20, pad=True))
    assert batches[0].context.shape == (20, 2, 9, 15)
    padded = [not picture[:, :, 12:].any() for batch in batches for picture in batch.context]
    assert 0 < sum(padded) < len(padded)
    floats = store(tmp_path / "floats.tar", [9], acts=1)
    with pytest.raises(gm.ConfigError, match="differs"):
        gm.PairLoader([demos, floats], ROWS, batch_size=4, pad=True)


def test_numbers_out_of_range_are_refused(tmp_path: Path, demos: gm.Demos) -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"batch_size": 0}, "batches of 0"),
        ({"batch_size": 14}, "do not fill"),
        ({"batch_size": 1, "rank": 1}, "rank 1 alone says too little"),
        ({"batch_size": 1, "rank": 1, "world_size": 1}, "rank 1 of 1"),
        ({"batch_size": 5, "rank": 0, "world_size": 2}, "5 rows for 2 ranks; .* 4 would do"),
        ({"batch_size": 1, "weights": [0.0]}, "weight"),
        ({"batch_size": 1, "nominal_length": 0}, "do not fill"),
        ({"batch_size": 1, "pairs": gm.pairs.TemporalOffset(None, 8)}, "gives no pairs"),
    ]
    for options, words in cases:
        with pytest.raises(gm.ConfigError, match=words):
            gm.PairLoader(demos, **options)
    with pytest.raises(gm.ConfigError, match="shuffle"):
        gm.PairLoader([demos, demos], batch_size=1, shuffle=False)
    with pytest.raises(gm.ConfigError, match="no data set"):
        gm.PairLoader([], batch_size=1)
