"""Games of a game of nobody's: rows of small numbers, from which columns and fields can be told."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

import gristmill as gm

#: A row: what is on the board, where moves went, who won, and the number of the row over all games.
ROW = np.dtype([("board", "i1", (3, 4)), ("policy", "<f4", (4,)), ("value", "<f4"), ("number", "<i8")])
COLUMNS = {"result": "last:value", "plies": "max:number"}
FACTS = {"elo": int, "who": str}


def game(i: int) -> npt.NDArray[Any]:
    """Game `i`: 3 to 9 rows."""
    rng = np.random.default_rng(i)
    rows = np.zeros(3 + i % 7, ROW)
    rows["board"] = rng.integers(-1, 2, rows["board"].shape)
    rows["policy"] = rng.random(rows["policy"].shape, np.float32)
    rows["value"] = i % 3 - 1
    rows["number"] = 100 * i + np.arange(len(rows))
    return rows


def games(count: int) -> Iterator[tuple[npt.NDArray[Any], dict[str, Any]]]:
    """Games with their facts; of every fifth they are unknown."""
    for i in range(count):
        yield game(i), {"elo": 1000 + i, "who": f"player {i % 4}"} if i % 5 else {}


def packed(path: Any, count: int = 40, **options: Any) -> Any:
    """A pack of the first games, open."""
    gm.pack(games(count), path, columns=COLUMNS, facts=FACTS, identity=["board"], **options)
    return gm.open(path, expect=gm.Games)
