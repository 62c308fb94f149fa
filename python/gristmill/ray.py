"""Jobs whose shares are tasks of a Ray cluster (`pip install gristmill[ray]`).

    import gristmill.ray

    gristmill.ray.pack("games", "pack", shares=400)
    gristmill.ray.rescore("games", "rescored", syzygy="tables")
    gristmill.ray.mark("pack", "late", "plies_left < 20")

Each makes what `gristmill.pack` and the like make, byte for byte, by a task for each share of the files, or of a pack.
The same call makes the shares that are missing, and no other, after Ctrl-C, after a failure, and after this process was
killed. Ray makes those again whose machine was lost. Games do not pass through it: each task reads its files and writes
its share itself. `input`, the folder of `output`, and whatever else is read lie where every machine reaches them by the
same path, or by the same URL in a bucket.

All take, beside the options of their job:

- `shares`: how many there are; by default as many as an earlier call began, else one for each 64 MiB, or fewer of many
  small files, all of which each task lists.
- `num_cpus`: processors that Ray reserves for each task: a whole number, or less than 1. A task has as many threads,
  unless the option for threads says another number. They never change a byte.
- `address`: of the cluster, as `ray.init` takes it; by default the one that this process is connected to, else what
  `ray.init` finds or starts.
- `dry_run`: see what would be made only; needs no cluster.
- `progress`: called with the number of shares that are done and of all, first with those that were there.

All raise `ConfigError` for options that do not fit each other or what is there, such as another plan or an output;
`SharesError` where shares failed: all others are done, and nothing was committed; `FormatError` for a plan or share
that is damaged; `OSError` for files, and `ConnectionError` for a cluster that cannot be reached; `MissingPackageError`
without Ray; `KeyboardInterrupt` at Ctrl-C: the shares that are done stay.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, overload

from gristmill.config import Path, PositionSamplingConfig
from gristmill.frameworks.ray_shares import Cluster, OnRay, by_shares, of_all
from gristmill.jobs.converting import ConvertedDemos, ConvertedGames, ToldGames
from gristmill.jobs.looking import Verification
from gristmill.jobs.packing import Packed
from gristmill.options.arguments import named
from gristmill.packs.packed import Duplicates

__all__ = [
    "OnRay",
    "convert",
    "dedup",
    "filter",
    "fit_tokenizer",
    "mark",
    "pack",
    "rescore",
    "split",
    "stats",
    "verify",
]


@named
def pack(
    input: Path,  # noqa: A002  (as `gristmill.pack` has it)
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    layout: Literal["aligned48", "packed46"] | None = None,
    codec: Literal["zstd", "raw"] | None = None,
    shard_rows: int | None = None,
    workers: int | None = None,
    on_error: Literal["skip", "quarantine", "raise"] = "skip",
    weigh: Iterable[PositionSamplingConfig] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[Packed]:
    """Makes the pack that `gristmill.pack` makes; see this module for what all jobs take and raise.

    Args:
        input: folder of games or demonstrations, as `gristmill.pack` takes it for shares.
        output: folder of the pack; the shares lie beside it meanwhile.
        shares: how many.
        num_cpus: processors of each task.
        address: of the cluster.
        layout: as for `gristmill.pack`.
        codec: as for `gristmill.pack`.
        shard_rows: as for `gristmill.pack`.
        workers: threads of each task.
        on_error: as for `gristmill.pack`.
        weigh: as for `gristmill.pack`.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.
    """
    options = {"layout": layout, "codec": codec, "shard_rows": shard_rows, "on_error": on_error, "weigh": list(weigh)}
    cluster = Cluster(shares, num_cpus, address, workers)
    return by_shares("pack", (input, output), options, cluster, dry_run, progress)


@named
def rescore(
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
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
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[ConvertedGames]:
    """Writes the games that `gristmill.rescore` writes; see this module for what all jobs take and raise.

    All options but `shares`, `num_cpus`, `address` and `progress` are those of `gristmill.rescore`. Every machine reads
    the tables; other tables on one of them are refused as another plan.
    """
    several = [syzygy] if isinstance(syzygy, str | os.PathLike) else list(syzygy)
    options = {
        "syzygy": [of_all(path) for path in several],
        "allow_missing_tables": allow_missing_tables,
        "dist_temp": dist_temp,
        "dist_offset": dist_offset,
        "dtz_boost": dtz_boost,
        "new_input_format": new_input_format,
        "deblunder_threshold": deblunder_threshold,
        "deblunder_width": deblunder_width,
        "st_q_theta": st_q_theta,
        "policies": None if policies is None else of_all(policies),
        "keep_v6": keep_v6,
        "compat": list(compat),
    }
    cluster = Cluster(shares, num_cpus, address, threads)
    return by_shares("rescore", (input, output), options, cluster, dry_run, progress)


@named
def filter(  # noqa: A001  (as `gristmill.filter`)
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    rules: str | Iterable[str] = "default",
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[ConvertedGames]:
    """Writes the games that `gristmill.filter` writes; see this module for what all jobs take and raise.

    All options but `shares`, `num_cpus`, `address` and `progress` are those of `gristmill.filter`.
    """
    options = {"rules": rules if isinstance(rules, str) else list(rules)}
    cluster = Cluster(shares, num_cpus, address, threads)
    return by_shares("filter", (input, output), options, cluster, dry_run, progress)


@overload
def convert(
    input: Path,
    output: Path,
    to: Literal["v6", "v7"] | None = ...,
    *,
    shares: int | None = ...,
    num_cpus: float = ...,
    address: str | None = ...,
    version: Literal[6, 7] | None = ...,
    st_q_theta: float | None = ...,
    lossy: bool = ...,
    container: Literal["loose", "tar"] | None = ...,
    games_per_tar: int = ...,
    threads: int | None = ...,
    dry_run: bool = ...,
    progress: Callable[[int, int], object] | None = ...,
) -> OnRay[ConvertedGames]: ...
@overload
def convert(
    input: Path,
    output: Path,
    to: Literal["pgn", "fen", "bulletformat"],
    *,
    shares: int | None = ...,
    num_cpus: float = ...,
    address: str | None = ...,
    dry_run: bool = ...,
    progress: Callable[[int, int], object] | None = ...,
) -> OnRay[ToldGames]: ...
@overload
def convert(
    input: Path,
    output: Path,
    *,
    files_per_shard: int,
    demonstrations: Mapping[str, Any] | None = ...,
    shares: int | None = ...,
    num_cpus: float = ...,
    address: str | None = ...,
    dry_run: bool = ...,
    progress: Callable[[int, int], object] | None = ...,
) -> OnRay[ConvertedDemos]: ...
@named
def convert(
    input: Path,  # noqa: A002
    output: Path,
    to: Literal["v6", "v7", "pgn", "fen", "bulletformat"] | None = None,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    version: Literal[6, 7] | None = None,
    st_q_theta: float | None = None,
    lossy: bool = False,
    container: Literal["loose", "tar"] | None = None,
    games_per_tar: int = 1000,
    files_per_shard: int | None = None,
    demonstrations: Mapping[str, Any] | None = None,
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[ConvertedGames] | OnRay[ToldGames] | OnRay[ConvertedDemos]:
    """Converts what `gristmill.convert` converts by shares; see this module for what all jobs take and raise.

    Games of chess become records, or one file of text or boards (`ToldGames`); demonstrations become shards of each
    `files_per_shard` files (`ConvertedDemos`), with the other options of `gristmill.convert` for them, such as
    `benchmark`, in `demonstrations`. All other options but `shares`, `num_cpus`, `address` and `progress` are those of
    `gristmill.convert`. Rows of 2048 and binpacks have no shares: they need all inputs together.
    """
    options = {
        "to": to,
        "version": version,
        "st_q_theta": st_q_theta,
        "lossy": lossy,
        "container": container,
        "games_per_tar": games_per_tar,
        "files_per_shard": files_per_shard,
        **(demonstrations or {}),
    }
    cluster = Cluster(shares, num_cpus, address, threads)
    return by_shares("convert", (input, output), options, cluster, dry_run, progress)


@named
def split(
    input: Path,  # noqa: A002
    output: Path,
    into: Mapping[str, int],
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    by: Literal["name", "file", "content"] = "name",
    folds: int | None = None,
    fold: int | None = None,
    threads: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[ConvertedGames]:
    """Writes the games of chess that `gristmill.split` writes; see this module for what all jobs take and raise.

    All options but `shares`, `num_cpus`, `address` and `progress` are those of `gristmill.split`. Of demonstrations
    `gristmill split --files-per-shard N --share N/OF` makes a share.
    """
    options = {"into": dict(into), "by": by, "folds": folds, "fold": fold}
    cluster = Cluster(shares, num_cpus, address, threads)
    return by_shares("split", (input, output), options, cluster, dry_run, progress)


@named
def verify(
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    against: Path | None = None,
    max_faults: int = 100,
    workers: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[Verification]:
    """Makes the report that `gristmill.verify` makes; see this module for what all jobs take and raise.

    Args:
        input: a file, a pack, or a folder of them.
        output: file of the report, the line that `gristmill verify --json` prints; the shares lie beside it meanwhile.
        shares: how many.
        num_cpus: processors of each task.
        address: of the cluster.
        against: as for `gristmill.verify`. `input` is one pack then, and each share takes some of these games.
        max_faults: as for `gristmill.verify`.
        workers: threads of each task.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.
    """
    cluster = Cluster(shares, num_cpus, address, workers)
    options = {"against": None if against is None else of_all(against), "max_faults": max_faults}
    return by_shares("verify", (input, output), options, cluster, dry_run, progress)


@named
def stats(
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    q_weight: float = 6.0,
    pol_scale: float = 3.5,
    workers: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[dict[str, Any]]:
    """Makes the report that `gristmill.stats` makes; see this module for what all jobs take and raise.

    Args:
        input: a file, a pack, or a folder of them.
        output: file of the report, the line that `gristmill stats --json` prints; the shares lie beside it meanwhile.
        shares: how many.
        num_cpus: processors of each task.
        address: of the cluster.
        q_weight: as for `gristmill.stats`.
        pol_scale: as for `gristmill.stats`.
        workers: threads of each task.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.
    """
    cluster = Cluster(shares, num_cpus, address, workers)
    options = {"q_weight": q_weight, "pol_scale": pol_scale}
    return by_shares("stats", (input, output), options, cluster, dry_run, progress)


@named
def dedup(
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    mark: str | None = None,
    workers: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[Duplicates]:
    """Finds the games of a pack that `duplicates` of it finds; see this module for what all jobs take and raise.

    Args:
        input: a pack.
        output: file of the report, the line that `gristmill dedup --json` prints; the shares lie beside it meanwhile.
        shares: how many.
        num_cpus: processors of each task.
        address: of the cluster.
        mark: mark the frames of all but the first game of each group under this name, in the pack.
        workers: threads of each task.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.
    """
    cluster = Cluster(shares, num_cpus, address, workers)
    return by_shares("dedup", (input, output), {"mark": mark}, cluster, dry_run, progress)


@named
def mark(
    input: Path,  # noqa: A002
    name: str,
    rule: str,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    workers: int | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[dict[str, Any]]:
    """Marks the frames of a pack that `mark` of it marks; see this module for what all jobs take and raise.

    Args:
        input: a pack, in which the mark is made; the shares lie beside it meanwhile.
        name: of the mark.
        rule: a condition in SQL over every frame, as for `mark` of a pack.
        shares: how many.
        num_cpus: processors of each task.
        address: of the cluster.
        workers: threads of each task.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.

    Returns:
        what `gristmill mark --json` prints, as its result.
    """
    cluster = Cluster(shares, num_cpus, address, workers)
    return by_shares("mark", (input, input), {"name": name, "rule": rule}, cluster, dry_run, progress)


@named
def fit_tokenizer(
    input: Path,  # noqa: A002
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    where: str | None = None,
    num_bins: int = 32,
    search_failure_cutoff: int = -1500,
    zero_tolerance: float = 1e-9,
    valuations: Iterable[str] | None = None,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> OnRay[dict[str, Any]]:
    """Writes the tokenizer that `gristmill.g2048.fit_tokenizer` writes; see this module for what jobs take and raise.

    Args:
        input: folder of a pack of 2048.
        output: the file to write; the shares lie beside it meanwhile.
        shares: how many.
        num_cpus: processors of each task, which has one thread.
        address: of the cluster.
        where: take only the runs that this SQL condition on table `runs` names.
        num_bins: as for `gristmill.g2048.fit_tokenizer`.
        search_failure_cutoff: as for `gristmill.g2048.fit_tokenizer`.
        zero_tolerance: as for `gristmill.g2048.fit_tokenizer`.
        valuations: as for `gristmill.g2048.fit_tokenizer`.
        dry_run: see what would be made only.
        progress: called with the shares that are done, and all.
    """
    options = {
        "where": where,
        "num_bins": num_bins,
        "search_failure_cutoff": search_failure_cutoff,
        "zero_tolerance": zero_tolerance,
        "valuations": [valuations] if isinstance(valuations, str) else valuations and list(valuations),
    }
    cluster = Cluster(shares, num_cpus, address, None)
    return by_shares("fit_tokenizer", (input, output), options, cluster, dry_run, progress)
