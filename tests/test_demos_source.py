"""Demonstrations that are not held in memory: plain shards reached by their place, and columns in files."""

import gzip
import os
import signal
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import npy, wds_samples, write_dm_control, write_magical, write_wds

import gristmill as gm
from gristmill.demos import load_dataset_dict, open_demos


def folder_of_shards(folder: Path) -> Path:
    """Three plain shards; a trajectory continues from the first to the second."""
    folder.mkdir()
    write_wds(folder / "a-1.tar", wds_samples([False, True, False], first=10))
    write_wds(folder / "a-2.tar", wds_samples([True, False, True], first=20))
    write_wds(folder / "a-10.tar", wds_samples([False], first=30))
    return folder


def pack(folder: Path) -> Path:
    """The same shards, the last two packed."""
    packed = folder.with_name("packed")
    packed.mkdir()
    for path in folder.iterdir():
        data = path.read_bytes()
        if path.name == "a-1.tar":
            (packed / path.name).write_bytes(data)
        else:
            (packed / f"{path.stem}.tgz").write_bytes(gzip.compress(data))
    return packed


def same(one: gm.Demos, two: gm.Demos) -> None:
    assert one.lengths == two.lengths
    assert one.layout == two.layout
    assert one.metadata == two.metadata
    for i in range(len(one)):
        np.testing.assert_array_equal(one[i], two[i])
        assert (one.truncated(i), one.extras(i)) == (two.truncated(i), two.extras(i))
    for name in one.layout.names:
        if name:
            np.testing.assert_array_equal(one.column(name), two.column(name))


def test_plain_shards_by_their_place_are_those_in_memory(tmp_path: Path) -> None:
    plain = folder_of_shards(tmp_path / "plain")
    held = gm.open(pack(plain))
    assert held.lengths == [2, 2, 2, 1]
    for _ in range(2):
        same(open_demos(plain, index=tmp_path / "index"), held)
    same(open_demos(plain, index="off"), held)
    names = [name for name in held.layout.names if name]
    for found in (open_demos(plain).columns(names), held.columns(iter(names))):
        assert list(found) == names
        for name in names:
            np.testing.assert_array_equal(found[name], held.column(name))


def keep_times(path: Path, data: bytes) -> None:
    """Writes over a file in place, which then looks unchanged."""
    stat = path.stat()
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def test_a_known_shard_is_not_read_when_it_is_opened(tmp_path: Path) -> None:
    path, index = tmp_path / "shards" / "a.tar", tmp_path / "index"
    path.parent.mkdir()
    write_wds(path, wds_samples([True, True, True]))
    lengths = open_demos(path.parent, index=index).lengths
    # All headers but those of the first frame are gone: only who looks there can tell.
    with tarfile.open(path) as tar:
        second = next(member.offset for member in tar if member.name.startswith("frame_001"))
    data = path.read_bytes()
    keep_times(path, data[:second] + b"\xff" * (len(data) - second))
    demos = open_demos(path.parent, index=index)
    assert demos.lengths == lengths == [1, 1, 1]
    assert demos[0]["obs"].shape == (1, 2, 3)
    with pytest.raises(gm.FormatError) as refused:
        demos[1]
    assert (refused.value.kind, refused.value.source, refused.value.offset) == ("corrupt", str(path), second)
    with pytest.raises(gm.FormatError):
        open_demos(path.parent, index="off")


def test_a_changed_shard_and_a_damaged_or_lost_index_are_noticed(tmp_path: Path) -> None:
    folder, index = folder_of_shards(tmp_path / "shards"), tmp_path / "index"
    lengths = open_demos(folder, index=index).lengths
    write_wds(folder / "a-2.tar", wds_samples([True, True, True, True], first=20))
    assert open_demos(folder, index=index).lengths == [2, 2, 1, 1, 1, 1] != lengths
    (facts,) = index.iterdir()
    whole = facts.read_bytes()
    for torn in (whole[:-7], b"\0" * 50 + whole[50:], b"garbage", b""):
        facts.write_bytes(torn)
        assert open_demos(folder, index=index).lengths == [2, 2, 1, 1, 1, 1]
    facts.unlink()
    assert open_demos(folder, index=index).lengths == [2, 2, 1, 1, 1, 1]


def test_a_bad_frame_is_refused_with_its_place_when_it_is_asked_for(tmp_path: Path) -> None:
    samples = wds_samples([True, True])
    samples[1]["obs.npy"] = npy(np.zeros((3, 3), np.uint8))
    write_wds(tmp_path / "a.tar", samples)
    demos = open_demos(tmp_path, index="off")
    assert len(demos[0]) == 1
    asked: list[Callable[[], object]] = [
        lambda: demos[1],
        lambda: demos.column("obs"),
        lambda: demos.columns(["obs", "dones"]),
        lambda: demos.extras(1),
    ]
    for ask in asked:
        with pytest.raises(gm.FormatError) as refused:
            ask()
        assert (refused.value.kind, refused.value.source) == ("wrong_size", str(tmp_path / "a.tar"))
    with pytest.raises(gm.FormatError) as refused:
        open_demos(tmp_path, index="off", columns=tmp_path / "columns")
    assert refused.value.kind == "wrong_size"


@pytest.mark.parametrize("packed", [False, True])
def test_columns_are_what_the_shards_hold(tmp_path: Path, packed: bool) -> None:
    plain = folder_of_shards(tmp_path / "plain")
    source = pack(plain) if packed else plain
    held, spilled = gm.open(source), gm.open(source, columns=tmp_path / "columns")
    same(spilled, held)
    column = spilled.column("obs")
    assert isinstance(column, np.memmap)
    (own,) = (tmp_path / "columns").iterdir()
    np.testing.assert_array_equal(np.load(own / "obs.npy"), held.column("obs"))
    batches = [list(gm.PairLoader(demos, gm.pairs.TemporalOffset(), batch_size=2, seed=1)) for demos in (held, spilled)]
    assert len(batches[0]) == 1
    np.testing.assert_array_equal(batches[0][0].context, batches[1][0].context)


def test_columns_are_used_again_until_the_source_changes(tmp_path: Path) -> None:
    source, columns = folder_of_shards(tmp_path / "shards"), tmp_path / "columns"
    gm.open(source, columns=columns)
    (own,) = columns.iterdir()
    before = (own / "obs.npy").stat()
    same(gm.open(source, columns=columns), gm.open(source))
    assert (own / "obs.npy").stat() == before
    write_wds(source / "a-2.tar", wds_samples([True], first=20))
    # What a killed writer left is no hindrance.
    (own / ".columns.part").mkdir()
    (own / ".columns.part" / "obs.npy").write_bytes(b"half")
    again = gm.open(source, columns=columns)
    assert again.lengths == [2, 2, 1]
    same(again, gm.open(source))
    assert sorted(path.name for path in columns.iterdir()) == [own.name]
    assert not (own / ".columns.part").exists()


def test_frames_out_of_order_are_put_right_in_columns_too(tmp_path: Path) -> None:
    samples = [
        {"obs.npy": npy(np.full(2, t)), "frame.cls": str(t).encode(), "dones.cls": str(int(t == 1)).encode()}
        for t in (2, 0, 3, 1)
    ]
    write_wds(tmp_path / "a.tar", samples)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "a.tgz").write_bytes(gzip.compress((tmp_path / "a.tar").read_bytes()))
    (tmp_path / "a").mkdir()
    (tmp_path / "a.tar").rename(tmp_path / "a" / "a.tar")
    for folder in (tmp_path / "a", tmp_path / "b"):
        for spill in (None, tmp_path / "columns"):
            demos = gm.open(folder, columns=spill)
            assert (demos.lengths, demos.column("obs")[:, 0].tolist()) == ([2, 2], [0, 1, 2, 3])


def test_a_task_in_columns_is_the_task_in_memory(tmp_path: Path) -> None:
    write_dm_control(tmp_path / "data/dm_control/finger-spin-1.pkl.gz", [4, 2])
    write_dm_control(tmp_path / "data/dm_control/finger-spin-2.pkl.gz", [3])
    write_magical(tmp_path / "data/magical/move-to-region/demo-0.pkl.gz", [0, 3, 5])
    write_magical(tmp_path / "data/magical/move-to-region/demo-1.pkl.gz", [1, 0])
    for benchmark, task, n_traj in [
        ("dm_control", "finger-spin", None),
        ("dm_control", "finger-spin", 1),
        ("magical", "MoveToRegion-Demo-v0", None),
    ]:
        cfg = {"benchmark_name": benchmark, "task_name": task}
        held = load_dataset_dict(cfg, {"data_root": str(tmp_path)}, n_traj)
        for _ in range(2):
            kept = load_dataset_dict(cfg, {"data_root": str(tmp_path)}, n_traj, columns=tmp_path / "columns")
            assert kept.keys() == held.keys()
            for name, array in held.items():
                if name == "infos":
                    assert str(kept[name].tolist()) == str(array.tolist())
                else:
                    assert isinstance(kept[name], np.memmap)
                    np.testing.assert_array_equal(kept[name], array)
    with pytest.raises(gm.ConfigError, match="compat"):
        load_dataset_dict(cfg, {"data_root": str(tmp_path)}, compat=True, columns=tmp_path)


def test_what_is_too_large_says_what_to_do(tmp_path: Path) -> None:
    source = folder_of_shards(tmp_path / "plain")
    packed = pack(source)
    with pytest.raises(gm.FormatError, match="columns") as refused:
        open_demos(packed, max_bytes=20_000)
    assert refused.value.kind == "too_large"
    same(open_demos(packed, max_bytes=20_000, columns=tmp_path / "columns"), gm.open(source))
    # Plain ones are opened whatever their size; a field of them has to fit.
    (tmp_path / "wide").mkdir()
    write_wds(tmp_path / "wide" / "a.tar", [{"obs.npy": npy(np.zeros(300)), "dones.cls": b"1"}] * 10)
    demos = open_demos(tmp_path / "wide", max_bytes=5000)
    assert len(demos) == 10
    assert demos[7]["obs"].shape == (1, 300)
    with pytest.raises(gm.FormatError, match="columns"):
        demos.column("obs")
    write_wds(tmp_path / "games.tar", [])
    with pytest.raises(gm.ConfigError, match="no demonstrations"):
        gm.open(tmp_path / "games.tar", columns=tmp_path)


def test_opening_a_folder_can_be_interrupted(tmp_path: Path) -> None:
    write_wds(tmp_path / "one.tar", wds_samples([False] * 40))
    packed = gzip.compress((tmp_path / "one.tar").read_bytes(), 1)
    (tmp_path / "shards").mkdir()
    for i in range(400):
        (tmp_path / "shards" / f"{i}.tgz").write_bytes(packed)

    # Not `KeyboardInterrupt`: one that came beside the call would end the whole run of the tests.
    def interrupt(*_: Any) -> None:
        raise TimeoutError

    def opened() -> None:
        signal.setitimer(signal.ITIMER_REAL, 0.005)
        gm.open(tmp_path / "shards")

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(TimeoutError):
            opened()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


LARGE = """
import resource, sys
import numpy as np
import gristmill as gm
import gristmill.pairs
def data():
    return 1024 * int(next(line for line in open("/proc/self/status") if line.startswith("VmData")).split()[1])
bound = data() + (96 << 20)
resource.setrlimit(resource.RLIMIT_DATA, (bound, bound))
for source in sys.argv[2:]:
    demos = gm.open(source, columns=sys.argv[1])
    column = demos.column("obs")
    assert column.nbytes > 3 * (96 << 20), column.nbytes
    assert [int(column[t, 0]) for t in (0, 255, 256)] == [0, 255, 0]
    assert len(demos[3]) == 8 and demos[3]["obs"][1, 0] == 25
    loader = gm.PairLoader(demos, gm.pairs.TemporalOffset(), batch_size=4, nominal_length=64, seed=1)
    assert sum(len(batch.context) for batch in loader) == 64
try:
    np.ones(bound, np.uint8)
except MemoryError:
    print("bounded")
"""


def test_data_several_times_larger_than_memory(tmp_path: Path) -> None:
    steps, size = 320, 1 << 20

    def samples() -> list[dict[str, bytes]]:
        pictures = [npy(np.full(size, t % 256, np.uint8)) for t in range(steps)]
        return [{"obs.npy": data, "dones.cls": str(int(t % 8 == 7)).encode()} for t, data in enumerate(pictures)]

    (tmp_path / "plain").mkdir()
    (tmp_path / "packed").mkdir()
    write_wds(tmp_path / "plain" / "a.tar", samples())
    with (tmp_path / "plain" / "a.tar").open("rb") as tar, gzip.open(tmp_path / "packed" / "a.tgz", "wb", 1) as to:
        while block := tar.read(1 << 22):
            to.write(block)
    run = subprocess.run(
        [sys.executable, "-c", LARGE, tmp_path / "columns", tmp_path / "packed", tmp_path / "plain"],
        capture_output=True,
        text=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    assert (run.returncode, run.stdout) == (0, "bounded\n"), run.stderr
