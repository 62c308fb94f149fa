"""An episode -> an Arrow file: a row for each observation, and filler beside the last one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gristmill.demos.minari.episodes import Episode
from gristmill.demos.minari.pictures import encoded, is_jpeg_space
from gristmill.demos.spaces import Leaf
from gristmill.options.optional import optional
from gristmill.safe_pickle import Instance


def write_arrow(path: str, number: int, episode: Episode, spaces: tuple[Instance, Instance], jpeg: bool) -> None:
    """Writes one episode.

    Raises:
        MissingPackageError: pyarrow is not installed.
        OSError: it cannot be written.
    """
    pa = optional("pyarrow", "minari")
    columns = {
        "observations": _tree(pa, spaces[0], (), episode.observations, 0, jpeg),
        "actions": _tree(pa, spaces[1], (), episode.actions, 1, jpeg),
        "rewards": pa.array(np.pad(episode.rewards, (0, 1))),
        "terminations": pa.array(np.pad(episode.terminations, (0, 1))),
        "truncations": pa.array(np.pad(episode.truncations, (0, 1))),
    }
    if episode.infos:
        columns["infos"] = _infos(pa, episode.infos, len(episode.rewards) + 1)
    batch = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
    options = pa.ipc.IpcWriteOptions(compression="zstd" if pa.Codec.is_available("zstd") else None)
    with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, batch.schema, options=options) as writer:
        writer.write_batch(batch)


def _tree(
    pa: Any, space: Instance, path: tuple[str | int, ...], values: Mapping[Leaf, Any], filler: int, jpeg: bool
) -> Any:
    """The array of a space: structures within each other, a leaf at the end of each path."""
    if space.kind in ("Dict", "Tuple"):
        spaces = space.state["spaces"]
        named = list(spaces.items()) if space.kind == "Dict" else list(enumerate(spaces))
        arrays = [_tree(pa, one, (*path, name), values, filler, jpeg) for name, one in named]
        return pa.StructArray.from_arrays(arrays, names=[str(name) for name, _ in named])
    leaf, array = next((leaf, array) for leaf, array in values.items() if leaf.path == path)
    if leaf.dtype is None:
        return pa.array([*array, *[None] * filler], pa.string())
    if jpeg and is_jpeg_space(space, leaf):
        return pa.array([*encoded(array), *[b""] * filler], pa.binary())
    array = np.pad(array, ((0, filler), *((0, 0),) * len(leaf.shape)))
    return pa.array(array) if leaf.kind == "Discrete" else _lists(pa, array)


def _lists(pa: Any, array: Any) -> Any:
    """Rows of one length, flat."""
    flat = np.ascontiguousarray(array).reshape(len(array), -1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.reshape(-1)), flat.shape[1])


def _infos(pa: Any, infos: Mapping[str, Any], rows: int) -> Any:
    arrays, fields = [], []
    for name, values in infos.items():
        metadata = None
        if isinstance(values, Mapping):
            array = _infos(pa, values, rows)
        elif isinstance(values, list):
            array = pa.array(values, pa.string())
        elif values.ndim == 1:
            array = pa.array(values)
        else:
            array = _lists(pa, values)
            metadata = {"shape": ",".join(map(str, values.shape[1:]))}
        arrays.append(array)
        fields.append(pa.field(name, array.type, metadata=metadata))
    if not arrays:
        return pa.array([{}] * rows, pa.struct([]))
    return pa.StructArray.from_arrays(arrays, fields=fields)
