"""Opening one file of demonstrations, or a folder of shards: trajectories, what travels beside them, metadata."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Any, Self, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill, safe_pickle
from gristmill.demos.selected import Selected
from gristmill.demos.video import frames_beside
from gristmill.options.arguments import named
from gristmill.packs.again import open_again
from gristmill.packs.source import Source
from gristmill.records.arrays import Array
from gristmill.stores import absolute


class Demos(Source):
    """A sequence of trajectories; each is a structured array with one record per step: `obs`, `acts`, `dones`, ...

    `demos[3]` is one of them, `demos[0:5]` five of them that loaders take like the whole.
    """

    _compiled: _gristmill.Demos
    #: What it was opened with, where `open_demos` did.
    _options: dict[str, Any] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        """The place of the file or folder, and how it is read: another process opens it again."""
        if self._options is None:
            raise TypeError("only what was opened from a file or folder can be sent to another process")
        return open_again, (open_demos, absolute(self._path), self._options, (len(self), self.num_frames))

    @property
    def path(self) -> str:
        """The file or folder."""
        return self._path

    @property
    def games(self) -> Self:
        """The trajectories by number, as packs have them: these themselves."""
        return self

    @property
    def lengths(self) -> list[int]:
        """Steps of each trajectory."""
        return [self.frames(i) for i in range(len(self))]

    @overload  # type: ignore[override]
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> Selected: ...
    def __getitem__(self, index: int | slice) -> Array | Selected:
        """One trajectory as a structured array, or some of the trajectories.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: the trajectory is bad; it says where.
        """
        if isinstance(index, slice):
            return Selected(self, range(len(self))[index])
        return self._trajectory(index)

    def _trajectory(self, index: int) -> Array:
        """One trajectory; subclasses that store steps elsewhere override this."""
        return super().__getitem__(index)

    @property
    def metadata(self) -> dict[str, Any]:
        """What the file says about itself: for shards `env_cfg`, `observation_space`, `action_space`, `color_space`."""
        pickled = self._compiled.meta()
        if pickled is None:
            return dict(self._compiled.about())
        found = safe_pickle.loads(pickled)
        return found if isinstance(found, dict) else {}

    def truncated(self, index: int) -> bool:
        """Whether a trajectory was cut (time limit, fragment, end of the data) instead of ended by the environment."""
        return self._compiled.truncated(self._place(index))

    def extras(self, index: int) -> dict[str, list[Any]]:
        """What travels beside the records of a trajectory, one value per step: texts, dictionaries such as `infos`.

        Raises:
            IndexError: there is no such trajectory.
            FormatError: a pickle in it names what is not data.
        """
        place = self._place(index)
        return {name: [plain(kind, data) for _, kind, data in values] for name, values in self._compiled.extras(place)}

    def column(self, name: str) -> npt.NDArray[Any]:
        """One field of all steps of all trajectories; of spilled ones a `numpy.memmap`, of which nothing is loaded.

        Raises:
            FormatError: there is no such field, or it takes more than `max_bytes`.
        """
        return self.columns([name])[name]

    def columns(self, names: Iterable[str]) -> dict[str, npt.NDArray[Any]]:
        """Some fields of all steps by name, as `column` gives them: plain shards are gone through once for all of them.

        Raises:
            FormatError: as of `column`.
        """
        files = {name: self._compiled.column_file(name) for name in names}
        unmapped = [name for name, file in files.items() if file is None]
        found: dict[str, npt.NDArray[Any]] = {}
        for name, memory in zip(unmapped, self._compiled.columns(unmapped), strict=True):
            dtype = self.layout.dtype[name]
            found[name] = Array.over(memory, (self.num_frames, *dtype.shape), dtype.base)
        return {name: found[name] if file is None else np.load(file, mmap_mode="r") for name, file in files.items()}


def plain(kind: str, data: bytes) -> Any:
    """A value that travels beside records, of the kind that the engine calls it."""
    if kind == "pickle":
        return safe_pickle.loads(data, copy=True)
    if kind == "json":
        return json.loads(data)
    return data.decode() if kind == "text" else data


@named
def open_demos(
    path: str | os.PathLike[str],
    *,
    compat: bool = False,
    magical_preproc: str = "",
    remove_null_actions: bool = False,
    frame_stack: int = 1,
    max_bytes: int = 2 << 30,
    columns: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    strict: bool = True,
) -> Demos:
    """Opens a file of demonstrations in any form, or a folder of shards.

    Of plain shards (`.tar`) opening reads the headers once, and nothing when the side index knows them; their
    trajectories are read where they lie. Everything else is read whole, unless it is spilled.

    Args:
        path: the file or folder.
        compat: native forms as the loaders of the originals had them, faults included.
        magical_preproc: what is made of MAGICAL's two views, such as `"LoResCHW4E"`; empty leaves them as they are.
        remove_null_actions: leave out the steps of MAGICAL whose action is 0.
        frame_stack: frames in a stack of dm_control and Procgen.
        max_bytes: how much may be held in memory: of what is read whole all of it, of other data one field.
        columns: a folder for data that is larger: each field becomes a `.npy` file in a folder of its own there,
            written in bounded memory and used again as long as the source is unchanged.
        index: folder of the side index; `"off"` for none, by default `gristmill` in the user's cache.
        strict: refuse a tar with anything after its end mark, which is lost (tars that were joined, a header of
            zeros). `False` reads what lies before, as other readers of tars do; `gristmill verify` tells what is there.

    Raises:
        OSError: it cannot be read, or the folder not written.
        FormatError: it is no demonstration, or is damaged; it says where.
    """
    name = _gristmill.resolved_place(path)
    pov = frames_beside(name, max_bytes)
    video = None if pov is None else (list(pov.shape), np.ascontiguousarray(pov).reshape(-1))
    compiled = _gristmill.open_demos(
        name,
        compat,
        magical_preproc,
        remove_null_actions,
        frame_stack,
        video,
        max_bytes=max_bytes,
        index=index,
        spill=columns,
        strict=strict,
    )
    demos = Demos(name, compiled)
    demos._options = {
        "compat": compat,
        "magical_preproc": magical_preproc,
        "remove_null_actions": remove_null_actions,
        "frame_stack": frame_stack,
        "max_bytes": max_bytes,
        "columns": None if columns is None else os.path.abspath(columns),
        "index": index,
    }
    return demos
