"""Batches of any loader for trainers, pass after pass, in the process that has it, with states that lose none."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from torch.utils.data import IterableDataset

from gristmill.errors import ConfigError
from gristmill.frameworks import turns
from gristmill.frameworks.tensors import tensors
from gristmill.loaders.batch import Batch
from gristmill.loaders.loader import DataLoader


class Feed(IterableDataset[dict[str, Any]]):
    """What a loader gives, pass after pass, in the process that has it, with its state: what a trainer loops over.

    There is no `set_epoch`: passes follow each other, and who counts them from 0 after a resume repeats none.
    """

    _loader: Any

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """The batches that are left of this pass.

        Raises:
            ConfigError: accelerate reads in one process for all, and the ranks of the loader share its rows already.
        """
        world: int = self._loader.world_size
        for found in _callers() if world > 1 else ():
            processes = getattr(getattr(found, "state", None), "num_processes", 1)
            if type(found).__name__ == "DataLoaderDispatcher" and processes > 1:
                message = f"accelerate reads in one process for all, of {world} ranks that share the rows themselves"
                advice = "loop over gristmill.torch.DataLoader itself, or make its loader with rank=0, world_size=1"
                raise ConfigError(f"{message}: what the others have would be lost; {advice}")
        return self._left()

    def _left(self) -> Iterator[dict[str, Any]]:
        raise NotImplementedError

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader after the last batch that was used."""
        state: dict[str, Any] = self._loader.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says."""
        self._loader.load_state_dict(state)


class _Ahead(NamedTuple):
    """A batch that a trainer holds and has not used."""

    #: The state before it.
    state: dict[str, Any]
    batch: dict[str, Any]
    #: What follows it in its pass.
    rest: Iterator[Batch]


class RowFeed(Feed):
    """What comes from the loader itself: streams, rows of packs, demonstrations.

    Lightning takes a batch ahead where it knows no length. That batch counts as given once the next one is taken: a
    state is from before it, and where training ends meanwhile the next iteration begins with it.
    """

    def __init__(self, loader: DataLoader, alias: str = "", length: int | None = None) -> None:
        super().__init__()
        if length is not None and length < 1:
            raise ValueError(f"length {length}; expected at least 1 batch")
        self._loader, self._alias, self._length = loader, alias, length
        self._ahead: _Ahead | None = None
        # A stream starts when its state is wanted.
        self._asked = False

    def __len__(self) -> int:
        """Batches of an iteration.

        Raises:
            TypeError: their number is unknown.
        """
        return len(self._loader) if self._length is None else self._length

    def _left(self) -> Iterator[dict[str, Any]]:
        takes_ahead = _takes_ahead()
        rest: Iterator[Batch]
        if self._ahead is None:
            rest = itertools.islice(self._loader.batches(self._alias), self._length)
        else:
            _, batch, rest = self._ahead
            if not takes_ahead:
                self._ahead = None
            yield batch
        while True:
            before = self._stands() if takes_ahead else {}
            found = next(rest, None)
            if found is None:
                break
            batch = tensors(found.asdict())
            if takes_ahead:
                self._ahead = _Ahead(before, batch, rest)
            yield batch
        self._ahead = None

    def state_dict(self) -> dict[str, Any]:
        """The state of the loader after the last batch that was used."""
        return self._stands() if self._ahead is None else self._ahead.state

    def _stands(self) -> dict[str, Any]:
        self._asked = True
        return super().state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """The next iteration resumes where the state says; a loader that runs starts again for it.

        Raises:
            StateError: it is of other data or another configuration.
        """
        self._ahead = None
        if self._loader._begun or self._asked:
            turns.renew(self._loader)
        super().load_state_dict(state)


def _takes_ahead() -> bool:
    """Whether Lightning iterates here and knows no length: then it takes a batch ahead, and says so nowhere."""
    for found in _callers():
        if type(found).__name__ == "_PrefetchDataFetcher":
            return getattr(found, "length", None) is None
    return False


def _callers() -> Iterator[Any]:
    """The objects whose methods lead here, the nearest first."""
    frame = sys._getframe(1)
    while frame is not None:
        yield frame.f_locals.get("self")
        frame = frame.f_back  # type: ignore[assignment]
