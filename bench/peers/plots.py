"""Plots a run by matplotlib: `python plots.py peers.json FOLDER` writes an SVG for each work.

The left plot shows rows a second, the right one the CPU time of a row. Both scales are logarithmic. Bars of gristmill
are dark, bars of yardsticks are hollow.
"""

import json
import sys
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
from matplotlib import pyplot

FIGURES = {"rows_per_second": "rows a second", "cpu_us_per_row": "CPU time of a row, microseconds"}
OURS, THEIRS = "#14506b", "#c9b27c"


def plot(work: str, lines: list[dict[str, Any]], path: Path) -> None:
    """Plots one work, the fastest line on top."""
    lines = sorted((line for line in lines if "error" not in line), key=lambda line: line["rows_per_second"])
    if not lines:
        return
    figure, axes = pyplot.subplots(1, 2, sharey=True, figsize=(11, 1.2 + 0.26 * len(lines)), layout="constrained")
    names = [f"{line['peer']}, {line['form']}" for line in lines]
    for axis, (figure_of, says) in zip(axes, FIGURES.items(), strict=True):
        colours = [OURS if line["ours"] else THEIRS for line in lines]
        bars = axis.barh(names, [line[figure_of] for line in lines], color=colours)
        for bar, line in zip(bars, lines, strict=True):
            if line["yardstick"]:
                bar.set(facecolor="none", edgecolor=THEIRS)
        axis.set(xscale="log", xlabel=says)
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="x", alpha=0.3)
    figure.suptitle(work)
    figure.savefig(path, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    """Plots all works of a run."""
    result, folder = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    matplotlib.rcParams.update({"svg.hashsalt": "peers", "svg.fonttype": "none", "font.size": 9})
    for work in dict.fromkeys(line["work"] for line in result["lines"]):
        plot(work, [line for line in result["lines"] if line["work"] == work], folder / f"peers-{work}.svg")


if __name__ == "__main__":
    main()
