"""Minari data sets -> shards of them that are there for as long as something is made of these, such as a pack."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gristmill.demos.minari.catalogue import data_folder
from gristmill.demos.minari.shards import write_shards
from gristmill.demos.minari.source import open_minari
from gristmill.errors import ConfigError
from gristmill.jobs.publish import beside, hidden_folder

#: What Minari keeps beside its data sets, and what is none of them.
_BESIDE = "namespace_metadata.json"


def data_sets(folder: str) -> list[str]:
    """The Minari data sets at or below a folder, in order of name; none where something else lies there.

    Raises:
        ConfigError: other files lie among them, which would be passed over.
    """
    if data_folder(folder) is not None:
        return [folder]
    found: list[str] = []
    other: str | None = None
    for path, folders, names in os.walk(folder):
        folders.sort()
        if path != folder and data_folder(path) is not None:
            found.append(path)
            folders.clear()
        else:
            more = (os.path.join(path, name) for name in names if name != _BESIDE and not name.startswith("."))
            other = other or next(more, None)
    if found and other:
        message = f"{folder} holds Minari data sets and other files, such as {other}; pack them apart"
        raise ConfigError(message, field="input")
    return found


@contextmanager
def as_shards(folder: str, pack: str, progress: Callable[[int, int], object] | None = None) -> Iterator[str | None]:
    """The Minari data sets at or below `folder` as plain shards beside `pack`, in a folder of the same name.

    Each data set is a folder in it. `None` where there are no data sets. What a killed process left is removed.

    Raises:
        OSError: they cannot be read, or the shards not be written.
        ConfigError: as `data_sets`.
        FormatError: an episode is damaged; it says where.
    """
    sets = data_sets(folder)
    if not sets:
        yield None
        return
    made = Path(beside(pack, "shards"))
    with hidden_folder(str(made)):
        root = made / os.path.basename(os.path.abspath(folder))
        for path in sets:
            below = os.path.relpath(path, folder)
            to = root / (root.name if below == "." else below)
            to.mkdir(parents=True)
            write_shards(to / "demos.tar", open_minari(path), progress=progress)
        yield str(root)
