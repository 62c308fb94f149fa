"""Tasks of the dm_control suite as pictures (C, 100, 100), drawn in software where there is no display."""

from __future__ import annotations

import importlib
import math
import os
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium.spaces import Box
from gymnasium.wrappers import RecordEpisodeStatistics, TimeLimit

from gristmill.envs.config import EnvConfig
from gristmill.envs.wrappers import Env, StackFrames, channels_first
from gristmill.errors import MissingPackageError
from gristmill.options.optional import optional

_SIDE = 100
#: Physics steps of an episode.
_STEPS = 1000
#: Physics steps for one action.
_SKIPS = {"finger-spin": 2, "cheetah-run": 4}
_SKIP = 8


def make_dm_control(config: EnvConfig) -> Env:
    """The task `task_name`, through `dm_control_full_env_names` where that has it, else `<domain>-<task>` itself.

    Raises:
        MissingPackageError: dm_control is not installed, or nothing can draw.
        ConfigError: no such task, with the nearest one.
    """
    # Without this dm_control looks for a display. Another choice of the user stays.
    os.environ.setdefault("MUJOCO_GL", "egl")
    optional("dm_control", "dm-control")
    try:
        suite = importlib.import_module("dm_control.suite")
    except (ImportError, AttributeError, RuntimeError) as error:
        raise _cannot_draw(error) from error
    name = task(config)
    tasks = {f"{domain}-{goal}".replace("_", "-"): (domain, goal) for domain, goal in suite.ALL_TASKS}
    if name not in tasks:
        raise config.refusal("task_name", f"dm_control has no task {name!r}; {config.advice(name, sorted(tasks))}")
    skip = _SKIPS.get(name, _SKIP)
    try:
        env: Env = DmControl(suite, *tasks[name], skip)
    except AttributeError as error:
        says = "`pip install gristmill[dm-control]` brings a MuJoCo that fits"
        raise MissingPackageError(f"dm_control does not go with this MuJoCo: {error}; {says}") from error
    env = RecordEpisodeStatistics(TimeLimit(env, math.ceil(_STEPS / skip)))
    return StackFrames(env, config.dm_control_frame_stack)


def task(config: EnvConfig) -> str:
    """`<domain>-<task>`: of the registered id that the short name stands for, else the name itself."""
    full = config.dm_control_full_env_names.get(config.task_name)
    if full is None:
        return config.task_name
    return full.removeprefix("DMC-").rsplit("-v", 1)[0].lower()


def _cannot_draw(error: Exception) -> MissingPackageError:
    backend = os.environ["MUJOCO_GL"]
    return MissingPackageError(
        f"dm_control cannot draw with MUJOCO_GL={backend}: {error}; on Debian, `egl` needs the packages libegl1 and "
        "libgl1-mesa-dri, `osmesa` needs libosmesa6"
    )


class DmControl(gymnasium.Env[npt.NDArray[np.uint8], npt.NDArray[np.float32]]):
    """One task: pictures (3, 100, 100) of camera 0, actions in [-1, 1].

    One action drives several physics steps, and their rewards are summed. `info` has `internal_state`, the state of the
    physics before the step (float64), and `discount`.
    """

    observation_space = Box(0, 255, (3, _SIDE, _SIDE), np.uint8)
    metadata = {"render_modes": []}  # noqa: RUF012  (Gymnasium's own type)

    def __init__(self, suite: Any, domain: str, task: str, skip: int) -> None:
        self._suite, self._domain, self._task, self._skip = suite, domain, task, skip
        self._env = self._load(0)
        bounds = self._env.action_spec()
        self._low, self._high = (
            np.broadcast_to(bounds.minimum, bounds.shape),
            np.broadcast_to(bounds.maximum, bounds.shape),
        )
        self.action_space = Box(-1.0, 1.0, bounds.shape, np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begins an episode; with a seed, the first of the sequence that the seed gives."""
        super().reset(seed=seed)
        if seed is not None:
            self._env.close()
            self._env = self._load(seed)
        self._env.reset()
        return self._picture(), {}

    def step(self, action: npt.NDArray[np.float32]) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One action. What the task ends by itself is terminated where it has no future, else truncated."""
        before = np.array(self._env.physics.get_state(), dtype=np.float64)
        ratio = (np.asarray(action, dtype=np.float64) + 1.0) / 2.0
        control = self._low + ratio * (self._high - self._low)
        total = 0.0
        for _ in range(self._skip):
            result = self._env.step(control)
            total += result.reward or 0.0
            if result.last():
                break
        ended = result.last()
        info = {"internal_state": before, "discount": float(result.discount)}
        return self._picture(), total, bool(ended and not result.discount), bool(ended and result.discount), info

    def close(self) -> None:
        """Frees the physics and what draws it."""
        self._env.close()

    def _load(self, seed: int) -> Any:
        return self._suite.load(self._domain, self._task, task_kwargs={"random": seed})

    def _picture(self) -> npt.NDArray[np.uint8]:
        try:
            return channels_first(self._env.physics.render(_SIDE, _SIDE, camera_id=0))
        except (ImportError, AttributeError, RuntimeError) as error:
            raise _cannot_draw(error) from error
