"""What becomes of numbers on their way into a batch: pictures to floats, wide floats to 32 bits."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from gristmill.errors import ConfigError
from gristmill.options.arguments import named_fields

Shape = tuple[int, ...]


@named_fields
@dataclass(frozen=True)
class Prepare:
    """Conversions that training code would otherwise make of each batch. Whole numbers and truth values stay.

    Pictures are arrays of uint8 with three axes or more a row.
    """

    #: Pictures as float32 from 0 to 1 (`"unit"`: divided by 255), as float32 from 0 to 255 (`"float"`), or as they are.
    images: Literal["unit", "float", "keep"] = "unit"
    #: Whether floats of other widths become float32.
    floats: bool = True
    #: Whether batches of pictures (B, C, H, W) must have fewer channels than rows and columns.
    check_nchw: bool = True
    #: Arrays that stay as they are, such as `("target",)`.
    leave: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "leave", tuple(self.leave))
        if self.images not in ("unit", "float", "keep"):
            raise ConfigError(f"images={self.images!r}; expected 'unit', 'float' or 'keep'", field="images")

    def describe(self) -> dict[str, Any]:
        """The options as plain data."""
        return {**asdict(self), "leave": list(self.leave)}

    def cast(self, name: str, dtype: np.dtype[Any], shape: Shape) -> tuple[str, np.dtype[Any]]:
        """How rows of an array are cast: a word for the engine (`numpy` where NumPy has to), and their type then.

        Raises:
            ConfigError: pictures that are not (C, H, W).
        """
        if name in self.leave:
            return "same", dtype
        if len(shape) == 3 and self.check_nchw and not (shape[0] < shape[1] and shape[0] < shape[2]):
            message = f"`{name}` has rows of shape {list(shape)}, which do not look like (C, H, W)"
            raise ConfigError(f"{message}; turn them, or set check_nchw=False", field=name)
        if is_picture(dtype, shape) and self.images != "keep":
            return self.images, np.dtype(np.float32)
        if self.floats and dtype.kind == "f" and dtype.itemsize != 4:
            return "single" if dtype.itemsize == 8 else "numpy", np.dtype(np.float32)
        return "same", dtype

    def check_space(self, metadata: dict[str, Any]) -> None:
        """Looks whether pictures have the range that `images="unit"` takes for granted.

        Raises:
            ConfigError: by its observation space the data has another.
        """
        space = metadata.get("observation_space")
        state = getattr(space, "state", None)
        if self.images != "unit" or not isinstance(state, dict) or "high" not in state or "low" not in state:
            return
        low, high = np.asarray(state["low"]), np.asarray(state["high"])
        if np.dtype(state.get("dtype", high.dtype)) == np.uint8 and (low.any() or (high != 255).any()):
            message = (
                f"observations go from {low.min()} to {high.max()} by their space, and images='unit' divides by 255; "
                "choose images='float' or 'keep'"
            )
            raise ConfigError(message, field="images")


#: Nothing is converted.
KEEP = Prepare(images="keep", floats=False, check_nchw=False)


def is_picture(dtype: np.dtype[Any], shape: Shape) -> bool:
    """Whether rows of this type and shape are pictures, or rows of pictures."""
    return dtype == np.uint8 and len(shape) >= 3


def cast_array(array: npt.NDArray[Any], cast: str) -> npt.NDArray[Any]:
    """What the engine's cast of this name makes of an array, or NumPy's."""
    if cast == "same":
        return array
    found = array.astype(np.float32)
    return found / np.float32(255) if cast == "unit" else found
