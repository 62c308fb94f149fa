"""NumPy over a mapped file: the copy that everybody's loader makes, and nothing else. A yardstick, no loader."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from loaders.records import named, shuffled, stored


def batches(work: str, data: Path, folder: Path, batch: int) -> Iterator[Any]:
    """Rows of a random permutation."""
    rows = stored(data)
    for numbers in shuffled(len(rows), batch):
        yield named(work, np.take(rows, numbers, axis=0))
