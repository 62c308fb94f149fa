"""Batches as PyTorch tensors, without a copy; and collate functions for existing training code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np
import torch

from gristmill.arrays import Array
from gristmill.config import Path
from gristmill.encoders import Augment, BinnedEV, HardMove, Steps, Tokens
from gristmill.loader import DataLoader
from gristmill.rows import Rows
from gristmill.source import open as open_path

#: A function from row numbers to named tensors and counts, as `torch.utils.data.DataLoader` takes it.
Collate: TypeAlias = Callable[[Sequence[int]], dict[str, Any]]


def tensors(arrays: Mapping[str, Array]) -> dict[str, torch.Tensor]:
    """The same memory as tensors, by name."""
    return {name: torch.utils.dlpack.from_dlpack(array) for name, array in arrays.items()}


def batches(loader: DataLoader, alias: str = "") -> Iterator[dict[str, torch.Tensor]]:
    """The batches of a loader as tensors, by name; shapes and dtypes are those of the loader's arrays."""
    return (tensors(batch.asdict()) for batch in loader.batches(alias))


def make_collate_macroxue(
    dataset: Rows | Path,
    tokenizer: Path,
    *,
    rotate: Augment = False,
    flip: Augment = False,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `targets` (int64, (B, 4)) and `n_classes`.

    Args:
        dataset: a pack, or rows of one; numbers count within them.
        tokenizer: a `tokenizer.json` of version 2.
        rotate: quarter turns, drawn for each row from seed, row and epoch.
        flip: mirrors, likewise.
        seed: of the augmentation.
        epoch: of the augmentation.
    """
    encoder = Tokens(tokenizer, rotate=rotate, flip=flip)
    return _collate(dataset, encoder, seed, epoch, {"n_classes": encoder.n_classes})


def make_collate_steps(
    dataset: Rows | Path,
    target_mode: Literal["hard_move", "binned_ev"],
    *,
    edges: Sequence[float] | None = None,
    edge_form: Literal["special_zero_one", "edges", "upper_bounds"] = "special_zero_one",
    rotate: Augment = False,
    flip: Augment = False,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `branch_values` (float32, (B, 4)), and

    - with `hard_move`: `move_targets` (int64, (B,));
    - with `binned_ev`: `branch_bin_targets` (int64, (B, 4)), `branch_mask` (bool, (B, 4)) and `n_bins`.

    Arguments are as for `make_collate_macroxue` and `BinnedEV`.
    """
    if target_mode == "hard_move":
        return _collate(dataset, HardMove(rotate=rotate, flip=flip), seed, epoch, {})
    if target_mode != "binned_ev":
        raise ValueError(f"target_mode {target_mode!r}; expected 'hard_move' or 'binned_ev'")
    encoder = BinnedEV(edges=edges, edge_form=edge_form, rotate=rotate, flip=flip)
    return _collate(dataset, encoder, seed, epoch, {"n_bins": encoder.n_bins})


def _collate(dataset: Rows | Path, encoder: Steps, seed: int, epoch: int, counts: Mapping[str, int]) -> Collate:
    rows = dataset if isinstance(dataset, Rows) else open_path(dataset)

    def collate(indices: Sequence[int]) -> dict[str, Any]:
        made = rows.encode(encoder, np.asarray(indices, dtype=np.int64), seed=seed, epoch=epoch)
        return {**tensors(made), **counts}

    return collate
