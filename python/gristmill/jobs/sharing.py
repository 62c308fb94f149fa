"""Shares of a job that many machines make: the commit that joins them, and how they stand."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gristmill import _gristmill
from gristmill.config import Path, to_json
from gristmill.jobs.converting import (
    ConvertedDemos,
    ConvertedGames,
    ToldGames,
    done_with_demos,
    done_with_games,
    told_games,
)
from gristmill.jobs.looking import Verification
from gristmill.jobs.packing import Packed, done
from gristmill.options.arguments import named
from gristmill.packs.packed import Duplicates, alike

_Made: TypeAlias = Packed | ConvertedGames | ConvertedDemos | ToldGames | Verification | Duplicates | dict[str, Any]

#: What the shares of each job become, by what the engine says of it.
_MADE: dict[str, Callable[[str], _Made]] = {
    "pack": lambda text: done(json.loads(text)),
    "rescore": done_with_games,
    "filter": done_with_games,
    "convert": done_with_games,
    "convert --files-per-shard": done_with_demos,
    "convert --to pgn": told_games,
    "convert --to fen": told_games,
    "convert --to bulletformat": told_games,
    "verify": lambda text: Verification(**json.loads(text)),
    "stats": json.loads,
    "split": done_with_games,
    "split --files-per-shard": json.loads,
    "dedup": lambda text: alike(json.loads(text)),
    "mark": json.loads,
    "tokenizer fit": json.loads,
}


@dataclass(frozen=True)
class ShareStatus:
    """A share and its state.

    `noted` is the seconds since the process that makes it last said that it lives, `why` the reason why it failed.
    """

    share: str
    state: Literal["done", "running", "failed", "missing"]
    noted: int | None
    why: str | None


@dataclass(frozen=True)
class Shares:
    """The shares of an output: the plan that they go by, how many stand how, and each of them in order."""

    folder: str
    plan: dict[str, Any]
    done: int
    running: int
    failed: int
    missing: int
    shares: list[ShareStatus]


@named
def commit(output: Path, *, overwrite: bool = False, dry_run: bool = False) -> Any:
    """Makes the output of all shares that `pack(..., share=...)` or another job made beside it, and removes them.

    Its bytes are those that one process makes of the same input; what is returned is what the job returns, and of a
    mark what `gristmill mark --json` prints.

    The shares of an output in a bucket are fetched to this machine, joined here, and the output is sent.

    Args:
        output: the output, as the shares had it: a path or URL.
        overwrite: replace a pack, report, mark or tokenizer that is there, once the new one is complete; of other jobs,
            and of a pack in a bucket, it is refused.
        dry_run: see whether all shares are there only.

    Raises:
        ConfigError: there are no shares; shares are missing, which are named, or another version made them; or the
            output is there already, or another process writes it to the bucket now.
        FormatError: a share or a plan that is damaged.
        OSError: a file or folder; another process commits them now.
        KeyboardInterrupt: Ctrl-C; the shares are all there.
    """
    options = {"output": os.fspath(output), "overwrite": overwrite, "dry_run": dry_run}
    job, made = _gristmill.commit_shares(to_json(options))
    return _MADE[job](made)


@named
def shares(output: Path) -> Shares:
    """How the shares of an output stand: done, running, failed and why, missing.

    Args:
        output: the output, as the shares had it.

    Raises:
        ConfigError: there are no shares.
        FormatError: their plan is damaged.
        OSError: a file or folder.
    """
    said: dict[str, Any] = json.loads(_gristmill.shares_of(os.fspath(output)))
    said["shares"] = [ShareStatus(**status) for status in said["shares"]]
    return Shares(**said)
