"""What a loader says of itself: the outputs that it delivers and their tensors, the anchors of its pools."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class TensorSpec:
    """Name, NumPy type string and shape of one row of a tensor."""

    name: str
    dtype: str
    row_shape: tuple[int, ...]


@dataclass(frozen=True)
class Output:
    """What a loader delivers under one alias."""

    alias: str
    batch_size: int
    tensors: tuple[TensorSpec, ...]


@dataclass(frozen=True)
class ChunkAnchor:
    """The anchor of a pool: the key of a file (empty before one was set), and how many chunks came after it."""

    key: str
    chunks_since: int
