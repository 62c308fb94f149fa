"""`gristmill convert` and `split` of demonstrations, as Python sees what they write: NumPy, webdataset, gristmill."""

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import demo_files
import numpy as np
import pytest
import webdataset
from trees import tree

import gristmill as gm
from gristmill.demos import get_meta_dict
from gristmill.envs import EnvConfig


def binary() -> str:
    """The command, where `cargo` or an installation put it."""
    root = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[1] / "target"))
    built = [path for path in (root / "debug/gristmill", root / "release/gristmill") if path.exists()]
    found = str(max(built, key=lambda path: path.stat().st_mtime)) if built else shutil.which("gristmill")
    if found is None:
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    return found


def run(*words: object) -> Any:
    """What the command says as JSON."""
    done = subprocess.run([binary(), *map(str, words), "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


#: Benchmark, task, options of the command, configuration of the loaders.
NATIVE: dict[str, tuple[str, str]] = {
    "magical": ("MoveToRegion-Demo-v0", "data/magical/move-to-region"),
    "dm_control": ("finger-spin", "data/dm_control"),
    "atari": ("PongNoFrameskip-v4", "data/atari/PongNoFrameskip-v4_rollouts_500_ts_100_traj.npz"),
    "procgen": ("coinrun", "procgen/demo_coinrun.pickle"),
}


def write_native(root: Path) -> None:
    for i in range(3):
        demo_files.write_magical(root / NATIVE["magical"][1] / f"demo-{i}.pkl.gz", [1, 2, 0, 3 + i, 0])
    demo_files.write_dm_control(root / NATIVE["dm_control"][1] / "finger-spin-1.pkl.gz", [4, 2])
    demo_files.write_dm_control(root / NATIVE["dm_control"][1] / "finger-spin-2.pkl.gz", [3])
    demo_files.write_atari(root / NATIVE["atari"][1], [5, 4])
    demo_files.write_procgen(root / NATIVE["procgen"][1], [4, 3])


def check(found: gm.Demos, known: dict[str, Any]) -> None:
    """A shard holds what the loader of native files gives."""
    names = {name for name in found.layout.names if name and name != "frame"}
    assert names == set(known) - {"infos"}
    for name in names:
        column = found.column(name)
        assert column.dtype == known[name].dtype
        np.testing.assert_array_equal(column, known[name])
    if "infos" in known:
        infos = [info for i in range(len(found)) for info in found.extras(i)["infos"]]
        assert [sorted(info) for info in infos] == [sorted(info) for info in known["infos"]]


@pytest.mark.parametrize("benchmark", NATIVE)
@pytest.mark.parametrize("compat", [False, True])
def test_a_shard_holds_what_the_native_files_do(tmp_path: Path, benchmark: str, compat: bool) -> None:
    write_native(tmp_path)
    task, where = NATIVE[benchmark]
    to = tmp_path / "out/demos.tar.zst"
    words = ["convert", tmp_path / where, to, "--benchmark", benchmark, "--task", task]
    done = run(*words, *(["--compat"] if compat else []))
    env_cfg = {"benchmark_name": benchmark, "task_name": task}
    known = gm.load_dataset_dict(env_cfg, {"data_root": str(tmp_path)}, compat=compat)
    found = gm.open(to)
    if not compat:
        check(found, known)
        assert (done["trajectories"], done["unended"]) == (len(found), 0)
        assert found.column("dones").sum() == len(found)
    else:
        assert "truncated" not in found.layout.names
        assert found.column("dones").sum() == known["dones"].sum()
        assert set(found.layout.names) - {"frame", ""} == set(known) - {"infos"}
    expected = get_meta_dict(EnvConfig(benchmark_name=benchmark, task_name=task), None, None)
    assert found.metadata["env_cfg"] == expected["env_cfg"]
    assert found.metadata["color_space"] == expected["color_space"]


def test_what_cannot_be_converted_says_what_is_missing(tmp_path: Path) -> None:
    demo_files.write_minecraft(tmp_path / "mc", 4)
    demo_files.write_magical(tmp_path / "m/demo.pkl.gz", [1, 2])
    raw = ["--benchmark", "magical", "--magical-preproc", ""]
    for source, words, says in [
        ("mc/rendered.npz", ["--benchmark", "minecraft", "--task", "Treechop"], "have the frames of the video decoded"),
        ("m", raw, "choose a preprocessor"),
        ("m", ["--benchmark", "magical", "--task", "MakeLine-Demo-v0"], "the files are of `MoveToRegion-Demo-v0`"),
    ]:
        to = tmp_path / "x.tar.zst"
        done = subprocess.run([binary(), "convert", tmp_path / source, to, *words], capture_output=True, text=True)
        assert done.returncode != 0, source
        assert says in done.stderr, done.stderr
        assert not to.exists()
    run("convert", tmp_path / "m", tmp_path / "x.npz", *raw)
    with np.load(tmp_path / "x.npz") as found:
        assert found["obs_ego"].shape == (2, 96, 96, 3)


def test_loaders_find_what_a_configuration_names(tmp_path: Path) -> None:
    write_native(tmp_path)
    config = tmp_path / "demos.toml"
    config.write_text('[env_cfg]\nbenchmark_name = "dm_control"\ndm_control_frame_stack = 2\n')
    refused = subprocess.run(
        [binary(), "convert", tmp_path, tmp_path, "--config", config], capture_output=True, text=True
    )
    assert refused.returncode == 2
    assert "task_name" in refused.stderr
    config.write_text(config.read_text() + 'task_name = "finger-spin"\n')
    run("convert", tmp_path, tmp_path, "--config", config)
    known = gm.load_dataset_dict(gm.demos.load_config(config).env_cfg, {"data_root": str(tmp_path)})
    found = gm.load_wds_datasets([{}], root=tmp_path)
    (dataset,) = found.datasets
    assert dataset.lengths == [4, 2, 3]
    np.testing.assert_array_equal(dataset.column("obs"), known["obs"])
    assert known["obs"].shape[1:] == (6, 8, 8)
    assert found.metadata["action_space"].state["low"].tolist() == [-1.0, -1.0]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["demos.tar", "demos.tgz"])
def test_webdataset_reads_what_is_converted(tmp_path: Path, name: str) -> None:
    write_native(tmp_path)
    to = tmp_path / name
    run("convert", tmp_path / NATIVE["dm_control"][1], to, "--benchmark", "dm_control", "--task", "finger-spin")
    dataset = webdataset.WebDataset(str(to), shardshuffle=False, empty_check=False)
    samples = list(dataset.select(lambda sample: sample["__key__"] != "_metadata").decode())
    demos = gm.open(to)
    assert [sample["__key__"] for sample in samples] == [f"frame_{t:03d}" for t in range(9)]
    for field in ("obs", "next_obs", "acts", "dones", "truncated", "rews"):
        values = np.stack([sample[f"{field}.pickle"] for sample in samples])
        np.testing.assert_array_equal(values, demos.column(field))
        assert values.dtype == demos.column(field).dtype
    assert samples[3]["infos.pickle"]["TimeLimit.truncated"] is True


@pytest.mark.parametrize("level", [0, 6])
def test_numpy_reads_the_dictionary_of_a_shard(tmp_path: Path, level: int) -> None:
    write_native(tmp_path)
    shard, npz = tmp_path / "demos.tar.zst", tmp_path / "demos.npz"
    run("convert", tmp_path / NATIVE["dm_control"][1], shard, "--benchmark", "dm_control", "--task", "finger-spin")
    done = run("convert", shard, npz, "--level", level)
    known = gm.load_dataset_dict(
        {"benchmark_name": "dm_control", "task_name": "finger-spin"}, {"data_root": str(tmp_path)}
    )
    assert (done["to"], done["frames"], done["from"]) == ("npz", 9, "demo.shard")
    with np.load(npz) as found:
        assert set(found.files) == set(known)
        for name in set(known) - {"infos"}:
            assert found[name].dtype == known[name].dtype
            np.testing.assert_array_equal(found[name], known[name])
        with pytest.raises(ValueError, match="allow_pickle"):
            found["infos"]
    check(gm.open(npz), known)
    with np.load(npz, allow_pickle=True) as found:
        for info, expected in zip(found["infos"], known["infos"], strict=True):
            np.testing.assert_array_equal(info["internal_state"], expected["internal_state"])
            assert (info["discount"], info["at"]) == (expected["discount"], expected["at"])


def test_a_part_that_is_drawn_and_sides_that_are_dealt_hold_whole_trajectories(tmp_path: Path) -> None:
    lengths = [3, 1, 4, 1, 5, 9, 2, 6]
    made = demo_files.write_imitation(tmp_path / "final.pkl", lengths)
    shard = tmp_path / "demos.tar.zst"
    run("convert", tmp_path / "final.pkl", shard, "--benchmark", "gymnasium", "--task", "CartPole-v1")
    run("convert", shard, tmp_path / "part.tar", "--n-traj", 3, "--sample", "--seed", 797821)
    run("split", shard, tmp_path / "parts", "--into", "train:1,test:1")

    def held(path: Path) -> list[bytes]:
        demos = gm.open(path)
        return [np.ascontiguousarray(demos[i]["obs"]).tobytes() for i in range(len(demos))]

    known = [trajectory.obs[:-1].tobytes() for trajectory in made]
    assert held(shard) == known
    part = held(tmp_path / "part.tar")
    assert len(part) == 3
    assert set(part) < set(known)
    sides = [held(tmp_path / "parts" / side / "demos.tar.zst") for side in ("train", "test")]
    assert sorted(sides[0] + sides[1]) == sorted(known)
    assert all(sides)


def test_shards_of_some_files_are_made_by_shares(tmp_path: Path) -> None:
    for i in range(5):
        demo_files.write_magical(tmp_path / f"in/demo-{i}.pkl.gz", [1, 2, 0, 3 + i, 0])
    natives = {"benchmark": "magical", "task": "MoveToRegion-Demo-v0", "files_per_shard": 2}
    convert: Any = gm.convert
    whole = convert(tmp_path / "in", tmp_path / "whole", **natives)
    assert [Path(path).name for path in whole.output] == [f"demos-{i:06}.tar.zst" for i in range(3)]
    for number in (1, 2):
        made = convert(tmp_path / "in", tmp_path / "out", share=(number, 2), **natives)
        assert made.share.share == f"{number}/2"
    with pytest.raises(gm.ConfigError, match="task"):
        convert(tmp_path / "in", tmp_path / "out", share=(1, 2), **{**natives, "task": "MoveToRegion-Demo-v1"})
    done = gm.commit(tmp_path / "out")
    assert (done.trajectories, done.frames, done.share) == (5, whole.frames, None)
    assert tree(tmp_path / "out") == tree(tmp_path / "whole")
    convert(tmp_path / "in", tmp_path / "one.tar", benchmark="magical", task="MoveToRegion-Demo-v0")
    one, several = gm.open(tmp_path / "one.tar"), gm.open(tmp_path / "out")
    np.testing.assert_array_equal(one.column("obs"), several.column("obs"))
