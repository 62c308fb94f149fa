"""The frames of the video beside a MineRL recording, by PyAV where it is installed."""

from __future__ import annotations

import importlib
import os
from typing import Any

import numpy as np
import numpy.typing as npt


def frames_beside(path: str) -> npt.NDArray[np.uint8] | None:
    """The frames of `recording.mp4` beside a `rendered.npz`, uint8 (T, H, W, 3); `None` without video or PyAV."""
    folder, name = os.path.split(path)
    video = os.path.join(folder, "recording.mp4")
    if name != "rendered.npz" or not os.path.exists(video):
        return None
    try:
        av: Any = importlib.import_module("av")
    except ImportError:
        return None
    with av.open(video) as container:
        frames = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
    return np.stack(frames).astype(np.uint8, copy=False) if frames else None
