"""Data in another form: rows of 2048, games of chess, demonstrations; as `gristmill convert` makes it."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, cast, overload

from gristmill import _gristmill
from gristmill.config import Path, to_json
from gristmill.errors import ConfigError
from gristmill.jobs import part
from gristmill.options.arguments import named

#: What rows of 2048 become.
RowForm: TypeAlias = Literal["aligned48", "packed46", "self-play", "legacy", "exponents", "parquet", "arrow"]

#: What games of chess become: records, or one file of moves, positions, boards or chains.
GameForm: TypeAlias = Literal["v6", "v7", "pgn", "fen", "bulletformat", "binpack"]

#: What each kind of data is called in errors.
_KINDS = {"rows": "rows of 2048", "games": "games of chess", "demonstrations": "demonstrations"}

#: The options that only some kinds have, and their defaults.
_OF: dict[str, dict[str, Any]] = {
    "rows": {"join": (), "inner": False, "lossy": False, "defaults": False, "renumber": False, "shard_rows": None},
    "games": {"version": None, "st_q_theta": None, "lossy": False, "container": None, "games_per_tar": 1000}
    | {"threads": None, "share": None},
    "demonstrations": {"config": None, "benchmark": None, "task": None, "magical_preproc": None}
    | {"remove_null_actions": False, "frame_stack": None, "compat": False, "n_traj": None, "sample": False}
    | {"shuffle": False, "seed": None, "max_frames": None, "members": None, "level": None, "n_actions": None}
    | {"action_bounds": None, "obs_bounds": None, "color_space": None, "files_per_shard": None, "share": None},
}


@dataclass(frozen=True)
class Converted:
    """What came of rows of 2048: the forms, what was dropped (`lost`) and made up (`filled`), and what is odd."""

    output: str
    from_form: str
    to: str
    read: int
    rows: int
    runs: int
    files: int
    sorted: bool
    lost: list[str]
    filled: list[str]
    remarks: list[str]
    dry_run: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int | None


@dataclass(frozen=True)
class ConvertedGames:
    """What came of games of chess that were rescored, filtered, converted or split. Of a share its own numbers."""

    #: Files that hold games, and files of the folder that hold none.
    files: int
    skipped: int
    #: Files that an earlier call had done; they are in all other numbers.
    resumed: int
    files_done: int
    #: Games read; those that kept their bytes, and those that were rewritten.
    chunks: int
    kept: int
    changed: int
    #: Games that were left out: by reason, and those that could not be read by the kind of damage.
    dropped: dict[str, int]
    damaged: dict[str, int]
    #: Positions in and out; 0 where only the container changes.
    frames_in: int
    frames_out: int
    bytes_in: int
    bytes_out: int
    files_out: int
    counts: dict[str, int]
    #: What is damaged, the first few.
    faults: list[str]
    dry_run: bool
    share: part.Share | None = None


@dataclass(frozen=True)
class ToldGames:
    """What came of games that were written as one file. If `share` is set, all numbers are those of the share."""

    output: str
    #: `pgn`, `fen`, `bulletformat` or `binpack`.
    to: str
    games: int
    frames: int
    bytes: int
    #: Positions without a score that were left out, where the form has none without.
    unscored: int
    #: What the form needs and the data does not say.
    made_up: list[str]
    #: Games and files that were left out, by the kind of their fault, and what was wrong with the first few.
    left_out: dict[str, int]
    faults: list[str]
    dry_run: bool
    seconds: float
    share: part.Share | None = None


@dataclass(frozen=True)
class ConvertedDemos:
    """What came of demonstrations."""

    #: The files written; of a share those that `commit` will write.
    output: list[str]
    #: The form that was read, such as `demo.magical`, and `shards` or `npz`.
    from_form: str
    to: str
    #: Trajectories read and written, and frames written.
    read: int
    trajectories: int
    frames: int
    #: Trajectories that were cut, and those whose end no `dones` marks.
    truncated: int
    unended: int
    #: The seed, where something was drawn.
    seed: int | None
    remarks: list[str]
    dry_run: bool
    seconds: float
    cpu_seconds: float
    peak_rss: int | None
    #: The share whose numbers these are; none of all files.
    share: part.Share | None = None


@overload
def convert(
    input: Path,
    output: Path,
    to: RowForm,
    *,
    join: Iterable[Path] = ...,
    inner: bool = ...,
    lossy: bool = ...,
    defaults: bool = ...,
    renumber: bool = ...,
    shard_rows: int | None = ...,
    overwrite: bool = ...,
    dry_run: bool = ...,
) -> Converted: ...
@overload
def convert(
    input: Path,
    output: Path,
    to: Literal["pgn", "fen", "bulletformat", "binpack"],
    *,
    share: part.OneOf | None = ...,
    overwrite: bool = ...,
    dry_run: bool = ...,
) -> ToldGames: ...
@overload
def convert(
    input: Path,
    output: Path,
    to: Literal["v6", "v7"],
    *,
    st_q_theta: float | None = ...,
    lossy: bool = ...,
    container: Literal["loose", "tar"] | None = ...,
    games_per_tar: int = ...,
    threads: int | None = ...,
    share: part.OneOf | None = ...,
    dry_run: bool = ...,
) -> ConvertedGames: ...
@overload
def convert(
    input: Path,
    output: Path,
    *,
    version: Literal[6, 7],
    st_q_theta: float | None = ...,
    lossy: bool = ...,
    container: Literal["loose", "tar"] | None = ...,
    games_per_tar: int = ...,
    threads: int | None = ...,
    share: part.OneOf | None = ...,
    dry_run: bool = ...,
) -> ConvertedGames: ...
@overload
def convert(
    input: Path,
    output: Path,
    *,
    container: Literal["loose", "tar"],
    games_per_tar: int = ...,
    threads: int | None = ...,
    share: part.OneOf | None = ...,
    dry_run: bool = ...,
) -> ConvertedGames: ...
@overload
def convert(
    input: Path,
    output: Path,
    *,
    config: Path | None = ...,
    benchmark: str | None = ...,
    task: str | None = ...,
    magical_preproc: str | None = ...,
    remove_null_actions: bool = ...,
    frame_stack: int | None = ...,
    compat: bool = ...,
    n_traj: int | None = ...,
    sample: bool = ...,
    shuffle: bool = ...,
    seed: int | None = ...,
    max_frames: int | None = ...,
    files_per_shard: int | None = ...,
    share: part.OneOf | None = ...,
    members: Literal["pickle", "npy"] | None = ...,
    level: int | None = ...,
    n_actions: int | None = ...,
    action_bounds: tuple[float, float] | None = ...,
    obs_bounds: tuple[float, float] | None = ...,
    color_space: Literal["gray", "rgb"] | None = ...,
    overwrite: bool = ...,
    dry_run: bool = ...,
) -> ConvertedDemos: ...
@named
def convert(
    input: Path,  # noqa: A002  (the name of the option)
    output: Path,
    to: RowForm | GameForm | None = None,
    *,
    join: Iterable[Path] = (),
    inner: bool = False,
    lossy: bool = False,
    defaults: bool = False,
    renumber: bool = False,
    shard_rows: int | None = None,
    version: Literal[6, 7] | None = None,
    st_q_theta: float | None = None,
    container: Literal["loose", "tar"] | None = None,
    games_per_tar: int = 1000,
    threads: int | None = None,
    share: part.OneOf | None = None,
    config: Path | None = None,
    benchmark: str | None = None,
    task: str | None = None,
    magical_preproc: str | None = None,
    remove_null_actions: bool = False,
    frame_stack: int | None = None,
    compat: bool = False,
    n_traj: int | None = None,
    sample: bool = False,
    shuffle: bool = False,
    seed: int | None = None,
    max_frames: int | None = None,
    files_per_shard: int | None = None,
    members: Literal["pickle", "npy"] | None = None,
    level: int | None = None,
    n_actions: int | None = None,
    action_bounds: tuple[float, float] | None = None,
    obs_bounds: tuple[float, float] | None = None,
    color_space: Literal["gray", "rgb"] | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> Converted | ConvertedGames | ConvertedDemos | ToldGames:
    """Makes data of another form. What lies at `input` decides which options apply; the others are refused.

    A folder of 2048 rows needs `to`, and appears whole or not at all. Games of chess, PGN among them, need `to`,
    `version`, `container` or both; the same call resumes one that was interrupted. Of demonstrations the name of the
    output decides the form. Minari data sets have `gristmill.demos.minari.write` and `write_shards`.

    Args:
        input: rows: a pack, self-play, a legacy pack, or exponents. Games: a file, or a folder with all below it.
            Demonstrations: shards, native files, a pack, arrays.
        output: neither `input` nor inside it. The folder of rows or games; a shard (`.tar.zst`, `.tgz`, `.tar`), an
            `.npz`, or the folder of a data set of demonstrations.
        to: a pack of 48-byte or 46-byte rows; self-play; a legacy pack; `exponents`: boards decoded, in order of game
            and step, with everything that is known of each step. `parquet` and `arrow` hold what `exponents` does,
            and need pyarrow (`pip install gristmill[arrow]`). Games of chess: `v6` and `v7` say what `version` says;
            `pgn` and `fen` make one file of text, of all games or a line for each position. Positions of Stockfish's
            binpack, or a pack of them, become `fen`, `bulletformat` (32 bytes for each that has a score) or `binpack`;
            boards of bulletformat become `binpack`, and `made_up` of the result says what they do not.
        join: rows whose fields are joined by game and step: folders, or `folder/name` for its files `name.npy` and
            `name-<digits>.npy`. Only with `exponents`, `parquet` and `arrow`.
        inner: leave out steps that one of `join` does not have, rather than refuse.
        lossy: drop what the form of rows or the version of games has no room for, rather than refuse.
        defaults: fill fields that the form needs and the data lacks (move 255, no values, seed 0), rather than refuse.
        renumber: count runs from 0; the ids that they had go to column `original_id` of table `runs`.
        shard_rows: rows of every file but the last; by default one file (of self-play: a million in each).
        version: of the records of chess games; by default each game keeps its bytes.
        st_q_theta: decay per ply of the short-term values that V7 gets, 0 to 1; 0.8333333 by default.
        container: a `.gz` for each game, or tars; by default what they are in.
        games_per_tar: games in each new tar, at most.
        threads: of games as records; one per core by default. They change no byte. Text has one thread.
        share: if many machines convert the files, the share of the files to convert now, `"17/400"` or `(17, 400)`,
            counted from 1. Binpacks have no shares; demonstrations have them with `files_per_shard`. The share lies
            beside `output`. A second call for the same share makes nothing. `commit` makes the output of all shares.
        config: a TOML file with the tables `env_cfg` and `env_data`.
        benchmark: what native files are of: atari, dm_control, gymnasium, magical, minecraft or procgen.
        task: the task, for the metadata of the shard.
        magical_preproc: what is made of MAGICAL's two views; "" leaves them as they are.
        remove_null_actions: leave out the steps of MAGICAL whose action is 0.
        frame_stack: frames in an observation of native files, 1 to 64.
        compat: read native files as the loaders of the originals did, faults included.
        n_traj: take the first `n_traj` trajectories that have an end.
        sample: draw the `n_traj` trajectories at random instead.
        shuffle: put the trajectories into a random order.
        seed: of `sample` and `shuffle`; drawn, and in the result, by default.
        max_frames: begin a new shard with the next trajectory after as many frames.
        files_per_shard: make a shard of each as many files of demonstrations, in the folder `output`; by default one of
            all files.
        members: how shards hold their values: pickles, or `.npy` and `.json`.
        level: of compression: of `.tar.zst` 1 to 22, of `.tgz` 1 to 9, of `.npz` 0 to 9.
        n_actions: how many discrete actions there are.
        action_bounds: lowest and highest value of an action.
        obs_bounds: lowest and highest value of an observation.
        color_space: colours of the frames.
        overwrite: replace what rows, demonstrations or text are in the output.
        dry_run: look only.

    Raises:
        ConfigError: options that do not fit the data or each other; `field` is `lossy` or `defaults` where the message
            names what would be dropped or made up.
        FormatError: data that is damaged, there twice, or without a partner. A damaged game is counted instead.
        OSError: a file or folder.
    """
    given = {name: value for name, value in locals().items() if name not in ("input", "output", "to")}
    kind = _gristmill.convertible(os.fspath(input), os.fspath(output))
    of_demos = {name: value for name, value in _OF["demonstrations"].items() if name not in _OF["games"]}
    if kind == "games" and any(given[name] != value for name, value in of_demos.items()):
        kind = "demonstrations"
    options = {"input": os.fspath(input), "output": os.fspath(output), **_options(kind, os.fspath(input), given)}
    if kind == "games" and to in ("pgn", "fen", "bulletformat", "binpack"):
        return _told(options, to, overwrite)
    if kind == "games" and (to == "v6" or to == "v7"):
        if version is not None:
            raise ConfigError("`version`: to= says it already; give one of them", field="version")
        options["version"], to = int(to[1]), None
    if to is not None and kind != "rows":
        raise ConfigError(f"`to`: `{to}` is for rows of 2048; {input} holds {_KINDS[kind]}", field="to")
    if kind == "rows":
        if to in ("v6", "v7", "pgn", "fen", "bulletformat", "binpack"):
            raise ConfigError(f"`to`: `{to}` is for games of chess; {input} holds {_KINDS[kind]}", field="to")
        return _rows(options, cast("RowForm | None", to), overwrite)
    if kind == "games":
        return _games(options, overwrite)
    return _demos(options, overwrite)


def _options(kind: str, place: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The options of this kind of data; one of another kind is refused."""
    for other, names in _OF.items():
        for name, default in names.items():
            if name not in _OF[kind] and given[name] != default:
                raise ConfigError(f"`{name}`: for {_KINDS[other]}; {place} holds {_KINDS[kind]}", field=name)
    return {name: given[name] for name in (*_OF[kind], "dry_run")}


def _rows(options: dict[str, Any], to: RowForm | None, overwrite: bool) -> Converted:
    if to is None:
        raise ConfigError(f"`to`: {options['input']} holds rows of 2048; say what they become", field="to")
    options = {**options, "join": [os.fspath(path) for path in options["join"]], "overwrite": overwrite}
    if options["shard_rows"] is None:
        del options["shard_rows"]
    if to == "parquet" or to == "arrow":
        # pyarrow is an extra, and large.
        from gristmill.jobs import arrow

        result = arrow.convert(options, to)
    else:
        result = json.loads(_gristmill.convert_rows(to_json({**options, "to": to})))
    result["from_form"] = result.pop("from")
    return Converted(**result)


def _games(options: dict[str, Any], overwrite: bool) -> ConvertedGames:
    container, version, theta = options["container"], options["version"], options["st_q_theta"]
    if overwrite:
        raise ConfigError("`overwrite`: for rows and demonstrations; games go to a new folder", field="overwrite")
    if version is None and container is None:
        raise ConfigError("`version`: nothing to convert to; give version=, container= or both", field="version")
    if version not in (None, 6, 7):
        raise ConfigError(f"`version`: {version!r}; expected 6 or 7", field="version")
    if container not in (None, "loose", "tar"):
        raise ConfigError(f"`container`: {container!r}; expected 'loose' or 'tar'", field="container")
    for name in ("lossy", "st_q_theta"):
        if options[name] not in (None, False) and version is None:
            raise ConfigError(f"`{name}`: goes with version=", field=name)
    if theta is not None and not 0.0 <= theta <= 1.0:
        raise ConfigError(f"`st_q_theta`: {theta}; expected 0 to 1", field="st_q_theta")
    check_whole(options, "games_per_tar", 1)
    if options["games_per_tar"] != _OF["games"]["games_per_tar"] and container != "tar":
        raise ConfigError("`games_per_tar`: goes with container='tar'", field="games_per_tar")
    given = ("version", "st_q_theta", "lossy", "container", "games_per_tar")
    return write_games({"convert": {name: options[name] for name in given}}, options)


def write_games(job: dict[str, Any], options: Mapping[str, Any]) -> ConvertedGames:
    """Writes games again by a job with its own options, or a share of them.

    Raises:
        ConfigError: no number of threads, or what the engine refuses.
    """
    check_whole(options, "threads", 1)
    given = {name: options[name] for name in ("input", "output", "threads", "dry_run")}
    given["share"] = None if options["share"] is None else part.words(options["share"])
    return done_with_games(_gristmill.rewrite_games(to_json({**given, "job": job})))


def done_with_games(text: str) -> ConvertedGames:
    """What the engine says of games that it wrote again."""
    result: dict[str, Any] = json.loads(text)
    # An interrupted one raises.
    del result["interrupted"]
    share = result.pop("share", None)
    return ConvertedGames(**result, share=share and part.Share(**share))


def _told(options: dict[str, Any], to: str, overwrite: bool) -> ToldGames:
    for name, default in _OF["games"].items():
        # One thread writes text, whatever `threads` says.
        if name not in ("share", "threads") and options[name] != default:
            raise ConfigError(f"`{name}`: for records; text has none of it", field=name)
    given = {name: options[name] for name in ("input", "output", "dry_run")}
    given["share"] = None if options["share"] is None else part.words(options["share"])
    return told_games(_gristmill.tell_games(json.dumps({**given, "to": to, "overwrite": overwrite})))


def told_games(text: str) -> ToldGames:
    """The result of games that the engine wrote as one file; `text` is its report in JSON."""
    result: dict[str, Any] = json.loads(text)
    share = result.pop("share", None)
    return ToldGames(**result, share=share and part.Share(**share))


def check_whole(options: Mapping[str, Any], name: str, least: int, most: int = 2**32 - 1) -> None:
    """Refuses an option that is no whole number within bounds.

    Raises:
        ConfigError: as said.
    """
    value = options[name]
    if value is not None and (type(value) is not int or not least <= value <= most):
        raise ConfigError(f"`{name}`: {value!r}; expected a whole number, {least} to {most}", field=name)


def _check_bounds(options: Mapping[str, Any], name: str) -> None:
    value = options[name]
    numbers = isinstance(value, list | tuple) and len(value) == 2 and all(isinstance(x, int | float) for x in value)
    if value is not None and not (numbers and value[0] < value[1]):
        raise ConfigError(f"`{name}`: {value!r}; expected two numbers such as (-1, 1), the lower first", field=name)


def _demos(options: dict[str, Any], overwrite: bool) -> ConvertedDemos:
    for name in ("benchmark", "task", "magical_preproc"):
        if not isinstance(options[name], str | None):
            raise ConfigError(f"`{name}`: {options[name]!r}; expected a text", field=name)
    for name, least, most in [("frame_stack", 1, 64), ("n_actions", 1, 2**32 - 1), ("level", 0, 22)]:
        check_whole(options, name, least, most)
    for name, least in [("n_traj", 1), ("max_frames", 1), ("files_per_shard", 1), ("seed", 0)]:
        check_whole(options, name, least, 2**64 - 1)
    for name in ("action_bounds", "obs_bounds"):
        _check_bounds(options, name)
    if options["n_actions"] is not None and options["action_bounds"] is not None:
        raise ConfigError("`n_actions`: does not go with action_bounds=", field="n_actions")
    if options["members"] not in (None, "pickle", "npy"):
        raise ConfigError(f"`members`: {options['members']!r}; expected 'pickle' or 'npy'", field="members")
    if options["color_space"] not in (None, "gray", "rgb"):
        raise ConfigError(f"`color_space`: {options['color_space']!r}; expected 'gray' or 'rgb'", field="color_space")
    if options["config"] is not None:
        options["config"] = os.fspath(options["config"])
    share = None if options["share"] is None else part.words(options["share"])
    return done_with_demos(_gristmill.convert_demos(json.dumps({**options, "share": share, "overwrite": overwrite})))


def done_with_demos(text: str) -> ConvertedDemos:
    """The result of demonstrations that the engine wrote; `text` is its report in JSON."""
    result: dict[str, Any] = json.loads(text)
    share = result.pop("share", None)
    return ConvertedDemos(from_form=result.pop("from"), **result, share=share and part.Share(**share))
