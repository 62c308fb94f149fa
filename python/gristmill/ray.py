"""Shares of a job as tasks of a Ray cluster: planned here, made there, committed here (`pip install gristmill[ray]`).

Ray decides which machine makes which share, and makes those again whose machine was lost. Games do not pass through it:
each task reads its files and writes its share itself, and gives back some numbers.
"""

from __future__ import annotations

import logging
import os
import re
import resource
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from gristmill.config import Path, PositionSamplingConfig
from gristmill.errors import ConfigError, GristmillError, SharesError
from gristmill.jobs import packing, sharing
from gristmill.options.arguments import named
from gristmill.options.optional import optional

_log = logging.getLogger("gristmill")

#: Bytes of inputs in each share, at least, where their number is not given; and for each input, since every task lists
#: all of them, which takes as long as packing 200 bytes. The most shares then.
_BYTES, _FOR_EACH, _MOST = 64 << 20, 1 << 10, 10_000

#: Tasks that Ray has at once, for each that the cluster can run at once: those that run, and what they take next.
_AHEAD = 2

#: Seconds after which the size of the cluster is read again.
_LOOK = 1.0

#: Seconds in which a cluster answers, and in which tasks that were cancelled end by themselves.
_PATIENCE = 10.0

#: At most this many shares are named in an error.
_NAMED = 20

#: Characters of an error, at most: what a task gives back is small.
_LONGEST = 2000


@dataclass(frozen=True)
class PackedOnRay:
    """What came of `pack`: how many shares there are, were there before, and were made by this call; and the pack.

    `seconds` are by the clock; `cpu_seconds` are those of the tasks and of the commit. `packed` is what `commit` gave.
    """

    output: str
    shares: int
    there: int
    made: int
    packed: packing.Packed | None
    dry_run: bool
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class _Made:
    """What a task gives back: whether the share was there already, or why it failed and on which machine."""

    there: bool = False
    cpu_seconds: float = 0.0
    why: str | None = None


@named
def pack(
    input: Path,  # noqa: A002  (as `gristmill.pack` has it)
    output: Path,
    *,
    shares: int | None = None,
    num_cpus: float = 1,
    address: str | None = None,
    layout: Literal["aligned48", "packed46"] | None = None,
    shard_rows: int | None = None,
    workers: int | None = None,
    on_error: Literal["skip", "quarantine", "raise"] = "skip",
    weigh: Iterable[PositionSamplingConfig] = (),
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> PackedOnRay:
    """Makes the pack that `gristmill.pack` makes, byte for byte, by a task of Ray for each share of the files.

        gristmill.ray.pack("games", "pack", shares=400)

    The same call makes the shares that are missing, and no other, after Ctrl-C, after a failure, and after this process
    was killed. `input` and the folder of `output` lie where every machine reaches them by the same path.

    Args:
        input: folder of games or demonstrations, as `gristmill.pack` takes it for shares.
        output: folder of the pack; the shares lie beside it meanwhile.
        shares: how many there are; by default as many as an earlier call began, else one for each 64 MiB, or fewer of
            many small files, all of which each task lists.
        num_cpus: processors that Ray reserves for each task: a whole number, or less than 1.
        address: of the cluster, as `ray.init` takes it; by default the one that this process is connected to, else what
            `ray.init` finds or starts.
        layout: as for `gristmill.pack`.
        shard_rows: as for `gristmill.pack`.
        workers: threads of each task; by default `num_cpus`. Never changes a byte.
        on_error: as for `gristmill.pack`.
        weigh: as for `gristmill.pack`.
        dry_run: see what would be made only; needs no cluster.
        progress: called with the number of shares that are done and of all, first with those that were there.

    Raises:
        ConfigError: options that do not fit each other or what is there: another plan, or a pack.
        SharesError: shares failed; all others are done, and nothing was committed.
        FormatError: a plan or share that is damaged, or no game at all.
        OSError: a file or folder; the cluster cannot be reached (`ConnectionError`).
        MissingPackageError: Ray is not installed.
        KeyboardInterrupt: Ctrl-C; the shares that are done stay.
    """
    began = time.monotonic()
    places = (_of_all(input), _of_all(output))
    given = {"layout": layout, "shard_rows": shard_rows}
    options: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    options |= {"on_error": on_error, "weigh": list(weigh)}
    threads = {"workers": max(1, int(_checked(num_cpus))) if workers is None else workers}
    number, missing = _planned(places, shares, {**options, **threads})
    there = number - len(missing)
    cpu, made, packed = 0.0, 0, None
    if not dry_run:
        if progress is not None:
            progress(there, number)
        if missing:
            failed: dict[str, str] = {}
            tasks = {"places": places, "of": number, "options": {**options, **threads}}
            with _connected(address) as (ray, waiting):
                for share, done in _tasks(ray, waiting, missing, tasks, num_cpus):
                    cpu += done.cpu_seconds
                    if done.why is not None:
                        failed[f"{share}/{number}"] = done.why
                        continue
                    made, there = made + (not done.there), there + done.there
                    if progress is not None:
                        progress(made + there, number)
            if failed:
                raise _failed(failed, number)
        packed = sharing.commit(places[1])
        cpu += packed.cpu_seconds
    return PackedOnRay(
        output=places[1],
        shares=number,
        there=there,
        made=made,
        packed=packed,
        dry_run=dry_run,
        seconds=time.monotonic() - began,
        cpu_seconds=cpu,
    )


def make_share(places: tuple[str, str], share: tuple[int, int], options: dict[str, Any]) -> _Made:
    """Makes a share, in a process of the cluster. An error of the data is a result: Ray repeats only lost tasks."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    try:
        made = packing.pack(*places, share=share, **options)
    except (GristmillError, OSError) as error:
        return _Made(why=f"{type(error).__name__} on {os.uname().nodename}: {error}"[:_LONGEST])
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return _Made(there=made.share is not None and made.share.there, cpu_seconds=cpu)


def _of_all(place: Path) -> str:
    """A place as all machines name it: processes of the cluster have other current folders."""
    text = os.fspath(place)
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text) else os.path.abspath(text)


def _checked(num_cpus: float) -> float:
    """The processors of a task, as Ray takes them.

    Raises:
        ConfigError: none, or a part of one beside whole ones.
    """
    if num_cpus > 0 and (num_cpus < 1 or num_cpus == int(num_cpus)):
        return num_cpus
    raise ConfigError(
        f"{num_cpus}: expected a whole number of processors, or more than 0 and less than 1", field="num_cpus"
    )


def _planned(places: tuple[str, str], shares: int | None, options: dict[str, Any]) -> tuple[int, list[int]]:
    """How many shares there are, and the numbers of those that are not done.

    Raises:
        ConfigError: what the engine would refuse in the tasks.
    """
    if shares is None:
        try:
            shares = sharing.shares(places[1]).plan["shares"]
        except ConfigError:
            whole = packing.pack(*places, share=(1, 1), dry_run=True, **options).share
            assert whole is not None
            shares = max(1, min(whole.inputs, -(-whole.bytes // max(_BYTES, _FOR_EACH * whole.inputs)), _MOST))
    packing.pack(*places, share=(1, shares), dry_run=True, **options)
    try:
        stand = sharing.shares(places[1]).shares
    except ConfigError:
        return shares, list(range(1, shares + 1))
    return shares, [number for number, share in enumerate(stand, 1) if share.state != "done"]


@contextmanager
def _connected(address: str | None) -> Iterator[tuple[Any, dict[Any, int]]]:
    """Ray, connected to a cluster: the one that the caller is connected to, which stays, or one for this time.

    Also the tasks that run, by reference, which is filled meanwhile: those that are left at the end are ended.

    Raises:
        ConfigError: the caller is connected, and gives an address.
        MissingPackageError: Ray is not installed.
        ConnectionError: there is no cluster at the address.
    """
    ray = optional("ray", "ray")
    if ray.is_initialized():
        if address is not None:
            raise ConfigError("this process is connected to a cluster; leave the address out", field="address")
        waiting: dict[Any, int] = {}
        try:
            yield ray, waiting
        finally:
            _cancel(ray, waiting)
        return
    if (place := re.fullmatch(r"\[?([^/\]]+)\]?:(\d+)", address or "")) is not None:
        # Ray tries for many minutes.
        try:
            socket.create_connection((place[1], int(place[2])), timeout=_PATIENCE).close()
        except (OSError, OverflowError) as error:
            raise ConnectionError(f"{address}: no Ray cluster answers there: {error}") from None
    # Ray puts its own handler, which knows nothing of the shares.
    is_main = threading.current_thread() is threading.main_thread()
    handler = signal.getsignal(signal.SIGTERM) if is_main else None
    try:
        ray.init(address=address, include_dashboard=False, log_to_driver=False, logging_level=logging.WARNING)
    finally:
        if is_main:
            signal.signal(signal.SIGTERM, handler)
    try:
        yield ray, {}
    finally:
        # Ray ends the tasks of a program that has gone. Cancelled ones can crash it, in 2.60, as they begin or end.
        ray.shutdown()


def _cancel(ray: Any, waiting: dict[Any, int]) -> None:
    """Cancels tasks, and waits until they have ended; by force where they do not end by themselves."""
    for force in (False, True):
        for task in reversed(waiting):
            ray.cancel(task, force=force)
        if waiting:
            _, left = ray.wait(list(waiting), num_returns=len(waiting), timeout=_PATIENCE)
            waiting = {task: waiting[task] for task in left}


def _tasks(
    ray: Any, waiting: dict[Any, int], missing: list[int], tasks: dict[str, Any], num_cpus: float
) -> Iterator[tuple[int, _Made]]:
    """Makes shares: each that is done, with what came of it. Ray has a few more tasks than it can run, never all."""
    if not any(node["Alive"] and node["Resources"].get("CPU", 0) >= num_cpus for node in ray.nodes()):
        _log.warning("no machine of the cluster has %g processors now; the tasks wait for one", num_cpus)
    make = ray.remote(make_share)
    numbers = iter(missing)
    while True:
        room = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 0) / num_cpus))
        while len(waiting) < room and (number := next(numbers, None)) is not None:
            name = f"gristmill pack {number}/{tasks['of']}"
            task = make.options(num_cpus=num_cpus, max_retries=-1, name=name)
            waiting[task.remote(tasks["places"], (number, tasks["of"]), tasks["options"])] = number
        if not waiting:
            return
        ready, _ = ray.wait(list(waiting), num_returns=1, timeout=_LOOK)
        for done in ready:
            number = waiting.pop(done)
            try:
                made = ray.get(done)
            except Exception as error:
                # Of Ray: it cannot start tasks there, or somebody cancelled this one.
                made = _Made(why=f"{type(error).__name__}: {error}"[:_LONGEST])
            yield number, made


def _failed(failed: dict[str, str], number: int) -> SharesError:
    """The error that names shares and why they failed."""
    said = [f"{share}: {why}" for share, why in list(failed.items())[:_NAMED]]
    said += [f"and {len(failed) - _NAMED} more"] if len(failed) > _NAMED else []
    what = f"{len(failed)} of {number} shares failed, {number - len(failed)} are done, and nothing was committed"
    return SharesError("\n".join([f"{what}; the same call makes those that failed:", *said]), failed=failed)
