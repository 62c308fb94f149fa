"""Damaged Minari data sets: always an error with file, episode and field, never a value that is none."""

import json
import resource
import shutil
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pyarrow as pa
import pytest
from demo_files import write_dm_control
from minari_sets import record
from PIL import Image

import gristmill as gm
from gristmill.demos.minari import write


@pytest.fixture(scope="module", params=["hdf5", "arrow"])
def whole(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two episodes of 3 and 2 steps: pictures, actions (2,), infos."""
    folder = tmp_path_factory.mktemp("minari")
    write_dm_control(folder / "spin-1.pkl.gz", [3, 2])
    write(folder / "spin-v0", gm.open(folder / "spin-1.pkl.gz"), data_format=request.param)
    return folder / "spin-v0"


@pytest.fixture
def data(whole: Path, tmp_path: Path) -> Path:
    """The `data` of a copy that may be damaged."""
    return Path(shutil.copytree(whole / "data", tmp_path / "data"))


hdf5_alone = pytest.mark.parametrize("whole", ["hdf5"], indirect=True)
arrow_alone = pytest.mark.parametrize("whole", ["arrow"], indirect=True)


def everything(data: Path) -> list[Any]:
    """All that there is to be read."""
    demos = gm.open(data)
    return [(demos[i].tobytes(), str(demos.extras(i))) for i in range(len(demos))]


def told(data: Path, file: str | None, episode: int | None, field: str | None) -> gm.FormatError:
    """The error that reading everything ends with, at this place."""
    with pytest.raises(gm.FormatError) as refused:
        everything(data)
    error = refused.value
    place = None if file is None else str(data / file)
    assert (error.source, error.chunk, error.member) == (place or error.source, episode, field), error
    for part in (error.source, field, None if episode is None else f"episode {episode}"):
        assert part is None or part in str(error)
    return error


def set_metadata(data: Path, **changes: Any) -> None:
    path = data / "metadata.json"
    known = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in known.items() if value is not ...}))


BOX = {"type": "Box", "dtype": "uint8", "shape": [3, 8, 8], "low": [], "high": []}
NESTED = '{"type": "Tuple", "subspaces": [' * 5000


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"total_steps": 6}, "`total_steps` is 6; the episodes have 5"),
        ({"total_steps": -1}, "`total_steps`"),
        ({"total_episodes": "2"}, "`total_episodes`"),
        ({"total_episodes": ...}, "`total_episodes`"),
        ({"data_format": "rlds"}, "`data_format`: 'rlds'"),
        ({"observation_space": ...}, "`observation_space`: missing"),
        ({"observation_space": "Box(3)"}, "`observation_space`"),
        ({"observation_space": json.dumps({"type": "Graph"})}, "a Graph space"),
        ({"observation_space": json.dumps(BOX)}, r"a Box of shape \(3, 8, 8\) with bounds of \(0,\)"),
        ({"observation_space": json.dumps({**BOX, "shape": [1 << 40]})}, "a shape of"),
        ({"observation_space": json.dumps({**BOX, "dtype": "O"})}, "elements of type O"),
        ({"observation_space": NESTED}, "`observation_space`"),
        ({"action_space": json.dumps({"type": "MultiBinary", "n": 1 << 60})}, "`action_space`"),
        ({"action_space": json.dumps({"type": "Discrete"})}, "`action_space`: a Discrete space that lacks"),
        ({"action_space": json.dumps({"type": "Discrete", "n": 4})}, "expected .*as the space says"),
    ],
)
def test_metadata_that_cannot_be(data: Path, changes: dict[str, Any], says: str) -> None:
    set_metadata(data, **changes)
    with pytest.raises(gm.FormatError, match=says):
        everything(data)


@hdf5_alone
def test_a_file_that_is_not_there(data: Path) -> None:
    (data / "main_data.hdf5").unlink()
    assert told(data, "main_data.hdf5", None, None).kind == "missing"
    (data / "metadata.json").unlink()
    with pytest.raises(gm.FormatError):
        gm.open(data)


@arrow_alone
def test_files_that_are_not_there(data: Path) -> None:
    (data / "1/part-0.arrow").rename(data / "1/part-1.arrow")
    assert told(data, "1", 1, None).kind == "missing"
    (data / "1/metadata.json").unlink()
    assert told(data, "1/metadata.json", 1, None).kind == "missing"
    shutil.rmtree(data / "1")
    assert "`total_episodes` of metadata.json is 2" in str(told(data, None, None, None))
    (data / "metadata.json").write_text("{")
    assert "no JSON" in str(told(data, "metadata.json", None, None))


@hdf5_alone
def test_without_metadata_there_is_nothing_to_go_by(data: Path) -> None:
    (data / "metadata.json").unlink()
    assert told(data, "metadata.json", None, None).kind == "missing"


def test_a_cut_anywhere_is_noticed(data: Path) -> None:
    hdf5 = (data / "main_data.hdf5").exists()
    file = data / ("main_data.hdf5" if hdf5 else "1/part-0.arrow")
    known = file.read_bytes()
    for cut in range(8, len(known), 512):
        file.write_bytes(known[:cut])
        error = told(data, file.relative_to(data).as_posix(), None if hdf5 else 1, None if hdf5 else "observations")
        assert error.kind in ("truncated", "corrupt")
    for byte in range(0, len(known), 97):
        file.write_bytes(known[:byte] + bytes([known[byte] ^ 0xFF]) + known[byte + 1 :])
        try:
            everything(data)
        except gm.GristmillError:
            continue


def damaged(file: Path, how: Callable[[Any], None]) -> None:
    with h5py.File(file, "r+") as opened:
        how(opened)


def replace(group: Any, name: str, *args: Any, **kwargs: Any) -> None:
    del group[name]
    group.create_dataset(name, *args, **kwargs)


@hdf5_alone
@pytest.mark.parametrize(
    ("how", "episode", "field", "kind"),
    [
        (lambda f: f.move("episode_1", "episode_7"), 1, "episode_1", "missing"),
        (lambda f: f.__delitem__("episode_1"), None, None, "wrong_size"),
        (lambda f: f["episode_0"].attrs.__delitem__("total_steps"), 0, "total_steps", "corrupt"),
        (lambda f: f["episode_0"].attrs.__setitem__("total_steps", 0), 0, "total_steps", "corrupt"),
        (lambda f: f["episode_1"].__delitem__("rewards"), 1, "rewards", "missing"),
        (lambda f: replace(f["episode_1"], "rewards", data=np.zeros(3)), 1, "rewards", "wrong_size"),
        (lambda f: replace(f["episode_1"], "actions", data=np.zeros((2, 3), "f4")), 1, "actions", "wrong_size"),
        (lambda f: replace(f["episode_1"], "actions", data=np.zeros((2, 2), "f8")), 1, "actions", "wrong_size"),
        (lambda f: replace(f["episode_1"], "terminations", data=np.zeros(2)), 1, "terminations", "corrupt"),
        (lambda f: replace(f["episode_1"], "observations", data=[b"x"] * 3), 1, "observations", "wrong_size"),
        (lambda f: replace(f["episode_0"], "observations", (4, 3, 8, 8), "u1"), 0, "observations", "too_large"),
        (lambda f: replace(f["episode_0"], "rewards", (1 << 60,), "f8", chunks=True), 0, "rewards", "too_large"),
        (lambda f: replace(f["episode_0/infos"], "discount", data=np.zeros(9)), 0, "infos/discount", "wrong_size"),
    ],
)
def test_hdf5_that_contradicts_itself(
    data: Path, how: Callable[[Any], None], episode: int | None, field: str | None, kind: str
) -> None:
    file = data / "main_data.hdf5"
    damaged(file, how)
    assert told(data, "main_data.hdf5", episode, field).kind == kind


def by_link(actions: Path) -> Callable[[Any], None]:
    def how(opened: Any) -> None:
        del opened["episode_1/actions"]
        opened["episode_1/actions"] = h5py.ExternalLink(str(actions), "episode_1/actions")

    return how


def by_raw_bytes(actions: Path) -> Callable[[Any], None]:
    return lambda opened: replace(opened["episode_1"], "actions", (2, 2), "f4", external=[(str(actions), 0, 16)])


def test_more_steps_than_there_are_make_no_arrays(data: Path) -> None:
    if (data / "main_data.hdf5").exists():
        damaged(data / "main_data.hdf5", lambda f: f["episode_0"].attrs.__setitem__("total_steps", 1 << 45))
    else:
        path = data / "0/metadata.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"total_steps": 1 << 45}))
    set_metadata(data, total_steps=(1 << 45) + 2)
    with pytest.raises(gm.FormatError, match=r"episode 0: .*(expected 35184372088832 rows|35184372088832 steps in)"):
        gm.open(data).column("dones")


@hdf5_alone
@pytest.mark.parametrize("how", [by_link, by_raw_bytes])
def test_hdf5_that_points_elsewhere_is_not_followed(data: Path, how: Callable[[Path], Callable[[Any], None]]) -> None:
    shutil.copy(data / "main_data.hdf5", data.parent / "other.hdf5")
    damaged(data / "main_data.hdf5", how(data.parent / "other.hdf5"))
    assert told(data, "main_data.hdf5", 1, "actions").kind == "forbidden"


def arrow(file: Path, **changes: Any) -> None:
    """Writes an episode again with other columns."""
    with pa.ipc.open_file(file) as opened:
        columns = {name: opened.read_all().column(name).combine_chunks() for name in opened.schema.names}
    for name, values in changes.items():
        columns[name] = values if values is None else pa.array(values) if isinstance(values, list) else values
    batch = pa.RecordBatch.from_pydict({name: values for name, values in columns.items() if values is not None})
    with pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


@arrow_alone
@pytest.mark.parametrize(
    ("changes", "field", "kind"),
    [
        ({"rewards": None}, "rewards", "missing"),
        ({"rewards": [1.0, None, 3.0]}, "rewards", "corrupt"),
        ({"rewards": ["a", "b", "c"]}, "rewards", "corrupt"),
        ({"terminations": [0, 1, 0]}, "terminations", "corrupt"),
        ({"actions": [1.0, 2.0, 3.0]}, "actions", "wrong_size"),
        ({"actions": pa.FixedSizeListArray.from_arrays(np.zeros(6), 2)}, "actions", "wrong_size"),
        ({"actions": pa.array([[1.0, 2.0], None, [1.0, 2.0]], pa.list_(pa.float32(), 2))}, "actions", "missing"),
        ({"infos": [1, 2, 3]}, "infos", "corrupt"),
    ],
)
def test_arrow_that_contradicts_itself(data: Path, changes: dict[str, Any], field: str, kind: str) -> None:
    arrow(data / "1/part-0.arrow", **changes)
    assert told(data, None, 1, field).kind == kind


@arrow_alone
def test_arrow_with_other_rows_than_steps(data: Path) -> None:
    path = data / "1/metadata.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"total_steps": 3}))
    assert "the episodes have 6" in str(told(data, "metadata.json", None, None))
    set_metadata(data, total_steps=6)
    assert told(data, "1/part-0.arrow", 1, "observations").kind == "wrong_size"


@pytest.mark.filterwarnings("ignore")
def test_pictures_of_another_size_are_not_decoded(tmp_path: Path) -> None:
    path = record(tmp_path, "some/jpeg-v0", "hdf5", 1, jpeg=True)
    bomb = BytesIO()
    Image.new("RGB", (20000, 8000)).save(bomb, format="JPEG")
    picture = np.frombuffer(bomb.getvalue(), np.uint8)
    damaged(path / "data/main_data.hdf5", lambda f: replace(f["episode_0/observations"], "image", data=[picture] * 2))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(gm.FormatError, match=r"row 0: a picture of 8000 x 20000; expected \(32, 40, 3\)"):
        everything(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000, "160 million pixels were not made"


@pytest.mark.filterwarnings("ignore")
def test_a_picture_that_ends_early_is_named_among_others_like_it(tmp_path: Path) -> None:
    path = record(tmp_path, "some/jpeg-v0", "hdf5", 1, jpeg=True)
    file = BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, (32, 40, 3), np.uint8)).save(file, format="JPEG")
    whole = np.frombuffer(file.getvalue(), np.uint8)

    def cut(f: Any) -> None:
        pictures = f["episode_0/observations"]
        del pictures["image"]
        held = pictures.create_dataset("image", (2,), dtype=h5py.vlen_dtype(np.uint8))
        held[0], held[1] = whole, whole[:-200]

    damaged(path / "data/main_data.hdf5", cut)
    with pytest.raises(gm.FormatError, match=r"row 1: image file is truncated"):
        everything(path)


@hdf5_alone
@pytest.mark.parametrize(
    ("how", "field"),
    [
        (lambda f: f["episode_1"].attrs.update({"options/a": 1, "options/a/b": 2}), None),
        (lambda f: (f["episode_1"].__delitem__("infos"), f["episode_1"].create_dataset("infos", data=[1, 2])), "infos"),
        (
            lambda f: (f["episode_1"].__delitem__("infos"), f["episode_1"].__setitem__("infos", h5py.SoftLink("/x"))),
            "infos",
        ),
        (lambda f: replace(f["episode_1"], "actions", data=np.zeros((2, 2), "f4").view("V4")), "actions"),
        (lambda f: replace(f["episode_1"], "actions", data=h5py.Empty("f4")), "actions"),
    ],
)
def test_what_h5py_raises_is_a_refusal_with_its_episode(
    data: Path, how: Callable[[Any], None], field: str | None
) -> None:
    damaged(data / "main_data.hdf5", how)
    assert told(data, "main_data.hdf5", 1, field).kind in ("corrupt", "forbidden", "wrong_size")


@arrow_alone
@pytest.mark.parametrize(
    "column",
    [
        pa.array([1, 2, 3], pa.timestamp("ns")),
        pa.array([1, 2, 3], pa.duration("ns")),
        pa.array([[1], [2], [3]], pa.list_(pa.float16())),
        pa.DictionaryArray.from_arrays(pa.array([0, 0, 0]), pa.array([b"\xff"])),
    ],
    ids=["timestamp", "duration", "list", "dictionary"],
)
def test_what_pyarrow_raises_is_a_refusal_with_its_episode(data: Path, column: Any) -> None:
    part = data / "1/part-0.arrow"
    with pa.OSFile(str(part)) as file:
        table = pa.ipc.open_file(file).read_all()
    for name in ("infos", "actions", "observations", "rewards"):
        value = pa.StructArray.from_arrays([column], names=["odd"]) if name == "infos" else column
        odd = table.set_column(table.schema.get_field_index(name), name, value)
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, odd.schema) as writer:
            writer.write_table(odd)
        if name == "infos":
            # Whether Python has a value for it or not: an error of its own, or none.
            with suppress(gm.FormatError):
                everything(data)
        else:
            with pytest.raises(gm.FormatError) as refused:
                everything(data)
            assert (refused.value.chunk, refused.value.source) == (1, str(part))
        with pa.OSFile(str(part), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)


def test_what_the_system_says_of_a_file_stays_what_it_is(data: Path) -> None:
    hdf5 = (data / "main_data.hdf5").exists()
    demos = gm.open(data)
    shutil.rmtree(data)
    if hdf5:
        assert demos[1]["dones"][-1], "it is open"
    else:
        with pytest.raises(OSError, match="No such file"):
            demos[1]


def test_metadata_that_cannot_be_read_are_not_taken_for_missing(data: Path) -> None:
    (data / "metadata.json").unlink()
    (data / "metadata.json").symlink_to("metadata.json")
    hidden = [path.rename(path.with_name("." + path.name)) for path in data.glob("*.hdf5")]
    with pytest.raises(OSError, match=r"metadata\.json"):
        gm.open(data)
    assert all(path.exists() for path in hidden)
