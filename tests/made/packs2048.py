"""Small packs of 2048 rows, written with NumPy and sqlite3 alone; and the classes of rows, in plain Python."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import numpy as np

FIELDS: list[Any] = [
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
]
STEP, PACKED = np.dtype(FIELDS, align=True), np.dtype(FIELDS)

TYPES = {"search": 0, "tuple11": 1, "tuple10": 2}


def tile(rank: int) -> int:
    return rank << rank


def line(ranks: list[int]) -> int:
    score = tile(ranks[0])
    for a, b in zip(map(tile, ranks), map(tile, ranks[1:]), strict=False):
        score += a + b if a > b else 3 * a if a == b else 12 * (a - b)
    return score


def board_eval(exps: list[int]) -> int:
    rows = [exps[4 * i : 4 * i + 4] for i in range(4)]
    return sum(map(line, rows)) + sum(line([row[i] for row in rows]) for i in range(4))


def exponents(row: Any) -> list[int]:
    mask = int(row["tile_65536_mask"])
    return [16 if mask >> i & 1 else int(row["board"]) >> (60 - 4 * i) & 15 for i in range(16)]


def make_rows(runs: int, steps: int = 30, seed: int = 0) -> np.ndarray[Any, Any]:
    """Random rows that every encoder can encode; run i has `steps + i % 5` of them."""
    rng = np.random.default_rng(seed)
    rows = np.zeros(sum(steps + i % 5 for i in range(runs)), STEP)
    at = 0
    for run in range(runs):
        for step in range(steps + run % 5):
            row = rows[at]
            exps = rng.integers(0, 12, 16).tolist()
            if step % 7 == 0:
                exps[int(rng.integers(16))] = 16
            kind = int(rng.integers(3))
            legal = int(rng.integers(1, 16))
            move = int(rng.choice([i for i in range(4) if legal >> i & 1]))
            value = board_eval(exps)
            searched, looked_up = (value + rng.integers(-3000, 3000, 4)) / 1000, rng.integers(0, 16001, 4) / 16000
            evs = searched if kind == 0 else looked_up
            evs[[i for i in range(4) if not legal >> i & 1]] = 0
            if step % 5 == 0:
                evs[:] = evs[move]
            row["run_id"], row["step_index"], row["seed"] = run, step, 500 + run
            row["board"] = sum(min(e, 15) << (60 - 4 * i) for i, e in enumerate(exps))
            row["tile_65536_mask"] = sum((e > 15) << i for i, e in enumerate(exps))
            row["board_eval"], row["move_dir"], row["valuation_type"] = value, move, kind
            row["ev_legal"], row["max_rank"], row["branch_evs"] = legal, max(exps), evs
            at += 1
    return rows


def write_pack(
    folder: Path, rows: np.ndarray[Any, Any], *, packed: bool = False, shard_rows: int | None = None
) -> Path:
    """A pack of these rows."""
    folder.mkdir(parents=True)
    stored = rows.astype(PACKED) if packed else rows
    if shard_rows is None:
        np.save(folder / "steps.npy", stored)
    for i in range(0, len(rows) if shard_rows else 0, shard_rows or 1):
        np.save(folder / f"steps-{i // (shard_rows or 1):05}.npy", stored[i : i + (shard_rows or 0)])
    (folder / "valuation_types.json").write_text(json.dumps(TYPES))
    db = sqlite3.connect(folder / "metadata.db")
    db.execute("PRAGMA journal_mode=WAL")
    db.execute(
        "CREATE TABLE runs(id INTEGER PRIMARY KEY, seed BIGINT NOT NULL, steps INT NOT NULL, max_score INT NOT NULL, "
        "highest_tile INT NOT NULL)"
    )
    ids, counts = np.unique(rows["run_id"], return_counts=True)
    values = [(int(i), 500 + int(i), int(n), int(i) * 100, 2048) for i, n in zip(ids, counts, strict=True)]
    db.executemany("INSERT INTO runs VALUES(?, ?, ?, ?, ?)", values)
    db.commit()
    db.close()
    return folder


def write_tokenizer(path: Path, bins: int = 4) -> Path:
    """A tokenizer with edges of no particular meaning."""
    edges = {"search": -4000.0, "tuple10": -1.0, "tuple11": -0.7}
    spec: dict[str, Any] = {
        "tokenizer_type": "macroxue_ev_advantage_v2",
        "version": 2,
        "num_bins": bins,
        "vocab_order": ["ILLEGAL", "FAILURE", *(f"BIN_{i}" for i in range(bins)), "WINNER"],
        "valuation_types": sorted(edges),
        "metadata": {},
    }
    for name, least in edges.items():
        spec[name] = {"bin_edges": [least * ((bins - i) / bins) ** 2 for i in range(bins + 1)]}
    spec["search"]["failure_cutoff"] = -1500
    path.write_text(json.dumps(spec))
    return path


def classes(spec: dict[str, Any], row: Any, exps: list[int], evs: list[float], legal: int, move: int) -> list[int]:
    """The classes of a row shown as `exps`, by the published rules, straight from the text."""
    names = {number: name for name, number in TYPES.items()}
    name = names[int(row["valuation_type"])]
    edges, n = spec[name]["bin_edges"], spec["num_bins"]
    if name == "search":
        scaled = [float(np.rint(ev * 1000)) - board_eval(exps) for ev in evs]
        fails = [value < spec["search"]["failure_cutoff"] for value in scaled]
    else:
        scaled, fails = evs, [ev <= 1e-9 for ev in evs]
    out = []
    for i in range(4):
        d = scaled[i] - scaled[move]
        tie = abs(d) <= (0.5 if name == "search" else 1e-9)
        illegal = not legal >> i & 1
        if i == move:
            out.append(2 + n)
        elif illegal and name == "search":
            out.append(0)
        elif tie or illegal:
            out.append(1 + n)
        elif fails[i]:
            out.append(1)
        else:
            out.append(2 + min(max(sum(edge <= d for edge in edges) - 1, 0), n - 1))
    return out
