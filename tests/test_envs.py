"""Environments side by side: what Gymnasium itself brings, and a small one with pictures."""

import subprocess
import sys
from typing import Any

import gymnasium
import numpy as np
import pytest

import gristmill as gm
from gristmill.envs import area, info_of, load_vec_env
from gristmill.envs.seeded import env_seeds

CARTPOLE = {"benchmark_name": "gymnasium", "task_name": "CartPole-v1"}
PICTURES = {"benchmark_name": "gymnasium", "task_name": "picture_envs:Numbered-v0", "gymnasium_frame_stack": 3}
HERE = {"venv_parallel": False, "n_envs": 3}


def played(env_cfg: dict[str, Any], venv_opts: dict[str, Any], steps: int, seed: int = 0) -> list[Any]:
    """First observations, actions, and results of a few steps of random play."""
    venv = load_vec_env(env_cfg, venv_opts, seed=seed)
    try:
        record: list[Any] = [venv.reset()[0]]
        for _ in range(steps):
            actions = venv.action_space.sample()
            record.append((actions, venv.step(actions)))
        return record
    finally:
        venv.close()


def same(a: Any, b: Any) -> bool:
    """Equality at every depth; seconds aside."""
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a if key not in ("t", "_t"))
    if isinstance(a, list | tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, np.ndarray) and a.dtype == object:
        return same(list(a), list(b))
    return bool(np.array_equal(a, b))


def test_every_index_ends_with_its_own_last_observation() -> None:
    """Three environments against three of Gymnasium's own, each stepped alone."""
    first, *steps = played(CARTPOLE, HERE, 120)
    for index, seed in enumerate(env_seeds(0, 3)):
        alone = gymnasium.make("CartPole-v1")
        np.testing.assert_array_equal(first[index], alone.reset(seed=seed)[0])
        ends = length = 0
        for actions, (observations, rewards, terminated, truncated, infos) in steps:
            expected, reward, ended, cut, _ = alone.step(actions[index])
            length += 1
            assert (rewards[index], terminated[index], truncated[index]) == (reward, ended, cut)
            if ended or cut:
                ends += 1
                np.testing.assert_array_equal(infos["final_obs"][index], expected)
                statistics = info_of(infos, index)["episode"]
                assert (statistics["r"], statistics["l"]) == (length, length)
                expected, length = alone.reset()[0], 0
            elif "final_obs" in infos:
                assert infos["final_obs"][index] is None
            np.testing.assert_array_equal(observations[index], expected)
        assert ends > 2


def test_pictures_are_channels_first_and_stacked_within_episodes() -> None:
    first, *steps = played(PICTURES, HERE, 40)
    assert (first.shape, first.dtype) == ((3, 9, 4, 6), np.uint8)
    seen = [[observation[6:]] for observation in first]
    assert not first[:, :6].any()
    ends = {True: 0, False: 0}
    for _, (observations, _, terminated, truncated, infos) in steps:
        for index in range(3):
            ended = bool(terminated[index] or truncated[index])
            shown = infos["final_obs"][index] if ended else observations[index]
            assert shown.dtype == np.uint8
            seen[index].append(shown[6:])
            newest = seen[index][-1]
            assert info_of(infos, index).keys() == ({"episode_number", "episode"} if ended else {"episode_number"})
            # One episode, one step after the other, and before its first frame nothing.
            assert (newest[0] == seen[index][0][0]).all()
            assert (newest[1] == len(seen[index]) - 1).all()
            history = [*[np.zeros_like(newest)] * 2, *seen[index]][-3:]
            np.testing.assert_array_equal(shown, np.concatenate(history))
            if ended:
                ends[bool(terminated[index])] += 1
                assert info_of(infos, index)["episode_number"] == newest[0, 0, 0]
                seen[index] = [observations[index][6:]]
                assert not observations[index][:6].any()
                assert (seen[index][0][0] == newest[0] + 1).all()
    assert min(ends.values()) > 5


def test_processes_play_the_same_games() -> None:
    here = played(PICTURES, HERE, 12, seed=5)
    apart = played(PICTURES, {"venv_parallel": True, "n_envs": 3}, 12, seed=5)
    assert same(here, apart)
    assert not same(here, played(PICTURES, HERE, 12, seed=6))


def test_a_seed_begins_everything_anew() -> None:
    with load_vec_env(CARTPOLE, HERE, seed=4) as venv:
        first, sample = venv.reset()[0], venv.action_space.sample()
        second = venv.reset()[0]
        assert not np.array_equal(first, second)
        np.testing.assert_array_equal(venv.reset(seed=4)[0], first)
        np.testing.assert_array_equal(venv.action_space.sample(), sample)
        np.testing.assert_array_equal(venv.reset()[0], second)
        alone = gymnasium.make("CartPole-v1").reset(seed=11)[0]
        np.testing.assert_array_equal(venv.reset(seed=[9, 10, 11])[0][2], alone)


def test_spaces_are_those_of_the_observations() -> None:
    with load_vec_env(PICTURES, HERE) as venv:
        space = venv.single_observation_space
        assert space == gymnasium.spaces.Box(0, 255, (9, 4, 6), np.uint8)
        assert venv.reset()[0] in venv.observation_space
    with load_vec_env({**CARTPOLE, "gymnasium_frame_stack": 2}, HERE) as venv:
        assert venv.reset()[0].shape == (3, 8)
        assert venv.reset()[0] in venv.observation_space


def test_arguments_reach_the_environment() -> None:
    with load_vec_env({**CARTPOLE, "gymnasium_kwargs": {"max_episode_steps": 2}}, HERE) as venv:
        venv.reset()
        venv.step(np.zeros(3, np.int64))
        assert venv.step(np.zeros(3, np.int64))[3].all()


def test_what_cannot_run_says_why() -> None:
    stored = r"Stored demonstrations are read all the same: .*load_dataset_dict.*load_wds_datasets"
    with pytest.raises(gm.MissingPackageError, match=f"magical-il.*{stored}"):
        load_vec_env({"benchmark_name": "magical", "task_name": "MoveToRegion-Demo-v0"})
    minecraft = {"benchmark_name": "minecraft", "task_name": "NavigateVectorObf-v0"}
    with pytest.raises(gm.ConfigError, match=f"one process only.*minerl.*{stored}"):
        load_vec_env(minecraft)
    with pytest.raises(gm.MissingPackageError, match=f"minerl.*{stored}"):
        load_vec_env(minecraft, {"venv_parallel": False})
    with pytest.raises(gm.ConfigError, match=r"CartPoll-v1.*did you mean `CartPole-v1`"):
        load_vec_env({**CARTPOLE, "task_name": "CartPoll-v1"}, HERE)
    with pytest.raises(gm.ConfigError, match="No module named 'nowhere'"):
        load_vec_env({**CARTPOLE, "task_name": "nowhere:Game-v0"}, HERE)
    with pytest.raises(gm.ConfigError, match=r"does not take \{'lenght': 2\}"):
        load_vec_env({**CARTPOLE, "gymnasium_kwargs": {"lenght": 2}}, HERE)
    with pytest.raises(gm.ConfigError, match="did you mean `venv_parallel`"):
        load_vec_env(CARTPOLE, {"parallel": False})
    with pytest.raises(gm.ConfigError, match="cannot be stacked"):
        load_vec_env({**CARTPOLE, "task_name": "Blackjack-v1", "gymnasium_frame_stack": 2}, HERE)


@pytest.mark.parametrize(
    ("module", "env_cfg", "extra"),
    [
        ("gymnasium", CARTPOLE, "envs"),
        ("ale_py", {"benchmark_name": "atari", "task_name": "PongNoFrameskip-v4"}, "atari"),
        ("dm_control", {}, "dm-control"),
        ("procgen.env", {"benchmark_name": "procgen", "task_name": "coinrun"}, "procgen"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(module: str, env_cfg: dict[str, Any], extra: str) -> None:
    program = (
        f"import sys\nsys.modules[{module!r}] = None\nimport gristmill as gm\n"
        f"try:\n    gm.envs.load_vec_env({env_cfg!r})\n"
        "except gm.MissingPackageError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"`pip install gristmill[{extra}]`" in done.stdout, done.stdout + done.stderr


def test_pictures_shrink_by_area_with_halves_to_even() -> None:
    tile = np.array([[0, 1, 2, 3], [0, 1, 1, 2]], np.uint8)
    # Means 0.5 and 2 of squares; 1.5 and 2.5 would be even at 2.
    np.testing.assert_array_equal(area.shrink(tile, 1, 2), [[0, 2]])
    np.testing.assert_array_equal(area.shrink(np.array([[1, 2], [1, 2]], np.uint8), 1, 1), [[2]])
    np.testing.assert_array_equal(area.shrink(np.array([[2, 3], [2, 3]], np.uint8), 1, 1), [[2]])
    # Three columns on two: each takes one whole and half of the middle one.
    np.testing.assert_array_equal(area.shrink(np.array([[90, 30, 0]], np.uint8), 1, 2), [[70, 10]])
    with pytest.raises(ValueError, match="smaller"):
        area.shrink(tile, 4, 4)
    rgb = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [255, 255, 255], [7, 8, 9]], np.uint8)
    np.testing.assert_array_equal(area.gray(rgb), [76, 150, 29, 255, 8])
