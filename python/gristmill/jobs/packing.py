"""Raw games into a pack, packs into one, values beside rows: as the commands do it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy.typing as npt

from gristmill import _gristmill
from gristmill.config import Path, PositionSamplingConfig, to_json
from gristmill.errors import ConfigError
from gristmill.jobs import part
from gristmill.jobs.converting import convert
from gristmill.jobs.part import Share
from gristmill.options.arguments import named
from gristmill.packs.games import Games
from gristmill.records.layout import Layout


@dataclass(frozen=True)
class Skipped:
    """Something that was found and is not in the pack: where, what kind of fault, and what was expected."""

    file: str
    kind: str
    detail: str
    line: int | None = None
    column: int | None = None
    offset: int | None = None


@dataclass(frozen=True)
class Remark:
    """Something odd about a game that is in the pack."""

    file: str
    detail: str


@dataclass(frozen=True)
class Packed:
    """What came of `pack`: the pack as it is now, and what was left out this time. Of a share its own numbers."""

    pack: str
    layout: str
    games: int
    known: int
    runs: int
    rows: int
    files: int
    skipped: list[Skipped]
    remarks: list[Remark]
    resumed: int
    #: Files of values and vectors that no longer fit, since games were added.
    stale: list[str]
    dry_run: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int | None
    share: Share | None = None
    #: How the job stores steps of demonstrations, where a codec was named for it or for the job before it.
    codec: Literal["zstd", "raw"] | None = None


@dataclass(frozen=True)
class Merged:
    """What came of `merge`."""

    pack: str
    layout: str
    packs: int
    runs: int
    rows: int
    files: int
    #: Games that a pack before had already, and that were passed over; of packs of whole games.
    known: int
    #: What lies beside the rows, as beside those of all packs: `values`, `embeddings`.
    carried: list[str]
    #: Names of the marks that it has, since all packs have them by the same rule.
    marks: list[str]
    #: What lies beside the rows of some pack and was not carried, marks included, and why.
    lost: list[str]
    deleted: list[str]
    left: list[str]
    dry_run: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int | None


@dataclass(frozen=True)
class Recovery:
    """Something that a killed job left: where, what the job did (empty where it is unknown), and what became of it."""

    path: str
    job: str
    fate: Literal["finished", "given_up", "kept"]
    detail: str


@dataclass(frozen=True)
class Recovered:
    """What came of `recover`."""

    folder: str
    found: list[Recovery]
    #: Whether nothing is left.
    clean: bool
    dry_run: bool


@dataclass(frozen=True)
class Valued:
    """What came of `value_rows`: how many rows have values, by which numbers, all points, and the highest target."""

    output: str
    rows: int
    runs: int
    files: int
    gamma: float
    reward_scale: float
    epsilon: float
    reward: float
    highest: float
    dry_run: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int | None


@dataclass(frozen=True)
class Checksummed:
    """What came of making checksums."""

    pack: str
    rows: int
    #: Names of the files that were made, and of those that were there and fit.
    made: list[str]
    there: list[str]
    #: Whether a manifest vouched for the rows.
    known: bool
    dry_run: bool


@named
def pack(
    input: Any,  # noqa: A002  (the name of the option)
    output: Path,
    *,
    layout: Literal["aligned48", "packed46"] | Layout | npt.DTypeLike | None = None,
    codec: Literal["zstd", "raw"] | None = None,
    shard_rows: int | None = None,
    workers: int | None = None,
    share: part.OneOf | None = None,
    existing: Literal["refuse", "overwrite", "resume", "append"] = "refuse",
    on_error: Literal["skip", "quarantine", "raise"] = "skip",
    weigh: Iterable[PositionSamplingConfig] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
    fields: Mapping[str, str] | None = None,
    columns: Sequence[str] | Mapping[str, str] | None = None,
    facts: Mapping[str, type] | None = None,
    identity: Sequence[str] | None = None,
    game: str | None = None,
) -> Packed:
    """Makes one pack of a folder of raw games or demonstrations, or of what is open; it appears whole or not at all.

        gm.pack(gm.demos.from_arrays(lengths, {"obs": obs, "acts": acts}), "pack")
        gm.pack(gm.open("pack").where("total_reward > ?", 10), "good")
        gm.pack(games, "pack", layout=[("board", "i1", 42), ("value", "f4")], columns={"result": "last:value"})

    Args:
        input: folder with games at any depth: for 2048, pairs of `.meta.json(.gz)` and `.jsonl.gz` files; or with
            demonstrations. Or a Minari data set, or a folder of some, each of which becomes shards beside the pack
            meanwhile (`pip install gristmill[minari]`). Or one file, arrays of one's own, or whatever
            `gristmill.open` and `gristmill.demos.from_arrays` give, selections included; it is written beside the pack
            meanwhile. Or a table with the columns of `selection.to_arrow`: a `datasets.Dataset`, what has
            `__arrow_c_stream__` (pyarrow, Polars, DuckDB, pandas), a Parquet file. Or games of one's own: an
            iterable of structured arrays or of arrays by field, each a game or a pair of a game and its facts; or a
            table with a row for each of theirs, `.npz`, `.jsonl`, Parquet, or what gives Arrow.
        output: folder of the pack.
        layout: of 2048, form of the rows; by default 48 bytes, or that of the pack that is added to. Of games of one's
            own, the fields of a row, a structured dtype; by default those of the first game, or of the table.
        codec: of demonstrations, how to store their steps: `"zstd"` compresses them, `"raw"` stores them as they are:
            several times as large, and read without unpacking. By default the job compresses them, keeps packed ones as
            they are, and with `existing="append"` stores steps as the job before it.
        shard_rows: rows of every file but the last; by default one file.
        workers: threads; never changes a byte.
        share: of files that many machines pack, the share that is packed now, `"17/400"` or `(17, 400)`, counted from
            1. It is made beside `output`, once however often this is called; `commit` makes the pack of all.
        existing: what to do about an existing pack: refuse, replace it, resume an interrupted job, or add what is new.
            A pack in a bucket is not replaced; what is new makes a version of it, and readers keep the one they opened.
        on_error: leave bad games out, list them in `quarantine.jsonl` too, or raise.
        weigh: rules by which games of chess are weighed, beside the pack's own: a stream or loader that samples by just
            these numbers finds what each game weighs beside it.
        dry_run: look only.
        progress: called with episodes that were read of what the engine does not read itself, and all of them.
        fields: for arrays of one's own, as for `gristmill.open`: by field the name of its array.
        columns: of games of one's own, fields of which the pack has a column for `where`; of one number each. By name
            of the column a field, or `"last:value"`: one of first, last, min, max, sum, mean of the rows. A field alone
            is its first row.
        facts: of games of one's own, what is said of each beside its rows: names, each with its type (`int`, `float`,
            `str`, `bool`). They are columns, too; of a table, columns that are the same in all rows of a game.
        identity: of games of one's own, the fields that say who a game is: `duplicates` finds games alike in them.
        game: of a table, the column that says of which game a row is; by default `game_id`, `game`, `episode_index`
            or `episode_id`. Where there is none, each 256 rows are a game.

    Raises:
        ConfigError: options that do not fit each other or what is there.
        FormatError: a bad game with `on_error="raise"`, or no game at all.
        StateError: the input changed since the interrupted job.
        OSError: a file or folder.
        KeyboardInterrupt: Ctrl-C; `existing="resume"` resumes.
    """
    own = {"layout": layout, "columns": columns, "facts": facts, "identity": identity, "game": game}
    form = layout if isinstance(layout, str) else None
    given = {"layout": form, "codec": codec, "shard_rows": shard_rows, "workers": workers}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options |= {"output": os.fspath(output)} | ({} if share is None else {"share": part.words(share)})
    options |= {"existing": existing, "on_error": on_error, "dry_run": dry_run}
    options["weigh"] = [{name: value for name, value in asdict(rule).items() if value is not None} for rule in weigh]
    if share is not None and not isinstance(input, str | os.PathLike):
        raise ConfigError("shares are of a folder of files; write what is open there first", field="share")
    read_first = f"{input}: shares are of files that are packed as they are; these are read first"
    if _is_of_records(input, {**own, "layout": None if form else layout}, fields):
        from gristmill.jobs.packing_records import as_records

        if share is not None:
            raise ConfigError(read_first, field="share")
        with as_records(input, options["output"], own, progress) as made:
            return done(json.loads(_gristmill.pack_games(to_json({**options, "input": made}))))
    # Readers of other data are extras.
    from gristmill.demos.minari.packing import as_shards
    from gristmill.demos.own.packing import as_folder, opened_to_pack

    source = opened_to_pack(input, fields)
    if source is not None and share is not None:
        raise ConfigError(read_first, field="share")
    if source is not None:
        with as_folder(source, options["output"], progress) as (folder, is_pack):
            if is_pack:
                return _packed_rows(folder, options)
            result: dict[str, Any] = json.loads(_gristmill.pack_games(to_json({**options, "input": folder})))
    elif share is not None:
        result = json.loads(_gristmill.pack_games(to_json({**options, "input": os.fspath(input)})))
    else:
        options["input"] = os.fspath(input)
        with as_shards(options["input"], options["output"], progress) as shards:
            options["input"] = shards or options["input"]
            result = json.loads(_gristmill.pack_games(to_json(options)))
    return done(result)


def done(result: dict[str, Any]) -> Packed:
    """What the engine says of a pack that it made."""
    result["skipped"] = [Skipped(**skipped) for skipped in result["skipped"]]
    result["remarks"] = [Remark(**remark) for remark in result["remarks"]]
    result["share"] = Share(**result["share"]) if result["share"] else None
    return Packed(**result)


def _is_of_records(source: Any, own: Mapping[str, Any], fields: Mapping[str, str] | None) -> bool:
    """Whether games of one's own are packed: where an option of theirs says it, and for what is nothing else."""
    given = [name for name, value in own.items() if value is not None]
    if isinstance(source, str | os.PathLike):
        path = os.path.expanduser(os.fspath(source))
        if os.path.isdir(path) and given:
            says = "goes with games and tables; what lies in a folder says itself what it is"
            raise ConfigError(f"{path}: `{given[0]}` {says}", field=given[0])
        if fields is not None:
            return False
        if not given:
            from gristmill.jobs.packing_records import is_table

            return is_table(path)
    if isinstance(source, Games):
        if given and source.kind != "records":
            raise ConfigError(f"`{given[0]}` goes with games of one's own, these are of {source.kind}", field=given[0])
        return source.kind == "records"
    arrow = hasattr(source, "__arrow_c_stream__")
    return bool(given) or (isinstance(source, list | tuple | Iterator) and not arrow)


def _packed_rows(folder: str, options: dict[str, Any]) -> Packed:
    """A pack made of a folder of 2048 rows."""
    for name in ("weigh", "codec", "resume", "append"):
        if options.get(name) or options["existing"] == name:
            raise ConfigError(f"{name} does not go with rows of a pack; gristmill.merge joins packs", field=name)
    done = convert(
        folder,
        options["output"],
        options.get("layout", "aligned48"),
        shard_rows=options.get("shard_rows"),
        overwrite=options["existing"] == "overwrite",
        dry_run=options["dry_run"],
    )
    return Packed(
        pack=done.output,
        layout=done.to,
        games=done.runs,
        known=0,
        runs=done.runs,
        rows=done.rows,
        files=done.files,
        skipped=[],
        remarks=[Remark(done.output, remark) for remark in done.remarks],
        resumed=0,
        stale=[],
        dry_run=done.dry_run,
        seconds=done.seconds,
        cpu_seconds=done.cpu_seconds,
        peak_rss=done.peak_rss,
    )


@named
def merge(
    packs: Iterable[Path],
    output: Path,
    *,
    layout: Literal["aligned48", "packed46"] = "aligned48",
    shard_rows: int | None = None,
    workers: int | None = None,
    overwrite: bool = False,
    delete_inputs: bool = False,
    dry_run: bool = False,
) -> Merged:
    """Makes one pack of several, whose rows follow each other; runs are renumbered, names unified.

    Args:
        packs: folders of packs, of either form.
        output: folder of the new pack; neither a pack of `packs` nor inside one.
        layout: form of the rows.
        shard_rows: rows of every file but the last; by default one file.
        workers: threads; never changes a byte.
        overwrite: replace a pack that is in the output.
        delete_inputs: delete `packs` once the new one is durable and was read back.
        dry_run: look only.

    Raises:
        ConfigError: dangerous or senseless options; nothing was changed.
        FormatError: a pack that is damaged or contradicts its database.
        OSError: a file or folder.
    """
    options: dict[str, Any] = {"inputs": [os.fspath(path) for path in packs], "output": os.fspath(output)}
    options |= {
        name: value for name, value in {"shard_rows": shard_rows, "workers": workers}.items() if value is not None
    }
    options |= {"layout": layout, "overwrite": overwrite, "delete_inputs": delete_inputs, "dry_run": dry_run}
    return Merged(**json.loads(_gristmill.merge_packs(to_json(options))))


@named
def checksum(pack: Path, *, overwrite: bool = False, dry_run: bool = False) -> Checksummed:
    """Makes checksums of the rows of a pack of 2048 beside them, where it has none: readers then check what they give.

    For every pack with a manifest it also makes `opening.index`, with which a pack in a bucket opens in few requests.
    `pack`, `merge` and `convert` make both by themselves; packs of other programs and of earlier versions lack them.

    Args:
        pack: folder of a pack, of rows or of whole games.
        overwrite: make those again that are there, for rows that were changed on purpose.
        dry_run: look only.

    Raises:
        FormatError: rows that do not have the hash of the manifest, or checksums that do not fit the rows.
        OSError: a file or folder.
    """
    return Checksummed(**json.loads(_gristmill.checksum_rows(os.fspath(pack), overwrite, dry_run)))


@named
def recover(folder: Path, *, abandon: bool = False, dry_run: bool = False) -> Recovered:
    """Finishes what killed jobs left in a pack, or in another folder that was written to, or gives it up.

    A publication that was interrupted is brought to its end, and so is a `pack` of which only that was missing. A job
    that did not come so far is kept: `pack(..., existing="resume")` resumes it. Plans and links that lead out of the
    folder, as in a pack from another source, are never followed.

    Args:
        folder: a pack, or another folder that something was written to.
        abandon: give up what can be given up; the folder is as it was before the job then.
        dry_run: say what would be done, and do nothing.

    Raises:
        OSError: a file or folder; a job is running there.
    """
    options = {"folder": os.fspath(folder), "abandon": abandon, "dry_run": dry_run}
    result: dict[str, Any] = json.loads(_gristmill.recover_folder(to_json(options)))
    result["found"] = [Recovery(**found) for found in result["found"]]
    return Recovered(**result)


@named
def value_rows(
    pack: Path,
    *,
    output: Path | None = None,
    gamma: float = 0.997,
    reward_scale: float = 1.0,
    epsilon: float = 0.001,
    workers: int | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Valued:
    """Makes rewards and discounted returns of the rows of a pack, in `values.npy` beside them, or shards of it.

    The reward of a row is the sum of the tiles that its move made; the return G is that of the row and of all later
    rows of its game, discounted; the target h(G) = sqrt(G + 1) - 1 + epsilon G. `Rows.take_values` gives them, encoders
    with `value_targets` feed them. They appear whole or not at all.

    Args:
        pack: folder of a pack of 48-byte or 46-byte rows.
        output: folder of the values; by default that of the pack, where loaders find them.
        gamma: discount of the next reward, 0 to 1.
        reward_scale: factor of `reward_scaled`, above 0; returns are of the rewards as they are.
        epsilon: share of G itself in h(G), 0 to 1.
        workers: threads; never changes a byte.
        overwrite: replace values that are there.
        dry_run: look only.

    Raises:
        ConfigError: senseless options, or values that are there; nothing was changed.
        FormatError: rows that are no step rows, have no move, or do not lie as `metadata.db` says.
        OSError: a file or folder.
    """
    options: dict[str, Any] = {"pack": os.fspath(pack), "gamma": gamma, "reward_scale": reward_scale}
    options |= {"epsilon": epsilon, "overwrite": overwrite, "dry_run": dry_run}
    options |= {} if output is None else {"output": os.fspath(output)}
    options |= {} if workers is None else {"workers": workers}
    return Valued(**json.loads(_gristmill.value_rows(to_json(options))))
