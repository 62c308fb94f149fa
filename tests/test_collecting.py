"""Random play in real environments: whole episodes, their true ends for every index, reproducible, readable by all."""

from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
import webdataset
from gymnasium.vector.utils import batch_space

import gristmill as gm
from gristmill.demos import collect_random
from gristmill.envs.seeded import env_seeds

CARTPOLE = {"benchmark_name": "gymnasium", "task_name": "CartPole-v1", "gymnasium_kwargs": {"max_episode_steps": 30}}
PICTURES = {"benchmark_name": "gymnasium", "task_name": "picture_envs:Numbered-v0", "gymnasium_frame_stack": 2}
HERE = {"venv_parallel": False, "n_envs": 3}


def played_alone(seed: int, steps_min: int) -> list[dict[str, Any]]:
    """What three of Gymnasium's own CartPoles give, each stepped by itself, with the same actions."""
    envs = [gymnasium.make("CartPole-v1", max_episode_steps=30) for _ in range(3)]
    actions = batch_space(envs[0].action_space, 3)
    actions.seed(seed)
    seen = [env.reset(seed=s)[0] for env, s in zip(envs, env_seeds(seed, 3), strict=True)]
    episodes: list[list[Any]] = [[], [], []]
    current: list[int | None] = [0, 1, 2]
    done = 0
    while any(number is not None for number in current):
        chosen, ended = actions.sample(), []
        for i, env in enumerate(envs):
            then, reward, terminated, truncated, _ = env.step(chosen[i])
            number = current[i]
            if number is not None:
                row = (seen[i], then, chosen[i], reward, terminated or truncated, truncated and not terminated)
                episodes[number].append(row)
            seen[i] = then
            if terminated or truncated:
                seen[i] = env.reset()[0]
                if number is not None:
                    done += len(episodes[number])
                    current[i] = None
                    ended.append(i)
        for i in ended if done < steps_min else []:
            current[i] = len(episodes)
            episodes.append([])
    names = ("obs", "next_obs", "acts", "rews", "dones", "truncated")
    return [dict(zip(names, zip(*rows, strict=True), strict=True)) for rows in episodes]


def test_every_step_of_every_index_is_the_real_one(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    done = collect_random(
        tmp_path / "a.tar.zst",
        CARTPOLE,
        HERE,
        n_timesteps_min=600,
        seed=4,
        progress=lambda *at: told.append(at),
    )
    expected = played_alone(4, 600)
    demos = gm.open(tmp_path / "a.tar.zst")
    assert (done.episodes, done.steps, done.seed) == (len(demos), demos.num_frames, 4)
    assert len(demos) == len(expected) > 20
    assert 600 <= demos.num_frames < 600 + 3 * 30
    assert told[-1] == (600, 600)
    for episode, known in zip(demos, expected, strict=True):
        for name, values in known.items():
            np.testing.assert_array_equal(episode[name], np.array(values))
        assert (episode["dones"].dtype, episode["truncated"].dtype) == (np.bool_, np.bool_)
        assert episode["dones"].tolist() == [False] * (len(episode) - 1) + [True]
        assert episode["truncated"][-1] == (len(episode) == 30)
    assert {bool(episode["truncated"][-1]) for episode in demos} == {True, False}
    last = demos.extras(0)["infos"][-1]["episode"]
    assert (last["r"], last["l"], "t" in last) == (len(demos[0]), len(demos[0]), False)


def test_no_episode_is_left_out_and_its_last_picture_is_its_own(tmp_path: Path) -> None:
    """Each pixel says whose it is: channel 0 the episode, 1 the step. Short and long ones follow in a known order."""
    collect_random(tmp_path, PICTURES, HERE, n_timesteps_min=100, seed=7)
    demos = gm.open(tmp_path)
    assert demos.metadata["observation_space"].state["shape"] == (6, 4, 6)
    of_seed: dict[int, list[int]] = {}
    bases = env_seeds(7, 3)
    for i, episode in enumerate(demos):
        number = int(episode["obs"][0, 3, 0, 0])
        assert (episode["next_obs"][:, 3] == number).all(), "not a picture of the next episode"
        assert episode["obs"][:, 4, 0, 0].tolist() == list(range(len(episode)))
        assert episode["next_obs"][:, 4, 0, 0].tolist() == list(range(1, len(episode) + 1))
        assert not episode["obs"][0, :3].any(), "nothing of the episode before is in the stack"
        assert episode["truncated"][-1] == (number % 2 == 1)
        base = [b for b in bases if 1 + (b + number) % 4 == len(episode) and number == len(of_seed.get(b, [])) + 1]
        assert base, (i, number, len(episode))
        of_seed.setdefault(base[0], []).append(number)
        assert [info["episode_number"] for info in demos.extras(i)["infos"]] == [number] * len(episode)
    assert demos.num_frames >= 100
    starts = {base: numbers == list(range(1, len(numbers) + 1)) for base, numbers in of_seed.items()}
    assert starts == dict.fromkeys(bases, True)


def test_a_seed_gives_the_same_bytes_in_one_process_or_many(tmp_path: Path) -> None:
    def collected(name: str, seed: int, parallel: bool) -> bytes:
        opts = {"venv_parallel": parallel, "n_envs": 2}
        done = collect_random(tmp_path / f"{name}.tar.zst", PICTURES, opts, n_timesteps_min=40, seed=seed)
        return done.paths[0].read_bytes()

    here = collected("here", 5, parallel=False)
    assert here == collected("apart", 5, parallel=True)
    assert here != collected("other", 6, parallel=False)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_several_shards_where_they_are_looked_for(tmp_path: Path) -> None:
    data = {"data_root": str(tmp_path)}
    done = collect_random(None, CARTPOLE, HERE, data, n_timesteps_min=200, max_frames=64)
    folder = tmp_path / "data/processed/random/gymnasium/CartPole-v1"
    assert sorted(folder.iterdir()) == done.paths
    assert [path.name for path in done.paths[:2]] == ["random-000000.tar.zst", "random-000001.tar.zst"]
    found = gm.load_wds_datasets([{"type": "random"}], env_cfg=CARTPOLE, root=tmp_path)
    (part,) = found.datasets
    assert (part.num_frames, len(part)) == (done.steps, done.episodes)
    assert found.metadata["action_space"].state["n"] == 2
    assert len(gm.pairs.TemporalOffset().over(part)) == done.steps - done.episodes
    plain = collect_random(tmp_path / "a.tar", CARTPOLE, HERE, n_timesteps_min=200, max_frames=64)
    dataset = webdataset.WebDataset([str(path) for path in plain.paths], shardshuffle=False, empty_check=False)
    frames = list(dataset.select(lambda sample: sample["__key__"] != "_metadata").decode())
    assert len(frames) == done.steps
    np.testing.assert_array_equal(np.stack([frame["obs.pickle"] for frame in frames]), part.column("obs"))
    with pytest.raises(FileExistsError):
        collect_random(None, CARTPOLE, HERE, data, n_timesteps_min=200, max_frames=64)


def test_observations_and_actions_of_many_parts(tmp_path: Path) -> None:
    pytest.importorskip("minari", reason="skipped: needs minari (pip install .[test])")
    cfg = {"benchmark_name": "gymnasium", "task_name": "minari_sets:EveryKind-v0"}
    cfg["gymnasium_kwargs"] = {"disable_env_checker": True}  # type: ignore[assignment]
    done = collect_random(tmp_path / "a.tar.zst", cfg, {"venv_parallel": False, "n_envs": 2}, n_timesteps_min=20)
    demos = gm.open(tmp_path / "a.tar.zst")
    assert demos.num_frames == done.steps >= 20
    assert demos[0]["obs_image"].shape == (len(demos[0]), 32, 40, 3)
    assert {"obs_deep_pick", "next_obs_both_1", "acts_0", "acts_1"} <= set(demos.layout.names)
    assert demos[0]["acts_1"].shape[1:] == (2,)
    assert [type(word) for word in demos.extras(0)["next_obs_words"]] == [str] * len(demos[0])
    assert demos.metadata["observation_space"].state["spaces"]["both"].kind == "Tuple"
    gm.demos.minari.write(tmp_path / "a-v0", demos)
    again = gm.open(tmp_path / "a-v0")
    np.testing.assert_array_equal(again[1]["next_obs.deep.grid"], demos[1]["next_obs_deep_grid"])


def test_what_does_not_end_is_given_up_and_leaves_nothing(tmp_path: Path) -> None:
    forever = {**CARTPOLE, "task_name": "Pendulum-v1", "gymnasium_kwargs": {"max_episode_steps": 1000}}
    with pytest.raises(gm.StageError, match=r"environment 0 has not ended after 50 steps.*max_episode_steps"):
        collect_random(tmp_path / "a.tar.zst", forever, HERE, max_episode_steps=50)
    with pytest.raises(gm.ConfigError, match="n_timesteps_min"):
        collect_random(tmp_path / "a.tar.zst", CARTPOLE, HERE, n_timesteps_min=0)
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(".")] == []
