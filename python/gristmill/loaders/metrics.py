"""The numbers of a loader as one flat dictionary, as logs of experiments take it; and those of loaders in Python."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from gristmill import _gristmill

_Made = TypeVar("_Made")


def flat(values: Mapping[str, Any]) -> dict[str, float | int]:
    """`DataLoader.metrics` without its structure: numbers alone, by `stage/name`, times in seconds.

    `tensors/rows`, `tensors/queue_waiting`, `tensors/busy_seconds`, `consumer_wait_seconds`, `stall`,
    `waited_decode_seconds`, `bad_chunks`, ...
    """
    found: dict[str, float | int] = {"uptime_seconds": values["uptime_seconds"], "rank": values["rank"]}
    waited = 0
    for stage in values["stages"]:
        for one in stage["counts"]:
            found |= _named(f"{stage['name']}/{one['name']}", one["total"])
        for one in stage["gauges"]:
            found[f"{stage['name']}/{one['name']}"] = one["value"]
        queue = stage.get("queue")
        if queue is not None:
            waited += queue.get("consumer_wait_ns", 0)
            found |= {f"{stage['name']}/queue_{name}": queue[name] for name in ("waiting", "capacity", "dropped")}
    found["consumer_wait_seconds"] = waited / 1e9
    if values["waits"]:
        found["stall"] = values["stall"]
        found["stall_since_start"] = values["stall_since_start"]
        found |= {f"waited_{one['cause']}_seconds": one["seconds"] for one in values["waits"]}
    found["bad_chunks"] = values["bad_chunks"]["chunks"]
    return found


def _named(name: str, total: int) -> dict[str, float | int]:
    stem = name.removesuffix("_ns")
    return {name: total} if stem == name else {f"{stem}_seconds": total / 1e9}


class Counted:
    """What a loader that works in its consumer's thread has given, and how long the consumer waited for it."""

    def __init__(self, pairs: bool, seed: int, rank: int, world_size: int) -> None:
        self._engine = _gristmill.Counted(pairs, seed, rank, world_size)

    def numbers(self) -> dict[str, float | int]:
        """Batches, rows, and seconds that the consumer waited."""
        found = flat(json.loads(self._engine.metrics()))
        return {
            name.rpartition("/")[2]: found[name]
            for name in found
            if name.endswith(("/batches", "/rows", "_wait_seconds"))
        }

    def during(self, rows: int, epoch: int, make: Callable[[], _Made]) -> _Made:
        """Waits for a batch of `rows` rows of this pass."""
        begun = time.perf_counter_ns()
        made = make()
        self._engine.add(rows, time.perf_counter_ns() - begun, epoch)
        return made

    def serve(self, address: str, token: str | None) -> str:
        """Serves the numbers; gives the address with its port."""
        return self._engine.serve_metrics(address, token)
