"""The commands that need Python: words in, one command run, an exit code out.

Rules as for all commands: with `--json` one line of JSON on stdout and nothing else there; exit codes 0 (all is well),
1 (it failed), 2 (wrong usage, or a configuration that cannot run), 3 (`pack`: done, but something was left out) and 130
(stopped by Ctrl-C or SIGTERM). A failure is a line on stderr, and with `--json` a document on stdout that says why.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any, NoReturn
from unicodedata import category

from gristmill.command import convert, describe, generate, lczero, look, pack, ray
from gristmill.command.options import Parser, WrongWordsError, reach
from gristmill.errors import ConfigError, GristmillError
from gristmill.jobs.publish import newest

_HEADLINE = "Game records in, shuffled training batches out: fast, reproducible, resumable."
_CODES = "Exit codes: 0 all is well, 1 something failed, 2 wrong usage, 130 stopped by Ctrl-C. "
_HANDED = "The gristmill command hands these commands over; it takes Python from --python PATH or GRISTMILL_PYTHON."


def parser() -> Parser:
    """All commands, with their options."""
    found = Parser(prog="gristmill", description=_HEADLINE, epilog=_CODES + _HANDED)
    verbs = found.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    # The exit code of a command that did its work; it may set another.
    found.set_defaults(code=0)
    convert.add_to(verbs)
    describe.add_to(verbs)
    generate.add_to(verbs)
    lczero.add_to(verbs)
    look.add_to(verbs)
    pack.add_to(verbs)
    ray.add_to(verbs)
    return found


def main(words: Sequence[str]) -> int:
    """Runs the command that `words` name; its exit code. Help ends the process, as `argparse` does."""
    began = time.monotonic()
    glance = list(words)[: list(words).index("--")] if "--" in words else list(words)
    as_json = "--json" in glance
    try:
        args = parser().parse_args(words)
    except WrongWordsError as wrong:
        return _failed(wrong, "usage", 2, as_json, after=f"\n{wrong.usage}\nFor more information, try '--help'.\n")
    args.chatty = not (args.json or args.quiet)
    newest.clear()
    try:
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, _stop)
        reach(args)
        result, text = args.run(args)
        sys.stdout.write((json.dumps(result) if args.json else _shown(text)) + "\n")
        sys.stdout.flush()
    except ConfigError as error:
        return _failed(error, "usage", 2, as_json, args.color)
    except BrokenPipeError:
        # The reader has gone. What is left in the buffer must not be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (GristmillError, OSError) as error:
        return _failed(error, "failed", 1, as_json, args.color)
    except KeyboardInterrupt:
        left = f"{newest[0]} is complete" if newest else "the output is as it was"
        return _failed(f"stopped; {left}", "stopped", 130, as_json, args.color)
    finally:
        if args.verbose:
            used = resource.getrusage(resource.RUSAGE_SELF)
            spent = f"{time.monotonic() - began:.2f} s, {used.ru_utime + used.ru_stime:.2f} s of processor time"
            sys.stderr.write(f"gristmill: {spent}, {used.ru_maxrss >> 10} MiB at most\n")
    # A check that found faults ran to its end, and failed.
    return args.code if result.get("ok", True) else 1


def _failed(what: object, kind: str, code: int, as_json: bool, color: str = "auto", after: str = "") -> int:
    """Says why a command did not end well, as all commands do; its exit code."""
    message = str(what)
    colored = color == "always" or (color == "auto" and sys.stderr.isatty() and not os.environ.get("NO_COLOR"))
    name = "\x1b[1;31mgristmill:\x1b[0m" if colored else "gristmill:"
    sys.stderr.write(f"{name} {_shown(message)}\n{after}")
    if as_json:
        error = {"kind": kind, "exit_code": code, "message": message}
        sys.stdout.write(json.dumps({"ok": False, "error": error}) + "\n")
        sys.stdout.flush()
    return code


def _shown(text: str) -> str:
    """Text whose control characters, but for the ends of lines, are escapes: names in it command no terminal."""
    plain = (c if c == "\n" or category(c) != "Cc" else c.encode("unicode_escape").decode() for c in text)
    return "".join(plain)


def _stop(*_: Any) -> NoReturn:
    # What is being removed now is removed to the end.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt
