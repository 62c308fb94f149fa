"""NumPy over a mapped file. It makes only the copy that every loader makes, so it is a yardstick and no loader."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from loaders.records import named, shuffled, stored


def batches(work: str, data: Path, folder: Path, batch: int) -> Iterator[Any]:
    """Yields batches of a random permutation of the rows."""
    rows = stored(data)
    for numbers in shuffled(len(rows), batch):
        yield named(work, np.take(rows, numbers, axis=0))
