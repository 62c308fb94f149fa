"""What holds for every command that needs Python: shared options, failures as documents, exit codes, old spellings."""

import argparse
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from demo_files import write_dm_control
from test_command import run, told

from gristmill.command import parser


def leaves(found: argparse.ArgumentParser, name: str = "gristmill") -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """Every command that runs something, with the words that lead to it."""
    below = [action for action in found._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield name, found
    for word, sub in (pair for action in below for pair in action.choices.items()):
        yield from leaves(sub, f"{name} {word}")


def test_every_command_has_the_shared_options() -> None:
    commands = dict(leaves(parser()))
    assert len(commands) == 17
    for name, command in commands.items():
        options = {option for action in command._actions for option in action.option_strings}
        assert {"--json", "-q", "--quiet", "-v", "--verbose", "-j", "--threads", "--workers", "--color"} <= options, (
            name
        )
        reads = name.split()[1] in ("inspect", "verify", "stats")
        assert ("--dry-run" in options) != reads, name
        text = command.format_help()
        assert "--workers" not in text, name
        assert "--input" not in text, name
        assert name in text.partition("examples:")[2], name


@pytest.mark.parametrize(
    ("words", "code", "kind"),
    [
        (["mill"], 2, "usage"),
        (["pack", "a"], 2, "usage"),
        (["convert", "a"], 2, "usage"),
        (["convert", "a", "b", "--to", "parquet", "--overwrit"], 2, "usage"),
        (["inspect", "/no/such/place"], 1, "failed"),
        (["convert", "/no/such/place", "x.tar"], 2, "usage"),
        (["convert", "/no/such/place", "x-v0", "--to", "minari-arrow"], 1, "failed"),
        (["describe", "/no/such/place"], 1, "failed"),
        (["describe", ".", "--published", "yesterday"], 2, "usage"),
        (["install-lczero", "/no/such/place"], 2, "usage"),
        (["ray", "pack", "a"], 2, "usage"),
        (["ray", "pack", "/no/such/place", "x", "--dry-run"], 1, "failed"),
    ],
)
def test_failures_are_documents(words: list[str], code: int, kind: str, tmp_path: Path) -> None:
    done = run(*words, "--json", code=code)
    told = json.loads(done.stdout)
    assert (done.stdout.count("\n"), told["ok"]) == (1, False)
    assert (told["error"]["kind"], told["error"]["exit_code"]) == (kind, code)
    assert done.stderr.startswith("gristmill: " + told["error"]["message"].split("\n")[0])
    assert "error:" not in done.stderr
    assert run(*words, code=code).stdout == ""


def test_quiet_verbose_colour_and_old_spellings(tmp_path: Path) -> None:
    write_dm_control(tmp_path / "spin-1.pkl.gz", [7, 1, 5])
    minari, pack = tmp_path / "spin-v0", tmp_path / "pack"
    run("convert", tmp_path / "spin-1.pkl.gz", minari, "--to", "minari-hdf5")
    assert run("inspect", minari, "-q").stderr == ""
    assert "s of processor time" in run("inspect", minari, "--verbose").stderr
    assert run("inspect", "/no/such", "--color=always", code=1).stderr.startswith("\x1b[1;31mgristmill:\x1b[0m ")
    assert told("pack", minari, pack, "--dry-run", "--workers", "1")["runs"] == 3
    assert told("pack", "--input", minari, "--output", pack, "-j", 1)["runs"] == 3
    wrong: list[list[object]] = [[minari], [minari, pack, pack], ["--input", minari]]
    for words in wrong:
        assert "gristmill pack IN OUT" in run("pack", *words, code=2).stderr


def test_ctrl_c_ends_with_130(tmp_path: Path) -> None:
    words = ["generate", "random", "--env", "CartPole-v1", "--in-process", "--n-timesteps-min", str(10**9), "--json"]
    line = [sys.executable, "-m", "gristmill", *words, str(tmp_path / "out")]
    child = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stderr is not None
    assert child.stderr.readline().startswith("seed "), "it is at work"
    os.kill(child.pid, signal.SIGINT)
    out, said = child.communicate()
    assert child.returncode == 130, said
    assert json.loads(out)["error"]["kind"] == "stopped"
    assert "Traceback" not in said
    assert "gristmill: stopped; " in said
