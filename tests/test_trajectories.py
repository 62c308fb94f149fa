"""Packs of demonstrations: packed, opened, selected and fed, against what the files themselves give."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.envs import EnvConfig
from gristmill.safe_pickle import Instance

LENGTHS = (5, 9, 3, 7)
SIDE = 24
STACK = {"shape": (4, SIDE, SIDE), "dtype": np.dtype("u1")}
BOX = Instance("Box", (), {"low": np.zeros((4, SIDE, SIDE)), "high": np.full((4, SIDE, SIDE), 255), **STACK})
META = get_meta_dict(EnvConfig(task_name="cheetah-run"), BOX, Instance("Discrete", (), {"n": 6}))


def frames() -> list[dict[str, Any]]:
    """Stacks of four pictures; each picture is in eight of them, counting `next_obs`."""
    rng = np.random.default_rng(3)
    made = []
    for i, length in enumerate(LENGTHS):
        pictures = rng.integers(0, 256, (length + 4, SIDE, SIDE), dtype=np.uint8)
        made += [
            {
                "obs": pictures[t : t + 4],
                "next_obs": pictures[t + 1 : t + 5],
                "acts": np.int64(t % 6),
                "dones": np.bool_(t == length - 1),
                "rews": np.float64(i),
                "infos": {"t": t, "name": "größe"},
            }
            for t in range(length)
        ]
    return made


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demos")
    (folder / "shards").mkdir()
    write_frames(folder / "shards" / "demos.tar", META, frames())
    packed = gm.pack(folder / "shards", folder / "pack")
    assert (packed.runs, packed.rows, packed.layout) == (len(LENGTHS), sum(LENGTHS), "demonstration chunks")
    return folder


def test_trajectories_come_back_as_the_files_have_them(folder: Path) -> None:
    pack, demos = gm.open(folder / "pack"), gm.open(folder / "shards")
    assert isinstance(pack, gm.Trajectories)
    assert isinstance(demos, gm.Demos)
    assert (pack.lengths, pack.num_frames, pack.layout.dtype) == (list(LENGTHS), sum(LENGTHS), demos.layout.dtype)
    for i in range(len(LENGTHS)):
        np.testing.assert_array_equal(np.asarray(pack.games[i]), np.asarray(demos[i]))
        assert (pack.extras(i)["infos"], pack.truncated(i)) == (demos.extras(i)["infos"], demos.truncated(i))
    assert pack.metadata["env_cfg"] == demos.metadata["env_cfg"]
    everything = np.concatenate([np.asarray(one) for one in pack.games])
    order = np.random.default_rng(1).permutation(pack.num_frames).reshape(2, -1)
    np.testing.assert_array_equal(np.asarray(pack.take(order)), everything[order])
    chosen = pack.encode(order, gm.Fields(["acts", "obs"]))
    assert list(chosen) == ["acts", "obs"]
    np.testing.assert_array_equal(chosen["obs"], everything["obs"][order])
    stored = sum(path.stat().st_size for path in (folder / "pack").glob("*.chunks"))
    pictures = sum(length + 4 for length in LENGTHS) * SIDE * SIDE
    assert stored < 2 * pictures, "pictures that no compression makes smaller are stored once"
    with pytest.raises(IndexError):
        pack.take([pack.num_frames])


def test_they_are_selected_by_what_is_known_of_them(folder: Path) -> None:
    pack = gm.open(folder / "pack")
    long = pack.where("frames > ? AND total_reward > 0", 4)
    assert isinstance(long, gm.Trajectories)
    assert long.lengths == [9, 7]
    assert pack.where("environment = 'cheetah-run' AND obs_shape = '4x24x24' AND terminated").lengths == list(LENGTHS)
    np.testing.assert_array_equal(long.games[1:].take([0])["rews"], [3.0])
    train, val = pack.split(val=0.5, seed=3)
    assert sorted(train.game_ids + val.game_ids) == [0, 1, 2, 3]
    assert isinstance(val, gm.Trajectories)


def test_steps_are_marked_and_trajectories_kept_together(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder / "shards", tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert isinstance(pack, gm.Trajectories)
    late = [t for length in LENGTHS for t in range(length) if t > 3]
    assert pack.mark("late", "ply > 3 AND game.total_reward >= 0 AND field_frame >= 0").marked == len(late)
    np.testing.assert_array_equal(pack.marked("late").take(np.arange(len(late)))["acts"], [t % 6 for t in late])
    assert pack.without("late").num_frames == sum(LENGTHS) - len(late)
    found = pack.duplicates()
    assert (found.games, found.different, found.groups) == (4, 4, [])
    train, val = pack.split(0.3, by="content")
    assert sorted(train.game_ids + val.game_ids) == [0, 1, 2, 3]
    assert [step.job for step in pack.lineage] == ["pack"]


def test_windows_stay_within_their_trajectory(folder: Path) -> None:
    pack = gm.open(folder / "pack")
    records = [np.asarray(one) for one in pack.games]
    loader = gm.DataLoader(pack, batch_size=24, shuffle=False, view=gm.views.Window(past=2))
    batch = loader.get_next()
    starts = [(one, t) for one in records for t in range(len(one))]
    assert batch.rows == len(starts)
    for i, (one, t) in enumerate(starts):
        shown = np.asarray(batch["mask"])[i]
        np.testing.assert_array_equal(shown, [t - past >= 0 for past in (2, 1, 0)])
        for name in ("obs", "acts", "rews"):
            np.testing.assert_array_equal(np.asarray(batch[name])[i][shown], one[name][max(t - 2, 0) : t + 1])


def test_batches_are_fields_of_every_step_once_and_go_on_exactly(folder: Path) -> None:
    pack = gm.open(folder / "pack")
    everything = np.concatenate([np.asarray(one) for one in pack.games])
    with gm.DataLoader(pack, batch_size=7, shuffle=False) as loader:
        batch = next(loader)
        assert {spec.name for spec in loader.outputs[""].tensors} == set(everything.dtype.names or ())
        for name in everything.dtype.names or ():
            np.testing.assert_array_equal(batch[name], everything[name][:7], err_msg=name)
    options: dict[str, Any] = {
        "encoder": gm.Fields(["next_obs", "rews"]),
        "batch_size": 6,
        "seed": 3,
        "epochs": 2,
        "joined": True,
    }
    with gm.DataLoader(pack, threads=2, **options) as loader:
        whole = [np.array(batch["next_obs"]) for batch in loader]
    seen = np.concatenate(whole)[: pack.num_frames].reshape(pack.num_frames, -1)
    expected = everything["next_obs"].reshape(pack.num_frames, -1)
    assert sorted(map(bytes, seen)) == sorted(map(bytes, expected)), "each step once in an epoch"
    assert not np.array_equal(seen, expected)
    first = gm.DataLoader(pack, **options)
    next(first)
    second = gm.DataLoader(pack, threads=1, **options)
    second.load_state_dict(first.state_dict())
    for found, known in zip((np.array(batch["next_obs"]) for batch in second), whole[1:], strict=True):
        np.testing.assert_array_equal(found, known)
    ranks = [gm.DataLoader(pack, rank=rank, world_size=2, **options) for rank in range(2)]
    both = [np.array(next(rank)["next_obs"]) for rank in ranks]
    assert sorted(map(bytes, np.concatenate(both))) == sorted(map(bytes, whole[0])), "ranks share each batch"
    with pytest.raises(gm.ConfigError, match="there is no field `reward`"):
        gm.DataLoader(pack, encoder=gm.Fields(["reward"]))
    with pytest.raises(TypeError, match=r"gristmill\.Fields"):
        gm.DataLoader(pack, encoder=gm.g2048.Steps())


def test_arrays_of_a_pack_are_those_of_its_files(folder: Path, tmp_path: Path) -> None:
    pack = gm.open(folder / "pack")
    known = gm.load_dataset_dict(folder / "shards")
    assert set(known) == {"obs", "next_obs", "acts", "dones", "rews", "infos"}
    face = gm.demos.open_demos(folder / "pack")
    assert (face.lengths, face.metadata["env_cfg"], face.format) == (
        pack.lengths,
        pack.metadata["env_cfg"],
        "demo.chunks",
    )
    spilled = gm.open(folder / "pack", columns=tmp_path)
    for given in (folder / "pack", str(folder / "pack"), pack, face, spilled):
        for count in (None, 2):
            arrays = gm.load_dataset_dict(given, n_traj=count)
            assert set(arrays) == set(known)
            for name, array in arrays.items():
                np.testing.assert_array_equal(array, known[name][: None if count is None else sum(LENGTHS[:2])])
    chosen = gm.load_dataset_dict(pack.where("frames > 4 AND total_reward > 0"))
    ends = np.cumsum(LENGTHS)
    np.testing.assert_array_equal(chosen["obs"], np.concatenate([known["obs"][5:14], known["obs"][ends[2] :]]))
    assert isinstance(spilled.column("obs"), np.memmap)
    np.testing.assert_array_equal(np.asarray(face.games[1]), np.asarray(pack.games[1]))
    wrong: list[dict[str, Any]] = [
        {"n_traj": 5},
        {"frame_stack": 2},
        {"compat": True},
        {"env_data": {"data_root": "."}},
    ]
    for options in wrong:
        with pytest.raises(gm.ConfigError) as refused:
            gm.load_dataset_dict(pack, **options)
        assert [refused.value.field] == list(options)
    with pytest.raises(gm.FormatError, match="there is no field `reward`"):
        pack.column("reward")


def test_pairs_and_mixes_take_packs(folder: Path, tmp_path: Path) -> None:
    packs, shards = gm.open(folder / "pack"), gm.open(folder / "shards")
    for constructor in (gm.pairs.Identity(), gm.pairs.TemporalOffset("dynamics", temporal_offset=2)):
        options: dict[str, Any] = {"batch_size": 5, "seed": 4, "drop_last": False}
        wanted = gm.PairLoader([shards, shards], constructor, **options)
        mixed = gm.PairLoader([packs, shards], constructor, **options)
        assert mixed.state_dict() == wanted.state_dict(), "a state resumes over either"
        for one, two in zip(mixed, wanted, strict=True):
            for name, array in two.asdict().items():
                np.testing.assert_array_equal(one.asdict()[name], array)
    steps = gm.StepLoader(packs, batch_size=24, shuffle=False)
    np.testing.assert_array_equal(np.asarray(next(iter(steps))["acts"]), np.asarray(shards.column("acts")))
    prepared = gm.PairLoader(packs, gm.pairs.Identity(), batch_size=4, prepare=gm.pairs.Prepare())
    assert next(iter(prepared)).context.shape == (4, 4, SIDE, SIDE)
    gm.pack(folder / "shards", tmp_path / "marked")
    marked = gm.open(tmp_path / "marked")
    marked.mark("late", "ply > 3")
    with pytest.raises(gm.ConfigError, match=r"gristmill\.DataLoader"):
        gm.PairLoader([marked.marked("late")], gm.pairs.Identity(), batch_size=2)


def test_data_sets_are_found_where_a_pack_lies(folder: Path, tmp_path: Path) -> None:
    there = tmp_path / "data" / "processed" / "demos" / "dm_control" / "cheetah-run"
    gm.pack(folder / "shards", there)
    configs = [{"env_cfg": {"task_name": "cheetah-run"}, "env_data": {"wds_n_trajs": 3}}]
    found = gm.load_wds_datasets(configs, root=tmp_path)
    assert found.datasets[0].lengths == list(LENGTHS[:3])
    assert found.metadata["color_space"] == "RGB"
    pairs = gm.PairLoader(found.datasets, gm.pairs.Identity(), batch_size=4, seed=1)
    assert len(pairs) == sum(LENGTHS[:3]) // 4


def test_data_sets_that_do_not_mix_are_taken_apart(tmp_path: Path) -> None:
    other = get_meta_dict(EnvConfig(task_name="cheetah-run"), BOX, Instance("Discrete", (), {"n": 7}))
    for name, meta in (("a", META), ("b", other)):
        (tmp_path / "in" / name).mkdir(parents=True)
        write_frames(tmp_path / "in" / name / "demos.tar", meta, frames())
    gm.pack(tmp_path / "in", tmp_path / "pack")
    with pytest.raises(gm.FormatError, match=r"`b/demos.tar#0` does not go with `a/demos.tar#0`: .*where"):
        gm.demos.open_demos(tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    first = pack.where("source LIKE 'b/%'")
    assert (first.lengths, len(pack.games)) == (list(LENGTHS), 8)
    assert gm.PairLoader(first, gm.pairs.Identity(), batch_size=4).epoch == 0


def test_loaders_say_what_takes_what(folder: Path) -> None:
    wrong: Any
    with pytest.raises(TypeError, match=r"gristmill\.open"):
        gm.DataLoader(folder / "pack", batch_size=4)  # type: ignore[arg-type]
    for wrong in (str(folder / "pack"), [folder / "pack"]):
        with pytest.raises(TypeError, match=r"gristmill\.open"):
            gm.PairLoader(wrong, gm.pairs.Identity(), batch_size=4)
    with pytest.raises(TypeError, match=r"gristmill\.Fields"):
        gm.open(folder / "pack").encode([0], gm.g2048.Steps())


def test_streams_say_what_feeds_a_pack(folder: Path) -> None:
    config = gm.presets.lc0(folder / "pack", batch_size=4, epochs=1)
    with pytest.raises(gm.ConfigError, match=r"gristmill\.open\(PACK\)"):
        next(gm.DataLoader(config))


def test_views_show_the_steps_around_one(folder: Path) -> None:
    pack = gm.open(folder / "pack")
    view = gm.views.NextStep(2)
    loader = gm.DataLoader(pack, encoder=gm.Fields(["acts"]), view=view, batch_size=24, shuffle=False)
    batch = next(loader)
    steps = [(t % 6, min(t + 2, length - 1) % 6) for length in LENGTHS for t in range(length)]
    np.testing.assert_array_equal(np.stack([batch["acts"], batch["next_acts"]], 1), steps)
