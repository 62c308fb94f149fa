"""What is about to be published -> whether it is whole: `make release-check`.

    release_check.py --wheel FILE

Builds the sdist, checks the metadata of both (twine), and runs scripts/smoke.py in empty environments: the wheel with
every Python from 3.11 on that this machine has, with NumPy 1.26 and 2, then a wheel that pip builds of the sdist. What
cannot be had here is said (`skipped: ...`); an environment that fails, or none at all, ends it with 1.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SMOKE = ROOT / "scripts" / "smoke.py"

#: Lowest and newest NumPy that the package takes.
NUMPY = ("numpy==1.26.*", "numpy>=2")

#: Minor versions that the package is for.
FIRST, LAST = 11, 14


def say(text: str) -> None:
    """Says something, at once."""
    print(f"release-check: {text}", flush=True)


def minor_of(python: str) -> int | None:
    """The minor version of an interpreter of Python 3; none where it does not run."""
    code = "import sys, venv, ensurepip; print(sys.version_info.major, sys.version_info.minor)"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return None
    found = re.fullmatch(r"3 (\d+)\n", done.stdout)
    return int(found[1]) if found and done.returncode == 0 else None


def pythons(path: str, pyenv: Path) -> dict[int, str]:
    """By minor version one interpreter on the path, or of pyenv."""
    found: dict[int, str] = {}
    for minor in range(FIRST, LAST + 1):
        there = [shutil.which(f"python3.{minor}", path=path), *map(str, sorted(pyenv.glob(f"3.{minor}.*/bin/python")))]
        works = next((one for one in there if one is not None and minor_of(one) == minor), None)
        if works is not None:
            found[minor] = works
    return found


def run(words: Iterable[str | Path], **options: object) -> subprocess.CompletedProcess[str]:
    """Runs a program without what is set for the packages of this one."""
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    env |= {"PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_NO_INPUT": "1"}
    given: dict[str, object] = {"env": env, "capture_output": True, "text": True, "check": False, **options}
    return subprocess.run([str(word) for word in words], **given)  # type: ignore[call-overload,no-any-return]


def must(words: Iterable[str | Path], **options: object) -> str:
    """Runs what must end well; what it said."""
    line = list(words)
    done = run(line, **options)
    if done.returncode != 0:
        sys.exit(f"release-check: {' '.join(map(str, line))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def last_line(text: str) -> str:
    """Why pip did not do it."""
    lines = [line for line in text.splitlines() if line.strip() and "notice" not in line]
    return lines[-1].strip() if lines else "it says nothing"


def tried(python: str, wheel: Path, numpy: str, folder: Path, *words: str) -> bool:
    """Runs the smoke test in an empty environment; false where this NumPy cannot be had for this Python."""
    shutil.rmtree(folder, ignore_errors=True)
    must([python, "-m", "venv", folder])
    inside = folder / "bin" / "python"
    # A NumPy that would have to be compiled is none that users have.
    done = run([inside, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", numpy])
    if done.returncode != 0:
        say(f"skipped: {numpy} for {python}: {last_line(done.stderr)}")
        return False
    must([inside, "-m", "pip", "install", "--quiet", "--no-deps", wheel])
    must([inside, "-m", "pip", "check"])
    say(must([inside, "-W", "error", SMOKE, *words], cwd=folder).strip())
    return True


def checked(files: list[Path], folder: Path) -> None:
    """The metadata, by twine where it can be installed."""
    shutil.rmtree(folder, ignore_errors=True)
    must([sys.executable, "-m", "venv", folder])
    done = run([folder / "bin" / "python", "-m", "pip", "install", "--quiet", "twine"])
    if done.returncode != 0:
        say(f"skipped: the metadata: no twine: {last_line(done.stderr)}")
        return
    must([folder / "bin" / "twine", "check", "--strict", *files])
    say(f"the metadata of {', '.join(file.name for file in files)} are as package indices take them")


def main() -> None:
    """Checks a wheel, and the sdist of this checkout."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--wheel", type=Path, required=True)
    parser.add_argument("--folder", type=Path, default=ROOT / "target" / "release-check")
    args = parser.parse_args()
    wheel, folder = args.wheel.resolve(), args.folder.resolve()
    version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
    if f"-{version.replace('-', '')}-" not in wheel.name:
        sys.exit(f"release-check: {wheel.name} is not of version {version}; make wheel builds one")
    here = pythons(os.environ.get("PATH", ""), Path.home() / ".pyenv" / "versions")
    for minor in range(FIRST, LAST + 1):
        say(f"Python 3.{minor}: {here[minor]}" if minor in here else f"skipped: Python 3.{minor}: there is none here")
    if not here:
        sys.exit("release-check: no Python to try it with")
    (folder / "dist").mkdir(parents=True, exist_ok=True)
    for old in (folder / "dist").iterdir():
        old.unlink()
    maturin = Path(sys.executable).parent / "maturin"
    must([maturin, "sdist", "--out", folder / "dist"], cwd=ROOT)
    (sdist,) = (folder / "dist").glob("*.tar.gz")
    checked([wheel, sdist], folder / "twine")
    worked = [
        tried(python, wheel, numpy, folder / f"python3.{minor}", "--command")
        for minor, python in here.items()
        for numpy in NUMPY
    ]
    if not any(worked):
        sys.exit("release-check: the wheel was tried nowhere")
    # Unoptimized, since it is built to see that all of it is there; and in a place of its own, since files of an sdist
    # are older than whatever was built of the checkout.
    place = folder / "cargo"
    shutil.rmtree(place, ignore_errors=True)
    path = f"{maturin.parent}:{os.environ.get('PATH', '')}"
    env = {**os.environ, "PATH": path, "CARGO_TARGET_DIR": str(place), "CARGO_INCREMENTAL": "0"}
    line = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-cache-dir"]
    line += ["--config-settings", "build-args=--profile dev", "--wheel-dir", str(folder / "built")]
    shutil.rmtree(folder / "built", ignore_errors=True)
    must([*line, sdist], env=env)
    shutil.rmtree(place, ignore_errors=True)
    (built,) = (folder / "built").glob("*.whl")
    newest = max(here)
    if not tried(here[newest], built, NUMPY[1], folder / "of-sdist"):
        sys.exit("release-check: the sdist was tried nowhere")
    say(f"{wheel.name} and {sdist.name} can go out")


if __name__ == "__main__":
    main()
