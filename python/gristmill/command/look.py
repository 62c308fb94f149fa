"""`inspect`, `verify` and `stats` of Minari data sets and of arrays of one's own. The JSON is that of other data."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from typing import Any

import numpy as np

from gristmill.command.options import Told, Verbs, shared, takes_fields, whole
from gristmill.command.progress import Progress
from gristmill.demos.minari import data_folder, open_minari
from gristmill.demos.own.opening import could_be_own, open_own
from gristmill.demos.source import Demos
from gristmill.errors import ConfigError, GristmillError

#: Actions that are counted one by one.
_ACTIONS = 1000


def add_to(verbs: Verbs) -> None:
    """Adds the three."""
    about = {
        "inspect": (
            "Say what a Minari data set is, or arrays of one's own: format, counts, fields.",
            _inspect,
        ),
        "verify": (
            "Read every episode of Minari data sets and arrays; exit with 1 and a list where something is wrong.",
            _verify,
        ),
        "stats": ("Show lengths, returns and actions of Minari data sets and arrays of one's own.", _stats),
    }
    for name, (text, run) in about.items():
        examples = f"examples:\n  gristmill {name} ~/.minari/datasets/D4RL/door/human-v2"
        parser = verbs.add_parser(
            name,
            help=text,
            description=text,
            epilog=examples,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        parser.add_argument("paths", nargs="+" if name != "inspect" else 1, metavar="PATH", help="a data set")
        takes_fields(parser)
        if name == "verify":
            parser.add_argument("--max-faults", metavar="N", type=whole(0), default=100, help="list at most N faults")
        shared(parser)
        parser.set_defaults(run=run)


def opened(path: str, fields: dict[str, str] | None) -> Demos:
    """A Minari data set, or arrays of one's own.

    Raises:
        ConfigError: it is neither, or `fields` of what has its own names.
    """
    if data_folder(path) is not None and fields is None:
        return open_minari(path)
    if data_folder(path) is not None:
        raise ConfigError(
            f"{path}: a Minari data set says itself what its fields are; leave --fields out", field="fields"
        )
    if fields is None and not could_be_own(path) and os.path.exists(path):
        message = (
            f"{path}: neither a Minari data set nor arrays; look at it and at those that are by commands of their own"
        )
        raise ConfigError(message, field="paths")
    return open_own(path, fields=fields)


def _inspect(args: argparse.Namespace) -> Told:
    demos = opened(args.paths[0], args.fields)
    layout, said = demos.layout.dtype, demos.metadata
    fields = [
        {"name": name, "dtype": str(layout[name].base), "shape": list(layout[name].shape)}
        for name in layout.names or ()
    ]
    about = {key: str(value) for of in ("minari", "lerobot") for key, value in said.get(of, {}).items()}
    for key in ("fields", "left_out"):
        about.update({f"{key}.{name}": str(value) for name, value in said.get(key, {}).items()})
    told = {
        "path": args.paths[0],
        "format": demos.format,
        "chunks": len(demos),
        "frames": demos.num_frames,
        "lossy": said.get("lossy", []),
        "about": about,
        "spaces": {key: str(said[key]) for key in ("observation_space", "action_space") if key in said},
        "layout": {"size": layout.itemsize, "fields": fields},
    }
    lines = [f"{args.paths[0]}: {demos.format}", f"{len(demos)} trajectories, {demos.num_frames} steps"]
    lines += [f"  {key}: {value}" for key, value in about.items()]
    lines += [
        f"  {field['name']:24} {field['dtype']} {'x'.join(map(str, field['shape']))}".rstrip() for field in fields
    ]
    lines += [
        f"note: {name}: the pictures were stored with loss, and are not what was seen" for name in said.get("lossy", [])
    ]
    return told, "\n".join(lines)


def _verify(args: argparse.Namespace) -> Told:
    faults: list[dict[str, Any]] = []
    count = {"checked": 0, "chunks": 0, "files": 0, "fault_count": 0}

    def fault(path: str, error: GristmillError, chunk: int | None = None) -> None:
        count["fault_count"] += 1
        if len(faults) < args.max_faults:
            kind = getattr(error, "kind", "format")
            faults.append({"file": path, "chunk": chunk, "kind": kind, "detail": str(error)})

    with Progress("trajectories", args.chatty) as progress:
        for path in args.paths:
            count["files"] += 1
            try:
                demos = opened(path, args.fields)
            except ConfigError:
                raise
            except GristmillError as error:
                fault(path, error)
                continue
            for i in range(len(demos)):
                count["chunks"] += 1
                try:
                    count["checked"] += len(demos[i])
                    demos.extras(i)
                except GristmillError as error:
                    fault(path, error, i)
                progress(i + 1, len(demos))
    told = {"ok": count["fault_count"] == 0, **count, "faults": faults}
    lines = [f"{one['file']}: {one['detail']}" for one in faults]
    lines.append(f"{count['fault_count']} faults: {count['checked']} steps in {count['chunks']} trajectories")
    return told, "\n".join(lines)


def _stats(args: argparse.Namespace) -> Told:
    lengths: list[int] = []
    returns: list[float] = []
    actions: Counter[int] = Counter()
    truncated = other = 0
    with Progress("trajectories", args.chatty) as progress:
        for path in args.paths:
            demos = opened(path, args.fields)
            for i in range(len(demos)):
                steps = demos[i]
                lengths.append(len(steps))
                truncated += demos.truncated(i)
                names = steps.dtype.names or ()
                if "rews" in names and steps["rews"].ndim == 1:
                    returns.append(float(steps["rews"].sum()))
                if "acts" in names and steps["acts"].ndim == 1 and steps["acts"].dtype.kind in "iu":
                    for action, times in zip(*np.unique(steps["acts"], return_counts=True), strict=True):
                        if int(action) in actions or len(actions) < _ACTIONS:
                            actions[int(action)] += int(times)
                        else:
                            other += int(times)
                progress(i + 1, len(demos))
    told = {
        "trajectories": len(lengths),
        "steps": sum(lengths),
        "terminated": len(lengths) - truncated,
        "truncated": truncated,
        "length": _spread(lengths),
        "returns": _spread(returns),
        "actions": {str(action): times for action, times in sorted(actions.items())},
        "other_actions": other,
    }
    lines = [
        f"{len(lengths)} trajectories, {sum(lengths)} steps: {told['terminated']} terminated, {truncated} truncated"
    ]
    for what, values in (("steps per trajectory", lengths), ("return", returns)):
        if values:
            spread = _spread(values)
            lines.append(
                f"{what}: {spread['min']:g} to {spread['max']:g}, mean {spread['mean']:.4g}, std {spread['std']:.4g}"
            )
    most = max(actions.values(), default=1)
    lines += [f"  action {action}: {times} {'#' * (40 * times // most)}" for action, times in sorted(actions.items())]
    return {"demos": told}, "\n".join(lines)


def _spread(values: list[int] | list[float]) -> dict[str, float | int]:
    if not values:
        return {"count": 0}
    array = np.asarray(values, np.float64)
    low, high = float(array.min()), float(array.max())
    return {"count": len(values), "min": low, "max": high, "mean": float(array.mean()), "std": float(array.std())}
