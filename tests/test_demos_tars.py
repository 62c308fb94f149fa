"""Tars of demonstrations: what members make of them, what comes after their end, packings not read, odd names."""

import bz2
import gzip
import io
import lzma
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import npy, wds_samples, write_dm_control, write_wds

import gristmill as gm


def test_a_plain_shard_is_told_by_its_members(tmp_path: Path) -> None:
    write_wds(tmp_path / "demos.tar", wds_samples([False, True, False]))
    demos = gm.open(tmp_path / "demos.tar")
    assert (type(demos), demos.format, demos.lengths) == (gm.Demos, "demo.shard", [2, 1])
    assert gm.load_dataset_dict(tmp_path / "demos.tar")["dones"].tolist() == [False, True, False]
    write_wds(tmp_path / "only.tar", [{"json": b"1"}, {"json": b"2"}], prefix="")
    assert gm.open(tmp_path / "only.tar").column("json").tolist() == [1, 2]


def zeroed(tar: bytes) -> bytes:
    """The tar with a header of zeros in place of that of the last frame's first member."""
    at = tar.rindex(b"frame_003.obs.npy")
    return tar[:at] + bytes(512) + tar[at + 512 :]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("harm", "says", "frames"),
    [
        (lambda tar: tar + tar, "another tar begins", 4),
        (zeroed, "a header of zeros", 3),
        (lambda tar: tar + b"garbage", "after the end mark, is not zero", 4),
    ],
)
def test_what_lies_behind_the_end_is_refused_or_passed_over(
    tmp_path: Path, harm: Any, says: str, frames: int, packed: bool
) -> None:
    path = tmp_path / "demos" / ("demos.tgz" if packed else "demos.tar")
    path.parent.mkdir()
    write_wds(tmp_path / "whole.tar", wds_samples([False, True, False, True]))
    tar = harm((tmp_path / "whole.tar").read_bytes())
    path.write_bytes(gzip.compress(tar) if packed else tar)
    ways: list[dict[str, Any]] = [{}, {"columns": tmp_path / "columns"}]
    for options in ways:
        for source in (path, path.parent):
            with pytest.raises(gm.FormatError, match=says) as refused:
                gm.open(source, **options)
            assert (refused.value.kind, refused.value.source) == ("corrupt", str(path))
            assert refused.value.offset is not None
            demos = gm.open(source, strict=False, **options)
            assert demos.num_frames == frames
            # A strict reader does not take what was read without them.
            with pytest.raises(gm.FormatError, match="strict=False"):
                gm.open(source, **options)


def test_what_lies_behind_a_gzip_stream_is_refused(tmp_path: Path) -> None:
    write_wds(tmp_path / "whole.tar", wds_samples([True]))
    packed = gzip.compress((tmp_path / "whole.tar").read_bytes())
    (tmp_path / "demos.tgz").write_bytes(packed + bytes(100))
    assert gm.open(tmp_path / "demos.tgz").num_frames == 1
    (tmp_path / "demos.tgz").write_bytes(packed + b"more")
    with pytest.raises(gm.FormatError, match="after the gzip stream") as refused:
        gm.open(tmp_path / "demos.tgz")
    assert refused.value.offset == len(packed)
    assert gm.open(tmp_path / "demos.tgz", strict=False).num_frames == 1


def test_packings_that_are_not_read_say_what_to_do(tmp_path: Path) -> None:
    write_wds(tmp_path / "whole.tar", wds_samples([True]))
    tar = (tmp_path / "whole.tar").read_bytes()
    for name, data, says in [
        ("a.tar.xz", lzma.compress(tar), "packed by xz"),
        ("b.txz", lzma.compress(tar), "packed by xz"),
        ("c.tar.bz2", bz2.compress(tar), "packed by bzip2"),
        ("d.tar.zst", b"", "a file of no bytes"),
        ("e.tgz", gzip.compress(b""), "unpacks to nothing"),
        ("f.tgz", gzip.compress(bytes(10240)), "nothing but its end mark"),
        ("g.tar", bytes(10240), "nothing but its end mark"),
    ]:
        folder = tmp_path / name.partition(".")[0]
        folder.mkdir()
        (folder / name).write_bytes(data)
        for source in (folder / name, folder):
            # By itself it could as well be a tar of no games.
            if source.name == "g.tar":
                continue
            with pytest.raises(gm.FormatError, match=says) as refused:
                gm.open(source)
            assert refused.value.kind in ("unsupported", "empty")


def test_names_are_shown_without_control_characters(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "demos.tgz", "w:gz") as tar:
        for name, data in [("a\x1b[31m.x.npy", npy(1)), ("b.x.npy", npy(np.zeros(2)))]:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        info = tarfile.TarInfo("a\x1b[31m.y.npy")
        tar.addfile(info, io.BytesIO())
    with pytest.raises(gm.FormatError) as refused:
        gm.open(tmp_path / "demos.tgz")
    assert "\x1b" not in str(refused.value)
    write_wds(tmp_path / "two.tgz", [{"x.npy": npy(1)}, {"\x07bell.npy": npy(1)}])
    with pytest.raises(gm.FormatError, match=r"bell") as refused:
        list(gm.open(tmp_path / "two.tgz"))
    assert "\x07" not in str(refused.value)
    assert r"\u{7}bell" in str(refused.value)


def test_any_demonstrations_become_shards(tmp_path: Path) -> None:
    write_dm_control(tmp_path / "spin-1.pkl.gz", [3, 2])
    native = gm.open(tmp_path / "spin-1.pkl.gz")
    (path,) = gm.demos.minari.write_shards(tmp_path / "native.tar.zst", native)
    shards = gm.open(path)
    assert shards.lengths == [3, 2]
    for name in ("obs", "next_obs", "acts", "rews", "dones", "truncated"):
        np.testing.assert_array_equal(shards.column(name), native.column(name), name)
    assert shards.extras(1)["infos"][1]["at"] == native.extras(1)["infos"][1]["at"]
    space = shards.metadata["observation_space"].state
    assert (space["shape"], space["dtype"], int(np.max(space["high"]))) == ((3, 8, 8), np.uint8, 255)

    # Shards of shards, with what they say; and of a pack of them.
    (again,) = gm.demos.minari.write_shards(tmp_path / "again.tar", shards, color_space="GRAY")
    assert gm.open(again).metadata["color_space"] == "GRAY"
    assert gm.open(again).metadata["env_cfg"] == shards.metadata["env_cfg"]
    (tmp_path / "in").mkdir()
    path.rename(tmp_path / "in" / "native.tar.zst")
    gm.pack(tmp_path / "in", tmp_path / "pack")
    (packed,) = gm.demos.minari.write_shards(tmp_path / "packed.tar", gm.open(tmp_path / "pack"))
    np.testing.assert_array_equal(gm.open(packed).column("obs"), native.column("obs"))
