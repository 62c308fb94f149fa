"""The window of the newest rows that a run trains on, by its number of rows: the law of KataGo."""

from __future__ import annotations

import operator

from gristmill.options.arguments import named


@named
def newest_rows(total: int, *, least: int = 250_000, slope: float = 0.4, power: float = 0.75) -> int:
    """How many of the newest of `total` rows a run trains on, by the law of KataGo's paper (arXiv 1902.10565).

        rows = gm.open("go")
        window = rows[rows.num_frames - gm.newest_rows(rows.num_frames) :]

    A run of up to `least` rows trains on all of them. A longer one trains on
    `least * (1 + slope * ((total / least) ** power - 1) / power)` rows, rounded down: past `least` rows the window
    grows by `slope` rows for each new row at first, and more slowly later. A pack that grows by `existing="append"`
    has its newest rows last.

    Args:
        total: number of rows of the run.
        least: number of rows up to which the window has all rows.
        slope: rows that the window grows by for each new row at `least`, above 0, at most 1.
        power: how the growth slows down, above 0; at 1 it does not.

    Raises:
        ValueError: a number out of these ranges.
        TypeError: `total` or `least` is no whole number.
    """
    total, least = operator.index(total), operator.index(least)
    if total < 0 or least < 1:
        raise ValueError(f"total={total}, least={least}; expected 0 rows or more, and 1 or more")
    for name, value in (("slope", slope), ("power", power)):
        if not 0 < value <= 1:
            raise ValueError(f"{name}={value!r}; expected a number above 0, at most 1")
    if total <= least:
        return total
    return min(total, int(least * (1 + slope * ((total / least) ** power - 1) / power)))
