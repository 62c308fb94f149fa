"""The table of a run as text and as Markdown. A line has one loader and its ratio to the best line of gristmill."""

from typing import Any

from lines import WORKS

HEAD = ("loader", "rows/s", "CPU us/row", "ours/it, rows/s", "ours/it, CPU", "first batch", "memory", "left", "note")


def short(number: float) -> str:
    """Returns a number with three digits, and with a letter for thousands or millions."""
    for size, letter in ((1e6, " M"), (1e3, " k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def best(lines: list[dict[str, Any]]) -> dict[str, float]:
    """Returns the best of each figure of some lines. Returns `{}` if no line was measured."""
    fine = [line for line in lines if "error" not in line]
    if not fine:
        return {}
    return {
        "rows_per_second": max(line["rows_per_second"] for line in fine),
        "cpu_us_per_row": min(line["cpu_us_per_row"] for line in fine),
    }


def cells(line: dict[str, Any], ours: dict[str, float]) -> list[str]:
    """Returns the cells of one line, in the order of `HEAD`."""
    name = f"{line['peer']}, {line['form']}"
    if "error" in line:
        return [name, "-", "-", "-", "-", "-", "-", "-", line["error"]]
    ratios = ["-", "-"]
    if ours and line["cpu_us_per_row"] and ours["cpu_us_per_row"]:
        speed = ours["rows_per_second"] / line["rows_per_second"]
        ratios = [f"{speed:.2f}", f"{line['cpu_us_per_row'] / ours['cpu_us_per_row']:.2f}"]
    return [
        name,
        short(line["rows_per_second"]),
        f"{line['cpu_us_per_row']:.3g}",
        *(ratios if not line["ours"] else ["", ""]),
        f"{line['first_batch_s']:.2f} s",
        f"{line['memory_bytes'] / 1e6:.0f} MB",
        str(line["left_after_sigkill"]),
        line["note"],
    ]


def of_work(result: dict[str, Any], work: str) -> list[list[str]]:
    """Returns the lines of a work, the fastest first. Lines without figures come last."""
    lines = [line for line in result["lines"] if line["work"] == work]
    ours = best([line for line in lines if line["ours"] and not line["aside"]])
    lines.sort(key=lambda line: -line.get("rows_per_second", 0))
    return [cells(line, ours) for line in lines]


def text(result: dict[str, Any]) -> str:
    """Returns all works as text in columns."""
    found = [
        f"{result['date']}, {result['machine']['cores']} cores, "
        f"load {result['load'][0]:.1f} to {result['load'][1]:.1f}; "
        f"the best of {result['windows']} windows of {result['seconds']:g} s"
    ]
    for work, (_, says) in WORKS.items():
        rows = of_work(result, work)
        if not rows:
            continue
        grid = [list(HEAD), *rows]
        widths = [max(len(row[i]) for row in grid) for i in range(len(HEAD) - 1)]
        found += ["", f"{work}: {says}"]
        for row in grid:
            left = [row[0].ljust(widths[0])] + [
                cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:], strict=True)
            ]
            found.append("  ".join([*left, row[-1]]).rstrip())
    return "\n".join(found) + "\n"


def markdown(result: dict[str, Any]) -> str:
    """Returns all works as Markdown tables."""
    found = ""
    for work, (_, says) in WORKS.items():
        if rows := of_work(result, work):
            grid = [list(HEAD), ["---", *["---:"] * (len(HEAD) - 2), "---"], *rows]
            found += f"**{work}**: {says}\n\n" + "".join(f"| {' | '.join(row)} |\n" for row in grid) + "\n"
    return found
