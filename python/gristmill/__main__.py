"""`python -m gristmill`: the commands that need Python. The `gristmill` command hands them over to here."""

import sys

from gristmill.command import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
