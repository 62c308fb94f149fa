"""Files of MCAP that its own packages wrote: opened, inspected, verified, packed and fed; damaged ones refused."""

import json
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from mcap.writer import CompressionType
from mcap_files import SECOND, run, write_json, write_pictures, write_protobuf, write_ros
from PIL import Image

import gristmill as gm
from gristmill.demos.own.opening import open_own


def said(*words: object, code: int = 0) -> dict[str, Any]:
    command = [sys.executable, "-m", "gristmill", *map(str, words), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return dict(json.loads(done.stdout))


def test_a_file_is_a_trajectory_whose_steps_are_actions(tmp_path: Path) -> None:
    demos = gm.open(write_json(tmp_path / "run.mcap", run(0, 8)))
    assert (demos.lengths, demos.format, demos.truncated(0)) == ([8], "demo.own.mcap", False)
    one, t = demos[0], np.arange(8)
    np.testing.assert_array_equal(one["acts.data"], np.stack([t / 2, -t], 1))
    np.testing.assert_array_equal(one["acts.gripper.open"], t % 2 == 0)
    np.testing.assert_array_equal(one["acts.log_time"], t * SECOND // 10)
    # At each action the state that was logged at this time, not the one 0.05 s later; none before the first.
    np.testing.assert_array_equal(one["obs.state.position"], np.stack([t, t * 0, (t > 0) / 2], 1))
    np.testing.assert_array_equal(one["obs.state.seen"], t > 0)
    np.testing.assert_array_equal(one["camera.seen"], t > 1)
    np.testing.assert_array_equal(one["camera.number"], [0, 0, 2, 2, 2, 5, 5, 5])
    assert one["camera.log_time"][4] == 0.19 * SECOND
    assert demos.metadata["left_out"] == {"observation/state.name": "a text, or nothing; expected numbers"}


def test_a_folder_has_an_episode_in_each_file_and_is_fed_and_packed(tmp_path: Path) -> None:
    data = tmp_path / "runs"
    data.mkdir()
    for i, steps in enumerate((6, 9, 4)):
        write_json(data / f"run_{i}.mcap", run(i, steps))
    fields = {"obs": "observation/state.position", "acts": "action.data"}
    demos = gm.open(data, fields=fields)
    assert demos.lengths == [6, 9, 4]
    assert set(demos.layout.names) - {""} == {"obs", "obs.seen", "acts", "dones", "truncated"}
    batch = next(iter(gm.StepLoader([demos], gm.pairs.BC, batch_size=4, seed=1)))
    assert (batch["obs"].shape, batch["acts"].shape) == ((4, 3), (4, 2))
    windows = gm.pairs.Windows(size=3, obs="obs").over(demos)[[0, 1, 2]]
    np.testing.assert_array_equal(windows.extra_context, [[False, False, True], [False, True, True], [True] * 3])
    gm.pack(data, tmp_path / "pack", fields=fields)
    pack = gm.open(tmp_path / "pack")
    assert pack.lengths == [6, 9, 4]
    for name in demos.layout.names:
        if name:
            np.testing.assert_array_equal(pack.column(name), demos.column(name))
    loader = gm.DataLoader(
        pack, encoder=gm.Fields(["obs", "acts"]), view=gm.views.Offsets((-1, 0)), batch_size=4, seed=1
    )
    assert next(iter(loader))["obs"].shape == (4, 2, 3)
    mapped = gm.open(data, fields=fields, columns=tmp_path / "columns")
    np.testing.assert_array_equal(mapped.column("obs"), demos.column("obs"))


def test_a_field_says_which_topic_ticks(tmp_path: Path) -> None:
    path = write_json(tmp_path / "run.mcap", run(0, 8))
    fields = {"clock": "observation/state.log_time", "obs": "observation/state.position", "acts": "action.data"}
    demos = gm.open(path, fields=fields)
    assert demos.lengths == [14]
    one = demos[0]
    np.testing.assert_array_equal(one["clock"], np.arange(2, 16) * SECOND // 20)
    np.testing.assert_array_equal(one["acts"][:, 1], -np.repeat(np.arange(1, 8), 2))
    assert set(one.dtype.names or ()) - {""} == {"clock", "obs", "acts", "acts.seen", "dones", "truncated"}
    assert gm.open(path, fields={"obs": "camera.number"}).lengths == [2]
    np.testing.assert_array_equal(gm.open(path, fields={"acts": "/action.data"}).column("acts"), run_of(8))
    with pytest.raises(gm.FormatError, match=r"there is no `action.date`; did you mean `action.data`"):
        gm.open(path, fields={"acts": "action.date"})
    with pytest.raises(gm.FormatError, match=r"there is no `actions` \(found: `action.log_time`"):
        gm.open(path, fields={"acts": "actions"})


def run_of(steps: int) -> list[list[float]]:
    return [[t / 2, -t] for t in range(steps)]


@pytest.mark.parametrize("packing", list(CompressionType))
def test_messages_of_ros_are_numbers_by_their_paths(tmp_path: Path, packing: CompressionType) -> None:
    path = write_ros(tmp_path / "bag.mcap", 6, packing)
    with pytest.raises(gm.FormatError, match=r"no array has a usual name .*`joints.position`"):
        gm.open(path)
    demos = gm.open(path, fields={"obs": "joints"})
    t = np.arange(6)
    np.testing.assert_array_equal(demos.column("obs.position"), np.stack([t / 4, -t / 4], 1))
    np.testing.assert_array_equal(demos.column("obs.header.stamp.nanosec"), t * SECOND // 10)
    np.testing.assert_array_equal(demos.column("obs.on"), t > 2)
    assert not {"obs.name", "obs.effort", "obs.header.frame_id"} & set(demos.layout.names)
    with pytest.raises(gm.FormatError, match=r"`joints.name`: unsupported: a list of texts"):
        gm.open(path, fields={"obs": "joints.name"})


@pytest.mark.parametrize(("dtype", "shape"), [("u1", (5, 6, 3)), ("u1", (5, 6)), ("u2", (5, 6))])
def test_compressed_pictures_are_decoded_at_the_steps(tmp_path: Path, dtype: str, shape: tuple[int, ...]) -> None:
    shots = [np.arange(np.prod(shape)).reshape(shape).astype(dtype) + np.array(20 * t, dtype) for t in range(8)]
    path, fields = tmp_path / "run.mcap", {"obs": "/camera.data", "acts": "/action.x"}
    demos = gm.open(write_pictures(path, [png(one) for one in shots]), fields=fields)
    found = demos.column("obs")
    assert (found.dtype, found.shape) == (np.dtype(dtype), (4, 3 if len(shape) == 3 else 1, 5, 6))
    expected = [np.moveaxis(shots[t].reshape(5, 6, -1), -1, 0) for t in (1, 3, 5, 7)]
    np.testing.assert_array_equal(found, expected)
    gm.pack(path, tmp_path / "pack", fields=fields)
    np.testing.assert_array_equal(gm.open(tmp_path / "pack").column("obs"), found)
    write_pictures(path, [png(one) for one in (*shots[:3], shots[3][1:])])
    with pytest.raises(gm.FormatError, match=r"`/camera.data`.*a picture of 4 x 6"):
        gm.open(path, fields=fields)
    write_pictures(path, [png(shots[0]), png(shots[1])[:40]])
    with pytest.raises(gm.FormatError, match=r"/camera.data"):
        gm.open(path, fields=fields)


def png(picture: Any) -> bytes:
    file = BytesIO()
    Image.fromarray(picture).save(file, format="PNG")
    return file.getvalue()


def test_messages_of_protobuf_are_numbers_by_their_paths(tmp_path: Path) -> None:
    demos = gm.open(
        write_protobuf(tmp_path / "pose.mcap", 5), fields={"obs": "pose.position", "acts": "pose.covariance"}
    )
    np.testing.assert_array_equal(demos.column("obs.x"), np.arange(5))
    np.testing.assert_array_equal(demos.column("acts"), [[t, 2, 3] for t in range(5)])
    assert gm.open(tmp_path / "pose.mcap", fields={"n": "pose.count"}).column("n").tolist() == list(range(5))


def test_commands_take_it(tmp_path: Path) -> None:
    path = write_json(tmp_path / "run.mcap", run(0, 8))
    assert said("inspect", path)["frames"] == 8
    assert said("verify", path)["checked"] == 8
    assert said("pack", path, tmp_path / "pack")["rows"] == 8
    words = ["--fields", "obs=observation/state.position,acts=action.data"]
    assert said("convert", path, tmp_path / "x.tar", *words)["trajectories"] == 1
    assert gm.doctor(path).healthy


def test_messages_in_any_order_are_sorted_by_their_times(tmp_path: Path) -> None:
    messages = run(0, 8)
    demos = gm.open(write_json(tmp_path / "a.mcap", messages))
    other = gm.open(write_json(tmp_path / "b.mcap", sorted(messages, key=lambda one: -one[1])))
    for name in ("acts.data", "camera.number", "camera.seen"):
        np.testing.assert_array_equal(demos.column(name), other.column(name))


def test_values_that_are_no_columns_are_left_out_and_said(tmp_path: Path) -> None:
    messages: list[tuple[str, float, Any]] = [
        ("action", t, {"data": [t], "points": [0] * (t + 1), "late": t, "deep": [[1, 2], [3]], "boxes": [{"x": 1}]})
        for t in range(4)
    ]
    del messages[2][2]["late"]
    demos = gm.open(write_json(tmp_path / "x.mcap", messages))
    assert demos.column("acts.data").tolist() == [[0], [1], [2], [3]]
    assert set(demos.metadata["left_out"]) == {f"action.{name}" for name in ("points", "late", "deep", "boxes")}
    for name, says in (
        ("points", r"`action.points`: unsupported: message 1 has the shape \(2,\), message 0 \(1,\)"),
        ("late", "message 2 has no such value"),
        ("deep", "lists of several lengths"),
    ):
        with pytest.raises(gm.FormatError, match=says):
            gm.open(tmp_path / "x.mcap", fields={"acts": f"action.{name}"})


def test_every_cut_is_refused(tmp_path: Path) -> None:
    path = write_json(tmp_path / "run.mcap", run(0, 8), chunk_size=300)
    whole = path.read_bytes()
    for size in range(0, len(whole), 37):
        path.write_bytes(whole[:size])
        with pytest.raises(gm.FormatError) as caught:
            gm.open(path)
        assert caught.value.kind in ("truncated", "corrupt")
        assert f"{path}: " in str(caught.value)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(gm.FormatError, match=r"truncated: record at byte \d+: the file ends in it"):
        gm.open(path)


@pytest.mark.parametrize(
    "options", [{}, {"use_chunking": False, "enable_data_crcs": True}, {"compression": CompressionType.LZ4}]
)
def test_no_flipped_bit_changes_a_value(tmp_path: Path, options: dict[str, Any]) -> None:
    path = write_json(tmp_path / "run.mcap", run(0, 4), **options)
    whole, good = path.read_bytes(), gm.open(path)
    refused = []
    for at in range(0, len(whole), 11):
        damaged = bytearray(whole)
        damaged[at] ^= 4
        path.write_bytes(damaged)
        try:
            demos = gm.open(path)
        except gm.FormatError as error:
            refused.append(str(error))
        else:
            for name in good.layout.names:
                if name:
                    np.testing.assert_array_equal(demos.column(name), good.column(name))
    assert len(refused) > 10
    assert all(str(path) in one for one in refused)


def test_what_is_too_large_or_no_message_is_refused(tmp_path: Path) -> None:
    path = write_json(tmp_path / "run.mcap", run(0, 8))
    with pytest.raises(gm.FormatError, match=r"the bound is|take more than") as caught:
        open_own(path, max_bytes=1000)
    assert caught.value.kind in ("too_large", "corrupt")
    write_json(path, [("action", 0, {"data": 1}), ("action", 1, b"{no")])
    with pytest.raises(gm.FormatError, match=r"corrupt: record at byte \d+: JSONDecodeError"):
        gm.open(path)
    write_json(path, [("action", 0, b"[" * 100_000)])
    with pytest.raises(gm.FormatError, match="RecursionError"):
        gm.open(path)
    write_json(path, [])
    with pytest.raises(gm.FormatError, match="empty: no messages"):
        gm.open(path)
    path.write_bytes(b"no mcap at all")
    with pytest.raises(gm.FormatError, match="InvalidMagic"):
        gm.open(path)
    with pytest.raises(FileNotFoundError):
        open_own(tmp_path / "none.mcap")
    write_json(path, [("action", t, {"data": float("nan") if t == 2 else t}) for t in range(4)])
    with pytest.raises(gm.FormatError, match=r"not a number \(NaN\) in step 2"):
        gm.open(path)
