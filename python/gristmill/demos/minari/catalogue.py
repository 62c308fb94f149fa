"""`metadata.json` of a Minari data set: found, read, checked. Nothing of the episodes is read."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar

from gristmill.demos.minari.spaces import from_json
from gristmill.demos.spaces import Leaf, leaves
from gristmill.errors import ConfigError, FormatError, GristmillError
from gristmill.safe_pickle import Instance

METADATA = "metadata.json"
HDF5 = "main_data.hdf5"
FORMATS = ("hdf5", "arrow")

#: Maximum number of bytes of a JSON file; bounds of large pictures take some.
MAX_JSON = 1 << 26


#: What h5py and pyarrow raise for files that are not as they should be: errors of every kind.
DAMAGE = (OSError, LookupError, RuntimeError, ValueError, TypeError, AttributeError, ArithmeticError, MemoryError)

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Files(Protocol):
    def file(self, episode: int) -> str: ...


_S = TypeVar("_S", bound=_Files)


def of_files(
    library: str,
) -> Callable[[Callable[Concatenate[_S, int, _P], _T]], Callable[Concatenate[_S, int, _P], _T]]:
    """Makes whatever `library` raises while an episode is read a `FormatError` with the file and the episode.

    What the system says of a file (no permission, a device that fails) stays as it is.
    """

    def wrap(method: Callable[Concatenate[_S, int, _P], _T]) -> Callable[Concatenate[_S, int, _P], _T]:
        @functools.wraps(method)
        def read(self: _S, episode: int, /, *args: _P.args, **named: _P.kwargs) -> _T:
            try:
                return method(self, episode, *args, **named)
            except GristmillError:
                raise
            except Exception as error:
                known = isinstance(error, DAMAGE) or type(error).__module__.startswith(("pyarrow", "h5py"))
                if not known or (isinstance(error, OSError) and error.errno is not None):
                    raise
                raise refused(self.file(episode), f"{library}: {error}", episode=episode) from error

        return read

    return wrap


@dataclass
class Catalogue:
    """What a data set says about itself."""

    #: Folder of `metadata.json` and the data.
    folder: str
    #: `hdf5` or `arrow`.
    data_format: str
    episodes: int
    steps: int
    observation_space: Instance
    action_space: Instance
    #: The other keys, as they are.
    about: dict[str, Any]

    @property
    def file(self) -> str:
        """Path of `metadata.json`."""
        return os.path.join(self.folder, METADATA)

    def leaves(self, head: str) -> list[Leaf]:
        """The arrays of `observations` or `actions`.

        Raises:
            FormatError: two of them have the same name, or one is too large.
        """
        key = "observation_space" if head == "observations" else "action_space"
        try:
            return leaves(self.observation_space if head == "observations" else self.action_space)
        except ConfigError as error:
            raise refused(self.file, f"`{key}`: {error}") from error


def data_folder(path: str) -> str | None:
    """The folder with the data of a data set: `path` is the data set, its `data` or a file of it. `None` for others."""
    folder, name = os.path.split(path)
    if name in (METADATA, HDF5) and os.path.isfile(path):
        return data_folder(folder or ".")
    for one in (os.path.join(path, "data"), path):
        if os.path.isfile(os.path.join(one, HDF5)):
            return one
        try:
            found = read_json(os.path.join(one, METADATA))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            # Any other refusal does not say that there is none.
            continue
        except FormatError:
            # Folders of episodes beside it say that it should have been one.
            if os.path.isdir(os.path.join(one, "0")):
                return one
            continue
        if "data_format" in found or "total_episodes" in found:
            return one
    return None


def read_catalogue(folder: str) -> Catalogue:
    """The metadata of the data set whose data lie in `folder`.

    Raises:
        OSError: it cannot be read.
        FormatError: a key is missing or has a value that cannot be; the message names file and key.
    """
    path = os.path.join(folder, METADATA)
    if not os.path.exists(path):
        raise refused(path, "there is no such file, so nothing says what the data are", kind="missing")
    found = read_json(path)
    counts = []
    for key in ("total_episodes", "total_steps"):
        value = found.pop(key, None)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 62:
            raise refused(path, f"`{key}`: expected a number from 0 on, found {value!r}")
        counts.append(value)
    data_format = found.pop("data_format", "hdf5")
    if data_format not in FORMATS:
        raise refused(path, f"`data_format`: {data_format!r}; known are {', '.join(FORMATS)}", kind="unsupported")
    spaces = []
    for key in ("observation_space", "action_space"):
        text = found.pop(key, None)
        if not isinstance(text, str):
            says = "missing; data sets of old versions left it to the environment, save it again with a newer Minari"
            raise refused(path, f"`{key}`: {says}", kind="missing")
        try:
            spaces.append(from_json(text))
        except (ValueError, RecursionError) as error:
            raise refused(path, f"`{key}`: {error}") from error
    return Catalogue(folder, data_format, counts[0], counts[1], spaces[0], spaces[1], found)


def read_json(path: str) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        OSError: it cannot be read.
        FormatError: it is too long, or no JSON object.
    """
    with open(path, "rb") as file:
        text = file.read(MAX_JSON + 1)
    if len(text) > MAX_JSON:
        raise refused(path, f"more than {MAX_JSON} bytes of JSON", kind="too_large")
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise refused(path, f"no JSON: {error}") from error
    if not isinstance(found, dict):
        raise refused(path, f"expected a JSON object, found a {type(found).__name__}")
    return found


def refused(
    path: str,
    says: str,
    *,
    episode: int | None = None,
    row: int | None = None,
    field: str | None = None,
    kind: str = "corrupt",
) -> FormatError:
    """The error about something in a data set, with its place."""
    place = path if episode is None else f"{path}: episode {episode}"
    if field is not None:
        place = f"{place}: `{field}`"
    if row is not None:
        says = f"row {row}: {says}"
    return FormatError(f"{place}: {kind}: {says}", kind=kind, source=path, member=field, chunk=episode, frame=row)
