"""Episodes of RLDS that TFDS 4.9.10 wrote: 4, 6 and 3 steps, the second was cut, the third is the split `val`."""

import json
import struct
import subprocess
import sys
import tarfile
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import google_crc32c
import numpy as np
import pytest
from PIL import Image

import gristmill as gm
from gristmill.demos.own.opening import open_own
from gristmill.demos.own.rlds import _example

LENGTHS = [4, 6, 3]
DATA = Path(__file__).resolve().parent / "data/rlds-4.9.tar.xz"
TRAIN = "robot_set-train.tfrecord-00000-of-00001"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(DATA) as file:
        file.extractall(tmp_path, filter="data")
    return tmp_path / "rlds"


def masked(data: bytes) -> int:
    crc = google_crc32c.value(data)
    return int((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def unframed(path: Path) -> list[bytes]:
    """The records of a file; checksums are passed over."""
    data, found = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        found.append(data[12 : 12 + length])
        data = data[16 + length :]
    return found


def framed(path: Path, records: list[bytes]) -> None:
    heads = [struct.pack("<Q", len(one)) for one in records]
    path.write_bytes(
        b"".join(
            head + struct.pack("<I", masked(head)) + one + struct.pack("<I", masked(one))
            for head, one in zip(heads, records, strict=True)
        )
    )


def change(path: Path, what: Callable[[Any], object], record: int = 1) -> None:
    """Changes the features of a record."""
    records = unframed(path)
    example = _example().FromString(records[record])
    what(example.features.feature)
    records[record] = example.SerializeToString()
    framed(path, records)


def test_episodes_are_as_they_were_written(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data)
    assert (demos.lengths, demos.format) == (LENGTHS, "demo.own.rlds")
    assert [demos.truncated(i) for i in range(3)] == [False, True, False]
    for i, steps in enumerate(LENGTHS):
        one, t = demos[i], np.arange(steps)
        np.testing.assert_array_equal(one["obs.state"], np.stack([t * 0 + i, t, t * 0 + 0.5], 1))
        np.testing.assert_array_equal(one["acts"], np.stack([t, -t], 1))
        np.testing.assert_array_equal(one["rews"], t / 2)
        np.testing.assert_array_equal(one["grid"], np.arange(4).reshape(2, 2) + t[:, None, None])
        np.testing.assert_array_equal(one["obs.image"][:, 1], np.broadcast_to(t[:, None, None], (steps, 16, 24)))
        np.testing.assert_array_equal(one["obs.wrist"][:, 0, 0, 0], 10 * t)
        assert one["obs.image"].shape == (steps, 3, 16, 24)
        assert one["is_first"].tolist() == [True] + [False] * (steps - 1)
    said = demos.metadata
    assert said["splits"] == {"train": [0, 2], "val": [2, 3]}
    assert set(said["left_out"]) == {"language_instruction", "episode_metadata/file_path", "episode_metadata/seed"}
    assert gm.open(data / "robot_set-val*").lengths == LENGTHS[2:]
    assert gm.open(data / TRAIN).lengths == LENGTHS[:2]
    gm.pack(data, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    for name in demos.layout.names:
        if name:
            np.testing.assert_array_equal(pack.column(name), demos.column(name))
    mapped = gm.open(data, columns=tmp_path / "columns")
    assert isinstance(mapped.column("obs.image"), np.memmap)
    some = gm.open(data, fields={"obs": "observation/state", "acts": "action"})
    assert next(iter(gm.StepLoader([some], gm.pairs.BC, batch_size=4, seed=1)))["obs"].shape == (4, 3)
    assert gm.doctor(data).healthy


def test_depth_has_its_16_bits(data: Path) -> None:
    deep = np.arange(16 * 24, dtype=np.uint16).reshape(16, 24) * np.uint16(150)
    file = BytesIO()
    Image.fromarray(deep).save(file, format="PNG")
    features = json.loads((data / "features.json").read_text())
    image = features["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]["features"]
    image = image["observation"]["featuresDict"]["features"]["image"]["image"]
    image.update(dtype="uint16", shape={"dimensions": ["16", "24", "1"]})
    (data / "features.json").write_text(json.dumps(features))
    with pytest.raises(gm.FormatError, match=r"row 0: .*a picture of 8 bits; expected 16"):
        gm.open(data)
    for name in (TRAIN, TRAIN.replace("train", "val")):
        for record in range(len(unframed(data / name))):
            change(data / name, lambda found: put(found["steps/observation/image"], file.getvalue()), record)
    found = gm.open(data).column("obs.image")
    assert (found.dtype, found.shape) == (np.dtype(np.uint16), (sum(LENGTHS), 1, 16, 24))
    np.testing.assert_array_equal(found, np.broadcast_to(deep, found.shape))


def put(feature: Any, value: bytes) -> None:
    """Puts a picture in place of each one."""
    feature.bytes_list.value[:] = [value] * len(feature.bytes_list.value)


def test_commands_take_them(data: Path, tmp_path: Path) -> None:
    for words in (["inspect"], ["verify"], ["pack", str(tmp_path / "pack")]):
        line = [sys.executable, "-m", "gristmill", words[0], str(data), *words[1:], "--json"]
        told = json.loads(subprocess.run(line, capture_output=True, text=True, check=True).stdout)
        assert 3 in (told.get("chunks"), told.get("runs"))


def test_every_bit_of_a_file_is_checked(data: Path) -> None:
    path = data / TRAIN
    whole = path.read_bytes()
    for size in (0, 5, 12, 100, len(whole) - 1, len(whole) - 4):
        path.write_bytes(whole[:size])
        with pytest.raises(gm.FormatError) as caught:
            gm.open(data)
        assert caught.value.kind == "truncated"
        assert TRAIN in str(caught.value)
    for at in range(0, len(whole), 61):
        damaged = bytearray(whole)
        damaged[at] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(gm.FormatError, match=r"record [01] at byte \d+: corrupt: the checksum") as caught:
            gm.open(data)
        assert caught.value.offset is not None
    head = struct.pack("<Q", 1 << 60)
    path.write_bytes(head + struct.pack("<I", masked(head)) + whole)
    with pytest.raises(gm.FormatError, match="record 0 at byte 0: truncated: 1152921504606846976 bytes"):
        gm.open(data)
    path.write_bytes(whole)
    with pytest.raises(gm.FormatError, match="too_large"):
        open_own(data, max_bytes=2000)
    path.write_bytes(b"no records at all")
    with pytest.raises(gm.FormatError, match="is this a TFRecord file"):
        gm.open(data)
    path.unlink()
    with pytest.raises(FileNotFoundError):
        gm.open(data)


def test_records_that_are_missing_or_too_many(data: Path) -> None:
    path = data / TRAIN
    first, second = unframed(path)
    framed(path, [first])
    with pytest.raises(gm.FormatError, match=r"truncated: 1 episodes; dataset_info.json says 2"):
        gm.open(data)
    framed(path, [first, second, second])
    with pytest.raises(gm.FormatError, match=r"wrong_size: 3 episodes; dataset_info.json says 2"):
        gm.open(data)
    framed(path, [first, b"\xff\xff\xff"])
    with pytest.raises(gm.FormatError, match=r"episode 1: corrupt: no tf.train.Example"):
        gm.open(data)


def feature(**value: Any) -> Any:
    cls = _example()().features.feature["x"].__class__
    made = cls()
    for kind, values in value.items():
        getattr(made, kind).value.extend(values)
    return made


@pytest.mark.parametrize(
    ("key", "value", "kind", "says"),
    [
        ("action", None, "missing", "`action`: missing: features.json lists it, the record lacks it"),
        ("action", {"float_list": [1.0] * 11}, "wrong_size", "11 values; features.json says [2] for each step"),
        ("action", {"float_list": [1.0] * 10}, "wrong_size", "`is_terminal`: wrong_size: 6 rows; `action` has 5"),
        ("action", {"int64_list": [1] * 12}, "wrong_size", "int64_list; features.json says float32"),
        ("action", {}, "wrong_size", "None; features.json says float32"),
        ("action", {"float_list": [float("nan")] * 12}, "out_of_range", "not a number (NaN) in step 0"),
        ("is_terminal", {"int64_list": [0, 0, 2, 0, 0, 1]}, "wrong_size", "2 in step 2; features.json says bool"),
        ("observation/image", {"bytes_list": [b"x"] * 6}, "corrupt", "`observation/image`: corrupt: row 0: cannot"),
        ("observation/image", {"int64_list": [1]}, "wrong_size", "int64_list; features.json says pictures"),
        ("observation/more", {"float_list": [1.0] * 6}, "unsupported", "features.json does not list it"),
    ],
)
def test_records_that_disagree_with_the_features(data: Path, key: str, value: Any, kind: str, says: str) -> None:
    def put(features: Any) -> None:
        if value is None:
            del features[f"steps/{key}"]
        if value is not None:
            features[f"steps/{key}"].CopyFrom(feature(**value))

    change(data / TRAIN, put)
    with pytest.raises(gm.FormatError) as caught:
        gm.open(data)
    assert caught.value.kind == kind, str(caught.value)
    assert says in str(caught.value)
    assert f"{TRAIN}: episode 1" in str(caught.value)


def said(data: Path, name: str, put: Callable[[dict[str, Any]], object]) -> None:
    path = data / name
    found = json.loads(path.read_text())
    put(found)
    path.write_text(json.dumps(found))


def test_documents_that_say_something_else(data: Path) -> None:
    def steps(found: dict[str, Any]) -> dict[str, Any]:
        inner: dict[str, Any] = found["featuresDict"]["features"]["steps"]["sequence"]["feature"]["featuresDict"]
        found = inner["features"]
        assert isinstance(found, dict)
        return found

    whole = {name: (data / name).read_text() for name in ("features.json", "dataset_info.json")}
    unknown = {"shape": {"dimensions": ["-1", "-1", "3"]}, "dtype": "uint8"}
    said(data, "features.json", lambda found: steps(found)["observation"]["featuresDict"]["features"].update(
        image={"image": unknown}
    ))  # fmt: skip
    assert gm.open(data).layout.dtype["obs.image"].shape == (3, 16, 24)
    for name, put, kind, says in (
        ("features.json", lambda found: found["featuresDict"]["features"].pop("steps"), "unsupported", "`steps`"),
        ("features.json", lambda found: found.clear(), "unsupported", "expected the features of episodes"),
        ("dataset_info.json", lambda found: found.update(fileFormat="riegeli"), "unsupported", "riegeli"),
        ("dataset_info.json", lambda found: found.update(name="../x"), "forbidden", "the name of a file beside it"),
        ("dataset_info.json", lambda found: found.update(splits=[]), "empty", "no files"),
        ("dataset_info.json", lambda found: found.update(splits=[3]), "corrupt", "`shardLengths`"),
    ):
        said(data, name, put)
        with pytest.raises(gm.FormatError) as caught:
            gm.open(data)
        assert caught.value.kind == kind, str(caught.value)
        assert says in str(caught.value)
        for document, text in whole.items():
            (data / document).write_text(text)
    (data / "features.json").write_text("{")
    with pytest.raises(gm.FormatError, match="no JSON"):
        gm.open(data)
