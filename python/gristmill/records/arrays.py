"""NumPy arrays over the engine's memory, which JAX and PyTorch take without a copy."""

from __future__ import annotations

import functools
from typing import Any, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill

#: The CPU, as DLPack numbers devices.
_CPU = (1, 0)
_READ_ONLY, _COPIED = 1, 2
_CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
#: DLPack's number of bfloat16, which is of no kind that NumPy knows.
_BFLOAT = 4


@functools.cache
def bfloat16() -> np.dtype[Any]:
    """NumPy's bfloat16 where the package `ml_dtypes` is installed, which JAX needs; else uint16, with the same bits."""
    try:
        from ml_dtypes import bfloat16 as found
    except ImportError:
        return np.dtype(np.uint16)
    dtype: np.dtype[Any] = np.dtype(found)
    return dtype


def _element(dtype: npt.DTypeLike) -> npt.DTypeLike:
    """The dtype that the engine names, which says `<V2` for bfloat16, as `ml_dtypes` does."""
    return bfloat16() if isinstance(dtype, str) and dtype == "<V2" else dtype


def _numpys_own(max_version: tuple[int, int] | None) -> dict[str, Any]:
    """The options of NumPy's export: releases before 2.1 know no version."""
    return {"max_version": max_version} if np.lib.NumpyVersion(np.__version__) >= "2.1.0" else {}


def _short(value: npt.NDArray[Any]) -> str:
    """A field of a record: a number or text as it is, of more than four numbers only their type and shape."""
    value = np.asarray(value)
    return str(value.tolist()) if value.size <= 4 else f"{value.dtype}{list(value.shape)}"


class Array(np.ndarray[Any, Any]):
    """A NumPy array that exports DLPack capsules of its own wherever it lies in the engine's memory.

    Their deleter needs no GIL and never calls Python, so that another framework may drop the array at any time
    and from any thread. Batches start at multiples of 64 bytes, which lets JAX alias them. The memory goes back
    to the loader when the last array, view or capsule over it is gone.

    Pickles hold a plain NumPy array: opening one needs NumPy alone, and gives a copy.
    """

    @classmethod
    def over(cls, memory: _gristmill.Memory, shape: tuple[int, ...], dtype: npt.DTypeLike) -> Self:
        """The array of `shape` and `dtype` that starts where `memory` does."""
        return np.ndarray.__new__(cls, shape, _element(dtype), buffer=memory)  # type: ignore[arg-type]

    def memory(self) -> _gristmill.Memory | None:
        """The engine's memory under this array; `None` for arrays that were computed."""
        base: object = self
        while not isinstance(base, _gristmill.Memory):
            if isinstance(base, memoryview):
                base = base.obj
            elif isinstance(base, np.ndarray):
                base = base.base
            else:
                return None
        return base

    def aligned_copy(self) -> Self:
        """A row-major copy in new memory that starts at a multiple of 64 bytes."""
        made = type(self).over(_gristmill.allocate(self.nbytes), self.shape, self.dtype)
        made[...] = self
        return made

    def __repr__(self) -> str:
        """Of records their number and fields: the bytes of one alone would fill pages."""
        names = self.dtype.names
        if names is None:
            return super().__repr__()
        if self.ndim == 0:
            return f"Array({', '.join(f'{name}={_short(self[name])}' for name in names)})"
        return f"Array({'x'.join(map(str, self.shape))} records of {self.dtype.itemsize} bytes: {', '.join(names)})"

    def __reduce__(self) -> str | tuple[Any, ...]:
        return np.asarray(self).__reduce__()

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return np.asarray(self).__reduce_ex__(protocol)

    def __dlpack_device__(self) -> tuple[Any, Any]:
        """The CPU."""
        return _CPU

    def __dlpack__(
        self,
        *,
        stream: object = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, Any] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A capsule of this array's memory, with DLPack 1.0 where `max_version` allows it.

        Raises:
            BufferError: the element type has no DLPack name, the byte order is foreign, the array is read-only
                and `max_version` is too old to say so, or the device is another one.
        """
        if dl_device is not None and tuple(dl_device) != _CPU:
            raise BufferError(f"this array is on the CPU {_CPU}; it cannot be exported to device {tuple(dl_device)}")
        if stream is not None:
            raise BufferError("an array on the CPU has no stream")
        array, flags = (self.aligned_copy(), _COPIED) if copy else (self, 0)
        memory = array.memory()
        code = _BFLOAT if array.dtype.name == "bfloat16" else _CODES.get(array.dtype.kind)
        steps = [divmod(stride, array.itemsize or 1) for stride in array.strides]
        plain = code is not None and array.dtype.isnative and array.itemsize <= 16
        if memory is None or code is None or not plain or array.size == 0 or any(rest for _, rest in steps):
            return np.asarray(array).__dlpack__(**_numpys_own(max_version))
        versioned = max_version is not None and max_version[0] >= 1
        if not array.flags.writeable:
            if not versioned:
                raise BufferError("a read-only array needs DLPack 1.0; take a copy, or make it writable")
            flags |= _READ_ONLY
        address = array.__array_interface__["data"][0]
        strides = [step for step, _ in steps]
        return memory.dlpack(address, list(array.shape), strides, code, 8 * array.itemsize, versioned, flags)
