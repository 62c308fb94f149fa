"""Data of one's own that cannot be: refused in words that say where, what was expected and what to do."""

import io
import os
import pickle
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.demos.own.opening import open_own

GOOD: dict[str, Any] = {"observations": np.zeros((4, 2)), "actions": np.zeros(4), "terminals": np.array([0, 1, 0, 1])}

#: What is changed of good arrays, the kind of the error, and what it says.
FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("short actions", {"actions": np.zeros(3)}, "wrong_size", "`observations`: wrong_size: 4 rows; `actions` has 3"),
    ("no end", {"terminals": None}, "missing", "nothing says where episodes end"),
    ("NaN", {"observations": np.array([[0, 0], [0, np.nan], [0, 0], [0, 0]])}, "out_of_range", "NaN) in step 1; leave"),
    ("NaN in ends", {"terminals": np.array([0, np.nan, 0, 1])}, "out_of_range", "`terminals`: out_of_range: not a num"),
    ("half an end", {"terminals": np.array([0, 0.5, 0, 1])}, "out_of_range", "0.5 at step 1; expected 0 or 1"),
    ("ends of pairs", {"terminals": np.zeros((4, 2))}, "wrong_size", "expected one value for each of 4 steps"),
    ("no steps", {name: array[:0] for name, array in GOOD.items()}, "empty", "no steps, and so no episode"),
    (
        "lengths",
        {"terminals": None, "episode_lengths": np.array([2, 3])},
        "wrong_size",
        "they sum to 5; there are 4 steps",
    ),
    ("no lengths", {"terminals": None, "episode_lengths": np.array([], int)}, "wrong_size", "no episodes"),
    ("a zero", {"terminals": None, "episode_lengths": np.array([4, 0])}, "wrong_size", "episode 1 has 0 steps"),
    ("again", {"terminals": None, "episode_index": np.array([1, 2, 2, 1])}, "corrupt", "episode 1 begins twice"),
    ("complex", {"actions": np.zeros(4, complex)}, "unsupported", "elements of type complex128; expected numbers"),
    ("texts", {"actions": np.array(["a"] * 4)}, "unsupported", "expected numbers or truth values"),
    ("empty rows", {"observations": np.zeros((4, 0))}, "unsupported", "rows without a value"),
    ("one value", {"actions": np.float64(3)}, "unsupported", "one value; expected a row for each step"),
    (
        "no names",
        {"observations": None, "actions": None, "x": np.zeros(4)},
        "unknown_format",
        "found: `terminals`, `x`",
    ),
]


def npz(path: Path, found: dict[str, Any]) -> None:
    np.savez(path, **found)


def pickled(path: Path, found: dict[str, Any]) -> None:
    path.write_bytes(pickle.dumps(found))


def npy(path: Path, found: dict[str, Any]) -> None:
    path.mkdir()
    for name, array in found.items():
        np.save(path / f"{name}.npy", array)


def hdf5(path: Path, found: dict[str, Any]) -> None:
    with pytest.importorskip("h5py").File(path, "w") as file:
        for name, array in found.items():
            file[name] = array


WRITERS: dict[str, Callable[[Path, dict[str, Any]], None]] = {"x.npz": npz, "x.pkl": pickled, "x": npy, "x.h5": hdf5}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("change", "kind", "says"), [row[1:] for row in FAULTS], ids=[row[0] for row in FAULTS])
def test_faults_are_named(tmp_path: Path, name: str, change: dict[str, Any], kind: str, says: str) -> None:
    texts = any(getattr(array, "dtype", np.dtype(int)).kind == "U" for array in change.values())
    if name == "x.h5" and texts:
        pytest.skip("h5py writes no such texts")
    path = tmp_path / name
    WRITERS[name](path, {field: array for field, array in {**GOOD, **change}.items() if array is not None})
    # Without a name that tells, the file says of which form it could be.
    with pytest.raises(gm.FormatError) as caught:
        gm.open(path, fields=None if "x" not in change else {"obs": "y"})
    if "x" in change:
        assert "there is no `y`" in str(caught.value)
        return
    assert caught.value.kind == kind, str(caught.value)
    expected = "expected numbers" if name == "x.h5" and kind == "unsupported" and "expected numbers" in says else says
    assert expected in str(caught.value)
    with pytest.raises(gm.FormatError):
        gm.pack(path, tmp_path / "pack")
    assert not (tmp_path / "pack").exists()


@pytest.mark.parametrize(
    ("lengths", "fields", "says"),
    [
        ([2, 3], {"obs": np.zeros(4)}, "`obs` has 4 rows; the lengths sum to 5 steps"),
        ([], {"obs": np.zeros(0)}, "lengths: no episodes"),
        ([4, 0], {"obs": np.zeros(4)}, "episode 1 has 0 steps; expected a whole number from 1 on"),
        ([5, -1], {"obs": np.zeros(4)}, "episode 1 has -1 steps"),
        ([2.5, 1.5], {"obs": np.zeros(4)}, "expected whole numbers"),
        ([np.nan, 4], {"obs": np.zeros(4)}, "expected whole numbers"),
        ([2**62, 2**62, 4], {"obs": np.zeros(4)}, "the lengths sum to 9223372036854775812 steps"),
        ([[2, 2]], {"obs": np.zeros(4)}, "expected one number for each episode"),
        (4, {"obs": np.zeros(4)}, "expected one number for each episode"),
        (["4"], {"obs": np.zeros(4)}, "expected whole numbers"),
        ([True, True], {"obs": np.zeros(2)}, "expected whole numbers"),
        ([4], {}, "no field but ends of episodes"),
        ([4], {"dones": np.zeros(4)}, "no field but ends of episodes"),
        ([4], {"obs": 3.0}, "`obs` is one value; the lengths sum to 4 steps"),
        ([2], {"obs": [[1, 2], [3]]}, "rows of different shapes"),
        ([2], {"obs": np.array([None, {}])}, "Python objects; expected numbers"),
        ([2], {"obs": np.array([0, np.nan])}, "NaN) in step 1"),
        ([2], {"obs": np.zeros(2), "observations": np.zeros(2)}, "two of the fields would be `obs`"),
        ([2], {"obs": np.zeros(2), "terminals": np.array([0, 7])}, "7 at step 1; expected 0 or 1"),
    ],
)
def test_arrays_that_cannot_be(lengths: Any, fields: Any, says: str) -> None:
    with pytest.raises(gm.ConfigError) as caught:
        gm.demos.from_arrays(lengths, fields)
    assert says in str(caught.value)


def test_what_is_no_mapping_of_names() -> None:
    with pytest.raises(TypeError, match="fields is a mapping of names to arrays"):
        gm.demos.from_arrays([2], [np.zeros(2)])  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="truncated: expected true or false for each of 1 episodes"):
        gm.demos.from_arrays([2], {"obs": np.zeros(2)}, truncated=[True, False])
    demos = gm.demos.from_arrays([2], {"obs": np.array([0, np.nan])}, nan=True)
    assert np.isnan(demos[0]["obs"][1])
    huge = np.broadcast_to(np.float32(0), (1 << 40, 3))
    with pytest.raises(gm.ConfigError, match="`obs` has 1099511627776 rows"):
        gm.demos.from_arrays([3], {"obs": huge})


def member(shape: str, data: bytes = b"") -> bytes:
    """An `.npy` that says it has a shape."""
    header = f"{{'descr': '<f8', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (-(len(header) + 11) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data


@pytest.mark.parametrize(
    "shape", ["(1099511627776, 1099511627776)", "(-1,)", "(1000000,)", "(9,)", "('x',)", "(2", "()"]
)
def test_shapes_that_the_bytes_do_not_have(tmp_path: Path, shape: str) -> None:
    data = bytes(64)
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as file:
        file.writestr("observations.npy", member(shape, data))
        file.writestr("terminals.npy", member("(8,)", data))
    (tmp_path / "x").mkdir()
    (tmp_path / "x/observations.npy").write_bytes(member(shape, data))
    (tmp_path / "x/terminals.npy").write_bytes(member("(8,)", data))
    for name in ("x.npz", "x"):
        with pytest.raises(gm.FormatError) as caught:
            gm.open(tmp_path / name)
        assert caught.value.kind in ("truncated", "wrong_size", "corrupt", "unsupported")
        assert "observations" in str(caught.value)


def test_archives_that_unpack_to_more_than_they_can_hold(tmp_path: Path) -> None:
    made = io.BytesIO()
    np.savez_compressed(made, observations=np.zeros((1 << 16, 64)), terminals=np.ones(1 << 16))
    data = bytearray(made.getvalue())
    path = tmp_path / "x.npz"
    path.write_bytes(data[: len(data) // 2])
    with pytest.raises(gm.FormatError):
        gm.open(path)
    path.write_bytes(data)
    assert gm.open(path).num_frames == 1 << 16
    with pytest.raises(gm.FormatError, match=r"too_large: 33554432 bytes, the bound is 1000000"):
        open_own(path, max_bytes=1_000_000)
    data[len(data) // 3] ^= 0xFF
    path.write_bytes(data)
    with pytest.raises(gm.FormatError):
        gm.open(path)


def test_objects_are_never_unpickled(tmp_path: Path) -> None:
    class Bad:
        def __reduce__(self) -> Any:
            return os.mkdir, (str(tmp_path / "run"),)

    objects = np.array([Bad(), Bad()], dtype=object)
    np.savez(tmp_path / "x.npz", observations=objects, actions=np.zeros(2), terminals=np.array([0, 1]))
    (tmp_path / "y.pkl").write_bytes(pickle.dumps({"observations": objects, "actions": np.zeros(2)}))
    with pytest.raises(gm.FormatError, match=r"`observations.*Python objects"):
        gm.open(tmp_path / "x.npz")
    with pytest.raises(gm.FormatError):
        gm.open(tmp_path / "y.pkl")
    assert not (tmp_path / "run").exists()


def test_hdf5_that_leads_elsewhere_or_is_damaged(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    path = tmp_path / "x.hdf5"
    with h5py.File(path, "w") as file:
        file["actions"] = np.zeros(4)
        file["observations"] = h5py.ExternalLink("/etc/passwd", "x")
    with pytest.raises(gm.FormatError, match="`/observations`: forbidden: a link to another place"):
        gm.open(path)
    with h5py.File(path, "w") as file:
        file.create_dataset("observations", (1 << 40, 64), chunks=(1024, 64), dtype="f8")
        file["actions"] = np.zeros(4)
    with pytest.raises(gm.FormatError, match="`/observations`: too_large"):
        gm.open(path)
    path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(gm.FormatError):
        gm.open(path)
    path.write_bytes(b"")
    with pytest.raises(gm.FormatError):
        gm.open(path)
    with pytest.raises(FileNotFoundError):
        gm.open(tmp_path / "none.hdf5")


def test_parquet_that_is_no_table_of_numbers(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "x.parquet"
    for column, says in {
        "gap": (pa.array([1.0, None, 2.0]), "`observations`: missing: no value in row 1"),
        "ragged": (pa.array([[1.0], [1.0, 2.0], [1.0]]), "lists of 1 to 2 values; expected as many in every row"),
        "texts": (pa.array(["a", "b", "c"]), "elements of type string; expected numbers"),
    }.values():
        parquet.write_table(pa.table({"observations": column, "dones": pa.array([False, True, True])}), path)
        with pytest.raises(gm.FormatError) as caught:
            gm.open(path)
        assert says in str(caught.value)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(gm.FormatError):
        gm.open(path)


def test_folders_that_are_no_data_set(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", **GOOD)
    np.savez(tmp_path / "b.npz", **{**GOOD, "observations": np.zeros((4, 3))})
    with pytest.raises(
        gm.FormatError, match=r"b.npz: wrong_size: .*obs float64\[3\].*; those before it have .*obs float64\[2\]"
    ):
        gm.open(tmp_path)
    (tmp_path / "b.npz").unlink()
    (tmp_path / "c.pkl").write_bytes(pickle.dumps(GOOD))
    with pytest.raises(gm.FormatError, match="files of several kinds: npz, pickle"):
        gm.open(tmp_path)
    with pytest.raises(gm.ConfigError, match="verify does not go with arrays"):
        gm.open(tmp_path / "a.npz", fields={"obs": "observations"}, verify="off")
    for fields in ({}, {"obs": ""}):
        with pytest.raises(gm.ConfigError, match="fields is empty"):
            gm.open(tmp_path / "a.npz", fields=fields)
    (tmp_path / "x.bin").write_bytes(b"x")
    with pytest.raises(gm.FormatError, match="no name of a file of arrays"):
        gm.open(tmp_path / "x.bin", fields={"obs": "x"})
