"""Positions of chess a second into steps on a device: `python bench/devices/run.py --framework torch [--seconds 4]`.

Makes games and a pack of them once, and feeds one device from the pack, in each form that a position may have on its
way: dense planes as f32 and bf16, planes as bits, the packed position; policy and values beside them. Two steps take
the batches: one makes the planes whole and adds them up, so that feeding is the limit; the other trains a residual
network of 10 blocks of 128 filters. Prints for each, as a table or as JSON:

- positions a second from the pack into the step;
- stall: the part of that time in which the device had nothing to do, against the same step over one batch again;
- bytes that cross to the device for each position, and microseconds of CPU that the process spends on it.
"""

import argparse
import importlib.util
import json
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gristmill as gm

FORMS = {
    "f32": ["planes", "probs", "values"],
    "bf16": ["planes:bf16", "probs", "values"],
    "bits": ["planes:packed", "probs:sparse", "values"],
    "position": ["planes:position", "probs:sparse", "values"],
}


def rate(
    take: Callable[[], Any], step: Callable[[Any], None], wait: Callable[[], None], seconds: float
) -> tuple[float, float]:
    """Batches, and seconds of CPU for each, in a time."""
    wait()
    began, spent, batches = time.perf_counter(), cpu(), 0
    while time.perf_counter() - began < seconds:
        for _ in range(8):
            step(take())
        batches += 8
    wait()
    return batches / (time.perf_counter() - began), (cpu() - spent) / batches


def cpu() -> float:
    """Seconds of CPU that this process has spent."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Measures each form with both steps."""
    words = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--framework", choices=["torch", "jax"], required=True)
    words.add_argument("--games", type=int, default=1000)
    words.add_argument("--batch-size", type=int, default=4096)
    words.add_argument("--seconds", type=float, default=4.0)
    words.add_argument("--forms", nargs="+", choices=list(FORMS), default=list(FORMS))
    words.add_argument("--steps", nargs="+", choices=["sum", "net"], default=["sum", "net"])
    words.add_argument(
        "--folder", type=Path, help="where games and pack lie, or shall lie; by default for this run alone"
    )
    words.add_argument("--json", action="store_true")
    args = words.parse_args()
    if importlib.util.find_spec(args.framework) is None:
        words.error(f"{args.framework} is not installed here")
    with tempfile.TemporaryDirectory() as made:
        folder = args.folder or Path(made)
        if not (folder / "pack").exists():
            gm.generate("chess", folder / "games", games=args.games, seed=1)
            gm.pack(folder / "games", folder / "pack")
        measure(args, gm.open(folder / "pack"))


def measure(args: argparse.Namespace, pack: Any) -> None:
    """Prints a line for each form and step."""
    framework: Any = importlib.import_module(f"steps_{args.framework}").Steps()
    if not args.json:
        sys.stdout.write(f"{args.framework} on {framework.name}, batches of {args.batch_size}\n")
        sys.stdout.write(f"{'step':6}{'form':10}{'positions/s':>12}{'stall':>8}{'bytes':>8}{'CPU us':>8}\n")
    for kind in args.steps:
        for form in args.forms:
            encoder = gm.chess.Tensors(FORMS[form])
            loader = gm.DataLoader(
                pack, encoder=encoder, batch_size=args.batch_size, epochs=None, seed=1, last_batch="drop"
            )
            step = getattr(framework, kind)()
            feed = framework.feed(loader)

            def take(feed: Any = feed) -> Any:
                return feed.get_next()

            one = take()
            for _ in range(3):
                step(take())
            fed, spent = rate(take, step, framework.wait, args.seconds)
            alone, _ = rate(lambda one=one: one, step, framework.wait, args.seconds / 2)
            found = {
                "framework": args.framework,
                "device": framework.name,
                "step": kind,
                "form": form,
                "positions_per_second": round(fed * args.batch_size),
                "stall": round(max(0.0, 1 - fed / alone), 4),
                "bytes_per_position": sum(array.nbytes for array in one.values()) // args.batch_size,
                "cpu_us_per_position": round(1e6 * spent / args.batch_size, 2),
            }
            if args.json:
                sys.stdout.write(json.dumps(found) + "\n")
            else:
                _, _, _, _, positions, stall, crossed, used = found.values()
                sys.stdout.write(f"{kind:6}{form:10}{positions:12}{stall:8.1%}{crossed:8}{used:8}\n")
            sys.stdout.flush()
            feed.close()


if __name__ == "__main__":
    main()
