"""Reads the files below a folder, so that tests can compare two folders."""

from pathlib import Path


def tree(folder: Path) -> dict[str, bytes]:
    """The bytes of each file below `folder`, hidden files too, by its path in `folder`."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
