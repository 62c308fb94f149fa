"""A video that Gymnasium's RecordVideo wrote -> its table: the pictures of an episode, and nothing else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.lerobot.videos import opened
from gristmill.demos.own.episodes import fault
from gristmill.demos.own.tables import Table

#: How such files are called: by the number of the episode, or of the step at which it began.
NAME = re.compile(r"-(episode|step)-\d+\.mp4$")

#: What a video has none of.
_LEFT = dict.fromkeys(("actions", "rewards", "terminated", "truncated"), "a video has pictures alone")


def of_video(path: str, max_bytes: int) -> Iterator[Table]:
    """The table of a video: `obs`, uint8 (frames, 3, height, width); a frame is a step.

    Raises:
        MissingPackageError: the extra `video` brings PyAV.
        FormatError: it is damaged or cut, changes its size, or takes more than `max_bytes`.
        OSError: it cannot be read.
    """
    yield Table(path, ["obs"], lambda name: _pictures(path, max_bytes), True, _LEFT)


def _pictures(path: str, max_bytes: int) -> npt.NDArray[Any]:
    with opened(path, "video", field="obs") as container:
        stream = container.streams.video[0]
        expected, size = stream.frames, (stream.codec_context.height, stream.codec_context.width)
        most = max_bytes // max(3 * size[0] * size[1], 1)
        if expected > most:
            raise fault(path, "too_large", f"{expected} frames of {size}; the bound is {max_bytes} bytes", "obs")
        found: list[npt.NDArray[np.uint8]] = []
        for frame in container.decode(stream):
            if len(found) == most:
                raise fault(path, "too_large", f"more than {most} frames of {size}", "obs")
            if (frame.height, frame.width) != size:
                says = f"frame {len(found)} of {frame.height} x {frame.width}; the first is {size[0]} x {size[1]}"
                raise fault(path, "wrong_size", says, "obs")
            found.append(frame.to_ndarray(format="rgb24").transpose(2, 0, 1))
    if not found or (expected and len(found) != expected):
        raise fault(path, "truncated", f"{len(found)} frames; the file says {expected}", "obs")
    return np.stack(found)
