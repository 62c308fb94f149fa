"""Data sets of one task as one dictionary: right by default, and each fault of the originals by option."""

import random
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from demo_files import write_atari, write_dm_control, write_magical, write_minecraft, write_procgen

import gristmill as gm
from gristmill.demos import EnvData, load_config
from gristmill.envs import EnvConfig, VenvOptions


def load(root: Path, benchmark: str, task: str, n_traj: int | None = None, compat: bool = False, **cfg: Any) -> Any:
    env_cfg = {"benchmark_name": benchmark, "task_name": task, **cfg}
    return gm.load_dataset_dict(env_cfg, {"data_root": str(root)}, n_traj, compat=compat)


def lengths(data: dict[str, npt.NDArray[Any]]) -> int:
    (length,) = {len(array) for array in data.values()}
    return length


def area_mean(picture: npt.NDArray[np.uint8], to: int) -> npt.NDArray[np.uint8]:
    """The mean of each square of pixels, halves to even, channels first."""
    factor = picture.shape[0] // to
    squares = picture.reshape(to, factor, to, factor, 3).astype(np.float64).mean(axis=(1, 3))
    means: npt.NDArray[np.uint8] = np.rint(squares).astype(np.uint8)
    return means.transpose(2, 0, 1)


def test_magical(tmp_path: Path) -> None:
    folder = tmp_path / "data/magical/move-to-region"
    rows = [write_magical(folder / f"demo-{i}.pkl.gz", [0, 3, 5, 0, 0][: 3 + i], side=192) for i in range(3)]
    data = load(tmp_path, "magical", "MoveToRegion-Demo-v0")
    assert set(data) == {"obs", "next_obs", "acts", "dones", "truncated", "rews", "infos"}
    assert lengths(data) == 3 + 4 + 5
    assert (data["obs"].shape, data["obs"].dtype) == ((12, 12, 96, 96), np.uint8)
    assert np.flatnonzero(data["dones"]).tolist() == [2, 6, 11]
    stack = data["obs"][3 + 1].reshape(4, 3, 96, 96)
    for k, t in enumerate([0, 0, 0, 1]):
        np.testing.assert_array_equal(stack[k], area_mean(rows[1].obs[t]["ego"], 96))
    for t in (0, 1, 3, 4, 5, 7):
        np.testing.assert_array_equal(data["next_obs"][t], data["obs"][t + 1])
    assert data["infos"][4] == {"eval_score": 1.0}

    old = load(tmp_path, "magical", "MoveToRegion-Demo-v0", compat=True)
    assert set(old) == {"obs", "next_obs", "acts", "dones"}
    assert old["dones"].sum() == 3

    first = load(tmp_path, "magical", "MoveToRegion-Demo-v0", n_traj=2)
    np.testing.assert_array_equal(first["obs"], data["obs"][:7])
    views = load(tmp_path, "magical", "MoveToRegion-Demo-v0", magical_preproc="")
    assert {"obs_ego", "obs_allo", "next_obs_ego", "next_obs_allo"} < set(views)


def test_ends_that_null_actions_take_along(tmp_path: Path) -> None:
    folder = tmp_path / "data/magical/make-line"
    for i in range(2):
        write_magical(folder / f"demo-{i}.pkl.gz", [0, 3, 0, 5, 0], env_name="MakeLine-Demo-v0")
    data = load(tmp_path, "magical", "MakeLine-Demo-v0", magical_remove_null_actions=True)
    assert data["acts"].tolist() == [3, 5, 3, 5]
    assert data["dones"].tolist() == [False, True, False, True]
    old = load(tmp_path, "magical", "MakeLine-Demo-v0", compat=True, magical_remove_null_actions=True)
    assert old["acts"].tolist() == [3, 5, 3, 5]
    assert not old["dones"].any()
    with pytest.raises(ValueError, match="n_traj=1"):
        load(tmp_path, "magical", "MakeLine-Demo-v0", 1, compat=True, magical_remove_null_actions=True)


def test_files_of_another_environment_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "data/magical/make-line"
    write_magical(folder / "demo-0.pkl.gz", [1], env_name="FindDupe-Demo-v0")
    with pytest.raises(gm.ConfigError, match="FindDupe-Demo-v0"):
        load(tmp_path, "magical", "MakeLine-Demo-v0")
    write_magical(folder / "demo-1.pkl.gz", [1], env_name="MakeLine-Demo-v0")
    with pytest.raises(gm.ConfigError, match="one task cannot hold both"):
        load(tmp_path, "magical", "MakeLine-Demo-v0")


def test_stacks_of_dm_control(tmp_path: Path) -> None:
    made = [write_dm_control(tmp_path / f"data/dm_control/finger-spin-{i}.pkl.gz", [4, 2 + i], 4 + i) for i in range(2)]
    known = [row for rows in made for row in rows]
    data = load(tmp_path, "dm_control", "finger-spin")
    assert lengths(data) == 4 + 2 + 4 + 3
    assert data["obs"].shape == (13, 9, 8, 8)
    np.testing.assert_array_equal(data["acts"], np.concatenate([row.acts for row in known]))
    assert data["rews"].tolist() == np.concatenate([row.rews for row in known]).tolist()
    assert [info["at"] for info in data["infos"]] == [info["at"] for row in known for info in row.infos]
    zeros = np.zeros((3, 8, 8), np.uint8)
    np.testing.assert_array_equal(data["obs"][1], np.concatenate([zeros, known[0].obs[0], known[0].obs[1]]))
    inside = [t for t in range(12) if not data["dones"][t]]
    for t in inside:
        np.testing.assert_array_equal(data["next_obs"][t], data["obs"][t + 1])

    random.seed(5)
    old = load(tmp_path, "dm_control", "finger-spin", compat=True)
    order = list(range(4))
    random.seed(5)
    random.shuffle(order)
    np.testing.assert_array_equal(old["acts"], np.concatenate([known[i].acts for i in order]))
    np.testing.assert_array_equal(old["next_obs"][0], np.concatenate([zeros, zeros, known[order[0]].obs[1]]))
    starts = [0, *(np.flatnonzero(old["dones"])[:-1] + 1)]
    unequal = [t for t in range(12) if not old["dones"][t] and (old["next_obs"][t] != old["obs"][t + 1]).any()]
    assert unequal == [s + k for s in starts for k in (0, 1) if not old["dones"][s + k]]
    assert "truncated" not in old
    assert data["truncated"].tolist() == data["dones"].tolist()
    assert load(tmp_path, "dm_control", "finger-spin", dm_control_frame_stack=1)["obs"].shape == (13, 3, 8, 8)
    kept = gm.load_dataset_dict(env_data={"data_root": str(tmp_path)}, n_traj=3, frame_stack=2)
    assert (lengths(kept), kept["obs"].shape[1]) == (10, 6)


def test_fragments_of_atari(tmp_path: Path) -> None:
    path = tmp_path / "data/atari/PongNoFrameskip-v4_rollouts_500_ts_100_traj.npz"
    made = write_atari(path, [5, 5, 5])
    data = load(tmp_path, "atari", "PongNoFrameskip-v4")
    assert set(data) == {"obs", "next_obs", "acts", "dones", "truncated"}
    assert np.flatnonzero(data["dones"]).tolist() == [3, 7, 11]
    assert data["truncated"].tolist() == data["dones"].tolist()
    np.testing.assert_array_equal(data["obs"][5], made[1]["states"][1].transpose(2, 0, 1))
    assert lengths(load(tmp_path, "atari", "PongNoFrameskip-v4", 2)) == 8

    old = load(tmp_path, "atari", "PongNoFrameskip-v4", compat=True)
    assert set(old) == {"obs", "next_obs", "acts", "dones"}
    assert not old["dones"].any()
    jumps = [t for t in range(11) if (old["next_obs"][t] != old["obs"][t + 1]).any()]
    assert jumps == [3, 7], "the only trace of their ends"
    with pytest.raises(ValueError, match="0 trajectories"):
        load(tmp_path, "atari", "PongNoFrameskip-v4", 1, compat=True)


def test_trajectories_of_procgen(tmp_path: Path) -> None:
    made = write_procgen(tmp_path / "procgen/demo_coinrun.pickle", [3, 2, 4])
    data = load(tmp_path, "procgen", "coinrun", procgen_frame_stack=2)
    assert np.flatnonzero(data["dones"]).tolist() == [2, 4, 8]
    channels_first = [obs.transpose(0, 3, 1, 2) for obs in made["obs"]]
    np.testing.assert_array_equal(data["next_obs"][2], np.concatenate(channels_first[0][2:4]))
    np.testing.assert_array_equal(data["obs"][3], np.concatenate([np.zeros((3, 4, 4), np.uint8), channels_first[1][0]]))
    assert data["rews"].tolist() == np.concatenate(made["rews"]).tolist()
    assert lengths(load(tmp_path, "procgen", "coinrun", 2)) == 5

    old = load(tmp_path, "procgen", "coinrun", compat=True, procgen_frame_stack=2)
    row = np.concatenate(channels_first)
    np.testing.assert_array_equal(old["obs"][4], np.concatenate(row[3:5]))
    np.testing.assert_array_equal(old["next_obs"][0][:3], 0)
    cut = load(tmp_path, "procgen", "coinrun", 2, compat=True)
    assert cut["dones"].sum() == 2
    assert cut["dones"][-1]
    for compat in (False, True):
        with pytest.raises(gm.ConfigError, match="n_traj=9"):
            load(tmp_path, "procgen", "coinrun", 9, compat=compat)


def test_recordings_of_minecraft(tmp_path: Path) -> None:
    folder = tmp_path / "data/minecraft/MineRLNavigate-v0"
    write_minecraft(folder / "one", 130)
    with pytest.raises(gm.FormatError, match=r"recording\.mp4"):
        load(tmp_path, "minecraft", "Navigate")
    av = pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[minecraft])")
    write_minecraft(folder / "two", 130)
    for stream_folder in (folder / "one", folder / "two"):
        with av.open(str(stream_folder / "recording.mp4"), "w") as container:
            stream = container.add_stream("mpeg4", rate=20)
            stream.width = stream.height = 16
            for t in range(131):
                picture = np.full((16, 16, 3), t, np.uint8)
                for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                    container.mux(packet)
            for packet in stream.encode():
                container.mux(packet)
    data = load(tmp_path, "minecraft", "Navigate", 1)
    assert (lengths(data), data["obs"].shape) == (130, (130, 3, 16, 16))
    assert np.flatnonzero(data["dones"]).tolist() == [129]
    np.testing.assert_array_equal(data["next_obs"][:-1], data["obs"][1:])
    assert "rews" in data
    # The originals count pieces of 100 steps, see one end only, and repeat the last frame.
    old = load(tmp_path, "minecraft", "Navigate", 2, compat=True)
    assert (lengths(old), set(old)) == (200, {"obs", "next_obs", "acts", "dones"})
    assert np.flatnonzero(old["dones"]).tolist() == [199]
    np.testing.assert_array_equal(old["next_obs"][-1], old["obs"][-1])


def test_groups_have_the_documented_keys_and_defaults() -> None:
    cfg, venv, data = EnvConfig(), VenvOptions(), EnvData()
    assert (cfg.benchmark_name, cfg.task_name, cfg.magical_preproc) == ("dm_control", "finger-spin", "LoResCHW4E")
    assert (cfg.magical_remove_null_actions, cfg.dm_control_frame_stack, cfg.procgen_frame_stack) == (False, 3, 4)
    assert cfg.dm_control_full_env_names["ball-in-cup-catch"] == "DMC-Ball-In-Cup-Catch-v0"
    assert (len(cfg.dm_control_full_env_names), cfg.minecraft_max_env_steps) == (6, None)
    assert venv.to_dict() == {"venv_parallel": True, "n_envs": 2}
    assert (data.wds_n_trajs, data.wds_n_trans, len(data.magical_demo_dirs)) == (None, None, 8)
    assert data.magical_demo_dirs["MatchRegions-Demo-v0"] == "data/magical/match-regions/"
    assert data.dm_control_demo_patterns["walker-walk"] == "data/dm_control/walker-walk-*.pkl.gz"
    assert data.atari_demo_paths["PongNoFrameskip-v4"].endswith("PongNoFrameskip-v4_rollouts_500_ts_100_traj.npz")
    assert data.procgen_demo_paths["miner"] == "procgen/demo_miner.pickle"


def test_groups_merge_key_by_key_and_refuse_what_they_do_not_know(tmp_path: Path) -> None:
    data = EnvData.from_dict({"atari_demo_paths": {"X": "x.npz"}})
    assert set(data.atari_demo_paths) == {"X", "PongNoFrameskip-v4", "BreakoutNoFrameskip-v4"}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"task": "cheetah-run"}, "task_name"),
        ({"benchmark": "atari"}, "did you mean `benchmark_name`"),
        ({"atari_env_id": "x"}, "it is called `task_name` now"),
        ({"dm_control_frame_stack": "3"}, "expected int"),
        ({"procgen_frame_stack": True}, "expected int"),
        ({"dm_control_full_env_names": {"a": 1}}, "expected dict"),
    ]
    for values, words in cases:
        with pytest.raises(gm.ConfigError, match=words):
            EnvConfig.from_dict(values)
    path = tmp_path / "demos.toml"
    path.write_text('[env_cfg]\ntask_name = "cheetah-run"\n[env_data]\nwds_n_trajs = 5\n')
    groups = load_config(path)
    assert (groups.env_cfg.task_name, groups.env_data.wds_n_trajs, groups.venv_opts.n_envs) == ("cheetah-run", 5, 2)
    path.write_text("[env_cgf]\n")
    with pytest.raises(gm.ConfigError, match="did you mean `env_cfg`"):
        load_config(path)
    path.write_text("[")
    with pytest.raises(gm.ConfigError, match=r"demos\.toml"):
        load_config(path)


def test_what_cannot_be_loaded_says_which_key(tmp_path: Path) -> None:
    for cfg, words in [
        ({"benchmark_name": "procgem"}, "did you mean `procgen`"),
        ({"task_name": "finger-spn"}, "did you mean `finger-spin`"),
        ({}, "no file is called"),
        ({"benchmark_name": "magical", "task_name": "MakeLine-Demo-v0"}, "no file is called"),
    ]:
        with pytest.raises(gm.ConfigError, match=words):
            gm.load_dataset_dict(cfg, {"data_root": str(tmp_path)})
    with pytest.raises(gm.ConfigError, match="frame_stack"):
        gm.load_dataset_dict({"benchmark_name": "atari"}, frame_stack=2)
    with pytest.raises(FileNotFoundError):
        load(tmp_path, "atari", "PongNoFrameskip-v4")
    write_atari(tmp_path / "data/atari/PongNoFrameskip-v4_rollouts_500_ts_100_traj.npz", [3])
    (tmp_path / "procgen").mkdir()
    (tmp_path / "procgen/demo_ninja.pickle").write_bytes(next(tmp_path.glob("data/atari/*.npz")).read_bytes())
    with pytest.raises(gm.FormatError, match=r"a file of demo\.atari"):
        load(tmp_path, "procgen", "ninja")


def test_the_real_demonstration(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data/magical/move-to-region"
    folder.mkdir(parents=True)
    packed = (shared / "data/demos/magical-MoveToRegion.pkl.gz").read_bytes()
    (folder / "demo.pkl.gz").write_bytes(packed)
    data = load(tmp_path, "magical", "MoveToRegion-Demo-v0")
    assert (data["obs"].shape, data["dones"].sum()) == ((40, 12, 96, 96), 1)
    raw = gm.open(folder / "demo.pkl.gz")[0]["obs.ego"]
    np.testing.assert_array_equal(data["obs"][20][9:], area_mean(np.asarray(raw[20]), 96))
