"""Machines of a Ray cluster, all on this one. Ray gives each 30 seconds to start; one that took longer starts again."""

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

#: How often a machine starts before Ray's error ends the test.
TRIES = 6

Started = TypeVar("Started")


@contextlib.contextmanager
def machines_of_ray(num_cpus: int) -> Iterator[Any]:
    """A cluster of a head alone, with this many processors."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    made = _started(lambda: Cluster(initialize_head=True, head_node_args={"num_cpus": num_cpus}))
    try:
        yield made
    finally:
        made.shutdown()


def machine(cluster: Any, num_cpus: int = 1) -> Any:
    """Adds a machine to a cluster."""
    there = set(cluster.worker_nodes)

    def start() -> Any:
        for late in cluster.worker_nodes - there:
            cluster.remove_node(late, allow_graceful=False)
        return cluster.add_node(num_cpus=num_cpus)

    return _started(start)


def lose(cluster: Any) -> None:
    """Kills a machine of a cluster."""
    cluster.remove_node(cluster.worker_nodes.copy().pop(), allow_graceful=False)


def _started(start: Callable[[], Started]) -> Started:
    """Starts processes; where Ray does not wait for them any longer, ends them and starts others."""
    for left in reversed(range(TRIES)):
        before = _children()
        try:
            return start()
        except Exception as error:  # Ray raises no narrower one.
            if not left or "timed out" not in str(error).lower():
                raise
        for late in _children() - before:
            os.kill(late, signal.SIGKILL)
    raise AssertionError


def _children() -> set[int]:
    """The processes that this one started."""
    threads = Path("/proc/self/task").glob("*/children")
    return {int(child) for thread in threads for child in thread.read_text().split()}


@pytest.fixture(scope="module")
def machines() -> Iterator[Any]:
    """A cluster whose head runs no task."""
    with machines_of_ray(0) as made:
        yield made


@pytest.fixture
def cluster(machines: Any) -> Any:
    """A head that runs no task, and a machine of one processor, whatever an earlier test left."""
    while len(machines.worker_nodes) > 1:
        lose(machines)
    if not machines.worker_nodes:
        machine(machines)
    return machines
