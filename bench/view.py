"""How long pages of a large pack take: `python bench/view.py FOLDER [--rows 10000000]`.

Makes a pack of games of 2048 once, of the rows of a small one over and over, and serves it by `gristmill view`. Prints
the time until it serves, and of several pages and queries the first time, the median and the best of five; then, where
there is a Chromium, the time from asking for a page to its first paint.
"""

import argparse
import contextlib
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from pathlib import Path

import numpy as np

import gristmill as gm

#: Moves of a game, and rows of one of the packs that are merged.
MOVES = 40
PART = 100_000

PAGES = {
    "first page": "",
    "second page": "?page=1",
    "last page": "?page=1000000",
    "sorted": "?sort=max_score&way=down",
    "condition": "?where=id+%25+7+%3D+3",
    "condition, few games": "?where=id+BETWEEN+1000+AND+1100",
    "columns": "columns",
    "columns of a condition": "columns?where=id+%25+7+%3D+3",
    "a game": "game/777",
}


def main() -> None:
    """Makes what is missing, and measures."""
    words = argparse.ArgumentParser(description=__doc__)
    words.add_argument("folder", type=Path)
    words.add_argument("--rows", type=int, default=10_000_000)
    words.add_argument("--command", default=os.environ.get("GRISTMILL") or shutil.which("gristmill") or "gristmill")
    args = words.parse_args()
    pack = args.folder / f"pack-{args.rows}"
    if not pack.exists():
        make(args.folder, pack, args.rows)
    shown = gm.open(pack)
    sys.stdout.write(f"{len(shown)} rows, {shown.num_games} games\n")
    began = time.perf_counter()
    line = [args.command, "view", str(pack), "--json", "--addr", "127.0.0.1:0"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        url = json.loads(child.stdout.readline())["url"]
        sys.stdout.write(f"{'start':24} {1000 * (time.perf_counter() - began):8.0f} ms\n")
        for name, target in PAGES.items():
            times = [timed(urllib.parse.urljoin(url, target)) for _ in range(5)]
            first, middle, best = times[0], statistics.median(times), min(times)
            sys.stdout.write(f"{name:24} {first:8.0f} ms first, {middle:.0f} median, {best:.0f} best\n")
            sys.stdout.flush()
        for name, times in painted(url).items():
            sys.stdout.write(
                f"{name + ', painted':24} {times[0]:8.0f} ms first, {statistics.median(times):.0f} median\n"
            )
        child.terminate()


def painted(url: str) -> dict[str, list[float]]:
    """Milliseconds from asking for each page to its first paint in headless Chromium; nothing where there is none."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests/made"))
    from browsers import NAMES, browsing

    if "CHROMIUM" not in os.environ and not any(map(shutil.which, NAMES)):
        sys.stdout.write("no Chromium: nothing is painted\n")
        return {}
    found: dict[str, list[float]] = {name: [] for name in PAGES}
    paint = "performance.getEntriesByName('first-contentful-paint')[0]"
    with browsing() as browser:
        browser.looks()
        for name, target in PAGES.items():
            for _ in range(5):
                browser.open(urllib.parse.urljoin(url, target))
                browser.wait(f"{paint} !== undefined")
                found[name].append(browser.evaluate(f"{paint}.startTime"))
    return found


def make(folder: Path, pack: Path, rows: int) -> None:
    """A pack of `rows` rows: one that was packed, again and again, each time as other games."""
    part = folder / "part"
    gm.generate("2048", folder / "logs", games=PART // MOVES, seed=1, moves_max=MOVES, depth=1)
    gm.pack(folder / "logs", part)
    steps, manifest = np.load(part / "steps.npy"), json.loads((part / "manifest.json").read_text())
    times, games, size = rows // len(steps), manifest["runs"], len(steps)
    pack.mkdir()
    shutil.copy(part / "valuation_types.json", pack)
    shutil.copy(part / "metadata.db", pack)
    out = np.lib.format.open_memmap(pack / "steps.npy", "w+", steps.dtype, (times * size,))
    for i in range(times):
        out[i * size : (i + 1) * size] = steps
        out["run_id"][i * size : (i + 1) * size] += i * games
    out.flush()
    with contextlib.closing(sqlite3.connect(pack / "metadata.db")) as db, db:
        count = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?1)"
        columns = "id + i * ?2, seed + i, steps, max_score + i, highest_tile"
        db.execute(f"INSERT INTO runs {count} SELECT {columns} FROM runs, n", (times, games))
        columns = "run_id + i * ?2, first_row + i * ?3, source, stored_bytes, stored_xxh3, sidecar"
        db.execute(f"INSERT INTO extras {count} SELECT {columns} FROM extras, n", (times, games, size))
    manifest |= {"rows": times * size, "runs": times * games}
    manifest["files"][0] |= {"rows": times * size}
    (pack / "manifest.json").write_text(json.dumps(manifest))


def timed(url: str) -> float:
    """Milliseconds until a page has come whole."""
    began = time.perf_counter()
    with urllib.request.urlopen(url, timeout=60) as answer:
        answer.read()
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
