"""SPDL: a pipeline on threads. It gathers batches of a mapped array, or reads members of tar shards."""

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from spdl.pipeline import PipelineBuilder

from loaders.records import named, shuffled, stored

#: Number of steps in the shuffle buffer.
BUFFER = 1000


def batches(work: str, data: Path, folder: Path, batch: int, threads: int) -> Iterator[Any]:
    """Yields batches of a pipeline whose sink holds four batches."""
    if work in ("rows", "steps"):
        rows = stored(data)
        builder = PipelineBuilder().add_source(shuffled(len(rows), batch))
        builder = builder.pipe(lambda numbers: named(work, np.take(rows, numbers, axis=0)), concurrency=threads)
    else:
        builder = PipelineBuilder().add_source(paths(data / "shards")).pipe(steps, concurrency=threads)
        builder = builder.disaggregate().aggregate(BUFFER).pipe(mixed).disaggregate().aggregate(batch).pipe(stacked)
    pipeline = builder.add_sink(4).build(num_threads=threads)
    with pipeline.auto_stop():
        yield from pipeline


def paths(folder: Path) -> Iterator[Any]:
    """Yields the paths of shards for ever, in a new random order in each pass."""
    found, rng = sorted(folder.iterdir()), np.random.default_rng(1)
    while True:
        yield from (found[i] for i in rng.permutation(len(found)))


def steps(path: Path) -> list[dict[str, Any]]:
    """Returns the steps of a shard."""
    found: list[dict[str, Any]] = []
    with tarfile.open(path, "r|*") as tar:
        for member in tar:
            name = member.name.rsplit("/", 1)[-1].split(".", 1)[-1]
            if name not in ("obs.npy", "acts.npy"):
                continue
            file = tar.extractfile(member)
            assert file is not None
            if not found or name[:-4] in found[-1]:
                found.append({})
            found[-1][name[:-4]] = np.load(io.BytesIO(file.read()))
    return found


def mixed(found: list[Any]) -> list[Any]:
    """Returns the steps of a buffer in a random order."""
    return [found[i] for i in np.random.default_rng().permutation(len(found))]


def stacked(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns a batch of steps."""
    return {name: np.stack([step[name] for step in found]) for name in ("obs", "acts")}
