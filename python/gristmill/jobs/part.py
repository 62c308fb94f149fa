"""A share of a job: as callers name it, and what came of it."""

from __future__ import annotations

import operator
import os
from dataclasses import dataclass
from typing import TypeAlias

from gristmill.config import Path
from gristmill.errors import ConfigError

#: Which share of how many, counted from 1: `"17/400"` or `(17, 400)`.
OneOf: TypeAlias = str | tuple[int, int]


@dataclass(frozen=True)
class Share:
    """A share that a job made: which, by which plan, how many inputs and bytes; whether it was there already."""

    share: str
    plan: str
    inputs: int
    bytes: int
    there: bool


def words(share: OneOf) -> str:
    """A share as the engine reads it.

    Raises:
        ConfigError: neither a text nor two whole numbers.
    """
    if isinstance(share, str):
        return share
    try:
        number, of = (operator.index(one) for one in share)
    except (TypeError, ValueError):
        text = f"{share!r}: expected a share and how many there are, such as (17, 400)"
        raise ConfigError(text, field="share") from None
    return f"{number}/{of}"


def of_report(share: OneOf | None, output: Path | None, dry_run: bool) -> tuple[str, str, bool] | None:
    """A share of a report as the engine reads it; none without one.

    Raises:
        ConfigError: options of a share without one, or a share without its report.
    """
    if share is None and (output is not None or dry_run):
        raise ConfigError("it goes with share, for one share of a report", field="output" if output else "dry_run")
    if share is None:
        return None
    if output is None:
        raise ConfigError("a share is made beside its report: name the file of that as output", field="share")
    return words(share), os.fspath(output), dry_run
