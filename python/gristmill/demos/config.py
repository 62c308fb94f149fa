"""Where demonstrations lie, and the three groups of configuration that they share with environments."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from gristmill.envs.config import EnvConfig, VenvOptions
from gristmill.errors import ConfigError
from gristmill.options.groups import Group

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


@dataclass(kw_only=True)
class EnvData(Group):
    """Where data lies; relative paths are below `data_root`."""

    group: ClassVar[str] = "env_data"
    renamed: ClassVar[Mapping[str, str]] = {"processed_data_root": "data_root"}

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

    env_cfg: EnvConfig
    venv_opts: VenvOptions
    env_data: EnvData


def load_config(path: str | os.PathLike[str]) -> Groups:
    """The groups of a TOML file with the tables `env_cfg`, `venv_opts` and `env_data`, each of which may be absent.

    Raises:
        OSError: it cannot be read.
        ConfigError: it is no TOML, or has an unknown table or key.
    """
    import tomllib

    with open(path, "rb") as file:
        try:
            tables = tomllib.load(file)
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as e:
            raise ConfigError(f"{os.fspath(path)}: {e}") from e
    for name in tables:
        if name not in Groups._fields:
            raise ConfigError(
                f"{os.fspath(path)}: no table `{name}`; {Group.advice(name, list(Groups._fields))}", field=name
            )
    return Groups(
        EnvConfig.from_dict(tables.get("env_cfg", {})),
        VenvOptions.from_dict(tables.get("venv_opts", {})),
        EnvData.from_dict(tables.get("env_data", {})),
    )
