"""`describe`: Croissant metadata and a dataset card of a pack, beside its files."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from gristmill.command.options import Told, Verbs, verb
from gristmill.command.progress import Progress
from gristmill.jobs.describing import describe

_EXAMPLES = """\
examples:
  gristmill describe chess-pack --license CC0-1.0 --creator "A. Player"
  gristmill describe chess-pack --parquet --overwrite
  gristmill describe chess-pack --url https://example.org/chess --published 2026-11-24

Every file of the pack is read once, for its SHA-256. A pack that is changed afterwards is described again."""


def add_to(verbs: Verbs) -> None:
    """Adds `describe`."""
    about = "Write metadata of a pack (Croissant 1.1) and a dataset card beside its files."
    parser = verb(verbs, "describe", about, _run, _EXAMPLES)
    parser.add_argument("pack", metavar="PACK", help="the folder of a pack, or of rows")
    parser.add_argument("--out", metavar="DIR", help="write to this folder [default: that of the pack]")
    parser.add_argument("--name", help="of the data set [default: that of the folder]")
    parser.add_argument("--description", metavar="TEXT", help="what the data is")
    parser.add_argument("--license", metavar="ID", help="an SPDX id such as CC0-1.0, or a URL")
    parser.add_argument("--creator", metavar="NAME", action="append", default=[], help="who made it; may be repeated")
    parser.add_argument("--url", help="where it is published; files are below it")
    parser.add_argument("--citation", metavar="TEXT", help="how to cite it, such as BibTeX")
    parser.add_argument("--data-version", metavar="VERSION", help="such as 1.0.0")
    parser.add_argument("--published", metavar="DATE", help="as 2026-11-24")
    parser.add_argument("--parquet", action="store_true", help="write frames and games as Parquet, too")


def _run(args: argparse.Namespace) -> Told:
    with Progress("files", args.chatty) as progress:
        done = describe(
            args.pack,
            args.out,
            name=args.name,
            description=args.description,
            license=args.license,
            creators=args.creator,
            url=args.url,
            citation=args.citation,
            version=args.data_version,
            published=args.published,
            parquet=args.parquet,
            overwrite=args.overwrite,
            dry_run=args.dry_run,
            progress=progress,
        )
    would = "would be " if done.dry_run else ""
    lines = [f"{path} {would}written" for path in done.output]
    lines.append(f"{done.pack} holds {done.frames} frames of {done.games} games")
    return asdict(done), "\n".join(lines)
