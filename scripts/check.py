"""`make check`: checks what changed since a revision, and what has its name. `make test` checks everything.

Rust: formatting, lints, the laws of the architecture, the unit tests of changed modules and the changed test modules.
Python: lints, types, changed test modules and those named like changed modules.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
import tomllib
from collections import defaultdict
from pathlib import Path, PurePosixPath

ROOT = Path(__file__).parent.parent


def git(*words: str) -> list[str]:
    """The lines that git answers."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()


def changed(base: str) -> list[PurePosixPath]:
    """Files that differ from where this branch left `base`, committed or not, and still exist."""
    fork = git("merge-base", "HEAD", base)[0]
    names = git("diff", "--name-only", fork) + git("ls-files", "--others", "--exclude-standard")
    return [PurePosixPath(name) for name in sorted(set(names)) if (ROOT / name).is_file()]


def programs(crate: Path) -> dict[PurePosixPath, str]:
    """The folder of each test program of a crate, and its name; the crate's own `tests/` may be one."""
    listed = tomllib.loads((crate / "Cargo.toml").read_text()).get("test", [])
    return {PurePosixPath(test["path"]).parent: test["name"] for test in listed}


def rust_tests(files: list[PurePosixPath]) -> dict[tuple[str, ...], set[str]]:
    """Which modules of which test programs to run: arguments of cargo that choose a program -> names of modules."""
    chosen: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for file in files:
        if file.parts[0] != "crates" or file.suffix != ".rs":
            continue
        inside = PurePosixPath(*file.parts[2:])
        parts = inside.with_suffix("").parts
        if parts[0] == "src":
            module = "::".join(part for part in parts[1:] if part not in ("mod", "lib", "main"))
            what = ("--bin", "gristmill") if file.parts[1] == "gristmill-cli" else ("--lib",)
            if file.parts[1] != "gristmill-python":
                chosen[what].add(module)
            continue
        of = programs(ROOT / "crates" / file.parts[1])
        home = next((folder for folder in inside.parents if folder in of), None)
        if home is not None:
            module = inside.relative_to(home).with_suffix("").parts
            chosen[("--test", of[home])].add("::".join(part for part in module if part not in ("mod", "main")))
    return chosen


def python_tests(files: list[PurePosixPath]) -> list[str]:
    """Changed test modules, and those with the name of a changed module, or of its package and it."""
    found = set()
    for file in files:
        if file.parts[0] == "tests" and file.name.startswith("test_") and file.suffix == ".py":
            found.add(str(file))
        elif file.is_relative_to("python/gristmill") and file.suffix in (".py", ".pyi"):
            stem = file.parent.name if file.stem == "__init__" else file.stem.strip("_")
            # `test_loader_skip.py` is of `loader`, `test_envs_config.py` of `envs/config`; of `__init__` only its own.
            named = [f"test_{stem}.py"] if file.stem == "__init__" else [f"test_{stem}.py", f"test_{stem}_*.py"]
            named.append(f"test_{file.parent.name}_{stem}.py")
            found |= {str(test.relative_to(ROOT)) for name in named for test in (ROOT / "tests").glob(name)}
    return sorted(found)


def steps(files: list[PurePosixPath], cargo: str) -> list[tuple[str, list[str]]]:
    """What to run, each with its name."""
    found: list[tuple[str, list[str]]] = []
    rust = [file for file in files if file.suffix == ".rs" or file.name in ("Cargo.toml", "Cargo.lock")]
    python = [file for file in files if file.suffix in (".py", ".pyi") or file.name == "pyproject.toml"]
    if rust:
        found.append(("formatting", [cargo, "fmt", "--check"]))
        found.append(("lints", [cargo, "clippy", "--locked", "--workspace", "--", "-D", "warnings"]))
        for what, modules in sorted({("--test", "architecture"): {""}, **rust_tests(rust)}.items()):
            only = [] if "" in modules else sorted(modules)
            found.append((f"tests {what[-1]}", [cargo, "test", "--locked", *what, "--", "--quiet", *only]))
    if python:
        tools = ROOT / ".venv/bin"
        found.append(("python lints", [str(tools / "ruff"), "check"]))
        found.append(("python formatting", [str(tools / "ruff"), "format", "--check"]))
        found.append(("types", [str(tools / "mypy")]))
        if tests := python_tests(python):
            if rust:
                found.append(("package", ["make", "package"]))
            found.append(("python tests", [str(tools / "pytest"), "-q", *tests]))
    return found


def main() -> int:
    """Runs the steps, all of them, and says which failed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", default="main", help="the branch that the change is to go into (default: main)")
    parser.add_argument("--dry-run", action="store_true", help="print what would run")
    chosen = parser.parse_args()
    try:
        files = changed(chosen.base)
    except subprocess.CalledProcessError:
        print(f"check: git knows no common revision of HEAD and {chosen.base!r}: pass another --base", file=sys.stderr)
        return 2
    todo = steps(files, os.environ.get("CARGO", "cargo"))
    if not todo:
        print(f"check: {len(files)} changed files, none of them Rust or Python: nothing to check")
        return 0
    failed = []
    begun = time.monotonic()
    for name, line in todo:
        print(f"check: {name}: {' '.join(line)}", flush=True)
        if chosen.dry_run:
            continue
        start = time.monotonic()
        if subprocess.run(line, cwd=ROOT, check=False).returncode != 0:
            failed.append(name)
        print(f"check: {name}: {time.monotonic() - start:.1f} s{' FAILED' if name in failed else ''}", flush=True)
    if not chosen.dry_run:
        seconds = time.monotonic() - begun
        print(f"check: {len(files)} changed files, {seconds:.0f} s; failed: {', '.join(failed) or 'none'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
