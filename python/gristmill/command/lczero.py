"""`install-lczero`: the loader under the name of the module that the Lc0 trainer compiles, in one environment."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from gristmill import _gristmill
from gristmill.command.options import Told, Verbs, shared
from gristmill.compat import lczero_name
from gristmill.errors import ConfigError, GristmillError

_ABOUT = "Let the programs of the Lc0 trainer in an environment run on this loader, unchanged; or take that back."
_EXAMPLES = """\
examples:
  gristmill install-lczero .venv --dry-run
  gristmill install-lczero .venv
  gristmill install-lczero .venv --undo

Two small files are put beside the packages of the environment; nothing of the trainer is touched. An import of
`lczero_training._lczero_training` there then gives `gristmill.compat.lczero`. Gristmill must be installed there,
too. Other options of the loader, such as seed and journal, stand in the file that GRISTMILL_OVERLAY names."""

#: The file that Python runs at its start, and what it runs. The name sorts after those of editable installs.
_HOOK, _MODULE = "zz-gristmill-lczero.pth", "_gristmill_lczero.py"

#: A question to the environment's own Python.
_QUESTION = """
import importlib.util, json, sys, sysconfig
found = lambda name: importlib.util.find_spec(name) is not None
print(json.dumps({"folder": sysconfig.get_path("purelib"), "prefix": sys.prefix, "version": sys.version.split()[0],
                  "gristmill": found("gristmill"), "lczero_training": found("lczero_training")}))
"""


def add_to(verbs: Verbs) -> None:
    """Adds `install-lczero`."""
    parser = verbs.add_parser(
        "install-lczero",
        help=_ABOUT,
        description=_ABOUT,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("venv", metavar="VENV", help="the folder of a virtual environment")
    parser.add_argument("--undo", action="store_true", help="remove what an earlier run put there")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written or removed, change nothing")
    shared(parser)
    parser.set_defaults(run=_run)


def _run(args: argparse.Namespace) -> Told:
    venv = Path(args.venv)
    asked = _ask(venv)
    files = dict(_files(Path(asked["folder"])))
    foreign = [path for path in files if _is_foreign(path)]
    if foreign:
        raise GristmillError(f"{foreign[0]} is not ours; move it away, then run this again")
    there = [path for path in files if path.exists()]
    if args.undo:
        changed = there[::-1]
        if not args.dry_run:
            for path in changed:
                path.unlink()
    else:
        if not asked["gristmill"]:
            raise GristmillError(f"gristmill is not installed in {venv}: {_python(venv)} -m pip install gristmill")
        changed = [path for path, text in files.items() if path not in there or path.read_text("utf-8") != text]
        if not args.dry_run:
            for path in changed:
                _gristmill.write_whole(path, files[path].encode())
    key = "removed" if args.undo else "written"
    result = {
        key: [str(path) for path in changed],
        "dry_run": args.dry_run,
        "python": asked["version"],
        "trainer": asked["lczero_training"],
    }
    return result, "\n".join(_said(args, result, venv))


def _said(args: argparse.Namespace, result: dict[str, Any], venv: Path) -> Iterator[str]:
    changed: list[str] = result["removed" if args.undo else "written"]
    verb = ("would be " if args.dry_run else "") + ("removed" if args.undo else "written")
    yield from (f"{path} {verb}" for path in changed)
    if args.undo:
        yield from () if changed else ("nothing is installed there",)
        return
    if not changed:
        yield "it is installed already"
    if not result["trainer"]:
        yield f"note: {venv} has no package lczero_training yet"
    yield f"{lczero_name.THEIRS} {'would be' if args.dry_run else 'is'} {lczero_name.OURS} there"


def _python(venv: Path) -> Path:
    """The interpreter of an environment."""
    for place in (venv / "bin" / "python", venv / "Scripts" / "python.exe"):
        if place.exists():
            return place
    raise ConfigError(f"{venv} is no virtual environment: it has no bin/python; make one by: python -m venv {venv}")


def _ask(venv: Path) -> dict[str, Any]:
    """What the environment says of itself, without what is set for this process."""
    python = _python(venv)
    env = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run([python, "-c", _QUESTION], capture_output=True, text=True, env=env, check=False)
    if done.returncode != 0:
        last = done.stderr.strip().splitlines()[-1:] or ["it says nothing"]
        raise GristmillError(f"{python} does not run: {last[0]}")
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    if not (Path(said["prefix"]) / "pyvenv.cfg").exists():
        raise ConfigError(f"{venv} is no virtual environment: it has no pyvenv.cfg; make one by: python -m venv {venv}")
    return said


def _files(folder: Path) -> Iterator[tuple[Path, str]]:
    """What stands in which file: the module first, so that the hook never runs without it."""
    yield folder / _MODULE, Path(lczero_name.__file__).read_text("utf-8")
    yield folder / _HOOK, f"import {_MODULE.removesuffix('.py')}\n"


def _is_foreign(path: Path) -> bool:
    """Whether a file of this name is not ours."""
    try:
        return "gristmill" not in path.read_text("utf-8", errors="replace")
    except FileNotFoundError:
        return False
