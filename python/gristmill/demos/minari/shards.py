"""Demonstrations of any form -> shards: every value, under names that members of a tar can have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gristmill.demos.minari.guessed import space_of_values
from gristmill.demos.minari.source import MinariDemos
from gristmill.demos.source import Demos
from gristmill.demos.spaces import described, leaves
from gristmill.demos.writer import LEVEL, Members, ShardWriter, write_frames
from gristmill.errors import ConfigError, FormatError

if TYPE_CHECKING:
    from gristmill.packs.trajectories import Trajectories

#: What readers of shards make of members' names, and writers make again.
_MADE_BY_READERS = ("", "frame", "__key__")


def write_shards(
    path: str | os.PathLike[str],
    demos: MinariDemos | Demos | Trajectories,
    *,
    observation_space: Any = None,
    action_space: Any = None,
    color_space: str | None = None,
    max_frames: int | None = None,
    level: int = LEVEL,
    members: Members = "pickle",
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Path]:
    """Writes demonstrations of Minari, or whatever `gristmill.open` gives, as shards: all at the end, or none.

    Parts of dictionaries and tuples are fields of their own: `obs.image` is `obs_image`. `terminated` and `truncated`
    stand beside `dones`; `infos` is what the environment said after the step, `reset` in the first frame of an episode
    how it began. What a Minari data set says about itself is `env_cfg["minari"]`; what native files say, such as
    `env_name`, is in `env_cfg` too.

    Args:
        path: `X.tar.zst` or `X.tar`, as for `write_frames`.
        demos: the demonstrations: of Minari, shards, a native file, a pack or a selection of it.
        observation_space: a space of Gymnasium or Gym, or one read from a file; by default that of the data, or where
            they have none (native files) one that is found from the values.
        action_space: likewise.
        color_space: `RGB` or `GRAY`; by default that of the data, else `RGB`.
        max_frames: frames after which the next episode begins a new shard.
        level: of Zstandard, 1 to 22.
        members: how values are written, as for `write_frames`.
        overwrite: replace shards of this name.
        dry_run: read everything, see whether the shards could be written, and write nothing.
        progress: called with episodes done and all.

    Returns:
        The paths of the shards; none of a dry run.

    Raises:
        OSError: the folder cannot be written, or shards of the name exist (`FileExistsError`).
        ConfigError: the name has another ending, or two fields would have the same name.
        FormatError: an episode is damaged; it says where.
    """
    if len(demos.games) == 0:
        raise FormatError(f"{demos.path}: empty: there is no trajectory in it", kind="empty", source=demos.path)
    given = {"observation_space": observation_space, "action_space": action_space}
    meta = _metadata(demos, {key: space for key, space in given.items() if space is not None})
    if color_space is not None:
        meta["color_space"] = color_space
    frames = _frames(demos, meta, progress)
    options: dict[str, Any] = {"max_frames": max_frames, "level": level, "overwrite": overwrite, "members": members}
    if dry_run:
        ShardWriter(path, meta, **options).abort()
        for _ in frames:
            pass
        return []
    return write_frames(path, meta, frames, **options)


def _metadata(demos: MinariDemos | Demos | Trajectories, given: dict[str, Any]) -> dict[str, Any]:
    """What the shards say about themselves."""
    known = demos.metadata
    spaces = {"observation_space": "obs", "action_space": "acts"}
    meta: dict[str, Any] = {"color_space": known.get("color_space", "GRAY" if demos.format == "demo.atari" else "RGB")}
    for key, head in spaces.items():
        space = given.get(key, known.get(key))
        meta[key] = space_of_values(demos, head) if space is None else described(space)
    if isinstance(known.get("env_cfg"), dict):
        env_cfg = dict(known["env_cfg"])
    else:
        env_cfg = {key: value for key, value in known.items() if key not in (*spaces, "color_space", "minari", "lossy")}
    if "minari" in known:
        about = {key: value for key, value in known["minari"].items() if isinstance(key, str)}
        env_cfg["minari"] = about | ({"lossy": known["lossy"]} if known.get("lossy") else {})
    return {**meta, "env_cfg": env_cfg}


class Flat:
    """Episodes as frames of shards: metadata, and every value under a name that a member of a tar can have."""

    def __init__(self, demos: MinariDemos | Demos | Trajectories, meta: dict[str, Any] | None = None) -> None:
        self._demos = demos
        #: What the shards say about themselves.
        self.meta = _metadata(demos, {}) if meta is None else meta
        self._flat = _names(demos, self.meta)

    def frames(self, index: int) -> Iterator[dict[str, Any]]:
        """The frames of one episode.

        Raises:
            FormatError: it is damaged, or has a field that not all of its steps have; it says where.
            ConfigError: two fields would have the same name.
        """
        demos = self._demos
        records, extras = demos.games[index], demos.extras(index)
        steps = len(records)
        if isinstance(demos, MinariDemos):
            extras.setdefault("infos", [{}] * steps)
        values: dict[str, Any] = {name: records[name] for name in demos.layout.names if name not in _MADE_BY_READERS}
        for name, beside in extras.items():
            if name in _MADE_BY_READERS or not beside:
                continue
            if len(beside) != steps:
                says = f"`{name}` of {len(beside)} of {steps} steps; a shard has every field in every frame"
                message = f"{demos.path}: trajectory {index}: unsupported: {says}"
                raise FormatError(message, kind="unsupported", source=demos.path, chunk=index)
            values[name] = beside
        named = {self._flat.get(name, name.replace(".", "_")): value for name, value in values.items()}
        if len(named) < len(values):
            raise ConfigError(f"{demos.path}: two fields would be called alike in a shard: {', '.join(values)}")
        return ({name: value[t] for name, value in named.items()} for t in range(steps))


def _frames(
    demos: MinariDemos | Demos | Trajectories, meta: dict[str, Any], progress: Callable[[int, int], object] | None
) -> Iterator[dict[str, Any]]:
    flat = Flat(demos, meta)
    for i in range(len(demos.games)):
        yield from flat.frames(i)
        if progress is not None:
            progress(i + 1, len(demos.games))


def _names(demos: MinariDemos | Demos | Trajectories, meta: dict[str, Any]) -> dict[str, str]:
    """The names that fields of spaces have in shards, where the fields are called after their spaces."""
    heads = {"obs": "observation_space", "next_obs": "observation_space", "acts": "action_space"}
    named = {leaf.under(head): leaf.flat(head) for head, key in heads.items() for leaf in leaves(meta[key])}
    return {name: flat for name, flat in named.items() if name in demos.layout.names or isinstance(demos, MinariDemos)}
