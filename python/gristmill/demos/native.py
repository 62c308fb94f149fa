"""Stored demonstrations of one task in the form that it is kept in, or any others, as a dictionary of arrays."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Mapping
from typing import Any, Protocol, runtime_checkable

import numpy as np

from gristmill import _gristmill
from gristmill.demos.config import EnvData
from gristmill.demos.source import Demos, open_demos
from gristmill.envs.config import EnvConfig
from gristmill.errors import ConfigError, FormatError

#: Benchmarks whose projects keep demonstrations.
STORED = ("atari", "dm_control", "magical", "minecraft", "procgen")

#: Steps of one piece that MineRL's own reader hands out.
_MINERL_PIECE = 100

#: Fields that readers of shards make, and that are no data.
_MADE_BY_READERS = ("frame", "__key__")

#: Arrays by name; all have the same first axis, the steps of all trajectories one after another.
Arrays = dict[str, np.ndarray[Any, Any]]


@runtime_checkable
class Stored(Protocol):
    """Demonstrations that are open: `Demos`, or `Trajectories` of a pack."""

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        ...

    def columns(self, names: Iterable[str]) -> Mapping[str, np.ndarray[Any, Any]]:
        """Some fields of all steps by name."""
        ...

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory."""
        ...


def load_dataset_dict(
    env_cfg: EnvConfig | Mapping[str, Any] | str | os.PathLike[str] | Stored | None = None,
    env_data: EnvData | Mapping[str, Any] | None = None,
    n_traj: int | None = None,
    *,
    task_name: str | None = None,
    frame_stack: int | None = None,
    compat: bool = False,
    columns: str | os.PathLike[str] | None = None,
) -> Arrays:
    """The stored demonstrations of the task that `env_cfg` names, from where `env_data` says they are; or those given.

    Args:
        env_cfg: the task; a mapping is read over the defaults. Or demonstrations themselves, with `n_traj` and
            `columns` alone: the path of a pack, shards or a file, or what `gristmill.open` gives for one, selections
            included.
        env_data: where data lies; a mapping is read over the defaults.
        n_traj: take only the first `n_traj` trajectories, in order of file name.
        task_name: another task than that of `env_cfg`.
        frame_stack: another stack than that of `env_cfg`, for dm_control and Procgen.
        compat: do what the loaders of the originals did, faults included: files in an order drawn by `random`, ends of
            episodes that get lost, stacks and next observations that reach across them (docs/format/demonstrations.md).
        columns: a folder for data that is larger than memory: file by file it becomes one `.npy` file for each array,
            in a folder of its own there, which is used again as long as the files are unchanged; the arrays are mapped.
            Not with `compat`, whose order differs each time.

    Returns:
        `obs`, `next_obs` (T, C, H, W), `acts` (T, ...), `dones` (T,), and `truncated`, `rews`,
        `infos` (T,) where they exist. Views that are kept apart are `obs_<view>` and `next_obs_<view>`. Demonstrations
        that were given have whatever fields they have.

    Raises:
        OSError: a file cannot be read.
        ConfigError: an unknown key, benchmark or task; no file; fewer than `n_traj` trajectories.
        FormatError: a file is damaged; it says where.
    """
    if n_traj is not None and n_traj < 1:
        raise ConfigError(f"{n_traj} trajectories; expected at least 1, or None for all", field="n_traj")
    if isinstance(env_cfg, str | os.PathLike | Stored):
        options = {"env_data": env_data, "task_name": task_name, "frame_stack": frame_stack, "compat": compat}
        for name, value in options.items():
            if value:
                raise ConfigError(f"{name} does not go with demonstrations that are given", field=name)
        return _given(env_cfg, n_traj, columns)
    cfg = env_cfg if isinstance(env_cfg, EnvConfig) else EnvConfig.from_dict(env_cfg or {})
    data = env_data if isinstance(env_data, EnvData) else EnvData.from_dict(env_data or {})
    benchmark = cfg.benchmark_name
    if benchmark not in STORED:
        message = f"`{benchmark}` has no demonstrations of its own; {', '.join(STORED)} have"
        raise EnvConfig.refusal("benchmark_name", message)
    if task_name is not None:
        cfg = cfg.updated({"task_name": task_name})
    if frame_stack is not None:
        if benchmark not in ("dm_control", "procgen"):
            raise ConfigError(f"`{benchmark}` has no frame_stack; dm_control and procgen have", field="frame_stack")
        cfg = cfg.updated({f"{benchmark}_frame_stack": frame_stack})
    if columns is not None and compat:
        raise ConfigError("with compat the order is drawn again each time; keep the strict form", field="columns")
    if columns is not None:
        arrays = _spilled(cfg, data, n_traj, os.fspath(columns))
    elif compat and benchmark == "minecraft":
        arrays = _minecraft_pieces(cfg, data, n_traj)
    else:
        arrays = _trajectories(cfg, data, n_traj, compat)
    found = int(np.count_nonzero(arrays["dones"]))
    if n_traj is not None and found < n_traj and not (compat and benchmark == "minecraft"):
        raise _too_few(cfg, found, n_traj)
    return arrays


def _too_few(cfg: EnvConfig, found: int, n_traj: int) -> ConfigError:
    message = f"{found} trajectories of `{cfg.task_name}` have an end; n_traj={n_traj} asks for more"
    return ConfigError(message, field="n_traj")


def _given(
    source: str | os.PathLike[str] | Stored, n_traj: int | None, columns: str | os.PathLike[str] | None
) -> Arrays:
    """The arrays of demonstrations that are not looked for: all fields, and `infos` where each step has some."""
    from gristmill.packs.source import open as open_any

    demos: Any = source
    if isinstance(source, str | os.PathLike):
        demos = open_any(source, columns=columns)
        if not isinstance(demos, Stored):
            raise ConfigError(f"{os.fspath(source)} holds no demonstrations", field="env_cfg")
    elif columns is not None:
        raise ConfigError("these are open already; `gristmill.open` takes a folder to keep them in", field="columns")
    lengths = demos.lengths
    if n_traj is not None and n_traj > len(lengths):
        raise ConfigError(f"there are {len(lengths)} trajectories; n_traj={n_traj} asks for more", field="n_traj")
    steps = sum(lengths[:n_traj])
    fields = demos.columns(name for name in demos.layout.names if name not in ("", *_MADE_BY_READERS))
    arrays: Arrays = {name.replace(".", "_"): column[:steps] for name, column in fields.items()}
    return _with_infos(arrays, demos, steps, len(lengths[:n_traj]))


def _files(cfg: EnvConfig, data: EnvData) -> list[str]:
    """The files of a task, in order of name."""
    root = os.fspath(data.data_root)
    task = cfg.task_name
    if cfg.benchmark_name == "minecraft":
        pattern = os.path.join(root, "data", "minecraft", f"MineRL{task}-v0", "*", "rendered.npz")
        field = "env_data.data_root"
    else:
        key = {
            "magical": "magical_demo_dirs",
            "dm_control": "dm_control_demo_patterns",
            "atari": "atari_demo_paths",
            "procgen": "procgen_demo_paths",
        }[cfg.benchmark_name]
        field = f"env_data.{key}"
        known: dict[str, str] = getattr(data, key)
        if task not in known:
            message = f"`{key}` says nothing of the task `{task}`; {EnvData.advice(task, list(known))}"
            raise ConfigError(message, field=field)
        pattern = os.path.join(root, os.path.expanduser(known[task]))
        if cfg.benchmark_name in ("atari", "procgen"):
            return [pattern]
        if cfg.benchmark_name == "magical":
            pattern = os.path.join(glob.escape(pattern), "*.pkl.gz")
    found = sorted(glob.glob(pattern))
    if not found:
        raise ConfigError(f"no file is called `{pattern}`", field=field)
    return found


def _trajectories(cfg: EnvConfig, data: EnvData, n_traj: int | None, compat: bool) -> Arrays:
    # Of the originals, whose order hangs on its seed.
    import random

    files = _files(cfg, data)
    one_per_file = cfg.benchmark_name in ("magical", "minecraft")
    if compat and one_per_file:
        random.shuffle(files)
    parts: list[Arrays] = []
    names: dict[str, str] = {}
    for path in files[:n_traj] if one_per_file else files:
        demos = _open(cfg, path, compat and cfg.benchmark_name != "atari")
        if cfg.benchmark_name == "magical":
            names.setdefault(str(demos.metadata["env_name"]), path)
        parts.extend(_columns(demos, i) for i in range(len(demos)))
        if n_traj is not None and not compat and len(parts) >= n_traj:
            break
    _check_names(cfg, names)
    if compat and cfg.benchmark_name == "atari":
        parts = [_unmarked(part) for part in parts]
    if compat and cfg.benchmark_name in ("dm_control", "atari"):
        random.shuffle(parts)
    if not (compat and cfg.benchmark_name == "procgen"):
        parts = parts[:n_traj]
    joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    if compat and cfg.benchmark_name == "procgen" and n_traj is not None:
        ends = np.flatnonzero(joined["dones"])
        if len(ends) < n_traj:
            raise _too_few(cfg, len(ends), n_traj)
        joined = {name: array[: ends[n_traj - 1] + 1] for name, array in joined.items()}
    return joined


def _spilled(cfg: EnvConfig, data: EnvData, n_traj: int | None, folder: str) -> Arrays:
    """The trajectories in columns of files, which are written where they are not there yet."""
    files = _files(cfg, data)
    files = files[:n_traj] if cfg.benchmark_name in ("magical", "minecraft") else files
    videos = [os.path.join(os.path.dirname(path), "recording.mp4") for path in files]
    beside = [path for path in videos if cfg.benchmark_name == "minecraft" and os.path.exists(path)]
    stacks = (cfg.dm_control_frame_stack, cfg.procgen_frame_stack)
    how = f"{cfg.magical_preproc} {cfg.magical_remove_null_actions} {stacks} {n_traj}"
    spill = _gristmill.Spill(folder, f"{cfg.benchmark_name}-{cfg.task_name}", files + beside, how)
    compiled = spill.there()
    if compiled is None:
        try:
            names: dict[str, str] = {}
            for path in files:
                demos = _open(cfg, path, False)
                if cfg.benchmark_name == "magical":
                    names.setdefault(str(demos.metadata["env_name"]), path)
                    _check_names(cfg, names)
                found = spill.add(demos._compiled)
                if n_traj is not None and found >= n_traj:
                    break
            compiled = spill.finish()
        finally:
            spill.abandon()
    demos = Demos(folder, compiled)
    steps = sum(demos.lengths[:n_traj])
    fields = demos.columns(name for name in demos.layout.names if name)
    arrays: Arrays = {name.replace(".", "_"): column[:steps] for name, column in fields.items()}
    return _with_infos(arrays, demos, steps, len(demos.lengths[:n_traj]))


def _with_infos(arrays: Arrays, demos: Stored, steps: int, count: int) -> Arrays:
    """The arrays of the first `count` trajectories with `infos`, where each step has some."""
    infos = [info for i in range(count) for info in demos.extras(i).get("infos", [])]
    if len(infos) == steps:
        arrays["infos"] = np.fromiter(infos, dtype=object, count=steps)
    return arrays


def _unmarked(part: Arrays) -> Arrays:
    """A fragment as the file has it: without the end that was added to it."""
    part["dones"] = part["dones"] & ~part.pop("truncated")
    return part


def _minecraft_pieces(cfg: EnvConfig, data: EnvData, n_traj: int | None) -> Arrays:
    """The first `n_traj` pieces of 100 steps as one trajectory, whose last step is its end."""
    parts = [_columns(_open(cfg, path, True), 0) for path in _files(cfg, data)]
    steps = None if n_traj is None else n_traj * _MINERL_PIECE
    joined = {name: np.concatenate([part[name] for part in parts])[:steps] for name in parts[0]}
    joined["dones"][:-1] = False
    joined["dones"][-1] = True
    joined["next_obs"] = np.concatenate([joined["obs"][1:], joined["obs"][-1:]])
    return joined


def _open(cfg: EnvConfig, path: str, compat: bool) -> Demos:
    stacks = {"dm_control": cfg.dm_control_frame_stack, "procgen": cfg.procgen_frame_stack}
    demos = open_demos(
        path,
        compat=compat,
        magical_preproc=cfg.magical_preproc,
        remove_null_actions=cfg.magical_remove_null_actions,
        frame_stack=stacks.get(cfg.benchmark_name, 1),
    )
    expected = {
        "magical": ("demo.magical",),
        "dm_control": ("demo.dm_control", "demo.imitation"),
        "atari": ("demo.atari",),
        "minecraft": ("demo.minecraft",),
        "procgen": ("demo.procgen",),
    }[cfg.benchmark_name]
    if demos.format not in expected:
        message = f"{path}: unsupported: a file of {demos.format}; the task is one of {cfg.benchmark_name}"
        raise FormatError(message, kind="unsupported", source=path)
    if cfg.benchmark_name == "minecraft" and "obs" not in demos.layout.names:
        message = (
            f"{path}: missing: no pictures; recording.mp4 must lie beside it, and PyAV be installed (pip install av)"
        )
        raise FormatError(message, kind="missing", source=path)
    return demos


def _columns(demos: Demos, index: int) -> Arrays:
    """The fields of one trajectory, contiguous; views under the names that the originals have."""
    records = demos[index]
    arrays: Arrays = {
        name.replace(".", "_"): np.ascontiguousarray(records[name]) for name in demos.layout.names if name
    }
    infos = demos.extras(index).get("infos")
    if infos is not None and len(infos) == len(records):
        arrays["infos"] = np.fromiter(infos, dtype=object, count=len(infos))
    return arrays


def _check_names(cfg: EnvConfig, names: Mapping[str, str]) -> None:
    """All files of MAGICAL must be of one environment, and of the task's kind."""
    if len(names) > 1:
        (one, first), (two, second), *_ = names.items()
        raise ConfigError(f"{first} is of `{one}`, {second} of `{two}`: one task cannot hold both", field="env_data")
    for name, path in names.items():
        if name.split("-")[0] != cfg.task_name.split("-")[0]:
            raise ConfigError(f"{path} is of `{name}`; the task is `{cfg.task_name}`", field="env_cfg.task_name")
