"""The commands that need Python, run as users run them: words, exit codes, one line of JSON, nothing half done."""

import contextlib
import json
import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from demo_files import write_dm_control
from test_minari import assert_plain

import gristmill as gm


def run(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """Runs a command to its end, which is `code`."""
    here = str(Path(__file__).parent / "made")
    env = {**os.environ, "PYTHONPATH": here, "COLUMNS": "100"}
    line = [sys.executable, "-m", "gristmill", *map(str, words)]
    done = subprocess.run(line, capture_output=True, text=True, env=env, check=False)
    assert done.returncode == code, done
    return done


def told(*words: object) -> Any:
    """The one line of JSON on stdout; nothing is said besides."""
    done = run(*words, "--json")
    assert (done.stdout.count("\n"), done.stderr) == (1, "")
    return json.loads(done.stdout)


@pytest.fixture
def native(tmp_path: Path) -> Path:
    """Three demonstrations of 7, 1 and 5 steps."""
    write_dm_control(tmp_path / "spin-1.pkl.gz", [7, 1, 5])
    return tmp_path / "spin-1.pkl.gz"


def test_native_to_minari_to_shards_and_back(native: Path, tmp_path: Path) -> None:
    minari, shards, again = tmp_path / "mine/spin-v0", tmp_path / "spin.tar.zst", tmp_path / "again-v0"
    plan = told("convert", native, minari, "--to", "minari-hdf5", "--dry-run")
    assert (plan["trajectories"], plan["frames"], plan["dry_run"], minari.exists()) == (3, 13, True, False)
    made = told("convert", native, minari, "--to", "minari-hdf5")
    assert (made["output"], made["dataset_id"], made["from"]) == ([str(minari)], "spin-v0", "demo.dm_control")
    assert any("TimeLimit.truncated" in line for line in made["filled"])
    plan = told("convert", minari, shards, "--dry-run")
    assert (plan["output"], plan["dry_run"], shards.exists()) == ([str(shards)], True, False)
    said = run("convert", minari, shards)
    assert f"{shards} holds 3 trajectories of 13 frames as shards, from demo.minari.hdf5" in said.stdout
    assert "3/3 trajectories" not in said.stderr, "three are too few to be listed one by one"
    run("convert", shards, again, "--to", "minari-arrow", "--dataset-id", "mine/again-v0")
    one, other = gm.open(minari), gm.open(again)
    for i in range(3):
        assert one[i].tobytes() == other[i].tobytes()
        assert_plain(one.extras(i), other.extras(i))
    source = gm.open(native)
    for name in ("obs", "next_obs", "acts", "rews", "truncated"):
        np.testing.assert_array_equal(other[2][name], source[2][name])
    assert "--overwrite" in run("convert", native, minari, "--to", "minari-arrow", code=1).stderr
    assert gm.open(minari).format == "demo.minari.hdf5"
    run("convert", native, minari, "--to", "minari-arrow", "--overwrite")
    assert gm.open(minari).format == "demo.minari.arrow"
    assert "exists" in run("convert", minari, shards, code=1).stderr
    run("convert", minari, shards, "--overwrite", "--max-frames", 2)


def test_random_play(tmp_path: Path) -> None:
    words = ["generate", "random", "--env", "CartPole-v1", "--in-process", "--seed", 3, "--n-timesteps-min", 200]
    plan = told(*words, tmp_path, "--dry-run")
    assert (plan["output"], plan["frames"], list(tmp_path.iterdir())) == ([str(tmp_path / "random.tar.zst")], None, [])
    made = told(*words, tmp_path)
    demos = gm.open(tmp_path)
    assert (made["frames"], made["trajectories"], made["seed"]) == (demos.num_frames, len(demos), 3)
    assert demos.num_frames >= 200
    assert "exists" in run(*words, tmp_path, code=1).stderr
    assert "exists" in run(*words, tmp_path, "--dry-run", code=1).stderr
    (tmp_path / "demos.toml").write_text(
        f'[env_cfg]\nbenchmark_name = "gymnasium"\ntask_name = "picture_envs:Numbered-v0"\n'
        f'[venv_opts]\nn_envs = 3\n[env_data]\ndata_root = "{tmp_path}"\n'
    )
    said = run("generate", "random", "--config", tmp_path / "demos.toml", "--n-timesteps-min", 40)
    (seed,) = [line for line in said.stderr.splitlines() if line.startswith("seed ")]
    assert f"of gymnasium picture_envs:Numbered-v0, {seed}" in said.stdout
    assert "40/40 frames" in said.stderr
    shard = tmp_path / "data/processed/random/gymnasium/picture_envs:Numbered-v0/random.tar.zst"
    assert gm.open(shard).metadata["env_cfg"]["task_name"] == "picture_envs:Numbered-v0"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["convert", "a"], "out"),
        (["mill"], "convert"),
        (["convert", "a", "b"], "say with --to"),
        (["convert", "a", "b", "--to", "minari-hdf5", "--level", "3"], "--level does not go with --to minari-hdf5"),
        (["convert", "a", "b.tar", "--join", "c"], "--join does not go with --to shards"),
        (["convert", "a", "b", "--to", "parquet", "--shard-rows", "0"], "--shard-rows"),
        (["convert", "a", "b", "--overwrit"], "unrecognized arguments|required"),
        (["generate", "random", "out"], "--env ID"),
        (["generate", "random", "--env", "CartPoll-v1", "--in-process"], "did you mean `CartPole-v1`"),
        (["generate", "random", "--env", "x", "--benchmark", "go"], "invalid choice"),
        (["generate", "random", "--env", "x", "--n-timesteps-min", "0"], "--n-timesteps-min"),
    ],
)
def test_words_that_make_no_sense(words: list[str], says: str, tmp_path: Path) -> None:
    done = run(*words, code=2)
    assert done.stdout == ""
    assert any(part in done.stderr for part in says.split("|")), done.stderr


def test_every_command_has_help() -> None:
    for words in [
        [],
        ["convert"],
        ["describe"],
        ["generate"],
        ["generate", "random"],
        ["inspect"],
        ["pack"],
        ["ray", "pack"],
        ["stats"],
        ["verify"],
    ]:
        assert "usage: gristmill" in run(*words, "--help").stdout
    assert "--json" in run("generate", "random", "--help").stdout


def test_data_sets_are_packed_and_looked_at(native: Path, tmp_path: Path) -> None:
    minari, pack = tmp_path / "mine/spin-v0", tmp_path / "pack"
    run("convert", native, minari, "--to", "minari-hdf5")
    looked = told("inspect", minari)
    assert (looked["format"], looked["chunks"], looked["frames"]) == ("demo.minari.hdf5", 3, 13)
    assert "obs" in run("inspect", minari).stdout
    stats = told("stats", minari)["demos"]
    assert (stats["trajectories"], stats["steps"], stats["length"]["max"]) == (3, 13, 7)
    assert told("verify", minari)["ok"]
    assert (told("pack", "--input", minari, "--output", pack, "--dry-run")["runs"], pack.exists()) == (3, False)
    said = run("pack", "--input", minari.parent, "--output", pack).stdout
    assert f"{pack} holds 3 trajectories of 13 steps" in said
    assert told("pack", "--input", minari, "--output", pack, "--append")["known"] == 3
    assert gm.open(pack).lengths == [7, 1, 5]
    run("pack", "--input", native.parent / "pack", "--output", tmp_path / "x", code=2)
    run("pack", "--input", minari, "--output", pack, "--append", "--resume", code=2)
    with h5py.File(minari / "data/main_data.hdf5", "r+") as file:
        del file["episode_1/rewards"]
    found = json.loads(run("verify", minari, "--json", code=1).stdout)
    assert (found["ok"], found["fault_count"]) == (False, 1)
    assert "episode 1: `rewards`: missing" in found["faults"][0]["detail"]
    run("stats", minari, code=1)


def test_what_is_damaged_is_told_with_its_place(native: Path, tmp_path: Path) -> None:
    run("convert", native, tmp_path / "spin-v0", "--to", "minari-hdf5")
    with h5py.File(tmp_path / "spin-v0/data/main_data.hdf5", "r+") as file:
        del file["episode_1/rewards"]
    done = run("convert", tmp_path / "spin-v0", tmp_path / "out.tar.zst", code=1)
    assert "main_data.hdf5: episode 1: `rewards`: missing" in done.stderr
    assert not (tmp_path / "out.tar.zst").exists()
    done = run("convert", tmp_path / "none", tmp_path / "a-v0", "--to", "minari-hdf5", code=1)
    assert "no such file" in done.stderr.lower()


@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
def test_a_stopped_command_leaves_nothing(tmp_path: Path, end: signal.Signals) -> None:
    words = ["generate", "random", "--env", "CartPole-v1", "--in-process", "--n-timesteps-min", "100000000"]
    line = [sys.executable, "-m", "gristmill", *words, "--seed", "1", "--max-frames", "50", str(tmp_path)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as child:
        while not list(tmp_path.glob(".*")):
            assert child.poll() is None
        child.send_signal(end)
        try:
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert (child.returncode, said) == (130, "gristmill: stopped; the output is as it was\n")
    assert list(tmp_path.iterdir()) == []


def test_a_terminal_sees_a_moving_line(native: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    words = ["gristmill", "convert", str(native), str(tmp_path / "spin-v0"), "--to", "minari-arrow"]
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    with subprocess.Popen([sys.executable, "-m", *words], stdout=subprocess.PIPE, stderr=theirs, env=env) as child:
        os.close(theirs)
        seen = b""
        # The end of a terminal is an error on Linux.
        with contextlib.suppress(OSError):
            while part := os.read(ours, 1 << 16):
                seen += part
        assert child.wait() == 0
    os.close(ours)
    assert b"trajectories" in seen
    assert b"3/3" in seen


def test_a_reader_that_goes_away_is_no_failure(native: Path, tmp_path: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    words = ["gristmill", "convert", str(native), str(tmp_path / "spin-v0"), "--to", "minari-hdf5"]
    done = subprocess.run([sys.executable, "-m", *words], stdout=write, stderr=subprocess.PIPE, check=False)
    os.close(write)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False)
    assert len(gm.open(tmp_path / "spin-v0")) == 3
