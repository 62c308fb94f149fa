"""What a batch has: shapes, types and values of pairs, windows, stacks and steps; conversions on the way."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps_in_memory import columns, same

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.pairs import Prepare
from gristmill.safe_pickle import Instance

LENGTHS = [7, 1, 5]


@pytest.mark.parametrize("actions", ["numbers", "vectors"])
def test_shapes_and_types_are_those_that_training_consumes(actions: str) -> None:
    acts: dict[str, Any] = {} if actions == "numbers" else {"acts": np.zeros((13, 2), np.float32)}
    act, dtype = ((), np.int64) if actions == "numbers" else ((2,), np.float32)
    data = columns(LENGTHS, **acts)
    image: Any = ((4, 2, 9, 12), np.uint8)
    k: Any = ((4, 3, *act), dtype)
    expected: dict[Any, list[Any]] = {
        None: [image, image, None],
        "dynamics": [image, image, k],
        "inverse_dynamics": [image, k, image],
        "action_prediction": [image, k, None],
    }
    for mode, wanted in expected.items():
        loader = gm.PairLoader(data, gm.pairs.TemporalOffset(mode, 3), batch_size=4)
        batch = next(iter(loader))
        parts = [batch.context, batch.target, batch.extra_context]
        assert [None if part is None else (part.shape, part.dtype) for part in parts] == wanted
        ids: Any = (batch.traj_ts_ids.shape, batch.traj_ts_ids.dtype)
        assert ids == ((4, 2), np.int64)
        assert all(part is None or isinstance(part, gm.Array) for part in parts), "in the engine's memory"
    alone = next(iter(gm.PairLoader(data, batch_size=4)))
    assert alone.context is alone.target


def test_batches_of_a_loader_are_those_of_its_pairs() -> None:
    """What the engine gathers is what NumPy's indexing gives, in one data set and in several at once."""
    data = [columns(LENGTHS), columns([9], 100)]
    for constructor in (
        gm.pairs.TemporalOffset("dynamics", 2),
        gm.pairs.Windows(3, "zeros", "all"),
        gm.pairs.FrameStack(2),
    ):
        apart = [constructor.over(one) for one in data]
        loader = gm.PairLoader(data, constructor, batch_size=5, nominal_length=25, seed=4)
        seen = set()
        for batch in loader:
            for row, (trajectory, step) in enumerate(batch.traj_ts_ids.tolist()):
                found = {name: array[row] for name, array in batch.asdict().items()}
                same_place = [
                    (pairs, number)
                    for pairs in apart
                    for number in np.flatnonzero((pairs[:].traj_ts_ids == [trajectory, step]).all(1))
                ]
                matching = [
                    i
                    for i, (pairs, number) in enumerate(same_place)
                    if all((found[name] == array[0]).all() for name, array in pairs[[int(number)]].asdict().items())
                ]
                assert matching, (constructor, trajectory, step)
                seen.update(matching)
        assert seen == {0, 1}, "rows of both"


def test_windows_and_stacks_are_filled_where_nothing_was(tmp_path: Path) -> None:
    data = columns(LENGTHS)
    obs, acts = data.column("obs"), data.column("acts")
    starts = np.repeat(np.cumsum([0, *LENGTHS[:-1]]), LENGTHS).tolist()
    for fill in ("first", "zeros"):
        windows = gm.pairs.Windows(3, fill, "all").over(data)[:]
        stacks = gm.pairs.FrameStack(3, fill).over(data)[:]
        assert windows.context.shape == (13, 3, 2, 9, 12)
        assert stacks.context.shape == (13, 6, 9, 12)
        np.testing.assert_array_equal(stacks.context.reshape(windows.context.shape), windows.context)
        np.testing.assert_array_equal(stacks.target, acts)
        assert stacks.extra_context is not None
        np.testing.assert_array_equal(stacks.extra_context, windows.extra_context)
        for t in range(13):
            for back in range(3):
                real = t - back >= starts[t]
                step = max(t - back, starts[t])
                shown, act = windows.context[t, 2 - back], windows.target[t, 2 - back]
                assert stacks.extra_context[t, 2 - back] == real
                np.testing.assert_array_equal(shown, obs[step] if real or fill == "first" else 0 * obs[step])
                assert act == (acts[step] if real or fill == "first" else 0)
    with pytest.raises(gm.ConfigError, match="fill='last'"):
        gm.pairs.FrameStack(2, "last")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="acts='none'"):
        gm.pairs.Windows(2, acts="none")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="an axis to stack on"):
        gm.pairs.FrameStack(2).over(gm.pairs.Columns([2], {n: np.zeros(2) for n in ("obs", "acts", "dones")}))


def test_steps_are_what_imitation_and_q_learning_consume() -> None:
    infos: list[Any] = [{"score": t} for t in range(13)]
    data = columns(LENGTHS, infos=infos)
    image = ((13, 2, 9, 12), np.dtype(np.uint8))
    acts, rews, dones = (((13,), np.dtype(dtype)) for dtype in (np.int64, np.float64, np.bool_))
    consumers: list[tuple[gm.pairs.Steps, dict[str, Any]]] = [
        (gm.pairs.BC, {"obs": image, "acts": acts}),
        (gm.pairs.GAIL, {"obs": image, "acts": acts, "next_obs": image, "dones": dones, "infos": None}),
        (gm.pairs.DQN, {"obs": image, "next_obs": image, "acts": acts, "rews": rews, "dones": dones}),
    ]
    for steps, wanted in consumers:
        (batch,) = gm.StepLoader(data, steps, batch_size=13, seed=2)
        assert {n: v if v is None else (batch[n].shape, batch[n].dtype) for n, v in wanted.items()} == wanted
        assert list(batch) == list(wanted)
        for name in wanted:
            found, order = batch[name], batch["acts"]
            if name == "infos":
                assert found == [infos[step] for step in order]
            else:
                np.testing.assert_array_equal(found, data.column(name)[order])
    # Rollouts have ends as numbers, demonstrations as truth values, and only one has infos.
    rollouts = columns([6], 100, dones=np.array([0, 0, 0, 0, 0, 1]))
    for batch in gm.StepLoader([data, rollouts], gm.pairs.GAIL, batch_size=5, nominal_length=30):
        assert batch["dones"].dtype == np.bool_
        for act, end, info in zip(batch["acts"].tolist(), batch["dones"].tolist(), batch["infos"], strict=True):
            assert end == (act in (6, 7, 12, 105))
            assert info == (infos[act] if act < 100 else {})
    with pytest.raises(gm.ConfigError, match="no `reward`; it has obs, next_obs, acts, rews, dones"):
        gm.StepLoader(data, gm.pairs.Steps(("obs", "reward")), batch_size=4)
    for names, words in [((), "at least one"), (("infos",), "at least one"), (("obs", "obs"), "twice")]:
        with pytest.raises(gm.ConfigError, match=words):
            gm.pairs.Steps(names)


def test_infos_of_shards_travel(tmp_path: Path) -> None:
    box = Instance("Box", (), {"low": np.uint8(0), "high": np.uint8(255), "shape": (2,), "dtype": np.dtype("u1")})
    rows = [
        {
            "obs": np.full(2, t, np.uint8),
            "acts": np.int64(t),
            "dones": np.bool_(t == 3),
            "infos": {"at": t, "name": "x"},
        }
        for t in range(4)
    ]
    write_frames(tmp_path / "demos.tar", get_meta_dict({}, box, Instance("Discrete", (), {"n": 9})), rows)
    (batch,) = gm.StepLoader(gm.open(tmp_path / "demos.tar"), gm.pairs.Steps(("acts", "infos")), batch_size=4)
    assert batch["infos"] == [{"at": int(act), "name": "x"} for act in batch["acts"]]


@pytest.mark.parametrize("several", [False, True])
def test_numbers_are_converted_on_the_way(several: bool) -> None:
    wide: dict[str, Any] = {"acts": np.random.default_rng(1).normal(size=(13, 2)), "half": np.ones((13, 2), np.float16)}
    data: Any = columns(LENGTHS, **wide)
    if several:
        data = [data, columns([9], 100, acts=np.ones((9, 2), np.float32), half=np.zeros((9, 2)))]
    steps = gm.pairs.Steps(("obs", "acts", "half", "dones"))
    options: dict[str, Any] = {"batch_size": 7, "nominal_length": 21, "seed": 3}

    def batches(prepare: Prepare | None) -> list[dict[str, Any]]:
        return list(gm.StepLoader(data, steps, prepare=prepare, **options))

    if several:
        with pytest.raises(gm.ConfigError, match=r"`acts` differs between the data sets: float64.*float32.*prepare="):
            batches(None)
        plain = batches(Prepare("keep"))
    else:
        plain = batches(None)
    for one, float_, unit, part in zip(
        plain, batches(Prepare("float")), batches(Prepare()), batches(Prepare(leave=("obs",))), strict=True
    ):
        assert (float_["obs"].dtype, unit["obs"].dtype, part["obs"].dtype) == (np.float32, np.float32, np.uint8)
        np.testing.assert_array_equal(float_["obs"], one["obs"].astype(np.float32))
        np.testing.assert_array_equal(unit["obs"], one["obs"].astype(np.float32) / np.float32(255))
        np.testing.assert_array_equal(part["obs"], one["obs"])
        for name in ("acts", "half"):
            assert unit[name].dtype == np.float32
            np.testing.assert_array_equal(unit[name], one[name].astype(np.float32))
        assert unit["dones"].dtype == np.bool_
    if not several:
        left = Prepare(leave=("target",))
        inverse = next(
            iter(gm.PairLoader(data, gm.pairs.TemporalOffset("inverse_dynamics"), prepare=left, batch_size=4))
        )
        found: Any = [inverse.context.dtype, inverse.target.dtype, np.asarray(inverse.extra_context).dtype]
        assert found == [np.float32, np.float64, np.float32]
        twins = next(iter(gm.PairLoader(data, prepare=left, batch_size=4)))
        found = [twins.context.dtype, twins.target.dtype]
        assert found == [np.float32, np.uint8]
    both = next(iter(gm.PairLoader(data, prepare=Prepare(), batch_size=4)))
    assert both.context is both.target


def test_pictures_that_are_not_channels_first_or_not_of_256_levels_are_refused(tmp_path: Path) -> None:
    last = columns(LENGTHS, shape=(9, 12, 3))
    with pytest.raises(gm.ConfigError, match=r"`context` has rows of shape \[9, 12, 3\].*\(C, H, W\)"):
        gm.PairLoader(last, prepare=Prepare(), batch_size=4)
    assert len(gm.PairLoader(last, prepare=Prepare(check_nchw=False), batch_size=4)) == 3
    with pytest.raises(gm.ConfigError, match="images='half'"):
        Prepare("half")  # type: ignore[arg-type]
    for high, fits in [(255, True), (7, False)]:
        shape = (1, 4, 4)
        low = np.zeros(shape, np.uint8)
        box = Instance("Box", (), {"low": low, "high": low + np.uint8(high), "shape": shape, "dtype": np.dtype("u1")})
        rows = [{"obs": low, "acts": np.int64(0), "dones": np.bool_(t == 2)} for t in range(3)]
        path = tmp_path / f"{high}.tar"
        write_frames(path, get_meta_dict({}, box, Instance("Discrete", (), {"n": 9})), rows)
        if fits:
            gm.PairLoader(gm.open(path), prepare=Prepare(), batch_size=1)
        else:
            with pytest.raises(gm.ConfigError, match="from 0 to 7"):
                gm.PairLoader(gm.open(path), prepare=Prepare(), batch_size=1)
            gm.PairLoader(gm.open(path), prepare=Prepare("float"), batch_size=1)


@pytest.mark.parametrize(("total", "batch", "world"), [(23, 4, 1), (23, 8, 2), (23, 9, 3), (5, 8, 4), (8, 8, 2)])
def test_the_last_batch_is_dropped_or_short(total: int, batch: int, world: int) -> None:
    def sizes(drop: bool) -> list[list[int]]:
        return [
            [
                len(one["acts"])
                for one in gm.StepLoader(
                    columns([9]), batch_size=batch, nominal_length=total, drop_last=drop, rank=rank, world_size=world
                )
            ]
            for rank in range(world)
        ]

    full, rest = divmod(total, batch)
    kept = sizes(False)
    assert {len(one) for one in kept} == {full + (rest > 0)}, "as many batches for each rank"
    assert sum(map(sum, kept)) == total
    assert all(one[:full] == [batch // world] * full for one in kept)
    if rest:
        assert [one[-1] for one in kept] == [len(range(rank, rest, world)) for rank in range(world)]
    if full:
        assert sizes(True) == [[batch // world] * full] * world
    else:
        with pytest.raises(gm.ConfigError, match="do not fill"):
            sizes(True)


def test_batches_that_are_kept_stay_as_they_are() -> None:
    loader = gm.PairLoader(columns([50]), gm.pairs.TemporalOffset("dynamics"), batch_size=4, seed=1)
    kept, copies = [], []
    for batch in loader:
        kept.append(batch)
        copies.append({name: array.copy() for name, array in batch.asdict().items()})
    assert all(same(batch.asdict(), copy) for batch, copy in zip(kept, copies, strict=True))
    addresses = {batch.context.ctypes.data for batch in kept}
    assert len(addresses) == len(kept)
    assert all(address % 64 == 0 for address in addresses)
    del kept, batch
    again = {batch.context.ctypes.data for batch in loader}
    assert again & addresses, "free memory is used again"


def test_columns_must_fit_together() -> None:
    with pytest.raises(gm.ConfigError, match="`acts` has 4 rows; the trajectories have 5 steps"):
        gm.pairs.Columns([2, 3], {"obs": np.zeros(5), "acts": np.zeros(4)})
    with pytest.raises(gm.ConfigError, match="`infos` has 1 rows"):
        gm.pairs.Columns([2], {"obs": np.zeros(2)}, [{}])
    with pytest.raises(gm.ConfigError, match="of -1 steps"):
        gm.pairs.Columns([3, -1], {"obs": np.zeros(2)})
    with pytest.raises(gm.FormatError, match="no `acts` among obs"):
        gm.pairs.Columns([2], {"obs": np.zeros(2)}).column("acts")
    swapped = gm.pairs.Columns([3], {"obs": np.arange(3, dtype=">i4"), "acts": np.arange(6)[::2]})
    (batch,) = gm.StepLoader(swapped, batch_size=3, shuffle=False)
    assert (batch["obs"].tolist(), batch["acts"].tolist()) == ([0, 1, 2], [0, 2, 4])
