"""Opening demonstrations of every form: trajectories as named arrays, extras, metadata; bad files with their place."""

import gzip
import json
import tarfile
from pathlib import Path

import numpy as np
import pytest
from demo_files import (
    wds_samples,
    write_atari,
    write_dm_control,
    write_imitation,
    write_magical,
    write_minecraft,
    write_procgen,
    write_wds,
)

import gristmill as gm


def check(demos: gm.Demos, form: str, lengths: list[int], fields: set[str]) -> None:
    assert isinstance(demos, gm.Demos)
    assert (demos.format, len(demos), demos.num_frames) == (form, len(lengths), sum(lengths))
    assert [demos.frames(i) for i in range(len(demos))] == lengths
    assert fields == {name for name in demos.layout.names if name}
    for trajectory in demos:
        assert {name: trajectory[name].shape[0] for name in fields} == dict.fromkeys(fields, len(trajectory))
        assert trajectory["dones"].tolist() == [False] * (len(trajectory) - 1) + [True]


STRICT = {"acts", "dones", "truncated"}
PAIR = STRICT | {"obs", "next_obs"}


def test_magical(tmp_path: Path) -> None:
    row = write_magical(tmp_path / "demo-0.pkl.gz", [0, 3, 0, 5, 0])
    demos = gm.open(tmp_path / "demo-0.pkl.gz")
    views = {"obs.allo", "obs.ego", "next_obs.allo", "next_obs.ego"}
    check(demos, "demo.magical", [5], STRICT | views | {"rews"})
    assert demos.metadata == {"env_name": "MoveToRegion-Demo-v0", "score": "0.75"}
    np.testing.assert_array_equal(demos[0]["obs.ego"][2], row.obs[2]["ego"])
    np.testing.assert_array_equal(demos[0]["next_obs.allo"][4], row.obs[5]["allo"])
    assert demos[0]["acts"].tolist() == [0, 3, 0, 5, 0]
    assert demos.extras(0)["infos"] == [{"eval_score": float(t)} for t in range(5)]


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_dm_control(tmp_path: Path, protocol: int) -> None:
    made = write_dm_control(tmp_path / "finger-spin-1.pkl.gz", [7, 1, 5], protocol)
    demos = gm.open(tmp_path / "finger-spin-1.pkl.gz")
    check(demos, "demo.dm_control", [7, 1, 5], PAIR | {"rews"})
    for i, known in enumerate(made):
        np.testing.assert_array_equal(demos[i]["obs"], known.obs[:-1])
        np.testing.assert_array_equal(demos[i]["next_obs"], known.obs[1:])
        np.testing.assert_array_equal(demos[i]["acts"], known.acts)
        assert demos[i]["rews"].tolist() == known.rews.tolist()
        assert demos.truncated(i)
        for found, info in zip(demos.extras(i)["infos"], known.infos, strict=True):
            assert found.keys() == info.keys()
            np.testing.assert_array_equal(found["internal_state"], info["internal_state"])
            assert (found["discount"], found["at"]) == (1.0, info["at"])
    np.testing.assert_array_equal(demos.column("acts"), np.concatenate([known.acts for known in made]))


def test_atari_procgen_imitation_and_minecraft(tmp_path: Path) -> None:
    made = write_atari(tmp_path / "pong.npz", [5, 4])
    demos = gm.open(tmp_path / "pong.npz")
    check(demos, "demo.atari", [4, 3], PAIR)
    np.testing.assert_array_equal(demos[1]["obs"][2], made[1]["states"][2].transpose(2, 0, 1))
    assert demos.truncated(0)

    games = write_procgen(tmp_path / "demo_coinrun.pickle", [3, 2])
    demos = gm.open(tmp_path / "demo_coinrun.pickle")
    check(demos, "demo.procgen", [3, 2], PAIR | {"rews"})
    np.testing.assert_array_equal(demos[0]["next_obs"][2], games["obs"][0][3].transpose(2, 0, 1))
    assert not demos.truncated(0)

    rows = write_imitation(tmp_path / "final.pkl", [2, 6])
    demos = gm.open(tmp_path / "final.pkl")
    check(demos, "demo.imitation", [2, 6], PAIR | {"rews"})
    np.testing.assert_array_equal(demos[1]["obs"], rows[1].obs[:-1])

    steps = write_minecraft(tmp_path / "stream", 6)
    demos = gm.open(tmp_path / "stream" / "rendered.npz")
    check(demos, "demo.minecraft", [6], STRICT | {"rews"})
    np.testing.assert_array_equal(demos[0]["acts"], steps["action$vector"])


def test_the_video_beside_a_recording(tmp_path: Path) -> None:
    av = pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[minecraft])")
    write_minecraft(tmp_path, 3)
    with av.open(str(tmp_path / "recording.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=20)
        stream.width = stream.height = 64
        for t in range(4):
            picture = np.full((64, 64, 3), 60 * t, np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    demos = gm.open(tmp_path / "rendered.npz")
    check(demos, "demo.minecraft", [3], PAIR | {"rews"})
    assert demos[0]["obs"].shape == (3, 3, 64, 64)
    assert [abs(int(frame.mean()) - 60 * t) < 12 for t, frame in enumerate(demos[0]["next_obs"], 1)] == [True] * 3


@pytest.mark.parametrize(("steps", "frames"), [(1792, 1833), (1840, 1867), (1746, 1785), (2215, 2508)])
def test_recordings_of_real_sizes(tmp_path: Path, steps: int, frames: int) -> None:
    av = pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[minecraft])")
    made = write_minecraft(tmp_path, steps)
    more = 3
    with av.open(str(tmp_path / "recording.mp4"), "w") as container:
        stream = container.add_stream("mpeg4", rate=20)
        stream.width = stream.height = 16
        stream.bit_rate = 1 << 20
        for t in range(frames + more):
            # Brightness goes up and down; which frame is first is seen by where it turns.
            picture = np.full((16, 16, 3), 16 + abs((t * 4) % 400 - 200), np.uint8)
            for packet in stream.encode(av.VideoFrame.from_ndarray(picture, format="rgb24")):
                container.mux(packet)
        for packet in stream.encode():
            container.mux(packet)
    # The video continues for some frames after the recording: `metadata.json` says where that ends.
    (tmp_path / "metadata.json").write_text(json.dumps({"success": True, "true_video_frame_count": frames}))
    demos = gm.open(tmp_path / "rendered.npz")
    check(demos, "demo.minecraft", [steps], PAIR | {"rews"})
    np.testing.assert_array_equal(demos[0]["acts"], made["action$vector"])
    skipped = frames - (steps + 1)
    shown = np.array([16 + abs(((t + skipped) * 4) % 400 - 200) for t in range(steps)])
    assert np.abs(demos[0]["obs"].mean(axis=(1, 2, 3)) - shown).max() < 6
    (tmp_path / "metadata.json").write_text(json.dumps({"true_video_frame_count": frames + 9}))
    with pytest.raises(gm.FormatError, match="true_video_frame_count") as refused:
        gm.open(tmp_path / "rendered.npz")
    assert (refused.value.kind, refused.value.source) == ("truncated", str(tmp_path / "recording.mp4"))
    with pytest.raises(gm.FormatError, match="bytes of frames") as refused:
        gm.demos.open_demos(tmp_path / "rendered.npz", max_bytes=1 << 20)
    assert refused.value.kind == "too_large"


def test_a_damaged_video_is_refused_as_such(tmp_path: Path) -> None:
    pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[minecraft])")
    write_minecraft(tmp_path, 3)
    for data in (b"", b"no video at all" * 100):
        (tmp_path / "recording.mp4").write_bytes(data)
        with pytest.raises(gm.FormatError, match="no video that PyAV can read") as refused:
            gm.open(tmp_path / "rendered.npz")
        assert refused.value.kind == "corrupt"


def test_a_shard_and_a_folder_of_shards(tmp_path: Path) -> None:
    write_wds(tmp_path / "a-2.tar", wds_samples([False, True, False], first=10))
    write_wds(tmp_path / "a-10.tar", wds_samples([True, False, True], first=20))
    # By name and first bytes a plain tar could hold chess games; a folder of tars says what is meant.
    demos = gm.open(tmp_path)
    assert (demos.format, [demos.frames(i) for i in range(len(demos))]) == ("demo.shard", [2, 2, 2])
    assert demos.column("obs")[:, 0, 0].tolist() == [10, 11, 12, 20, 21, 22]
    assert demos[1]["dones"].tolist() == [False, True]
    assert demos.extras(1)["note"] == ["hi", "hi"]
    assert demos.metadata == {}
    with tarfile.open(tmp_path / "b.tgz", "w:gz") as packed:
        packed.add(tmp_path / "a-2.tar", "inner")
    with gzip.open(tmp_path / "c.tgz", "wb") as again:
        again.write((tmp_path / "a-2.tar").read_bytes())
    single = gm.open(tmp_path / "c.tgz")
    assert [single.frames(i) for i in range(len(single))] == [2, 1]
    assert [single.truncated(i) for i in range(2)] == [False, True]


def test_shards_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    write_wds(tmp_path / "a.tar", wds_samples([False, True]))
    write_wds(tmp_path / "b.tar", [{"obs.npy": b"\x93NUMPY"}])
    with pytest.raises(gm.FormatError) as refused:
        gm.open(tmp_path)
    assert refused.value.source == str(tmp_path / "b.tar")
    assert refused.value.member == "frame_000.obs.npy"
    (tmp_path / "b.tar").unlink()
    write_wds(tmp_path / "b.tar", [{k: v for k, v in wds_samples([True])[0].items() if k != "dones.json"}])
    with pytest.raises(gm.FormatError) as refused:
        gm.open(tmp_path)
    assert (refused.value.kind, refused.value.source) == ("wrong_size", str(tmp_path / "b.tar"))


def test_what_is_no_demonstration_is_refused_with_its_file(tmp_path: Path) -> None:
    for name, data, kind in [
        ("x.pkl", b"cos\nsystem\n(Vtrue\ntR.", "forbidden"),
        ("x.pickle", b"}.", "unknown_format"),
        ("y.pkl", b"].", "empty"),
        ("x.npz", b"PK\x03\x04", "corrupt"),
        ("x.tar.zst", b"\x28\xb5\x2f\xfd", "truncated"),
        ("x.pkl.gz", gzip.compress(b"]"), "truncated"),
    ]:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(gm.FormatError) as refused:
            gm.open(path)
        assert (refused.value.kind, refused.value.source) == (kind, str(path)), refused.value
    with pytest.raises(FileNotFoundError):
        gm.open(tmp_path / "none.pkl")


def test_the_real_files(shared: Path) -> None:
    folder = shared / "data" / "demos"
    pong = gm.open(folder / "pong.tar.zst")
    assert (pong.format, len(pong), pong.num_frames, pong.truncated(0)) == ("demo.shard", 1, 998, True)
    assert pong.metadata["color_space"] == "GRAY"
    assert pong.metadata["action_space"].state["n"] == 6
    assert pong[0]["obs"].shape == (998, 4, 84, 84)
    assert len(gm.open(folder / "imit_cartpole_final.pkl")) == 56
    npz = gm.open(folder / "imit_cartpole_final.npz")
    assert (len(npz), npz.num_frames, npz.format) == (57, 26964, "demo.imitation_npz")
    magical = gm.open(folder / "magical-MoveToRegion.pkl.gz")
    assert (len(magical), magical.frames(0)) == (1, 40)
    assert magical[0]["obs.ego"].shape == (40, 384, 384, 3)
    for name, lengths in [("demos_np2_p4_pax", [7, 1, 5]), ("random_np1_p3_gnu", [300, 4])]:
        path = shared / "vectors" / "demos" / f"{name}.tar.zst"
        shard = gm.open(path)
        assert [shard.frames(i) for i in range(len(shard))] == lengths
        known = json.loads(path.with_name(f"{name}.expected.json").read_text())
        assert shard.extras(0)["__key__"] == [frame["key"] for frame in known["frames"][: lengths[0]]]
