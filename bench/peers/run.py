"""Runs the same work by gristmill and by other loaders, and writes a table, JSON and plots.

    python bench/peers/run.py [--works rows,steps] [--peers gristmill,Grain] [--seconds 2] [--windows 3]

Each loader runs in a process and an environment of its own (`install.py` makes the environments). The line of a loader
that is not installed says so. Each figure is the best of several windows of time, one after another in the process.
"""

import argparse
import json
import os
import platform
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import data
import processes
import table
from lines import WORKS, Line, lines

HERE = Path(__file__).resolve().parent
#: Seconds after SIGKILL. Then the bench counts the processes that are left.
AFTER = 1.0
#: Seconds that a loader may take to print its figures, beyond its windows.
PATIENCE = 90


def python_of(line: Line, out: Path) -> Path:
    """Returns the path of the interpreter of a line's environment. The path may not exist."""
    return out / "venvs" / line.environment / "bin" / "python" if line.environment else Path(sys.executable)


def started(line: Line, out: Path, job: dict[str, Any]) -> subprocess.Popen[str]:
    """Starts a worker with a job. Its standard error goes to a file beside the folder of the job."""
    job = {"module": line.module, "work": line.work, "batch": WORKS[line.work][0], "options": line.options, **job}
    folder = Path(job["folder"])
    folder.mkdir(parents=True, exist_ok=True)
    quiet = {"CUDA_VISIBLE_DEVICES": "", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(folder), "PYTHONWARNINGS": "ignore"}
    environment = {**os.environ, **quiet}
    with folder.with_suffix(".said").open("w") as said:
        return subprocess.Popen(
            [python_of(line, out), HERE / "worker.py", json.dumps(job)],
            stdout=subprocess.PIPE,
            stderr=said,
            env=environment,
            text=True,
            start_new_session=True,
        )


def last_words(folder: Path) -> str:
    """Returns the last line that a worker wrote to its standard error."""
    said = [text for text in folder.with_suffix(".said").read_text(errors="replace").splitlines() if text.strip()]
    return said[-1][:160] if said else "it ended without a word"


def killed(process: subprocess.Popen[str]) -> int:
    """Kills only the worker. Returns how many of its descendants live a second later, and kills them, too."""
    family = processes.tree(process.pid)[1:]
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(AFTER if family else 0)
    left = processes.living(family)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    return len(left)


def measured(line: Line, out: Path, job: dict[str, Any]) -> dict[str, Any]:
    """Runs one line. Returns its figures, or `error`."""
    process = started(line, out, {"write": False, **job})
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE + job["seconds"] * job["windows"])
    text = process.stdout.readline() if ready else ""
    left = killed(process)
    process.stdout.close()
    if not text.strip():
        return {"error": last_words(Path(job["folder"])) if ready else f"no figure after {PATIENCE} s"}
    return {**json.loads(text), "left_after_sigkill": left}


def written(line: Line, out: Path, data: Path, folder: Path) -> str:
    """Makes the peer's form of the data if it is missing. Returns an error text, or an empty one."""
    if (folder / ".made").exists():
        return ""
    packings = ["raw"] if line.work == "rows" else ["raw", "zstd"]
    process = started(line, out, {"write": True, "packings": packings, "data": str(data), "folder": str(folder)})
    process.communicate()
    if process.returncode:
        return f"its form of the data was not made: {last_words(folder)}"
    (folder / ".made").touch()
    return ""


def versions(out: Path) -> dict[str, str]:
    """Returns the pinned version of the peer in each environment that is installed."""
    found = {}
    for path in sorted((HERE / "requirements").glob("*.txt")):
        if (out / "venvs" / path.stem).exists():
            found[path.stem] = next(text for text in path.read_text().splitlines() if text and text[0] != "#")
    return found


def tried(line: Line, out: Path, counts: dict[str, int], job: dict[str, Any]) -> dict[str, Any]:
    """Makes the data and the form of a line if they are missing, and measures the line. Returns figures or `error`."""
    if not python_of(line, out).exists():
        return {"error": "not installed"}
    if line.work != "games" and counts[line.work] < WORKS[line.work][0]:
        return {"error": f"fewer rows than a batch of {WORKS[line.work][0]}"}
    made = data.ready(out / "data", line.work, counts)
    folder = out / "forms" / made.name / line.module
    error = written(line, out, made, folder)
    return {"error": error} if error else measured(line, out, {"data": str(made), "folder": str(folder), **job})


def kept(result: dict[str, Any], out: Path) -> str:
    """Writes the results so far. Returns the table."""
    (out / "peers.json").write_text(json.dumps(result, indent=1) + "\n")
    text = table.text(result)
    (out / "peers.txt").write_text(text)
    (out / "peers.md").write_text(table.markdown(result))
    return text


def main() -> None:
    """Runs the lines, writes the results and prints the table."""
    said = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    said.add_argument("--works", default=",".join(WORKS), help="which of %(default)s")
    said.add_argument("--peers", default="", help="names of peers, all by default; gristmill is one")
    said.add_argument("--forms", default="", help="parts of names of forms, between semicolons; all by default")
    said.add_argument("--rows", type=int, default=2_000_000, help="rows of 48 bytes")
    said.add_argument("--steps", type=int, default=10_000, help="steps with pictures")
    said.add_argument("--games", type=int, default=500, help="games of chess")
    said.add_argument("--seconds", type=float, default=2, help="the window of a measurement")
    said.add_argument("--windows", type=int, default=3, help="how many of them")
    said.add_argument("--out", type=Path, default=Path("target/peers"), help="environments, data and results")
    options = said.parse_args()
    peers = [name.strip().lower() for name in options.peers.split(",") if name.strip()]
    works, forms = options.works.split(","), [part for part in options.forms.split(";") if part]
    chosen = [
        line
        for line in lines()
        if line.work in works
        and (not peers or line.peer.lower() in peers)
        and (not forms or any(part in line.form for part in forms))
    ]
    counts = {"rows": options.rows, "steps": options.steps, "games": options.games}
    counts.update({work: options.steps for work in WORKS if work.startswith("shards")})
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    job = {"seconds": options.seconds, "windows": options.windows, "warm": min(1.0, options.seconds)}
    result: dict[str, Any] = {
        "machine": {"cores": os.cpu_count(), "kernel": platform.release(), "python": platform.python_version()},
        "load": [os.getloadavg()[0]] * 2,
        "date": time.strftime("%Y-%m-%d"),
        "seconds": options.seconds,
        "windows": options.windows,
        "counts": counts,
        "versions": versions(out),
        "lines": [],
    }
    for line in chosen:
        figures = tried(line, out, counts, job)
        known = {name: getattr(line, name) for name in ("work", "peer", "form", "note", "ours", "yardstick", "aside")}
        result["lines"].append({**known, **figures})
        result["load"][1] = os.getloadavg()[0]
        kept(result, out)
        sys.stderr.write(f"{line.work}: {line.peer}, {line.form}: {figures}\n")
    sys.stdout.write(kept(result, out))
    plotter = out / "venvs" / "plots" / "bin" / "python"
    if plotter.exists():
        subprocess.run([plotter, HERE / "plots.py", out / "peers.json", out], check=True)
    else:
        sys.stdout.write("no plots: matplotlib is not installed (bench/peers/install.py)\n")


if __name__ == "__main__":
    main()
