"""Batches of pairs, by pass and first row: made ahead by the engine's threads, or any of them at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gristmill import _gristmill
from gristmill.config import to_json
from gristmill.demos.crossing import Crossing, Ring
from gristmill.demos.gathering import Gatherer
from gristmill.pairs.constructor import Numbers, PairSet, numbers
from gristmill.pairs.prepare import Prepare

#: The pass and the row of all ranks at which a batch begins.
Place = tuple[int, int]


class PairFeed:
    """Arrays of batches by name, of several data sets in one order."""

    def __init__(
        self,
        sets: Sequence[PairSet[Any]],
        order: _gristmill.Mix,
        gatherer: tuple[Prepare, bool],
        config: dict[str, Any],
    ) -> None:
        """Checks that the data sets give the same arrays.

        Args:
            sets: the pairs of each data set.
            order: of all their rows.
            gatherer: how values are converted, and whether smaller shapes are filled up.
            config: of the engine's loader of rows, as JSON has it.

        Raises:
            ConfigError: types or shapes differ between the data sets.
        """
        self._order, self._config = order, config
        self._gatherer = Gatherer(sets, *gatherer, config["seed"])
        self._first = np.cumsum([0, *(len(pairs) for pairs in sets[:-1])])
        self._length = config["mix"]["length"]
        self._stride = order.length or self._length
        # What feeds, in which process, and the batch that it gives next.
        self._fed: tuple[int, _gristmill.Loader] | None = None
        self._upcoming: Place | None = None

    @property
    def row_bytes(self) -> list[int]:
        """Bytes of a row of each column."""
        return self._gatherer.row_bytes

    def whole(self, about: tuple[int, str], config: dict[str, Any]) -> _gristmill.Loader:
        """A loader of all passes.

        Args:
            about: a hash of what the pairs are, and in JSON what decides their values.
            config: what it has otherwise than this feed.
        """
        return _gristmill.Loader.of_pairs(self._gatherer.pairs, *about, to_json({**self._config, **config}))

    def named(self, places: Callable[[], Sequence[int]], columns: Sequence[Any], rows: int) -> dict[str, Any]:
        """A batch over the memory of its columns, by name; `places` gives its rows, counted through all sets."""
        arrays = self._gatherer.named(columns, rows)
        return {**self._gatherer.lists(*self.found(places())), **arrays} if self._gatherer.has_lists else arrays

    def found(self, places: Sequence[int]) -> tuple[Numbers, Numbers]:
        """Data set, and number there, of rows that are counted through all sets."""
        rows = np.asarray(places, np.int64)
        sources = np.searchsorted(self._first, rows, "right") - 1
        return sources, rows - self._first[sources]

    @property
    def columns(self) -> dict[str, int]:
        """Which column each array is."""
        return self._gatherer.columns

    def rows(self, place: Place) -> tuple[Numbers, Numbers, Numbers]:
        """Data set, number there, and pass of that data set of each row that this rank has of a batch."""
        epoch, start = place
        count = min(self._config["batch_size"], self._length - start)
        parts = self._order.rows(epoch * self._stride + start, count)
        rank, world = self._config["rank"], self._config["world_size"]
        sources, rows, passes = (numbers(part)[rank::world] for part in parts)
        return sources, rows, passes

    def engine(self, place: Place) -> _gristmill.Loader:
        """What gives the batches from this one on; a forked child makes its own."""
        if self._fed is None or self._fed[0] != os.getpid() or self._upcoming != place:
            self.stop()
            engine = _gristmill.Loader.of_pairs(self._gatherer.pairs, 0, "null", to_json(self._config))
            engine.seek_row(*place)
            self._fed, self._upcoming = (os.getpid(), engine), place
        return self._fed[1]

    def next(self, place: Place, after: Place, timeout: float | None) -> dict[str, Any]:
        """The batch that begins there, of those that the engine makes ahead; the next one begins at `after`.

        Raises:
            TimeoutError: `timeout` seconds have passed.
        """
        found = self.engine(place).next("", timeout)
        if found is None:
            raise TimeoutError(f"no batch within {timeout} seconds")
        self._upcoming = after
        _, rows, columns = found
        return {**self._lists(place), **self._gatherer.named([column[3] for column in columns], rows)}

    def at(self, place: Place) -> dict[str, Any]:
        """The batch that begins there, made at once."""
        sources, rows, passes = self.rows(place)
        made = self._gatherer.pairs.take(self._first[sources] + rows, np.ascontiguousarray(passes))
        return {**self._lists(place), **self._gatherer.named(made, len(rows))}

    def crossing(
        self, place: Place, ring: Ring, values: Callable[[Any], Any], made: Callable[[dict[str, Any]], Any]
    ) -> Crossing | None:
        """The same in a slot of `ring`, on its way to the process that made the ring; `None` while no slot is free."""
        slot = ring.take()
        if slot is None:
            return None
        try:
            sources, rows, passes = self.rows(place)
            room = ring.views(slot, len(rows))
            self._gatherer.pairs.take_into(self._first[sources] + rows, np.ascontiguousarray(passes), room)
            found = {**self._lists(place), **self._gatherer.placed(room, len(rows))}
        except BaseException:
            ring.give_back(slot)
            raise
        return Crossing(ring, slot, values(found), self._gatherer.columns, made)

    def stop(self) -> list[str]:
        """Stops the threads within a second; gives the names of those that were left behind."""
        fed, self._fed = self._fed, None
        return [] if fed is None or fed[0] != os.getpid() else fed[1].stop()

    def __del__(self) -> None:
        if getattr(self, "_fed", None) is not None:
            self.stop()

    def _lists(self, place: Place) -> dict[str, list[Any]]:
        """What of a batch is no array."""
        if not self._gatherer.has_lists:
            return {}
        sources, rows, _ = self.rows(place)
        return self._gatherer.lists(sources, rows)
