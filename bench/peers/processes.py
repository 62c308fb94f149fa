"""What the processes of a tree take: CPU seconds, memory, and who of them lives. Reads /proc alone."""

import os
from pathlib import Path

_TICK = os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Fields of `/proc/PID/stat` after the name, of which the first is the state; empty where the process is gone."""
    try:
        return Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return []


def tree(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, list[int]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))):
            parents.setdefault(int(fields[1]), []).append(int(name))
    found = [root]
    for pid in found:
        found += parents.get(pid, [])
    return found


def living(pids: list[int]) -> list[int]:
    """Those that run, zombies left out."""
    return [pid for pid in pids if (fields := _stat(pid)) and fields[0] not in "ZX"]


def cpu_seconds(pids: list[int]) -> float:
    """User and system time of processes, and of children that they have waited for."""
    return sum(sum(map(int, fields[11:15])) for pid in pids if (fields := _stat(pid))) / _TICK


def memory(pids: list[int]) -> dict[str, int]:
    """Bytes of processes: `own` is anonymous and shared memory, `files` mapped files; shared pages count once.

    The kernel drops pages of files where memory is short, so `own` is what a loader costs.
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
