"""Data of one's own: arrays, and files of every kind by real NumPy, h5py and pyarrow, become demonstrations."""

import gzip
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm

STEPS = 12
ENDS = [4, 9, 12]


def arrays(seed: int = 0) -> dict[str, Any]:
    """Three episodes of 4, 5 and 3 steps; the second was cut."""
    rng = np.random.default_rng(seed)
    terminals, timeouts = np.zeros(STEPS, bool), np.zeros(STEPS, bool)
    terminals[[3, 11]], timeouts[8] = True, True
    return {
        "observations": rng.normal(size=(STEPS, 3)).astype(np.float32),
        "actions": rng.integers(0, 4, STEPS),
        "rewards": rng.normal(size=STEPS),
        "terminals": terminals,
        "timeouts": timeouts,
    }


def written(folder: Path, kind: str) -> Path:
    """The arrays in a file or folder of one kind."""
    found = arrays()
    path = folder / f"mine.{kind}"
    if kind == "npz":
        np.savez_compressed(path, **found)
    elif kind == "pkl":
        path.write_bytes(pickle.dumps(found))
    elif kind == "pkl.gz":
        path.write_bytes(gzip.compress(pickle.dumps(found)))
    elif kind == "npy":
        path.mkdir()
        for name, array in found.items():
            np.save(path / f"{name}.npy", array)
    elif kind == "hdf5":
        h5py = pytest.importorskip("h5py")
        with h5py.File(path, "w") as file:
            for name, array in found.items():
                file.create_dataset(name, data=array, compression="gzip")
            file["infos/qpos"] = np.arange(STEPS * 2.0).reshape(STEPS, 2)
            file["metadata/algorithm"] = "SAC"
    else:
        pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {name: pa.array(list(array) if array.ndim > 1 else array) for name, array in found.items()}
        parquet.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize("kind", ["npz", "pkl", "pkl.gz", "npy", "hdf5", "parquet"])
def test_usual_names_are_known_in_every_kind_of_file(tmp_path: Path, kind: str) -> None:
    demos, expected = gm.open(written(tmp_path, kind)), arrays()
    assert demos.lengths == [4, 5, 3]
    assert [demos.truncated(i) for i in range(3)] == [False, True, False]
    np.testing.assert_array_equal(demos[1]["obs"], expected["observations"][4:9])
    np.testing.assert_array_equal(demos.column("acts"), expected["actions"])
    np.testing.assert_array_equal(demos.column("rews"), expected["rewards"])
    np.testing.assert_array_equal(np.flatnonzero(demos.column("dones")), [3, 8, 11])
    assert demos[1]["truncated"].tolist() == [False] * 4 + [True]
    assert demos.metadata["fields"]["obs"] == "observations"
    if kind == "hdf5":
        np.testing.assert_array_equal(demos.column("infos.qpos"), np.arange(24.0).reshape(12, 2))
        assert demos.metadata["left_out"] == {"metadata/algorithm": "unsupported"}
    batch = next(iter(gm.StepLoader([demos], gm.pairs.BC, batch_size=4, seed=1)))
    assert batch["obs"].shape == (4, 3)


@pytest.mark.parametrize("kind", ["npz", "pkl", "npy", "hdf5", "parquet"])
def test_a_pack_of_any_of_them_has_every_bit(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    done = gm.pack(path, tmp_path / "pack")
    assert (done.runs, done.rows, done.skipped) == (3, STEPS, [])
    demos, pack = gm.open(path), gm.open(tmp_path / "pack")
    assert isinstance(pack, gm.Trajectories)
    assert pack.lengths == demos.lengths
    assert [pack.truncated(i) for i in range(3)] == [False, True, False]
    for name in ("obs", "acts", "rews", "dones", "truncated"):
        column = pack.column(name)
        assert column.dtype == demos.column(name).dtype
        np.testing.assert_array_equal(column, demos.column(name))
    assert [one.name for one in tmp_path.iterdir()] != [], "and nothing is left beside it"
    assert not [one for one in tmp_path.iterdir() if one.name.startswith(".")]


def test_arrays_are_demonstrations_and_packs() -> None:
    found = arrays()
    demos = gm.demos.from_arrays(
        [4, 5, 3], {"obs": found["observations"], "acts": found["actions"]}, truncated=[False, True, False]
    )
    assert isinstance(demos, gm.Demos)
    assert demos.lengths == [4, 5, 3]
    assert demos.truncated(1)
    assert not demos.truncated(2)
    assert np.shares_memory(demos.column("obs"), found["observations"])
    again = pickle.loads(pickle.dumps(demos))
    np.testing.assert_array_equal(again[2], demos[2])


def test_fields_without_actions_are_packed_too(tmp_path: Path) -> None:
    pictures = np.arange(7 * 2 * 2, dtype=np.uint8).reshape(7, 2, 2)
    demos = gm.demos.from_arrays(np.array([3, 4]), {"image": pictures, "label": np.arange(7.0)})
    gm.pack(demos, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    np.testing.assert_array_equal(pack.column("image"), pictures)
    np.testing.assert_array_equal(pack.games[1]["label"], [3, 4, 5, 6])


def test_whatever_open_gives_can_be_packed(tmp_path: Path) -> None:
    found = arrays()
    fields = {"obs": found["observations"], "acts": found["actions"], "rews": found["rewards"]}
    gm.pack(gm.demos.from_arrays([4, 5, 3], fields), tmp_path / "all")
    pack = gm.open(tmp_path / "all")
    gm.demos.minari.write_shards(tmp_path / "demos.tar", pack)
    sources = {
        "selection": (pack.where("id > 0"), [5, 3]),
        "slice": (gm.demos.from_arrays([4, 5, 3], fields)[1:], [5, 3]),
        "shard": (gm.open(tmp_path / "demos.tar"), [4, 5, 3]),
        "of shard": (gm.open(tmp_path / "demos.tar")[:2], [4, 5]),
        "columns": (gm.pairs.Columns([4, 5, 3], fields), [4, 5, 3]),
        "file": (tmp_path / "demos.tar", [4, 5, 3]),
    }
    for name, (source, lengths) in sources.items():
        gm.pack(source, tmp_path / name)
        made = gm.open(tmp_path / name)
        assert made.lengths == lengths, name
        first = 4 if lengths[0] == 5 else 0
        np.testing.assert_array_equal(made.games[0]["obs"], found["observations"][first : first + lengths[0]])
    with pytest.raises(TypeError, match=r"int cannot be packed; expected a folder, a file, a table of frames, or what"):
        gm.pack(3, tmp_path / "none")
    with pytest.raises(gm.ConfigError, match="fields goes with a path"):
        gm.pack(pack, tmp_path / "none", fields={"obs": "x"})


@pytest.mark.parametrize("kind", ["npz", "pkl", "npy", "hdf5", "parquet"])
def test_other_names_are_told_by_fields(tmp_path: Path, kind: str) -> None:
    path = written(tmp_path, kind)
    demos = gm.open(path, fields={"obs": "observations", "acts": "rewards"})
    assert set(demos.layout.names) - {""} == {"obs", "acts", "terminated", "dones", "truncated"}
    np.testing.assert_array_equal(demos.column("acts"), arrays()["rewards"])
    with pytest.raises(gm.FormatError) as caught:
        gm.open(path, fields={"obs": "observation"})
    message = str(caught.value)
    assert caught.value.kind == "missing"
    for part in (
        "no `observation`",
        "did you mean `observations`",
        "`actions`",
        "--fields",
        "fields={'obs': 'observations'",
    ):
        assert part in message, message


def test_unusual_names_get_the_call_that_takes_them(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    np.savez(path, states=np.zeros((4, 2)), act=np.zeros(4), over=np.array([0, 1, 0, 1]))
    with pytest.raises(gm.FormatError) as caught:
        gm.open(path)
    call = f"gristmill.open({str(path)!r}, fields={{'obs': 'states', 'acts': 'act'}})"
    assert call in str(caught.value)
    assert "`states`, `act`, `over`" in str(caught.value)
    with pytest.raises(gm.FormatError, match=r"nothing says where episodes end .*'dones': 'NAME'"):
        gm.open(path, fields={"obs": "states", "acts": "act"})
    demos = gm.open(path, fields={"obs": "states", "acts": "act", "dones": "over"})
    assert demos.lengths == [2, 2]


def test_ends_by_starts_lengths_and_numbers(tmp_path: Path) -> None:
    steps: dict[str, Any] = {"obs": np.arange(6.0), "actions": np.arange(6)}
    for name, values in {
        "episode_starts": np.array([1, 0, 1, 0, 0, 1], bool),
        "episode_lengths": np.array([2, 3, 1]),
        "episode_index": np.array([7, 7, 3, 3, 3, 9]),
        "dones": np.array([0, 1, 0, 0, 1, 0], np.float32),
    }.items():
        np.savez(tmp_path / f"{name}.npz", **{**steps, name: values})
        demos = gm.open(tmp_path / f"{name}.npz")
        assert demos.lengths == [2, 3, 1], name
        assert demos.truncated(2) == (name == "dones"), "what follows the last end was cut"


def test_robomimic(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "demo.hdf5"
    with h5py.File(path, "w") as file:
        for i, steps in enumerate([2, 3, 1, *[2] * 8]):
            group = file.create_group(f"data/demo_{i}")
            group["actions"] = np.full((steps, 7), i, np.float32)
            group["dones"] = np.ones(steps, np.int64)
            group["obs/eef"] = np.full((steps, 3), i, np.float32)
            group["next_obs/eef"] = np.zeros((steps, 3), np.float32)
        file["mask/train"] = np.array([b"demo_0"])
    demos = gm.open(path)
    assert demos.lengths == [2, 3, 1, *[2] * 8], "a group is an episode, and demo_10 comes last"
    assert [int(demos[i]["acts"][0, 0]) for i in range(11)] == list(range(11))
    np.testing.assert_array_equal(demos[1]["dones"], [False, False, True])
    np.testing.assert_array_equal(demos[1]["stored_dones"], [True, True, True])
    assert {"obs.eef", "next_obs.eef", "acts"} <= set(demos.layout.names)
    some = gm.open(path, fields={"obs": "obs/eef", "acts": "actions"})
    assert set(some.layout.names) - {""} == {"obs", "acts", "dones", "truncated", "stored_dones"}


@pytest.mark.parametrize("kind", ["npz", "pkl", "hdf5", "parquet"])
def test_a_folder_of_one_episode_a_file_is_one_data_set(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / "runs"
    folder.mkdir()
    for i in range(11):
        found: dict[str, Any] = {"observations": np.full((3 + i, 2), float(i)), "actions": np.arange(2 + i)}
        if kind == "parquet":
            found["observations"] = found["observations"][:-1]
            pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
            table = pa.table({name: pa.array(list(array)) for name, array in found.items()})
            parquet.write_table(table, folder / f"run{i}.parquet")
        elif kind == "hdf5":
            with pytest.importorskip("h5py").File(folder / f"run{i}.hdf5", "w") as file:
                for name, array in found.items():
                    file[name] = array
        elif kind == "pkl":
            (folder / f"run{i}.pkl").write_bytes(pickle.dumps(found))
        else:
            np.savez(folder / f"run{i}.npz", **found)
    for opened in (gm.open(folder), gm.open(folder / "run*"), gm.open(folder, columns=tmp_path / "spill")):
        assert opened.lengths == [2 + i for i in range(11)], "in order of number"
        np.testing.assert_array_equal(opened[10]["obs"], np.full((12, 2), 10.0))
        assert ("next_obs" in opened.layout.names) == (kind != "parquet"), "one observation more than actions"
    assert isinstance(gm.open(folder, columns=tmp_path / "spill").column("obs"), np.memmap)
    done = gm.pack(folder, tmp_path / "pack")
    assert done.runs == 11
    assert gm.open(tmp_path / "pack").lengths == gm.open(folder).lengths


def test_lists_of_episodes_in_a_pickle(tmp_path: Path) -> None:
    episodes = [{"observations": np.full((n, 2), n), "actions": np.arange(n), "terminals": np.zeros(n)} for n in (3, 2)]
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(episodes))
    by_field = {name: [episode[name] for episode in episodes] for name in episodes[0]}
    (tmp_path / "b.pkl").write_bytes(pickle.dumps(by_field))
    for name in ("a.pkl", "b.pkl"):
        demos = gm.open(tmp_path / name)
        assert demos.lengths == [3, 2]
        assert demos.truncated(0), "no terminal in its last step"


def test_the_command_takes_them(tmp_path: Path) -> None:
    path = written(tmp_path, "npz")

    def run(*words: object) -> dict[str, Any]:
        command = [sys.executable, "-m", "gristmill", *map(str, words), "--json"]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return dict(json.loads(done.stdout))

    told = run("inspect", path, "--fields", "obs=observations,acts=actions")
    assert (told["chunks"], told["frames"]) == (3, STEPS)
    assert run("verify", path)["checked"] == STEPS
    assert run("stats", path)["demos"]["truncated"] == 1
    assert run("pack", "--input", path, "--output", tmp_path / "pack", "--fields", "obs=observations")["runs"] == 3
    assert run("convert", path, tmp_path / "x.tar.zst")["trajectories"] == 3
    assert gm.open(tmp_path / "x.tar.zst").lengths == [4, 5, 3]
    words = [sys.executable, "-m", "gristmill", "inspect", str(path), "--fields", "obs"]
    failed = subprocess.run(words, capture_output=True, text=True, check=False)
    assert failed.returncode == 2
    assert "expected FIELD=NAME" in failed.stderr
