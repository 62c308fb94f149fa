"""Two real processes of one JAX group on this machine, each with a program of its own text."""

import json
import os
import socket
import subprocess
import sys
from typing import Any


def two(program: str) -> list[list[Any]]:
    """What each of two processes prints, line by line, as JSON; lines of another kind are passed over.

    Each has the address of the group in `sys.argv[1]` and its number in `sys.argv[2]`, and five minutes to end well.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {key: value for key, value in os.environ.items() if key not in ("RANK", "WORLD_SIZE", "XLA_FLAGS")}
    runs = [
        subprocess.Popen(
            [sys.executable, "-c", program, address, str(rank)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for rank in range(2)
    ]
    said = [run.communicate(timeout=300) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    return [[json.loads(line) for line in out.splitlines() if line.startswith("[")] for out, _ in said]
