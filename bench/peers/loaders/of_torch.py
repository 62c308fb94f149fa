"""PyTorch's DataLoader over a mapped array. It reads row by row as in its tutorial, or a batch by `__getitems__`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from loaders.records import named, stored


class Rows(torch.utils.data.Dataset):
    """Rows of a mapped file. Each process maps the file itself."""

    def __init__(self, data: Path) -> None:
        self.data, self.count = data, len(stored(data))
        self.rows: Any = None

    def __len__(self) -> int:
        return self.count

    def mapped(self) -> Any:
        """Returns the rows. Maps the file at the first call."""
        if self.rows is None:
            self.rows = stored(self.data)
        return self.rows

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.array(self.mapped()[index]))


class Gathered(Rows):
    """Rows of a mapped file. One call gathers a batch."""

    def __getitems__(self, indices: list[int]) -> Any:
        return torch.from_numpy(np.take(self.mapped(), indices, axis=0))


def batches(work: str, data: Path, folder: Path, batch: int, workers: int, gathered: bool) -> Iterator[Any]:
    """Yields batches of a loader that shuffles."""
    torch.set_num_threads(1)
    options: dict[str, Any] = {"batch_size": batch, "shuffle": True, "drop_last": True, "num_workers": workers}
    if gathered:
        loader = torch.utils.data.DataLoader(Gathered(data), collate_fn=lambda rows: rows, **options)
    else:
        loader = torch.utils.data.DataLoader(Rows(data), **options)
    while True:
        for rows in loader:
            yield named(work, rows.numpy())
