"""`pack`: Minari data sets, and arrays of one's own, into a pack of trajectories."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from gristmill.command.options import Told, Verbs, takes_fields, verb, whole
from gristmill.command.progress import Progress
from gristmill.demos.minari.packing import data_sets
from gristmill.demos.own.opening import is_own
from gristmill.errors import ConfigError
from gristmill.jobs.packing import pack

_EXAMPLES = """\
examples:
  gristmill pack ~/.minari/datasets/D4RL/door/human-v2 door
  gristmill pack ~/.minari/datasets/D4RL all --append
  gristmill pack mine.hdf5 mine --fields obs=states,acts=actions

Each data set is written as shards beside the pack meanwhile. Records of another layout than the first are left out,
and told."""


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
    parser.add_argument("--append", action="store_true", help="add trajectories that the pack lacks")
    parser.add_argument("--resume", action="store_true", help="resume a job that was interrupted")
    parser.add_argument("--shard-rows", metavar="N", type=whole(1), help="steps in each file")
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
    if args.fields is None and not is_own(source) and not data_sets(source):
        message = f"{source}: no Minari data set, no arrays; the gristmill command itself packs other data"
        raise ConfigError(message, field="input")
    with Progress("trajectories", args.chatty) as progress:
        done = pack(
            source,
            output,
            shard_rows=args.shard_rows,
            workers=args.threads,
            existing=ways[0] if ways else "refuse",  # type: ignore[arg-type]  # one of the words of `pack`
            on_error=args.on_error,
            dry_run=args.dry_run,
            progress=progress,
            fields=args.fields,
        )
    left_out = sum(one.kind != "duplicate" for one in done.skipped)
    if left_out and not (args.skip_bad or done.dry_run):
        args.code = 3
        sys.stderr.write(f"gristmill: {left_out} left out: exit code 3; --skip-bad makes it 0\n")
    lines = [f"left out: {one.file}: {one.kind}: {one.detail}" for one in done.skipped]
    hold = "would hold" if done.dry_run else "holds"
    known = f", {done.known} were there before" if done.known else ""
    lines.append(f"{done.pack} {hold} {done.runs} trajectories of {done.rows} steps{known}")
    return asdict(done), "\n".join(lines)
