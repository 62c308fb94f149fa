"""`pack`: Minari data sets, and arrays of one's own, into a pack of trajectories."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict

from gristmill.command.options import Told, Verbs, takes_fields, verb, whole
from gristmill.command.progress import Progress
from gristmill.demos.minari.packing import data_sets
from gristmill.demos.own import is_own
from gristmill.errors import ConfigError
from gristmill.packing import pack

_EXAMPLES = """\
examples:
  gristmill pack --input ~/.minari/datasets/D4RL/door/human-v2 --output door
  gristmill pack --input ~/.minari/datasets/D4RL --output all --append
  gristmill pack --input mine.hdf5 --output mine --fields obs=states,acts=actions

Each data set is written as shards beside the pack meanwhile. Records of another layout than the first are left out,
and told."""


def add_to(verbs: Verbs) -> None:
    """Adds `pack`."""
    parser = verb(verbs, "pack", "Make a pack of Minari data sets, or of arrays of one's own.", _run, _EXAMPLES)
    parser.add_argument("--input", required=True, metavar="DIR", help="a Minari data set, or a folder of some; arrays")
    takes_fields(parser)
    parser.add_argument("--output", required=True, metavar="DIR", help="folder of the pack")
    parser.add_argument("--append", action="store_true", help="add the trajectories that are not in the pack yet")
    parser.add_argument("--resume", action="store_true", help="go on with a job that was interrupted")
    parser.add_argument("--workers", metavar="N", type=whole(1, 256), help="threads; never changes a byte")
    parser.add_argument("--shard-rows", metavar="N", type=whole(1), help="steps in each file")
    policies = ("skip", "quarantine", "raise")
    parser.add_argument(
        "--on-error", choices=policies, default="skip", help="what to do about one that cannot be taken"
    )
    parser.add_argument("--skip-bad", action="store_true", help="exit with 0, not 3, even if some were left out")


def _run(args: argparse.Namespace) -> Told:
    ways = [name for name in ("overwrite", "resume", "append") if getattr(args, name)]
    if len(ways) > 1:
        raise ConfigError(f"--{ways[0]} does not go with --{ways[1]}", field=ways[1])
    if args.fields is None and not is_own(args.input) and not data_sets(args.input):
        message = f"{args.input}: no Minari data set, no arrays; the gristmill command itself packs other data"
        raise ConfigError(message, field="input")
    with Progress("trajectories", not args.json) as progress:
        done = pack(
            args.input,
            args.output,
            shard_rows=args.shard_rows,
            workers=args.workers,
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
