"""`gristmill.convert` of games and demonstrations: the bytes of the command, its resumes, and what it refuses."""

import signal
from pathlib import Path
from typing import Any

import demo_files
import numpy as np
import pytest
from generated_games import write_games
from test_convert_demos import run

import gristmill as gm


def bytes_of(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def test_games_come_as_the_command_makes_them_and_resume(games: Path, tmp_path: Path) -> None:
    run("convert", games, tmp_path / "command", "--version", "7", "--container", "tar", "--games-per-tar", "5")
    options: dict[str, Any] = {"version": 7, "container": "tar", "games_per_tar": 5, "threads": 2}
    planned = gm.convert(games, tmp_path / "out", **options, dry_run=True)
    assert (planned.dry_run, (tmp_path / "out").exists()) == (True, False)
    done = gm.convert(games, tmp_path / "out", **options)
    assert isinstance(done, gm.ConvertedGames)
    assert (done.files, done.chunks, done.frames_out, done.damaged) == (12, 12, 252, {})
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "command")
    again = gm.convert(games, tmp_path / "out", **options)
    assert (again.resumed, again.chunks) == (12, 12)


def test_a_container_alone_keeps_the_bytes_of_games(games: Path, tmp_path: Path) -> None:
    gm.convert(games, tmp_path / "tars", container="tar")
    done = gm.convert(tmp_path / "tars", tmp_path / "loose", container="loose")
    assert (done.kept, done.changed) == (12, 0)
    found = {path.name: path.read_bytes() for path in (tmp_path / "loose").rglob("*.gz")}
    assert found == {path.name: path.read_bytes() for path in games.glob("*.gz")}


def test_a_damaged_game_is_counted_and_the_rest_converted(games: Path, tmp_path: Path) -> None:
    game = games / "training.3.gz"
    game.write_bytes(game.read_bytes()[:-100])
    done = gm.convert(games, tmp_path / "out", version=7)
    assert (done.chunks, sum(done.damaged.values())) == (12, 1)
    assert any("training.3.gz" in fault for fault in done.faults)


def test_demonstrations_come_as_the_command_makes_them(tmp_path: Path) -> None:
    native, shard = tmp_path / "final.pkl", tmp_path / "demos.tar.zst"
    demo_files.write_imitation(native, [3, 4, 5])
    run("convert", native, tmp_path / "command-shard.tar.zst", "--benchmark", "gymnasium", "--task", "CartPole-v1")
    made = gm.convert(native, shard, benchmark="gymnasium", task="CartPole-v1")
    assert (made.from_form, made.frames) == ("demo.imitation", 12)
    assert shard.read_bytes() == (tmp_path / "command-shard.tar.zst").read_bytes()
    words = ["--n-traj", "2", "--sample", "--seed", "5", "--members", "npy"]
    run("convert", shard, tmp_path / "command.tar.zst", *words)
    done = gm.convert(shard, tmp_path / "out.tar.zst", n_traj=2, sample=True, seed=5, members="npy")
    assert isinstance(done, gm.ConvertedDemos)
    assert (done.read, done.trajectories, done.to) == (3, 2, "shards")
    assert (tmp_path / "out.tar.zst").read_bytes() == (tmp_path / "command.tar.zst").read_bytes()
    arrays = gm.convert(shard, tmp_path / "out.npz", overwrite=True)
    assert (arrays.frames, arrays.to) == (12, "npz")
    assert np.load(tmp_path / "out.npz")["dones"].sum() == 3


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "nothing to convert to"),
        ({"to": "aligned48"}, "holds games of chess"),
        ({"version": 8}, "expected 6 or 7"),
        ({"container": "zip"}, "expected 'loose' or 'tar'"),
        ({"container": "loose", "games_per_tar": 3}, "goes with container='tar'"),
        ({"container": "tar", "st_q_theta": 0.5}, "goes with version="),
        ({"version": 7, "st_q_theta": 1.5}, "expected 0 to 1"),
        ({"version": 7, "threads": 0}, "whole number, 1 to"),
        ({"version": 7, "threads": "2"}, "whole number, 1 to"),
        ({"version": 7, "join": ["x"]}, "`join`: for rows of 2048"),
        ({"version": 7, "overwrite": True}, "games go to a new folder"),
        ({"version": 7, "n_traj": 3}, "`version`: for games of chess"),
    ],
)
def test_options_that_do_not_fit_are_refused(games: Path, tmp_path: Path, options: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says):
        gm.convert(games, tmp_path / "out", **options)
    assert not (tmp_path / "out").exists()


def test_unknown_words_and_paths_are_named(games: Path, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match="did you mean 'version'"):
        gm.convert(games, tmp_path / "out", versoin=7)  # type: ignore[call-overload]
    with pytest.raises(FileNotFoundError, match="absent"):
        gm.convert(tmp_path / "absent", tmp_path / "out", version=7)


def test_an_interrupted_conversion_raises_and_resumes(tmp_path: Path) -> None:
    games, out = write_games(tmp_path / "games", 300), tmp_path / "out"

    raised: list[None] = []

    def interrupt(*_: object) -> None:
        if out.exists() and not raised:
            raised.append(None)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
        with pytest.raises(KeyboardInterrupt):
            gm.convert(games, out, version=7, threads=1)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    done = gm.convert(games, out, version=7)
    assert (done.files_done, done.chunks) == (300, 300)


@pytest.mark.parametrize(
    "options",
    [
        {"n_traj": 0},
        {"n_traj": -1},
        {"n_traj": "2"},
        {"frame_stack": 0},
        {"frame_stack": 65},
        {"max_frames": 0},
        {"level": 99},
        {"n_actions": 0},
        {"n_actions": 2, "action_bounds": (0, 1)},
        {"task": 5},
        {"action_bounds": (1.0,)},
        {"obs_bounds": (2.0, 1.0)},
        {"seed": -1},
        {"sample": True},
        {"members": "zip"},
        {"color_space": "cmyk"},
        {"benchmark": "pong"},
    ],
)
def test_numbers_out_of_range_are_refused(tmp_path: Path, options: dict[str, Any]) -> None:
    native = tmp_path / "final.pkl"
    demo_files.write_imitation(native, [3, 4])
    words: dict[str, Any] = {"benchmark": "gymnasium", "task": "CartPole-v1", **options}
    with pytest.raises(gm.ConfigError, match=next(iter(options))):
        gm.convert(native, tmp_path / "out.tar", **words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["final.pkl"]
