"""Shares of a job as tasks of a Ray cluster: planned here, made there, committed here.

Ray decides which machine makes which share, and makes those again whose machine was lost. No data passes through it:
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
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from gristmill.config import Path
from gristmill.errors import ConfigError, GristmillError, SharesError
from gristmill.g2048 import fit_tokenizer
from gristmill.jobs import converting, looking, packing, rewriting, sharing
from gristmill.jobs.part import OneOf, Share
from gristmill.options.optional import optional
from gristmill.packs.packed import DuplicatesShare, MarkShare
from gristmill.packs.rows import Rows
from gristmill.packs.selection import Selection
from gristmill.packs.source import open as open_pack

_log = logging.getLogger("gristmill")

#: Bytes of inputs in each share, at least, where their number is not given; and for each input, since every task lists
#: all of them, which takes as long as packing 200 bytes. The most shares then.
_BYTES, _FOR_EACH, _MOST = 64 << 20, 1 << 10, 10_000

#: How many tasks Ray gets for each one that the cluster runs at once: the next ones wait there already.
_AHEAD = 2

#: Seconds after which the size of the cluster is read again.
_LOOK = 1.0

#: Seconds in which a cluster answers, and in which tasks that were cancelled end by themselves.
_PATIENCE = 10.0

#: At most this many shares are named in an error.
_NAMED = 20

#: Characters of an error, at most: what a task gives back is small.
_LONGEST = 2000


Result = TypeVar("Result")


class _WithShare(Protocol):
    """What a job says of one of its shares."""

    @property
    def share(self) -> Share | None: ...


def _report(of: Callable[..., _WithShare]) -> Callable[..., _WithShare]:
    """A job that makes a report, by input and output as the others have them."""
    return lambda source, output, **options: of(source, output=output, **options)


def _pack(place: str) -> Selection:
    """The pack in a folder.

    Raises:
        ConfigError: what lies there is no pack.
    """
    pack = open_pack(place)
    if not isinstance(pack, Selection):
        raise ConfigError(f"{place}: expected a pack, which `gristmill pack` makes", field="input")
    return pack


def _dedup(source: str, output: str, **options: Any) -> DuplicatesShare:
    """A share of the search for games of a pack that are the same."""
    return _pack(source).duplicates(output=output, **options)


def _mark(source: str, _: str, *, name: str, rule: str, workers: int | None, share: OneOf, dry_run: bool) -> MarkShare:
    """A share of a mark of a pack, in which it is made."""
    return _pack(source).mark(name, rule, workers=workers, share=share, dry_run=dry_run)


def _tokenizer(source: str, output: str, *, where: str | None, threads: int, **options: Any) -> _WithShare:
    """Makes a share of a fit. A fit has one thread, whatever `threads` says."""
    rows = open_pack(source, expect=Rows)
    made: _WithShare = fit_tokenizer(rows if where is None else rows.where(where), output, **options)
    return made


def _convert(source: str, output: str, *, threads: int, **options: Any) -> _WithShare:
    """Makes a share of a conversion. That of demonstrations has one thread, whatever `threads` says."""
    if options["files_per_shard"] is None:
        options["threads"] = threads
    made: _WithShare = converting.convert(source, output, **options)
    return made


#: The jobs that can be made by shares: the function of each, which takes `share=` and `dry_run=`.
JOBS: dict[str, Callable[..., _WithShare]] = {
    "pack": packing.pack,
    "verify": _report(looking.verify),
    "stats": _report(looking.stats),
    "rescore": rewriting.rescore,
    "filter": rewriting.filter,
    "convert": _convert,
    "split": rewriting.split,
    "dedup": _dedup,
    "mark": _mark,
    "fit_tokenizer": _tokenizer,
}


#: What jobs call their option of threads, where it is not `threads`.
_THREADS = dict.fromkeys(("pack", "verify", "stats", "dedup", "mark"), "workers")


@dataclass(frozen=True)
class OnRay(Generic[Result]):
    """What came of a job: how many shares there are, were there before, and were made by this call; and its result.

    `seconds` are by the clock; `cpu_seconds` are those of the tasks and of the commit. `result` is what the job gives
    where one process does it, and none in a dry run.
    """

    output: str
    shares: int
    there: int
    made: int
    result: Result | None
    dry_run: bool
    seconds: float
    cpu_seconds: float


@dataclass(frozen=True)
class Cluster:
    """Where shares are made: how many, the address of the cluster, and processors and threads for each task."""

    shares: int | None
    num_cpus: float
    address: str | None
    threads: int | None


@dataclass(frozen=True)
class _Made:
    """What a task gives back: whether the share was there already, or why it failed and on which machine."""

    there: bool = False
    cpu_seconds: float = 0.0
    why: str | None = None


def by_shares(
    job: str,
    places: tuple[Path, Path],
    options: dict[str, Any],
    cluster: Cluster,
    dry_run: bool,
    progress: Callable[[int, int], object] | None,
) -> OnRay[Any]:
    """Makes all shares of a job that are missing, and commits them.

    Args:
        job: its name in `JOBS`.
        places: input and output.
        options: its other options, which go to each task.
        cluster: where shares are made.
        dry_run: see what would be made only; needs no cluster.
        progress: called with the number of shares that are done and of all, first with those that were there.

    Raises:
        ConfigError: options that do not fit each other or what is there.
        SharesError: shares failed; all others are done, and nothing was committed.
        OSError: a file or folder; the cluster cannot be reached (`ConnectionError`).
        MissingPackageError: Ray is not installed.
    """
    began = time.monotonic()
    _check(cluster.num_cpus)
    threads = max(1, int(cluster.num_cpus)) if cluster.threads is None else cluster.threads
    source, output = of_all(places[0]), of_all(places[1])
    task = _Task(job, (source, output), {**options, _THREADS.get(job, "threads"): threads})
    number, missing = _planned(task, cluster.shares)
    there = number - len(missing)
    cpu, made, result = 0.0, 0, None
    if not dry_run:
        if progress is not None:
            progress(there, number)
        if missing:
            failed: dict[str, str] = {}
            with _connected(cluster.address) as (ray, waiting):
                for share, done in _tasks(ray, waiting, (missing, number), task, cluster.num_cpus):
                    cpu += done.cpu_seconds
                    if done.why is not None:
                        failed[f"{share}/{number}"] = done.why
                        continue
                    made, there = made + (not done.there), there + done.there
                    if progress is not None:
                        progress(made + there, number)
            if failed:
                raise _failed(failed, number)
        before = _cpu_seconds()
        result = sharing.commit(output)
        cpu += _cpu_seconds() - before
    return OnRay(
        output=output,
        shares=number,
        there=there,
        made=made,
        result=result,
        dry_run=dry_run,
        seconds=time.monotonic() - began,
        cpu_seconds=cpu,
    )


@dataclass(frozen=True)
class _Task:
    """What all tasks of a job have in common."""

    job: str
    places: tuple[str, str]
    options: dict[str, Any]

    def share(self, number: int, of: int, *, dry_run: bool = False) -> Share:
        """Makes a share, or plans it in a dry run."""
        made = JOBS[self.job](*self.places, share=(number, of), dry_run=dry_run, **self.options).share
        assert made is not None
        return made


def make_share(task: _Task, number: int, of: int) -> _Made:
    """Makes a share, in a process of the cluster. An error of the data is a result: Ray repeats only lost tasks."""
    before = _cpu_seconds()
    try:
        made = task.share(number, of)
    except (GristmillError, OSError) as error:
        return _Made(why=f"{type(error).__name__} on {os.uname().nodename}: {error}"[:_LONGEST])
    return _Made(there=made.there, cpu_seconds=_cpu_seconds() - before)


def _cpu_seconds() -> float:
    """Processor time of this process so far."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _planned(task: _Task, shares: int | None) -> tuple[int, list[int]]:
    """How many shares there are, and the numbers of those that are not done.

    Raises:
        ConfigError: what the engine would refuse in the tasks.
    """
    output = task.places[1]
    if shares is None:
        try:
            shares = int(sharing.shares(output).plan["shares"])
        except ConfigError:
            whole = task.share(1, 1, dry_run=True)
            shares = max(1, min(whole.inputs, -(-whole.bytes // max(_BYTES, _FOR_EACH * whole.inputs)), _MOST))
    task.share(1, shares, dry_run=True)
    try:
        stand = sharing.shares(output).shares
    except ConfigError:
        return shares, list(range(1, shares + 1))
    return shares, [number for number, share in enumerate(stand, 1) if share.state != "done"]


def of_all(place: Path) -> str:
    """A place as all machines name it: processes of the cluster have other current folders."""
    text = os.fspath(place)
    return text if re.match(r"[A-Za-z][A-Za-z0-9+.-]+:", text) else os.path.abspath(text)


def _check(num_cpus: float) -> None:
    """Refuses processors of a task that Ray does not take.

    Raises:
        ConfigError: none, or a part of one beside whole ones.
    """
    if num_cpus > 0 and (num_cpus < 1 or num_cpus == int(num_cpus)):
        return
    raise ConfigError(
        f"{num_cpus}: expected a whole number of processors, or more than 0 and less than 1", field="num_cpus"
    )


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
    ray: Any, waiting: dict[Any, int], missing: tuple[list[int], int], what: _Task, num_cpus: float
) -> Iterator[tuple[int, _Made]]:
    """Makes shares, of how many there are: each that is done, with what came of it.

    Ray has a few more tasks than it can run, never all.
    """
    if not any(node["Alive"] and node["Resources"].get("CPU", 0) >= num_cpus for node in ray.nodes()):
        _log.warning("no machine of the cluster has %g processors now; the tasks wait for one", num_cpus)
    make = ray.remote(make_share)
    numbers, of = iter(missing[0]), missing[1]
    while True:
        room = _AHEAD * max(1, int(ray.cluster_resources().get("CPU", 0) / num_cpus))
        while len(waiting) < room and (number := next(numbers, None)) is not None:
            name = f"gristmill {what.job} {number}/{of}"
            task = make.options(num_cpus=num_cpus, max_retries=-1, name=name)
            waiting[task.remote(what, number, of)] = number
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
