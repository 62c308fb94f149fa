"""Batches of pairs: ours, a plain gather of NumPy, and webdataset with a shuffle buffer and PyTorch's collate.

    python scripts/bench_pairs.py [ROUNDS]

All run alternately in this process, on the same pictures (4, 84, 84) and the same kind of pairs (obs[t-1], obs[t],
acts[t-1]), in batches of 384. CPU time, so that other programs on the machine do not count. Figures are ratios.
"""

import importlib.util
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

SHAPE, LENGTHS, BATCH, SEED = (4, 84, 84), [250] * 16, 384, 1
STEPS = sum(LENGTHS)


def arrays() -> dict[str, Any]:
    """Pictures with some structure, actions, ends."""
    rng = np.random.default_rng(SEED)
    obs = np.repeat(rng.integers(0, 256, (STEPS, *SHAPE[:-1], SHAPE[-1] // 4), dtype=np.uint8), 4, -1)
    ends = np.zeros(STEPS, bool)
    ends[np.cumsum(LENGTHS) - 1] = True
    return {"obs": obs, "acts": rng.integers(0, 6, STEPS), "dones": ends}


def pairs(data: Any, prepare: gm.pairs.Prepare | None) -> Callable[[], int]:
    """Ours; each call is one pass."""
    loader = gm.PairLoader(data, gm.pairs.TemporalOffset("dynamics"), batch_size=BATCH, seed=SEED, prepare=prepare)
    return lambda: sum(len(batch.context) for batch in loader)


def numpy(data: dict[str, Any], convert: bool) -> Callable[[], int]:
    """A permutation and three gathers."""
    ends = set(np.flatnonzero(data["dones"]).tolist())
    first = np.array([t for t in range(STEPS) if t not in ends])
    rng = np.random.default_rng(SEED)

    def made(values: Any) -> Any:
        return values.astype(np.float32) / np.float32(255) if convert else values

    def run() -> int:
        order, done = rng.permutation(first), 0
        for start in range(0, len(order) - BATCH + 1, BATCH):
            rows = order[start : start + BATCH]
            batch = (made(data["obs"][rows]), made(data["obs"][rows + 1]), data["acts"][rows[:, None]])
            done += len(batch[0])
        return done

    return run


def webdataset(path: Path) -> Callable[[], int]:
    """The route of many trainers: a tar of pickles, pairs from the stream, a shuffle buffer, the default collate."""
    import torch
    import webdataset as wds

    def paired(samples: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        before: dict[str, Any] | None = None
        for sample in samples:
            if before is not None:
                yield {"context": before["obs.pickle"], "target": sample["obs.pickle"], "acts": [before["acts.pickle"]]}
            before = None if sample["dones.pickle"] else sample

    def run() -> int:
        data = wds.WebDataset(str(path), shardshuffle=False, empty_check=False)
        data = data.select(lambda sample: sample["__key__"] != "_metadata").decode().compose(paired).shuffle(1024)
        batches = torch.utils.data.DataLoader(data, batch_size=BATCH, drop_last=True)
        return sum(len(batch["context"]) for batch in batches)

    return run


def shard(folder: Path, data: dict[str, Any]) -> Path:
    """The steps as a shard."""
    box = Instance("Box", (), {"low": np.uint8(0), "high": np.uint8(255), "shape": SHAPE, "dtype": np.dtype("u1")})
    rows = [{name: column[t] for name, column in data.items()} for t in range(STEPS)]
    write_frames(folder / "demos.tar", get_meta_dict({}, box, Instance("Discrete", (), {"n": 6})), rows)
    return folder / "demos.tar"


def main() -> None:
    """Times all, turn by turn."""
    warnings.simplefilter("ignore")
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    data = arrays()
    columns = gm.pairs.Columns(LENGTHS, data)
    with tempfile.TemporaryDirectory() as folder:
        path = shard(Path(folder), data)
        runs = {
            "pairs": pairs(columns, None),
            "numpy": numpy(data, False),
            "pairs, float32": pairs(columns, gm.pairs.Prepare()),
            "numpy, float32": numpy(data, True),
            "pairs, shard opened for each pass": lambda: pairs(gm.open(path), None)(),
        }
        if importlib.util.find_spec("torch") and importlib.util.find_spec("webdataset"):
            runs["webdataset, torch"] = webdataset(path)
        spent: dict[str, list[float]] = {}
        for turn in range(rounds + 1):
            for name, run in sorted(runs.items(), reverse=turn % 2 == 1):
                begun = time.process_time()
                rows = run()
                if turn:
                    spent.setdefault(name, []).append((time.process_time() - begun) / rows)
    middle = {name: statistics.median(values) for name, values in spent.items()}
    for name, seconds in middle.items():
        spread = max(spent[name]) / min(spent[name])
        print(f"{name:36} {1 / seconds / BATCH:8.1f} batches of {BATCH} per second of CPU (spread {spread:.2f})")
    for one, other in [
        ("pairs", "numpy"),
        ("pairs, float32", "numpy, float32"),
        ("pairs", "webdataset, torch"),
        ("pairs, shard opened for each pass", "webdataset, torch"),
    ]:
        if other in middle:
            print(f"{one} / {other}: {middle[other] / middle[one]:.2f}x")
        else:
            print(f"{one} / {other}: skipped, PyTorch and webdataset are not both installed")


main()
