"""Atari games as demonstrations of them were recorded: grey pictures (4, 84, 84) of every fourth frame."""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Box

from gristmill.envs.area import Pixels, gray, shrink
from gristmill.envs.config import EnvConfig
from gristmill.envs.registered import make
from gristmill.envs.wrappers import ChannelsFirst, Env, Observation, StackFrames
from gristmill.options.optional import optional

_NOOP, _FIRE = 0, 1
_MOST_NOOPS = 30
_SKIP = 4
_SIDE = 84

_Step = tuple[Any, Any, bool, bool, dict[str, Any]]
_Reset = tuple[Any, dict[str, Any]]


def make_atari(config: EnvConfig) -> Env:
    """The game `task_name`, any of the ids that ale-py registers: `PongNoFrameskip-v4`, `ALE/Pong-v5`, ...

    Raises:
        MissingPackageError: ale-py is not installed.
        ConfigError: no such id.
    """
    gymnasium.register_envs(optional("ale_py", "atari"))
    # Every frame is wanted here, also of ids that skip some themselves.
    env: Env = SkipFrames(StartWithNoops(make(config, frameskip=1)))
    env = EndWithLife(env)
    if "FIRE" in meanings(env)[1:2]:
        env = StartWithFire(env)
    return StackFrames(ChannelsFirst(SignedReward(GrayPictures(env))), 4)


def meanings(env: Env) -> list[str]:
    """The names of the actions."""
    return list(env.get_wrapper_attr("get_action_meanings")())


class StartWithNoops(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """1 to 30 steps of doing nothing at the start of each game, drawn from the environment's own random numbers."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Reset:
        """Begins a game."""
        observation, info = self.env.reset(seed=seed, options=options)
        for _ in range(int(self.unwrapped.np_random.integers(1, _MOST_NOOPS + 1))):
            observation, _, terminated, truncated, info = self.env.step(_NOOP)
            if terminated or truncated:
                observation, info = self.env.reset(options=options)
        return observation, info


class SkipFrames(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """Four frames of the game for one action: rewards are summed, the last two pictures joined by their maximum."""

    def step(self, action: Any) -> _Step:
        """Up to four frames; fewer where the game ends."""
        seen: list[Observation] = []
        total = 0.0
        for _ in range(_SKIP):
            observation, reward, terminated, truncated, info = self.env.step(action)
            seen.append(observation)
            total += float(reward)
            if terminated or truncated:
                break
        return np.maximum.reduce(seen[-2:]), total, terminated, truncated, info


class EndWithLife(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """Ends the episode with each life lost. The next one begins where the game continues, until the game is over."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self._lives = 0
        self._over = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Reset:
        """Begins a game where the last one is over or a seed is given, else continues it with a null action."""
        observation: Observation | None = None
        info: dict[str, Any] = {}
        if not self._over and seed is None:
            observation, _, terminated, truncated, info = self.env.step(_NOOP)
            self._over = terminated or truncated
        if self._over or seed is not None:
            observation, info = self.env.reset(seed=seed, options=options)
            self._over = False
        self._lives = info["lives"]
        return observation, info

    def step(self, action: Any) -> _Step:
        """One step."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._over = terminated or truncated
        lost = 0 < info["lives"] < self._lives
        self._lives = info["lives"]
        return observation, reward, terminated or lost, truncated, info


class StartWithFire(gymnasium.Wrapper[Observation, Any, Observation, Any]):
    """Presses the fire button once at the start of each episode: some games wait for it."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> _Reset:
        """Begins an episode."""
        self.env.reset(seed=seed, options=options)
        observation, _, terminated, truncated, info = self.env.step(_FIRE)
        return self.env.reset(options=options) if terminated or truncated else (observation, info)


class GrayPictures(gymnasium.ObservationWrapper[Observation, Any, Observation]):
    """Colour pictures (H, W, 3) as grey ones (84, 84, 1), made smaller by area."""

    def __init__(self, env: Env) -> None:
        super().__init__(env)
        self.observation_space = Box(0, 255, (_SIDE, _SIDE, 1), np.uint8)

    def observation(self, observation: Pixels) -> Pixels:
        """One picture."""
        return shrink(gray(observation), _SIDE, _SIDE)[:, :, None]


class SignedReward(gymnasium.RewardWrapper[Observation, Any]):
    """Rewards as -1, 0 or 1."""

    def reward(self, reward: Any) -> float:
        """Its sign."""
        return float(np.sign(reward))
