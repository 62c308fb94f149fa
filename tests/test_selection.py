"""SQL over packs: what is no condition, what changes, what has no end; and packs that are not mapped."""

import signal
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm

#: A condition that SQLite never comes to an end with.
ENDLESS = "(WITH RECURSIVE n(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n) > 0"


@pytest.fixture(params=["games", "rows"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    if request.param == "games":
        gm.pack(write_games(tmp_path / "in", 3), tmp_path / "pack")
    else:
        write_pack(tmp_path / "pack", make_rows(7, 40, seed=1))
    return tmp_path / "pack"


@pytest.mark.parametrize(
    ("sql", "said"),
    [
        ("1) UNION SELECT 99999999 WHERE (1", "syntax error"),
        ("1) LIMIT (5", "syntax error"),
        ("random() > 0", "function: random"),
        ("SELECT id FROM TABLE ORDER BY random() LIMIT 1", "function: random"),
        ("datetime('now') > ''", "function: datetime"),
    ],
)
def test_what_is_more_than_a_condition_or_changes_is_refused(folder: Path, sql: str, said: str) -> None:
    pack = gm.open(folder)
    table = "games" if isinstance(pack, gm.Games) else "runs"
    sql = sql.replace("TABLE", table)
    with pytest.raises(gm.ConfigError, match=said):
        pack.where(sql)
    with pytest.raises(gm.ConfigError, match=said):
        pack.split(val_where=sql)
    if "SELECT id" not in sql:
        with pytest.raises(gm.ConfigError, match=said):
            pack.mark("x", sql)
    assert len(pack.where("(id = 0) OR (id = 1)")) == len(pack.where("id < 2")) > 0
    with pytest.raises(TypeError, match="sql=3; expected a condition in SQL"):
        pack.where(3)


def test_sql_without_an_end_can_be_interrupted(folder: Path) -> None:
    pack = gm.open(folder)
    main = threading.main_thread().ident
    assert main is not None

    def interrupted(ask: Callable[[], object]) -> None:
        # Whenever it comes, before the query or during it, it ends this function.
        threading.Timer(0.2, lambda: signal.pthread_kill(main, signal.SIGINT)).start()
        ask()

    for ask in (lambda: pack.where(ENDLESS), lambda: pack.mark("x", ENDLESS, workers=2)):
        with pytest.raises(KeyboardInterrupt):
            interrupted(ask)
    assert pack.marks() == []


def test_a_view_in_the_place_of_a_table_is_refused(folder: Path) -> None:
    table = "games" if isinstance(gm.open(folder), gm.Games) else "runs"
    with sqlite3.connect(folder / "metadata.db") as database:
        database.executescript(
            f"ALTER TABLE {table} RENAME TO real; CREATE VIEW {table} AS WITH RECURSIVE n(i) AS "
            "(VALUES (1) UNION ALL SELECT i + 1 FROM n) SELECT real.* FROM real, n;"
        )
    with pytest.raises(gm.FormatError, match=f"a view `{table}`"):
        gm.open(folder).where("id = 0")


def test_a_pack_that_is_not_mapped_needs_its_files_no_more(folder: Path) -> None:
    mapped, held = gm.open(folder), gm.open(folder, mmap=False)
    frames = mapped.num_frames if isinstance(mapped, gm.Games) else len(mapped)
    expected = mapped.take(np.arange(frames)).tobytes()
    options: dict[str, Any] = {} if isinstance(mapped, gm.Games) else {"encoder": gm.g2048.Steps()}
    with gm.DataLoader(mapped, batch_size=16, seed=1, **options) as loader:
        batches = [[array.tobytes() for array in batch] for batch in loader]
    del mapped, loader
    files = [file for file in folder.iterdir() if file.suffix in (".chunks", ".npy") or "sums" in file.name]
    with gm.DataLoader(held, batch_size=16, seed=1, **options) as loader:
        for number, batch in enumerate(loader):
            if number == 1:
                for file in files:
                    file.write_bytes(file.read_bytes()[:100])
            assert [array.tobytes() for array in batch] == batches[number]
        assert number == len(batches) - 1
    assert held.take(np.arange(frames)).tobytes() == expected
    with pytest.raises(gm.FormatError) as error:
        gm.open(folder, mmap=False)
    assert any(file.name in str(error.value) for file in files)


def test_a_large_result_takes_the_memory_of_one_that_is_gone_and_of_no_other(tmp_path: Path) -> None:
    obs = np.random.default_rng(1).integers(0, 256, (96, 3, 64, 64), dtype=np.uint8)
    demos = gm.demos.from_arrays([96], {"obs": obs, "acts": np.arange(96)})
    gm.pack(demos, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert isinstance(pack, gm.Games)
    order = np.random.default_rng(2)
    held = []
    for turn in range(12):
        rows = order.integers(0, 96, 40 + turn % 3)
        held.append((rows, np.asarray(pack.take(rows))))
        for earlier, records in held:
            np.testing.assert_array_equal(records["obs"], obs[earlier])
            np.testing.assert_array_equal(records["acts"], earlier)
        if turn % 2:
            held.pop(turn % len(held))
    with pytest.raises(IndexError):
        pack.take(np.full(40, 96))
