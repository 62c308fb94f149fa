"""Which of several processes this one is: by its arguments, else as training frameworks and launchers say."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

from gristmill.errors import ConfigError

#: Variables that launchers set: rank and number of processes (torchrun, Open MPI, MPICH, Slurm steps).
_VARIABLES = (
    ("RANK", "WORLD_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("SLURM_PROCID", "SLURM_STEP_NUM_TASKS"),
)

#: Where torchrun was started by another launcher, which of its agents this process has, and how many there are.
_AGENT = ("GROUP_RANK", "GROUP_WORLD_SIZE")

#: What was said already.
_SAID: set[str] = set()


def find_rank(rank: int | None, world_size: int | None, configured: Mapping[str, Any] | None = None) -> tuple[int, int]:
    """Rank and number of processes: the one rule of all loaders.

    What arguments or a configuration give holds; else what `torch.distributed`, `jax.distributed` or Ray Train say
    where they were initialised, or the variables of torchrun, Open MPI, MPICH and Slurm, in this order; without any of
    them, 0 of 1. Who said it is logged once.

    Raises:
        ConfigError: one of both without the other, a rank out of range, or places that contradict each other.
    """
    for name, value in (("rank", rank), ("world_size", world_size)):
        other = (configured or {}).get(name)
        if None not in (value, other) and value != other:
            raise ConfigError(f"{name} is {value}, and {other} in the configuration", field=name)
    if configured is not None:
        rank = configured.get("rank") if rank is None else rank
        world_size = configured.get("world_size") if world_size is None else world_size
    if rank is not None and world_size is not None:
        return _checked(rank, world_size)
    said = dict(_detect())
    if len(set(said.values())) > 1:
        each = ", ".join(f"{who} says rank {r} of {n}" for who, (r, n) in said.items())
        raise ConfigError(f"{each}; give rank and world_size to say which holds", field="rank")
    who, found = next(iter(said.items()), ("nobody", None))
    if rank is None and world_size is None:
        return _checked(*_logged(who, found))
    given = f"rank {rank}" if world_size is None else f"world_size {world_size}"
    if found is None:
        raise ConfigError(f"{given} alone says too little; give both rank and world_size", field="rank")
    if found not in {(rank, found[1]), (found[0], world_size)}:
        raise ConfigError(f"{given}, but {who} says rank {found[0]} of {found[1]}; give both", field="rank")
    return _checked(*_logged(who, found))


def _checked(rank: int, world_size: int) -> tuple[int, int]:
    if not 0 <= rank < world_size:
        raise ConfigError(f"rank {rank} of {world_size}; ranks count from 0", field="rank")
    return rank, world_size


def _logged(who: str, found: tuple[int, int] | None) -> tuple[int, int]:
    if found is None:
        return 0, 1
    said = f"rank {found[0]} of {found[1]}: {who} says so"
    if said not in _SAID:
        _SAID.add(said)
        logging.getLogger("gristmill").info("%s", said)
    return found


def _detect() -> Iterator[tuple[str, tuple[int, int]]]:
    """Who says something, and what. Imports nothing: a framework that is not in use has nothing to say."""
    torch = sys.modules.get("torch.distributed")
    if torch is not None and torch.is_available() and torch.is_initialized():
        yield "torch.distributed", (torch.get_rank(), torch.get_world_size())
    jax = sys.modules.get("jax")
    distributed = getattr(jax, "distributed", None)
    if jax is not None and distributed is not None and getattr(distributed, "is_initialized", bool)():
        yield "jax.distributed", (jax.process_index(), jax.process_count())
    ray = sys.modules.get("ray.train")
    if ray is not None:
        try:
            context = ray.get_context()
        except RuntimeError:
            context = None  # Not in a worker of a training.
        if context is not None:
            yield "Ray Train", (context.get_world_rank(), context.get_world_size())
    agent = _variables(*_AGENT)
    for names in _VARIABLES:
        found = _variables(*names)
        # What starts one torchrun on each machine counts these, and not the processes that train.
        if found is not None and (found != agent or names == _VARIABLES[0]):
            yield " and ".join(names), found


def _variables(rank: str, size: str) -> tuple[int, int] | None:
    """What two variables of the environment say, where both are there.

    Raises:
        ConfigError: they are no numbers.
    """
    if rank not in os.environ or size not in os.environ:
        return None
    try:
        return int(os.environ[rank]), int(os.environ[size])
    except ValueError:
        text = f"{rank}={os.environ[rank]!r} and {size}={os.environ[size]!r} are no numbers"
        raise ConfigError(f"{text}; give rank and world_size", field="rank") from None
