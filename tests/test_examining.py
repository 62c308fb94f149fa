"""`doctor` from Python and by the command, over what the engine reads and over what Python alone reads."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from minari_sets import record

import gristmill as gm

# Minari leaves temporary folders to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning")


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch) -> Path:
    """The command that is built; it takes this Python."""
    monkeypatch.setenv("GRISTMILL_PYTHON", sys.executable)
    built = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[1] / "target"))
    there = [path for path in (built / "debug/gristmill", built / "release/gristmill") if path.exists()]
    if not there:
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    return max(there, key=lambda path: path.stat().st_mtime)


def found(data: Path | str, **options: Any) -> dict[str, dict[str, Any]]:
    """What a doctor finds, by check."""
    return {one["check"]: one for one in gm.doctor(data, **options).findings}


def by_command(command: Path, *words: object) -> dict[str, Any]:
    """What the command says of the same."""
    ran = subprocess.run([command, "doctor", *map(str, words), "--json"], capture_output=True, text=True, check=False)
    said: dict[str, Any] = json.loads(ran.stdout)
    assert ran.returncode == (0 if said["healthy"] else 1), ran.stderr
    return said


def arrays(lengths: list[int], seed: int = 0) -> dict[str, np.ndarray]:
    """Sound trajectories of random numbers."""
    draws, steps = np.random.default_rng(seed), sum(lengths)
    ends = np.zeros(steps, bool)
    ends[np.cumsum(lengths) - 1] = True
    return {
        "observations": draws.normal(size=(steps, 4)).astype(np.float32),
        "actions": draws.integers(0, 5, steps),
        "rewards": draws.normal(size=steps).astype(np.float32),
        "terminals": ends,
    }


def write_hdf5(path: Path, columns: dict[str, np.ndarray]) -> Path:
    with h5py.File(path, "w") as file:
        for name, column in columns.items():
            file[name] = column
    return path


def test_games_are_examined_as_the_command_does(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "games", games=4, seed=3)
    report = gm.doctor(tmp_path / "games")
    assert (report.healthy, report.chunks, report.findings) == (True, 4, [])
    assert repr(report).startswith("Diagnosis(healthy: ")
    first = sorted((tmp_path / "games").iterdir())[0]
    (tmp_path / "games" / "training.77.gz").write_bytes(first.read_bytes())
    assert list(found(tmp_path / "games")) == ["duplicates"]
    assert list(found(first, held_out=[tmp_path / "games"])) == ["leakage"]
    with pytest.raises(FileNotFoundError, match="nowhere"):
        gm.doctor(first, held_out=[tmp_path / "nowhere"])


@pytest.mark.parametrize("form", ["hdf5", "arrow"])
def test_a_minari_data_set_is_examined_in_its_own_places(tmp_path: Path, form: str, command: Path) -> None:
    data = record(tmp_path, f"some/every-{form}-v0", form, 11)
    report = gm.doctor(data)
    assert (report.formats, report.chunks) == ({f"demo.minari.{form}": 1}, 11)
    assert report.frames == sum(1 + e % 4 for e in range(11))
    assert report.other_files == 0
    assert report.sizes["files"] == sum(path.stat().st_size for path in data.rglob("*") if path.is_file())
    assert report.epoch is not None
    assert report.epoch["workers"] == 1
    said = by_command(command, data)
    assert said["findings"] == report.findings
    # The folder of all data sets holds the same.
    above = gm.doctor(data.parent)
    assert (above.chunks, above.formats) == (11, report.formats)
    assert [one["check"] for one in above.findings] == [one["check"] for one in report.findings]


def test_an_episode_that_cannot_be_read_is_named_and_the_others_are_examined(tmp_path: Path) -> None:
    data = record(tmp_path, "some/torn-v0", "arrow", 6)
    part = data / "data" / "2" / "part-0.arrow"
    part.write_bytes(part.read_bytes()[:200])
    report = gm.doctor(data)
    assert report.chunks == 5
    (damage,) = (one for one in report.findings if one["check"] == "damaged")
    assert damage["count"] == 1
    assert (damage["first"][0]["file"], damage["first"][0]["chunk"]) == (str(data), 2)


def test_copies_and_leaks_are_named_by_data_set_and_episode(tmp_path: Path, command: Path) -> None:
    columns = arrays([5, 6, 7])
    again = {name: np.concatenate([column, column[5:11]]) for name, column in columns.items()}
    twice = write_hdf5(tmp_path / "twice.hdf5", again)
    copies = found(twice)["duplicates"]
    place = copies["first"][0]
    assert (copies["count"], place["file"], place["chunk"]) == (1, str(twice), 3)
    assert f"chunk 1 of {twice}" in place["detail"]
    assert place["member"] is None
    assert place["offset"] is None
    other = tmp_path / "held.parquet"
    held = {**arrays([4], seed=9)}
    joined = {name: np.concatenate([column, columns[name][5:11]]) for name, column in held.items()}
    table = {name: list(column) if column.ndim > 1 else column for name, column in joined.items()}
    pq.write_table(pa.table(table), other)
    leak = found(twice, held_out=[other])["leakage"]
    assert leak["first"][0]["file"] == str(other)
    assert leak["first"][0]["chunk"] == 1
    assert f"chunk 1 of {twice}" in leak["first"][0]["detail"]
    said = by_command(command, twice, "--held-out", other)
    assert {one["check"] for one in said["findings"]} == {"duplicates", "leakage"}


def test_signs_of_arrays_and_names_of_fields(tmp_path: Path, command: Path) -> None:
    columns = arrays([40, 40])
    columns["actions"][:] = 3
    columns["observations"][:40] = 1.0
    mine = {"states": columns["observations"], "moves": columns["actions"], "terminals": columns["terminals"]}
    path = tmp_path / "mine.npz"
    np.savez(path, allow_pickle=False, **mine)
    fields = {"obs": "states", "acts": "moves"}
    signs = found(path, fields=fields)
    assert set(signs) == {"frozen_values", "frozen_frames"}
    assert signs["frozen_frames"]["first"][0]["chunk"] == 0
    said = by_command(command, path, "--fields", "obs=states,acts=moves")
    assert {one["check"] for one in said["findings"]} == set(signs)
    page = tmp_path / "report.html"
    words: list[str | Path] = [command, "doctor", path, "--fields", "obs=states,acts=moves", "--html", page]
    ran = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (ran.returncode, "frozen_frames" in ran.stdout) == (1, True)
    assert str(path) in page.read_text()
    assert "gristmill-doctor-" not in page.read_text() + ran.stdout
    nothing = found(write_hdf5(tmp_path / "odd.hdf5", {"weights": np.zeros((3, 3))}))
    assert len(nothing) == 1
    wrong = subprocess.run([*words[:3], "--fields", "obs"], capture_output=True, text=True, check=False)
    assert (wrong.returncode, "FIELD=NAME" in wrong.stderr) == (2, True)


def test_an_end_without_an_end_and_nothing_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    data = record(tmp_path, "some/cut-v0", "hdf5", 3)
    with h5py.File(data / "data" / "main_data.hdf5", "r+") as file:
        group = file["episode_1"]
        for name in ("terminations", "truncations"):
            group[name][-1] = False
    endless = found(data)["no_end"]
    assert (endless["first"][0]["file"], endless["first"][0]["chunk"]) == (str(data), 1)
    assert os.listdir(tmp_path / "temporary") == []
