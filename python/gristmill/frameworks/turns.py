"""Which thread or worker takes the next batch of a pass, and who says which pass is next. Imports no PyTorch."""

from __future__ import annotations

import os
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gristmill.errors import ConfigError
from gristmill.loaders.batch import Batch
from gristmill.packs.again import make_again

if TYPE_CHECKING:
    from gristmill.loaders.loader import DataLoader


def by_output() -> defaultdict[str, threading.Lock]:
    """For the threads that go over one loader, by output: whose turn it is to take a batch."""
    return defaultdict(threading.Lock)


def of_worker() -> tuple[int, int] | None:
    """The number of this worker and how many there are; `None` in a process that is none."""
    torch = sys.modules.get("torch.utils.data")
    info = None if torch is None else torch.get_worker_info()
    return None if info is None else (info.id, info.num_workers)


def batches(loader: DataLoader, worker: int, workers: int) -> Iterator[Batch]:
    """The batches of a stream or of rows that fall to a worker: it makes all of them, and gives one in `workers`."""
    if loader._made_in != os.getpid():
        # A forked worker has no threads of its parent's.
        _begin_anew(loader, loader._stands)
    return (batch for batch in loader.batches() if batch.number % workers == worker)


def renew(loader: DataLoader) -> None:
    """A loader that ran stands at its beginning again, to be put elsewhere."""
    loader.stop()
    _begin_anew(loader, None)


def _begin_anew(loader: DataLoader, stands: tuple[str, tuple[Any, ...], dict[str, Any]] | None) -> None:
    fresh = make_again(type(loader), loader._given, stands)
    vars(loader).update(vars(fresh))
    # Its engine is another's now.
    vars(fresh).clear()


def refuse_other_counting() -> None:
    """Refuses `set_epoch` by a loader of accelerate that keeps a state.

    Raises:
        ConfigError: it is one: it counts passes from 0 in each process.
    """
    frame = sys._getframe(2)
    if frame.f_globals.get("__name__") != "accelerate.data_loader":
        return
    if getattr(frame.f_locals.get("self"), "use_stateful_dataloader", False):
        message = "accelerate counts passes from 0 in each process, so that a run that resumes would repeat some"
        raise ConfigError(f"{message}; prepare gristmill.torch.DataLoader(loader), whose passes follow each other")
