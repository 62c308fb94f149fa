"""Padded features -> one list with offsets, in PyTorch, on the device where they lie."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from gristmill.chess.features import Sparse, padded
from gristmill.frameworks.tensors import tensors
from gristmill.loaders.batch import Batch


def sparse(batch: Batch | Mapping[str, Any], name: str) -> Sparse[torch.Tensor]:
    """The features of a batch as one list, without padding, and where each row begins in it.

    Both are int32, as `torch.nn.EmbeddingBag` takes them: `bag(*sparse(batch, name))`. How long the list is depends on
    the batch, so the processor waits for a device to count.

    Args:
        batch: a batch, or tensors by name.
        name: a padded tensor, such as `halfkav2_hm_white`: int32 (rows, 32), with -1 where a row has no feature.

    Raises:
        KeyError: the batch has no such tensor.
        ValueError: a tensor of another type or shape.
    """
    found = tensors(batch.asdict()) if isinstance(batch, Batch) else batch
    features = padded(found, name, lambda tensor: str(tensor.dtype).removeprefix("torch."))
    there = features >= 0
    counts = there.sum(1, dtype=torch.int32)
    return Sparse(features[there], counts.cumsum(0, dtype=torch.int32) - counts)
