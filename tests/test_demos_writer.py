"""Writing shards: read back by gristmill, by the real `webdataset`, and by pickles as older readers load them."""

import os
import pickle
import signal
import subprocess
import sys
import tarfile
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import webdataset
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill.demos import ShardWriter, get_meta_dict, write_frames
from gristmill.envs import EnvConfig
from gristmill.safe_pickle import Instance

BOX = Instance(
    "Box",
    (),
    {
        "low": np.zeros((2, 3, 3), np.uint8),
        "high": np.full((2, 3, 3), 255, np.uint8),
        "shape": (2, 3, 3),
        "dtype": np.dtype("u1"),
    },
)
META = get_meta_dict(EnvConfig(task_name="cheetah-run"), BOX, Instance("Discrete", (), {"n": 6}))


def frames(lengths: list[int]) -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    return [
        {
            "obs": rng.integers(0, 256, (2, 3, 3), dtype=np.uint8),
            "acts": rng.normal(size=2).astype(np.float32),
            "dones": np.bool_(t == length - 1),
            "rews": np.float64(t),
            "infos": {"state": rng.normal(size=2), "t": t, "name": "größe"},
            "note": f"step {t} of {i}",
        }
        for i, length in enumerate(lengths)
        for t in range(length)
    ]


def check(demos: gm.Demos, known: list[dict[str, Any]]) -> None:
    assert demos.num_frames == len(known)
    for name in ("obs", "acts", "dones", "rews"):
        column = demos.column(name)
        assert column.dtype == np.asarray(known[0][name]).dtype
        np.testing.assert_array_equal(column, np.stack([frame[name] for frame in known]))
    extras = [demos.extras(i) for i in range(len(demos))]
    assert [note for one in extras for note in one["note"]] == [frame["note"] for frame in known]
    for found, frame in zip([info for one in extras for info in one["infos"]], known, strict=True):
        np.testing.assert_array_equal(found["state"], frame["infos"]["state"])
        assert (found["t"], found["name"]) == (frame["infos"]["t"], "größe")


@pytest.mark.parametrize("name", ["demos.tar.zst", "demos.tar"])
def test_what_is_written_reads_back(tmp_path: Path, name: str) -> None:
    known = frames([7, 1, 5])
    assert write_frames(tmp_path / "new" / name, META, known) == [tmp_path / "new" / name]
    demos = gm.open(tmp_path / "new" / name)
    assert [demos.frames(i) for i in range(len(demos))] == [7, 1, 5]
    check(demos, known)
    assert demos.column("frame").tolist() == list(range(13))
    found = demos.metadata
    assert found["env_cfg"]["task_name"] == "cheetah-run"
    assert not any(key.startswith(("magical", "procgen")) for key in found["env_cfg"])
    assert (found["action_space"].state, found["color_space"]) == ({"n": 6}, "RGB")
    np.testing.assert_array_equal(found["observation_space"].state["high"], BOX.state["high"])
    assert list((tmp_path / "new").iterdir()) == [tmp_path / "new" / name], "nothing else is left"
    again = write_frames(tmp_path / "again" / name, found, known)
    assert again[0].read_bytes() == (tmp_path / "new" / name).read_bytes(), "the same frames, the same bytes"


def test_several_shards_begin_at_trajectories(tmp_path: Path) -> None:
    known = frames([7, 1, 5, 600, 600])
    paths = write_frames(tmp_path / "demos.tar", META, known, max_frames=8)
    assert [path.name for path in paths] == [f"demos-00000{i}.tar" for i in range(3)]
    assert [gm.open(path).num_frames for path in paths] == [8, 605, 600]
    check(gm.open(tmp_path), known)
    with pytest.raises(FileExistsError):
        write_frames(tmp_path / "demos.tar", META, known)
    write_frames(tmp_path / "demos.tar", META, known[:7], overwrite=True)
    assert os.listdir(tmp_path) == ["demos.tar"], "shards of the name are replaced"


def test_frames_beyond_a_thousand_keep_their_order(tmp_path: Path) -> None:
    known = frames([1203])
    (path,) = write_frames(tmp_path / "demos.tar", META, known)
    with tarfile.open(path) as tar:
        names = tar.getnames()
    assert names[0] == "_metadata.meta.pickle"
    fields = ("acts", "dones", "frame", "infos", "note", "obs", "rews")
    assert names[1:8] == [f"frame_000.{field}.pickle" for field in fields]
    assert names[-1] == "frame_1202.rews.pickle"
    check(gm.open(path), known)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
def test_webdataset_reads_what_we_write(tmp_path: Path) -> None:
    known = frames([4, 3])
    (path,) = write_frames(tmp_path / "demos.tar", META, known)
    dataset = webdataset.WebDataset(str(path), shardshuffle=False, empty_check=False)
    samples = list(dataset.select(lambda sample: sample["__key__"] != "_metadata").decode())
    assert [sample["__key__"] for sample in samples] == [f"frame_{t:03d}" for t in range(7)]
    for t, (sample, frame) in enumerate(zip(samples, known, strict=True)):
        assert sample["frame.pickle"] == t
        for name in ("obs", "acts", "dones", "rews"):
            assert sample[f"{name}.pickle"].dtype == frame[name].dtype
            np.testing.assert_array_equal(sample[f"{name}.pickle"], frame[name])
        assert sample["note.pickle"] == frame["note"]
        assert sample["infos.pickle"]["name"] == "größe"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_we_read_what_webdataset_writes(tmp_path: Path) -> None:
    known = frames([4, 3])
    with webdataset.TarWriter(str(tmp_path / "theirs.tar")) as writer:
        for t, frame in enumerate(known):
            writer.write(
                {
                    "__key__": f"frame_{t:03d}",
                    "obs.npy": frame["obs"],
                    "acts.pyd": frame["acts"],
                    "dones.pickle": frame["dones"],
                    "rews.pyd": frame["rews"],
                    "infos.pickle": frame["infos"],
                    "note.txt": frame["note"],
                    "more.json": {"a": [t]},
                    "label.cls": t,
                }
            )
    demos = gm.open(tmp_path)
    check(demos, known)
    assert demos.column("label").tolist() == list(range(7))
    assert demos.extras(1)["more"] == [{"a": [t]} for t in range(4, 7)]


class Inflated:
    """What older readers make of a space: its class and what it is made with."""

    def __init__(self, cls: type, made_with: dict[str, Any]) -> None:
        self.parts = cls.__name__, made_with


@contextmanager
def older_readers_modules() -> Iterator[None]:
    """The modules that metadata names, each with what it names."""
    made: dict[str, dict[str, Any]] = {
        "il_representations.envs.utils": {"_inflate_object": Inflated},
        "gym.spaces.box": {"Box": type("Box", (), {})},
        "gym.spaces.discrete": {"Discrete": type("Discrete", (), {})},
        "imitation.augment.color": {"ColorSpace": str},
    }
    modules: dict[str, types.ModuleType] = {}
    for name, contents in made.items():
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            modules.setdefault(".".join(parts[:i]), types.ModuleType(".".join(parts[:i])))
        modules[name].__dict__.update(contents)
    before = {name: sys.modules.get(name) for name in modules}
    sys.modules.update(modules)
    try:
        yield
    finally:
        for name, found in before.items():
            if found is None:
                del sys.modules[name]
            else:
                sys.modules[name] = found


def test_metadata_loads_as_older_readers_load_it(tmp_path: Path) -> None:
    (path,) = write_frames(tmp_path / "demos.tar", META, frames([1]))
    with tarfile.open(path) as tar:
        first = tar.next()
        assert first is not None
        member = tar.extractfile(first)
        assert member is not None
        data = member.read()
    assert data[:2] == b"\x80\x03", "protocol 3: any Python 3 reads it"
    assert b"numpy._core" not in data, "names that NumPy 1 knows too"
    with older_readers_modules():
        found = pickle.loads(data)
    assert list(found) == ["env_cfg", "action_space", "observation_space", "color_space"]
    assert found["action_space"].parts == ("Discrete", {"n": 6})
    kind, made_with = found["observation_space"].parts
    assert (kind, made_with["shape"], made_with["dtype"]) == ("Box", (2, 3, 3), np.dtype("u1"))
    np.testing.assert_array_equal(made_with["high"], BOX.state["high"])
    assert found["color_space"] == "RGB"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=10,
)


@settings(max_examples=30, deadline=None)
@given(values)
def test_any_plain_value_travels(value: Any) -> None:
    from gristmill import _gristmill

    assert pickle.loads(_gristmill.plain_pickle(pickle.dumps(value, 5))) == value


@pytest.mark.parametrize("dialect", [tarfile.PAX_FORMAT, tarfile.GNU_FORMAT, tarfile.USTAR_FORMAT])
def test_a_plain_tar_of_any_dialect_is_known_by_its_metadata(tmp_path: Path, dialect: int) -> None:
    known = frames([2, 3])
    (path,) = write_frames(tmp_path / "ours.tar", META, known)
    with tarfile.open(path) as tar, tarfile.open(tmp_path / "theirs.tar", "w", format=dialect) as other:
        for member in tar:
            member.mtime = 1.5 if dialect == tarfile.PAX_FORMAT else 1
            member.uname = member.gname = "bigdata"
            other.addfile(member, tar.extractfile(member))
    check(gm.open(tmp_path / "theirs.tar"), known)


def test_what_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    good = frames([3])
    bad: list[tuple[dict[str, Any], str]] = [
        ({**good[0], "x": Path("/")}, "forbidden"),
        ({**good[0], "a.b": 1}, "out_of_range"),
    ]
    for frame, kind in bad:
        with pytest.raises(gm.FormatError) as refused:
            write_frames(tmp_path / "demos.tar", META, [*good, frame])
        assert refused.value.kind == kind
        assert os.listdir(tmp_path) == []
    with pytest.raises(gm.FormatError, match="no frames"):
        write_frames(tmp_path / "demos.tar", META, [])
    with pytest.raises(gm.ConfigError, match=r"\.tar\.zst"):
        write_frames(tmp_path / "demos.zip", META, good)
    with pytest.raises(gm.ConfigError, match="color_space"):
        write_frames(tmp_path / "demos.tar", {k: v for k, v in META.items() if k != "color_space"}, good)
    with pytest.raises(gm.ConfigError, match="a Dict space without `spaces`"):
        write_frames(tmp_path / "demos.tar", {**META, "action_space": Instance("Dict", (), {})}, good)
    assert os.listdir(tmp_path) == []
    with ShardWriter(tmp_path / "demos.tar", META) as writer:
        writer.write(good[0])
        with pytest.raises(OSError, match="another process"):
            ShardWriter(tmp_path / "demos.tar", META)


def test_a_killed_writer_leaves_no_shard(tmp_path: Path) -> None:
    program = f"""
import os, signal, sys
sys.path[:0] = {[str(Path(__file__).parent), str(Path(__file__).parent / "made")]!r}
from test_demos_writer import META, frames
from gristmill.demos import ShardWriter
writer = ShardWriter({str(tmp_path / "demos.tar")!r}, META, max_frames=2)
for frame in frames([3, 3, 3]):
    writer.write(frame)
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", program], check=False)
    assert done.returncode == -signal.SIGKILL
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    known = frames([4])
    write_frames(tmp_path / "demos.tar", META, known)
    check(gm.open(tmp_path / "demos.tar"), known)
    assert os.listdir(tmp_path) == ["demos.tar"], "what the killed one left is gone"


def test_spaces_of_the_real_vectors_are_kept(shared: Path, tmp_path: Path) -> None:
    source = gm.open(shared / "vectors/demos/demos_np2_p4_pax.tar.zst")
    rows = [
        {name: trajectory[name][t] for name in source.layout.names if name not in ("", "frame")}
        for trajectory in source
        for t in range(len(trajectory))
    ]
    write_frames(tmp_path / "copy.tar.zst", source.metadata, rows)
    copy = gm.open(tmp_path / "copy.tar.zst")
    assert copy._compiled.about() == source._compiled.about()
    for one, two in zip(source, copy, strict=True):
        for name in rows[0]:
            np.testing.assert_array_equal(one[name], two[name])
