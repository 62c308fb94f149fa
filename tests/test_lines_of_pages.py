"""The command takes every line of the README and the guides that calls it, and does what the line says."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from world_of_pages import NOT_RUN, World, before, prepared

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]


def lines(page: Path) -> Iterator[tuple[int, list[str]]]:
    """The lines of a page's blocks that begin with the command: their numbers, and their words."""
    block, text = None, ""
    for number, line in enumerate(page.read_text().splitlines(), 1):
        if line.startswith("```"):
            block = line if block is None else None
            continue
        text = text + line if block == "```" else ""
        if text.endswith("\\"):
            text = text[:-1]
            continue
        if text.startswith("gristmill "):
            # What it is piped into is another program.
            yield number, shlex.split(text.split(" | ")[0], comments=True)[1:]
        text = ""


#: The page and number of the line at which each command first stands, by the command.
FIRST: dict[str, str] = {}
for page in PAGES:
    for number, words in lines(page):
        FIRST.setdefault(shlex.join(words), f"{page.name}:{number}")
LINES = [(shlex.split(line), place) for line, place in FIRST.items()]


def not_run(words: list[str]) -> str | None:
    """The reason why no test runs a line. Returns `None` if a test runs it."""
    return next((why for begins, why in NOT_RUN.items() if " ".join(words).startswith(begins)), None)


@pytest.fixture(scope="module")
def command() -> Path:
    """The command that is built."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [path for path in (built / "debug/gristmill", built / "release/gristmill") if path.exists()]
    if not found:
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    return max(found, key=lambda path: path.stat().st_mtime)


def run(command: Path, words: list[str], folder: Path) -> "subprocess.CompletedProcess[str]":
    env = {**os.environ, "GRISTMILL_PYTHON": sys.executable}
    line: list[str | Path] = [command, *words]
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=200)


def test_pages_have_lines() -> None:
    assert len(LINES) > 80


@pytest.mark.parametrize("words", [pytest.param(words, id=place) for words, place in LINES if not_run(words)])
def test_the_command_takes_a_line_that_is_not_run(command: Path, words: list[str], tmp_path: Path) -> None:
    # Words are read one after the other; help is given where all before it are understood.
    done = run(command, [*words, "--help"], tmp_path)
    assert (done.returncode, done.stderr) == (0, ""), words
    assert "Usage:" in done.stdout or "usage:" in done.stdout
    assert not any(tmp_path.iterdir())


def test_the_first_steps_run(command: Path, tmp_path: Path) -> None:
    for number, words in lines(ROOT / "docs/guide/first-steps.md"):
        few = re.sub(r"--(games|batches) \d+", r"--\1 30", shlex.join(words))
        done = run(command, shlex.split(few), tmp_path)
        assert done.returncode == 0, (number, few, done.stderr)


@pytest.fixture(scope="module")
def world(command: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything that lines name, made once."""
    return World(tmp_path_factory.mktemp("world"), command).root


def test_lines_that_are_not_run_are_there() -> None:
    said = [" ".join(words) for page in PAGES for _, words in lines(page)]
    assert all(any(line.startswith(begins) for line in said) for begins in NOT_RUN)


@pytest.mark.parametrize("words", [pytest.param(words, id=place) for words, place in LINES])
def test_a_line_of_a_page_does_what_it_says(command: Path, world: Path, words: list[str], tmp_path: Path) -> None:
    if reason := not_run(words):
        pytest.skip(f"skipped: {reason}")
    here = shutil.copytree(world, tmp_path / "world")
    shortened = prepared(here, words)
    for line in [*before(words), shortened]:
        done = run(command, line, here)
        assert done.returncode == 0, (line, done.stderr)
