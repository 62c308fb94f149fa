"""Frames, pairs and rows by number as PyTorch tensors: data sets for samplers, collate functions for existing code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from torch.utils.data import Dataset

from gristmill.config import Path
from gristmill.frameworks.tensors import named, tensors
from gristmill.packs.encoders import Augment, BinnedEV, EdgeForm, HardMove, Steps, Tokens, ValueField, ValueTargets
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.source import open as open_path
from gristmill.pairs import PairSet

#: A function from row numbers to named tensors and counts, as `torch.utils.data.DataLoader` takes it.
Collate: TypeAlias = Callable[[Sequence[int]], dict[str, Any]]


class SelectionDataset(Dataset[dict[str, Any]]):
    """Frames of any selection by number, for PyTorch's samplers: rows of 2048, positions, steps of trajectories.

        torch.utils.data.DataLoader(gm.torch.SelectionDataset(games.train), batch_size=256, shuffle=True)

    A number gives one frame, without the batch axis; a list of numbers gives a batch, as from a batch sampler with
    `batch_size=None`. Workers that are started in any way take it, where the selection can be sent to them.
    """

    def __init__(self, source: Rows | Games, encoder: Any = None, *, seed: int = 0, epoch: int = 0) -> None:
        super().__init__()
        if isinstance(source, Rows) and encoder is None:
            raise TypeError("rows need an encoder, such as gristmill.g2048.HardMove()")
        self._source, self._encoder, self._seed, self._epoch = source, encoder, seed, epoch

    def __len__(self) -> int:
        """How many frames there are."""
        return self._source.num_frames

    def __getitem__(self, index: int | Sequence[int]) -> dict[str, Any]:
        """One frame, or a batch of them.

        Raises:
            IndexError: there is no such number.
            FormatError: a frame that cannot be read; it says which.
        """
        if isinstance(index, int | np.integer):
            return {name: array[0] for name, array in self[[int(index)]].items()}
        if isinstance(self._source, Rows):
            return tensors(self._source.encode(self._encoder, index, seed=self._seed, epoch=self._epoch))
        return tensors(self._source.encode(index, self._encoder))


class PairDataset(Dataset[dict[str, Any]]):
    """Pairs or steps by number, for PyTorch's samplers: `PairDataset(constructor.over(demos))`.

    A number gives one of them, without the batch axis; a list of numbers gives a batch, as from a batch sampler with
    `batch_size=None`. The names are those of `named`.
    """

    def __init__(self, pairs: PairSet[Any]) -> None:
        super().__init__()
        self._pairs = pairs

    def __len__(self) -> int:
        """How many there are."""
        return len(self._pairs)

    def __getitem__(self, index: int | Sequence[int]) -> dict[str, Any]:
        """One of them, or a batch.

        Raises:
            IndexError: there is no such number.
        """
        if not isinstance(index, int | np.integer):
            return named(self._pairs[list(index)])
        one = named(self._pairs[[int(index)]])
        return {
            name: [each[0] for each in value] if isinstance(value, list) else value[0] for name, value in one.items()
        }


def make_collate_macroxue(
    dataset: Rows | Path,
    tokenizer: Path,
    *,
    rotate: Augment = False,
    flip: Augment = False,
    value_targets: ValueTargets | None = None,
    value_field: ValueField | None = None,
    value_bins: tuple[float, float, int] | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `targets` (int64, (B, 4)) and `n_classes`.

    With `value_targets`, of packs that have values, also into `value_targets`: float32, (B,) or (B, bins).
    The tokenizer is read here, once: the same file for all batches.

    Args:
        dataset: a pack, or rows of one; numbers count within them.
        tokenizer: a `tokenizer.json` of version 2.
        rotate: quarter turns, drawn for each row from seed, row and epoch.
        flip: mirrors, likewise.
        value_targets: `"scalar"` or `"two_hot"`, as of the encoders; likewise `value_field` and `value_bins`.
        value_field: which number.
        value_bins: of the two-hot form.
        seed: of the augmentation.
        epoch: of the augmentation.
    """
    encoder = Tokens(
        tokenizer,
        rotate=rotate,
        flip=flip,
        value_targets=value_targets,
        value_field=value_field,
        value_bins=value_bins,
    )
    return _collate(dataset, encoder, seed, epoch, {"n_classes": encoder.n_classes})


def make_collate_steps(
    dataset: Rows | Path,
    target_mode: Literal["hard_move", "binned_ev"],
    *,
    edges: Sequence[float] | None = None,
    edge_form: EdgeForm = "special_zero_one",
    rotate: Augment = False,
    flip: Augment = False,
    value_targets: ValueTargets | None = None,
    value_field: ValueField | None = None,
    value_bins: tuple[float, float, int] | None = None,
    seed: int = 0,
    epoch: int = 0,
) -> Collate:
    """Collates row numbers into `tokens` (int64, (B, 16)), `branch_values` (float32, (B, 4)), and

    - with `hard_move`: `move_targets` (int64, (B,));
    - with `binned_ev`: `branch_bin_targets` (int64, (B, 4)), `branch_mask` (bool, (B, 4)) and `n_bins`.

    Arguments are as for `make_collate_macroxue` and `BinnedEV`.
    """
    if target_mode == "hard_move":
        move = HardMove(
            rotate=rotate, flip=flip, value_targets=value_targets, value_field=value_field, value_bins=value_bins
        )
        return _collate(dataset, move, seed, epoch, {})
    if target_mode != "binned_ev":
        raise ValueError(f"target_mode {target_mode!r}; expected 'hard_move' or 'binned_ev'")
    encoder = BinnedEV(
        edges=edges,
        edge_form=edge_form,
        rotate=rotate,
        flip=flip,
        value_targets=value_targets,
        value_field=value_field,
        value_bins=value_bins,
    )
    return _collate(dataset, encoder, seed, epoch, {"n_bins": encoder.n_bins})


def _collate(dataset: Rows | Path, encoder: Steps, seed: int, epoch: int, counts: Mapping[str, int]) -> Collate:
    return RowCollate(dataset if isinstance(dataset, Rows) else open_path(dataset), encoder, seed, epoch, counts)


@dataclass(frozen=True, eq=False)
class RowCollate:
    """A collate function: row numbers into tensors and counts. Workers that are started in any way take it."""

    rows: Rows
    encoder: Steps
    seed: int
    epoch: int
    #: Numbers that stand in every batch.
    counts: Mapping[str, int]

    def __call__(self, indices: Sequence[int]) -> dict[str, Any]:
        """The tensors of these rows.

        Raises:
            IndexError: there is no such row.
            FormatError: a row that cannot be encoded; it says which.
        """
        numbers = np.asarray(indices, dtype=np.int64)
        made = self.rows.encode(self.encoder, numbers, seed=self.seed, epoch=self.epoch)
        return {**tensors(made), **self.counts}
