"""A folder that appears whole or not at all: made under a hidden name beside its place, and renamed when it is done."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress


@contextmanager
def published_folder(output: str) -> Iterator[str]:
    """The path of an empty folder to write to; it becomes `output`, in the place of what is there, when the block ends.

    An error in the block leaves `output` as it was. A killed writer leaves the hidden folder, which the next one to
    the same place removes.

    Raises:
        OSError: the folder cannot be made or renamed.
    """
    parent, name = os.path.split(os.path.abspath(output))
    staging = os.path.join(parent, f".{name}.part")
    made, replaced = os.path.join(staging, "made"), os.path.join(staging, "replaced")
    # A kill between the two renames below left the old folder here.
    if os.path.isdir(replaced) and not os.path.exists(output):
        os.rename(replaced, output)
    shutil.rmtree(staging, ignore_errors=True)
    os.makedirs(made)
    try:
        yield made
        _sync(made)
        if os.path.isdir(output):
            os.rename(output, replaced)
        try:
            os.rename(made, output)
        except OSError:
            with suppress(OSError):
                os.rename(replaced, output)
            raise
        _sync_one(parent)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


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
