"""Random play in real environments -> shards: whole episodes in the order in which they began, with their true ends."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from gristmill.demos.config import EnvData
from gristmill.demos.spaces import Leaf, described, leaves
from gristmill.demos.writer import LEVEL, Members, ShardWriter, get_meta_dict, write_frames
from gristmill.envs import info_of, load_vec_env
from gristmill.envs.config import EnvConfig, VenvOptions
from gristmill.errors import ConfigError, StageError

if TYPE_CHECKING:
    from pathlib import Path

if TYPE_CHECKING:
    from gristmill.envs.seeded import SeededVectorEnv

#: Steps after which an episode is taken for one that never ends.
MAX_EPISODE_STEPS = 100_000


@dataclass
class Collected:
    """What was collected."""

    #: The shards.
    paths: list[Path]
    episodes: int
    steps: int
    seed: int


def collect_random(
    out: str | os.PathLike[str] | None = None,
    env_cfg: EnvConfig | Mapping[str, Any] | None = None,
    venv_opts: VenvOptions | Mapping[str, Any] | None = None,
    env_data: EnvData | Mapping[str, Any] | None = None,
    *,
    n_timesteps_min: int = 100_000,
    seed: int = 0,
    infos: bool = True,
    max_episode_steps: int = MAX_EPISODE_STEPS,
    max_frames: int | None = None,
    level: int = LEVEL,
    members: Members = "pickle",
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Collected:
    """Plays with actions drawn uniformly, and writes whole episodes as shards.

    Episodes are begun until those that have ended have `n_timesteps_min` steps; all that were begun are played to their
    end and kept, so that short ones are no more frequent than they are. They stand in the order in which they began.
    Each step has `obs`, `next_obs`, `acts`, `rews`, `dones`, `truncated` (the end is a time limit's, not the game's),
    and `infos`. Parts of dictionaries and tuples are fields of their own: `obs_image`. The same seed, options and
    environments give the same bytes, in one process or many.

    As many episodes as there are environments, and what ended before the oldest of them, are in memory at a time.

    Args:
        out: `X.tar.zst` or `X.tar`, or a folder for `random.tar.zst`; by default the one where `load_wds_datasets`
            looks for `type="random"`.
        env_cfg: which environment; a mapping is read over the defaults.
        venv_opts: how many side by side, and where; likewise.
        env_data: where `data_root` is, if `out` is not given.
        n_timesteps_min: steps to collect at least.
        seed: decides the seeds of all environments, and all actions.
        infos: keep what the environments say besides. Seconds that an episode took are left out.
        max_episode_steps: steps after which an episode is taken for one that never ends.
        max_frames: frames after which the next episode begins a new shard.
        level: of Zstandard, 1 to 22.
        members: how values are written, as for `write_frames`.
        overwrite: replace shards of this name.
        dry_run: make the environments, see whether the shards could be written, and play nothing.
        progress: called with the steps collected so far, and with those wanted.

    Raises:
        OSError: the folder cannot be written, or shards of the name exist (`FileExistsError`).
        ConfigError: a configuration that cannot run; spaces that shards do not hold.
        MissingPackageError: an environment wants a package that is not installed.
        StageError: an episode did not end.
        FormatError: infos that are no plain data.
    """
    if n_timesteps_min < 1:
        raise ConfigError(
            f"`n_timesteps_min`: expected at least one step, got {n_timesteps_min}", field="n_timesteps_min"
        )
    cfg = env_cfg if isinstance(env_cfg, EnvConfig) else EnvConfig.from_dict(env_cfg or {})
    data = env_data if isinstance(env_data, EnvData) else EnvData.from_dict(env_data or {})
    path = place_of(out, cfg, data)
    options: dict[str, Any] = {"max_frames": max_frames, "level": level, "overwrite": overwrite, "members": members}
    total = Collected([], 0, 0, seed)

    def frames(venv: SeededVectorEnv) -> Iterator[dict[str, Any]]:
        for episode in _episodes(venv, n_timesteps_min, max_episode_steps, infos):
            total.episodes += 1
            total.steps += len(episode.frames)
            yield from episode.frames
            if progress is not None:
                progress(min(total.steps, n_timesteps_min), n_timesteps_min)

    with load_vec_env(cfg, venv_opts, seed=seed) as venv:
        meta = get_meta_dict(cfg, venv.single_observation_space, venv.single_action_space)
        if dry_run:
            ShardWriter(path, meta, **options).abort()
            return total
        total.paths = write_frames(path, meta, frames(venv), **options)
    return total


def place_of(out: str | os.PathLike[str] | None, cfg: EnvConfig, data: EnvData) -> str:
    """The name of the shards that random play is written to."""
    if out is None:
        out = os.path.join(data.data_root, "data", "processed", "random", cfg.benchmark_name, cfg.task_name)
    path = os.fspath(out)
    return path if path.endswith((".tar", ".tgz", ".tar.zst")) else os.path.join(path, "random.tar.zst")


@dataclass
class _Episode:
    """An episode that is being played."""

    number: int
    #: The observation that the next action follows, by field.
    seen: dict[str, Any]
    frames: list[dict[str, Any]] = field(default_factory=list)


def _episodes(venv: SeededVectorEnv, steps_min: int, longest: int, infos: bool) -> Iterator[_Episode]:
    """Episodes in the order in which they began."""
    spaces = [described(space) for space in (venv.single_observation_space, venv.single_action_space)]
    observed, acted = (leaves(space) for space in spaces)
    observations, _ = venv.reset()
    running: list[_Episode | None] = [
        _Episode(i, _values(observed, "obs", observations, i)) for i in range(venv.num_envs)
    ]
    ended: dict[int, _Episode] = {}
    begun, given, steps = venv.num_envs, 0, 0
    while any(running):
        actions = venv.action_space.sample()
        observations, rewards, terminated, truncated, said = venv.step(actions)
        free = []
        for i, episode in enumerate(running):
            if episode is None:
                continue
            last = bool(terminated[i] or truncated[i])
            # What was seen after the last step of an episode stands apart: `observations` has begun the next one.
            then = _values(observed, "obs", said["final_obs"] if last else observations, i, last=last)
            frame = {
                **episode.seen,
                **{f"next_{name}": value for name, value in then.items()},
                **_values(acted, "acts", actions, i),
                "rews": np.float64(rewards[i]),
                "dones": np.bool_(last),
                "truncated": np.bool_(truncated[i] and not terminated[i]),
            }
            if infos:
                frame["infos"] = _timeless(info_of(said, i))
            episode.frames.append(frame)
            episode.seen = then
            if last:
                ended[episode.number] = episode
                steps += len(episode.frames)
                running[i] = None
                free.append(i)
            elif len(episode.frames) >= longest:
                says = f"an episode of environment {i} has not ended after {longest} steps; give it a time limit"
                raise StageError(f"{says} (`gymnasium_kwargs.max_episode_steps`), or raise `max_episode_steps`")
        for i in free if steps < steps_min else []:
            running[i] = _Episode(begun, _values(observed, "obs", observations, i))
            begun += 1
        while given in ended:
            yield ended.pop(given)
            given += 1


def _values(parts: list[Leaf], head: str, batch: Any, index: int, *, last: bool = False) -> dict[str, Any]:
    """What one environment saw or did, by field. Leaves of `batch` have an axis of environments; with `last` it has."""
    found = {}
    for leaf in parts:
        value = batch[index] if last else batch
        for part in leaf.path:
            value = value[part]
        value = value if last else value[index]
        found[leaf.flat(head)] = str(value) if leaf.dtype is None else np.array(value, leaf.dtype)[()]
    return found


def _timeless(info: dict[str, Any]) -> dict[str, Any]:
    """An info without the seconds that its episode took, which are others each time."""
    episode = info.get("episode")
    if not isinstance(episode, Mapping):
        return info
    return {**info, "episode": {name: value for name, value in episode.items() if name != "t"}}
