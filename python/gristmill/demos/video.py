"""The frames of the video beside a MineRL recording, by PyAV where it is installed."""

from __future__ import annotations

import importlib
import json
import os
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.errors import FormatError

#: Maximum number of bytes of `metadata.json`.
_MAX_JSON = 1 << 20


def frames_beside(path: str, max_bytes: int) -> npt.NDArray[np.uint8] | None:
    """The frames of `recording.mp4` beside a `rendered.npz`, uint8 (T, H, W, 3); `None` without video or PyAV.

    Where `metadata.json` beside it says how many frames the video has, those alone: what follows them was added later.

    Raises:
        FormatError: the video is damaged, has fewer frames than it should, or more than `max_bytes` of them.
    """
    folder, name = os.path.split(path)
    video = os.path.join(folder, "recording.mp4")
    if name != "rendered.npz" or not os.path.exists(video):
        return None
    try:
        av: Any = importlib.import_module("av")
    except ImportError:
        return None
    told = _told(os.path.join(folder, "metadata.json"))
    frames: list[npt.NDArray[np.uint8]] = []
    taken = 0
    try:
        with av.open(video) as container:
            for frame in container.decode(video=0):
                if len(frames) == told:
                    break
                taken += frame.width * frame.height * 3
                if taken > max_bytes:
                    raise _refused(video, f"more than {max_bytes} bytes of frames; raise `max_bytes`", "too_large")
                frames.append(frame.to_ndarray(format="rgb24"))
    except FormatError:
        raise
    except (av.FFmpegError, IndexError, ValueError) as error:
        raise _refused(video, f"no video that PyAV can read: {error}", "corrupt") from error
    if told is not None and len(frames) < told:
        says = f"{len(frames)} frames; `true_video_frame_count` of metadata.json is {told}"
        raise _refused(video, says, "truncated")
    if len({frame.shape for frame in frames}) > 1:
        raise _refused(video, "frames of several sizes", "wrong_size")
    return np.stack(frames) if frames else None


def _told(path: str) -> int | None:
    """How many frames the video has, by `metadata.json`; `None` where nothing says it."""
    if not os.path.exists(path):
        return None
    with open(path, "rb") as file:
        text = file.read(_MAX_JSON)
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _refused(path, f"no JSON: {error}", "corrupt") from error
    told = found.get("true_video_frame_count") if isinstance(found, dict) else None
    if told is not None and (not isinstance(told, int) or isinstance(told, bool) or told < 0):
        raise _refused(path, f"`true_video_frame_count` is {told!r}; expected a number of frames", "corrupt")
    return told


def _refused(path: str, says: str, kind: str) -> FormatError:
    return FormatError(f"{path}: {kind}: {says}", kind=kind, source=path)
