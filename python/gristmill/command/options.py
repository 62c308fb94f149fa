"""What the commands share: the options that all have, how wrong words are refused, and numbers within bounds."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn

from gristmill import stores

#: The result for `--json`, and the text for people.
Told = tuple[dict[str, Any], str]

#: The commands or subcommands of a parser.
Verbs = Any


class WrongWordsError(Exception):
    """Words that make no sense, and how they are used."""

    def __init__(self, message: str, usage: str) -> None:
        super().__init__(message)
        self.usage = usage


class Parser(argparse.ArgumentParser):
    """Refuses wrong words as the `gristmill` command does, and leaves it to the caller to say so."""

    def error(self, message: str) -> NoReturn:
        """Raises `WrongWordsError`."""
        raise WrongWordsError(message, self.format_usage().replace("usage:", "Usage:", 1))


def shared(parser: argparse.ArgumentParser) -> None:
    """Adds the options of every command."""
    every = parser.add_argument_group("options of every command")
    every.add_argument(
        "--json", action="store_true", help="print one line of JSON on stdout; for a failure, one with the reason"
    )
    loud = every.add_mutually_exclusive_group()
    loud.add_argument("-q", "--quiet", action="store_true", help="print only results, warnings and errors")
    loud.add_argument(
        "-v", "--verbose", action="store_true", help="print the time and memory that the command used, at the end"
    )
    threads = whole(1, 256)
    every.add_argument("-j", "--threads", metavar="N", type=threads, help="at most N threads; never changes a byte")
    every.add_argument("--workers", dest="threads", type=threads, default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    every.add_argument(
        "--color", choices=("auto", "always", "never"), default="auto", help="use colours [default: %(default)s]"
    )
    places = parser.add_argument_group("places that are URLs")
    places.add_argument("--endpoint", metavar="URL", help="ask the object store at this URL")
    places.add_argument("--anonymous", action="store_true", help="sign no request: for public buckets")
    places.add_argument("--cache", metavar="DIR", help="keep what is fetched of packs in this folder")
    places.add_argument("--cache-limit", metavar="N", type=_bytes, help="keep at most N bytes there, such as 500G")


def reach(words: argparse.Namespace) -> None:
    """Says how places that are URLs are reached, as the words do."""
    if words.endpoint is not None or words.anonymous:
        for scheme in ("s3://", "s3a://", "gs://", "az://", "abfs://", "abfss://"):
            stores.reach(scheme, endpoint=words.endpoint, anonymous=words.anonymous)
    stores.cache(words.cache, limit=words.cache_limit)


def _bytes(text: str) -> int:
    found = re.fullmatch(r"(\d+)([KMGT]?)", text.upper())
    if found is None:
        raise argparse.ArgumentTypeError("expected a number of bytes, such as 500000000, 500M or 2T")
    return int(found[1]) << 10 * (" KMGT".index(found[2]) if found[2] else 0)


def verb(verbs: Verbs, name: str, about: str, run: Callable[[argparse.Namespace], Told], examples: str) -> Any:
    """A parser of a command that writes, with `--overwrite`, `--dry-run` and `--json`."""
    parser = verbs.add_parser(
        name,
        help=about,
        description=about,
        epilog=examples,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "--overwrite", action="store_true", help="replace existing output once the new data are complete"
    )
    parser.add_argument("--dry-run", action="store_true", help="check, print what would be written, and write nothing")
    shared(parser)
    parser.set_defaults(run=run)
    return parser


def fields(text: str) -> dict[str, str]:
    """Pairs of a field and the name of its array: `obs=observations,acts=actions`."""
    pairs = [part.partition("=") for part in text.split(",")]
    found = {field.strip(): source.strip() for field, _, source in pairs}
    if len(found) < len(pairs) or not all(field and source for field, source in found.items()):
        raise argparse.ArgumentTypeError(f"{text!r}; expected FIELD=NAME,... such as obs=observations,acts=actions")
    return found


def takes_fields(parser: Any) -> None:
    """Adds `--fields`."""
    says = "of arrays of one's own (.npz, pickle, .npy, HDF5, Parquet): obs=observations,acts=actions"
    parser.add_argument("--fields", metavar="FIELD=NAME,...", type=fields, help=says)


def whole(least: int, most: int = 1 << 62) -> Callable[[str], int]:
    """A whole number within bounds."""

    def number(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{value} is not in {least}..{most}")
        return value

    number.__name__ = "number"
    return number
