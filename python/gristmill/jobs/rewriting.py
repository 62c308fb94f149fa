"""Files of chess games, rescored, filtered or split, as the commands do it: the same files again, in other folders."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gristmill.config import ChunkRescorerConfig, Path, plain
from gristmill.errors import ConfigError
from gristmill.jobs import part
from gristmill.jobs.converting import ConvertedGames, check_whole, write_games
from gristmill.options.arguments import named


@named
def rescore(
    input: Path,  # noqa: A002  (as `gristmill.convert` has it)
    output: Path,
    *,
    syzygy: Path | Iterable[Path] = (),
    allow_missing_tables: bool = False,
    dist_temp: float = 1.0,
    dist_offset: float = 0.0,
    dtz_boost: float = 0.0,
    new_input_format: int | None = None,
    deblunder_threshold: float | None = None,
    deblunder_width: float | None = None,
    st_q_theta: float = 0.8333333,
    policies: Path | None = None,
    keep_v6: bool = False,
    compat: Iterable[str] = (),
    threads: int | None = None,
    share: part.OneOf | None = None,
    dry_run: bool = False,
) -> ConvertedGames:
    """Writes games of chess with better targets: by tablebases, policies, blunders, input format, V6 to V7.

    The same call resumes one that was interrupted. `gristmill.chess.rescore` does it to arrays.

    Args:
        input: a file, or a folder with all below it.
        output: a new or empty folder, neither `input` nor inside it.
        syzygy: a directory of Syzygy tables, or several; none asks no tables.
        allow_missing_tables: positions that need missing or damaged tables stay as they are, and are counted.
        dist_temp: temperature of the policy.
        dist_offset: added to each probability before that.
        dtz_boost: probability to share among the moves that win fastest by the tables.
        new_input_format: 1, 2, 3, 4, 5, 132 or 133; by default that of the game.
        deblunder_threshold: loss of value by the move played that makes it a blunder; with `deblunder_width`.
        deblunder_width: width around the threshold within which a blunder counts in part.
        st_q_theta: decay per ply of the short-term values of V7, 0 to 1.
        policies: a directory of games whose policies replace those of the frames that follow the same moves.
        keep_v6: V6 records stay V6, and older ones become V6.
        compat: quirks of the lc0 rescorer to reproduce, by name.
        threads: one per core by default. They change no byte.
        share: of files that many machines rescore, the share that is written now, `"17/400"` or `(17, 400)`, counted
            from 1. It is made beside `output`, once however often this is called; `commit` makes the output of all.
        dry_run: look only; of a share, only what it would be.

    Raises:
        ConfigError: options out of range or that do not fit each other or what is there; tables that are missing.
        FormatError: a damaged table. A damaged game is counted instead.
        OSError: a file or folder.
        KeyboardInterrupt: Ctrl-C; the same call resumes.
    """
    several = [syzygy] if isinstance(syzygy, str | os.PathLike) else syzygy
    config = ChunkRescorerConfig(
        syzygy_paths=",".join(os.fspath(path) for path in several),
        allow_missing_tables=allow_missing_tables,
        dist_temp=dist_temp,
        dist_offset=dist_offset,
        dtz_boost=dtz_boost,
        new_input_format=-1 if new_input_format is None else new_input_format,
        deblunder_threshold=deblunder_threshold,
        deblunder_width=deblunder_width,
        st_q_theta=st_q_theta,
        policy_directory=policies,
        compat=list(compat),
    )
    job = {"rescore": {"config": plain(config), "keep_v6": keep_v6}}
    return write_games(job, _places(input, output, threads, share, dry_run))


@named
def filter(  # noqa: A001  (`gristmill.filter`, as the command is called)
    input: Path,  # noqa: A002
    output: Path,
    *,
    rules: str | Iterable[str] = "default",
    threads: int | None = None,
    share: part.OneOf | None = None,
    dry_run: bool = False,
) -> ConvertedGames:
    """Writes the games of chess that break no rule, byte for byte.

    The same call resumes one that was interrupted.

    Args:
        input: a file, or a folder with all below it.
        output: a new or empty folder, neither `input` nor inside it.
        rules: `all`, `default`, or names of single rules; `-NAME` takes one away.
        threads: one per core by default. They change no byte.
        share: as for `rescore`.
        dry_run: look only; of a share, only what it would be.

    Raises:
        ConfigError: a rule that is not known, options that do not fit what is there.
        OSError: a file or folder.
        KeyboardInterrupt: Ctrl-C; the same call resumes.
    """
    names = rules.split(",") if isinstance(rules, str) else list(rules)
    return write_games({"filter": {"rules": names}}, _places(input, output, threads, share, dry_run))


@named
def split(
    input: Path,  # noqa: A002
    output: Path,
    into: Mapping[str, int],
    *,
    by: Literal["name", "file", "content"] = "name",
    folds: int | None = None,
    fold: int | None = None,
    threads: int | None = None,
    share: part.OneOf | None = None,
    dry_run: bool = False,
) -> ConvertedGames:
    """Writes games of chess to one of several folders each, byte for byte, where a loader that splits puts them.

    The same call resumes one that was interrupted.

    Args:
        input: a file, or a folder with all below it.
        output: the folder that gets the folders; neither `input` nor inside it.
        into: names of the folders, new or empty, and the weight of each: `{"train": 9, "test": 1}`.
        by: what decides where a game goes: the `name` that it had as a file, wherever it lies now; the `file` that it
            lies in and its number there; or its `content`: a game, its copies and its colour mirror go to one folder.
        folds: deal what the first two folders have together to folds: the second gets one, the first all others.
        fold: which fold, from 0.
        threads: one per core by default. They change no byte.
        share: as for `rescore`.
        dry_run: look only; of a share, only what it would be.

    Raises:
        ConfigError: weights, names or folds that cannot be; options that do not fit what is there; what are not games
            of chess.
        OSError: a file or folder.
        KeyboardInterrupt: Ctrl-C; the same call resumes.
    """
    if (folds is None) != (fold is None):
        raise ConfigError("`folds` and `fold` go together", field="folds")
    whole = {f"`{name}`": weight for name, weight in into.items()} | {"folds": folds, "fold": fold}
    for name in whole:
        check_whole(whole, name, 0, 2**64 - 1)
    dealt = None if folds is None else (folds, fold)
    job = {"split": {"into": list(into.items()), "by": by, "folds": dealt}}
    return write_games(job, _places(input, output, threads, share, dry_run))


def _places(source: Path, output: Path, threads: int | None, share: part.OneOf | None, dry_run: bool) -> dict[str, Any]:
    """From where to where, and how."""
    places = {"input": os.fspath(source), "output": os.fspath(output)}
    return {**places, "threads": threads, "share": share, "dry_run": dry_run}
