"""Damaged LeRobot data sets: always an error with file, episode, field and row, never a value that is none."""

import json
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from lerobot_sets import (
    FPS,
    LENGTHS,
    TOP,
    VERSIONS,
    WRIST,
    put,
    rewrite,
    say,
    step,
    steps_file,
    unpacked,
    video_file,
    write_video,
)
from PIL import Image

import gristmill as gm
from gristmill.demos.lerobot import open_lerobot

pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[lerobot])")


@pytest.fixture(params=VERSIONS)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return unpacked("v2.1", tmp_path)


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return unpacked("v3.0", tmp_path)


def row_of(data: Path, episode: int, t: int) -> int:
    """The row of a step in its file."""
    return t if data.name.endswith("v2.1") else sum(LENGTHS[:episode]) + t


def read(data: Path, **options: Any) -> None:
    """Opens a data set and reads all of it."""
    demos = open_lerobot(data, **options)
    for i in range(len(demos)):
        demos[i]
        demos.extras(i)


def refused(data: Path, kind: str, *parts: str, **options: Any) -> gm.FormatError:
    """The error of opening and reading all of a data set, and packing it."""
    with pytest.raises(gm.FormatError) as caught:
        read(data, **options)
    error = caught.value
    assert error.kind == kind, str(error)
    for part in parts:
        assert part in str(error), str(error)
    with pytest.raises(gm.FormatError):
        gm.pack(open_lerobot(data, **options), data.parent / "pack")
    assert not (data.parent / "pack").exists()
    return error


def feature(name: str, **changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda info: info["features"][name].update(changes)


def key(**changes: Any) -> Callable[[dict[str, Any]], object]:
    return lambda info: info.update(changes)


#: What is changed of `info.json`, the kind of the error, and what it says.
SAID: list[tuple[Callable[[dict[str, Any]], object], str, str]] = [
    (key(codebase_version="v1.6"), "unsupported", "`codebase_version` is 'v1.6'; expected v2.0, v2.1 or v3"),
    (key(codebase_version=None), "unsupported", "`codebase_version` is None"),
    (key(fps=0), "corrupt", "`fps` is 0; expected frames of a second"),
    (key(fps="ten"), "corrupt", "`fps` is 'ten'"),
    (key(total_episodes=4), "wrong_size", "`total_episodes` is 4; meta/episodes"),
    (key(total_episodes=-1), "corrupt", "`total_episodes` is -1; expected a number from 0 on"),
    (key(total_frames=1 << 60), "wrong_size", "`total_frames` is 1152921504606846976;"),
    (key(total_tasks=1), "wrong_size", "`total_tasks` is 1; meta/tasks"),
    (key(features={}), "corrupt", "`features` says which columns there are"),
    (key(features={"action": 3}), "corrupt", "`dtype` None and `shape` None"),
    (key(features={"../x": {"dtype": "video", "shape": [8, 8, 3]}}), "corrupt", "expected a name without slashes"),
    (key(data_path="/etc/{chunk_index}"), "corrupt", "`chunk_index` is unknown"),
    (key(data_path="../x.parquet"), "forbidden", "expected a path within the data set"),
    (key(data_path="{x.__class__}.parquet"), "forbidden", "expected a path within the data set"),
    (key(data_path=7), "corrupt", "expected a path such as"),
    (feature("action", dtype="complex64"), "corrupt", "`dtype` 'complex64'; expected numbers"),
    (feature("action", shape=[1 << 30, 1 << 30]), "too_large", "bytes for each step; at most"),
    (feature("action", shape=[0]), "corrupt", "`shape` [0]; expected numbers from 1 on"),
    (feature("action", shape=[3]), "wrong_size", "`action`: wrong_size: float32[2]; info.json says float32[3]"),
    (feature("action", dtype="float64"), "wrong_size", "float32[2]; info.json says float64[2]"),
    (feature("frame_index", shape=[2]), "corrupt", "expected one number for each step"),
    (feature(TOP, shape=[48, 64, 5]), "corrupt", "expected height, width and 1, 3 or 4 channels"),
    (feature(TOP, shape=[32, 64, 3]), "wrong_size", "frames of 48 x 64"),
    (feature(WRIST, shape=[24, 16, 3]), "wrong_size", "a picture of 24 x 32; expected (24, 16, 3)"),
    (
        lambda info: info["features"].update(mood={"dtype": "int64", "shape": [1]}),
        "missing",
        "`mood`: missing: no such",
    ),
]


@pytest.mark.parametrize(("change", "kind", "says"), SAID, ids=[str(i) for i in range(len(SAID))])
def test_files_that_disagree_with_info(data: Path, change: Any, kind: str, says: str) -> None:
    say(data, change)
    if "chunk_index" in says and data.name.endswith("v3.0"):
        kind, says = "forbidden", "expected a path within the data set"
    if "48 x 64" in says and "picture" not in says:
        assert refused(data, kind, says).chunk == 0
        return
    refused(data, "corrupt" if "picture" in says else kind, says)


def test_info_that_is_none(data: Path) -> None:
    for text, says in (("[]", "expected a JSON object"), ("{", "no JSON"), ("[" * 100_000, "no JSON")):
        (data / "meta/info.json").write_text(text)
        refused(data, "corrupt", "info.json", says)
    (data / "meta/info.json").unlink()
    with pytest.raises(gm.FormatError, match="no LeRobot data set"):
        open_lerobot(data)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('{"episode_index": 1, "length": 7', "line 2: no JSON"),
        ("[1]", "line 2: expected a JSON object"),
        ('{"episode_index": 2, "length": 7}', "`episode_index` is 2; expected 1, in order"),
        ('{"episode_index": 1, "length": 0}', "episode 1: `length`: corrupt: 0; expected a number of steps"),
        ('{"episode_index": 1, "length": "7"}', "`length`: corrupt: '7'"),
    ],
)
def test_lines_that_list_no_episode(old: Path, line: str, says: str) -> None:
    path = old / "meta/episodes.jsonl"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, lines[2]]))
    refused(old, "corrupt", "episodes.jsonl", says)


def test_lists_of_episodes_that_are_cut_or_say_too_much(data: Path) -> None:
    path = next((data / "meta").rglob("episodes.jsonl" if data.name.endswith("v2.1") else "file-000.parquet"))
    if path.suffix == ".parquet":
        rewrite(path, lambda table: table.slice(0, 2))
        refused(data, "wrong_size", "`total_episodes` is 3; meta/episodes/chunk-000/file-000.parquet has 2 episodes")
        path.write_bytes(path.read_bytes()[:-50])
        refused(data, "corrupt", "file-000.parquet", "Parquet")
        return
    text = path.read_text()
    path.write_text(text[: text.index("\n") + 1])
    refused(data, "wrong_size", "`total_episodes` is 3; meta/episodes.jsonl has 1 episodes")
    path.write_text(text.replace('"length": 7', f'"length": {1 << 40}'))
    refused(data, "wrong_size", "`total_frames` is 16")
    say(data, key(total_frames=(1 << 40) + 9))
    demos = open_lerobot(data)
    with pytest.raises(
        gm.FormatError, match=r"episode_000001.parquet: episode 1: wrong_size: 7 rows; its episodes have"
    ):
        demos.column("obs.state")
    with pytest.raises(gm.FormatError, match=r"7 rows; its episodes have"):
        demos[1]


@pytest.mark.parametrize(
    ("name", "values", "says"),
    [
        ("dataset_from_index", [0, 6, 12], "`dataset_from_index` is 6; the episodes before have 5 steps"),
        ("data/file_index", [0, 1, 0], "16 rows; its episodes have 9 steps"),
        ("data/chunk_index", [0, -1, 0], "`data/chunk_index`: corrupt: -1; expected a number"),
        (f"videos/{TOP}/from_timestamp", [0, float("nan"), 1.2], "from nan to 1.2; expected seconds"),
        (f"videos/{TOP}/file_index", [0, 4, 0], "there is no such video"),
        (f"videos/{TOP}/from_timestamp", [0, 0.6, 1.2], "from 0.6 to 1.2 s; 7 steps take 0.7 s"),
    ],
)
def test_episodes_that_lie_elsewhere(new: Path, name: str, values: list[Any], says: str) -> None:
    path = new / "meta/episodes/chunk-000/file-000.parquet"
    rewrite(path, lambda table: put(table, name, pa.array(values)))
    with pytest.raises(gm.FormatError) as caught:
        [open_lerobot(new)[i] for i in range(3)]
    assert says in str(caught.value), str(caught.value)


def test_a_list_of_episodes_without_a_column(new: Path) -> None:
    path = new / "meta/episodes/chunk-000/file-000.parquet"
    rewrite(path, lambda table: table.drop_columns(["length"]))
    refused(new, "missing", "file-000.parquet: `length`: missing: there is no such column")
    path.unlink()
    refused(new, "missing", "no Parquet file that lists the episodes")


def test_tasks_that_are_not_there(data: Path) -> None:
    file, at = steps_file(data, 2), row_of(data, 2, 1)

    def change(table: Any) -> Any:
        tasks = table.column("task_index").to_pylist()
        tasks[at] = 2
        return put(table, "task_index", pa.array(tasks))

    rewrite(file, change)
    error = refused(data, "out_of_range", "episode 2: `task_index`: out_of_range: row 1: 2; there are 2 tasks")
    assert (error.source, error.chunk, error.frame, error.member) == (str(file), 2, 1, "task_index")


@pytest.mark.parametrize(
    ("name", "value", "kind", "says"),
    [
        ("frame_index", 3, "wrong_size", "3; expected 2"),
        ("episode_index", 0, "wrong_size", "0; expected 1"),
        ("index", 0, "wrong_size", "0; expected 7"),
        ("timestamp", 0.26, "out_of_range", "expected 0.2 at 10 frames of a second"),
        ("timestamp", float("nan"), "out_of_range", "not a number (NaN) in step 2"),
    ],
)
def test_rows_of_other_steps(data: Path, name: str, value: Any, kind: str, says: str) -> None:
    file, at = steps_file(data, 1), row_of(data, 1, 2)

    def change(table: Any) -> Any:
        values = table.column(name).to_pylist()
        values[at] = value
        return put(table, name, pa.array(values, table.schema.field(name).type))

    rewrite(file, change)
    refused(data, kind, f"{file}: episode 1: `{name}`: {kind}:", says)


def test_rows_and_columns_that_are_not_there(data: Path) -> None:
    file = steps_file(data, 1)
    whole = file.read_bytes()
    rewrite(file, lambda table: table.slice(0, len(table) - 1))
    refused(data, "wrong_size", str(file), "rows; its episodes have")
    file.write_bytes(whole)
    rewrite(file, lambda table: table.drop_columns(["action"]))
    refused(data, "missing", str(file), "`action`: missing: no such column, which info.json lists")
    file.write_bytes(whole)
    rewrite(file, lambda table: put(table, "next.reward", pa.array([None] * len(table), pa.float32())))
    refused(data, "missing", str(file), "`next.reward`: missing: no value in row 0")
    file.write_bytes(whole)
    rewrite(file, lambda table: put(table, "action", pa.array([[1.0] * (1 + i % 2) for i in range(len(table))])))
    refused(data, "unsupported", "lists of 1 to 2 values")
    for size in (0, 4, len(whole) // 2, len(whole) - 20):
        file.write_bytes(whole[:size])
        refused(data, "corrupt", str(file), "Parquet")
    for at in range(0, len(whole), len(whole) // 25):
        damaged = bytearray(whole)
        damaged[at] ^= 0xFF
        file.write_bytes(damaged)
        with suppress(gm.FormatError):
            read(data, fields={"obs": "observation.state", "acts": "action"})
    file.unlink()
    with pytest.raises(FileNotFoundError):
        open_lerobot(data).column("acts")


def png(picture: np.ndarray) -> bytes:
    file = BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


def test_pictures_that_are_none(data: Path) -> None:
    file, at = steps_file(data, 1), row_of(data, 1, 2)
    whole = file.read_bytes()

    def changed(value: bytes | None) -> Callable[[Any], Any]:
        def change(table: Any) -> Any:
            pictures = table.column(WRIST).to_pylist()
            pictures[at]["bytes"] = value
            return put(table, WRIST, pa.array(pictures, table.schema.field(WRIST).type))

        return change

    for value, kind, says in (
        (None, "missing", "the bytes of the picture are not in the file"),
        (b"", "corrupt", "cannot identify image file"),
        (b"GIF89a" + bytes(50), "corrupt", "cannot identify image file"),
        (png(np.zeros((24, 32), np.uint8)), "corrupt", "a picture of the mode L; expected RGB"),
    ):
        rewrite(file, changed(value))
        error = refused(data, kind, f"{file}: episode 1: `{WRIST}`: {kind}: row 2:", says)
        assert (error.chunk, error.frame) == (1, 2)
        file.write_bytes(whole)
    rewrite(file, lambda table: put(table, WRIST, table.column("index")))
    refused(data, "corrupt", "int64; expected pictures as bytes")


def pictures(episodes: range, drop: int | None = None, more: int = 0) -> tuple[list[np.ndarray], list[float]]:
    """Frames of episodes in one video and their times: without one of them, or with some more."""
    found = [step(episode, t)[TOP] for episode in episodes for t in range(LENGTHS[episode])]
    found += [found[-1]] * more
    times = [i / FPS for i in range(len(found))]
    if drop is not None:
        del found[drop], times[drop]
    return found, times


def test_videos_that_lack_frames_or_have_too_many(data: Path) -> None:
    old = data.name.endswith("v2.1")
    file, episodes, first = video_file(data, 1), range(1, 2) if old else range(3), 0 if old else LENGTHS[0]
    write_video(file, *pictures(episodes))
    demos = open_lerobot(data)
    assert np.abs(demos[1]["obs.images.top"][:, 0, 0, 0].astype(int) - np.arange(20, 90, 10)).max() < 5
    write_video(file, *pictures(episodes, drop=first + 3))
    error = refused(data, "missing", f"{file}: episode 1: `{TOP}`: missing: row 3: no frame at")
    assert (error.chunk, error.frame, error.member) == (1, 3, TOP)
    write_video(file, *pictures(episodes, drop=first))
    refused(data, "missing", f"{file}: episode 1: `{TOP}`: missing: row 0: no frame at")
    last = 1 if old else 2
    write_video(file, *pictures(episodes, drop=sum(LENGTHS[episode] for episode in episodes) - 1))
    says = f"row {LENGTHS[last] - 1}: the video ends; the episode has {LENGTHS[last]} steps"
    refused(data, "truncated", f"{file}: episode {last}: `{TOP}`: truncated: {says}")
    write_video(file, *pictures(episodes, more=2))
    refused(data, "wrong_size", f"{file}: episode {last}: ", f"more frames than the {LENGTHS[last]} steps")
    frames, times = pictures(episodes)
    write_video(file, [*frames, frames[0]], [*times[: first + 2], times[first + 1] + 0.05, *times[first + 2 :]])
    refused(data, "wrong_size", f"{file}: episode 1: ", "between those of two steps")


def test_a_video_of_depth_is_not_cut_to_8_bits(data: Path) -> None:
    import av

    file = video_file(data, 0)
    with av.open(str(file), "w", format="matroska") as container:
        stream = container.add_stream("ffv1", rate=FPS)
        stream.height, stream.width, stream.pix_fmt = 48, 64, "gray16le"
        deep = av.VideoFrame.from_ndarray(np.full((48, 64), 5000, np.uint16), format="gray16le")
        container.mux(stream.encode(deep))
        container.mux(stream.encode())
    refused(data, "unsupported", f"{file}: episode 0: `{TOP}`: unsupported: a video of depth (gray16le)")


def test_videos_that_are_none(data: Path) -> None:
    file = video_file(data, 1)
    whole = file.read_bytes()
    for content in (b"", b"no video", whole[: len(whole) // 2], whole[:-100]):
        file.write_bytes(content)
        with pytest.raises(gm.FormatError) as caught:
            open_lerobot(data)[1]
        assert caught.value.kind in ("corrupt", "truncated", "missing"), str(caught.value)
        assert caught.value.chunk == 1
    rng = np.random.default_rng(0)
    for _ in range(30):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] ^= 1 << int(rng.integers(8))
        file.write_bytes(damaged)
        with suppress(gm.FormatError):
            assert open_lerobot(data)[1]["obs.images.top"].shape == (7, 3, 48, 64)
    file.unlink()
    refused(data, "missing", f"`{TOP}`: missing: there is no such video")


def test_what_does_not_fit_says_what_to_do(data: Path) -> None:
    demos = open_lerobot(data, max_bytes=200_000)
    with pytest.raises(gm.FormatError, match=r"too_large: `obs.images.wrist` takes .*columns=FOLDER"):
        open_lerobot(data, max_bytes=30_000).column("obs.images.wrist")
    assert len(demos[0]) == 5
    with pytest.raises(gm.FormatError, match=r"too_large: episode 1 takes .* leaves pictures out"):
        open_lerobot(data, max_bytes=30_000)[1]
    with pytest.raises(gm.FormatError, match="no field is called `obs`"):
        demos.column("obs")


def test_texts_and_two_features_of_one_name(old: Path) -> None:
    for episode in range(3):
        file = steps_file(old, episode)
        rewrite(file, lambda table: table.append_column("said", pa.array([f"a{i}" for i in range(len(table))])))
    say(old, lambda info: info["features"].update(said={"dtype": "string", "shape": [1], "names": None}))
    assert open_lerobot(old).extras(2)["said"] == ["a0", "a1", "a2", "a3"]
    rewrite(steps_file(old, 1), lambda table: put(table, "said", table.column("index")))
    with pytest.raises(gm.FormatError, match="episode 1: `said`: corrupt: int64; expected texts"):
        open_lerobot(old).extras(1)
    say(old, lambda info: info["features"].update(actions={"dtype": "float32", "shape": [2], "names": None}))
    with pytest.raises(gm.ConfigError, match="would both be `acts`"):
        open_lerobot(old)


def test_the_info_of_real_files_is_as_it_was(data: Path) -> None:
    assert json.loads((data / "meta/info.json").read_text())["codebase_version"] == data.name.removeprefix("lerobot-")
