"""Writing Minari data sets from demonstrations of any form: episode by episode, nothing lost unless it is allowed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from gristmill.demos.minari.arrow_file import write_arrow
from gristmill.demos.minari.catalogue import METADATA, data_folder
from gristmill.demos.minari.episodes import Episode, Episodes
from gristmill.demos.minari.hdf5_file import Hdf5Writer
from gristmill.demos.minari.spaces import to_json
from gristmill.demos.source import Demos
from gristmill.errors import ConfigError
from gristmill.jobs.publish import published_folder

if TYPE_CHECKING:
    from gristmill.packs.trajectories import Trajectories

DataFormat: TypeAlias = Literal["hdf5", "arrow"]

#: The release of Minari whose data sets these are.
VERSION = "0.5.4"

_NAME = re.compile(r"(?:[-\w][-\w/]*[-\w]/)?[-\w]+-v\d+", re.ASCII)


@dataclass
class Written:
    """What was written, or would be."""

    path: str
    dataset_id: str
    data_format: str
    episodes: int
    steps: int
    #: What the data set says that the source did not.
    filled: list[str]
    #: What of the source is left out.
    lost: list[str]


def write(
    path: str | os.PathLike[str],
    demos: Demos | Trajectories,
    *,
    data_format: DataFormat = "hdf5",
    dataset_id: str | None = None,
    observation_space: Any = None,
    action_space: Any = None,
    about: Mapping[str, Any] | None = None,
    jpeg: bool = False,
    lossy: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Written:
    """Writes demonstrations of any form as a Minari data set; it is there whole at the end, or not at all.

    Args:
        path: the folder of the data set, `<root>/<namespace>/<name>-v<N>`.
        demos: what `gristmill.open` gives for them.
        data_format: `hdf5` (needs h5py) or `arrow` (needs pyarrow).
        dataset_id: its id; by default the path below `$MINARI_DATASETS_PATH` or `~/.minari/datasets`, else the
            folder's name.
        observation_space: a space of Gymnasium, or a described one; by default what the metadata say, else one that
            is found from the values.
        action_space: likewise.
        about: more keys of `metadata.json`, such as `author` (a list) or `algorithm_name`.
        jpeg: keep pictures of 32 x 32 or more as JPEG, as Minari does by default. They are not the same afterwards.
        lossy: leave out what has no place in Minari, instead of refusing it.
        overwrite: replace a data set of this name.
        dry_run: read and judge everything, and write nothing.
        progress: called with episodes done and all.

    Raises:
        OSError: the folder cannot be written, or is there already (`FileExistsError`).
        ConfigError: a name or a space that cannot be.
        FormatError: a damaged source; with `lossy` unset, something that has no place in Minari.
        MissingPackageError: h5py, pyarrow or (for `jpeg`) Pillow is not installed.
    """
    output = os.path.abspath(path)
    if data_format not in ("hdf5", "arrow"):
        raise ConfigError(f"`data_format`: {data_format!r}; known are hdf5 and arrow", field="data_format")
    name = dataset_id or _id_of(output)
    if not _NAME.fullmatch(name) or os.path.basename(name) != os.path.basename(output):
        says = "expected [NAMESPACE/]NAME-vN, with NAME-vN as the folder is called"
        raise ConfigError(f"`dataset_id`: {name!r} for {output}; {says}", field="dataset_id")
    if os.path.exists(output) and (os.listdir(output) if os.path.isdir(output) else True):
        if data_folder(output) is None:
            raise FileExistsError(f"{output}: there is something already that is no Minari data set")
        if not overwrite:
            raise FileExistsError(f"{output}: there is a data set already; overwrite=True (--overwrite) replaces it")
    episodes = Episodes(demos, observation_space, action_space, lossy)
    if not len(episodes):
        raise ConfigError(f"{demos.path}: no trajectories", field="demos")
    counts = {"total_episodes": len(episodes), "total_steps": demos.num_frames}
    spaces = {"observation_space": episodes.observation_space, "action_space": episodes.action_space}
    if dry_run:
        for i in range(len(episodes)):
            episodes[i]
            _tell(progress, i + 1, len(episodes))
    else:
        with published_folder(output) as made:
            data = os.path.join(made, "data")
            os.mkdir(data)
            _write_episodes(data, episodes, data_format, jpeg, progress)
            size = sum(os.path.getsize(os.path.join(at, one)) for at, _, names in os.walk(data) for one in names)
            metadata = {
                **_about(demos),
                **(about or {}),
                **counts,
                "data_format": data_format,
                "jpeg_encoding": jpeg,
                **{key: to_json(space) for key, space in spaces.items()},
                "dataset_size": round(size / 1e6, 1),
                "dataset_id": name,
                "minari_version": VERSION,
            }
            write_json(os.path.join(data, METADATA), metadata)
    losses = episodes.losses
    return Written(
        output, name, data_format, counts["total_episodes"], counts["total_steps"], losses.filled, losses.lost
    )


def write_json(path: str, value: Mapping[str, Any]) -> None:
    """Writes a JSON object; numbers and arrays of NumPy become plain ones."""
    with open(path, "w", encoding="utf-8") as file:
        json.dump(value, file, default=lambda one: one.tolist())


def _write_episodes(
    folder: str,
    episodes: Episodes,
    data_format: DataFormat,
    jpeg: bool,
    progress: Callable[[int, int], object] | None,
) -> None:
    spaces = (episodes.observation_space, episodes.action_space)
    if data_format == "hdf5":
        with Hdf5Writer(folder, spaces, jpeg) as writer:
            for i in range(len(episodes)):
                episode = episodes[i]
                writer.write(i, episode, _rewards(episode))
                _tell(progress, i + 1, len(episodes))
        return
    for i in range(len(episodes)):
        episode = episodes[i]
        at = os.path.join(folder, str(i))
        os.mkdir(at)
        write_arrow(os.path.join(at, "part-0.arrow"), i, episode, spaces, jpeg)
        steps = {"id": i, "total_steps": len(episode.rewards)}
        write_json(os.path.join(at, METADATA), {**steps, **episode.begun, **_rewards(episode)})
        _tell(progress, i + 1, len(episodes))


def _rewards(episode: Episode) -> dict[str, float]:
    """What Minari keeps of the rewards of an episode."""
    values = episode.rewards
    found = {"sum": values.sum(), "mean": values.mean(), "std": values.std(), "max": values.max(), "min": values.min()}
    return {f"rewards_{name}": float(value) for name, value in found.items()}


def _tell(progress: Callable[[int, int], object] | None, done: int, all_of_them: int) -> None:
    if progress is not None:
        progress(done, all_of_them)


def _about(demos: Demos | Trajectories) -> dict[str, Any]:
    """What a source that was a Minari data set once said about itself; the id of the environment of any other."""
    metadata = demos.metadata
    config = metadata.get("env_cfg")
    config = config if isinstance(config, dict) else {}
    kept = metadata.get("minari", config.get("minari"))
    if isinstance(kept, dict):
        return dict(kept)
    if config.get("benchmark_name") in ("gymnasium", "atari") and isinstance(config.get("task_name"), str):
        kwargs = config.get("gymnasium_kwargs")
        spec = {"id": config["task_name"], "kwargs": kwargs if isinstance(kwargs, dict) else {}}
        return {"env_spec": json.dumps(_SPEC | spec, default=str)}
    return {}


#: An environment's specification, as Gymnasium reads it.
_SPEC: dict[str, Any] = {
    "id": "",
    "entry_point": None,
    "reward_threshold": None,
    "nondeterministic": False,
    "max_episode_steps": None,
    "order_enforce": True,
    "disable_env_checker": False,
    "kwargs": {},
    "additional_wrappers": [],
    "vector_entry_point": None,
}


def _id_of(output: str) -> str:
    """The id of a data set at this place."""
    root = os.environ.get("MINARI_DATASETS_PATH") or os.path.join(os.path.expanduser("~"), ".minari", "datasets")
    below = os.path.relpath(output, os.path.abspath(root))
    return os.path.basename(output) if below.startswith("..") else below
