"""Any environment that is registered with Gymnasium, by its id."""

from __future__ import annotations

import difflib
from typing import Any

import gymnasium
from gymnasium.spaces import Box
from gymnasium.wrappers import RecordEpisodeStatistics

from gristmill.envs.config import EnvConfig
from gristmill.envs.wrappers import ChannelsFirst, Env, StackFrames, is_picture
from gristmill.errors import MissingPackageError


def make(config: EnvConfig, **kwargs: Any) -> Env:
    """The environment of the id `task_name`, within its time limit and with statistics of its episodes.

    Raises:
        ConfigError: no such id, with the nearest one; arguments that the environment does not take.
        MissingPackageError: the environment wants a package that is not installed.
    """
    try:
        env = gymnasium.make(config.task_name, **kwargs)
    except (gymnasium.error.UnregisteredEnv, gymnasium.error.DeprecatedEnv, ModuleNotFoundError) as error:
        near = difflib.get_close_matches(config.task_name, list(gymnasium.registry), n=1)
        advice = f"; did you mean `{near[0]}`?" if near else ""
        raise config.refusal("task_name", f"{config.task_name!r}: {error}{advice}") from error
    except TypeError as error:
        raise config.refusal("task_name", f"{config.task_name!r} does not take {kwargs}: {error}") from error
    except gymnasium.error.DependencyNotInstalled as error:
        raise MissingPackageError(f"{config.task_name}: {error}") from error
    return RecordEpisodeStatistics(env)


def make_any(config: EnvConfig) -> Env:
    """The environment with pictures turned channels first; observations of other kinds stay as they are.

    Raises:
        ConfigError: no such id; a stack of observations that are no arrays.
        MissingPackageError: the environment wants a package that is not installed.
    """
    env = make(config, **config.gymnasium_kwargs)
    if is_picture(env.observation_space):
        env = ChannelsFirst(env)
    if config.gymnasium_frame_stack == 1:
        return env
    space = env.observation_space
    if not isinstance(space, Box) or not space.shape:
        raise config.refusal("gymnasium_frame_stack", f"observations of {space} cannot be stacked; expected arrays")
    return StackFrames(env, config.gymnasium_frame_stack)
