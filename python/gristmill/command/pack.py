"""`pack`: Minari data sets, arrays of one's own and tables of one's own games into a pack."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from gristmill.command.options import Told, Verbs, fields, takes_fields, verb, whole
from gristmill.command.progress import Progress
from gristmill.demos.minari.packing import data_sets
from gristmill.demos.own.by_game import ARROW
from gristmill.demos.own.opening import is_own
from gristmill.errors import ConfigError
from gristmill.jobs.packing import Packed, pack
from gristmill.jobs.packing_records import is_table

_EXAMPLES = """\
examples:
  gristmill pack ~/.minari/datasets/D4RL/door/human-v2 door
  gristmill pack ~/.minari/datasets/D4RL all --append
  gristmill pack mine.hdf5 mine --fields obs=states,acts=actions
  gristmill pack rows.npz games --game match --columns result=last:value --identity board

Each data set is written as shards beside the pack meanwhile. Records of another layout than the first are left out,
and listed."""


def add_to(verbs: Verbs) -> None:
    """Adds `pack`."""
    parser = verb(verbs, "pack", "Make a pack of Minari data sets, or of arrays of one's own.", _run, _EXAMPLES)
    parser.usage = "gristmill pack [OPTIONS] IN OUT"
    parser.add_argument(
        "places",
        nargs="*",
        metavar="IN OUT",
        help="IN: a Minari data set, or a folder of some; arrays; OUT: folder of the pack",
    )
    parser.add_argument("--input", help=argparse.SUPPRESS)
    parser.add_argument("--output", help=argparse.SUPPRESS)
    takes_fields(parser)
    own = "of a table of one's own games (.npz, .jsonl, Parquet): "
    says = own + "columns of the pack, such as result=last:value"
    parser.add_argument("--columns", metavar="NAME=HOW:FIELD,...", type=fields, help=says)
    says = own + "columns that are the same in all rows of a game: elo=int,who=str"
    parser.add_argument("--facts", metavar="NAME=TYPE,...", type=fields, help=says)
    parser.add_argument("--identity", metavar="FIELD,...", help=own + "fields by which duplicates are found")
    parser.add_argument("--game", metavar="NAME", help=own + "the column that says of which game a row is")
    parser.add_argument("--append", action="store_true", help="add trajectories that the pack lacks")
    parser.add_argument("--resume", action="store_true", help="resume a job that was interrupted")
    parser.add_argument("--shard-rows", metavar="N", type=whole(1), help="steps in each file")
    parser.add_argument("--codec", choices=("zstd", "raw"), help="how steps are stored [default: zstd]")
    policies = ("skip", "quarantine", "raise")
    parser.add_argument(
        "--on-error", choices=policies, default="skip", help="what to do with a trajectory that cannot be packed"
    )
    parser.add_argument("--skip-bad", action="store_true", help="exit with 0, not 3, even if some were left out")


def _run(args: argparse.Namespace) -> Told:
    ways = [name for name in ("overwrite", "resume", "append") if getattr(args, name)]
    if len(ways) > 1:
        raise ConfigError(f"--{ways[0]} does not go with --{ways[1]}", field=ways[1])
    said = list(args.places)
    source = args.input or (said.pop(0) if said else None)
    output = args.output or (said.pop(0) if said else None)
    if source is None or output is None or said:
        expected = "expected the folder of the data sets and that of the pack: gristmill pack IN OUT"
        raise ConfigError(expected, field="places")
    own = {
        "columns": args.columns,
        "facts": None if args.facts is None else {name: _type(word) for name, word in args.facts.items()},
        "identity": None if args.identity is None else args.identity.split(","),
        "game": args.game,
    }
    of_records = any(value is not None for value in own.values()) or is_table(source)
    of_python = of_records or args.fields is not None or source.endswith(ARROW) or is_own(source)
    if not of_python and not data_sets(source):
        message = f"{source}: no Minari data set, no arrays, no table; the gristmill command itself packs other data"
        raise ConfigError(message, field="input")
    with Progress("trajectories", args.chatty) as progress:
        done = pack(
            source,
            output,
            codec=args.codec,
            shard_rows=args.shard_rows,
            workers=args.threads,
            existing=ways[0] if ways else "refuse",  # type: ignore[arg-type]  # one of the words of `pack`
            on_error=args.on_error,
            dry_run=args.dry_run,
            progress=progress,
            fields=args.fields,
            **own,
        )
    lines = left_out(args, done)
    hold = "would hold" if done.dry_run else "holds"
    known = f", {done.known} were there before" if done.known else ""
    what = ("games", "rows") if of_records else ("trajectories", "steps")
    lines.append(f"{done.pack} {hold} {done.runs} {what[0]} of {done.rows} {what[1]}{known}")
    return asdict(done), "\n".join(lines)


def left_out(args: argparse.Namespace, done: Packed) -> list[str]:
    """Lines about what a pack lacks, for which the command ends with 3 unless `--skip-bad` is said."""
    number = sum(one.kind != "duplicate" for one in done.skipped)
    if number and not (args.skip_bad or done.dry_run):
        args.code = 3
        sys.stderr.write(f"gristmill: {number} left out: exit code 3; --skip-bad makes it 0\n")
    return [f"left out: {one.file}: {one.kind}: {one.detail}" for one in done.skipped]


def _type(word: str) -> type:
    """The type of a fact."""
    types = {"int": int, "float": float, "str": str, "bool": bool}
    if word not in types:
        raise ConfigError(f"--facts: {word!r}; expected one of {', '.join(types)}", field="facts")
    return types[word]
