# The compiled part of gristmill. Checked against the library by `python -m mypy.stubtest gristmill._gristmill`.
from typing import final

import numpy as np
import numpy.typing as npt
from typing_extensions import CapsuleType

__all__ = [
    "Layout",
    "Memory",
    "allocate",
    "check_config",
    "config_from_toml",
    "config_to_toml",
    "preset_lc0",
]

def allocate(nbytes: int) -> Memory: ...
def check_config(json: str) -> str: ...
def config_from_toml(toml: str) -> str: ...
def config_to_toml(json: str) -> str: ...
def preset_lc0(options: str) -> str: ...

@final
class Memory:
    @property
    def nbytes(self) -> int: ...
    def holds(self, address: int, nbytes: int) -> bool: ...
    def dlpack(
        self,
        address: int,
        shape: list[int],
        strides: list[int],
        code: int,
        bits: int,
        versioned: bool,
        flags: int,
    ) -> CapsuleType: ...

@final
class Layout:
    def __new__(cls, descr: str) -> Layout: ...
    @property
    def descr(self) -> str: ...
    @property
    def itemsize(self) -> int: ...
    def conform(self, source: Layout, records: npt.NDArray[np.uint8]) -> Memory: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
