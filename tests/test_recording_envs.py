"""Episodes of real Gymnasium environments, recorded while an agent plays: each step is there, also after a kill."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box, Dict, Discrete, Text
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

import gristmill as gm


class Rooms(gymnasium.Env[Any, Any]):
    """Counts steps; an episode has as many as its number, from 2 on. Says `luck` now and then."""

    observation_space = Dict({"place": Box(-100, 100, (2,), np.float32), "map": Box(0, 255, (3, 4), np.uint8)})
    action_space = Discrete(5, start=-2)

    def __init__(self, first: int = 0) -> None:
        self.episode, self.t = first, 0

    def _seen(self) -> dict[str, Any]:
        return {
            "place": np.array([self.episode, self.t], np.float32),
            "map": np.full((3, 4), (10 * self.episode + self.t) % 256, np.uint8),
        }

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed)
        self.episode, self.t = self.episode + 1, 0
        return self._seen(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        self.t += 1
        over = self.t > self.episode
        info = {"luck": self.t / 2} if self.t % 2 else {}
        return self._seen(), self.t * 0.5, over and self.episode % 2 == 1, over and self.episode % 2 == 0, info


INFOS = {"luck": "f4"}


def check(demos: Any, of: Callable[[int], int] = lambda i: i + 1) -> None:
    """That each trajectory is an episode of `Rooms`, whole."""
    for i in range(len(demos.lengths)):
        one, number = demos.games[i], of(i)
        t = np.arange(len(one))
        assert len(one) == number + 1
        np.testing.assert_array_equal(one["obs.place"], np.stack([t * 0 + number, t], 1))
        np.testing.assert_array_equal(one["next_obs.place"][:, 1], t + 1)
        np.testing.assert_array_equal(one["next_obs.map"][:, 1, 1], (10 * number + t + 1) % 256)
        np.testing.assert_array_equal(one["rews"], (t + 1) / 2)
        np.testing.assert_array_equal(one["infos.luck.said"], t % 2 == 0)
        np.testing.assert_array_equal(one["infos.luck"], np.where(t % 2 == 0, (t + 1) / 2, 0))
        assert demos.truncated(i) == (number % 2 == 0)


def play(env: Any, episodes: int) -> list[list[Any]]:
    """Plays whole episodes; the actions of each."""
    found: list[list[Any]] = []
    for _ in range(episodes):
        env.reset()
        found.append([])
        while True:
            found[-1].append(int(env.action_space.sample()))
            *_, terminated, truncated, _ = env.step(found[-1][-1])
            if terminated or truncated:
                break
    return found


def test_every_step_is_there_and_is_packed_and_fed(tmp_path: Path) -> None:
    env = gm.demos.record(Rooms(), tmp_path / "played", infos=INFOS)
    acted = play(env, 5)
    env.close()
    demos = gm.open(tmp_path / "played")
    assert (len(demos), demos.format) == (5, "demo.own.recorded")
    check(demos)
    np.testing.assert_array_equal(demos.column("acts"), np.concatenate(acted))
    assert demos.column("acts").dtype == np.int64
    assert demos.metadata["recording"]["env"] == "Rooms"
    gm.pack(tmp_path / "played", tmp_path / "pack")
    pack = gm.open(tmp_path / "pack", expect=gm.Trajectories)
    check(pack)
    for name in demos.layout.names:
        if name:
            np.testing.assert_array_equal(pack.column(name), demos.column(name))
    pairs = gm.pairs.Steps(("obs.place", "acts"))
    batch = next(iter(gm.DataLoader(pack, encoder=pairs, batch_size=4, seed=1, epochs=1)))
    assert batch["obs.place"].shape == (4, 2)
    for words in (["inspect", "played"], ["verify", "played"], ["pack", "played", "other"]):
        line = [sys.executable, "-m", "gristmill", *words, "--json"]
        told = json.loads(subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
        assert 20 in (told.get("frames"), told.get("checked"), told.get("rows"))
    line = [sys.executable, "-m", "gristmill", "convert", "played", "x.tar", "--json"]
    subprocess.run(line, cwd=tmp_path, capture_output=True, check=True)
    assert gm.open(tmp_path / "x.tar").lengths == [2, 3, 4, 5, 6]
    assert gm.doctor(tmp_path / "played").healthy


@pytest.mark.parametrize("mode", [AutoresetMode.NEXT_STEP, AutoresetMode.SAME_STEP])
@pytest.mark.parametrize("kind", [SyncVectorEnv, partial(AsyncVectorEnv, context="forkserver")], ids=["sync", "async"])
def test_environments_side_by_side_are_told_apart(tmp_path: Path, mode: AutoresetMode, kind: Any) -> None:
    venv = kind([partial(Rooms, 10 * i) for i in range(3)], autoreset_mode=mode)
    env = gm.demos.record(venv, tmp_path / "played", infos=INFOS)
    env.reset()
    acted = []
    for _ in range(40):
        acted.append(env.action_space.sample())
        env.step(acted[-1])
    env.close()
    demos = gm.open(tmp_path / "played")
    numbers = [int(demos[i]["obs.place"][0, 0]) for i in range(len(demos))]
    cut = [i for i, number in enumerate(numbers) if demos.frames(i) != number + 1]
    assert cut == list(range(len(demos) - len(cut), len(demos)))
    assert all(demos.truncated(i) for i in cut)
    check(demos[: len(demos) - len(cut)], lambda i: numbers[i])
    for i in range(3):
        mine = [number for number in numbers if 10 * i < number <= 10 * i + 10]
        assert mine == list(range(10 * i + 1, 10 * i + 1 + len(mine)))
    # A step that begins an episode whatever the action is none of an episode.
    begun = len(demos) - 3 if mode is AutoresetMode.NEXT_STEP else 0
    assert demos.num_frames == 3 * 40 - begun


def test_environments_that_are_begun_again_by_hand(tmp_path: Path) -> None:
    inner = SyncVectorEnv([lambda: Rooms(0), lambda: Rooms(2)], autoreset_mode=AutoresetMode.DISABLED)
    env = gm.demos.record(inner, tmp_path / "played", infos=INFOS)
    env.reset()
    for _ in range(12):
        *_, terminated, truncated, _ = env.step(env.action_space.sample())
        if (terminated | truncated).any():
            env.reset(options={"reset_mask": terminated | truncated})
    env.close()
    demos = gm.open(tmp_path / "played")
    assert demos.num_frames == 24
    whole = [i for i in range(len(demos)) if demos.frames(i) == demos[i]["obs.place"][0, 0] + 1]
    assert len(whole) >= 4


def test_the_package_s_own_environments_are_recorded(tmp_path: Path) -> None:
    cartpole = {"benchmark_name": "gymnasium", "task_name": "CartPole-v1"}
    venv = gm.envs.load_vec_env(cartpole, {"n_envs": 2, "venv_parallel": False}, seed=3)
    with gm.demos.record(venv, tmp_path / "played", infos={"episode.r": "f8"}) as env:
        env.reset()
        for _ in range(100):
            env.step(env.action_space.sample())
    demos = gm.open(tmp_path / "played")
    assert demos.num_frames == 200
    ended = np.flatnonzero(demos.column("terminated"))
    assert len(ended) > 4
    np.testing.assert_array_equal(np.flatnonzero(demos.column("infos.episode.r.said")), ended)
    lengths = [n for i, n in enumerate(demos.lengths) if not demos.truncated(i)]
    np.testing.assert_array_equal(demos.column("infos.episode.r")[ended], lengths)


def test_an_episode_that_is_left_is_cut_and_one_without_steps_is_none(tmp_path: Path) -> None:
    env = gm.demos.record(Rooms(5), tmp_path / "played")
    env.reset()
    env.step(0)
    env.reset()
    env.reset()
    env.step(1)
    env.step(2)
    env.flush()
    assert gm.open(tmp_path / "played").lengths == [1]
    env.close()
    demos = gm.open(tmp_path / "played")
    assert (demos.lengths, [demos.truncated(i) for i in range(2)]) == ([1, 2], [True, True])
    np.testing.assert_array_equal(demos[1]["next_obs.place"], [[8, 1], [8, 2]])


def test_an_environment_that_fails_costs_no_other_one_its_episode(tmp_path: Path) -> None:
    class Growing(Rooms):
        def _seen(self) -> dict[str, Any]:
            return {**super()._seen(), "place": np.zeros(2 if self.t < 2 or self.episode != 1 else 3, np.float32)}

    class Loose(gymnasium.vector.VectorEnv[Any, Any, Any]):
        """Two environments whose observations are lists of dictionaries, so that they may be wrong."""

        metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012
        single_observation_space, single_action_space, num_envs = Rooms.observation_space, Rooms.action_space, 2

        def __init__(self) -> None:
            self.envs = [Growing(0), Rooms(0)]

        def reset(self, **kwargs: Any) -> tuple[Any, dict[str, Any]]:
            return [env.reset()[0] for env in self.envs], {}

        def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
            steps = [list(env.step(0)) for env in self.envs]
            final = [one[0] for one in steps]
            for env, one in zip(self.envs, steps, strict=True):
                if one[2] or one[3]:
                    one[0] = env.reset()[0]
            seen, rewards, terminated, truncated, _ = map(list, zip(*steps, strict=True))
            return seen, rewards, terminated, truncated, {"final_obs": final}

    env = gm.demos.record(Loose(), tmp_path / "played")
    env.reset()
    failed = 0
    for _ in range(9):
        try:
            env.step([0, 0])
        except gm.FormatError:
            failed += 1
    env.close()
    assert failed == 1
    assert sorted(gm.open(tmp_path / "played").lengths) == [2, 3, 3, 4, 4]


PROGRAM = """
import sys
import gristmill as gm
from test_recording_envs import INFOS, Rooms, play
env = gm.demos.record(Rooms(int(sys.argv[2])), sys.argv[1], infos=INFOS)
play(env, 4)
env.reset()
env.step(0)
print("played", flush=True)
sys.stdin.read()
env.close()
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    running: list[subprocess.Popen[str]] = []

    def begin(first: int) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", PROGRAM, str(tmp_path / "played"), str(first)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
        one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        running.append(one)
        return one

    yield begin
    for one in running:
        one.kill()
        one.communicate()


def test_what_a_killed_process_had_played_is_there(tmp_path: Path, start: Callable[[int], Any]) -> None:
    killed, living = start(0), start(20)
    assert [one.stdout.readline() for one in (killed, living)] == ["played\n"] * 2
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    demos = gm.open(tmp_path / "played")
    check(demos)
    assert len(demos) == 4
    assert living.communicate("")[0] == ""
    assert living.returncode == 0
    both = gm.open(tmp_path / "played")
    assert sorted(both.lengths) == [1, 2, 3, 4, 5, 22, 23, 24, 25]
    assert [both.truncated(i) for i, steps in enumerate(both.lengths) if steps == 1] == [True]


def test_what_cannot_be_recorded_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    env = gm.demos.record(Rooms(), tmp_path / "played", infos=INFOS)
    with pytest.raises(gm.StageError, match="call reset"):
        env.step(0)
    play(env, 1)
    with pytest.raises(gm.StageError, match="the episode has ended"):
        env.step(0)
    env.reset()
    wrong = {"place": np.zeros(3, np.float32), "map": np.zeros((3, 4), np.uint8)}
    monkeypatch.setattr(Rooms, "_seen", lambda self: wrong)
    env.step(0)
    with pytest.raises(gm.FormatError, match=r"`obs.place`: wrong_size: shape \(3,\) in step 1, \(2,\) in step 0"):
        env.reset()
    env.close()
    assert gm.open(tmp_path / "played").lengths == [2]
    with pytest.raises(gm.ConfigError, match=r"it has recordings with `env` 'Rooms'; these have 'CartPole-v1'"):
        gm.demos.record(gymnasium.make("CartPole-v1"), tmp_path / "played")
    with pytest.raises(gm.ConfigError, match="recordings with `schema`"):
        gm.demos.record(Rooms(), tmp_path / "played")
    with pytest.raises(TypeError, match="expected an environment of Gymnasium"):
        gm.demos.record("CartPole-v1", tmp_path / "x")  # type: ignore[call-overload]
    with pytest.raises(gm.ConfigError, match="infos: expected names"):
        gm.demos.record(Rooms(), tmp_path / "x", infos={"": "f4"})
    texts = Rooms()
    texts.observation_space = Dict({"says": Text(5)})
    with pytest.raises(gm.ConfigError, match="`says` is a text"):
        gm.demos.record(texts, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_damaged_recordings_are_refused_with_their_place(tmp_path: Path) -> None:
    env = gm.demos.record(Rooms(), tmp_path / "played", infos=INFOS)
    play(env, 3)
    env.close()
    file = tmp_path / "played/games-000000.records"
    whole = file.read_bytes()
    for size in (len(whole) - 1, len(whole) // 2, 30):
        file.write_bytes(whole[:size])
        with pytest.raises(gm.FormatError, match=r"games-000000.records.*truncated"):
            gm.open(tmp_path / "played")
    file.write_bytes(whole[:-5] + b"\x55" + whole[-4:])
    with pytest.raises(gm.FormatError, match=r"games-000000.records.*checksum"):
        gm.open(tmp_path / "played")
    file.unlink()
    with pytest.raises(gm.FormatError, match="empty: no recorded episodes"):
        gm.open(tmp_path / "played")
    (tmp_path / "played/gristmill-recording.json").write_text('{"gristmill_recording": 2}')
    with pytest.raises(gm.FormatError, match="unknown_version"):
        gm.open(tmp_path / "played")
