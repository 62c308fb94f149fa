"""Rows of any form become rows of another: in NumPy's eyes, and in those of pyarrow."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import exponents, make_rows, write_pack
from test_recording import play, record, vectors

import gristmill as gm

pa: Any = pytest.importorskip("pyarrow")
parquet: Any = pytest.importorskip("pyarrow.parquet")


def all_rows(folder: Path) -> np.ndarray[Any, Any]:
    rows = gm.open(folder)
    return np.array(rows.take(np.arange(len(rows))))


def table(folder: Path, to: str, name: str = "steps") -> Any:
    files = sorted(folder.glob(f"{name}*.{to}"))
    read = parquet.read_table if to == "parquet" else lambda path: pa.ipc.open_file(path).read_all()
    return pa.concat_tables([read(file) for file in files])


def test_packs_go_through_exponents_and_back(tmp_path: Path) -> None:
    rows = make_rows(6)
    write_pack(tmp_path / "pack", rows, shard_rows=50)
    done = gm.convert(tmp_path / "pack", tmp_path / "exponents", "exponents")
    assert (done.from_form, done.to, done.rows, done.lost, done.filled) == ("steps", "exponents", len(rows), [], [])
    found = all_rows(tmp_path / "exponents")
    assert found["exps"].tolist() == [exponents(row) for row in rows]
    for name in ("run_id", "step_index", "move_dir", "branch_evs", "board_eval", "ev_legal", "seed", "max_rank"):
        np.testing.assert_array_equal(found[name], rows[name])
    gm.convert(tmp_path / "exponents", tmp_path / "back", "packed46")
    np.testing.assert_array_equal(all_rows(tmp_path / "back"), rows.astype(all_rows(tmp_path / "back").dtype))
    with pytest.raises(gm.ConfigError, match="move_dir") as refused:
        gm.convert(tmp_path / "pack", tmp_path / "play", "self-play")
    assert refused.value.field == "lossy"
    gm.convert(tmp_path / "pack", tmp_path / "play", "self-play", lossy=True)
    np.testing.assert_array_equal(np.load(tmp_path / "play/steps-000001.npy")["exps"], found["exps"])


@pytest.mark.parametrize("to", ["parquet", "arrow"])
def test_self_play_and_what_is_joined_with_it_in_columns(tmp_path: Path, to: Any) -> None:
    rows = play(3, 50)
    record(tmp_path / "play", rows)
    scores = np.zeros(len(rows), [("run_id", "<u4"), ("step_index", "<u4"), ("score", "<f4", (2, 3))])
    scores["run_id"], scores["step_index"] = rows["run_id"], rows["step_idx"]
    scores["score"] = (rows["run_id"] * 1000 + rows["step_idx"])[:, None, None]
    np.save(tmp_path / "scores.npy", scores[::-1])
    done = gm.convert(tmp_path / "play", tmp_path / "out", to, join=[tmp_path / "scores"], shard_rows=70)
    assert (done.rows, done.files, done.sorted, done.to) == (150, 3, True, to)
    assert not list(tmp_path.glob(".*"))
    found = table(tmp_path / "out", to)
    expected = rows[np.lexsort((rows["step_idx"], rows["run_id"]))]
    assert found.column("run_id").to_pylist() == expected["run_id"].tolist()
    assert found.column("step_index").to_pylist() == expected["step_idx"].tolist()
    assert found.column("exps").to_pylist() == expected["exps"].tolist()
    assert found.column("embedding").to_pylist() == vectors(expected).tolist()
    assert [score[1][2] for score in found.column("score").to_pylist()] == [
        float(run * 1000 + step) for run, step in zip(expected["run_id"], expected["step_idx"], strict=True)
    ]
    runs = table(tmp_path / "out", to, "runs")
    assert runs.column("seed").to_pylist() == [2**63 + i for i in range(3)]
    assert json.loads(runs.schema.metadata[b"session"])["model_id"] == "v2"
    with pytest.raises(gm.ConfigError, match="something already"):
        gm.convert(tmp_path / "play", tmp_path / "out", to)
    gm.convert(tmp_path / "play", tmp_path / "out", to, overwrite=True)
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [f"runs.{to}", f"steps.{to}"]
    assert "score" not in table(tmp_path / "out", to).column_names


def test_columns_of_packs_name_their_valuations(tmp_path: Path) -> None:
    rows = make_rows(3)
    write_pack(tmp_path / "pack", rows)
    words = [
        sys.executable,
        "-m",
        "gristmill",
        "convert",
        str(tmp_path / "pack"),
        str(tmp_path / "out"),
        "--to",
        "parquet",
    ]
    looked = subprocess.run([*words, "--dry-run", "--json"], check=True, capture_output=True, text=True)
    assert json.loads(looked.stdout)["rows"] == len(rows)
    assert not (tmp_path / "out").exists()
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    assert f"holds {len(rows)} rows of 3 games as parquet" in done.stdout
    found = table(tmp_path / "out", "parquet")
    names = ["search", "tuple11", "tuple10"]
    assert found.column("valuation_type").to_pylist() == [names[i] for i in rows["valuation_type"]]
    assert found.column("branch_evs").to_pylist() == rows["branch_evs"].tolist()
    again = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (again.returncode, "--overwrite" in again.stderr) == (2, True)
    words[4] = str(tmp_path)
    assert subprocess.run(words, check=False, capture_output=True, text=True).returncode in (1, 2)
    words[4:6] = [str(tmp_path / "pack"), str(tmp_path / "new")]
    np.save(tmp_path / "pack/steps.npy", np.concatenate([rows, rows[:1]]))
    damaged = subprocess.run(words, check=False, capture_output=True, text=True)
    assert (damaged.returncode, "more" in damaged.stderr or "twice" in damaged.stderr) == (1, True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "pack"]
