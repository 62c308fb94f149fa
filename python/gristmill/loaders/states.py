"""What saved states need: files that are gone, files that may be deleted, and the states of ranks as one."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

from gristmill import _gristmill
from gristmill.config import Path, to_json

#: What is done where files are gone that a state needs.
Missing = Literal["refuse", "skip", "spill"]


def check_missing(missing: Missing) -> None:
    """Refuses what is none of the choices.

    Raises:
        ValueError: it is none.
    """
    if missing not in get_args(Missing):
        raise ValueError(f"missing is {missing!r}; expected 'refuse', 'skip' or 'spill'")


@dataclass(frozen=True)
class Vanished:
    """A file that a saved state needs and that is gone or changed, and what is lost with it."""

    name: str
    why: str
    chunks: int
    rows: int


@dataclass(frozen=True)
class OldestNeeded:
    """The oldest file that a state may still need: name below its directory, key (without folders), order of keys."""

    name: str
    key: str
    key_order: str

    def may_delete(self, name: Path) -> bool:
        """Whether no state needs the file of this name below the directory, so that it may be deleted: it is older."""
        return _gristmill.is_older(os.fspath(name), self.name, self.key_order)

    def is_after(self, name: Path) -> bool:
        """The same, by the name that it had before."""
        warnings.warn("`is_after` is called `may_delete` now", DeprecationWarning, stacklevel=2)
        return self.may_delete(name)


def merge_states(states: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """The state of a whole run, made of what `state_dict` gave on each of its ranks after the same step.

    Any number of ranks continues from it, as from the list of the parts. A loader of rows or pairs has the same state
    on every rank: it is that one.

    Raises:
        StateError: they do not belong together, or that of a rank is not there.
    """
    merged: dict[str, Any] = json.loads(_gristmill.merge_states([to_json(dict(state)) for state in states]))
    return merged
