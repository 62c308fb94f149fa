"""A pack of demonstrations beside what people read instead, turn by turn: steps at random out of the pack by the index
loader, out of arrays in memory (`PairLoader`'s gather and NumPy's), and out of an uncompressed shard by Python; and the
bytes of all. CPU time of one process, so that other programs do not count.

    python scripts/bench_demo_pack.py

The real shards where GRISTMILL_SHARED (or ../shared) has them, and trajectories that are made here.
"""

import gzip
import os
import pickle
import statistics
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames

ROUNDS, BATCH, STEPS = 7, 64, 4096
FIELDS = ("acts", "dones", "next_obs", "obs")


def shared() -> Path:
    """The folder of real demonstrations, which may be absent."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    return Path(os.environ.get("GRISTMILL_SHARED", beside)) / "data" / "demos"


def made(path: Path) -> Path:
    """A shard of eight trajectories of 250 stacks of four pictures: in each a texture scrolls, with a square on it."""
    from gymnasium import spaces

    rng = np.random.default_rng(1)
    textures = rng.integers(0, 64, (8, 84, 84 + 300), dtype=np.uint8)

    def stack(texture: Any, t: int) -> Any:
        pictures = np.stack([texture[:, max(0, t - k) : max(0, t - k) + 84] for k in (3, 2, 1, 0)])
        pictures[:, 40:48, t % 76 : t % 76 + 8] = 200
        return pictures

    frames = (
        {
            "obs": stack(texture, t),
            "next_obs": stack(texture, t + 1),
            "acts": np.int64(t % 6),
            "dones": np.bool_(t == 249),
        }
        for texture in textures
        for t in range(250)
    )
    space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    write_frames(path, get_meta_dict({}, space, spaces.Discrete(6)), frames, level=1)
    return path


def turns(runs: dict[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """CPU seconds of each, several times, taking turns."""
    spent: dict[str, list[float]] = {name: [] for name in runs}
    for turn in range(ROUNDS):
        for name, run in list(runs.items())[:: 1 if turn % 2 else -1]:
            start = time.process_time()
            run()
            spent[name].append(time.process_time() - start)
    return spent


def from_pack(pack: Any, fields: tuple[str, ...], threads: int = 1) -> Callable[[], None]:
    """Takes `STEPS` steps at random through the index loader."""
    loader = gm.DataLoader(pack, batch_size=BATCH, joined=True, seed=1, threads=threads, encoder=gm.Fields(fields))
    next(loader)

    def run() -> None:
        for _ in range(STEPS // BATCH):
            next(loader)

    return run


def from_arrays(arrays: dict[str, Any], fields: tuple[str, ...]) -> Callable[[], None]:
    """Takes as many out of arrays in memory, by NumPy."""
    rng, count = np.random.default_rng(1), len(arrays["obs"])

    def run() -> None:
        for _ in range(STEPS // BATCH):
            rows = rng.integers(0, count, BATCH)
            for name in fields:
                arrays[name][rows]

    return run


def from_tar(path: Path, fields: tuple[str, ...]) -> Callable[[], None]:
    """Takes as many out of a plain shard whose members are looked up by name, as people do without a library."""
    with tarfile.open(path) as tar:
        places = {member.name: (member.offset_data, member.size) for member in tar if member.isfile()}
    stems = sorted({name.split(".")[0] for name in places if ".obs." in name})
    keys = [[places[f"{stem}.{field}.pickle"] for field in fields] for stem in stems]
    rng = np.random.default_rng(1)

    def run() -> None:
        with path.open("rb", buffering=0) as file:
            for _ in range(STEPS // BATCH):
                rows = [keys[i] for i in rng.integers(0, len(keys), BATCH)]
                for i in range(len(fields)):
                    values = []
                    for row in rows:
                        file.seek(row[i][0])
                        values.append(pickle.loads(file.read(row[i][1])))
                    np.stack(values)

    return run


def from_pairs(arrays: dict[str, Any], lengths: list[int]) -> Callable[[], None]:
    """Takes as many out of arrays in memory by `StepLoader`."""
    columns = gm.pairs.Columns(lengths, {name: arrays[name] for name in FIELDS})
    loader = gm.StepLoader(columns, gm.pairs.GAIL, batch_size=BATCH, seed=1)
    batches = iter(loader)

    def run() -> None:
        nonlocal batches
        for _ in range(STEPS // BATCH):
            if next(batches, None) is None:
                batches = iter(loader)

    return run


def measure(name: str, shard: Path, folder: Path) -> None:
    """Size and speed of one shard's pack."""
    source, packed = folder / f"{name}-source", folder / f"{name}-pack"
    source.mkdir()
    (source / shard.name).symlink_to(shard)
    gm.pack(source, packed)
    pack, demos = gm.open(packed), gm.open(shard)
    arrays = {field: np.asarray(column) for field, column in demos.columns(FIELDS).items()}
    plain = folder / f"{name}.tar"
    write_frames(plain, demos.metadata, ({f: a[t] for f, a in arrays.items()} for t in range(demos.num_frames)))
    np.savez(folder / f"{name}.npz", **arrays)
    np.savez_compressed(folder / f"{name}-deflated.npz", **arrays)
    pickled = len(gzip.compress(pickle.dumps(arrays, 4), 6))
    own = sum(path.stat().st_size for path in packed.glob("*.chunks"))
    sizes = {
        "pack": own,
        shard.name: shard.stat().st_size,
        "tar": plain.stat().st_size,
        "npz": (folder / f"{name}.npz").stat().st_size,
        "npz deflated": (folder / f"{name}-deflated.npz").stat().st_size,
        "pickle.gz": pickled,
    }
    print(
        f"{name}: {demos.num_frames} steps; " + ", ".join(f"{what} {size / 1e3:.0f} kB" for what, size in sizes.items())
    )
    print(
        "  pack / source: " + ", ".join(f"{own / size:.3f} of {what}" for what, size in sizes.items() if what != "pack")
    )
    for what, fields in (("all fields", FIELDS), ("pictures", ("obs",))):
        runs = {
            "pack": from_pack(pack, fields),
            "arrays in memory": from_arrays(arrays, fields),
            "plain tar by Python": from_tar(plain, fields),
        }
        if fields is FIELDS:
            runs["StepLoader in memory"] = from_pairs(arrays, demos.lengths)
        spent = turns(runs)
        rates = {run: STEPS / min(times) for run, times in spent.items()}
        print(f"  {what}: " + ", ".join(f"{run} {rate:.0f} steps/s" for run, rate in rates.items()))
        for peer in [run for run in runs if run != "pack"]:
            ratio = statistics.median(a / b for a, b in zip(spent[peer], spent["pack"], strict=True))
            print(f"    {ratio:.2f} x of {peer}")


def main() -> None:
    """The real shards, and the one that is made."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        pong = shared() / "pong.tar.zst"
        if pong.exists():
            measure("Pong", pong.resolve(), folder)
        else:
            print(f"skipped: there is no {pong}; set GRISTMILL_SHARED")
        measure("scrolling texture", made(folder / "made.tar.zst"), folder)


main()
