"""Ready graphs for the usual jobs. Each returns a `DataLoaderConfig` that can be printed, changed and saved."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from gristmill import _gristmill
from gristmill.config import DataLoaderConfig, Path, RateLimitConfig, WindowLawConfig, plain, to_json
from gristmill.options.arguments import named


@named
def lc0(
    directory: Path | Iterable[Path] | Mapping[Any, float],
    *,
    pool: int | None = None,
    window_law: WindowLawConfig | None = None,
    rate_limit: RateLimitConfig | None = None,
    reservoir: int | None = None,
    batch_size: int | None = None,
    sampling_rate: float | None = None,
    position_count: int | None = None,
    hanse_sampling_threshold: int | None = None,
    hanse_sampling_gamma: float | None = None,
    hanse_sampling_form: Literal["weight", "length"] | None = None,
    position_cache: int | None = None,
    epochs: int | None = None,
    watch: bool | None = None,
    events: str | None = None,
    split: Mapping[str, int] | None = None,
    split_by: Literal["name", "file"] | None = None,
    folds: int | None = None,
    fold: int | None = None,
    encoder: str | None = None,
    tensors: Iterable[str] | None = None,
    last_batch: Literal["keep", "drop", "pad"] | None = None,
    queue_capacity: int | None = None,
    lanes: int | None = None,
    rank: int | None = None,
    world_size: int | None = None,
    seed: int | None = None,
    threads: int | None = None,
    memory: str | int | None = None,
    max_solid_bytes: str | int | None = None,
    bad_chunks: Literal["skip", "quarantine", "raise"] | None = None,
    io_errors: Literal["wait", "raise"] | None = None,
    quarantine: Path | None = None,
    journal: Path | None = None,
    replay: bool | None = None,
    spill: Path | None = None,
    spill_limit: str | int | None = None,
    index: Path | None = None,
) -> DataLoaderConfig:
    """Games of Leela Chess Zero, from directories that may still be growing, as shuffled batches.

    `None` stands for the engine's default everywhere.

    Args:
        directory: one directory, several, or a mapping from directory to its weight. One tar will do, and a pattern of
            files or folders such as `games/2024-*` (looked for again every minute, without notices); `~` is the home
            folder, and a URL a folder of a bucket or server (docs/guide/buckets.md).
        pool: chunks (games) in each directory's window, which holds the newest ones.
        window_law: how each window grows up to `pool` (docs/guide/flow.md).
        rate_limit: how many draws each pool makes for each game that comes; any number without it.
        reservoir: frames in the shuffling reservoir; 0 for none.
        batch_size: rows per batch.
        sampling_rate: share of a game's positions taken at each use, 0 < rate <= 1.
        position_count: number of positions taken at each use, instead of a rate.
        hanse_sampling_threshold: above 0 hands out games by what is in them, so that each position is as likely as any
            (docs/guide/sampling.md); with form "length" as many frames have the full chance.
        hanse_sampling_gamma: exponent of a game's chance, 1 by default.
        hanse_sampling_form: what the chance is made of, `"weight"` (the default) or `"length"`.
        position_cache: positions that are kept of games that were inflated; with `position_count=1`. Never changes a
            batch.
        epochs: whole passes over the files there are, in order, then the end: for validation. Each loop is a pass.
        watch: whether files that appear later are taken too; by default unless `epochs` is set. `True` also waits where
            there is no game at all yet, and says so through `logging`; else that is an error.
        events: queue, `"sqs://NAME"`, that the bucket of the directory sends its events to: new games are found as the
            events come, and by listing all the same (docs/guide/buckets.md). One directory only.
        split: shares of the games by output alias, such as `{"train": 9, "test": 1}`.
        split_by: what decides the share of a game: the `"name"` that it had as a file, the default, so that it is on
            one side loose, in a tar and in a pack; or the `"file"` that it lies in and its number there, as before.
        folds: for cross-validation, the number of folds of what the first two of `split` have together; without
            `split` these are `train` and `val`, and have all games.
        fold: the fold, from 0, that is the second of them; the first gets all others. A third side stays what it is.
        encoder: what makes tensors of frames, `"chess"` by default; of other kinds by their name.
        tensors: what a batch holds: `planes` (also `planes:f16`, `planes:u8`, `planes:packed`, `planes:position`),
            `probs`, `values`, `halfkp_white`, ...; with the encoder `"fields"` each field with its type and the shape
            of one step, such as `obs:u8[64,64,3]`.
        last_batch: what becomes of the last partial batch.
        queue_capacity: batches that may wait for the consumer.
        lanes: lanes that the games are dealt to, such as 48: as many ranks as divide it can share the stream; 1 by
            default.
        rank: which rank this process is; `DataLoader` takes it, too.
        world_size: how many ranks share each batch.
        seed: root of every random draw; drawn once and kept in the state when absent.
        threads: worker threads; never changes a batch.
        memory: most memory for reservoirs, windows and batches, such as `"2GiB"`.
        max_solid_bytes: most bytes, stored and unpacked, of a file that is read whole, such as `"256MiB"`; `memory`
            counts ten times as much. Without it such files are refused by name (docs/guide/demonstrations.md).
        bad_chunks: what happens when a chunk is bad.
        io_errors: what happens when a file cannot be read and still not after some tries: the stream waits until it can
            be, the default, and warns; or it ends with `"raise"`.
        quarantine: JSON-lines report of quarantined chunks.
        journal: log of arrivals, as JSON lines: a file, or a URL in a bucket.
        replay: take the arrivals from the journal instead of from the directories.
        spill: folder, best on the file system of the games, where files are held that a state may need.
        spill_limit: most bytes that each rank holds there, such as `"16GiB"`, the default.
        index: folder of the side index, `"off"` for none.

    Raises:
        TypeError: an option that does not exist, with the name of the nearest one; or a `directory` that is no path.
        ConfigError: a value that does not fit.
    """
    given = dict(locals())
    options = {name: value for name, value in given.items() if value is not None}
    del options["directory"]
    options["directories"] = [{"directory": os.fspath(d), "weight": w} for d, w in _weighted(directory).items()]
    if split is not None:
        options["split"] = list(split.items())
    for name in ("window_law", "rate_limit"):
        if name in options:
            options[name] = plain(options[name])
    if tensors is not None:
        options["tensors"] = [tensors] if isinstance(tensors, str) else list(tensors)
    return DataLoaderConfig.from_json(_gristmill.preset_lc0(to_json(options)))


def _weighted(directory: Path | Iterable[Path] | Mapping[Any, float]) -> Mapping[Any, float]:
    if isinstance(directory, str | os.PathLike):
        return {directory: 1.0}
    if isinstance(directory, Mapping):
        return directory
    if not isinstance(directory, Iterable):
        kinds = "a path, several paths, or a mapping from path to weight"
        raise TypeError(f"directory={directory!r}; expected {kinds}, such as 'games/'")
    return dict.fromkeys(directory, 1.0)
