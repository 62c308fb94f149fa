"""Padded features of NNUE (docs/format/nnue-features.md) -> one list with offsets, or ones and zeros."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

_Array = TypeVar("_Array")

#: The padded tensors of features, and how many features there are in the set of each: the width of the first layer.
FEATURES: Mapping[str, int] = MappingProxyType(
    {
        **dict.fromkeys((f"halfkp_{view}" for view in ("white", "black", "stm", "nstm")), 64 * 641),
        **dict.fromkeys((f"halfkav2_hm_{view}" for view in ("white", "black", "stm", "nstm")), 32 * 704),
        **dict.fromkeys(("stm", "nstm"), 2 * 6 * 64),
    }
)


class Sparse(NamedTuple, Generic[_Array]):
    """The features of all rows as one list, as `torch.nn.EmbeddingBag` takes them."""

    #: int32: the features of row after row, without padding.
    indices: _Array
    #: int32, one for each row: where it begins in `indices`.
    offsets: _Array


def sparse(batch: Any, name: str) -> Sparse[npt.NDArray[np.int32]]:
    """The features of a batch as one list, without padding, and where each row begins in it.

    Args:
        batch: a batch, or arrays by name.
        name: a padded tensor, such as `halfkav2_hm_white`: int32 (rows, 32), with -1 where a row has no feature.

    Raises:
        KeyError: the batch has no such array.
        ValueError: an array of another type or shape.
    """
    features = padded(batch, name)
    found = features >= 0
    counts = np.count_nonzero(found, axis=1)
    offsets = np.cumsum(counts) - counts
    return Sparse(features[found], offsets.astype(np.int32))


def dense(batch: Any, name: str) -> npt.NDArray[np.float32]:
    """The features of a batch as ones among zeros: float32 (rows, `FEATURES[name]`). For looking and testing.

    Args:
        batch: a batch, or arrays by name.
        name: a padded tensor, one of `FEATURES`.

    Raises:
        KeyError: the batch has no such array.
        ValueError: a name that is not in `FEATURES`, an array of another type or shape, a feature beyond the set.
    """
    if name not in FEATURES:
        raise ValueError(f"no tensor of features is called `{name}`; there are {', '.join(FEATURES)}")
    features = padded(batch, name)
    if features.size and features.max() >= FEATURES[name]:
        raise ValueError(f"`{name}` has the feature {features.max()}; the set has {FEATURES[name]}")
    made = np.zeros((len(features), FEATURES[name]), np.float32)
    rows, places = np.nonzero(features >= 0)
    made[rows, features[rows, places]] = 1
    return made


def padded(batch: Any, name: str, kind: Callable[[Any], str] = lambda array: str(array.dtype)) -> Any:
    """The array of this name, once it is known to be padded features.

    Args:
        batch: a batch, or arrays by name.
        name: the name.
        kind: the NumPy name of an array's element type.

    Raises:
        KeyError: the batch has no such array.
        ValueError: an array of another type or shape.
    """
    if name not in batch:
        raise KeyError(f"no array is called {name!r}; the batch has: {', '.join(batch.keys())}")
    array = batch[name]
    if kind(array) != "int32" or len(array.shape) != 2:
        found = f"{kind(array)}{tuple(array.shape)}"
        raise ValueError(f"`{name}` is {found}; expected padded features, int32 (rows, 32)")
    return array
