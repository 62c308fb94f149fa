"""Every block of Python in the README and the guides runs, page by page from top to bottom, on data as the page has it.

A block whose fence says `needs=PACKAGE` runs where that is installed; where it is not, the page says so by skipping.
"""

import importlib.util
import re
import shutil
import signal
import tarfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from buckets import FaultServer, built
from bullet_boards import write_boards
from demo_files import write_dm_control
from katago_shards import write_shards
from lerobot_sets import unpacked
from mcap_files import write_arm

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs" / "guide").glob("*.md"))]

#: Seconds that a page may take: a loop that never ends is a fault of the page.
PATIENCE = 300


class Block(NamedTuple):
    """A block of a page: its first line, its code, and the package that it needs."""

    line: int
    code: str
    needs: str | None


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = re.finditer(r"^```python(?: needs=(\w+))?\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    return [Block(text[: m.start()].count("\n") + 2, m.group(2), m.group(1)) for m in found]


WITH_BLOCKS = {page.name: blocks(page) for page in PAGES if blocks(page)}


def demonstrations(names: dict[str, Any]) -> None:
    """What the page calls `demos.tar.zst`, `shards/`, `root/` and `datasets/`."""
    rng = np.random.default_rng(1)
    pixels = {"low": np.zeros((3, 8, 8), np.uint8), "high": np.full((3, 8, 8), 255, np.uint8)}
    box = Instance("Box", (), {**pixels, "shape": (3, 8, 8), "dtype": np.dtype("u1")})

    def write(path: str, task: str, lengths: list[int]) -> None:
        frames = [
            {
                "obs": pictures[step],
                "next_obs": pictures[step + 1],
                "acts": np.int64(step),
                "rews": np.float64(1),
                "dones": np.bool_(step == length - 1),
                "infos": {"step": step},
            }
            for length in lengths
            for pictures in [rng.integers(0, 256, (length + 1, 3, 8, 8), dtype=np.uint8)]
            for step in range(length)
        ]
        env_cfg = {"benchmark_name": "dm_control", "task_name": task}
        write_frames(path, get_meta_dict(env_cfg, box, Instance("Discrete", (), {"n": 9})), frames)

    write("demos.tar.zst", "finger-spin", [5, 6, 7, 5, 6, 7])
    write("shards/one.tar.zst", "finger-spin", [5, 6, 7, 5, 6, 7])
    write("root/data/processed/demos/dm_control/finger-spin/demos.tar.zst", "finger-spin", [5, 6])
    write("root/data/processed/random/dm_control/cheetah-run/demos.tar.zst", "cheetah-run", [8])
    write_dm_control(Path("root/data/dm_control/finger-spin-1.pkl.gz"), [4, 5, 6])
    if importlib.util.find_spec("minari") is not None:
        from gristmill.demos.minari import write as write_minari

        write_minari("datasets/D4RL/door/human-v2", gm.open("demos.tar.zst"), data_format="hdf5")
    names["step"] = lambda *arrays: None


def buckets(names: dict[str, Any]) -> None:
    """A server with what the page calls `s3://games`."""
    bucket = Path("buckets/games")
    gm.generate("chess", bucket / "2026", games=20, seed=1)
    gm.pack(bucket / "2026", bucket / "packs" / "june")
    names["server"] = FaultServer(built(), Path("buckets"), "--anonymous")
    gm.stores.reach("s3://", endpoint=names["server"].address, anonymous=True)
    gm.stores.cache("twins")


def shards(names: dict[str, Any]) -> None:
    """What the page calls `shards/`."""
    write_shards(Path("shards"), [700, 0, 341])


def positions(names: dict[str, Any]) -> None:
    """What the page calls `positions/`."""
    Path("binpacks").mkdir()
    shutil.copy(ROOT / "fuzz/corpus/binpack/golden", "binpacks/one.binpack")
    gm.pack("binpacks", "positions")


def robots(names: dict[str, Any]) -> None:
    """What the page calls `so100/`, `arm.mcap`, `played/`, `arms/` and `videos/`."""
    unpacked("v3.0", Path()).rename("so100")
    write_arm(Path("arm.mcap"))
    for name, inside, called in (
        ("imitation-1.0", "imitation", "played"),
        ("rlds-4.9", "rlds", "arms"),
        ("record-video-1.4", "videos", "videos"),
    ):
        with tarfile.open(ROOT / f"tests/data/{name}.tar.xz") as file:
            file.extractall(filter="data")
        Path(inside).rename(called)


def boards(names: dict[str, Any]) -> None:
    """What the page calls `boards/`."""
    write_boards(Path("boards"), 600)


#: What a page takes for granted: files of names that it uses, and names.
PREAMBLES: dict[str, Callable[[dict[str, Any]], None]] = {
    "buckets.md": buckets,
    "demonstrations.md": demonstrations,
    "katago.md": shards,
    "nnue.md": boards,
    "robots.md": robots,
    "stockfish.md": positions,
}


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise TimeoutError(f"the page takes longer than {seconds} s: is there a loop without an end?")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def there(package: str | None) -> bool:
    return package is None or importlib.util.find_spec(package) is not None


# The reader of Croissant uses what its own packages are about to drop.
@pytest.mark.filterwarnings("ignore:ConjunctiveGraph is deprecated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:The inplace keyword:DeprecationWarning")
@pytest.mark.parametrize("page", list(WITH_BLOCKS))
def test_the_blocks_of_a_page_run(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    if page == "first-steps.md":
        # What its commands make before.
        gm.generate("chess", "games", games=60, seed=1)
    try:
        with at_most(PATIENCE):
            if page in PREAMBLES:
                PREAMBLES[page](names)
            for block in WITH_BLOCKS[page]:
                if there(block.needs):
                    # As many lines above it as in the page, so that a fault names the line.
                    code = compile("\n" * (block.line - 1) + block.code, page, "exec")
                    exec(code, names)
    finally:
        for value in names.values():
            if isinstance(value, gm.DataLoader):
                value.stop()
            if isinstance(value, FaultServer):
                value.close()
    missing = sorted({block.needs for block in WITH_BLOCKS[page] if block.needs and not there(block.needs)})
    if missing:
        pytest.skip(f"{page}: all ran but for the blocks that need {', '.join(missing)}")


def test_every_page_with_code_is_among_them() -> None:
    assert {"README.md", "python.md", "demonstrations.md", "sampling.md"} <= set(WITH_BLOCKS)
    for page in PAGES:
        fences = re.findall(r"^```python(.*)$", page.read_text(), re.MULTILINE)
        assert len(fences) == len(WITH_BLOCKS.get(page.name, [])), f"{page.name}: a fence that is not closed or known"


def test_each_kind_of_pack_has_one_name() -> None:
    for page in PAGES:
        for block in blocks(page):
            assert not re.search(r"""["']pack/?["']""", block.code), f"{page.name}:{block.line}: which kind of pack?"
