"""Trajectories that `imitation` 1.0.1 saved by `datasets` 4.8.5: 4, 6 and 3 steps, the second was cut."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import gristmill as gm
from gristmill.demos.own.opening import open_own

LENGTHS = [4, 6, 3]
DATA = Path(__file__).resolve().parent / "data/imitation-1.0.tar.xz"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(DATA) as file:
        file.extractall(tmp_path, filter="data")
    return tmp_path / "imitation"


def observations(episode: int) -> np.ndarray:
    """One more than there are steps."""
    steps = LENGTHS[episode] + 1
    return np.arange(steps * 3, dtype=np.float32).reshape(steps, 3) + np.float32(100 * episode)


def rewrite(path: Path, **columns: Any) -> None:
    """Puts other columns into the file, or leaves them out where they are `None`."""
    with pa.OSFile(str(path), "rb") as file:
        table = pa.ipc.open_stream(file).read_all()
    for name, values in columns.items():
        table = table.drop_columns([name]) if name in table.column_names else table
        if values is not None:
            table = table.append_column(name, pa.array(values))
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        for row in range(len(table)):
            writer.write_table(table.slice(row, 1))


def test_episodes_are_as_they_were_saved(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data)
    assert (demos.lengths, demos.format) == (LENGTHS, "demo.own.imitation")
    assert [demos.truncated(i) for i in range(3)] == [False, True, False]
    for i, steps in enumerate(LENGTHS):
        np.testing.assert_array_equal(demos[i]["obs"], observations(i)[:-1])
        np.testing.assert_array_equal(demos[i]["next_obs"], observations(i)[1:])
        np.testing.assert_array_equal(demos[i]["acts"], np.arange(steps) % 4)
        np.testing.assert_array_equal(demos[i]["rews"], np.arange(steps) / 2)
    assert demos.metadata["left_out"] == {"infos": "unsupported"}
    gm.pack(data, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    for name in ("obs", "next_obs", "acts", "rews", "dones", "truncated"):
        np.testing.assert_array_equal(pack.column(name), demos.column(name))
    batch = next(iter(gm.StepLoader([demos], gm.pairs.GAIL, batch_size=4, seed=1)))
    np.testing.assert_array_equal(batch["next_obs"], batch["obs"] + 3)
    mapped = gm.open(data, columns=tmp_path / "columns")
    assert isinstance(mapped.column("obs"), np.memmap)
    assert gm.doctor(data).healthy


def test_commands_take_them(data: Path, tmp_path: Path) -> None:
    for words in (["inspect"], ["verify"], ["stats"], ["pack", str(tmp_path / "pack")]):
        line = [sys.executable, "-m", "gristmill", words[0], str(data), *words[1:], "--json"]
        told = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        assert 3 in (told.get("chunks"), told.get("runs"), told.get("demos", {}).get("trajectories"))


@pytest.mark.parametrize(
    ("columns", "kind", "says"),
    [
        ({"acts": None}, "unknown_format", "expected those of trajectories of imitation, obs, acts, terminal"),
        ({"obs": [1.0, 2.0, 3.0]}, "unknown_format", "takes a data set with a row for each step"),
        ({"terminal": ["a", "b", "c"]}, "unsupported", "`terminal`: unsupported: string; expected true or false"),
        ({"terminal": [True, None, True]}, "missing", "episode 1: `terminal`: missing: no value"),
        ({"acts": [[0] * 4, None, [0] * 3]}, "missing", "episode 1: `acts`: missing: no value"),
        ({"acts": [[0] * 4, [0] * 5, [0] * 3]}, "wrong_size", "episode 1: `obs`: wrong_size: 7 rows; `acts` has 5"),
        ({"acts": [[0] * 4, [0] * 5 + [None], [0] * 3]}, "missing", "episode 1: `acts`: missing: no value in row 5"),
        ({"acts": [[0] * 4, [], [0] * 3], "rews": None}, "wrong_size", "episode 1: `obs`: wrong_size: 7 rows"),
        ({"rews": [[1.0] * 4, [1.0] * 5 + [float("nan")], [1.0] * 3]}, "out_of_range", "not a number (NaN) in step 5"),
        ({"acts": [["a"] * 4, ["a"] * 6, ["a"] * 3]}, "unsupported", "`acts`: unsupported: elements of type string"),
    ],
)
def test_rows_that_are_no_episodes(data: Path, columns: dict[str, Any], kind: str, says: str) -> None:
    rewrite(data / "data-00000-of-00001.arrow", **columns)
    with pytest.raises(gm.FormatError) as caught:
        gm.open(data)
    assert caught.value.kind == kind
    assert says in str(caught.value)


def test_a_file_that_is_cut_or_has_more_behind_it(data: Path) -> None:
    path = data / "data-00000-of-00001.arrow"
    rewrite(path)
    whole = path.read_bytes()
    assert gm.open(data).lengths == LENGTHS
    # Cut behind each message, too: what is left is a stream that lacks its end alone.
    for size in range(0, len(whole), 8):
        path.write_bytes(whole[:size])
        with pytest.raises(gm.FormatError) as caught:
            gm.open(data)
        assert caught.value.kind in ("truncated", "corrupt"), str(caught.value)
    path.write_bytes(whole + whole)
    with pytest.raises(gm.FormatError, match="the stream does not end where the file does, 3 episodes were read"):
        gm.open(data)
    path.write_bytes(whole)
    with pytest.raises(gm.FormatError, match="too_large"):
        open_own(data, max_bytes=20)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        gm.open(data)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("{", "corrupt"),
        ("[]", "corrupt"),
        ('{"_data_files": 3}', "corrupt"),
        ('{"_data_files": []}', "empty"),
        ('{"_data_files": [{"filename": "../x.arrow"}]}', "forbidden"),
        ('{"_data_files": [{"filename": 3}]}', "forbidden"),
    ],
)
def test_a_list_of_files_that_is_none(data: Path, text: str, kind: str) -> None:
    (data / "state.json").write_text(text)
    with pytest.raises(gm.FormatError) as caught:
        gm.open(data)
    assert caught.value.kind == kind
    assert "state.json" in str(caught.value)
