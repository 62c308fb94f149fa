"""Batches as PyTorch tensors, without a copy; data sets for its loaders; collate functions for existing code."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

import torch

from gristmill.demos.mixing import MixedLoader
from gristmill.frameworks.datasets import Collate as Collate
from gristmill.frameworks.datasets import PairDataset as PairDataset
from gristmill.frameworks.datasets import RowCollate as RowCollate
from gristmill.frameworks.datasets import SelectionDataset as SelectionDataset
from gristmill.frameworks.datasets import make_collate_macroxue as make_collate_macroxue
from gristmill.frameworks.datasets import make_collate_steps as make_collate_steps
from gristmill.frameworks.expand_torch import expand as expand
from gristmill.frameworks.feed_torch import feed as feed
from gristmill.frameworks.sparse_torch import sparse as sparse
from gristmill.frameworks.tensors import convert as convert
from gristmill.frameworks.tensors import named as named
from gristmill.frameworks.tensors import tensors as tensors
from gristmill.frameworks.trainers import DataLoader as DataLoader
from gristmill.frameworks.workers import BatchStream as BatchStream
from gristmill.loaders.loader import DataLoader as RowLoader


@overload
def batches(loader: RowLoader, alias: str = "") -> Iterator[dict[str, torch.Tensor]]: ...
@overload
def batches(loader: MixedLoader[Any]) -> Iterator[dict[str, Any]]: ...
def batches(loader: RowLoader | MixedLoader[Any], alias: str = "") -> Iterator[dict[str, Any]]:
    """The batches of a loader as tensors, by name; shapes and dtypes are those of the loader's arrays.

    Of a `PairLoader` or `StepLoader`, the names are those that `named` gives.
    """
    return map(convert, loader.batches(alias) if isinstance(loader, RowLoader) else loader)
