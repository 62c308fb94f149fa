"""Files of demonstrations in every form, as their projects write them: real pickles, NumPy archives and tars."""

import gzip
import io
import json
import pickle
import sys
import tarfile
import types
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt


class MAGICALTrajectory(NamedTuple):
    acts: Any
    obs: Any
    rews: Any
    infos: Any


@dataclass
class TrajectoryWithRew:
    obs: Any
    acts: Any
    infos: Any
    rews: Any


@contextmanager
def as_if_in(module: str, cls: type) -> Iterator[None]:
    """For as long as it lasts, `cls` is what `module` calls by its name."""
    parts = module.split(".")
    names = [".".join(parts[: i + 1]) for i in range(len(parts))]
    before, own = {name: sys.modules.get(name) for name in names}, cls.__module__
    for name in names:
        sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[module], cls.__name__, cls)
    cls.__module__ = module
    try:
        yield
    finally:
        cls.__module__ = own
        for name, found in before.items():
            if found is None:
                del sys.modules[name]
            else:
                sys.modules[name] = found


def pictures(rng: np.random.Generator, *shape: int) -> npt.NDArray[np.uint8]:
    return rng.integers(0, 256, shape, dtype=np.uint8)


def write_magical(path: Path, actions: Sequence[int], env_name: str = "MoveToRegion-Demo-v0", side: int = 96) -> Any:
    rng = np.random.default_rng(len(actions))
    views = [(pictures(rng, side, side, 3), pictures(rng, side, side, 3)) for _ in range(len(actions) + 1)]
    infos = [{"eval_score": float(t)} for t in range(len(actions))]
    row = MAGICALTrajectory(
        acts=np.array(actions, dtype=np.int64),
        obs=[OrderedDict(allo=allo, ego=ego) for allo, ego in views],
        rews=[0.5] * len(actions),
        infos=infos,
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    with as_if_in("magical.saved_trajectories", MAGICALTrajectory), gzip.open(path, "wb") as file:
        pickle.dump({"trajectory": row, "score": 0.75, "env_name": env_name}, file, protocol=4)
    return row


def _trajectories(lengths: Sequence[int], shape: tuple[int, ...], limit: bool) -> list[TrajectoryWithRew]:
    rng = np.random.default_rng(sum(lengths))
    made = []
    for i, steps in enumerate(lengths):
        obs = pictures(rng, steps + 1, *shape) if len(shape) == 3 else rng.normal(size=(steps + 1, *shape))
        infos = [{"internal_state": rng.normal(size=3), "discount": 1.0, "at": (i, t)} for t in range(steps)]
        if limit:
            infos[-1]["TimeLimit.truncated"] = True
        acts = rng.normal(size=(steps, 2)).astype(np.float32)
        made.append(TrajectoryWithRew(obs, acts, infos, np.arange(steps) + 10.0 * i))
    return made


def write_dm_control(path: Path, lengths: Sequence[int], protocol: int = 5, limit: bool = True) -> list[Any]:
    made = _trajectories(lengths, (3, 8, 8), limit)
    path.parent.mkdir(parents=True, exist_ok=True)
    with as_if_in("imitation.data.types", TrajectoryWithRew), gzip.open(path, "wb") as file:
        pickle.dump(made, file, protocol=protocol)
    return made


def write_imitation(path: Path, lengths: Sequence[int], actions: int | None = None) -> list[Any]:
    """Trajectories as the `imitation` package pickles them; with `actions` they are discrete ones, of this number."""
    made = _trajectories(lengths, (4,), False)
    if actions is not None:
        for trajectory in made:
            trajectory.acts = np.arange(len(trajectory.acts)) % actions
    with as_if_in("imitation.data.types", TrajectoryWithRew):
        path.write_bytes(pickle.dumps(made, protocol=3))
    return made


def write_atari(path: Path, lengths: Sequence[int]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(1)
    made = [
        {
            "states": list(pictures(rng, steps, 6, 6, 4)),
            "actions": [np.array(a) for a in rng.integers(0, 6, steps)],
            "dones": [np.array(False)] * steps,
        }
        for steps in lengths
    ]
    array = np.empty(len(made), dtype=object)
    array[:] = made
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, array)
    return made


def write_procgen(path: Path, lengths: Sequence[int]) -> dict[str, list[Any]]:
    rng = np.random.default_rng(2)
    made: dict[str, list[Any]] = {"obs": [], "acts": [], "rews": [], "dones": []}
    for steps in lengths:
        made["obs"].append(pictures(rng, steps + 1, 4, 4, 3))
        made["acts"].append(rng.integers(0, 15, steps))
        made["rews"].append(rng.normal(size=steps).astype(np.float32))
        made["dones"].append(np.arange(steps) == steps - 1)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(pickle.dumps(made))
    return made


def write_minecraft(folder: Path, steps: int) -> dict[str, Any]:
    rng = np.random.default_rng(steps)
    folder.mkdir(parents=True, exist_ok=True)
    made = {
        "reward": rng.normal(size=steps).astype(np.float32),
        "observation$vector": rng.normal(size=(steps + 1, 4)),
        "action$vector": rng.normal(size=(steps, 4)),
    }
    arrays: dict[str, Any] = made
    np.savez(folder / "rendered.npz", **arrays)
    return made


def write_wds(path: Path, samples: Sequence[dict[str, bytes]], prefix: str = "frame_") -> None:
    """An ordinary tar of samples: suffix -> bytes."""
    with tarfile.open(path, "w") as tar:
        for i, sample in enumerate(samples):
            for suffix, data in sample.items():
                info = tarfile.TarInfo(f"{prefix}{i:03d}.{suffix}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))


def npy(array: Any) -> bytes:
    out = io.BytesIO()
    np.save(out, np.asarray(array))
    return out.getvalue()


def wds_samples(dones: Sequence[bool], first: int = 0) -> list[dict[str, bytes]]:
    """Samples of a plain WebDataset: arrays as `.npy`, a truth value as JSON, a text."""
    return [
        {
            "obs.npy": npy(np.full((2, 3), first + t, np.uint8)),
            "dones.json": json.dumps(done).encode(),
            "note.txt": b"hi",
        }
        for t, done in enumerate(dones)
    ]
