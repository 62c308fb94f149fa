"""What `make demo` runs after the build: with games of one's own, into which it writes nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def command() -> Path:
    """The command that is built."""
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    found = [path for path in (built / "debug/gristmill", built / "release/gristmill") if path.exists()]
    if not found:
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    return max(found, key=lambda path: path.stat().st_mtime)


def demo(command: Path, folder: Path, games: Path) -> subprocess.CompletedProcess[str]:
    """Runs the script from a copy of it, since it writes beside itself."""
    (folder / "target/release").mkdir(parents=True)
    (folder / "target/release/gristmill").symlink_to(command)
    shutil.copytree(ROOT / "scripts", folder / "scripts")
    env = {**os.environ, "CARGO": "true", "CARGO_TARGET_DIR": "target", "GAMES": str(games), "PYTHON": sys.executable}
    line = ["bash", "scripts/demo.sh"]
    return subprocess.run(line, cwd=folder, env=env, capture_output=True, text=True, check=False, timeout=250)


def listed(folder: Path) -> dict[str, int]:
    return {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in folder.rglob("*")}


def check(done: subprocess.CompletedProcess[str]) -> None:
    assert done.returncode == 0, done.stderr
    for shown in (
        "positions/s",
        "batches are the same to the byte",
        "chunk 1, frame",
        "a b c d e f g h",
        "run 1, step 300",
    ):
        assert shown in done.stdout, shown


def test_the_demo_feeds_games_of_ones_own(command: Path, tmp_path: Path) -> None:
    games = tmp_path / "games"
    subprocess.run([command, "generate", "chess", games, "--games", "12", "--seed", "1", "-q"], check=True)
    before = listed(games)
    done = demo(command, tmp_path / "demo", games)
    check(done)
    assert "300 games" not in done.stdout
    assert listed(games) == before


def test_the_demo_feeds_real_games(command: Path, tmp_path: Path, shared: Path) -> None:
    before = listed(shared / "data/lc0")
    check(demo(command, tmp_path / "demo", shared / "data/lc0"))
    assert listed(shared / "data/lc0") == before


def test_the_demo_says_that_there_are_no_such_games(command: Path, tmp_path: Path) -> None:
    done = demo(command, tmp_path / "demo", tmp_path / "nowhere")
    assert (done.returncode, done.stderr) == (2, f"GAMES={tmp_path}/nowhere is no directory\n")
