"""With a cache smaller than the pack: a loader gives the batches of a disk, and keeps to its plan and to its limit."""

import os
import shutil
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, serving
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill import stores

BLOCK = 256 << 10
# Bytes of journals, names and folders beside the blocks.
SLACK = 64 << 10
BLOCKS = gm.Blocks(45_000, 1)


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bucket `drops` with a pack of rows of the game 2048. The pack has many blocks."""
    folder = tmp_path_factory.mktemp("eviction")
    rows = np.tile(make_rows(1, steps=2000), 160)
    rows["run_id"], rows["step_index"] = np.divmod(np.arange(len(rows)), 20_000)
    raw = [write_pack(folder / f"raw-{half}", rows[rows["run_id"] // 8 == half]) for half in (0, 1)]
    gm.merge(raw, folder / "drops" / "rows")
    return folder


@pytest.fixture
def server(drops: Path, tmp_path: Path) -> Iterator[FaultServer]:
    with serving(drops, tmp_path / "twins") as server:
        yield server


def with_chess(folder: Path) -> None:
    """Adds a pack of chess games to the bucket. The pack has many blocks, too."""
    gm.generate("chess", folder / "games", games=60, seed=3)
    for game in list((folder / "games").glob("*.gz")):
        for copy in range(6):
            shutil.copy(game, game.with_name(f"{copy}-{game.name}"))
    gm.pack(folder / "games", folder / "drops" / "chess")


def limited(drops: Path, folder: Path, pack: str, part: int = 4) -> int:
    """Sets a cache that holds 1 / `part` of a pack, but at least five blocks. Returns its limit in bytes."""
    names = {"rows": "steps*", "chess": "games-*.chunks"}
    size = sum(file.stat().st_size for file in (drops / "drops" / pack).glob(names[pack]))
    limit = max(size // part, 5 * BLOCK)
    stores.cache(folder, limit=limit)
    return limit


def loaded(place: object, *, rows: slice = slice(None), **options: Any) -> gm.DataLoader:
    pack: Any = gm.open(str(place))
    if str(place).endswith("rows"):
        options["encoder"] = gm.g2048.Steps()
    return gm.DataLoader(pack[rows], seed=3, **{"epochs": 1, "batch_size": 500, **options})


def taken(folder: Path) -> int:
    return sum(file.stat().st_blocks * 512 for file in folder.rglob("*"))


def agree(far: gm.DataLoader, near: gm.DataLoader, each: Any = lambda: None) -> int:
    count = 0
    for left, right in zip(far, near, strict=True):
        for here, there in zip(left, right, strict=True):
            np.testing.assert_array_equal(here, there)
        count += 1
        each()
    return count


CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "blocks of rows": ("rows", {"shuffle": BLOCKS}),
    "blocks of games": ("chess", {"shuffle": gm.Blocks(3000, 1), "rows": slice(12_000)}),
    "the whole order": ("rows", {"batch_size": 6, "skip": ["60..53334"]}),
}


@pytest.mark.parametrize("case", CASES)
def test_a_quarter_of_the_pack_gives_the_batches_of_the_disk_at_the_price_that_was_said(
    server: FaultServer, drops: Path, tmp_path: Path, case: str
) -> None:
    pack, options = CASES[case]
    if pack == "chess":
        with_chess(drops)
    limit = limited(drops, tmp_path / "small", pack)
    loader = loaded(f"s3://drops/{pack}", **options)
    said = loader.certificate().fetching
    assert said is not None
    assert not said["holds"]
    assert said["cache_part"] <= limit
    most = 0

    def measure() -> None:
        nonlocal most
        most = max(most, taken(tmp_path / "small"))

    before = stores.requests()["s3://drops"]
    agree(loader, loaded(drops / "drops" / pack, **options), measure)
    after = stores.requests()["s3://drops"]
    first = said["epochs"]["first"]
    assert (after.requests - before.requests, after.bytes - before.bytes) == (first["requests"], first["bytes"])
    assert said["cache_part"] / 2 < most <= limit + SLACK
    if pack == "rows" and "skip" not in options:
        assert first["bytes"] + said["kept_bytes"] == said["data_bytes"], "each block once"


def test_later_epochs_and_states_give_the_batches_of_the_disk(server: FaultServer, drops: Path, tmp_path: Path) -> None:
    limited(drops, tmp_path / "small", "rows", part=12)
    options: dict[str, Any] = {"shuffle": gm.Blocks(5000, 1), "epochs": 2, "rows": slice(80_000)}
    loader, states = loaded("s3://drops/rows", **options), []
    for _ in loader:
        states.append(loader.state_dict())
    loader.stop()
    far, near = loaded("s3://drops/rows", **options), loaded(drops / "drops" / "rows", **options)
    far.load_state_dict(states[40])
    near.load_state_dict(states[40])
    assert agree(far, near) == len(states) - 41
    assert agree(far, near) == len(states)


def test_rows_that_the_network_damages_when_they_come_again_are_not_served(
    server: FaultServer, drops: Path, tmp_path: Path
) -> None:
    limited(drops, tmp_path / "small", "rows", part=12)
    options: dict[str, Any] = {"shuffle": gm.Blocks(5000, 1), "epochs": 2, "rows": slice(80_000)}
    far, near = loaded("s3://drops/rows", **options), loaded(drops / "drops" / "rows", **options)
    # An answer of each pass; in the second each block comes again. Two rules at once could damage a block twice.
    given = 0
    for _ in range(2):
        server.fail("garbled", operation="get", key="steps", after=3, times=1)
        before = server.counts()["get"]
        given += agree(far, near)
        assert server.counts()["get"] - before > 5, "enough answers for one to be damaged"
    assert given == 320


def test_a_kill_while_blocks_are_freed_loses_a_block_at_most(server: FaultServer, drops: Path, tmp_path: Path) -> None:
    limit = limited(drops, tmp_path / "small", "rows")
    code = textwrap.dedent(f"""
        import gristmill as gm
        gm.stores.cache({str(tmp_path / "small")!r}, limit={limit})
        rows = gm.open("s3://drops/rows")
        options = dict(encoder=gm.g2048.Steps(), shuffle=gm.Blocks(22_000, 1))
        while True:
            for _ in gm.DataLoader(rows, batch_size=2000, epochs=9, **options):
                print("batch", flush=True)
    """)
    for kill in range(3):
        process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env=os.environ)
        assert process.stdout is not None
        for _ in range(60):
            assert process.stdout.readline() == b"batch\n", "it ended by itself"
        time.sleep(0.03 * kill)
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert process.returncode == -signal.SIGKILL
        options: dict[str, Any] = {"rows": slice(100_000 * kill, 100_000 * kill + 60_000), "shuffle": False}
        agree(loaded("s3://drops/rows", **options), loaded(drops / "drops" / "rows", **options))
        assert taken(tmp_path / "small") <= limit + SLACK


def test_what_does_not_fit_is_refused_with_what_to_do(server: FaultServer, drops: Path, tmp_path: Path) -> None:
    limited(drops, tmp_path / "small", "rows")
    large = loaded("s3://drops/rows")
    with pytest.raises(gm.GristmillError, match="raise cache_limit, make smaller batches"):
        next(iter(large))
    large.stop()
    first, second = (loaded("s3://drops/rows", batch_size=6, epochs=None) for _ in range(2))
    next(iter(first))
    with pytest.raises(gm.GristmillError, match="another loader"):
        next(iter(second))
    first.stop()
    next(iter(second))
    second.stop()
