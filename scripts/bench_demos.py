"""Demonstrations beside the Python route on the same file, turn by turn: shards to batches against `webdataset` and
`pickle`, a MAGICAL demonstration to stacks against `pickle` and OpenCV. CPU time of one process, so that other programs
do not count.

    python scripts/bench_demos.py

The real files where GRISTMILL_SHARED (or ../shared) has them, else a shard that is written here. Needs webdataset,
zstandard and opencv-python-headless, which `make bench` installs; without one its part is left out, which is said.
"""

import gzip
import importlib.util
import io
import os
import pickle
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames

ROUNDS, BATCH = 9, 32
FIELDS = ("obs", "next_obs", "acts", "dones")


def shared() -> Path:
    """The folder of real demonstrations, which may be absent."""
    beside = Path(__file__).resolve().parents[1].parent / "shared"
    return Path(os.environ.get("GRISTMILL_SHARED", beside)) / "data" / "demos"


def absent(*packages: str) -> bool:
    """Whether a package is not installed; says which."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        print(f"skipped: {', '.join(missing)} is not installed")
    return bool(missing)


def made(path: Path) -> Path:
    """A shard of a thousand steps: noise that stands still, with a square that moves."""
    from gymnasium import spaces

    rng = np.random.default_rng(1)
    still = rng.integers(0, 8, (4, 84, 84), dtype=np.uint8)

    def picture(t: int) -> Any:
        moved = still.copy()
        moved[:, 40:48, t % 76 : t % 76 + 8] = 200
        return moved

    frames = (
        {
            "obs": picture(t),
            "next_obs": picture(t + 1),
            "acts": np.int64(t % 6),
            "dones": np.bool_(t % 200 == 199),
        }
        for t in range(1000)
    )
    space = spaces.Box(0, 255, (4, 84, 84), np.uint8)
    write_frames(path, get_meta_dict({}, space, spaces.Discrete(6)), frames)
    return path


def compare(name: str, goal: float, theirs: Callable[[], Any], ours: Callable[[], Any]) -> None:
    """Runs both turn by turn; prints the best times and the median of the ratios."""
    spent: dict[str, list[float]] = {"theirs": [], "ours": []}
    for turn in range(ROUNDS):
        both = [("theirs", theirs), ("ours", ours)]
        for who, run in both if turn % 2 else both[::-1]:
            start = time.process_time()
            run()
            spent[who].append(time.process_time() - start)
    ratios = [a / b for a, b in zip(spent["theirs"], spent["ours"], strict=True)]
    best = {who: 1e3 * min(times) for who, times in spent.items()}
    ratio = statistics.median(ratios)
    print(f"{name}: {best['ours']:.1f} ms; the Python route {best['theirs']:.1f} ms; {ratio:.1f} x (goal >= {goal:g})")


def samples(path: Path) -> Iterator[dict[str, Any]]:
    """Frames of a shard as `webdataset` and `pickle` give them."""
    from webdataset import tariterators

    opened: Any
    if path.suffix == ".zst":
        import zstandard

        opened = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(path.open("rb"))
    else:
        opened = path.open("rb")
    members = tariterators.tar_file_expander([{"url": str(path), "stream": opened}])
    for sample in tariterators.group_by_keys(members):
        yield {name.split(".")[0]: pickle.loads(data) for name, data in sample.items() if name.endswith(".pickle")}


def python_batches(path: Path) -> int:
    """All batches of a shard by the Python route."""
    count, held = 0, []
    for sample in samples(path):
        if "obs" in sample:
            held.append(sample)
        if len(held) == BATCH:
            count += len([np.stack([one[name] for one in held]) for name in FIELDS])
            held = []
    return count


def our_batches(path: Path) -> int:
    """All batches of a shard."""
    demos = gm.open(path)
    columns = [np.asarray(column) for column in demos.columns(FIELDS).values()]
    rows = np.arange(demos.num_frames)
    return sum(len([column[part] for column in columns]) for part in np.split(rows, range(BATCH, len(rows), BATCH)))


def shards(folder: Path) -> None:
    """One shard packed in every way."""
    import zstandard

    packed = shared() / "pong.tar.zst"
    packed = packed if packed.exists() else made(folder / "made.tar.zst")
    with packed.open("rb") as file:
        tar = zstandard.ZstdDecompressor(max_window_size=1 << 27).stream_reader(file).read()
    (folder / "shard.tar").write_bytes(tar)
    (folder / "shard.tgz").write_bytes(gzip.compress(tar, 6))
    print(f"{packed.name}: {len(tar) / 1e6:.1f} MB unpacked")
    # Only the original's code can make the spaces of its metadata.
    sys.modules.update(stand_ins())
    for path in (packed, folder / "shard.tgz", folder / "shard.tar"):
        compare(
            f"{path.name} to batches of {BATCH}", 10, lambda p=path: python_batches(p), lambda p=path: our_batches(p)
        )


class Anything:
    """Takes the place of a class of which only the name is needed."""

    def __init__(self, *args: Any, **named: Any) -> None: ...


class Rollout(NamedTuple):
    """A trajectory as MAGICAL pickles it."""

    acts: Any
    obs: Any
    rews: Any
    infos: Any


def stand_ins() -> dict[str, Any]:
    """Modules of the originals that pickles name."""
    import types

    names = {
        "il_representations.envs.utils": {"_inflate_object": Anything},
        "imitation.augment.color": {"ColorSpace": Anything},
        "gym.spaces.box": {"Box": Anything},
        "gym.spaces.discrete": {"Discrete": Anything},
        "milbench.baselines.saved_trajectories": {"MILBenchTrajectory": Rollout},
        "magical.saved_trajectories": {"MAGICALTrajectory": Rollout},
        "imitation.util.rollout": {"Trajectory": Rollout},
    }
    made: dict[str, Any] = {}
    for name, attributes in names.items():
        parts = name.split(".")
        for i in range(len(parts)):
            made.setdefault(".".join(parts[: i + 1]), types.ModuleType(".".join(parts[: i + 1])))
        for attribute, value in attributes.items():
            setattr(made[name], attribute, value)
    return made


def python_stacks(path: Path) -> Any:
    """The stacks of a MAGICAL demonstration: the last four frames, made smaller by OpenCV, channels first."""
    import cv2

    cv2.setNumThreads(1)
    with gzip.open(path) as file:
        trajectory = pickle.load(io.BytesIO(file.read()))["trajectory"]
    frames = [step["ego"] for step in trajectory.obs]
    stacks = []
    for t in range(len(frames)):
        stack = np.concatenate([frames[max(0, t - k)] for k in (3, 2, 1, 0)], axis=-1)
        small = cv2.resize(stack, (96, 96), interpolation=cv2.INTER_AREA)
        stacks.append(np.moveaxis(small, -1, 0))
    stacked = np.stack(stacks)
    return np.ascontiguousarray(stacked[:-1]), np.ascontiguousarray(stacked[1:])


def our_stacks(path: Path) -> Any:
    """The same."""
    demos = gm.demos.open_demos(path, magical_preproc="LoResCHW4E")
    return np.asarray(demos.column("obs")), np.asarray(demos.column("next_obs"))


def magical() -> None:
    """The real demonstration."""
    path = shared() / "magical-MoveToRegion.pkl.gz"
    if not path.exists():
        print(f"skipped: there is no {path}; set GRISTMILL_SHARED")
        return
    sys.modules.update(stand_ins())
    for theirs, ours in zip(python_stacks(path), our_stacks(path), strict=True):
        # OpenCV rounds some halves of wide stacks the other way.
        assert np.abs(theirs.astype(int) - ours.astype(int)).max() <= 1
    compare("MAGICAL demonstration to stacks", 10, lambda: python_stacks(path), lambda: our_stacks(path))


def main() -> None:
    """Both comparisons."""
    with tempfile.TemporaryDirectory() as folder:
        if not absent("webdataset", "zstandard"):
            shards(Path(folder))
    if not absent("cv2"):
        magical()


main()
