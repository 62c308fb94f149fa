"""The commands that need Python: words in, one command run, an exit code out.

Rules as for all commands: with `--json` one line of JSON on stdout and nothing else there; exit codes 0 (all is well),
1 (it failed), 2 (wrong usage, or a configuration that cannot run) and 3 (`pack`: done, but something was left out).
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn
from unicodedata import category

from gristmill.command import convert, generate, lczero, look, pack
from gristmill.errors import ConfigError, GristmillError
from gristmill.publish import newest

_CODES = "Exit codes: 0 all is well, 1 something failed, 2 wrong usage. "
_HANDED = "The gristmill command hands these commands over; it takes Python from --python PATH or GRISTMILL_PYTHON."


def main(words: Sequence[str]) -> int:
    """Runs the command that `words` name; its exit code. Usage and help end the process, as `argparse` does."""
    parser = argparse.ArgumentParser(
        prog="gristmill", description="The commands of gristmill that need Python.", epilog=_CODES + _HANDED
    )
    verbs = parser.add_subparsers(dest="verb", metavar="COMMAND", required=True)
    # The exit code of a command that did its work; it may set another.
    parser.set_defaults(code=0)
    convert.add_to(verbs)
    generate.add_to(verbs)
    lczero.add_to(verbs)
    look.add_to(verbs)
    pack.add_to(verbs)
    args = parser.parse_args(words)
    newest.clear()
    try:
        signal.signal(signal.SIGTERM, _stop)
        signal.signal(signal.SIGINT, _stop)
        result, text = args.run(args)
        sys.stdout.write((json.dumps(result) if args.json else _shown(text)) + "\n")
        sys.stdout.flush()
    except ConfigError as error:
        return _told(error, 2)
    except BrokenPipeError:
        # Nobody reads any more. What is left in the buffer must not be written when the process ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (GristmillError, OSError) as error:
        return _told(error, 1)
    except KeyboardInterrupt:
        return _told(f"stopped; {newest[0]} is complete" if newest else "stopped; the output is as it was", 1)
    # A check that found faults ran to its end, and failed.
    return args.code if result.get("ok", True) else 1


def _told(what: object, code: int) -> int:
    sys.stderr.write(f"gristmill: {_shown(str(what))}\n")
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
