"""Episodes -> `main_data.hdf5`, one group for each."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from gristmill.demos.minari.catalogue import HDF5
from gristmill.demos.minari.episodes import Episode
from gristmill.demos.minari.pictures import encoded, is_jpeg_space
from gristmill.demos.spaces import Leaf
from gristmill.errors import ConfigError
from gristmill.options.optional import optional
from gristmill.safe_pickle import Instance

#: Arrays from this size on are compressed.
_WORTH_IT = 1 << 14


class Hdf5Writer:
    """The file that is being written in a folder.

    Raises:
        MissingPackageError: h5py is not installed.
    """

    def __init__(self, folder: str, spaces: tuple[Instance, Instance], jpeg: bool) -> None:
        self._h5py = optional("h5py", "minari")
        self._spaces, self._jpeg = spaces, jpeg
        self._file = self._h5py.File(os.path.join(folder, HDF5), "w", track_order=True)

    def write(self, number: int, episode: Episode, about: Mapping[str, Any]) -> None:
        """Adds an episode.

        Raises:
            ConfigError: a name that HDF5 takes for a path, or an option that it cannot hold.
        """
        group = self._file.create_group(f"episode_{number}")
        attributes = {"id": number, "total_steps": len(episode.rewards), **about, **_flat(episode.begun)}
        for name, value in attributes.items():
            try:
                group.attrs[name] = value
            except (TypeError, ValueError) as error:
                raise ConfigError(f"episode {number}: `{name}`: HDF5 cannot hold {value!r}: {error}") from error
        for head, values, space in (
            ("observations", episode.observations, self._spaces[0]),
            ("actions", episode.actions, self._spaces[1]),
        ):
            for leaf, array in values.items():
                self._leaf(group, head, leaf, array, space)
        self._array(group, "rewards", episode.rewards)
        self._array(group, "terminations", episode.terminations)
        self._array(group, "truncations", episode.truncations)
        self._infos(group.create_group("infos"), episode.infos)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _leaf(self, group: Any, head: str, leaf: Leaf, values: Any, space: Instance) -> None:
        *above, name = (head, *(part if isinstance(part, str) else f"_index_{part}" for part in leaf.path))
        for part in above:
            group = group.require_group(_plain(part))
        if self._jpeg and is_jpeg_space(space, leaf):
            files = [np.frombuffer(file, np.uint8) for file in encoded(values)]
            # A plain array where all have one length, as Minari itself makes of them.
            if len({len(file) for file in files}) == 1:
                self._array(group, name, np.stack(files))
                return
            held = group.create_dataset(_plain(name), (len(files),), dtype=self._h5py.vlen_dtype(np.uint8))
            for row, file in enumerate(files):
                held[row] = file
        else:
            self._array(group, name, values)

    def _infos(self, group: Any, infos: Mapping[str, Any]) -> None:
        for name, values in infos.items():
            if isinstance(values, Mapping):
                self._infos(group.create_group(_plain(name)), values)
            else:
                self._array(group, name, values)

    def _array(self, group: Any, name: str, values: Any) -> None:
        """An array, or a list of texts."""
        if isinstance(values, list):
            group.create_dataset(_plain(name), data=values, dtype=self._h5py.string_dtype())
        elif values.nbytes < _WORTH_IT:
            group.create_dataset(_plain(name), data=values)
        else:
            chunk = (max(1, min(len(values), (1 << 20) * len(values) // values.nbytes)), *values.shape[1:])
            group.create_dataset(_plain(name), data=values, chunks=chunk, compression="gzip", compression_opts=4)


def _flat(begun: Mapping[str, Any]) -> dict[str, Any]:
    """`seed` as it is, options by their path: attributes have no structure."""
    found: dict[str, Any] = {}
    for name, value in begun.items():
        if isinstance(value, Mapping):
            found.update({f"{name}/{inner}": one for inner, one in _flat(value).items()})
        elif value is not None:
            found[name] = value
    return found


def _plain(name: str) -> str:
    if not name or name == "." or "/" in name:
        raise ConfigError(f"a field called {name!r}: HDF5 takes it for a path; write Arrow", field=name)
    return name
