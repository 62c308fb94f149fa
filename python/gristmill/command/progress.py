"""How far a command is: a moving line on a terminal, now and then a plain line elsewhere. On stderr."""

from __future__ import annotations

import importlib
import sys
from types import TracebackType
from typing import Any, Self

#: Seconds of which the speed is known, by which the rest is estimated.
_RECENT = 3600.0


class Progress:
    """Progress of things called `what`, in the plural. Silent unless `wanted`. Used as a context, called to tell."""

    def __init__(self, what: str, wanted: bool) -> None:
        self._what, self._wanted, self._share = what, wanted, 1
        self._bar, self._task = _bar() if wanted and sys.stderr.isatty() else None, None

    def __call__(self, done: int, of: int) -> None:
        """`done` things are done, `of` how many."""
        if self._bar is not None:
            if self._task is None:
                # What was done before says nothing of the speed.
                self._task = self._bar.add_task(self._what, total=of, completed=done)
            self._bar.update(self._task, completed=done)
        elif self._wanted and of >= 10 and done * 10 >= of * self._share:
            self._share = done * 10 // of + 1
            sys.stderr.write(f"{done}/{of} {self._what}\n")

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    """A moving line, where Rich is installed."""
    try:
        progress, console = importlib.import_module("rich.progress"), importlib.import_module("rich.console")
    except ImportError:
        return None
    text = progress.TextColumn("{task.description}")
    columns = (progress.BarColumn(30), progress.MofNCompleteColumn(), text, progress.TimeRemainingColumn())
    # What takes minutes each has a speed, too.
    screen = console.Console(stderr=True)
    return progress.Progress(*columns, console=screen, transient=True, speed_estimate_period=_RECENT)
