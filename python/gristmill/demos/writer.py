"""Writing shards: metadata, then frames, in files that older readers and `webdataset` read as well."""

from __future__ import annotations

import os
import pickle
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np

from gristmill import _gristmill
from gristmill.demos.spaces import described
from gristmill.envs.config import BENCHMARKS, EnvConfig
from gristmill.errors import ConfigError, FormatError
from gristmill.jobs.publish import newest
from gristmill.options.arguments import named
from gristmill.safe_pickle import Instance

if TYPE_CHECKING:
    from pathlib import Path

#: How values are written: as pickles, or arrays as `.npy` and everything else as `.json`.
Members: TypeAlias = Literal["pickle", "npy"]

#: Zstandard's level: small files in a time that is bearable.
LEVEL = 12


def get_meta_dict(
    env_cfg: EnvConfig | Mapping[str, Any], observation_space: Any, action_space: Any, color_space: str | None = None
) -> dict[str, Any]:
    """The metadata of a shard; no environment is made for it.

    Args:
        env_cfg: the configuration that is kept in the shard.
        observation_space: a space of Gymnasium or Gym, or one read from a file (`demos.spaces`).
        action_space: likewise.
        color_space: `RGB` or `GRAY`; by default what the benchmark has.
    """
    cfg = env_cfg if isinstance(env_cfg, EnvConfig) else EnvConfig.from_dict(env_cfg)
    others = set(BENCHMARKS) - {cfg.benchmark_name}
    kept = {key: value for key, value in cfg.to_dict().items() if not key.startswith(tuple(others))}
    return {
        "env_cfg": kept,
        "action_space": action_space,
        "observation_space": observation_space,
        "color_space": color_space or cfg.color_space,
    }


def write_frames(
    path: str | os.PathLike[str],
    meta: Mapping[str, Any],
    frames: Iterable[Mapping[str, Any]],
    *,
    max_frames: int | None = None,
    level: int = LEVEL,
    overwrite: bool = False,
    members: Members = "pickle",
) -> list[Path]:
    """Writes frames as one shard, or several; all are there at the end, or none.

    Args:
        path: `X.tar.zst` or `X.tar`. With `max_frames` the shards are `X-000000.tar.zst`, `X-000001.tar.zst`, ...
        meta: what `get_meta_dict` gives.
        frames: dictionaries of arrays, numbers, texts and plain containers; a true `dones` ends a trajectory.
        max_frames: frames after which the next trajectory begins a new shard.
        level: of Zstandard, 1 to 22.
        overwrite: replace shards of this name.
        members: `"pickle"`, as older readers of demonstrations expect; or `"npy"` for shards without pickles, which
            Hugging Face's loader and `webdataset` with `WDS_SECURE=1` take: arrays and numbers as `.npy`, bytes as
            `.bin`, everything else as `.json`. Nothing is lost by either.

    Returns:
        The paths of the shards.

    Raises:
        OSError: the folder cannot be written, or shards of the name exist (`FileExistsError`).
        ConfigError: the name has another ending, or the metadata lacks something.
        FormatError: a value is not plain data, a field cannot have its name, or there are no frames.
    """
    options: dict[str, Any] = {"max_frames": max_frames, "level": level, "overwrite": overwrite, "members": members}
    with ShardWriter(path, meta, **options) as writer:
        for frame in frames:
            writer.write(frame)
    return writer.paths


class ShardWriter:
    """Shards that are being written, frame by frame. Leaving `with` publishes them, unless an error is on its way.

    What was written of shards that are never published goes with the writer.
    """

    @named
    def __init__(
        self,
        path: str | os.PathLike[str],
        meta: Mapping[str, Any],
        *,
        max_frames: int | None = None,
        level: int = LEVEL,
        overwrite: bool = False,
        members: Members = "pickle",
    ) -> None:
        for key in ("env_cfg", "action_space", "observation_space", "color_space"):
            if key not in meta:
                raise ConfigError(f"the metadata has no `{key}`; get_meta_dict makes it", field=f"meta.{key}")
        metadata = _gristmill.shard_metadata(
            pickle.dumps(dict(meta["env_cfg"]), 4),
            _made_with(meta["action_space"]),
            _made_with(meta["observation_space"]),
            str(getattr(meta["color_space"], "value", meta["color_space"])),
        )
        self._files = _gristmill.ShardFiles(path, metadata, level, max_frames, overwrite, members)
        #: The paths of the shards, once they are published.
        self.paths: list[Path] = []

    def write(self, frame: Mapping[str, Any]) -> None:
        """Adds a frame; `__key__` and `frame`, which readers add, are left out.

        Raises:
            FormatError: a value is not plain data, or a field cannot have its name.
        """
        fields = [(name, _pickled(name, value)) for name, value in frame.items() if name not in ("__key__", "frame")]
        self._files.frame(fields, bool(np.any(frame.get("dones", False))))

    def close(self) -> None:
        """Publishes the shards."""
        from pathlib import Path

        self.paths = [Path(path) for path in self._files.finish()]
        newest.append(str(self.paths[0]))

    def abort(self) -> None:
        """Gives up what was written."""
        self._files.abort()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()
        else:
            self.abort()


def _pickled(name: str, value: Any) -> bytes:
    """A value as a pickle that every reader knows.

    Raises:
        FormatError: it is not plain data; the message has the field.
    """
    try:
        return _gristmill.plain_pickle(pickle.dumps(np.asarray(value) if isinstance(value, np.ndarray) else value, 4))
    except FormatError as e:
        raise FormatError(f"field `{name}`: {e}", kind=e.kind) from None


def _made_with(space: Any) -> tuple[str, bytes]:
    """Kind of a space, and the pickled dictionary that it is made with."""
    kind, values = _parts(described(space))
    return kind, pickle.dumps(values, 4)


def _parts(space: Instance) -> tuple[str, dict[str, Any]]:
    """Kind of a described space and what it is made with, without defaults that older classes do not know."""
    values = dict(space.state)
    if not np.any(values.get("start", 1)):
        del values["start"]
    if space.kind == "Dict":
        values["spaces"] = {name: _parts(one) for name, one in values["spaces"].items()}
    elif space.kind == "Tuple":
        values["spaces"] = tuple(_parts(one) for one in values["spaces"])
    elif space.kind == "Text" and not values["charset"]:
        del values["charset"]
    return space.kind, values
