"""Packs as NumPy and SQLite see them, and the functions `pack` and `merge`."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest

import gristmill as gm

DROP = Path(__file__).parent.parent / "crates/gristmill-jobs/tests/data/drop2048"


# The dtype that docs/format/pack.md gives.
STEPS = np.dtype(
    [
        ("run_id", "<u4"),
        ("step_index", "<u4"),
        ("board", "<u8"),
        ("board_eval", "<i4"),
        ("tile_65536_mask", "<u2"),
        ("move_dir", "u1"),
        ("valuation_type", "u1"),
        ("ev_legal", "u1"),
        ("max_rank", "u1"),
        ("seed", "<u4"),
        ("branch_evs", "<f4", (4,)),
    ],
    align=True,
)


def test_numpy_reads_both_forms_and_would_write_the_same_bytes(tmp_path: Path) -> None:
    wide = gm.pack(DROP, tmp_path / "wide")
    narrow = gm.pack(DROP, tmp_path / "narrow", layout="packed46", shard_rows=700, workers=1)
    assert (wide.rows, wide.runs, wide.files, narrow.files, wide.skipped) == (1882, 4, 1, 3, [])
    rows = np.load(tmp_path / "wide/steps.npy", mmap_mode="r")
    assert rows.dtype == STEPS
    assert rows.dtype.itemsize == 48
    np.save(tmp_path / "again.npy", rows)
    assert (tmp_path / "again.npy").read_bytes() == (tmp_path / "wide/steps.npy").read_bytes()
    parts = [np.load(path) for path in sorted((tmp_path / "narrow").glob("steps-*.npy"))]
    assert [part.dtype.itemsize for part in parts] == [46, 46, 46]
    joined = np.concatenate(parts)
    assert all(np.array_equal(joined[name], rows[name]) for name in rows.dtype.names or ())


def test_sqlite_reads_the_database(tmp_path: Path) -> None:
    gm.pack(DROP, tmp_path / "pack")
    with sqlite3.connect(tmp_path / "pack/metadata.db") as db:
        query = "SELECT steps, json_extract(sidecar, '$.depth') FROM runs JOIN extras ON id = run_id ORDER BY id"
        found = db.execute(query).fetchall()
    assert len(found) == 4
    assert sum(steps for steps, _ in found) == 1882
    assert {depth for _, depth in found} == {6}


def test_merge_and_what_is_refused(tmp_path: Path) -> None:
    for name in ("a", "b"):
        gm.pack(DROP, tmp_path / name)
    merged = gm.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "ab")
    assert (merged.packs, merged.runs, merged.rows) == (2, 8, 2 * 1882)
    ids = np.load(tmp_path / "ab/steps.npy")["run_id"]
    assert np.array_equal(np.unique(ids), np.arange(8))
    with pytest.raises(gm.ConfigError, match="same pack"):
        gm.merge([tmp_path / "a", tmp_path / "a"], tmp_path / "x")
    with pytest.raises(gm.ConfigError, match="input"):
        gm.merge([tmp_path / "a", tmp_path / "b"], tmp_path / "a/deep")
    with pytest.raises(gm.ConfigError, match="overwrite"):
        gm.pack(DROP, tmp_path / "a")
    assert gm.pack(DROP, tmp_path / "a", existing="append").known == 4


def test_bad_games_are_named(tmp_path: Path) -> None:
    drop = tmp_path / "drop"
    drop.mkdir()
    for file in DROP.iterdir():
        (drop / file.name).write_bytes(file.read_bytes())
    (drop / "bad.meta.json").write_text('{"seed": 1, "num_moves": 1, "score": 1, "max_tile": 2}')
    (drop / "bad.jsonl.gz").write_bytes(b"nonsense\n")
    packed = gm.pack(drop, tmp_path / "pack")
    assert [(bad.file, bad.line, bad.kind) for bad in packed.skipped] == [("bad.jsonl.gz", 1, "corrupt")]
    with pytest.raises(gm.FormatError) as raised:
        gm.pack(drop, tmp_path / "raised", on_error="raise")
    assert raised.value.line == 1
    assert "bad.jsonl.gz" in str(raised.value)
    with pytest.raises(gm.FormatError, match="no games"):
        gm.pack(tmp_path / "pack", tmp_path / "none")


def test_a_pack_of_something_else_is_never_written_over(tmp_path: Path) -> None:
    gm.generate("2048", tmp_path / "logs", games=2, seed=3)
    gm.generate("chess", tmp_path / "games", games=2, seed=3)
    for name in ("logs", "games"):
        for pack in ("one", "two"):
            gm.pack(tmp_path / name, tmp_path / f"{name}-{pack}")
    for name, other in (("logs", "games"), ("games", "logs")):
        there = tmp_path / f"{other}-one"
        before = {path.name: path.read_bytes() for path in there.iterdir()}
        for existing in ("refuse", "overwrite", "append", "resume"):
            with pytest.raises(gm.ConfigError, match="something else"):
                gm.pack(tmp_path / name, there, existing=existing)
        for overwrite in (False, True):
            with pytest.raises(gm.ConfigError, match="something else"):
                gm.merge([tmp_path / f"{name}-one", tmp_path / f"{name}-two"], there, overwrite=overwrite)
        assert {path.name: path.read_bytes() for path in there.iterdir()} == before
