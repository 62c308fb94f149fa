"""Procgen's games as pictures (C, 64, 64): its own environments, many in one library, as one of Gymnasium's.

The library begins the next level within the step that ends one, so it never draws how a level ended.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box, Discrete
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from gristmill.envs.config import EnvConfig
from gristmill.envs.wrappers import stacked_space
from gristmill.options.optional import optional

_LEVELS = 100
_SIDE = 64
_CHANNELS = 3
#: The action that ends a level at once.
_RESTART = -1

_Pictures = npt.NDArray[np.uint8]


class ProcgenVectorEnv(VectorEnv[_Pictures, npt.NDArray[Any], npt.NDArray[Any]]):
    """Several copies of one game: 100 easy levels, drawn by the seed; 15 actions.

    An end is always `terminated`: the library does not tell why. `final_obs` repeats the last picture that the level
    showed in the place of the one that was never drawn, and `final_frame_repeated` in its info says so.

    Raises:
        MissingPackageError: Procgen is not installed.
        ConfigError: no such game, with the nearest one.
    """

    metadata = {"autoreset_mode": AutoresetMode.SAME_STEP}  # noqa: RUF012  (Gymnasium's own type)

    def __init__(self, config: EnvConfig, n_envs: int) -> None:
        self._library = optional("procgen.env", "procgen")
        games = list(self._library.ENV_NAMES)
        if config.task_name not in games:
            advice = config.advice(config.task_name, games)
            raise config.refusal("task_name", f"Procgen has no game {config.task_name!r}; {advice}")
        self._game, self._frames = config.task_name, config.procgen_frame_stack
        self.num_envs = n_envs
        frame = Box(0, 255, (_CHANNELS, _SIDE, _SIDE), np.uint8)
        self.single_observation_space = stacked_space(frame, self._frames)
        self.single_action_space = Discrete(15)
        self.observation_space = batch_space(self.single_observation_space, n_envs)
        self.action_space = batch_space(self.single_action_space, n_envs)
        self._envs: Any = None
        self._stacks = np.zeros((n_envs, *self.single_observation_space.shape), np.uint8)
        self._returns, self._lengths, self._began = np.zeros(n_envs), np.zeros(n_envs, np.int64), np.zeros(n_envs)

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[_Pictures, dict[str, Any]]:
        """Begins new levels: with a seed (of several, the first), those that it gives; else the next ones."""
        first = seed if seed is None or isinstance(seed, int) else seed[0]
        if self._envs is None or first is not None:
            self.close_extras()
            self._envs = self._library.ProcgenGym3Env(
                num=self.num_envs,
                env_name=self._game,
                num_levels=_LEVELS,
                start_level=0,
                distribution_mode="easy",
                rand_seed=first,
            )
        else:
            self._envs.act(np.full(self.num_envs, _RESTART, np.int32))
        _, frames, _ = self._observe()
        self._begin(np.ones(self.num_envs, np.bool_))
        self._push(frames)
        infos: dict[str, Any] = {}
        for index, info in enumerate(self._envs.get_info()):
            infos = self._add_info(infos, info, index)
        return self._stacks.copy(), infos

    def step(
        self, actions: npt.NDArray[Any]
    ) -> tuple[_Pictures, npt.NDArray[Any], npt.NDArray[Any], npt.NDArray[Any], dict[str, Any]]:
        """One step of every environment; those that end begin their next level at once."""
        self._envs.act(np.asarray(actions, np.int32))
        rewards, frames, ended = self._observe()
        self._returns += rewards
        self._lengths += 1
        infos: dict[str, Any] = {}
        for index, info in enumerate(self._envs.get_info()):
            if ended[index]:
                stack = self._stacks[index]
                final = np.concatenate([stack[_CHANNELS:], stack[-_CHANNELS:]])
                final_info = {**info, "episode": self._statistics(index), "final_frame_repeated": True}
                infos = self._add_info(infos, {"final_obs": final, "final_info": final_info}, index)
            infos = self._add_info(infos, info, index)
        self._begin(ended)
        self._push(frames)
        return self._stacks.copy(), rewards, ended, np.zeros(self.num_envs, np.bool_), infos

    def close_extras(self, **kwargs: Any) -> None:
        """Frees the library's environments."""
        if self._envs is not None:
            self._envs.close()
            self._envs = None

    def _observe(self) -> tuple[npt.NDArray[np.float64], _Pictures, npt.NDArray[np.bool_]]:
        rewards, observations, first = self._envs.observe()
        return rewards.astype(np.float64), np.moveaxis(observations["rgb"], -1, 1), np.array(first, np.bool_)

    def _begin(self, which: npt.NDArray[np.bool_]) -> None:
        self._stacks[which] = 0
        self._returns[which], self._lengths[which], self._began[which] = 0.0, 0, time.perf_counter()

    def _push(self, frames: _Pictures) -> None:
        self._stacks = np.concatenate([self._stacks[:, _CHANNELS:], frames], axis=1)

    def _statistics(self, index: int) -> dict[str, Any]:
        elapsed = round(time.perf_counter() - float(self._began[index]), 6)
        return {"r": float(self._returns[index]), "l": int(self._lengths[index]), "t": elapsed}
