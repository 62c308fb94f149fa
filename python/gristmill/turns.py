"""Which thread or which worker of PyTorch's takes the next batch of a pass. Imports no PyTorch."""

from __future__ import annotations

import os
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import TYPE_CHECKING

from gristmill.again import make_again
from gristmill.batch import Batch

if TYPE_CHECKING:
    from gristmill.loader import DataLoader


class Shared:
    """What the threads that go over one loader share, by output."""

    def __init__(self) -> None:
        #: Whose turn it is to take a batch.
        self.turn: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        #: Passes of a stream whose last batch was taken.
        self.over: Counter[str] = Counter()


def of_worker() -> tuple[int, int] | None:
    """The number of this worker and how many there are; `None` in a process that is none."""
    torch = sys.modules.get("torch.utils.data")
    info = None if torch is None else torch.get_worker_info()
    return None if info is None else (info.id, info.num_workers)


def batches(loader: DataLoader, worker: int, workers: int) -> Iterator[Batch]:
    """The batches of a stream or of rows that fall to a worker: it makes all of them, and gives one in `workers`."""
    if loader._made_in != os.getpid():
        # A forked worker has no threads of its parent's.
        fresh = make_again(type(loader), loader._given, loader._stands)
        loader._engine, loader._made_in, loader._shared = fresh._engine, os.getpid(), Shared()
        del fresh._engine
    return (batch for batch in loader.batches() if batch.number % workers == worker)
