"""Measures the processes of a tree by /proc: CPU seconds, memory, and which of them live."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Returns the fields of `/proc/PID/stat` after the name, first the state. Returns `[]` if the process is gone."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def tree(root: int) -> list[int]:
    """Returns the process `root` and all its descendants."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            parents.setdefault(int(fields[1]), []).append(int(name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def living(pids: list[int]) -> list[int]:
    """Returns the processes that live. Zombies do not count."""
    return [pid for pid in pids if (fields := _stat(pid)) and fields[0] not in "ZX"]


def cpu_seconds(pids: list[int]) -> float:
    """Returns the user and system time of the processes and of children that they have waited for, in seconds."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _stat(pid))) / _TICK


def memory(pids: list[int]) -> dict[str, int]:
    """Returns bytes of memory: `own` is anonymous and shared memory, `files` is mapped files. Shared pages count once.

    The kernel drops pages of files if memory is short. So `own` is the memory that a loader costs.
    """
    own = files = 0
    for pid in pids:
        try:
            lines = Path("/proc", str(pid), "smaps_rollup").read_text().splitlines()[1:]
        except OSError:
            continue
        kilobytes = {line.split(":")[0]: int(line.split()[1]) for line in lines}
        own += kilobytes.get("Pss_Anon", 0) + kilobytes.get("Pss_Shmem", 0)
        files += kilobytes.get("Pss_File", 0)
    return {"own": own * 1024, "files": files * 1024}
