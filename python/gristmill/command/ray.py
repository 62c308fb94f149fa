"""`ray pack`: a pack whose shares the machines of a Ray cluster make."""

from __future__ import annotations

import argparse
import sys
import tomllib
from contextlib import redirect_stdout
from dataclasses import asdict

from gristmill import ray
from gristmill.command.options import Told, Verbs, shared, whole
from gristmill.command.pack import left_out
from gristmill.command.progress import Progress
from gristmill.config import PositionSamplingConfig
from gristmill.errors import ConfigError

_ABOUT = "Pack a folder by tasks of a Ray cluster, one for each share; the same words make what is missing, and commit."
_EXAMPLES = """\
examples:
  gristmill ray pack games pack
  gristmill ray pack /net/games /net/pack --address auto --shares 400
  gristmill ray pack /net/games /net/pack --num-cpus 4 --dry-run

IN and the folder of OUT lie where every machine reaches them by the same path. Shares that are done stay beside OUT
when this is stopped or killed, and the same words make the others; `gristmill shares OUT` lists them. Ray comes with
pip install gristmill[ray]."""


def add_to(verbs: Verbs) -> None:
    """Adds `ray` with its subcommand."""
    about = "Run jobs on a Ray cluster."
    parser = verbs.add_parser("ray", help=about, description=about, allow_abbrev=False)
    jobs = parser.add_subparsers(dest="job", metavar="JOB", required=True)
    pack = jobs.add_parser(
        "pack",
        help=_ABOUT,
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    pack.add_argument("source", metavar="IN", help="folder of games or demonstrations of one kind, at any depth")
    pack.add_argument("out", metavar="OUT", help="folder of the pack, on a disk of all machines and not within IN")
    says = "shares of IN, even in bytes [default: those that were begun, else one for each 64 MiB]"
    pack.add_argument("--shares", metavar="N", type=whole(1, 1_000_000), help=says)
    says = "processors that Ray reserves for each share: a whole number, or less than 1 [default: 1]"
    pack.add_argument("--num-cpus", metavar="X", type=float, default=1, help=says)
    says = "of the cluster, such as auto or HOST:6379 [default: what ray.init finds, else this machine]"
    pack.add_argument("--address", metavar="A", help=says)
    pack.add_argument("--shard-rows", metavar="N", type=whole(1), help="rows in each file")
    layouts = ("aligned48", "packed46")
    pack.add_argument("--layout", choices=layouts, help="form of the rows of 2048 [default: aligned48]")
    policies = ("skip", "quarantine", "raise")
    pack.add_argument(
        "--on-error", choices=policies, default="skip", help="what to do with a game that cannot be packed"
    )
    pack.add_argument("--skip-bad", action="store_true", help="exit with 0, not 3, even if games were left out")
    says = (
        'a rule that weighs chess games, such as "diff_focus_q_weight = 6, diff_focus_pol_scale = 2"; may be repeated'
    )
    pack.add_argument("--weigh", metavar="RULE", type=_rule, action="append", default=[], help=says)
    pack.add_argument("--dry-run", action="store_true", help="print which shares would be made, and make none")
    shared(pack)
    pack.set_defaults(run=_run)


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
    # Ray says on stdout which machines it lost.
    with redirect_stdout(sys.stderr), Progress("shares", args.chatty) as progress:
        done = ray.pack(
            args.source,
            args.out,
            shares=args.shares,
            num_cpus=args.num_cpus,
            address=args.address,
            layout=args.layout,
            shard_rows=args.shard_rows,
            workers=args.threads,
            on_error=args.on_error,
            weigh=args.weigh,
            dry_run=args.dry_run,
            progress=progress,
        )
    if done.packed is None:
        left = done.shares - done.there
        return asdict(done), f"{left} of {done.shares} shares would be made, {done.there} are there: {done.output}"
    lines = left_out(args, done.packed)
    lines.append(f"{done.output} holds {done.packed.runs} games of {done.packed.rows} rows, of {done.shares} shares:")
    lines[-1] += f" {done.made} made now, {done.there} were there"
    return asdict(done), "\n".join(lines)
