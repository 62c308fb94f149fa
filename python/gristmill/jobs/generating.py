"""Games to try things on: real ones, played by simple players, as `gristmill generate` makes them."""

from __future__ import annotations

import json
import operator
import os
from dataclasses import dataclass
from typing import Literal

from gristmill import _gristmill
from gristmill.config import Path, to_json
from gristmill.options.arguments import named


@dataclass(frozen=True)
class Made:
    """What came of `generate`."""

    folder: str
    files: int
    games: int
    #: Positions, or moves of 2048.
    frames: int
    bytes: int
    #: The seed, which was drawn where none was given.
    seed: int


@named
def generate(
    kind: Literal["chess", "2048"],
    folder: Path,
    *,
    games: int = 100,
    seed: int | None = None,
    first: int | None = None,
    version: Literal[6, 7] = 6,
    plies_max: int = 200,
    games_per_tar: int | None = None,
    depth: int = 1,
    moves_max: int | None = None,
    threads: int | None = None,
) -> Made:
    """Plays games and writes them: the same seed gives the same bytes. Nothing that is there is replaced.

    Random play in real environments is `gristmill.demos.collect_random`.

    Args:
        kind: `"chess"`, legal games with records of Leela Chess Zero; or `"2048"`, raw logs of an expectimax player.
        folder: where to; made when it does not exist.
        games: how many.
        seed: game n is a function of the seed and n; drawn when absent.
        first: number of the first game, by default 1 of chess and 0 of 2048: how to add games to a folder.
        version: of chess, version of the records.
        plies_max: of chess, most plies of a game.
        games_per_tar: of chess, games in each tar; without it one `.gz` for each.
        depth: of 2048, levels of chance that the player looks through, 0 to 7; each costs some twenty times the one
            above.
        moves_max: of 2048, most moves of a game.
        threads: of 2048, threads that play; they change no byte.

    Raises:
        ConfigError: an option out of range.
        ValueError: another kind, or less than one game.
        TypeError: `games` is no whole number.
        FileExistsError: a game of this number is there already.
        OSError: a file cannot be written.
    """
    try:
        games = operator.index(games)
    except TypeError:
        raise TypeError(f"games={games!r}; expected a whole number, such as 100") from None
    if games < 1:
        raise ValueError(f"{games} games; expected at least 1")
    shared = {"folder": os.fspath(folder), "games": games, "seed": seed}
    if kind == "chess":
        own = {"plies_max": plies_max, "version": version, "games_per_tar": games_per_tar}
        made = _gristmill.generate_chess(to_json({**shared, "first": 1 if first is None else first, **own}))
    elif kind == "2048":
        own = {"depth": depth, "moves_max": moves_max, "threads": threads}
        made = _gristmill.generate_2048(to_json({**shared, "first": 0 if first is None else first, **own}))
    else:
        raise ValueError(f"kind {kind!r}; expected 'chess' or '2048'")
    return Made(folder=os.fspath(folder), **json.loads(made))
