"""What lies below a folder, to be compared with another folder."""

from pathlib import Path


def tree(folder: Path) -> dict[str, bytes]:
    """The bytes of every file below a folder, hidden files too, by its path there."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
