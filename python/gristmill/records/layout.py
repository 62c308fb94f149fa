"""Layouts as NumPy structured dtypes, both ways."""

from __future__ import annotations

import ast
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.records.arrays import Array


class Layout:
    """The fields of a fixed-size record: names, element types, shapes and offsets."""

    def __init__(self, compiled: _gristmill.Layout) -> None:
        self._compiled = compiled
        self._dtype = np.lib.format.descr_to_dtype(ast.literal_eval(compiled.descr))

    @classmethod
    def from_dtype(cls, dtype: npt.DTypeLike) -> Self:
        """The layout of a structured dtype: nested, padded, of either byte order.

        Raises:
            TypeError: the dtype has no named fields.
            FormatError: it holds objects or types that files cannot hold.
        """
        dtype = np.dtype(dtype)
        if dtype.names is None:
            raise TypeError(f"expected a structured dtype with named fields, found {dtype}")
        return cls(_gristmill.Layout(repr(np.lib.format.dtype_to_descr(dtype))))

    @classmethod
    def from_descr(cls, descr: str) -> Self:
        """The layout of the text that `descr` gives."""
        return cls(_gristmill.Layout(descr))

    @property
    def dtype(self) -> np.dtype[np.void]:
        """The structured dtype; padding and offsets are kept."""
        return self._dtype

    @property
    def descr(self) -> str:
        """NumPy's `dtype.descr`, as text."""
        return self._compiled.descr

    @property
    def itemsize(self) -> int:
        """Bytes of one record."""
        return self._compiled.itemsize

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the fields, in order of offset."""
        return self._dtype.names or ()

    def records(self, array: npt.NDArray[np.void]) -> Array:
        """The records of a structured array in this layout.

        Fields are matched by name; big-endian numbers become little-endian; fields that `array` lacks are zero.
        The shape is kept. An array that has this dtype already is returned without a copy.

        Raises:
            FormatError: a field has another element type or shape, or no field is shared.
        """
        array = np.asanyarray(array)
        source = type(self).from_dtype(array.dtype)
        if source == self and array.flags.c_contiguous:
            return array.view(Array)
        flat = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        memory = self._compiled.conform(source._compiled, flat)
        return Array.over(memory, array.shape, self._dtype)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._compiled == other._compiled

    def __hash__(self) -> int:
        return hash(self.descr)

    def __repr__(self) -> str:
        return f"Layout({self.descr})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self).from_descr, (self.descr,)
