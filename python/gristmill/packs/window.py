"""How many of the newest rows a run trains on, as rows become more: the law of KataGo's window."""

from __future__ import annotations

import operator

from gristmill.options.arguments import named


@named
def newest_rows(total: int, *, least: int = 250_000, slope: float = 0.4, power: float = 0.75) -> int:
    """How many of the newest of `total` rows a run trains on, by the law of KataGo's paper (arXiv 1902.10565).

        rows = gm.open("go")
        window = rows[rows.num_frames - gm.newest_rows(rows.num_frames) :]

    Up to `least` rows these are all; then `least * (1 + slope * ((total / least) ** power - 1) / power)`, rounded
    down: the power of `total` that is `least` there, and grows by `slope` rows for each row. A pack that grows by
    `existing="append"` has its newest rows last.

    Args:
        total: rows that there are.
        least: rows from which on the window is smaller than all.
        slope: how many rows the window grows by for each new one there, above 0, at most 1.
        power: how fast that becomes less, above 0; 1 for never.

    Raises:
        ValueError: a number that is none of these.
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
