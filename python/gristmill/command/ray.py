"""`ray pack` and the like: jobs whose shares the machines of a Ray cluster make."""

from __future__ import annotations

import argparse
import sys
import tomllib
from collections.abc import Callable
from contextlib import redirect_stdout
from dataclasses import asdict
from typing import Any, TypeAlias

from gristmill import ray
from gristmill.command.options import Told, Verbs, shared, whole
from gristmill.command.pack import left_out
from gristmill.command.progress import Progress
from gristmill.config import PositionSamplingConfig
from gristmill.errors import ConfigError
from gristmill.jobs.converting import ConvertedGames, ToldGames
from gristmill.jobs.looking import Verification
from gristmill.jobs.packing import Packed
from gristmill.packs.packed import Duplicates

#: What jobs make.
_Result: TypeAlias = Packed | ConvertedGames | ToldGames | Verification | Duplicates | dict[str, Any]

_EXAMPLES = """\
examples:
  gristmill ray {job} {words}
  gristmill ray {job} {far} --address auto --shares 400
  gristmill ray {job} {far} --num-cpus 4 --dry-run

IN and the folder of OUT lie where every machine reaches them by the same path. Shares that are done stay beside OUT
when this is stopped or killed, and the same words make the others; `gristmill shares OUT` lists them. Ray comes with
pip install gristmill[ray]."""


def add_to(verbs: Verbs) -> None:
    """Adds `ray` with its subcommands."""
    about = "Run jobs on a Ray cluster."
    parser = verbs.add_parser("ray", help=about, description=about, allow_abbrev=False)
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    _pack(_job(jobs, "pack", "Pack a folder", ("games pack", "/net/games /net/pack")))
    _rescore(_job(jobs, "rescore", "Rescore chess games", ("games out --syzygy tables", "/net/games /net/out")))
    _filter(_job(jobs, "filter", "Keep the chess games that break no rule", ("games good", "/net/games /net/good")))
    words = ("games v7 --version 7", "/net/games /net/tars --container tar")
    _convert(_job(jobs, "convert", "Convert chess games, file by file", words))
    words = ("games parts --into train:9,test:1", "/net/games /net/parts --into train:9,test:1")
    _split(_job(jobs, "split", "Split chess games into folders", words))
    words = ("games report.json", "/net/pack /net/report.json")
    _verify(_job(jobs, "verify", "Check every frame of games or a pack, into a report,", words))
    _stats(_job(jobs, "stats", "Count what games or a pack hold, into a report,", words))
    words = ("pack report.json --mark again", "/net/pack /net/report.json")
    _dedup(_job(jobs, "dedup", "Find games of a pack that are the same, into a report,", words, source=_PACK))
    words = ("pack late --rule 'plies_left < 20'", "/net/pack late --rule 'plies_left < 20'")
    to = ("NAME", "name of the mark, which is made in the pack")
    _mark(_job(jobs, "mark", "Mark frames of a pack that a rule accepts", words, source=_PACK, to=to))


#: The inputs and outputs of jobs in their help: what they are called, and what they are.
_GAMES = ("IN", "folder of games of one kind, at any depth")
_PACK = ("PACK", "folder of the pack")
_OUT = ("OUT", "folder or file to write, on a disk of all machines and not within IN")


def _job(
    jobs: Verbs,
    name: str,
    does: str,
    examples: tuple[str, str],
    *,
    source: tuple[str, str] = _GAMES,
    to: tuple[str, str] = _OUT,
) -> Any:
    """A subcommand with what all of them have."""
    about = f"{does} by tasks of a Ray cluster, one for each share; the same words make what is missing, and commit."
    job = jobs.add_parser(
        name,
        help=about,
        description=about,
        epilog=_EXAMPLES.format(job=name, words=examples[0], far=examples[1]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    job.add_argument("source", metavar=source[0], help=source[1])
    job.add_argument("out", metavar=to[0], help=to[1])
    says = "shares of IN, even in bytes [default: those that were begun, else one for each 64 MiB]"
    job.add_argument("--shares", metavar="N", type=whole(1, 1_000_000), help=says)
    says = "processors that Ray reserves for each share: a whole number, or less than 1 [default: 1]"
    job.add_argument("--num-cpus", metavar="X", type=float, default=1, help=says)
    says = "of the cluster, such as auto or HOST:6379 [default: what ray.init finds, else this machine]"
    job.add_argument("--address", metavar="A", help=says)
    job.add_argument("--dry-run", action="store_true", help="print which shares would be made, and make none")
    shared(job)
    return job


def _pack(job: Any) -> None:
    job.add_argument("--shard-rows", metavar="N", type=whole(1), help="rows in each file")
    layouts = ("aligned48", "packed46")
    job.add_argument("--layout", choices=layouts, help="form of the rows of 2048 [default: aligned48]")
    says = "how steps of demonstrations are stored [default: zstd]"
    job.add_argument("--codec", choices=("zstd", "raw"), help=says)
    policies = ("skip", "quarantine", "raise")
    says = "what to do with a game that cannot be packed"
    job.add_argument("--on-error", choices=policies, default="skip", help=says)
    job.add_argument("--skip-bad", action="store_true", help="exit with 0, not 3, even if games were left out")
    says = (
        'a rule that weighs chess games, such as "diff_focus_q_weight = 6, diff_focus_pol_scale = 2"; may be repeated'
    )
    job.add_argument("--weigh", metavar="RULE", type=_rule, action="append", default=[], help=says)
    own = ("shard_rows", "layout", "codec", "on_error", "weigh")
    job.set_defaults(run=_run, make=ray.pack, threaded="workers", own=own)


def _rescore(job: Any) -> None:
    say = job.add_argument
    says = "directories of Syzygy tables, with commas or by giving the option again"
    say("--syzygy", metavar="DIR", type=_words, action="extend", default=[], help=says)
    says = "accept missing or damaged tables: positions that need them stay unchanged and are counted"
    say("--allow-missing-tables", action="store_true", help=says)
    say("--dist-temp", metavar="T", type=float, default=1.0, help="temperature of the policy")
    say("--dist-offset", metavar="X", type=float, default=0.0, help="added to each probability before that")
    says = "probability to share among the moves that win fastest by the tablebase"
    say("--dtz-boost", metavar="X", type=float, default=0.0, help=says)
    says = "input format to convert to: 1, 2, 3, 4, 5, 132 or 133 [default: that of the game]"
    say("--new-input-format", metavar="F", type=whole(0), help=says)
    says = "loss of value by the move played that makes it a blunder"
    say("--deblunder-threshold", metavar="Q", type=float, help=says)
    says = "width around the threshold within which a blunder counts in part"
    say("--deblunder-width", metavar="Q", type=float, help=says)
    says = "decay of the short-term values of V7 per ply [default: 0.8333333]"
    say("--st-q-theta", metavar="X", type=float, default=0.8333333, help=says)
    says = "directory of games whose policies replace those of the frames that follow the same moves"
    say("--policies", metavar="DIR", help=says)
    say("--keep-v6", action="store_true", help="leave V6 records V6, and write older ones as V6")
    says = "quirks of the lc0 rescorer to reproduce, with commas"
    say("--compat", metavar="NAMES", type=_words, action="extend", default=[], help=says)
    names = ("syzygy", "allow_missing_tables", "dist_temp", "dist_offset", "dtz_boost", "new_input_format")
    more = ("deblunder_threshold", "deblunder_width", "st_q_theta", "policies", "keep_v6", "compat")
    job.set_defaults(run=_run, make=ray.rescore, own=names + more)


def _filter(job: Any) -> None:
    says = "names of rules, with commas: all, default, or single ones; -NAME takes one away (write --rules=-NAME)"
    job.add_argument("--rules", metavar="NAMES", default="default", help=says)
    job.set_defaults(run=_run, make=ray.filter, own=("rules",))


def _convert(job: Any) -> None:
    job.add_argument("--version", type=int, choices=(6, 7), help="version of the records [default: unchanged]")
    says = "decay per ply of the short-term values that V7 gets [default: 0.8333333]"
    job.add_argument("--st-q-theta", metavar="X", type=float, help=says)
    job.add_argument("--lossy", action="store_true", help="drop values of V7 that cannot be computed again")
    says = "container of the games [default: unchanged]"
    job.add_argument("--container", choices=("loose", "tar"), help=says)
    says = "maximum number of games in each new tar [default: 1000]"
    job.add_argument("--games-per-tar", metavar="N", type=whole(1), default=1000, help=says)
    says = "write one file of text or boards instead of records [default: records]"
    job.add_argument("--to", choices=("pgn", "fen", "bulletformat"), help=says)
    names = ("to", "version", "st_q_theta", "lossy", "container", "games_per_tar")
    job.set_defaults(run=_run, make=ray.convert, own=names)


def _split(job: Any) -> None:
    says = "folders below OUT and their weights, with commas"
    job.add_argument("--into", metavar="NAME:W", type=_sides, required=True, help=says)
    says = "what decides where a game goes: its name, the file that it lies in, or its content [default: name]"
    job.add_argument("--by", choices=("name", "file", "content"), default="name", help=says)
    says = "deal what the first two folders have together to K folds: the second gets one, the first all others"
    job.add_argument("--folds", metavar="K", type=whole(2), help=says)
    job.add_argument("--fold", metavar="I", type=whole(0), help="which fold, from 0")
    job.set_defaults(run=_run, make=ray.split, own=("into", "by", "folds", "fold"))


def _verify(job: Any) -> None:
    job.add_argument(
        "--max-faults", metavar="N", type=whole(0), default=100, help="faults that are listed [default: 100]"
    )
    says = "compare the games at DIR with the pack IN; each share takes some of these games"
    job.add_argument("--against", metavar="DIR", help=says)
    job.set_defaults(run=_run, make=ray.verify, threaded="workers", own=("against", "max_faults"))


def _stats(job: Any) -> None:
    says = "weight of the difference of values in what a position weighs [default: 6]"
    job.add_argument("--q-weight", metavar="X", type=float, default=6.0, help=says)
    says = "scale of the difference of policies in it [default: 3.5]"
    job.add_argument("--pol-scale", metavar="X", type=float, default=3.5, help=says)
    job.set_defaults(run=_run, make=ray.stats, threaded="workers", own=("q_weight", "pol_scale"))


def _dedup(job: Any) -> None:
    job.add_argument("--mark", metavar="NAME", help="mark the frames of all but the first of each group, in the pack")
    job.set_defaults(run=_run, make=ray.dedup, threaded="workers", own=("mark",))


def _mark(job: Any) -> None:
    says = "condition in SQL over the fields of records, and `game.` with the columns of table `games`"
    job.add_argument("--rule", metavar="SQL", required=True, help=says)
    job.set_defaults(run=_run, make=ray.mark, threaded="workers", own=("rule",))


def _sides(text: str) -> dict[str, int]:
    """Folders and their weights, as `gristmill split` reads them."""
    sides = [part.rpartition(":") for part in text.split(",")]
    if any(not name or not weight.isdecimal() for name, _, weight in sides):
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME:WEIGHT, such as train:9")
    if len({name for name, _, _ in sides}) < len(sides):
        raise argparse.ArgumentTypeError(f"{text!r}: a folder is given twice")
    return {name: int(weight) for name, _, weight in sides}


def _words(text: str) -> list[str]:
    """Names with commas between them."""
    return text.split(",")


def _rule(text: str) -> PositionSamplingConfig:
    """A rule, as `gristmill pack` reads it."""
    try:
        return PositionSamplingConfig(**tomllib.loads(f"rule = {{ {text} }}")["rule"])
    except (tomllib.TOMLDecodeError, TypeError) as error:
        raise argparse.ArgumentTypeError(f"{text!r}: {error}") from None


def _run(args: argparse.Namespace) -> Told:
    for name in ("endpoint", "anonymous"):
        if getattr(args, name):
            says = "does not reach the machines of the cluster; set variables of the environment there"
            raise ConfigError(f"--{name} {says}, such as AWS_ENDPOINT_URL", field=name)
    make: Callable[..., ray.OnRay[_Result]] = args.make
    own = {name: getattr(args, name) for name in args.own}
    own[getattr(args, "threaded", "threads")] = args.threads
    # Ray says on stdout which machines it lost.
    with redirect_stdout(sys.stderr), Progress("shares", args.chatty) as progress:
        done = make(
            args.source,
            args.out,
            shares=args.shares,
            num_cpus=args.num_cpus,
            address=args.address,
            dry_run=args.dry_run,
            progress=progress,
            **own,
        )
    if done.result is None:
        left = done.shares - done.there
        return asdict(done), f"{left} of {done.shares} shares would be made, {done.there} are there: {done.output}"
    lines, what = _said(args, done.result)
    lines.append(f"{done.output} holds {what}, of {done.shares} shares:")
    lines[-1] += f" {done.made} made now, {done.there} were there"
    return asdict(done), "\n".join(lines)


def _said(args: argparse.Namespace, result: _Result) -> tuple[list[str], str]:
    """Lines about games that the output lacks, and a phrase for its contents; sets the exit code of one process."""
    if isinstance(result, Packed):
        return left_out(args, result), f"{result.runs} games of {result.rows} rows"
    if isinstance(result, Duplicates):
        again = result.exact + result.same + result.mirrored
        return [], f"groups of {again} games that are there again, {result.different} games are different"
    if isinstance(result, dict) and "marked" in result:
        return [], f"mark `{result['name']}` of {result['marked']} of {result['frames']} frames"
    if isinstance(result, dict):
        return [], f"counts of {result['frames']} frames"
    if isinstance(result, Verification):
        args.code = 0 if result.ok else 1
        return [], f"{result.fault_count} faults of {result.checked} frames in {result.files} files"
    if isinstance(result, ToldGames):
        args.code = 1 if result.left_out else 0
        lines = [f"left out: {fault}" for fault in result.faults]
        return lines, f"{result.games} games of {result.frames} positions as {result.to}"
    if result.damaged:
        args.code = 1
    dropped = [f"dropped: {count}: {reason}" for reason, count in result.dropped.items()]
    lines = [f"unreadable: {fault}" for fault in result.faults] + dropped
    return lines, f"{result.kept + result.changed} of {result.chunks} games in {result.files_out} files"
