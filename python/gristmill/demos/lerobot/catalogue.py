"""`meta/` of a LeRobot data set: found, read, checked. Nothing of the steps is read."""

from __future__ import annotations

import math
import os
import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from gristmill.demos.lerobot.listed import listed_in_lines, listed_in_parquet, tasks_in_lines, tasks_in_parquet
from gristmill.demos.minari.catalogue import read_json, refused

#: The file by which a data set is known.
INFO = os.path.join("meta", "info.json")

#: Maximum number of features, and of the bytes of one in a step.
_MAX_FEATURES = 1 << 12
_MAX_STEP = 1 << 31

#: Where files lie, unless `info.json` says it.
_PATHS = {
    2: (
        "data/chunk-{episode_chunk:03d}/episode_{episode_index:06d}.parquet",
        "videos/chunk-{episode_chunk:03d}/{video_key}/episode_{episode_index:06d}.mp4",
    ),
    3: (
        "data/chunk-{chunk_index:03d}/file-{file_index:03d}.parquet",
        "videos/{video_key}/chunk-{chunk_index:03d}/file-{file_index:03d}.mp4",
    ),
}

#: Features that say which step a row is, of which task, or whether it is the last.
_ONE_NUMBER = ("timestamp", "frame_index", "episode_index", "index", "task_index", "next.done")

#: Names of the axis of colours.
_CHANNELS = ("channels", "channel", "c")


class Feature(NamedTuple):
    """A column or a video, as `info.json` has it."""

    name: str
    #: `numbers`, `image`, `video` or `text`.
    sort: str
    dtype: np.dtype[Any]
    #: Of a step; pictures are (channels, height, width) whatever order `info.json` has, and one number is ().
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        """Bytes of a step."""
        return self.dtype.itemsize * math.prod(self.shape)


class Clip(NamedTuple):
    """The part of a video that is of one episode."""

    file: str
    #: Seconds in the video at which it begins.
    start: float
    #: No other episode follows in the file.
    last: bool


class Part(NamedTuple):
    """Where an episode lies."""

    #: The Parquet file, and the first row of the episode in it.
    file: str
    first_row: int
    #: Steps of all episodes before.
    first: int
    clips: dict[str, Clip]


@dataclass
class Catalogue:
    """What a data set says about itself."""

    folder: str
    #: `v2.1`, `v3.0`, ...
    version: str
    fps: float
    features: dict[str, Feature]
    #: Steps of each episode, and where they lie.
    lengths: list[int]
    parts: list[Part]
    #: Rows that each Parquet file has.
    rows: dict[str, int]
    #: Texts of the tasks by their number.
    tasks: list[str]
    #: All of `info.json`, as it is.
    info: dict[str, Any]
    #: Files of `meta/` that were read.
    read: list[str]

    @property
    def file(self) -> str:
        """Path of `info.json`."""
        return os.path.join(self.folder, INFO)

    def files(self) -> list[str]:
        """All files of the data set."""
        videos = (clip.file for part in self.parts for clip in part.clips.values())
        return [*self.read, *dict.fromkeys(self.rows), *dict.fromkeys(videos)]


def data_set(path: str) -> str | None:
    """The folder of the data set that lies at a path, or of which it is `meta/info.json`; `None` for others."""
    if os.path.isfile(os.path.join(path, INFO)):
        return path
    if path.endswith(INFO) and os.path.isfile(path):
        return path.removesuffix(INFO) or "."
    return None


def read_catalogue(folder: str) -> Catalogue:
    """What lies in `meta/` of a data set.

    Raises:
        OSError: it cannot be read.
        MissingPackageError: version 3 needs pyarrow.
        FormatError: a key is missing or has a value that cannot be, or files contradict `info.json`; it names them.
    """
    path = os.path.join(folder, INFO)
    info = read_json(path)
    version = info.get("codebase_version")
    found = re.fullmatch(r"v([23])\.\d{1,4}(\.\d{1,4})?", version) if isinstance(version, str) else None
    if found is None:
        says = f"`codebase_version` is {version!r}; expected v2.0, v2.1 or v3, which LeRobot makes of older ones"
        raise refused(path, says, kind="unsupported")
    major, fps = int(found[1]), info.get("fps")
    if not isinstance(fps, int | float) or isinstance(fps, bool) or not 0 < fps < 1e6:
        raise refused(path, f"`fps` is {fps!r}; expected frames of a second")
    features = _features(path, info.get("features"))
    videos = [name for name, feature in features.items() if feature.sort == "video"]
    if major == 2:
        chunk = _count(path, info, "chunks_size", 1000, least=1)
        listed, files = listed_in_lines(folder, chunk, videos)
        tasks, tasks_file = tasks_in_lines(folder)
    else:
        listed, files = listed_in_parquet(folder, float(fps), videos)
        tasks, tasks_file = tasks_in_parquet(folder)
    places = [info.get(key) or usual for key, usual in zip(("data_path", "video_path"), _PATHS[major], strict=True)]
    lengths, parts, rows, sure = [], [], dict[str, int](), dict[tuple[str, str], int]()
    first = 0
    for number, one in enumerate(listed):
        if one.first not in (None, first):
            says = f"`dataset_from_index` is {one.first}; the episodes before have {first} steps"
            raise refused(one.file, says, episode=number, kind="wrong_size")
        file = _place(path, folder, places[0], one.data)
        clips = {}
        for key, (values, start) in one.videos.items():
            video = _place(path, folder, places[1], {**values, "video_key": key})
            clips[key] = Clip(video, start, False)
            sure[key, video] = number
        lengths.append(one.length)
        parts.append(Part(file, rows.get(file, 0), first, clips))
        rows[file] = rows.get(file, 0) + one.length
        first += one.length
    for (key, _), number in sure.items():
        parts[number].clips[key] = parts[number].clips[key]._replace(last=True)
    counts = (("total_episodes", len(lengths), "episodes"), ("total_frames", first, "steps"))
    for key, there, what in (*counts, ("total_tasks", len(tasks), "tasks")):
        said = _count(path, info, key, there if key == "total_tasks" else None)
        if said != there:
            where = os.path.relpath(tasks_file if what == "tasks" else files[0], folder)
            says = f"`{key}` is {said}; {where} has {there} {what}"
            raise refused(path, says, kind="wrong_size")
    if not lengths:
        raise refused(path, "no episodes", kind="empty")
    read = [path, *files, *([tasks_file] if os.path.exists(tasks_file) else [])]
    return Catalogue(folder, str(version), float(fps), features, lengths, parts, rows, tasks, info, read)


def _count(path: str, info: dict[str, Any], key: str, usual: int | None, least: int = 0) -> int:
    value = info.get(key, usual)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value < 1 << 62:
        raise refused(path, f"`{key}` is {value!r}; expected a number from {least} on")
    return value


def _features(path: str, said: Any) -> dict[str, Feature]:
    if not isinstance(said, dict) or not said:
        raise refused(path, "`features` says which columns there are; expected names with `dtype` and `shape`")
    if len(said) > _MAX_FEATURES:
        raise refused(path, f"{len(said)} features; at most {_MAX_FEATURES} are read", kind="too_large")
    return {name: _feature(path, name, one) for name, one in said.items()}


def _feature(path: str, name: str, said: Any) -> Feature:
    """A feature, checked; no name leads to another folder."""
    field = f"features.{name}"
    dtype, shape = (said.get("dtype"), said.get("shape")) if isinstance(said, dict) else (None, None)
    if not name or "/" in name or "\\" in name or "\0" in name:
        raise refused(path, "expected a name without slashes", field=field)
    if not isinstance(dtype, str) or not isinstance(shape, list | tuple):
        raise refused(path, f"`dtype` {dtype!r} and `shape` {shape!r}; expected a name and a list", field=field)
    if not all(isinstance(one, int) and not isinstance(one, bool) and 0 < one < 1 << 31 for one in shape):
        raise refused(path, f"`shape` {shape}; expected numbers from 1 on", field=field)
    if dtype == "string":
        return Feature(name, "text", np.dtype("O"), ())
    if dtype in ("image", "video"):
        found = Feature(name, dtype, np.dtype(np.uint8), _of_picture(path, field, tuple(shape), said.get("names")))
    else:
        if re.fullmatch(r"bool|float(16|32|64)|u?int(8|16|32|64)", dtype) is None:
            raise refused(path, f"`dtype` {dtype!r}; expected numbers, image, video or string", field=field)
        found = Feature(name, "numbers", np.dtype(dtype), () if tuple(shape) == (1,) else tuple(shape))
    if name in _ONE_NUMBER and (found.sort, found.shape) != ("numbers", ()):
        raise refused(path, f"{dtype} {list(shape)}; expected one number for each step", field=field)
    if found.bytes > _MAX_STEP:
        says = f"{dtype} {shape}, {found.bytes} bytes for each step; at most {_MAX_STEP} are read"
        raise refused(path, says, field=field, kind="too_large")
    return found


def _of_picture(path: str, field: str, shape: tuple[int, ...], names: Any) -> tuple[int, int, int]:
    """Channels, height and width of pictures: by the names of the axes, else by which could be colours."""
    if len(shape) == 2:
        shape = (*shape, 1)
    if len(shape) == 3:
        first, last = shape[0] in (1, 3, 4), shape[2] in (1, 3, 4)
        if isinstance(names, list) and len(names) == 3 and (names[0] in _CHANNELS or names[2] in _CHANNELS):
            first, last = names[0] in _CHANNELS and first, names[2] in _CHANNELS and last
        if last:
            return shape[2], shape[0], shape[1]
        if first:
            return shape
    raise refused(
        path, f"`shape` {list(shape)}, axes {names}; expected height, width and 1, 3 or 4 channels", field=field
    )


def _place(path: str, folder: str, pattern: Any, values: dict[str, Any]) -> str:
    """A path within the data set: `{name}` or `{name:03d}` stand for values, nothing else does."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise refused(path, f"{pattern!r}: `{found[1]}` is unknown; known are {', '.join(values)}")
        return f"{values[found[1]]:0{int(found[2])}d}" if found[2] else str(values[found[1]])

    if not isinstance(pattern, str) or len(pattern) > 1000:
        raise refused(path, f"expected a path such as {_PATHS[3][0]}, found {pattern!r:.100}")
    made = re.sub(r"\{(\w+)(?::0(\d)d)?\}", value, pattern)
    if os.path.isabs(made) or ".." in made.split("/") or "{" in made or "\0" in made:
        raise refused(path, f"{pattern!r}: expected a path within the data set", kind="forbidden")
    return os.path.join(folder, made)
