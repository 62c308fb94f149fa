"""Runs tests again and again, each program within a time: which test failed how often, and which one hung.

`scripts/flakes.sh` runs this with busy loops beside it.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parent.parent

#: What `pytest -v` and the programs of `cargo test` say of a test that began, and of one that ended.
_PYTEST = re.compile(r"^(tests/\S+?::\w+(?:\[.*?\])?)(?= |$)(?: (PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS)\b)?")
_RUST = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. (ok|FAILED|ignored)?")
_SLOW = re.compile(r"^test (\S+) has been running for over")

_BAD = ("FAILED", "ERROR")


@dataclass
class Program:
    """Something that runs tests."""

    name: str
    line: list[str]
    folder: Path = ROOT
    env: dict[str, str] = field(default_factory=dict)
    #: Words before the name of a single test to run; `None` where the program cannot run one alone.
    only: list[str] | None = None

    @property
    def python(self) -> bool:
        """Whether it is pytest."""
        return self.name == "pytest"


@dataclass
class Tally:
    """What came of all runs."""

    runs: Counter[str] = field(default_factory=Counter)
    bad: Counter[str] = field(default_factory=Counter)
    said: dict[str, str] = field(default_factory=dict)

    def add(self, test: str, output: str | None) -> None:
        """One run of a test; `output` is what it said where it failed."""
        self.runs[test] += 1
        if output is not None:
            say(f"failed: {test}")
            self.bad[test] += 1
            self.said.setdefault(test, output)


def run(program: Program, words: list[str], seconds: float, tally: Tally) -> None:
    """Runs a program once, and ends it when it takes longer than it may."""
    command = [*program.line, *words]
    env = {**os.environ, **program.env}
    with subprocess.Popen(
        command,
        cwd=program.folder,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as child:
        hung = False
        try:
            output, _ = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            hung = True
            # Python says where each of its threads stands.
            _end(child.pid, signal.SIGABRT)
            try:
                output, _ = child.communicate(timeout=10)
            except subprocess.TimeoutExpired:
                _end(child.pid, signal.SIGKILL)
                output, _ = child.communicate()
        finally:
            _end(child.pid, signal.SIGKILL)
    told(program, output, hung, child.returncode, seconds, tally)


def _end(group: int, how: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, how)


def told(program: Program, output: str, hung: bool, code: int, seconds: float, tally: Tally) -> None:
    """Notes what the output of one run says."""
    ended, begun, slow = {}, [], []
    for line in output.splitlines():
        if match := _SLOW.match(line):
            slow.append(match[1])
        elif match := (_PYTEST if program.python else _RUST).match(line):
            if match[2]:
                ended[match[1]] = match[2]
            else:
                begun.append(match[1])
    label = "{}" if program.python else f"{program.name}: {{}}"
    for test, how in ended.items():
        if how not in ("ignored", "SKIPPED"):
            tally.add(label.format(test), output if how in _BAD else None)
    if hung:
        open_ones = [test for test in dict.fromkeys([*slow, *begun]) if test not in ended]
        names = open_ones or ["(no test that it named)"]
        for test in names:
            tally.add(label.format(test), f"it hung: no end after {seconds:.0f} s\n{output}")
    elif code != 0 and not any(how in _BAD for how in ended.values()):
        tally.add(f"{program.name} itself", f"it ended with {code}\n{output}")


def programs(cargo: str) -> list[Program]:
    """All programs of the suite, built."""
    words = [cargo, "test", "--locked", "--no-run", "--message-format=json"]
    built = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    found = []
    for line in built.stdout.splitlines():
        told_of = json.loads(line)
        if told_of.get("profile", {}).get("test") and told_of.get("executable"):
            folder = Path(told_of["manifest_path"]).parent
            name = f"{folder.name}/{told_of['target']['name']}"
            env = {"CARGO_MANIFEST_DIR": str(folder)}
            found.append(Program(name, [told_of["executable"]], folder, env, ["--exact"]))
    found.append(Program("documentation", [cargo, "test", "--locked", "--doc"]))
    python = [str(ROOT / ".venv/bin/python"), "-X", "faulthandler", "-m", "pytest"]
    line = [*python, "-v", "-p", "no:cacheprovider", "--color=no"]
    found.append(Program("pytest", line, env={"PYTHONUNBUFFERED": "1", "COLUMNS": "300"}, only=[]))
    return found


def changed(base: str) -> list[str]:
    """Tests with a line that is another one than at `base`: ids of pytest, names of Rust functions."""
    diff = subprocess.run(
        ["git", "diff", "--unified=0", "--no-color", base, "--", "*.rs", "tests/*.py"],
        cwd=ROOT,
        check=True,
        stdout=subprocess.PIPE,
        text=True,
    ).stdout
    lines: dict[str, set[int]] = {}
    path = ""
    for line in diff.splitlines():
        if line.startswith("+++ "):
            path = line[4:].removeprefix("b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            lines.setdefault(path, set()).update(range(first, first + max(count, 1)))
    new = ["git", "ls-files", "--others", "--exclude-standard", "--", "*.rs", "tests/*.py"]
    for name in subprocess.run(new, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.split():
        lines[name] = set(range(1, len((ROOT / name).read_text().splitlines()) + 1))
    found = []
    for name, numbers in sorted(lines.items()):
        if (ROOT / name).is_file():
            text = (ROOT / name).read_text()
            spans = _python_tests(name, text) if name.endswith(".py") else _rust_tests(text)
            found += [test for test, span in spans if numbers & set(span)]
    return found


def _python_tests(name: str, text: str) -> list[tuple[str, range]]:
    tests = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)]
    return [
        (f"{name}::{t.name}", range(t.lineno, (t.end_lineno or t.lineno) + 1)) for t in tests if t.name[:5] == "test_"
    ]


def _rust_tests(text: str) -> list[tuple[str, range]]:
    found, lines, marked = [], text.splitlines(), False
    for number, line in enumerate(lines, 1):
        if line.strip() == "#[test]":
            marked = True
        elif marked and (match := re.match(r"(\s*)(?:pub )?fn (\w+)", line)):
            marked = False
            closed = (n for n, after in enumerate(lines[number:], number + 1) if after == f"{match[1]}}}")
            found.append((match[2], range(number, next(closed, number) + 1)))
    return found


def chosen(all_programs: list[Program], tests: list[str]) -> list[tuple[Program, list[str]]]:
    """How to run each of these tests alone."""
    found = []
    for program in all_programs:
        if program.python:
            found += [(program, [test]) for test in tests if test.startswith("tests/")]
        elif program.only is not None:
            listed = subprocess.run(
                [*program.line, "--list"], cwd=program.folder, check=True, stdout=subprocess.PIPE, text=True
            )
            names = [line.removesuffix(": test") for line in listed.stdout.splitlines() if line.endswith(": test")]
            ours = [test for test in tests if not test.startswith("tests/")]
            found += [(program, [*program.only, name]) for name in names if any(test in name for test in ours)]
    return found


def main() -> int:
    """Runs everything; the exit code."""
    parser = argparse.ArgumentParser(prog="flakes.sh", description="Find tests that fail now and then.")
    parser.add_argument("--runs", type=int, default=10, help="how often the whole suite runs [default: %(default)s]")
    parser.add_argument("--times", type=int, default=50, help="how often each chosen test runs [default: %(default)s]")
    parser.add_argument("--base", default="HEAD~1", help="tests changed since then are chosen [default: %(default)s]")
    parser.add_argument(
        "--timeout",
        type=float,
        default=3600,
        help="seconds that one program of the suite may take [default: %(default)s]",
    )
    parser.add_argument("tests", nargs="*", help="tests to choose, in the place of those that were changed")
    args = parser.parse_args()
    suite = programs(os.environ.get("CARGO", "cargo"))
    tally = Tally()
    for again in range(args.runs):
        for program in suite:
            say(f"suite {again + 1} of {args.runs}: {program.name}")
            run(program, [], args.timeout, tally)
    alone = chosen(suite, args.tests or changed(args.base)) if args.times else []
    if args.tests and not alone:
        say(f"no test is called {' or '.join(args.tests)}")
        return 2
    for program, words in alone:
        say(f"{args.times} times: {words[-1]} ({program.name})")
        for _ in range(args.times):
            run(program, words, min(args.timeout, 600), tally)
    for test, output in tally.said.items():
        say(f"\n---- the first failure of {test}\n{output}")
    say(f"\n{sum(tally.runs.values())} runs of {len(tally.runs)} tests")
    for test, count in tally.bad.most_common():
        say(f"failed {count} of {tally.runs[test]}: {test}")
    return 1 if tally.bad else 0


def say(text: str) -> None:
    """Prints at once."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    raise SystemExit(main())
