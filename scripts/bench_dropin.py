"""What the drop-in for Lc0's loader costs over the native one: calls that find a batch ready, and whole streams.

    python scripts/bench_dropin.py <directory of games>

Both run alternately in this process, on one worker thread, with the same seed. CPU time, so that other programs on the
machine do not count.
"""

import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import gristmill as gm
from gristmill.compat import lczero

ROUNDS, BATCHES, READY = 9, 600, 40


def config(games: str, batch_size: int, queue: int) -> gm.DataLoaderConfig:
    """A loader of the games of a folder, on one thread."""
    return gm.presets.lc0(
        games, pool=10_000, reservoir=4096, batch_size=batch_size, seed=1, threads=1, queue_capacity=queue, index="off"
    )


def native(config: gm.DataLoaderConfig) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The native loader: how it gives a batch, how it stops."""
    loader = gm.DataLoader(config)
    loader.start()
    return lambda: tuple(loader.get_next()), loader.stop


def dropin(config: gm.DataLoaderConfig) -> tuple[Callable[[], Any], Callable[[], Any]]:
    """The drop-in: how it gives a batch, how it stops."""
    loader = lczero.make_dataloader(config.to_proto_bytes())
    return loader.get_next, loader.stop


def call(make: Any, games: str) -> float:
    """Seconds of this thread's CPU in a call that finds small batches ready."""
    get_next, stop = make(config(games, 1, READY))
    get_next()
    time.sleep(0.3)
    start = time.thread_time()
    for _ in range(READY):
        get_next()
    spent = (time.thread_time() - start) / READY
    stop()
    return spent


def stream(make: Any, games: str) -> float:
    """Seconds of CPU of all threads for each batch of 256."""
    get_next, stop = make(config(games, 256, 2))
    for _ in range(5):
        get_next()
    start = time.process_time()
    for _ in range(BATCHES):
        get_next()
    spent = (time.process_time() - start) / BATCHES
    stop()
    return spent


def main() -> None:
    """Times both, turn by turn, on the games of a folder."""
    games = sys.argv[1]
    spent: dict[str, list[float]] = {}
    both = [("native", native), ("drop-in", dropin)]
    for turn in range(ROUNDS):
        # Neither always comes first.
        for name, make in both if turn % 2 else both[::-1]:
            spent.setdefault(f"call {name}", []).append(call(make, games))
            spent.setdefault(f"stream {name}", []).append(stream(make, games))
    best = {name: min(values) for name, values in spent.items()}
    middle = {name: statistics.median(values) for name, values in spent.items()}
    more = best["call drop-in"] - best["call native"]
    print(
        f"call that finds a batch: native {1e6 * best['call native']:.1f} us, "
        f"drop-in {1e6 * best['call drop-in']:.1f} us"
    )
    print(f"  the difference is {100 * more / best['stream native']:.3f} % of a batch of 256 positions (at most 2 %)")
    ratio = middle["stream drop-in"] / middle["stream native"]
    spread = max(spent["stream native"]) / min(spent["stream native"])
    print(f"stream, CPU for a batch: native {1e3 * middle['stream native']:.2f} ms, drop-in / native {ratio:.3f}")
    print(f"  (the native one alone varies by a factor of {spread:.3f} from round to round)")


main()
