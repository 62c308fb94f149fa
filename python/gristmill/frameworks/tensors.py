"""Arrays as PyTorch tensors, without a copy, under the names that trainers take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch

from gristmill.loaders.batch import Batch
from gristmill.pairs import PairBatch
from gristmill.records.arrays import Array


def tensors(arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    """The same memory as tensors, by name; what is listed beside steps, such as `infos`, stays a list."""
    return {name: value if isinstance(value, list) else _tensor(value) for name, value in arrays.items()}


def named(batch: PairBatch | Mapping[str, Any]) -> dict[str, Any]:
    """A batch of pairs or steps as tensors, under the names and in the forms that representation learners take.

    `extra_context` is an empty list where there is none; `traj_ts_ids` is a list of two int64 tensors (B,), of
    trajectories and of steps. Of steps, `infos` stays a list of dictionaries.
    """
    if isinstance(batch, PairBatch):
        found: dict[str, Any] = {name: _tensor(array) for name, array in batch.asdict().items()}
        return {
            **found,
            "extra_context": found.get("extra_context", []),
            "traj_ts_ids": [*found["traj_ts_ids"].unbind(1)],
        }
    return {name: values if isinstance(values, list) else _tensor(values) for name, values in batch.items()}


def _named_pairs(values: dict[str, Any]) -> dict[str, Any]:
    """`named` of the batch that has these values."""
    return named(PairBatch(**values))


def _tensor(array: np.ndarray[Any, Any]) -> torch.Tensor:
    return torch.utils.dlpack.from_dlpack(array) if isinstance(array, Array) else torch.from_numpy(array)


def convert(batch: Any) -> dict[str, Any]:
    """A batch of any loader as tensors, by name: a `collate_fn` for PyTorch's `DataLoader(loader, batch_size=None)`."""
    return tensors(batch.asdict()) if isinstance(batch, Batch) else named(batch)
