"""`python -m gristmill.command.stand_ins FOLDER FIELDS [SIDE PATH]...`: shards in the stead of what Python alone reads.

Not for people: `gristmill doctor` runs it. On stdout JSON says of which data sets they are; a failure is text on stderr
and the exit code 1, or 2 for wrong usage.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from gristmill.command.options import fields
from gristmill.errors import ConfigError, GristmillError
from gristmill.jobs.standing import stand_ins


def main(words: Sequence[str]) -> int:
    """Writes the shards; the exit code."""
    folder, names, *places = words
    sides = [(int(side), path) for side, path in zip(places[::2], places[1::2], strict=True)]
    try:
        made = stand_ins(sides, folder, fields(names) if names else None)
    except (ConfigError, argparse.ArgumentTypeError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except (GristmillError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    sys.stdout.write(json.dumps(made))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
