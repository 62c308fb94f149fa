"""Which of several processes this one is: as it is told, else as a framework that is set up or the launcher says."""

from __future__ import annotations

import os
import sys

from gristmill.errors import ConfigError


def find_rank(rank: int | None, world_size: int | None) -> tuple[int, int]:
    """Rank and number of processes.

    What is given stands. Else what `torch.distributed` or `jax.distributed` say where they were initialised, and the
    variables `RANK` and `WORLD_SIZE` where a launcher has set them; without any of them, 0 of 1. No framework is
    imported.

    Raises:
        ConfigError: one of both without the other, a rank out of range, or places that contradict each other.
    """
    if rank is None and world_size is None:
        rank, world_size = _told()
    elif rank is None or world_size is None:
        given, missing = ("rank", "world_size") if world_size is None else ("world_size", "rank")
        if (rank, world_size) not in ((0, None), (None, 1)):
            raise ConfigError(f"`{given}` is given without `{missing}`; give both, or none", field=missing)
        rank, world_size = 0, 1
    if world_size < 1 or not 0 <= rank < world_size:
        raise ConfigError(f"rank {rank} of {world_size}; ranks count from 0", field="rank")
    return rank, world_size


def _told() -> tuple[int, int]:
    told = {name: found for name, found in (_of_torch(), _of_jax(), _of_launcher()) if found is not None}
    if len(set(told.values())) > 1:
        all_of_them = ", ".join(f"{name} says {rank} of {size}" for name, (rank, size) in told.items())
        raise ConfigError(f"which rank this is stands in several ways: {all_of_them}; give `rank`", field="rank")
    return next(iter(told.values()), (0, 1))


def _of_torch() -> tuple[str, tuple[int, int] | None]:
    name = "torch.distributed"
    module = sys.modules.get(name)
    if module is None or not module.is_available() or not module.is_initialized():
        return name, None
    return name, (int(module.get_rank()), int(module.get_world_size()))


def _of_jax() -> tuple[str, tuple[int, int] | None]:
    name = "jax.distributed"
    jax = sys.modules.get("jax")
    initialised = getattr(getattr(jax, "distributed", None), "is_initialized", None)
    if jax is None or initialised is None or not initialised():
        return name, None
    return name, (int(jax.process_index()), int(jax.process_count()))


def _of_launcher() -> tuple[str, tuple[int, int] | None]:
    name = "the environment (RANK, WORLD_SIZE)"
    texts = {key: os.environ.get(key) for key in ("RANK", "WORLD_SIZE")}
    if None in texts.values():
        # Either alone is used for other things too.
        return name, None
    try:
        rank, size = (int(text or "") for text in texts.values())
    except ValueError:
        raise ConfigError(
            f"the environment has {texts}; expected whole numbers, or give `rank`", field="rank"
        ) from None
    return name, (rank, size)
