"""Shards without pickles: read back to the bit, and taken by loaders that trust no pickle."""

import io
import json
import os
import subprocess
import sys
import tarfile
from collections import OrderedDict, deque
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_convert_demos import binary
from test_demos_writer import META, check, frames

import gristmill as gm
from gristmill.demos import ShardWriter, write_frames


def members(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as tar:
        return {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]


def columns_and_extras(demos: Any) -> Any:
    extras = [demos.extras(i) for i in range(len(demos))]
    return demos.lengths, {name: demos.column(name) for name in demos.layout.names}, extras


def assert_same(one: Any, other: Any) -> None:
    """Equal to type and bit, however deep."""
    assert type(one) is type(other)
    if isinstance(one, dict):
        assert list(one) == list(other)
        assert [type(key) for key in one] == [type(key) for key in other]
        for key, value in one.items():
            assert_same(value, other[key])
    elif isinstance(one, list | tuple | deque):
        assert len(one) == len(other)
        for mine, theirs in zip(one, other, strict=True):
            assert_same(mine, theirs)
    elif isinstance(one, np.ndarray | np.generic):
        assert (one.dtype, one.shape, one.tobytes()) == (other.dtype, other.shape, other.tobytes())
    elif isinstance(one, float):
        assert np.float64(one).tobytes() == np.float64(other).tobytes()
    else:
        assert one == other


@pytest.mark.parametrize("name", ["demos.tar.zst", "demos.tar", "demos.tgz"])
def test_what_is_written_without_pickles_reads_back(tmp_path: Path, name: str) -> None:
    known = frames([7, 1, 5])
    (path,) = write_frames(tmp_path / name, META, known, members="npy")
    demos = gm.open(path)
    assert demos.lengths == [7, 1, 5]
    check(demos, known)
    (other,) = write_frames(tmp_path / f"pickled-{name}", META, known)
    pickled = gm.open(other)
    assert demos.layout == pickled.layout
    for one, two in zip(demos, pickled, strict=True):
        assert one.tobytes() == two.tobytes()
    for i in range(3):
        assert_same(demos.extras(i), pickled.extras(i))
    assert demos._compiled.meta() == pickled._compiled.meta(), "the same metadata, to the byte of its pickle"
    assert demos.metadata["env_cfg"]["task_name"] == "cheetah-run"
    again = write_frames(tmp_path / "again" / name, demos.metadata, known, members="npy")
    assert again[0].read_bytes() == path.read_bytes(), "the same frames, the same bytes"
    if name == "demos.tar":
        found = members(path)
        names = list(found)
        assert names[0] == "__gristmill__"
        fields = ("acts.npy", "dones.npy", "frame.npy", "infos.json", "note.json", "obs.npy", "rews.npy")
        assert names[1:8] == [f"frame_000.{field}" for field in fields]
        assert not any(b"pickle" in data or data[:1] == b"\x80" for data in found.values())
        for suffix, values in (("obs", "obs"), ("rews", "rews")):
            stored = np.load(io.BytesIO(found[f"frame_003.{suffix}.npy"]), allow_pickle=False)
            np.testing.assert_array_equal(stored, known[3][values])
        assert json.loads(found["frame_003.note.json"]) == known[3]["note"]
        assert json.loads(found["__gristmill__"])["gristmill_shard"] == 1


VALUES: list[Any] = [
    None,
    [],
    {},
    {"a": 1, "b": [1.5, None, True], "ü": 'x\n"', "z": {"y": {}}},
    {"b": 1, "a": 2},
    [float("nan"), float("inf"), -float("inf"), -0.0, 0.1, 1e300, 5e-324, 2.0],
    {"n": np.float32(0.1), "m": np.int8(-3), "t": np.bool_(True), "u": np.array([[1, 2], [3, 4]], np.uint16)},
    {"e": np.zeros((0, 3), np.float16), "d": np.array(2.5), "s": np.array(["ab", "c"]), "c": np.array([1j])},
    (1, (2, [3, ()])),
    {1: "a", (2, 3): "b", None: 4},
    {"__gristmill__": "array"},
    OrderedDict(b=1, a=OrderedDict()),
    deque([1, deque()]),
    [{1, 2}, frozenset({"x"}), b"\x00\xff", bytearray(b"ab"), 1 + 2j, 1 << 100, -(1 << 70)],
    [2**63 - 1, -(2**63)],
    b"raw",
    "text",
    "__gristmill__",
]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:30])
def test_every_plain_value_comes_back_to_type_and_bit(tmp_path: Path, value: Any) -> None:
    known = [{"dones": np.bool_(t == 2), "more": value} for t in range(3)]
    (path,) = write_frames(tmp_path / "demos.tar", META, known, members="npy")
    (other,) = write_frames(tmp_path / "pickled.tar", META, known)
    found = gm.open(path).extras(0)["more"]
    assert_same(found, gm.open(other).extras(0)["more"])
    assert_same(found[0], value)
    suffixes = {name.rsplit(".", 1)[1] for name in members(path) if ".more." in name}
    assert suffixes == {"bin" if isinstance(value, bytes) else "json"}
    for name, data in members(path).items():
        if name.endswith(".json"):
            json.loads(data)


def test_what_has_no_form_without_pickles_is_refused_by_name(tmp_path: Path) -> None:
    good = frames([3])
    for value in (np.array([{}, 1], object), np.array(["2020-01-01"], "M8[D]"), {"a": np.array([None], object)}):
        with pytest.raises(gm.FormatError, match="`more`"):
            write_frames(tmp_path / "demos.tar", META, [{**good[0], "more": value}], members="npy")
    with pytest.raises(gm.ConfigError, match="expected `pickle` or `npy`"):
        ShardWriter(tmp_path / "demos.tar", META, members="cbor")  # type: ignore[arg-type]
    assert os.listdir(tmp_path) == []


def test_damaged_metadata_is_refused_with_its_member(tmp_path: Path) -> None:
    (path,) = write_frames(tmp_path / "demos.tar", META, frames([3]), members="npy")
    found = members(path)
    for number, (data, says) in enumerate(
        [
            (b"{", "JSON"),
            (b"{}", "gristmill_shard"),
            (b'{"gristmill_shard": 2}', "version 2"),
            (b"[]", "forbidden|corrupt|byte"),
        ]
    ):
        bad = tmp_path / f"bad-{number}.tar"
        with tarfile.open(bad, "w") as tar:
            for name, own in {**found, "__gristmill__": data}.items():
                info = tarfile.TarInfo(name)
                info.size = len(own)
                tar.addfile(info, io.BytesIO(own))
        with pytest.raises(gm.FormatError, match=says) as refused:
            gm.open(bad)
        assert refused.value.member == "__gristmill__"


def run(*words: object, code: int = 0) -> "subprocess.CompletedProcess[str]":
    done = subprocess.run([binary(), *map(str, words)], check=False, capture_output=True, text=True)
    assert done.returncode == code, done.stderr
    return done


WEBDATASET = """
import sys, warnings
warnings.simplefilter("ignore")
import numpy, webdataset
found = webdataset.WebDataset(sys.argv[1], shardshuffle=False, empty_check=False).decode()
samples = list(found)
print(len(samples), samples[2]["__key__"], sorted(key for key in samples[2] if not key.startswith("__")))
one = samples[2]
print(one["obs.npy"].sum(), float(one["rews.npy"]), one["note.json"], one["infos.json"]["name"])
"""


@pytest.mark.parametrize("secure", ["0", "1"])
def test_webdataset_takes_them_where_it_trusts_no_pickle(tmp_path: Path, secure: str) -> None:
    known = frames([4, 3])
    (path,) = write_frames(tmp_path / "demos.tar", META, known, members="npy")
    (pickled,) = write_frames(tmp_path / "pickled.tar", META, known)

    def read(shard: Path) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", WEBDATASET, str(shard)],
            check=False,
            capture_output=True,
            text=True,
            env={**os.environ, "WDS_SECURE": secure, "PYTHONIOENCODING": "utf-8"},
        )

    done = read(path)
    assert done.returncode == 0, done.stderr
    fields = ["acts.npy", "dones.npy", "frame.npy", "infos.json", "note.json", "obs.npy", "rews.npy"]
    first, second = done.stdout.splitlines()
    assert first == f"7 frame_002 {fields}"
    assert second == f"{known[2]['obs'].sum()} 2.0 {known[2]['note']} größe"
    if secure == "1":
        assert read(pickled).returncode != 0, "this is what the others are refused for"


def test_hugging_faces_loader_takes_them(tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets")
    known = [{key: value for key, value in frame.items() if key != "infos"} for frame in frames([4, 3])]
    for i, frame in enumerate(known):
        frame["infos"] = {"at": i, "name": "größe"}
    write_frames(tmp_path / "shards/demos.tar", META, known, members="npy", max_frames=4)
    found = datasets.load_dataset(
        "webdataset",
        data_files=str(tmp_path / "shards/*.tar"),
        split="train",
        streaming=True,
        cache_dir=str(tmp_path / "cache"),
    )
    samples = list(found)
    assert len(samples) == 7
    for i, (sample, frame) in enumerate(zip(samples, known, strict=True)):
        np.testing.assert_array_equal(np.asarray(sample["obs.npy"], np.uint8), frame["obs"])
        assert np.asarray(sample["rews.npy"]) == frame["rews"]
        assert sample["infos.json"] == {"at": i, "name": "größe"}
        assert bool(sample["dones.npy"]) == bool(frame["dones"])


def test_commands_write_them_and_turn_them_back(tmp_path: Path) -> None:
    known = [{**frame, "acts": np.int64(i % 6)} for i, frame in enumerate(frames([7, 1, 5]))]
    (path,) = write_frames(tmp_path / "demos.tar.zst", META, known)
    run("convert", path, tmp_path / "plain.tar", "--members", "npy")
    assert not any(name.endswith(".pickle") for name in members(tmp_path / "plain.tar"))
    run("convert", tmp_path / "plain.tar", tmp_path / "back.tar.zst")
    run("convert", path, tmp_path / "direct.tar.zst")
    back, direct = ((tmp_path / f"{name}.tar.zst").read_bytes() for name in ("back", "direct"))
    assert back == direct, "nothing is lost on the way there and back"
    run("verify", tmp_path / "plain.tar")
    assert "13" in run("stats", tmp_path / "plain.tar").stdout
    run("split", tmp_path / "plain.tar", tmp_path / "sides", "--into", "a:1,b:1", "--members", "npy")
    sides = [gm.open(shard) for shard in sorted((tmp_path / "sides").glob("*/*.tar.zst"))]
    assert sum(side.num_frames for side in sides) == 13
    pack = tmp_path / "pack"
    (tmp_path / "in").mkdir()
    os.link(tmp_path / "plain.tar", tmp_path / "in/plain.tar")
    run("pack", "--input", tmp_path / "in", "--output", pack)
    packed = gm.open(pack)
    assert packed.metadata["env_cfg"]["task_name"] == "cheetah-run"
    for name in ("infos", "note"):
        assert_same(packed.extras(2)[name], gm.open(path).extras(2)[name])
    refused = run("convert", path, tmp_path / "x.npz", "--members", "npy", code=2)
    assert "only shards do" in refused.stderr


def test_spilled_folders_of_both_kinds_are_one_data_set(tmp_path: Path) -> None:
    known = frames([7, 1, 5])
    write_frames(tmp_path / "in/a.tar", META, known[:8])
    write_frames(tmp_path / "in/b.tar.zst", META, known[8:], members="npy")
    check(gm.open(tmp_path / "in"), known)
    check(gm.open(tmp_path / "in", columns=tmp_path / "columns"), known)
