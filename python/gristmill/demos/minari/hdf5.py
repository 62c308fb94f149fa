"""Episodes of a Minari data set in one HDF5 file. Opening reads attributes; a field is read at its first use."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.catalogue import DAMAGE, HDF5, Catalogue, of_files, refused
from gristmill.demos.minari.pictures import decoded
from gristmill.demos.spaces import Leaf
from gristmill.errors import GristmillError
from gristmill.options.optional import optional

#: Maximum number of bytes of one field of one episode.
MAX_BYTES = 1 << 33

#: Maximum number of that the filters of HDF5 make of a byte.
_MAX_RATIO = 1032

_T = TypeVar("_T")


class Hdf5Episodes:
    """The groups `episode_<i>` of `main_data.hdf5`.

    Raises:
        MissingPackageError: h5py is not installed.
        FormatError: the file is damaged, or episodes are missing.
    """

    def __init__(self, catalogue: Catalogue) -> None:
        self._h5py = optional("h5py", "minari")
        self._path = os.path.join(catalogue.folder, HDF5)
        if not os.path.exists(self._path):
            raise refused(self._path, "there is no such file", kind="missing")
        self._file: Any = None
        self._process = -1
        groups = self._of(None, None, lambda: [name for name in self._open() if name.startswith("episode_")])
        if len(groups) != catalogue.episodes:
            says = f"{len(groups)} episodes; `total_episodes` of metadata.json is {catalogue.episodes}"
            raise refused(self._path, says, kind="wrong_size")
        #: Steps of each episode.
        self.lengths = [self._steps(i) for i in range(catalogue.episodes)]

    def file(self, episode: int) -> str:
        """Path of the file that holds an episode."""
        return self._path

    @of_files("HDF5")
    def stored(self, episode: int, head: str, leaf: Leaf) -> tuple[np.dtype[Any] | None, bool]:
        """Element type of a field as it is stored, `None` for texts; and whether it is pictures in JPEG."""
        field = _field(head, leaf)
        dataset = self._dataset(episode, field)
        if leaf.dtype is None:
            return None, False
        if self._is_jpeg(dataset, leaf):
            return np.dtype(np.uint8), True
        if dataset.dtype.kind not in "biuf":
            raise refused(self._path, f"elements of type {dataset.dtype}", episode=episode, field=field)
        return dataset.dtype.newbyteorder("<"), False

    @of_files("HDF5")
    def values(self, episode: int, head: str, leaf: Leaf, rows: int) -> Any:
        """The values of a field: an array (rows, ...), or a list of texts."""
        field = _field(head, leaf)
        dataset = self._dataset(episode, field, rows)
        if leaf.dtype is None:
            return self._texts(dataset, episode, field)
        if self._is_jpeg(dataset, leaf):
            frames = self._of(episode, field, lambda: list(dataset[()]))
            place = (self._path, episode, field)
            return decoded((np.asarray(frame, np.uint8).tobytes() for frame in frames), rows, leaf.shape, place)
        if dataset.shape[1:] != leaf.shape:
            says = f"shape {dataset.shape}; expected {(rows, *leaf.shape)}, as the space says"
            raise refused(self._path, says, episode=episode, field=field, kind="wrong_size")
        return self._array(dataset, episode, field)

    @of_files("HDF5")
    def flags(self, episode: int, name: str, rows: int) -> npt.NDArray[Any]:
        """`rewards`, `terminations` or `truncations` of an episode."""
        dataset = self._dataset(episode, name, rows)
        if dataset.shape != (rows,):
            says = f"shape {dataset.shape}; expected {(rows,)}"
            raise refused(self._path, says, episode=episode, field=name, kind="wrong_size")
        return self._array(dataset, episode, name)

    @of_files("HDF5")
    def infos(self, episode: int) -> dict[str, Any]:
        """The infos, arrays and lists of texts by name at every depth; empty where none were recorded."""
        group = self._group(episode)
        if "infos" not in group:
            return {}
        return self._infos(self._member(group, "infos", episode, "infos"), episode, "infos")

    @of_files("HDF5")
    def begun(self, episode: int) -> dict[str, Any]:
        """How an episode was reset: `seed` and `options`, where they were recorded."""
        attributes = self._of(episode, None, lambda: dict(self._group(episode).attrs))
        found: dict[str, Any] = {}
        if "seed" in attributes and np.ndim(attributes["seed"]) == 0:
            found["seed"] = attributes["seed"].item() if hasattr(attributes["seed"], "item") else attributes["seed"]
        for name, value in attributes.items():
            first, *rest = name.split("/")
            if first == "options" and rest:
                inner = found.setdefault("options", {})
                for part in rest[:-1]:
                    inner = inner.setdefault(part, {})
                inner[rest[-1]] = value.item() if isinstance(value, np.generic) else value
        return found

    def _open(self) -> Any:
        """The file; reopened in a process that was forked."""
        if self._file is None or self._process != os.getpid():
            self._file, self._process = self._h5py.File(self._path, "r"), os.getpid()
        return self._file

    def _of(self, episode: int | None, field: str | None, read: Callable[[], _T]) -> _T:
        """What `read` gives; what HDF5 says against it, with its place."""
        try:
            return read()
        except GristmillError:
            raise
        except DAMAGE as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise
            kind = "truncated" if "truncated" in str(error) else "corrupt"
            raise refused(self._path, f"HDF5: {error}", episode=episode, field=field, kind=kind) from error

    def _group(self, episode: int) -> Any:
        name = f"episode_{episode}"
        group = self._of(episode, None, lambda: self._member(self._open(), name, episode, None))
        if not isinstance(group, self._h5py.Group):
            raise refused(self._path, f"`{name}` is no group", episode=episode)
        return group

    def _member(self, group: Any, name: str, episode: int, field: str | None) -> Any:
        """A member of a group that lies in this file; links to others are not followed."""
        link = group.get(name, getlink=True)
        if link is None:
            raise refused(self._path, "missing", episode=episode, field=field or name, kind="missing")
        if not isinstance(link, self._h5py.HardLink):
            says = "a link to another place; expected the data themselves"
            raise refused(self._path, says, episode=episode, field=field or name, kind="forbidden")
        return group[name]

    @of_files("HDF5")
    def _steps(self, episode: int) -> int:
        steps = self._of(episode, None, lambda: self._group(episode).attrs.get("total_steps"))
        if np.ndim(steps) != 0 or np.asarray(steps).dtype.kind not in "iu" or not 0 < int(steps) < 1 << 48:
            says = f"expected a number from 1 on, found {steps!r}"
            raise refused(self._path, says, episode=episode, field="total_steps")
        # The file really has that many: callers allocate arrays of that length.
        self._dataset(episode, "rewards", int(steps))
        return int(steps)

    def _dataset(self, episode: int, field: str, rows: int | None = None) -> Any:
        """A data set of an episode, whose bytes are really there; with `rows`, of that length."""
        found = self._group(episode)
        for part in field.split("/"):
            if not isinstance(found, self._h5py.Group):
                raise refused(self._path, "missing", episode=episode, field=field, kind="missing")
            group = found
            found = self._of(episode, field, partial(self._member, group, part, episode, field))
        self._check(found, episode, field)
        if rows is not None and (not found.shape or found.shape[0] != rows):
            says = f"shape {found.shape}; expected {rows} rows"
            raise refused(self._path, says, episode=episode, field=field, kind="wrong_size")
        return found

    def _check(self, dataset: Any, episode: int, field: str) -> None:
        if not isinstance(dataset, self._h5py.Dataset) or dataset.shape is None:
            raise refused(self._path, "expected an array", episode=episode, field=field)
        if dataset.is_virtual or dataset.external:
            says = "its data lie in another file"
            raise refused(self._path, says, episode=episode, field=field, kind="forbidden")
        held = self._of(episode, field, dataset.id.get_storage_size)
        if dataset.nbytes > MAX_BYTES or dataset.nbytes > _MAX_RATIO * held:
            says = f"{dataset.nbytes} bytes, of which the file holds {held}"
            raise refused(self._path, says, episode=episode, field=field, kind="too_large")

    def _is_jpeg(self, dataset: Any, leaf: Leaf) -> bool:
        if len(leaf.shape) not in (2, 3) or leaf.dtype != np.uint8:
            return False
        of_bytes = self._h5py.check_vlen_dtype(dataset.dtype) == np.uint8
        return bool(of_bytes or (dataset.dtype == np.uint8 and dataset.ndim == 2))

    def _array(self, dataset: Any, episode: int, field: str) -> npt.NDArray[Any]:
        if dataset.dtype.kind not in "biuf":
            raise refused(self._path, f"elements of type {dataset.dtype}", episode=episode, field=field)
        return np.asarray(self._of(episode, field, lambda: dataset[()]))

    def _texts(self, dataset: Any, episode: int, field: str) -> list[str]:
        if self._h5py.check_string_dtype(dataset.dtype) is None or dataset.ndim != 1:
            raise refused(self._path, f"elements of type {dataset.dtype}; expected texts", episode=episode, field=field)
        return self._of(episode, field, lambda: [text.decode() for text in dataset[()]])

    def _infos(self, group: Any, episode: int, field: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if not isinstance(group, self._h5py.Group):
            raise refused(self._path, "no group", episode=episode, field=field)
        for name in self._of(episode, field, lambda: list(group)):
            at = f"{field}/{name}"
            member = self._of(episode, at, partial(self._member, group, name, episode, at))
            if isinstance(member, self._h5py.Group):
                found[name] = self._infos(member, episode, at)
                continue
            self._check(member, episode, at)
            if self._h5py.check_string_dtype(member.dtype) is not None:
                found[name] = self._texts(member, episode, at)
            elif self._h5py.check_vlen_dtype(member.dtype) is not None:
                found[name] = self._of(episode, at, partial(_rows, member))
            else:
                found[name] = self._array(member, episode, at)
        return found


def _rows(dataset: Any) -> list[Any]:
    """Rows of different lengths."""
    return list(dataset[()])


def _field(head: str, leaf: Leaf) -> str:
    """Where a field is stored: parts of tuples are called `_index_<i>`."""
    return "/".join((head, *(part if isinstance(part, str) else f"_index_{part}" for part in leaf.path)))
