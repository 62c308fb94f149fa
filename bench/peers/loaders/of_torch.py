"""PyTorch's DataLoader over a mapped array: row by row as in its tutorial, and by `__getitems__`, a batch at once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import torch

from loaders.records import named, stored


class Rows(torch.utils.data.Dataset):
    """Rows of a mapped file, which each process maps for itself."""

    def __init__(self, data: Path) -> None:
        self.data, self.count = data, len(stored(data))
        self.rows: Any = None

    def __len__(self) -> int:
        return self.count

    def mapped(self) -> Any:
        """The rows, mapped at the first use."""
        if self.rows is None:
            self.rows = stored(self.data)
        return self.rows

    def __getitem__(self, index: int) -> Any:
        return torch.from_numpy(np.array(self.mapped()[index]))


class Gathered(Rows):
    """The same, which gathers a batch by one call."""

    def __getitems__(self, indices: list[int]) -> Any:
        return torch.from_numpy(np.take(self.mapped(), indices, axis=0))


def batches(work: str, data: Path, folder: Path, batch: int, workers: int, gathered: bool) -> Iterator[Any]:
    """Batches of a loader that shuffles."""
    torch.set_num_threads(1)
    options: dict[str, Any] = {"batch_size": batch, "shuffle": True, "drop_last": True, "num_workers": workers}
    if gathered:
        loader = torch.utils.data.DataLoader(Gathered(data), collate_fn=lambda rows: rows, **options)
    else:
        loader = torch.utils.data.DataLoader(Rows(data), **options)
    while True:
        for rows in loader:
            yield named(work, rows.numpy())
