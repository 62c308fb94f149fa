"""A folder or file that appears whole or not at all: made under a hidden name beside its place, then renamed."""

from __future__ import annotations

import os
import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from gristmill import _gristmill

#: What this process has put in its place last: who is stopped says by it whether the output is as it was.
newest: deque[str] = deque(maxlen=1)

#: Where in its hidden folder what is replaced lies for a moment.
_REPLACED = "replaced"


def beside(output: str, what: str) -> str:
    """The path of a hidden folder for what becomes `output`: beside it, or among temporary files for a bucket."""
    if not _gristmill.is_local(output):
        import tempfile

        return os.path.join(tempfile.gettempdir(), f".{output.rsplit('/', 1)[-1]}.{os.getpid()}.{what}")
    near, name = os.path.split(os.path.abspath(output))
    while not os.path.isdir(near):
        near = os.path.dirname(near)
    return os.path.join(near, f".{name}.{what}")


@contextmanager
def hidden_folder(path: str, output: str | None = None) -> Iterator[None]:
    """An empty folder for as long as the block lasts; what a killed process left there is removed.

    It is gone afterwards however the block ends, and wherever in here a signal raises an error. What was
    taken away from `output` and replaced by nothing is given back first.

    Raises:
        OSError: the folder cannot be made.
    """
    # The cleanup stands before the folder is made, and twice: a signal may interrupt the first one.
    try:
        try:
            _remove(path, output)
            os.makedirs(path)
            yield
        finally:
            _remove(path, output)
    finally:
        _remove(path, output)


@contextmanager
def published_folder(output: str) -> Iterator[str]:
    """The path of an empty folder to write to; it becomes `output`, in the place of what is there, when the block ends.

    An error in the block leaves `output` as it was. A killed writer leaves the hidden folder, which the next one to
    the same place removes.

    Raises:
        OSError: the folder cannot be made or renamed.
    """
    output = os.path.abspath(output)
    parent, name = os.path.split(output)
    staging = os.path.join(parent, f".{name}.part")
    made = os.path.join(staging, "made")
    with hidden_folder(staging, output):
        os.mkdir(made)
        yield made
        _sync(made)
        if os.path.isdir(output):
            os.rename(output, os.path.join(staging, _REPLACED))
        os.rename(made, output)
        newest.append(output)
        _sync_one(parent)


@contextmanager
def published_file(output: str) -> Iterator[str]:
    """The path of a file to write; it becomes `output`, in the place of one that is there, when the block ends.

    An error in the block leaves `output` as it was.

    Raises:
        OSError: the file cannot be made or renamed.
    """
    output = os.path.abspath(output)
    parent, name = os.path.split(output)
    staging = os.path.join(parent, f".{name}.part")
    made = os.path.join(staging, name)
    with hidden_folder(staging):
        yield made
        _sync_one(made)
        os.replace(made, output)
        newest.append(output)
        _sync_one(parent)


def _remove(path: str, output: str | None) -> None:
    """Removes a hidden folder with all in it; a link is removed itself, and not followed.

    A folder that was to be replaced, and that an error, a signal or a kill left here as its only copy, goes back first.
    """
    if os.path.islink(path):
        os.unlink(path)
        return
    if output is not None and not os.path.lexists(output):
        with suppress(FileNotFoundError):
            os.rename(os.path.join(path, _REPLACED), output)
    shutil.rmtree(path, ignore_errors=True)


def _sync(folder: str) -> None:
    """Brings a folder and all below it to the disk."""
    for at, _, names in os.walk(folder):
        for path in (*(os.path.join(at, name) for name in names), at):
            _sync_one(path)


def _sync_one(path: str) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
