"""Data sets that LeRobot itself wrote, versions 2.1 and 3.0: opened, inspected, verified, packed and fed."""

import json
import os
import pickle
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lerobot_sets import FPS, LENGTHS, TASKS, TOP, VERSIONS, WRIST, column, put, rewrite, say, step, unpacked
from PIL import Image

import gristmill as gm

pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[lerobot])")

STEPS = sum(LENGTHS)

#: How far pictures of a video may be from what was recorded.
NEAR = 2

FIELDS = {"obs.state": "observation.state", "acts": "action", "rews": "next.reward", "grid": "grid"}


@pytest.fixture(params=VERSIONS)
def data(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return unpacked(request.param, tmp_path)


def run(*words: object, code: int = 0) -> dict[str, Any]:
    command = [sys.executable, "-m", "gristmill", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return dict(json.loads(done.stdout))


def test_everything_that_was_recorded_is_there(data: Path) -> None:
    demos = gm.open(data, expect=gm.demos.lerobot.LeRobotDemos)
    assert (demos.lengths, demos.num_frames) == (LENGTHS, STEPS)
    assert demos.format == f"demo.lerobot.{data.name[8:10]}"
    assert [demos.truncated(i) for i in range(3)] == [False, True, False]
    for field, name in FIELDS.items():
        expected = column(name)
        expected = expected[:, 0] if field == "rews" else expected
        np.testing.assert_array_equal(demos.column(field), expected)
        assert demos.column(field).dtype == expected.dtype
    np.testing.assert_array_equal(demos.column("obs.images.wrist"), np.moveaxis(column(WRIST), -1, 1))
    top = demos.column("obs.images.top")
    assert (top.dtype, top.shape) == (np.dtype(np.uint8), (STEPS, 3, 48, 64))
    assert np.abs(top.astype(int) - np.moveaxis(column(TOP), -1, 1)).max() <= NEAR
    np.testing.assert_array_equal(np.flatnonzero(demos.column("dones")), np.cumsum(LENGTHS) - 1)
    np.testing.assert_array_equal(np.flatnonzero(demos.column("truncated")), [11])
    np.testing.assert_array_equal(demos.column("next.success"), column("next.success")[:, 0])
    for i, steps in enumerate(LENGTHS):
        records = demos[i]
        for name in demos.layout.names:
            if name:
                first = sum(LENGTHS[:i])
                np.testing.assert_array_equal(records[name], demos.column(name)[first : first + steps])
        assert demos.extras(i) == {"task": [TASKS[i]] * steps}


def test_it_says_what_it_is_and_what_it_does_not_carry(data: Path) -> None:
    said = gm.open(data).metadata
    about = said["lerobot"]
    assert (about["fps"], about["robot_type"], about["tasks"]) == (FPS, "so100", ["pick", "place"])
    assert about["names"]["action"] == ["a", "b"]
    assert said["fields"]["obs.state"] == "observation.state"
    assert said["lossy"] == ["obs.images.top"]
    assert [name for name in said["left_out"] if "stats" in name] == list(said["left_out"])
    path = next((data / "data").rglob("*.parquet"))
    rewrite(path, lambda table: table.append_column("mood", table.column("index")))
    if data.name.endswith("v3.0"):
        assert gm.open(data).metadata["left_out"]["mood"] == "a column that info.json does not list"


def test_fields_choose_what_is_read(data: Path) -> None:
    for video in (data / "videos").rglob("*.mp4"):
        video.unlink()
    demos = gm.open(data, fields={"obs": "observation.state", "acts": "action"})
    assert set(demos.layout.names) - {""} == {"obs", "acts", "dones", "truncated"}
    np.testing.assert_array_equal(demos.column("obs"), column("observation.state"))
    assert demos.truncated(1)
    assert demos.metadata["left_out"][TOP] == "not asked for"
    with pytest.raises(gm.FormatError, match=r"no `observation.stat`; did you mean `observation.state`"):
        gm.open(data, fields={"obs": "observation.stat"})
    with pytest.raises(gm.ConfigError, match="says itself where episodes end"):
        gm.open(data, fields={"obs": "observation.state", "dones": "next.done"})


def test_columns_on_disk_are_found_again(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data, columns=tmp_path / "columns")
    top = demos.column("obs.images.top")
    assert isinstance(top, np.memmap)
    (written,) = (tmp_path / "columns").rglob("*.npy")
    before = written.stat().st_mtime_ns
    again = gm.open(data, columns=tmp_path / "columns", fields={"obs": TOP, "acts": "action"})
    np.testing.assert_array_equal(again.column("obs"), top)
    assert written.stat().st_mtime_ns == before


def test_a_pack_has_every_bit_and_decodes_no_more(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data)
    done = gm.pack(data, tmp_path / "pack")
    assert (done.runs, done.rows, done.skipped) == (3, STEPS, [])
    gm.pack(demos[1:], tmp_path / "some")
    pack, some = gm.open(tmp_path / "pack"), gm.open(tmp_path / "some")
    assert (pack.lengths, some.lengths) == (LENGTHS, LENGTHS[1:])
    assert [pack.truncated(i) for i in range(3)] == [False, True, False]
    for name in demos.layout.names:
        if name:
            found = pack.column(name)
            assert found.dtype == demos.column(name).dtype
            np.testing.assert_array_equal(found, demos.column(name))
            np.testing.assert_array_equal(some.column(name), demos.column(name)[LENGTHS[0] :])
    for i in range(3):
        assert pack.extras(i) == demos.extras(i) == {"task": [TASKS[i]] * LENGTHS[i]}
    assert some.extras(1) == pack.extras(2)


def test_a_pack_has_the_texts_of_steps(data: Path, tmp_path: Path) -> None:
    said = [f"step {i} \u00e4" * (i % 3) for i in range(STEPS)]
    for path in (data / "data").rglob("*.parquet"):
        rewrite(path, lambda table: table.append_column("says", [[said[i] for i in table.column("index").to_pylist()]]))
    say(data, lambda info: info["features"].update(says={"dtype": "string", "shape": [1], "names": None}))
    gm.pack(data, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert [one for i in range(3) for one in pack.extras(i)["says"]] == said
    assert pack.extras(2)["task"] == ["place"] * LENGTHS[2]
    gm.pack(gm.open(data, fields={"obs": "observation.state"}), tmp_path / "without")
    assert gm.open(tmp_path / "without").extras(0) == {}


def grey(values: np.ndarray) -> dict[str, Any]:
    file = BytesIO()
    Image.fromarray(values).save(file, format="PNG")
    return {"bytes": file.getvalue(), "path": None}


def deepened(data: Path, change: Callable[[list[np.ndarray]], object] = lambda _: None) -> np.ndarray:
    """Makes the pictures of the wrist depth in 16 bits, as data sets of depth cameras have it."""
    deep = [np.arange(24 * 32, dtype=np.uint16).reshape(24, 32) * np.uint16(80) + np.uint16(i) for i in range(STEPS)]
    stored = list(deep)
    change(stored)
    for path in (data / "data").rglob("*.parquet"):
        rewrite(path, lambda table: put(table, WRIST, [[grey(stored[i]) for i in table.column("index").to_pylist()]]))
    say(data, lambda info: info["features"][WRIST].update(shape=[24, 32, 1]))
    return np.stack(deep)[:, None]


def test_depth_has_its_16_bits(data: Path, tmp_path: Path) -> None:
    deep = deepened(data)
    demos = gm.open(data)
    found = demos.column("obs.images.wrist")
    assert (found.dtype, found.shape) == (np.dtype(np.uint16), (STEPS, 1, 24, 32))
    np.testing.assert_array_equal(found, deep)
    gm.pack(data, tmp_path / "pack")
    np.testing.assert_array_equal(gm.open(tmp_path / "pack").column("obs.images.wrist"), deep)
    assert run("convert", data, tmp_path / "x.tar")["trajectories"] == 3
    np.testing.assert_array_equal(gm.open(tmp_path / "x.tar").column("obs_images_wrist"), deep)
    assert run("inspect", data)["frames"] == STEPS
    assert run("verify", data)["checked"] == STEPS


def test_depth_of_several_kinds_is_refused_by_row(data: Path) -> None:
    def shallow(stored: list[np.ndarray]) -> None:
        stored[7] = stored[7].astype(np.uint8)

    deepened(data, shallow)
    with pytest.raises(gm.FormatError, match=r"episode 1: .*row 2: a picture of 8 bits; expected 16"):
        gm.open(data).column("obs.images.wrist")
    deepened(data, lambda stored: stored.__setitem__(0, stored[0].astype(np.uint8)))
    with pytest.raises(gm.FormatError, match=r"episode 0: .*row 1: a picture of 16 bits; expected 8"):
        gm.open(data).column("obs.images.wrist")


def test_colours_of_16_bits_are_not_cut_to_8(data: Path) -> None:
    def colours(width: int, height: int) -> bytes:
        rows = b"".join(b"\0" + bytes(6 * width) for _ in range(height))
        parts = [
            (b"IHDR", struct.pack(">IIBBBBB", width, height, 16, 2, 0, 0, 0)),
            (b"IDAT", zlib.compress(rows)),
            (b"IEND", b""),
        ]
        chunk = [
            struct.pack(">I", len(one)) + name + one + struct.pack(">I", zlib.crc32(name + one)) for name, one in parts
        ]
        return b"\x89PNG\r\n\x1a\n" + b"".join(chunk)

    one = {"bytes": colours(32, 24), "path": None}
    for path in (data / "data").rglob("*.parquet"):
        rewrite(path, lambda table: put(table, WRIST, [[one] * len(table)]))
    with pytest.raises(gm.FormatError, match="a picture of 16 bits; expected 8"):
        gm.open(data).column("obs.images.wrist")


def test_steps_pairs_windows_and_stacks_are_fed(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data)
    gm.pack(data, tmp_path / "pack")
    rows = {}
    several = gm.pairs.Steps(("obs.state", "obs.images.wrist", "acts"))
    for name, source in {"set": demos, "pack": gm.open(tmp_path / "pack")}.items():
        loader = gm.DataLoader(source, encoder=several, batch_size=4, seed=3, epochs=1, last_batch="keep")
        batches = list(loader)
        rows[name] = np.concatenate([batch["obs.state"] for batch in batches])
        assert batches[0]["obs.images.wrist"].shape == (4, 3, 24, 32)
    np.testing.assert_array_equal(rows["set"], rows["pack"])
    assert len(rows["set"]) == STEPS
    pairs = gm.pairs.TemporalOffset("dynamics", obs="obs.state", action="acts").over(demos)
    assert len(pairs) == STEPS - 3
    offset = pairs[np.arange(len(pairs))]
    np.testing.assert_array_equal(offset.target[:, 1], offset.context[:, 1] + 1)
    windows = gm.pairs.Windows(size=3, obs="obs.state").over(demos)[[0, 1, 2]]
    np.testing.assert_array_equal(windows.extra_context, [[False, False, True], [False, True, True], [True] * 3])
    stack = gm.pairs.FrameStack(size=2, obs="obs.images.wrist").over(demos)[[5]]
    assert stack.context.shape == (1, 6, 24, 32)
    np.testing.assert_array_equal(stack.extra_context, [[False, True]])
    only = gm.open(data, fields={"obs": "observation.state", "acts": "action"})
    batch = next(iter(gm.StepLoader([only], gm.pairs.BC, batch_size=4, seed=1)))
    assert batch["obs"].shape == (4, 3)


def test_delta_timestamps_are_steps_by_their_times(data: Path, tmp_path: Path) -> None:
    gm.pack(data, tmp_path / "pack")
    pack, times = gm.open(tmp_path / "pack"), [-0.2, 0, 0.1]
    view = gm.views.delta_timestamps(times, gm.open(data).metadata["lerobot"]["fps"])
    assert view == gm.views.Offsets((-2, 0, 1))
    chosen = gm.Fields(["obs.state", "timestamp"])
    seen = 0
    for batch in gm.DataLoader(pack, encoder=chosen, view=view, batch_size=4, epochs=1, seed=1):
        for row, mask in zip(batch["timestamp"], batch["mask"], strict=True):
            seen += 1
            np.testing.assert_allclose(row[mask] - row[1], np.asarray(times)[mask], atol=1e-6)
            assert mask[0] == (row[1] > 0.15)
    assert seen == STEPS


def test_delta_timestamps_of_several_tensors() -> None:
    of = gm.views.delta_timestamps
    both = of({"obs": [-0.1, 0], "acts": [0, 1 / 30]}, 30, pad="zero")
    assert both == gm.views.Offsets((-3, 0, 1), "zero", ["obs", "acts"])
    assert of([1 / 29.97, 2 / 29.97], 29.97).offsets == (1, 2)
    assert of([0.03333], 30).offsets == (1,)
    wrongs: list[tuple[Callable[[], object], str]] = [
        (lambda: of([0.05], 10), "0.05 seconds are no whole steps; the nearest step is at 0, 0 of 10 steps"),
        (lambda: of({"obs": [0], "acts": [0.13]}, 10), "`acts`: 0.13 seconds are no whole steps"),
        (lambda: of([0, -0.1], 10), "-0.1 follows step 0; expected ascending times"),
        (lambda: of([0, 0.00001], 10), "1e-05 follows step 0"),
        (lambda: of([], 10), "no times"),
        (lambda: of({}, 10), "no times"),
        (lambda: of([float("nan")], 10), "nan seconds; expected less than"),
        (lambda: of([0], 0), "fps is 0; expected a number above 0"),
        (lambda: of([0], float("nan")), "fps is nan"),
        (lambda: of([0], 10, tolerance=-1), "tolerance is -1; expected a number from 0"),
        (lambda: of({"obs": [0]}, 10, tensors=["acts"]), "tensors does not go with seconds by tensor"),
    ]
    for wrong, says in wrongs:
        with pytest.raises(gm.ConfigError) as caught:
            wrong()
        assert says in str(caught.value)
    with pytest.raises(TypeError, match="expected seconds"):
        of(["a"], 10)  # type: ignore[list-item]


def test_another_process_opens_it_again(data: Path) -> None:
    again = pickle.loads(pickle.dumps(gm.open(data)))
    np.testing.assert_array_equal(again[2]["obs.images.wrist"], gm.open(data)[2]["obs.images.wrist"])


def test_commands_take_it(data: Path, tmp_path: Path) -> None:
    told = run("inspect", data)
    assert (told["chunks"], told["frames"], told["format"]) == (3, STEPS, f"demo.lerobot.{data.name[8:10]}")
    assert told["about"]["robot_type"] == "so100"
    assert told["lossy"] == ["obs.images.top"]
    assert run("verify", data)["checked"] == STEPS
    assert run("stats", data)["demos"]["truncated"] == 1
    assert run("pack", data, tmp_path / "pack")["runs"] == 3
    assert run("convert", data, tmp_path / "x.tar.zst")["trajectories"] == 3
    shard = gm.open(tmp_path / "x.tar.zst")
    assert shard.lengths == LENGTHS
    assert shard.extras(2)["task"] == ["place"] * LENGTHS[2]
    assert gm.doctor(data).healthy
    (data / "videos").rename(data / "gone")
    faults = run("verify", data, code=1)["faults"]
    assert [(one["chunk"], one["kind"]) for one in faults] == [(0, "missing"), (1, "missing"), (2, "missing")]
    assert not gm.doctor(data).healthy


def test_the_command_finds_it(data: Path, tmp_path: Path) -> None:
    built = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[1] / "target")) / "debug/gristmill"
    if not built.exists():
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    env = {**os.environ, "GRISTMILL_PYTHON": sys.executable}
    line: list[str | Path] = [built, "pack", data, tmp_path / "pack", "--json"]
    done = subprocess.run(line, env=env, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["rows"] == STEPS


def test_what_pyav_decodes_needs_it(data: Path) -> None:
    program = (
        "import sys\n"
        "sys.modules['av'] = None\n"
        "import gristmill as gm\n"
        f"some = gm.open({str(data)!r}, fields={{'obs': 'observation.state', 'acts': 'action'}})\n"
        "assert len(some.column('obs')) == 16\n"
        "try:\n"
        f"    gm.open({str(data)!r})\n"
        "except gm.MissingPackageError as error:\n"
        "    assert 'pip install gristmill[lerobot]' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_pictures_may_have_their_channels_first_in_info(data: Path) -> None:
    def turned(info: dict[str, Any]) -> None:
        info["features"][TOP].update(shape=[3, 48, 64], names=["channels", "height", "width"])
        info["features"][WRIST].update(shape=[3, 24, 32], names=None)

    say(data, turned)
    demos = gm.open(data)
    assert demos.layout.dtype["obs.images.top"].shape == (3, 48, 64)
    np.testing.assert_array_equal(demos[1]["obs.images.wrist"][3], np.moveaxis(step(1, 3)[WRIST], -1, 0))
