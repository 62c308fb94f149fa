"""Atari, dm_control and Procgen as they are, where `make test-envs` has installed them."""

import os
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import gristmill as gm
from gristmill import safe_pickle
from gristmill.envs import area, info_of, load_vec_env
from gristmill.envs.seeded import env_seeds

# What these packages warn about is theirs to mend.
pytestmark = pytest.mark.filterwarnings("default")

ATARI = {"benchmark_name": "atari", "task_name": "BreakoutNoFrameskip-v4"}
REACHER = {"benchmark_name": "dm_control", "task_name": "reacher-easy"}
PROCGEN = {"benchmark_name": "procgen", "task_name": "coinrun"}


def wanted(module: str) -> Any:
    """The module; the test is skipped where it is not installed."""
    return pytest.importorskip(module, reason=f"skipped: no {module}; `make test-envs` installs it")


def play(
    env_cfg: dict[str, Any], steps: int, *, parallel: bool = False, n_envs: int = 2, seed: int = 0
) -> Iterator[tuple[npt.NDArray[Any], Any, Any, Any, Any, dict[str, Any]]]:
    """Actions and results of random play; the first has only observations."""
    with load_vec_env(env_cfg, {"venv_parallel": parallel, "n_envs": n_envs}, seed=seed) as venv:
        observations, infos = venv.reset()
        assert observations in venv.observation_space
        nothing = np.zeros(n_envs, np.bool_)
        yield np.empty(0), observations, np.zeros(n_envs), nothing, nothing, infos
        for _ in range(steps):
            actions = venv.action_space.sample()
            yield actions, *venv.step(actions)


def assert_replays(env_cfg: dict[str, Any], steps: int, *, parallel: bool) -> None:
    """One seed gives the same games again, in other processes too."""
    first = play(env_cfg, steps)
    for mine, again in zip(first, play(env_cfg, steps, parallel=parallel), strict=True):
        for one, other in zip(mine[:5], again[:5], strict=True):
            np.testing.assert_array_equal(one, other)
        for index in range(2):
            if "final_obs" in mine[5] and mine[5]["final_obs"][index] is not None:
                np.testing.assert_array_equal(mine[5]["final_obs"][index], again[5]["final_obs"][index])
    assert not np.array_equal(next(play(env_cfg, 0, seed=1))[1], next(play(env_cfg, 0))[1])


def assert_unbroken(env_cfg: dict[str, Any], steps: int, channels: int) -> int:
    """Stacks follow one another within episodes, up to the last observation, and start again; counts the ends."""
    ends = 0
    before: Any = None
    for _, observations, _, terminated, truncated, infos in play(env_cfg, steps, n_envs=3):
        for index in range(3):
            ended = terminated[index] or truncated[index]
            if before is not None:
                shown = infos["final_obs"][index] if ended else observations[index]
                assert shown.dtype == np.uint8
                np.testing.assert_array_equal(shown[:-channels], before[index][channels:])
            if ended or before is None:
                ends += before is not None
                assert not observations[index][:-channels].any()
                assert observations[index][-channels:].any()
        before = observations
    return ends


def test_gray_and_area_are_those_of_opencv() -> None:
    cv2 = wanted("cv2")
    rng = np.random.default_rng(0)
    for shape in [(210, 160), (250, 160), (96, 84), (85, 299)]:
        for size in (1, 7):
            blocks = rng.integers(0, 256, (shape[0] // size + 1, shape[1] // size + 1, 3), dtype=np.uint8)
            rgb = np.ascontiguousarray(blocks.repeat(size, 0).repeat(size, 1)[: shape[0], : shape[1]])
            gray = area.gray(rgb)
            np.testing.assert_array_equal(gray, cv2.cvtColor(rgb, cv2.COLOR_RGB2GRAY))
            smaller = cv2.resize(gray, (84, 84), interpolation=cv2.INTER_AREA)
            np.testing.assert_array_equal(area.shrink(gray, 84, 84), smaller)
            coarse = cv2.resize(gray, (42, 21), interpolation=cv2.INTER_AREA)
            np.testing.assert_array_equal(area.shrink(gray, 21, 42), coarse)


def test_atari_ends_with_each_life_and_shows_its_last_frame() -> None:
    wanted("ale_py")
    assert assert_unbroken(ATARI, 160, 1) > 9
    lives = [5, 5]
    games = 0
    for _, _, rewards, terminated, _, infos in play(ATARI, 200):
        assert set(rewards) <= {-1.0, 0.0, 1.0}
        for index in range(2):
            info = info_of(infos, index)
            assert bool(terminated[index]) == (info["lives"] < lives[index])
            lives[index] = info["lives"] or 5
            if "episode" in info:
                assert info["lives"] == 0
                assert info["episode"]["l"] > 100
                games += 1
    assert games > 1


def test_atari_is_what_the_game_itself_shows() -> None:
    """One environment against the bare game, stepped frame by frame."""
    wanted("ale_py")
    import gymnasium

    config = {"benchmark_name": "atari", "task_name": "PongNoFrameskip-v4"}
    game = gymnasium.make("PongNoFrameskip-v4")
    game.reset(seed=env_seeds(0, 1)[0])
    for _ in range(int(game.unwrapped.np_random.integers(1, 31))):
        game.step(0)
    history = [np.zeros((84, 84), np.uint8)] * 3
    for actions, observations, *_ in play(config, 20, n_envs=1):
        fire = 1
        frames = [game.step(int(actions[0]) if actions.size else fire)[0] for _ in range(4)]
        history = [*history[-3:], area.shrink(area.gray(np.maximum(frames[2], frames[3])), 84, 84)]
        np.testing.assert_array_equal(observations[0], np.stack(history))
    game.close()
    shapes = {next(play({**ATARI, "task_name": name}, 0))[1].shape for name in ("ALE/Pong-v5", "ALE/Freeway-v5")}
    assert shapes == {(2, 4, 84, 84)}


def test_atari_looks_as_it_was_recorded(shared: Path) -> None:
    """Walls and bricks of a real recording, to the bit. It is called Pong, and shows Breakout."""
    zstandard = wanted("zstandard")
    wanted("ale_py")
    shard = shared / "data" / "demos" / "pong.tar.zst"
    with zstandard.open(shard, "rb") as plain, tarfile.open(fileobj=plain, mode="r|") as tar:
        for member in tar:
            if member.name == "frame_010.obs.pickle":
                file = tar.extractfile(member)
                assert file is not None
                recorded = safe_pickle.loads(file.read())
                break
    *_, (_, observations, *_) = play(ATARI, 10)
    untouched = np.r_[4:60]
    bricks = np.r_[20:38]
    np.testing.assert_array_equal(observations[0][:, bricks], recorded[:, bricks])
    assert (observations[0][:, untouched] != recorded[:, untouched]).mean() < 0.002


def test_atari_replays() -> None:
    wanted("ale_py")
    assert_replays(ATARI, 60, parallel=True)
    with pytest.raises(gm.ConfigError, match="did you mean"):
        load_vec_env({**ATARI, "task_name": "PongNoFrameskip-v5"}, {"venv_parallel": False})


def test_dm_control_draws_and_is_cut_after_its_steps() -> None:
    wanted("dm_control")
    config = {**REACHER, "dm_control_frame_stack": 2}
    before: Any = None
    states: list[npt.NDArray[np.float64]] = []
    for number, step in enumerate(play(config, 126)):
        _, observations, rewards, terminated, truncated, infos = step
        assert (observations.shape, observations.dtype) == ((2, 6, 100, 100), np.dtype(np.uint8))
        assert not terminated.any()
        assert truncated.all() == (number == 125)
        assert ((rewards >= 0) & (rewards <= 8)).all()
        if number:
            info = info_of(infos, 0)
            assert (info["discount"], info["internal_state"].dtype) == (1.0, np.dtype(np.float64))
            states.append(info["internal_state"])
        if number == 125:
            assert info["episode"]["l"] == 125
            np.testing.assert_array_equal(infos["final_obs"][1][:3], before[1][3:])
            assert not np.array_equal(infos["final_obs"][1][3:], observations[1][3:])
            assert not observations[1][:3].any()
        before = observations
    assert len({state.tobytes() for state in states}) == len(states)


def test_dm_control_replays_its_physics() -> None:
    """Pictures, rewards and states are those of the suite itself under the same controls."""
    suite = wanted("dm_control.suite")
    assert_replays(REACHER, 3, parallel=True)
    task = suite.load("cheetah", "run", task_kwargs={"random": env_seeds(0, 1)[0]})
    task.reset()
    cheetah = {"task_name": "cheetah-run", "dm_control_frame_stack": 1}
    for actions, observations, rewards, _, _, infos in play(cheetah, 3, n_envs=1):
        if actions.size:
            np.testing.assert_array_equal(info_of(infos, 0)["internal_state"], task.physics.get_state())
            assert rewards[0] == pytest.approx(sum(task.step(actions[0]).reward for _ in range(4)))
        picture = task.physics.render(100, 100, camera_id=0)
        np.testing.assert_array_equal(observations[0], np.moveaxis(picture, -1, 0))
    task.close()


@pytest.mark.parametrize(
    "name", ["finger-spin", "cheetah-run", "walker-walk", "cartpole-swingup", "reacher-easy", "ball-in-cup-catch"]
)
def test_every_task_of_dm_control_begins(name: str) -> None:
    wanted("dm_control")
    *_, last = play({"task_name": name}, 1)
    assert last[1].shape == (2, 9, 100, 100)
    assert last[1][:, 3:].any()


def test_dm_control_refuses_what_it_has_not(tmp_path: Path) -> None:
    wanted("dm_control")
    with pytest.raises(gm.ConfigError, match=r"cheeta-run.*did you mean `cheetah-run`"):
        load_vec_env({"task_name": "cheeta-run"}, {"venv_parallel": False})
    named = {"task_name": "mine", "dm_control_full_env_names": {"mine": "DMC-Ball-In-Cup-Catch-v0"}}
    with load_vec_env(named, {"venv_parallel": False, "n_envs": 1}) as venv:
        assert venv.single_action_space.shape == (2,)
    program = "import gristmill as gm\ngm.envs.load_vec_env({}, {'venv_parallel': False}).reset()\n"
    environment = {**os.environ, "MUJOCO_GL": "osmesa", "PYOPENGL_PLATFORM": "osmesa", "LD_LIBRARY_PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    if done.returncode == 0:
        pytest.skip("skipped: OSMesa is installed here, so drawing with it does not fail")
    assert "MissingPackageError: dm_control cannot draw with MUJOCO_GL=osmesa" in done.stderr, done.stderr


def test_procgen_keeps_levels_apart_for_every_index() -> None:
    wanted("procgen")
    ends = 0
    before: Any = None
    lengths = np.zeros(3, np.int64)
    for _, observations, rewards, terminated, truncated, infos in play(
        {**PROCGEN, "task_name": "bigfish"}, 400, n_envs=3
    ):
        assert not truncated.any()
        lengths += before is not None
        for index in range(3):
            info = info_of(infos, index)
            assert {"level_seed", "prev_level_seed", "prev_level_complete"} <= info.keys()
            if before is None or terminated[index]:
                assert not observations[index][:-3].any()
            else:
                np.testing.assert_array_equal(observations[index][:-3], before[index][3:])
            if terminated[index]:
                ends += 1
                final = infos["final_obs"][index]
                np.testing.assert_array_equal(final, np.concatenate([before[index][3:], before[index][-3:]]))
                assert info["final_frame_repeated"]
                assert info["episode"]["l"] == lengths[index]
                assert rewards[index] <= info["episode"]["r"]
                lengths[index] = 0
        before = observations
    assert ends > 2


def test_procgen_replays() -> None:
    wanted("procgen")
    assert next(play(PROCGEN, 0))[1].shape == (2, 12, 64, 64)
    assert_replays(PROCGEN, 50, parallel=True)
    with load_vec_env(PROCGEN, {"n_envs": 2}, seed=3) as venv:
        first = venv.reset()[0]
        assert not np.array_equal(venv.reset()[0], first)
        np.testing.assert_array_equal(venv.reset(seed=3)[0], first)
    with pytest.raises(gm.ConfigError, match=r"coinrum.*did you mean `coinrun`"):
        load_vec_env({**PROCGEN, "task_name": "coinrum"})


@pytest.mark.parametrize(
    ("module", "env_cfg", "least"),
    [
        ("ale_py", ATARI, 300),
        ("dm_control", {**REACHER, "dm_control_frame_stack": 1}, 300),
        ("procgen.env", PROCGEN, 600),
    ],
)
def test_random_play_is_kept_with_the_true_last_picture(
    module: str, env_cfg: dict[str, Any], least: int, tmp_path: Path
) -> None:
    wanted(module)
    venv_opts = {"venv_parallel": False, "n_envs": 3}
    done = gm.demos.collect_random(tmp_path, env_cfg, venv_opts, n_timesteps_min=least, seed=2)
    demos = gm.open(tmp_path)
    assert (demos.num_frames, len(demos)) == (done.steps, done.episodes)
    assert done.steps >= least
    last = []
    for _, _, _, terminated, truncated, infos in play(env_cfg, done.steps, n_envs=3, seed=2):
        last += [infos["final_obs"][i] for i in range(3) if terminated[i] or truncated[i]]
    for i, episode in enumerate(demos):
        np.testing.assert_array_equal(episode["next_obs"][:-1], episode["obs"][1:])
        assert any(np.array_equal(episode["next_obs"][-1], picture) for picture in last)
        repeated = [info.get("final_frame_repeated", False) for info in demos.extras(i)["infos"]]
        assert repeated == [False] * (len(episode) - 1) + [module == "procgen.env"]
