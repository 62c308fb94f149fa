"""Wrappers of Gymnasium that pass everything on, and take each step down."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Self

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.vector import AutoresetMode, VectorEnv, VectorWrapper

from gristmill.demos.recording.episode import Episode, Recording
from gristmill.envs.infos import info_of
from gristmill.errors import ConfigError


class RecordedEnv(gymnasium.Wrapper[Any, Any, Any, Any]):
    """An environment whose episodes are recorded."""

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        out: str | os.PathLike[str],
        infos: Mapping[str, npt.DTypeLike],
        file_bytes: int,
    ) -> None:
        super().__init__(env)
        self._to = Recording(out, _name(env), env.observation_space, env.action_space, infos, file_bytes)
        self._episode = Episode(self._to)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; one that has not ended is written as cut."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._episode.begin(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Takes one step and records it."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._episode.step(action, observation, reward, terminated, truncated, info)
        return observation, reward, terminated, truncated, info

    def flush(self) -> None:
        """Shows readers all episodes that have ended."""
        self._to.writer.flush()

    def close(self) -> None:
        """Writes the episode that is open, and closes the environment."""
        with ExitStack() as all_of:
            for end in (self.env.close, self._to.writer.close, self._episode.end):
                all_of.callback(end)


class RecordedVectorEnv(VectorWrapper):
    """Environments side by side, whose episodes are recorded, each by itself, in the order in which they end."""

    def __init__(
        self,
        env: VectorEnv[Any, Any, Any],
        out: str | os.PathLike[str],
        infos: Mapping[str, npt.DTypeLike],
        file_bytes: int,
    ) -> None:
        super().__init__(env)
        self._mode = env.metadata.get("autoreset_mode")
        if not isinstance(self._mode, AutoresetMode):
            says = "its metadata do not say when environments begin again (`autoreset_mode`)"
            raise ConfigError(f"env: {says}", field="env")
        spaces = env.single_observation_space, env.single_action_space
        self._to = Recording(out, _name(env), *spaces, infos, file_bytes)
        self._episodes = [Episode(self._to) for _ in range(self.num_envs)]
        #: Which have ended, and begin again by their next step.
        self._ended = np.zeros(self.num_envs, bool)

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begins an episode everywhere, or where `options["reset_mask"]` is true."""
        mask = (options or {}).get("reset_mask")
        # Gymnasium takes the mask out of the options.
        chosen = range(self.num_envs) if mask is None else np.flatnonzero(mask).tolist()
        observations, infos = self.env.reset(seed=seed, options=options)  # type: ignore[arg-type]
        for i in chosen:
            self._episodes[i].begin(_of(observations, i))
            self._ended[i] = False
        return observations, infos

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Takes one step in each environment and records it."""
        observations, rewards, terminated, truncated, infos = self.env.step(actions)
        # A fault of one environment does not stop the recording of the others.
        with ExitStack() as all_of:
            for i in reversed(range(self.num_envs)):
                flags = bool(terminated[i]), bool(truncated[i])
                all_of.callback(self._take, i, actions, observations, rewards[i], *flags, infos)
        return observations, rewards, terminated, truncated, infos

    def _take(
        self,
        i: int,
        actions: Any,
        observations: Any,
        reward: Any,
        terminated: bool,
        truncated: bool,
        infos: dict[str, Any],
    ) -> None:
        """Takes down what one environment did."""
        episode, last = self._episodes[i], terminated or truncated
        if self._mode is AutoresetMode.NEXT_STEP and self._ended[i]:
            # This step began the next episode, whatever the action.
            self._ended[i] = False
            episode.begin(_of(observations, i))
            return
        same = last and self._mode is AutoresetMode.SAME_STEP
        self._ended[i] = last and not same
        seen = infos["final_obs"][i] if same else _of(observations, i)
        try:
            episode.step(_of(actions, i), seen, reward, terminated, truncated, info_of(infos, i))
        finally:
            if same:
                episode.begin(_of(observations, i))

    def flush(self) -> None:
        """Shows readers all episodes that have ended."""
        self._to.writer.flush()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes it."""
        self.close()

    def close(self, **kwargs: Any) -> None:
        """Writes the episodes that are open, and closes the environments."""
        with ExitStack() as all_of:
            all_of.callback(self.env.close, **kwargs)
            all_of.callback(self._to.writer.close)
            for episode in reversed(self._episodes):
                all_of.callback(episode.end)


def _name(env: Any) -> str:
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def _of(batch: Any, index: int) -> Any:
    """What a batch has of one environment."""
    if isinstance(batch, Mapping):
        return {name: _of(one, index) for name, one in batch.items()}
    if isinstance(batch, tuple):
        return tuple(_of(one, index) for one in batch)
    return batch[index]
