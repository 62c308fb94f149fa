"""What the commands share: the options that all have, and numbers within bounds."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

#: The result for `--json`, and the text for people.
Told = tuple[dict[str, Any], str]

#: The commands or subcommands of a parser.
Verbs = Any


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
    parser.add_argument("--overwrite", action="store_true", help="replace what is there, when the new data are whole")
    parser.add_argument(
        "--dry-run", action="store_true", help="look and judge, say what would be written, write nothing"
    )
    parser.add_argument("--json", action="store_true", help="print one line of JSON on stdout")
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
