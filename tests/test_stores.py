"""Places that are no folders of this machine: what they give is what a disk gives; refusals that say why."""

import pickle
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import wds_samples, write_wds
from generated_games import game, write_games, write_gz, write_tar

import gristmill as gm
from gristmill.stores import Memory


def copied(folder: Path, name: str) -> str:
    """The URL of a copy in memory of all files in a folder."""
    memory = Memory(name)
    memory.clear()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            memory[f"at/{path.relative_to(folder)}"] = path.read_bytes()
    return f"memory://{name}/at"


def batches(source: Any, **options: Any) -> list[dict[str, Any]]:
    loader = gm.DataLoader(source, batch_size=16, seed=3, epochs=1, **options)
    return [{name: np.asarray(batch[name]).copy() for name in batch.names} for batch in loader]


def agree(one: list[dict[str, Any]], two: list[dict[str, Any]]) -> None:
    assert len(one) == len(two) > 1
    for left, right in zip(one, two, strict=True):
        assert left.keys() == right.keys()
        for name, values in left.items():
            np.testing.assert_array_equal(values, right[name], err_msg=name)


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two folders of single games, and one with a tar."""
    folder = tmp_path_factory.mktemp("drops")
    write_games(folder / "a", 8)
    write_games(folder / "b", 4, first=8)
    (folder / "tars").mkdir()
    write_tar(folder / "tars" / "games.tar", {f"training.{i}.gz": game(i, 20) for i in range(20, 26)})
    return folder


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    gm.generate("2048", folder / "logs", games=5, seed=2)
    gm.pack(folder / "logs", folder / "pack", shard_rows=500)
    gm.value_rows(folder / "pack")
    return folder / "pack"


def stream(directory: Any, **more: Any) -> gm.DataLoader:
    return gm.DataLoader(
        gm.presets.lc0(directory, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off", **more)
    )


@pytest.mark.parametrize("below", ["", "/a", "/tars", "/tars/games.tar", "/a/training.*[13].gz", "/[ab]"])
def test_a_stream_from_memory_is_the_stream_from_disk(drops: Path, below: str) -> None:
    url = copied(drops, "stream")
    found = [(np.asarray(batch["planes"]).sum(), batch.rows) for batch in stream(f"{url}{below}")]
    assert found == [(np.asarray(batch["planes"]).sum(), batch.rows) for batch in stream(f"{drops}{below}")]
    assert len(found) > 1
    assert found == [(np.asarray(batch["planes"]).sum(), batch.rows) for batch in stream(f"file://{drops}{below}")]


def test_a_stream_from_memory_resumes_at_every_batch(drops: Path) -> None:
    url = copied(drops, "resumes")
    whole, states = [], []
    loader = stream(url)
    for batch in loader:
        whole.append(np.asarray(batch["planes"]).copy())
        states.append(loader.state_dict())
    for at, state in enumerate(states[:-1]):
        again = stream(url)
        again.load_state_dict(state)
        rest = [np.asarray(batch["planes"]).copy() for batch in again]
        assert len(rest) == len(whole) - at - 1
        assert all((left == right).all() for left, right in zip(rest, whole[at + 1 :], strict=True))


def test_games_that_are_written_while_a_stream_watches_are_taken_in(tmp_path: Path) -> None:
    memory = Memory("arrivals")
    write_gz(tmp_path / "game.gz", game(1, 30))
    memory["in/training.1.gz"] = (tmp_path / "game.gz").read_bytes()
    config = gm.presets.lc0(
        "memory://arrivals/in", pool=8, batch_size=4, reservoir=4, seed=1, tensors=["ids"], index="off"
    )
    with gm.DataLoader(config) as loader:
        next(iter(loader))
        for number in range(2, 5):
            write_gz(tmp_path / "game.gz", game(number, 30))
            memory[f"in/training.{number}.gz"] = (tmp_path / "game.gz").read_bytes()
        memory["elsewhere/training.9.gz"] = (tmp_path / "game.gz").read_bytes()
        until = time.monotonic() + 60
        seen: set[str] = set()
        while len(seen) < 4 and time.monotonic() < until:
            batch = loader.get_next(timeout=60)
            seen |= {str(loader.source_path(source)) for source, _, _ in batch["ids"].tolist()}
        assert sorted(seen) == [f"training.{number}.gz" for number in range(1, 5)]


def test_a_pack_of_games_in_memory_is_the_pack_on_disk(drops: Path, tmp_path: Path) -> None:
    gm.pack(drops, tmp_path / "pack")
    disk = gm.open(tmp_path / "pack", expect=gm.Games)
    disk.mark("even", "visits % 2 = 0")
    url = copied(tmp_path / "pack", "games")
    pack = gm.open(url, expect=gm.Games)
    assert (pack.path, pack.num_frames, len(pack.games)) == (url, disk.num_frames, len(disk.games))
    chosen: list[Callable[[gm.Games], gm.Games]] = [
        lambda games: games,
        lambda games: games.where("id > 3"),
        lambda games: games.marked("even"),
        lambda games: games[5:40],
    ]
    for choose in chosen:
        agree(batches(choose(pack)), batches(choose(disk)))
    agree(batches(pack), batches(gm.open(url, memory=True)))
    far, near = gm.verify(url), gm.verify(tmp_path / "pack")
    assert (far.checked, far.fault_count) == (near.checked, near.fault_count)
    with pytest.raises(gm.ConfigError, match=r"memory://games/at.*folder of this machine"):
        pack.mark("more", "visits > 3")


def test_rows_in_memory_are_the_rows_on_disk(rows: Path) -> None:
    url = copied(rows, "rows")
    pack, disk = gm.open(url, expect=gm.Rows), gm.open(rows, expect=gm.Rows)
    assert pack.num_frames == disk.num_frames > 500
    encoders = [gm.g2048.Steps(), gm.g2048.Steps(value_targets="scalar")]
    for encoder in encoders:
        agree(batches(pack, encoder=encoder), batches(disk, encoder=encoder))
    longest = "steps > 100"
    agree(batches(pack.where(longest), encoder=encoders[0]), batches(disk.where(longest), encoder=encoders[0]))
    np.testing.assert_array_equal(np.asarray(pack.take([3, 700, 3])), np.asarray(disk.take([3, 700, 3])))
    assert gm.verify(url).ok
    assert gm.stats(url)["frames"] == gm.stats(rows)["frames"]
    memory = Memory("rows")
    shard = bytearray(memory["at/steps-00000.npy"])
    shard[2000] ^= 1
    memory["at/steps-00000.npy"] = bytes(shard)
    with pytest.raises(gm.FormatError, match=r"memory://rows/at/steps-00000.npy.*do not have their checksum"):
        gm.open(url).take([0])
    assert not gm.verify(url).ok


def test_demonstrations_in_memory_are_those_on_disk(tmp_path: Path) -> None:
    folder = tmp_path / "shards"
    folder.mkdir()
    for i in range(3):
        write_wds(folder / f"demos-{i}.tar", wds_samples([False] * 6 + [True], 7 * i))
    url = copied(folder, "demos")
    demos, disk = gm.open(url, expect=gm.Demos), gm.open(folder, expect=gm.Demos)
    assert demos.num_frames == disk.num_frames == 21
    agree(batches(demos), batches(disk))
    one = gm.open(f"{url}/demos-1.tar", expect=gm.Demos)
    assert one.num_frames == 7
    gm.pack(url, tmp_path / "pack")
    packed = copied(tmp_path / "pack", "trajectories")
    agree(batches(gm.open(packed)), batches(gm.open(tmp_path / "pack")))


def test_jobs_read_from_memory_what_they_read_from_disk(drops: Path, tmp_path: Path) -> None:
    url = copied(drops, "jobs")
    gm.pack(url, tmp_path / "far")
    gm.pack(drops, tmp_path / "near")
    for name in ("games-00000.chunks", "manifest.json"):
        far, near = ((tmp_path / side / name).read_bytes() for side in ("far", "near"))
        assert far == near or name == "manifest.json"
    assert gm.stats(url)["frames"] == gm.stats(drops)["frames"]
    assert gm.verify(url).checked == gm.verify(drops).checked
    logs = tmp_path / "logs"
    gm.generate("2048", logs, games=3, seed=4)
    gm.pack(copied(logs, "logs"), tmp_path / "rows")
    gm.pack(logs, tmp_path / "rows-near")
    assert (tmp_path / "rows" / "steps.npy").read_bytes() == (tmp_path / "rows-near" / "steps.npy").read_bytes()
    again = gm.pack(f"file://{logs}", f"file://{tmp_path}/by%20url")
    assert again.runs == 3
    assert (tmp_path / "by url" / "steps.npy").exists()
    merged = gm.merge([copied(tmp_path / "rows", "first"), f"file:{tmp_path}/rows-near"], tmp_path / "merged")
    assert merged.rows == 2 * again.rows


def test_places_that_cannot_be_used_say_why(drops: Path, tmp_path: Path) -> None:
    copied(drops, "here")
    with pytest.raises(FileNotFoundError, match="nothing was written to memory://nowhere in this process"):
        gm.open("memory://nowhere/pack")
    with pytest.raises(FileNotFoundError, match="nothing was written to memory://nowhere"):
        next(iter(stream("memory://nowhere")))
    with pytest.raises(FileNotFoundError):
        next(iter(stream("memory://here/at/c")))
    for call in (
        lambda: gm.open("ftp://host/pack"),
        lambda: next(iter(stream("ftp://host/games"))),
        lambda: gm.pack("ftp://host/games", tmp_path / "out"),
    ):
        with pytest.raises(gm.ConfigError, match=r"places of `ftp:` cannot be read; expected a path, file: or memory:"):
            call()
    for output in ("memory://here/out", "memory:out"):
        with pytest.raises(gm.ConfigError, match=r"is read only; write into a folder of this machine"):
            gm.pack(drops / "a", output)
    with pytest.raises(gm.ConfigError, match="such as file:///data/games"):
        gm.open("file:games")
    with pytest.raises(gm.ConfigError, match="arrays of one's own"):
        gm.open("memory://here/at", fields={"obs": "x"})
    with pytest.raises(gm.GristmillError, match=r"memory://here/at"):
        gm.open("memory://here/at")
    assert not list(tmp_path.iterdir())


def test_files_in_memory_are_a_mapping() -> None:
    memory = Memory("mapping")
    memory["a/b"] = b"one"
    assert (dict(memory), len(memory), memory["a/b"]) == ({"a/b": b"one"}, 1, b"one")
    assert Memory("mapping")["a/b"] == b"one"
    assert repr(memory) == "Memory('mapping', files=1)"
    del memory["a/b"]
    assert "a/b" not in memory
    with pytest.raises(KeyError):
        del memory["a/b"]
    for name in ("", "a b", "a/b"):
        with pytest.raises(ValueError, match="names no place"):
            Memory(name)
    for file in ("", "/a", "a//b", "../a"):
        with pytest.raises(ValueError, match="names no file"):
            memory[file] = b""


def test_another_process_is_told_that_memory_is_not_shared(drops: Path, tmp_path: Path) -> None:
    gm.pack(drops / "a", tmp_path / "pack")
    pack = gm.open(copied(tmp_path / "pack", "pickled"))
    assert pickle.loads(pickle.dumps(pack)).num_frames == pack.num_frames
    (tmp_path / "pickled").write_bytes(pickle.dumps(pack))
    program = f"import pickle; pickle.load(open({str(tmp_path / 'pickled')!r}, 'rb'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "nothing was written to memory://pickled in this process" in done.stderr.splitlines()[-1], done.stderr
