"""webdataset: tar shards with a shuffle buffer. It runs in the process, or in workers of PyTorch's loader."""

import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import webdataset

from loaders.records import named, stored

#: Number of rows in the shuffle buffer, as the documentation of webdataset has it.
BUFFER = 1000


def write(work: str, data: Path, folder: Path, packings: list[str]) -> None:
    """Writes shards of records. Shards of demonstrations and games exist already."""
    if work in ("rows", "steps"):
        with webdataset.ShardWriter(str(folder / "rows-%06d.tar"), maxcount=8192, verbose=0) as sink:
            for i, row in enumerate(stored(data)):
                sink.write({"__key__": f"{i:09}", "bin": row.tobytes()})


def record(sample: dict[str, Any]) -> Any:
    """Returns the bytes of a record as an array, u8."""
    return np.frombuffer(sample["bin"], np.uint8)


def step(sample: dict[str, Any]) -> tuple[Any, Any]:
    """Returns `obs` and `acts` of one step of a demonstration."""
    return np.load(io.BytesIO(sample["obs.npy"])), np.load(io.BytesIO(sample["acts.npy"]))


def stacked(samples: list[Any]) -> Any:
    """Returns a batch of samples: an array, or a tuple of arrays if the samples are tuples."""
    return tuple(map(np.stack, zip(*samples, strict=True))) if isinstance(samples[0], tuple) else np.stack(samples)


def places(folder: Path) -> list[str]:
    """Returns the shards of a folder as webdataset takes them. The program `zstd` unpacks `.zst` shards."""
    return [f"pipe:zstd -dcq {path}" if path.suffix == ".zst" else str(path) for path in sorted(folder.glob("*.t*"))]


def batches(
    work: str, data: Path, folder: Path, batch: int, workers: int = 0, urls: Sequence[str] = ()
) -> Iterator[Any]:
    """Yields batches of a pipeline that repeats."""
    options: dict[str, Any] = {"shardshuffle": 100, "empty_check": False, "seed": 1}
    if work == "games":
        from loaders.planes import rows_of_game

        samples = webdataset.WebDataset(places(data / "tars"), **options).map(rows_of_game)
        samples = samples.compose(lambda games: (row for game in games for row in game)).shuffle(8192)
    elif work in ("rows", "steps"):
        samples = webdataset.WebDataset(list(urls) or places(folder), **options).shuffle(BUFFER).map(record)
    else:
        # Metadata have samples of their own, which the pipeline drops.
        steps = webdataset.WebDataset(places(data / "shards"), **options).select(lambda sample: "obs.npy" in sample)
        samples = steps.shuffle(BUFFER).map(step)
    pipeline = samples.batched(batch, collation_fn=stacked, partial=False).repeat()
    if workers:
        pipeline = webdataset.WebLoader(pipeline, batch_size=None, num_workers=workers)
    for found in pipeline:
        if work in ("rows", "steps"):
            yield named(work, np.asarray(found))
        elif work == "games":
            yield dict(zip(("planes", "probs", "values"), found, strict=True))
        else:
            yield {"obs": np.asarray(found[0]), "acts": np.asarray(found[1])}
