"""An MCAP file -> its table: one trajectory, whose steps are the messages of one topic; others as they were then."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.own.episodes import fault
from gristmill.demos.own.mcap_file import topics_of
from gristmill.demos.own.names import choose
from gristmill.demos.own.tables import MAX_ARRAYS, Table

#: What says whether a topic had a message yet.
_SEEN = "seen"


def of_mcap(path: str, max_bytes: int, fields: Mapping[str, str] | None) -> Iterator[Table]:
    """The table of an MCAP file: arrays are called `topic.value`, without the first slash of the topic.

    The steps are the messages of the clock: of the topic of the field `clock`, where `fields` names one, else of
    `acts`, else of `obs`, else of the first field. Of all other topics each step has the newest message at or before
    it; before the first there are zeros, and `topic.seen` is false. Where `fields` chooses arrays, each has its own.

    Raises:
        MissingPackageError: the extra `mcap` brings what reads it.
        FormatError: the file is cut or damaged, or a message is none; it says where.
        OSError: it cannot be read.
    """
    topics = topics_of(path, max_bytes, fields)
    found = {f"{name}.{value}": (topic, value) for name, topic in topics.items() for value in topic.names}
    if len(found) > MAX_ARRAYS:
        raise fault(path, "too_large", f"{len(found)} values; at most {MAX_ARRAYS} are read")
    reasons = {name: topic.others[value] for name, (topic, value) in found.items() if value in topic.others}
    left = {name: says for name, says in reasons.items() if fields is None or name not in fields.values()}
    found = {name: one for name, one in found.items() if name not in left}
    chosen = choose(path, path, found, fields)
    clock = found[_clock(chosen, fields)][0]
    others = {name: found[name][0] for name in chosen.values()} if fields is not None else topics
    masks = {f"{name}.{_SEEN}": topic for name, topic in others.items() if topic is not clock}
    ticks = clock.times()

    def read(name: str) -> npt.NDArray[Any]:
        topic, value = found.get(name) or (masks[name], None)
        newest = np.arange(len(ticks)) if topic is clock else np.searchsorted(topic.times(), ticks, "right") - 1
        seen: npt.NDArray[np.bool_] = newest >= 0
        if value is None:
            return seen
        taken = topic.taken(value, np.maximum(newest, 0))
        taken[~seen] = 0
        return taken

    yield Table(path, [*found, *(name for name in masks if name not in found)], read, True, left)


def _clock(chosen: Mapping[str, str], fields: Mapping[str, str] | None) -> str:
    """The array whose topic ticks."""
    heads = ("acts", "obs") if fields is None else ("clock", "acts", "obs")
    ticking = (name for head in heads for field, name in chosen.items() if field.split(".")[0] == head)
    return next(ticking, None) or next(iter(chosen.values()))
