"""Which environment, and how many of it run at once: the groups `env_cfg` and `venv_opts`.

Nothing is imported that plays; stored demonstrations are read with the same groups.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

from gristmill.options.groups import Group

#: What `benchmark_name` may be. `gymnasium` is any id that is registered with Gymnasium.
BENCHMARKS = ("atari", "dm_control", "gymnasium", "magical", "minecraft", "procgen")

_DM_CONTROL_IDS = {
    "finger-spin": "DMC-Finger-Spin-v0",
    "cheetah-run": "DMC-Cheetah-Run-v0",
    "walker-walk": "DMC-Walker-Walk-v0",
    "cartpole-swingup": "DMC-Cartpole-Swingup-v0",
    "reacher-easy": "DMC-Reacher-Easy-v0",
    "ball-in-cup-catch": "DMC-Ball-In-Cup-Catch-v0",
}


@dataclass(kw_only=True)
class EnvConfig(Group):
    """The environment, and what is done to its pictures.

    Raises:
        ConfigError: a value of the wrong type or out of range, with the key.
    """

    group: ClassVar[str] = "env_cfg"
    renamed: ClassVar[Mapping[str, str]] = {
        "magical_env_prefix": "task_name",
        "dm_control_env_name": "task_name",
        "atari_env_id": "task_name",
    }

    #: One of `BENCHMARKS`.
    benchmark_name: str = "dm_control"
    #: atari and gymnasium: a registered id; dm_control: `<domain>-<task>`; magical: the name without its
    #: preprocessor; minecraft: the bare name; procgen: the game.
    task_name: str = "finger-spin"
    #: Preprocessor of MAGICAL; empty for both views as they are.
    magical_preproc: str = "LoResCHW4E"
    #: Leave out the steps whose action is 0.
    magical_remove_null_actions: bool = False
    #: Frames in one observation.
    dm_control_frame_stack: int = 3
    #: Short name -> registered id, from which domain and task follow.
    dm_control_full_env_names: dict[str, str] = field(default_factory=lambda: dict(_DM_CONTROL_IDS))
    #: Steps after which an episode is cut.
    minecraft_max_env_steps: int | None = None
    #: Frames in one observation.
    procgen_frame_stack: int = 4
    #: Frames in one observation.
    gymnasium_frame_stack: int = 1
    #: Keyword arguments of `gymnasium.make`.
    gymnasium_kwargs: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.benchmark_name not in BENCHMARKS:
            advice = self.advice(self.benchmark_name, list(BENCHMARKS))
            raise self.refusal("benchmark_name", f"no benchmark is called {self.benchmark_name!r}; {advice}")
        if not self.task_name:
            raise self.refusal("task_name", "expected the name of a task, got none")
        for name in ("dm_control_frame_stack", "procgen_frame_stack", "gymnasium_frame_stack"):
            if getattr(self, name) < 1:
                raise self.refusal(name, f"expected at least one frame, got {getattr(self, name)}")
        if self.minecraft_max_env_steps is not None and self.minecraft_max_env_steps < 1:
            raise self.refusal("minecraft_max_env_steps", f"expected at least 1, got {self.minecraft_max_env_steps}")

    @property
    def color_space(self) -> Literal["RGB", "GRAY"]:
        """Colours of a frame: three channels each, or one."""
        return "GRAY" if self.benchmark_name == "atari" else "RGB"


@dataclass(kw_only=True)
class VenvOptions(Group):
    """How many environments run at once, and where.

    Raises:
        ConfigError: a value of the wrong type or out of range, with the key.
    """

    group: ClassVar[str] = "venv_opts"

    #: Each in a process of its own, or all in this one.
    venv_parallel: bool = True
    #: How many.
    n_envs: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_envs < 1:
            raise self.refusal("n_envs", f"expected at least one environment, got {self.n_envs}")
