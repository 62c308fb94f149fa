"""A Minari data set -> shards: every value, under names that members of a tar can have."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from gristmill.demos.minari.source import MinariDemos
from gristmill.demos.spaces import leaves
from gristmill.demos.writer import LEVEL, ShardWriter, write_frames


def write_shards(
    path: str | os.PathLike[str],
    demos: MinariDemos,
    *,
    max_frames: int | None = None,
    level: int = LEVEL,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> list[Path]:
    """Writes a Minari data set as shards; all are there at the end, or none.

    Parts of dictionaries and tuples are fields of their own: `obs.image` is `obs_image`. `terminated` and `truncated`
    stand beside `dones`; `infos` is what the environment said after the step, `reset` in the first frame of an episode
    how it began. What the data set says about itself is `env_cfg["minari"]`.

    Args:
        path: `X.tar.zst` or `X.tar`, as for `write_frames`.
        demos: the data set.
        max_frames: frames after which the next episode begins a new shard.
        level: of Zstandard, 1 to 22.
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
    metadata = demos.metadata
    about = {key: value for key, value in metadata["minari"].items() if isinstance(key, str)}
    lossy = {"lossy": metadata["lossy"]} if metadata["lossy"] else {}
    meta = {**metadata, "env_cfg": {**metadata["env_cfg"], "minari": about | lossy}}
    frames = _frames(demos, progress)
    if dry_run:
        ShardWriter(path, meta, max_frames=max_frames, level=level, overwrite=overwrite).abort()
        for _ in frames:
            pass
        return []
    return write_frames(path, meta, frames, max_frames=max_frames, level=level, overwrite=overwrite)


def _frames(demos: MinariDemos, progress: Callable[[int, int], object] | None) -> Iterator[dict[str, Any]]:
    heads = {"obs": "observation_space", "next_obs": "observation_space", "acts": "action_space"}
    flat = {leaf.under(head): leaf.flat(head) for head, key in heads.items() for leaf in leaves(demos.metadata[key])}
    for i in range(len(demos)):
        records, extras = demos[i], demos.extras(i)
        extras.setdefault("infos", [{}] * len(records))
        values = {name: records[name] for name in demos.layout.names} | extras
        named = {flat.get(name, name): value for name, value in values.items()}
        for t in range(len(records)):
            yield {name: value[t] for name, value in named.items()}
        if progress is not None:
            progress(i + 1, len(demos))
