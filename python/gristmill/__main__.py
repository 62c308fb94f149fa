"""`python -m gristmill`: the gristmill command. Where a wheel has installed it, this process becomes it.

The command hands those that need Python back to here, and says so.
"""

import os
import sys
import sysconfig

#: What the command says when it hands words over.
HANDED_OVER = "GRISTMILL_HANDED_OVER"


def run() -> int:
    """Runs the words of this process; its exit code."""
    handed = os.environ.pop(HANDED_OVER, None)
    program = os.path.join(sysconfig.get_path("scripts"), "gristmill")
    if handed is None and os.access(program, os.X_OK):
        os.environ.setdefault("GRISTMILL_PYTHON", sys.executable)
        os.execv(program, [program, *sys.argv[1:]])
    from gristmill.command import main

    return main(sys.argv[1:])


if __name__ == "__main__":
    try:
        sys.exit(run())
    except KeyboardInterrupt:
        # Before a command had begun, nothing of it is left.
        sys.exit(130)
