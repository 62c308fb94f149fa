"""The three groups of configuration that demonstrations share: the environment, its vector form, where data lies."""

from __future__ import annotations

import dataclasses
import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Self

from gristmill.errors import ConfigError

#: Benchmarks whose stored data can be read.
BENCHMARKS = ("magical", "dm_control", "atari", "minecraft", "procgen")

_MAGICAL = (
    "MoveToCorner",
    "MoveToRegion",
    "MatchRegions",
    "MakeLine",
    "FixColour",
    "FindDupe",
    "ClusterColour",
    "ClusterShape",
)
_DM_CONTROL = ("finger-spin", "cheetah-run", "walker-walk", "cartpole-swingup", "reacher-easy", "ball-in-cup-catch")


def _dashed(name: str) -> str:
    return "".join(f"-{c.lower()}" if c.isupper() else c for c in name).lstrip("-")


def suggestion(name: str, known: list[str] | tuple[str, ...]) -> str:
    """The end of a message about an unknown name: the nearest known one, else all of them."""
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean `{near[0]}`?" if near else f"known are {', '.join(f'`{one}`' for one in known)}"


@dataclass
class Group:
    """A group of keys; unknown ones are refused with the nearest known one."""

    #: Name of the group in configurations.
    GROUP: ClassVar[str] = ""
    #: Keys of older vintages, and what they are now.
    FORMER: ClassVar[Mapping[str, str]] = {}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The group with these values over its defaults.

        Raises:
            ConfigError: a key is unknown, or a value has another type.
        """
        return cls().merged(values)

    def merged(self, update: Mapping[str, Any]) -> Self:
        """The group with `update` over it: mappings merge key by key, other values are replaced.

        Raises:
            ConfigError: a key is unknown, or a value has another type.
        """
        known = {one.name: one for one in dataclasses.fields(self)}
        changes: dict[str, Any] = {}
        for key, value in update.items():
            if key not in known:
                now = self.FORMER.get(key)
                advice = f"it is `{now}` today" if now else suggestion(key, list(known))
                raise ConfigError(f"`{self.GROUP}` has no key `{key}`; {advice}", field=f"{self.GROUP}.{key}")
            own = getattr(self, key)
            if isinstance(own, Mapping) and isinstance(value, Mapping):
                value = {**own, **value}
            self._check(key, str(known[key].type), value)
            changes[key] = value
        return dataclasses.replace(self, **changes)

    def as_dict(self) -> dict[str, Any]:
        """Keys and values."""
        return dataclasses.asdict(self)

    def _check(self, key: str, expected: str, value: Any) -> None:
        kinds: dict[str, tuple[type, ...]] = {
            "str": (str, os.PathLike),
            "bool": (bool,),
            "int": (int,),
            "int | None": (int, type(None)),
            "dict[str, str]": (dict,),
        }
        fits = isinstance(value, kinds[expected]) and not (isinstance(value, bool) and expected != "bool")
        if expected == "dict[str, str]" and fits:
            fits = all(isinstance(one, str) for pair in value.items() for one in pair)
        if not fits:
            message = f"`{self.GROUP}.{key}`: expected {expected}, found {value!r}"
            raise ConfigError(message, field=f"{self.GROUP}.{key}")


@dataclass
class EnvCfg(Group):
    """Which task of which benchmark, and how its observations are made."""

    GROUP: ClassVar[str] = "env_cfg"
    FORMER: ClassVar[Mapping[str, str]] = {
        "magical_env_prefix": "task_name",
        "dm_control_env_name": "task_name",
        "atari_env_id": "task_name",
        "task": "task_name",
    }

    #: One of atari, magical, dm_control, minecraft, procgen.
    benchmark_name: str = "dm_control"
    #: MAGICAL: environment without preprocessor (`MoveToRegion-Demo-v0`); dm_control: domain-task; Atari: the id.
    task_name: str = "finger-spin"
    #: What is made of MAGICAL's two views; empty leaves them as they are.
    magical_preproc: str = "LoResCHW4E"
    #: Whether steps of MAGICAL whose action is 0 are left out.
    magical_remove_null_actions: bool = False
    #: Frames in a stack of dm_control.
    dm_control_frame_stack: int = 3
    #: Short name -> registered id of a dm_control environment.
    dm_control_full_env_names: dict[str, str] = field(
        default_factory=lambda: {name: f"DMC-{name.title()}-v0" for name in _DM_CONTROL}
    )
    #: Time limit of MineRL environments.
    minecraft_max_env_steps: int | None = None
    #: Frames in a stack of Procgen.
    procgen_frame_stack: int = 4


@dataclass
class VenvOpts(Group):
    """How environments run beside each other."""

    GROUP: ClassVar[str] = "venv_opts"

    #: In processes of their own, or in this one.
    venv_parallel: bool = True
    #: How many.
    n_envs: int = 2


@dataclass
class EnvData(Group):
    """Where data lies; relative paths are below `data_root`."""

    GROUP: ClassVar[str] = "env_data"
    FORMER: ClassVar[Mapping[str, str]] = {"processed_data_root": "data_root"}

    #: Prefix of all relative paths, and of `data/processed/...`; the current directory by default.
    data_root: str = "."
    #: Keep the first n trajectories of each set of shards.
    wds_n_trajs: int | None = None
    #: Keep the first n transitions of each set of shards; not together with the former.
    wds_n_trans: int | None = None
    #: Task -> directory of `.pkl.gz` files.
    magical_demo_dirs: dict[str, str] = field(
        default_factory=lambda: {f"{name}-Demo-v0": f"data/magical/{_dashed(name)}/" for name in _MAGICAL}
    )
    #: Task -> glob of `.pkl.gz` files; `~` is expanded.
    dm_control_demo_patterns: dict[str, str] = field(
        default_factory=lambda: {name: f"data/dm_control/{name}-*.pkl.gz" for name in _DM_CONTROL}
    )
    #: Id -> `.npz`.
    atari_demo_paths: dict[str, str] = field(
        default_factory=lambda: {
            f"{name}NoFrameskip-v4": f"data/atari/{name}NoFrameskip-v4_rollouts_500_ts_100_traj.npz"
            for name in ("Breakout", "Pong")
        }
    )
    #: Game -> `.pickle`.
    procgen_demo_paths: dict[str, str] = field(
        default_factory=lambda: {
            name: f"procgen/demo_{name}.pickle" for name in ("coinrun", "fruitbot", "ninja", "jumper", "miner")
        }
    )


class Groups(NamedTuple):
    """The three groups of a configuration."""

    env_cfg: EnvCfg
    venv_opts: VenvOpts
    env_data: EnvData


def load_config(path: str | os.PathLike[str]) -> Groups:
    """The groups of a TOML file with the tables `env_cfg`, `venv_opts` and `env_data`, each of which may be absent.

    Raises:
        OSError: it cannot be read.
        ConfigError: it is no TOML, or has an unknown table or key.
    """
    with open(path, "rb") as file:
        try:
            tables = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise ConfigError(f"{os.fspath(path)}: {e}") from e
    for name in tables:
        if name not in Groups._fields:
            raise ConfigError(f"{os.fspath(path)}: no table `{name}`; {suggestion(name, Groups._fields)}", field=name)
    return Groups(
        EnvCfg.from_dict(tables.get("env_cfg", {})),
        VenvOpts.from_dict(tables.get("venv_opts", {})),
        EnvData.from_dict(tables.get("env_data", {})),
    )
