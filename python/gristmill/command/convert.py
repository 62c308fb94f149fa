"""`convert`: to and from Minari, and rows of 2048 as Parquet or Arrow."""

from __future__ import annotations

import argparse
from typing import Any, Literal

from gristmill.command.look import opened
from gristmill.command.options import Told, Verbs, takes_fields, verb, whole
from gristmill.command.progress import Progress
from gristmill.demos.minari import MinariDemos, data_folder, write, write_shards
from gristmill.demos.own.opening import is_own
from gristmill.demos.source import open_demos
from gristmill.demos.writer import LEVEL
from gristmill.errors import ConfigError
from gristmill.options.optional import optional

_EXAMPLES = """\
examples:
  gristmill convert ~/.minari/datasets/D4RL/door/human-v2 door.tar.zst
  gristmill convert demos.tar.zst ~/.minari/datasets/mine/pong-v0 --to minari-hdf5
  gristmill convert finger-spin-1.pkl.gz mine/spin-v0 --to minari-arrow
  gristmill convert selfplay rows --to parquet --join selfplay/scores

Nothing is lost in silence: what has no place in the new form is refused, or with --lossy left out and told."""

_MINARI = ("minari-hdf5", "minari-arrow")
_COLUMNS = ("parquet", "arrow")
_SHARDS = (".tar", ".tgz", ".tar.zst")


def add_to(verbs: Verbs) -> None:
    """Adds `convert`."""
    about = "Change the form of data: to and from Minari data sets, and rows of 2048 to Parquet or Arrow."
    parser = verb(verbs, "convert", about, _run, _EXAMPLES)
    parser.add_argument("path", help="a Minari data set, shards, arrays, a native file; for Parquet and Arrow rows")
    parser.add_argument("out", help="X.tar.zst or X.tar; the folder of a Minari data set, NAME-vN; the folder of rows")
    parser.add_argument(
        "--to", metavar="FORM", choices=("shards", *_MINARI, *_COLUMNS), help="shards, " + ", ".join(_MINARI + _COLUMNS)
    )
    takes_fields(parser)
    parser.add_argument("--lossy", action="store_true", help="drop what the new form cannot hold")
    minari = parser.add_argument_group("to Minari")
    minari.add_argument("--dataset-id", metavar="ID", help="[NAMESPACE/]NAME-vN [default: from the folder]")
    minari.add_argument("--jpeg", action="store_true", help="keep pictures as JPEG, which changes them")
    minari.add_argument(
        "--magical-preproc", metavar="NAME", help="preprocessing of MAGICAL's views, such as LoResCHW4E"
    )
    minari.add_argument(
        "--frame-stack", metavar="N", type=whole(1, 64), help="frames in an observation of native files"
    )
    shards = parser.add_argument_group("to shards")
    shards.add_argument("--max-frames", metavar="N", type=whole(1), help="start a new shard after N frames")
    shards.add_argument("--level", metavar="L", type=whole(1, 22), help=f"of compression, 1 to 22 [default: {LEVEL}]")
    shards.add_argument(
        "--members",
        metavar="HOW",
        choices=("pickle", "npy"),
        help="values as pickles, or as .npy and .json: pickle, npy",
    )
    rows = parser.add_argument_group("to Parquet and Arrow")
    rows.add_argument("--join", action="append", metavar="PATH", help="rows joined by game and step")
    rows.add_argument("--inner", action="store_true", help="leave out steps that any --join input lacks")
    rows.add_argument("--shard-rows", metavar="N", type=whole(1), help="rows in each file")


#: Options that only one kind of conversion has.
_OWN = {
    "minari": ("dataset_id", "jpeg", "magical_preproc", "frame_stack", "lossy"),
    "shards": ("max_frames", "level", "members"),
    "columns": ("join", "inner", "shard_rows"),
}

#: Options of demonstrations alone.
_DEMOS = ("fields",)


def _run(args: argparse.Namespace) -> Told:
    to = args.to or ("shards" if args.out.endswith(_SHARDS) else None)
    if to is None:
        raise ConfigError(f"say with --to what becomes of {args.path}; shards are known by the name of OUT", field="to")
    kind = "minari" if to in _MINARI else "columns" if to in _COLUMNS else "shards"
    for other, names in _OWN.items():
        said = [name for name in names if other != kind and getattr(args, name)]
        if said:
            raise ConfigError(f"--{said[0].replace('_', '-')} does not go with --to {to}", field=said[0])
    for name in _DEMOS:
        if kind == "columns" and getattr(args, name):
            raise ConfigError(f"--{name} does not go with --to {to}", field=name)
    return {"minari": _to_minari, "shards": _to_shards, "columns": _to_columns}[kind](args, to)


def _to_minari(args: argparse.Namespace, to: str) -> Told:
    if data_folder(args.path) is not None or args.fields is not None or is_own(args.path):
        demos: Any = opened(args.path, args.fields)
    else:
        demos = open_demos(args.path, magical_preproc=args.magical_preproc or "", frame_stack=args.frame_stack or 1)
    with Progress("trajectories", args.chatty) as progress:
        done = write(
            args.out,
            demos,
            data_format="hdf5" if to == "minari-hdf5" else "arrow",
            dataset_id=args.dataset_id,
            jpeg=args.jpeg,
            lossy=args.lossy,
            overwrite=args.overwrite,
            dry_run=args.dry_run,
            progress=progress,
        )
    told = {**_told(args, demos, to), "output": [done.path], "dataset_id": done.dataset_id}
    told.update(filled=done.filled, lost=done.lost)
    return told, _text(told)


def _to_shards(args: argparse.Namespace, to: str) -> Told:
    if data_folder(args.path) is None and args.fields is None and not is_own(args.path):
        says = "no Minari data set; other demonstrations are converted to shards by the gristmill command itself"
        raise ConfigError(f"{args.path}: {says}", field="path")
    demos = opened(args.path, args.fields)
    told = {**_told(args, demos, to), "output": [args.out]}
    with Progress("trajectories", args.chatty) as progress:
        paths = write_shards(
            args.out,
            demos,
            max_frames=args.max_frames,
            level=args.level or LEVEL,
            members=args.members or "pickle",
            overwrite=args.overwrite,
            dry_run=args.dry_run,
            progress=progress,
        )
    if paths:
        told.update(output=[str(path) for path in paths])
    return told, _text(told)


def _to_columns(args: argparse.Namespace, to: str) -> Told:
    optional("pyarrow", "arrow")
    from gristmill.jobs.arrow import convert

    names = ("join", "inner", "shard_rows", "overwrite", "dry_run")
    options = {"input": args.path, "output": args.out, **{name: getattr(args, name) for name in names}}
    form: Literal["parquet", "arrow"] = "parquet" if to == "parquet" else "arrow"
    done = convert({name: value for name, value in options.items() if value not in (None, False)}, form)
    hold = "would hold" if done["dry_run"] else "holds"
    return done, f"{done['output']} {hold} {done['rows']} rows of {done['runs']} games as {to}, from {done['from']}"


def _told(args: argparse.Namespace, demos: Any, to: str) -> dict[str, Any]:
    lossy = demos.metadata["lossy"] if isinstance(demos, MinariDemos) else []
    remarks = [f"{name}: the pictures were stored as JPEG, and are not what was seen" for name in lossy]
    return {
        "output": [],
        "from": demos.format,
        "to": to,
        "trajectories": len(demos.games),
        "frames": demos.num_frames,
        "remarks": remarks,
        "filled": [],
        "lost": [],
        "dry_run": args.dry_run,
    }


def _text(told: dict[str, Any]) -> str:
    lines = [f"note: {remark}" for remark in told["remarks"]]
    lines += [f"dropped: {what}" for what in told["lost"]]
    lines += [f"made up: {what}" for what in told["filled"]]
    first, *more = told["output"]
    files = f"{first} to {more[-1]} ({len(more) + 1} files)" if more else first
    hold = "would hold" if told["dry_run"] else "hold" if more else "holds"
    much = f"{told['trajectories']} trajectories of {told['frames']} frames"
    lines.append(f"{files} {hold} {much} as {told['to']}, from {told['from']}")
    return "\n".join(lines)
