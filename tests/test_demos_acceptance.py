"""The acceptance list of the demonstrations, through the public API: from shards on disk to batches.

Each test names its items. Values of every vector, native forms and writers have their own files: `test_demos.py`,
`test_native.py`, `test_safe_pickle.py`, `test_demos_writer.py`, `test_wds.py`.
"""

import gzip
import io
import pickle
import tarfile
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.pairs import Prepare
from gristmill.safe_pickle import Instance

LENGTHS = (7, 1, 5)


def box(shape: tuple[int, ...], dtype: str = "u1") -> Instance:
    low, high = np.zeros(shape, dtype), np.full(shape, 255, dtype)
    return Instance("Box", (), {"low": low, "high": high, "shape": shape, "dtype": np.dtype(dtype)})


def frames(lengths: Sequence[int], shape: tuple[int, ...] = (3, 8, 8), acts: int = 0) -> list[dict[str, Any]]:
    rng = np.random.default_rng(sum(lengths))
    return [
        {
            "obs": rng.integers(0, 256, shape, dtype=np.uint8),
            "acts": rng.normal(size=acts).astype(np.float32) if acts else np.int64(rng.integers(6)),
            "dones": np.bool_(t == length - 1),
        }
        for length in lengths
        for t in range(length)
    ]


def meta(shape: tuple[int, ...] = (3, 8, 8), **env_cfg: str) -> dict[str, Any]:
    return get_meta_dict(env_cfg, box(shape), Instance("Discrete", (), {"n": 6}))


def write(path: Path, lengths: Sequence[int], acts: int = 0) -> gm.Demos:
    write_frames(path, meta(), frames(lengths, acts=acts))
    demos = gm.open(path)
    assert isinstance(demos, gm.Demos)
    return demos


@pytest.fixture(params=["made, numbers", "made, vectors", "vectors"])
def demos(request: pytest.FixtureRequest, tmp_path: Path) -> gm.Demos:
    """Trajectories of 7, 1 and 5 steps: ours, and those of the vectors where they are."""
    if request.param != "vectors":
        return write(tmp_path / "demos.tar.zst", LENGTHS, acts=2 * request.param.endswith("vectors"))
    found = gm.open(request.getfixturevalue("shared") / "vectors/demos/demos_np2_p4_pax.tar.zst")
    assert isinstance(found, gm.Demos)
    return found


Plain = tuple[Any, Any, Any, list[int]]


def pairs_of_a_stream(demos: gm.Demos, mode: str | None, k: int) -> Iterator[Plain]:
    """What a stage over a stream of frames gives, that keeps the last k and forgets them at each end."""
    for trajectory, chunk in enumerate(demos):
        obs, acts = deque[Any](maxlen=k), deque[Any](maxlen=k)
        for t, frame in enumerate(chunk):
            if len(obs) == k:
                between = np.stack(list(acts))
                target = frame["obs"] if mode in (None, "dynamics") else between
                extra = {"dynamics": between, "inverse_dynamics": frame["obs"]}.get(str(mode))
                yield obs[0], target, extra, [trajectory, t]
            obs.append(frame["obs"])
            acts.append(frame["acts"])


@pytest.mark.parametrize("mode", [None, "dynamics", "inverse_dynamics", "action_prediction"])
@pytest.mark.parametrize(("k", "counts"), [(1, [6, 0, 4]), (3, [4, 0, 2]), (8, [0, 0, 0])])
def test_pairs_by_time(demos: gm.Demos, mode: Any, k: int, counts: list[int]) -> None:
    found = gm.pairs.TemporalOffset(mode, k).over(demos)
    expected = list(pairs_of_a_stream(demos, mode, k))
    assert [sum(ids[0] == i for *_, ids in expected) for i in range(3)] == counts
    assert len(found) == len(expected) == sum(counts)
    batch = found[:]
    for row, (context, target, extra, ids) in enumerate(expected):
        np.testing.assert_array_equal(batch.context[row], context)
        np.testing.assert_array_equal(batch.target[row], target)
        assert batch.traj_ts_ids[row].tolist() == ids, "the step is the target's"
        assert (batch.extra_context is None) == (extra is None)
        if batch.extra_context is not None:
            np.testing.assert_array_equal(batch.extra_context[row], extra)


def test_other_constructors(demos: gm.Demos, tmp_path: Path) -> None:
    obs, ids = np.asarray(demos.column("obs")), gm.pairs.Identity().over(demos)[:].traj_ts_ids
    starts = np.repeat(np.cumsum([0, *LENGTHS[:-1]]), LENGTHS)
    ends = starts + np.repeat(LENGTHS, LENGTHS)
    turned = gm.pairs.Reverse(2).over(demos)[:]
    forward = gm.pairs.TemporalOffset(None, 2).over(demos)[:]
    np.testing.assert_array_equal(turned.context, forward.target)
    np.testing.assert_array_equal(turned.target, forward.context)
    for epoch in range(5):
        drawn = gm.pairs.UniformOffset(2, 4).over(demos, epoch=epoch)
        rows = np.arange(len(drawn))
        distance = drawn.target(rows) - drawn.context(rows)
        step = drawn.ids(rows)[:, 1]
        assert len(drawn) == 5 + 0 + 3
        assert ((distance >= 2) & (distance <= np.minimum(4, step))).all()
        assert (drawn.context(rows) >= starts[drawn.target(rows)]).all()
        assert (drawn.target(rows) < ends[drawn.context(rows)]).all()
    windows = gm.pairs.Windows(4).over(demos)[:]
    assert windows.extra_context is not None
    np.testing.assert_array_equal(windows.extra_context.sum(1), np.minimum(ids[:, 1] + 1, 4))
    np.testing.assert_array_equal(windows.context[:, -1], obs)
    stacks = gm.pairs.FrameStack(4).over(demos)[:]
    real = np.repeat(windows.extra_context, obs.shape[1], 1)[..., None, None]
    np.testing.assert_array_equal(stacks.context, windows.context.reshape(stacks.context.shape) * real)


def test_jigsaw_geometry(shared: Path) -> None:
    table_file = shared / "data/demos/jigsaw_permutations_1000.npy"
    pong = gm.open(shared / "data/demos/pong.tar.zst")
    pairs = gm.pairs.Jigsaw(table_file).over(pong, seed=9)
    assert len(pairs) == 998
    batch = pairs[[0, 500, 997]]
    assert (batch.context.shape, batch.target.shape) == ((3, 4, 78, 78), (3, 1))
    for picture, context, (label,) in zip(pong.column("obs")[[0, 500, 997]], batch.context, batch.target, strict=True):
        for place, tile in enumerate(np.load(table_file)[label]):
            row, column = divmod(int(tile), 3)
            shown = context[:, 26 * (place // 3) : 26 * (place // 3 + 1), 26 * (place % 3) : 26 * (place % 3 + 1)]
            cell = picture[:, 28 * row : 28 * row + 26, 28 * column : 28 * column + 26]
            np.testing.assert_array_equal(shown, cell)
    labels = gm.pairs.Jigsaw(table_file).over(pong, seed=9)[:].target[:, 0]
    assert len(set(labels.tolist())) == 998, "each class once before any comes again"


@pytest.mark.parametrize("lengths", [(1,), (2,), (7, 1, 5), (64,)])
def test_shuffling_is_a_permutation(tmp_path: Path, lengths: Sequence[int]) -> None:
    demos, n = write(tmp_path / "demos.tar", lengths), sum(lengths)

    def order(epochs: int, **options: Any) -> list[list[list[int]]]:
        loader = gm.PairLoader(demos, batch_size=3, drop_last=False, **options)
        return [[ids for batch in loader for ids in batch.traj_ts_ids.tolist()] for _ in range(epochs)]

    stored = [[i, t] for i, length in enumerate(lengths) for t in range(length)]
    epochs = order(4, seed=1)
    assert all(sorted(epoch) == stored for epoch in epochs)
    assert order(4, seed=1) == epochs
    assert order(2, shuffle=False) == [stored, stored]
    if n > 5:
        assert all(one != other for i, one in enumerate(epochs) for other in epochs[:i])
        assert order(1, seed=2)[0] != epochs[0]


def test_nothing_is_said_so_at_once(tmp_path: Path) -> None:
    demos = write(tmp_path / "demos.tar", (1, 1))
    assert gm.pairs.TemporalOffset().over(demos)[:].context.shape == (0, 3, 8, 8)
    with pytest.raises(gm.ConfigError, match="data set 0 gives no pairs"):
        gm.PairLoader(demos, gm.pairs.TemporalOffset(), batch_size=1)


@pytest.fixture
def several(tmp_path: Path) -> list[gm.Demos]:
    return [write(tmp_path / f"{i}.tar.zst", lengths) for i, lengths in enumerate([(40, 21), (7, 1, 5), (200,)])]


@pytest.mark.parametrize("weights", [None, [0.5, 0.2, 0.3], [0, 5, 1]])
def test_mixing_by_weight_to_an_exact_length(several: list[gm.Demos], weights: list[float] | None) -> None:
    loader = gm.PairLoader(several, batch_size=10, nominal_length=3005, weights=weights, seed=2, drop_last=False)
    known = {
        demos.column("obs")[t].tobytes(): (i, t) for i, demos in enumerate(several) for t in range(demos.num_frames)
    }
    rows = [known[picture.tobytes()] for batch in loader for picture in batch.context]
    assert len(rows) == 3005
    whole = weights or [1.0, 1.0, 1.0]
    for i, (weight, demos) in enumerate(zip(whole, several, strict=True)):
        own = [t for source, t in rows if source == i]
        assert abs(len(own) - 3005 * weight / sum(whole)) < 10
        passes = [own[start : start + demos.num_frames] for start in range(0, len(own), demos.num_frames)]
        assert all(sorted(one) == list(range(demos.num_frames)) for one in passes[:-1]), "no gaps, no repeats"
        assert len({tuple(one) for one in passes[:-1]}) == len(passes[:-1]), "a new order each time"


@pytest.mark.parametrize("exhausted", ["restart", "stop", "drop"])
def test_one_order_for_workers_ranks_and_runs(several: list[gm.Demos], exhausted: Any) -> None:
    def loader(rank: int = 0, world: int = 1) -> gm.PairLoader:
        options: dict[str, Any] = {"seed": 6, "exhausted": exhausted, "weights": [1, 2, 3], "drop_last": False}
        return gm.PairLoader(several, batch_size=12, rank=rank, world_size=world, **options)

    def rows(batch: gm.pairs.PairBatch) -> list[bytes]:
        return [picture.tobytes() for picture in batch.context]

    one = loader()
    expected = [[rows(batch) for batch in one] for _ in range(2)]
    assert loader().state_dict()["row"] == 0
    for world in (2, 3, 4):
        ranks = [loader(rank, world) for rank in range(world)]
        for epoch in expected:
            shares = [[rows(batch) for batch in own] for own in ranks]
            assert {len(share) for share in shares} == {len(epoch)}, "as many batches for each rank"
            for batch, parts in zip(epoch, zip(*shares, strict=True), strict=True):
                assert [parts[i % world][i // world] for i in range(len(batch))] == batch
    for workers in (1, 2, 5):
        turns = [loader().starts()[worker::workers] for worker in range(workers)]
        made = {start: rows(loader().batch_at(1, start)) for own in turns for start in own}
        assert [made[start] for start in loader().starts()] == expected[1]
    first = loader()
    flat = [batch for epoch in expected for batch in epoch]
    taken = 0
    for _ in range(2):
        for _ in first:
            taken += 1
            again = loader()
            again.load_state_dict(first.state_dict())
            if taken < len(flat):
                assert rows(next(iter(again))) == flat[taken]


def test_batches_of_a_real_shard(shared: Path) -> None:
    pong = gm.open(shared / "data/demos/pong.tar.zst")
    picture, acts = ((32, 4, 84, 84), np.dtype("u1")), ((32, 3), np.dtype("i8"))
    for mode, wanted in [
        (None, [picture, picture, None]),
        ("dynamics", [picture, picture, acts]),
        ("inverse_dynamics", [picture, acts, picture]),
        ("action_prediction", [picture, acts, None]),
    ]:
        loader = gm.PairLoader(pong, gm.pairs.TemporalOffset(mode, 3), batch_size=32)  # type: ignore[arg-type]
        assert len(loader) == 31
        batch = next(iter(loader))
        arrays = [batch.context, batch.target, batch.extra_context]
        assert [None if a is None else (a.shape, a.dtype) for a in arrays] == wanted
        assert batch.traj_ts_ids.shape == (32, 2)
    unit = next(iter(gm.StepLoader(pong, batch_size=32, prepare=Prepare())))
    assert (unit["obs"].dtype, unit["acts"].dtype) == (np.float32, np.int64)
    assert 0 <= unit["obs"].min() < unit["obs"].max() <= 1
    kept = gm.PairLoader(pong, batch_size=32, drop_last=False)
    assert [len(batch.context) for batch in kept][-2:] == [32, 998 % 32]


def test_from_configurations_to_batches(tmp_path: Path) -> None:
    tasks = {("demos", "finger-spin"): (9, 8), ("random", "finger-spin"): (30,), ("demos", "cheetah-run"): (20,)}
    for (kind, task), lengths in tasks.items():
        folder = tmp_path / "data" / "processed" / kind / "dm_control" / task
        write_frames(folder / f"{kind}.tar.zst", meta(task_name=task), frames(lengths))
    configs: list[dict[str, Any]] = [
        {"env_data": {"wds_n_trajs": 1}},
        {"type": "random", "env_data": {"wds_n_trans": 13}},
        {"env_cfg": {"task_name": "cheetah-run"}},
    ]
    found = gm.load_wds_datasets(configs, root=tmp_path)
    loader = gm.PairLoader(found.datasets, gm.pairs.TemporalOffset("dynamics"), batch_size=8, exhausted="drop")
    assert [len(gm.pairs.TemporalOffset().over(part)) for part in found.datasets] == [8, 12, 19]
    assert len(loader) == 39 // 8
    batch = next(iter(loader))
    assert batch.context.shape == (8, 3, 8, 8)
    for limits, words in [({"wds_n_trajs": 3}, "2 trajectories"), ({"wds_n_trans": 18}, "there are 17")]:
        with pytest.raises(gm.ConfigError, match=words):
            gm.load_wds_datasets([{"env_data": limits}], root=tmp_path)
    with pytest.raises(gm.ConfigError, match="task_name"):
        gm.load_wds_datasets([{"env_cfg": {"task": "cheetah-run"}}], root=tmp_path)


Member = tuple[str, bytes]


def members(rows: Sequence[dict[str, Any]], vintage: str) -> list[Member]:
    """Members of a shard: of vintage A shuffled, with numbers as NumPy's; of C in order, with numbers as Python's."""
    order = np.random.default_rng(1).permutation(len(rows)).tolist() if vintage == "A" else range(len(rows))
    found: list[Member] = []
    for number in order:
        values = {**rows[number], "frame": np.int64(number) if vintage == "A" else number}
        for field, value in sorted(values.items()):
            suffix = "pyd" if vintage == "plain tar" or (vintage, field) == ("A", "frame") else "pickle"
            found.append((f"frame_{number:03d}.{field}.{suffix}", pickle.dumps(value, protocol=3)))
    return found


def tar_of(found: Sequence[Member], dialect: int, header: bytes) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=dialect) as tar:
        for name, data in [("_metadata.meta.pickle", header), *found]:
            info = tarfile.TarInfo(name)
            info.size, info.mode, info.mtime, info.uname = (
                len(data),
                0o444,
                1.5 if dialect == tarfile.PAX_FORMAT else 1,
                "bigdata",
            )
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def header_of(path: Path) -> bytes:
    """Metadata as our writer writes them."""
    write_frames(path, meta(), frames((1,)))
    with tarfile.open(path) as tar:
        first = tar.next()
        assert first is not None
        member = tar.extractfile(first)
        assert member is not None
        return member.read()


@pytest.mark.parametrize("dialect", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT])
@pytest.mark.parametrize("vintage", ["A", "C", "plain tar"])
def test_every_vintage_gives_the_same(tmp_path: Path, vintage: str, dialect: int) -> None:
    rows = frames((7, 1, 5))
    data = tar_of(members(rows, vintage), dialect, header_of(tmp_path / "head.tar"))
    path = tmp_path / ("demos.tar" if vintage == "plain tar" else "demos.tgz")
    path.write_bytes(data if vintage == "plain tar" else gzip.compress(data))
    demos = gm.open(path)
    assert [demos.frames(i) for i in range(len(demos))] == [7, 1, 5], "in the order of their numbers"
    for field in ("obs", "acts", "dones"):
        np.testing.assert_array_equal(demos.column(field), np.stack([row[field] for row in rows]))


def test_what_is_wrong_with_a_shard_is_never_silent(tmp_path: Path) -> None:
    header, good = header_of(tmp_path / "head.tar"), members(frames((3, 2)), "C")
    other = pickle.dumps({"env_cfg": {}}, protocol=3)

    def opened(found: Sequence[Member], first: bytes = header) -> Callable[[], Any]:
        data = tar_of(found, tarfile.GNU_FORMAT, first)
        (tmp_path / "bad.tgz").write_bytes(gzip.compress(data))
        return lambda: gm.open(tmp_path / "bad.tgz")

    assert opened(good)().num_frames == 5
    cases: list[tuple[str, list[Member]]] = [
        ("a field twice", [*good[:4], good[0], *good[4:]]),
        ("a sample in two parts", [*good[:2], *good[4:], *good[2:4]]),
        ("a frame lacks a field", [*good[:5], *good[6:]]),
        ("a second, other metadata", [*good, ("_metadata.meta.pickle", other)]),
        ("a value that is none", [("frame_000.acts.pickle", b"\x80\x03"), *good[1:]]),
        ("a value that would run", [("frame_000.acts.pickle", b"cos\nsystem\n(Vtrue\ntR."), *good[1:]]),
    ]
    for what, found in cases:
        with pytest.raises(gm.FormatError) as refused:
            opened(found)()
        assert refused.value.source == str(tmp_path / "bad.tgz"), what
        assert refused.value.member, what
    data = tar_of(good, tarfile.GNU_FORMAT, header)
    end = len(data.rstrip(b"\0")) // 512 * 512 + 1024
    for cut in range(512, end, 512):
        (tmp_path / "cut.tgz").write_bytes(gzip.compress(data[:cut], 1))
        with pytest.raises(gm.FormatError):
            gm.open(tmp_path / "cut.tgz")
