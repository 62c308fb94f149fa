"""From the groups `env_cfg` and `venv_opts` to running environments. Gymnasium is imported when they are made."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from gristmill.envs.config import EnvConfig, VenvOptions
from gristmill.errors import MissingPackageError
from gristmill.options.optional import optional

if TYPE_CHECKING:
    from gristmill.envs.seeded import SeededVectorEnv
    from gristmill.envs.wrappers import Env

_STORED = (
    "Stored demonstrations are read all the same: native files by `gristmill.load_dataset_dict`, shards by "
    "`gristmill.load_wds_datasets`"
)
_MAGICAL = (
    "MAGICAL cannot run here: its package, magical-il, cannot be imported from Python 3.10 on, and wants gym 0.17, "
    f"NumPy 1 and an X display. {_STORED}"
)
_MINECRAFT = (
    "MineRL cannot run here: its package, minerl, is built from source with a Java 8 development kit, and no release "
    f"of it goes with this Python. {_STORED}"
)


def load_vec_env(
    env_cfg: EnvConfig | Mapping[str, Any] | None = None,
    venv_opts: VenvOptions | Mapping[str, Any] | None = None,
    *,
    seed: int = 0,
) -> SeededVectorEnv:
    """Environments that run side by side, as one `gymnasium.vector.VectorEnv`.

    Pictures are uint8 (n_envs, C, H, W), the newest frame of a stack last. An environment that ends begins its next
    episode within the same step: the observation is then the new episode's first one, and the last one of the old is
    `infos["final_obs"][i]`, its info in `infos["final_info"]`, with `episode` (return `r`, length `l`, seconds `t`).
    `info_of(infos, i)` is the info of one environment's last step, whether it was an end or not.

    Args:
        env_cfg: which environment; a mapping is read as `EnvConfig.from_dict` does.
        venv_opts: how many, and where; likewise.
        seed: decides the seeds of all environments, and of the samples of `action_space`.

    Raises:
        ConfigError: a configuration that cannot run.
        MissingPackageError: a package is missing; the message names the extra that brings it. Always for magical and
            minecraft, of which only stored data are served.
    """
    config = env_cfg if isinstance(env_cfg, EnvConfig) else EnvConfig.from_dict(env_cfg or {})
    options = venv_opts if isinstance(venv_opts, VenvOptions) else VenvOptions.from_dict(venv_opts or {})
    if config.benchmark_name == "magical":
        raise MissingPackageError(_MAGICAL)
    if config.benchmark_name == "minecraft":
        if options.venv_parallel:
            raise options.refusal("venv_parallel", f"Minecraft runs in one process only: set it to false. {_MINECRAFT}")
        raise MissingPackageError(_MINECRAFT)
    vector = optional("gymnasium", "envs").vector

    from gristmill.envs.seeded import SeededVectorEnv

    if config.benchmark_name == "procgen":
        from gristmill.envs.procgen import ProcgenVectorEnv

        return SeededVectorEnv(ProcgenVectorEnv(config, options.n_envs), seed)
    makers = [partial(make_env, config)] * options.n_envs
    mode = vector.AutoresetMode.SAME_STEP
    if not options.venv_parallel:
        return SeededVectorEnv(vector.SyncVectorEnv(makers, autoreset_mode=mode), seed)
    import multiprocessing

    methods = multiprocessing.get_all_start_methods()
    method = "forkserver" if "forkserver" in methods else "spawn"
    return SeededVectorEnv(vector.AsyncVectorEnv(makers, context=method, autoreset_mode=mode), seed)


def make_env(config: EnvConfig) -> Env:
    """One environment with its preprocessing; also called in the processes of parallel ones."""
    if config.benchmark_name == "atari":
        from gristmill.envs.atari import make_atari

        return make_atari(config)
    if config.benchmark_name == "dm_control":
        from gristmill.envs.dm_control import make_dm_control

        return make_dm_control(config)
    from gristmill.envs.registered import make_any

    return make_any(config)
