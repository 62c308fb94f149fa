"""The frames of an episode out of a video, by PyAV: one for each step, at the time that the step has."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.lerobot.catalogue import Clip
from gristmill.demos.lerobot.tables import TOLERANCE
from gristmill.demos.minari.catalogue import refused
from gristmill.errors import FormatError
from gristmill.options.optional import optional


@contextmanager
def opened(path: str, extra: str, **place: Any) -> Iterator[Any]:
    """A video, open; `extra` brings PyAV, `place` says which episode and field of what it is.

    Raises:
        MissingPackageError: PyAV is not installed.
        OSError: the video cannot be read.
        FormatError: there is none, or what is done in the block finds it damaged.
    """
    av = optional("av", extra)
    if not os.path.exists(path):
        raise refused(path, "there is no such video", **place, kind="missing")
    with open(path, "rb"):
        pass
    try:
        with av.open(path) as container:
            if not container.streams.video:
                raise refused(path, "no video stream in it", **place)
            context = container.streams.video[0].codec_context
            if context is None:
                raise refused(path, "a video in a codec that PyAV does not know", **place, kind="unsupported")
            if str(context.pix_fmt).startswith("gray1"):
                says = f"a video of depth ({context.pix_fmt}), whose values would be cut to 8 bits"
                raise refused(path, says, **place, kind="unsupported")
            yield container
    except FormatError:
        raise
    except (av.FFmpegError, LookupError, ValueError, ArithmeticError, MemoryError) as error:
        raise refused(path, f"no video that PyAV can read: {error}", **place) from error


def fill(target: npt.NDArray[np.uint8], clip: Clip, fps: float, episode: int, field: str) -> None:
    """Puts the frames of an episode into `target`, uint8 (steps, 3, height, width).

    Raises:
        MissingPackageError: PyAV is not installed.
        OSError: the video cannot be read.
        FormatError: the video is missing or damaged, has frames of another size, lacks one, or has one too many.
    """
    place: dict[str, Any] = {"episode": episode, "field": field}
    with opened(clip.file, "lerobot", **place) as container:
        _fill(target, container, clip, fps, place)


def _fill(target: npt.NDArray[np.uint8], container: Any, clip: Clip, fps: float, place: dict[str, Any]) -> None:
    stream = container.streams.video[0]
    _check_size(stream.codec_context, target, clip, 0, place)
    if clip.start:
        container.seek(max(int((clip.start - 1 / fps) / stream.time_base), 0), stream=stream)
    row, steps = 0, len(target)
    for frame in container.decode(stream):
        if frame.pts is None:
            raise refused(clip.file, "a frame without a time", **place, row=row)
        off = (float(frame.pts * frame.time_base) - clip.start) * fps - row
        if off < -TOLERANCE and row == 0:
            # The frames of the episode before, from which the decoder begins.
            continue
        if off < -TOLERANCE:
            says = f"a frame at {clip.start + (row + off) / fps:.4f} s, between those of two steps"
            raise refused(clip.file, says, **place, row=row, kind="wrong_size")
        if row == steps:
            if clip.last:
                says = f"more frames than the {steps} steps of the episode"
                raise refused(clip.file, says, **place, row=row, kind="wrong_size")
            return
        if off > TOLERANCE:
            says = f"no frame at {clip.start + row / fps:.4f} s; the next is at {clip.start + (row + off) / fps:.4f} s"
            raise refused(clip.file, says, **place, row=row, kind="missing")
        _check_size(frame, target, clip, row, place)
        target[row] = frame.to_ndarray(format="rgb24").transpose(2, 0, 1)
        row += 1
    if row < steps:
        says = f"the video ends; the episode has {steps} steps"
        raise refused(clip.file, says, **place, row=row, kind="truncated")


def _check_size(found: Any, target: npt.NDArray[np.uint8], clip: Clip, row: int, place: dict[str, Any]) -> None:
    """Before anything of another size is decoded."""
    if (3, found.height, found.width) != target.shape[1:]:
        says = f"frames of {found.height} x {found.width}; info.json says (channels, height, width) {target.shape[1:]}"
        raise refused(clip.file, says, **place, row=row, kind="wrong_size")
