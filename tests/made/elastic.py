"""A small training that is started again with other numbers of processes: `elastic.py LAUNCHER GAMES RUN UNTIL`.

It fits values to planes by least squares. Every process writes the rows that it had of each batch to RUN/rows, and
process 0 what it learned to RUN/learned. LAUNCHER is `jax` or `torch`. By `ELASTIC_DIES=RANK:BATCH` that process ends
there without a word.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import numpy.typing as npt

import gristmill as gm

Floats = npt.NDArray[np.float64]

#: Batches between two saves.
SAVED = 4


def config(games: Path) -> gm.DataLoaderConfig:
    """The stream that is shared."""
    return gm.presets.lc0(
        games,
        pool=24,
        reservoir=48,
        batch_size=24,
        seed=1,
        index="off",
        watch=False,
        lanes=4,
        tensors=["planes", "values", "ids"],
    )


def train(games: Path, run: Path, until: int, mean: Callable[[Floats], Floats], dies: str = "") -> None:
    """Trains up to a batch; `mean` gives the mean of an array over all processes; `RANK:BATCH` dies there."""
    loader = gm.resume(run / "loader", config(games))
    for folder in ("rows", "learned"):
        (run / folder).mkdir(exist_ok=True)
    weights = np.zeros(112)
    for batch in loader:
        if batch.number % SAVED == 0 and batch.number > 0:
            weights = np.load(run / "learned" / f"{batch.number}.npy")
        inputs = np.asarray(batch["planes"]).reshape(batch.rows, 112, -1).mean(2).astype(np.float64)
        errors = inputs @ weights - np.asarray(batch["values"]).reshape(batch.rows, -1)[:, 0]
        weights = weights - 0.01 * mean(inputs.T @ errors / batch.rows)
        done = batch.number + 1
        if dies == f"{loader.rank}:{done}":
            os._exit(9)
        name = f"{batch.number}.{loader.rank}.{loader.world_size}.npy"
        np.save(run / "rows" / name, np.asarray(batch["ids"]))
        if done % SAVED == 0:
            if loader.rank == 0:
                np.save(run / "learned" / f"{done}.npy", weights)
            loader.save(run / "loader")
            mean(np.zeros(1))  # Nobody goes on before all have saved.
        if done == until:
            break
    loader.stop()


def rows(run: Path, world_sizes: list[int]) -> list[npt.NDArray[np.void]]:
    """The rows of each batch, of all processes together, as the last of these numbers of processes had it."""
    found = []
    for number in range(10_000):
        for world_size in reversed(world_sizes):
            parts = [run / "rows" / f"{number}.{rank}.{world_size}.npy" for rank in range(world_size)]
            if all(part.exists() for part in parts):
                found.append(np.stack([np.load(part) for part in parts], 1).reshape(-1, *np.load(parts[0]).shape[1:]))
                break
        else:
            return found
    return found


def by_jax() -> Callable[[Floats], Floats]:
    """The group of JAX processes that variables of the environment describe."""
    import jax
    from jax.experimental import multihost_utils

    jax.config.update("jax_cpu_collectives_implementation", "gloo")  # type: ignore[no-untyped-call]
    jax.distributed.initialize(
        os.environ["ELASTIC_ADDRESS"], int(os.environ["ELASTIC_PROCESSES"]), int(os.environ["ELASTIC_PROCESS"])
    )
    return lambda array: np.asarray(multihost_utils.process_allgather(array)).reshape(-1, *array.shape).mean(0)


def by_torch() -> Callable[[Floats], Floats]:
    """The group that torchrun started."""
    import torch.distributed

    torch.distributed.init_process_group("gloo")
    return mean_of_torch


def mean_of_torch(array: Floats) -> Floats:
    """The mean over the group of torch that this process is in."""
    import torch
    import torch.distributed

    tensor = torch.from_numpy(array.copy())
    torch.distributed.all_reduce(tensor)
    mean: Floats = tensor.numpy() / torch.distributed.get_world_size()
    return mean


if __name__ == "__main__":
    launcher, games, run, until = sys.argv[1:]
    group = {"jax": by_jax, "torch": by_torch}[launcher]
    train(Path(games), Path(run), int(until), group(), os.environ.get("ELASTIC_DIES", ""))
