"""Buckets that are written: packs, states and marks there are those of a disk; refusals, leftovers, two writers."""

import dataclasses
import json
import pickle
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, empty_bucket
from generated_games import write_games
from trees import tree

import gristmill as gm
from gristmill import stores


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games of chess and logs of 2048, and their packs."""
    folder = tmp_path_factory.mktemp("outgoing")
    write_games(folder / "games", 12)
    gm.generate("2048", folder / "logs", games=5, seed=2)
    gm.pack(folder / "games", folder / "chess")
    gm.pack(folder / "logs", folder / "rows", shard_rows=500)
    return folder


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[FaultServer]:
    """A server with an empty bucket `out`."""
    with empty_bucket(tmp_path) as server:
        yield server


def alike(there: Path, here: Path) -> None:
    one, two = tree(there), tree(here)
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []


def test_packs_in_a_bucket_are_those_of_a_disk(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    out = bucket.folder / "out"
    for data, pack, rows in [("games", "chess", None), ("logs", "rows", 500)]:
        packed = gm.pack(drops / data, f"s3://out/{pack}", shard_rows=rows)
        assert packed.pack == f"s3://out/{pack}"
        assert packed.rows == len(gm.open(f"s3://out/{pack}"))
        alike(out / pack, drops / pack)
    dtype = np.dtype([("board", "i1", 4), ("value", "f4")])
    games = [np.zeros(5, dtype), np.ones(7, dtype)]
    gm.pack(games, "s3://out/records")
    gm.pack(games, tmp_path / "records")
    assert len(gm.open("s3://out/records")) == 12
    assert tree(out / "records").keys() == tree(tmp_path / "records").keys()
    long = gm.open("s3://out/chess").where("frames > 10")
    assert gm.pack(long, "s3://out/long").rows == len(long)
    assert gm.merge(["s3://out/chess", "s3://out/long"], "s3://out/both").pack == "s3://out/both"
    with pytest.raises(gm.ConfigError, match=r"delete_inputs.*output in a bucket"):
        gm.merge([drops / "chess", "s3://out/long"], "s3://out/gone", delete_inputs=True)
    assert (drops / "chess").exists()
    gm.convert(drops / "rows", "s3://out/narrow", "packed46")
    np.testing.assert_array_equal(
        gm.open("s3://out/narrow").take([0, 7])["board"], gm.open(drops / "rows").take([0, 7])["board"]
    )
    assert [path.name for path in tmp_path.glob("twins/outgoing/*")] == []


def test_what_is_there_and_what_cannot_be_written_is_refused(bucket: FaultServer, drops: Path) -> None:
    gm.pack(drops / "games", "s3://out/pack")
    before = tree(bucket.folder / "out" / "pack")
    for existing in ("refuse", "overwrite", "resume"):
        with pytest.raises(gm.ConfigError, match=r"output.*s3://out/pack: .* is there already"):
            gm.pack(drops / "games", "s3://out/pack", existing=existing)
    assert tree(bucket.folder / "out" / "pack") == before
    with pytest.raises(gm.ConfigError, match="name a folder in it"):
        gm.pack(drops / "games", "s3://out")
    with pytest.raises(OSError, match="s3://none/pack"):
        gm.pack(drops / "games", "s3://none/pack")
    with pytest.raises(gm.ConfigError, match="read only"):
        gm.pack(drops / "games", f"{bucket.address}/out/pack2")
    assert gm.pack(drops / "games", "s3://out/dry", dry_run=True).dry_run
    assert [path.name for path in (bucket.folder / "out").iterdir()] == ["pack"]


def test_a_reader_keeps_the_version_of_a_pack_that_it_opened(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    gm.generate("2048", tmp_path / "few", games=3, seed=2)
    place, here = "s3://out/rows", tmp_path / "here"
    for pack in (place, here):
        gm.pack(tmp_path / "few", pack, shard_rows=500)
    old, was = gm.open(place), gm.open(here)
    kept = was.take(range(len(was)))
    packed = gm.pack(drops / "logs", place, existing="append")
    gm.pack(drops / "logs", here, existing="append")
    assert (packed.pack, packed.known, packed.runs) == (place, 3, 5)
    new, now = gm.open(place), gm.open(here)
    assert len(new) == len(now) > len(old)
    np.testing.assert_array_equal(new.take(range(len(new))), now.take(range(len(now))))
    assert new.lineage == now.lineage
    assert [step.job for step in new.lineage] == ["pack", "append"]
    # What the older reader asks for only now is of its version, and rows are shared by both in the cache.
    assert len(old.where("steps >= 0")) == len(old)
    np.testing.assert_array_equal(old.take(range(len(old))), kept)
    hard = gm.g2048.HardMove()
    loaded, expected = (
        sums(gm.DataLoader(pack, encoder=hard, batch_size=512, seed=1, epochs=1)) for pack in (new, now)
    )
    assert loaded == expected
    new.mark("late", "step_index > 3")
    assert [mark.name for mark in gm.open(place).marks()] == ["late"]
    assert gm.pack(drops / "logs", place, existing="append").runs == 5
    merged = gm.merge([place, here], tmp_path / "both")
    assert merged.rows == 2 * len(new)
    left = stores.clean(place)
    assert left.whole
    assert "metadata.db" in left.files
    assert len(gm.open(place).where("steps >= 0")) == len(new)
    with pytest.raises(gm.ConfigError, match="no pack to add to"):
        gm.pack(drops / "logs", "s3://out/none", existing="append")


def test_streams_and_copies_of_a_pack_that_was_added_to(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    (tmp_path / "few").mkdir()
    for game in sorted((drops / "games").iterdir())[:3]:
        shutil.copy(game, tmp_path / "few")
    place, here, copy = "s3://out/chess", tmp_path / "here", tmp_path / "copy"
    for pack in (place, here):
        gm.pack(tmp_path / "few", pack)
        assert gm.pack(drops / "games", pack, existing="append").known == 3
    one, two = (
        sums(gm.DataLoader(gm.presets.lc0(pack, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off")))
        for pack in (place, here)
    )
    assert one == two
    assert len(pickle.loads(pickle.dumps(gm.open(place)))) == len(gm.open(here))
    # All below a folder, and a copy on this machine.
    assert repr(gm.verify("s3://out")) == repr(gm.verify(here))
    shutil.copytree(bucket.folder / "out" / "chess", copy)
    lies = sorted(copy.rglob("*"))
    found = gm.open(copy)
    assert repr(gm.verify(copy)) == repr(gm.verify(here))
    assert sums(gm.DataLoader(found, batch_size=16, seed=1, epochs=1)) == sums(
        gm.DataLoader(gm.open(here), batch_size=16, seed=1, epochs=1)
    )
    assert (
        sums(gm.DataLoader(gm.presets.lc0(copy, pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off")))
        == one
    )
    assert len(pickle.loads(pickle.dumps(found))) == len(found)
    assert sorted(copy.rglob("*")) == lies, "who reads a copy writes nothing there"
    for pack in (copy, here):
        gm.open(pack).mark("few", "ply < 5")
        assert [mark.name for mark in gm.open(pack).marks()] == ["few"]
    assert gm.pack(drops / "games", copy, existing="append").known == found.num_games
    alike(copy, here)


def test_a_writer_that_was_denied_resumes_or_is_cleaned(bucket: FaultServer, drops: Path) -> None:
    bucket.fail("access_denied", operation="put", key="manifest", times=2)
    with pytest.raises(PermissionError, match=r"s3://out/pack/manifest.json"):
        gm.pack(drops / "games", "s3://out/pack")
    left = stores.clean("s3://out/pack", dry_run=True)
    assert left.claim is not None
    assert not left.whole
    assert "metadata.db" in left.files
    with pytest.raises(gm.ConfigError, match="said so"):
        stores.clean("s3://out/pack")
    with pytest.raises(PermissionError):
        gm.pack(drops / "games", "s3://out/pack", existing="resume")
    gm.pack(drops / "games", "s3://out/pack", existing="resume")
    alike(bucket.folder / "out" / "pack", drops / "chess")
    assert stores.clean("s3://out/pack") == stores.Left("s3://out/pack", None, True, {})
    with pytest.raises(gm.ConfigError, match="gristmill recover"):
        stores.clean(str(drops))


def test_marks_lie_beside_a_pack_in_a_bucket(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    gm.pack(drops / "games", "s3://out/pack")
    gm.pack(drops / "games", tmp_path / "pack")
    for place in ("s3://out/pack", tmp_path / "pack"):
        pack = gm.open(place)
        pack.mark("few", "ply < 5")
        assert 0 < len(pack.marked("few")) < len(pack)
    alike(bucket.folder / "out" / "pack", tmp_path / "pack")
    gm.open("s3://out/pack").remove_mark("few")
    assert gm.open("s3://out/pack").marks() == []


def stream(drops: Path, **more: Any) -> gm.DataLoader:
    return gm.DataLoader(
        gm.presets.lc0(drops / "games", pool=64, batch_size=16, reservoir=32, seed=5, epochs=1, index="off", **more)
    )


def sums(loader: gm.DataLoader) -> list[float]:
    return [float(np.asarray(batch[batch.names[0]], dtype=np.float64).sum()) for batch in loader]


def rows(drops: Path) -> gm.DataLoader:
    return gm.DataLoader(gm.open(drops / "chess"), batch_size=32, seed=3, epochs=1)


@pytest.mark.parametrize("make", [stream, rows])
def test_states_in_a_bucket_resume_at_every_batch(
    bucket: FaultServer, drops: Path, make: Callable[[Path], gm.DataLoader]
) -> None:
    whole = sums(make(drops))
    assert len(whole) > 3
    for done in range(len(whole)):
        with make(drops) as loader:
            for _ in range(done):
                loader.get_next()
            loader.save("s3://out/states/run.json")
        json.loads((bucket.folder / "out" / "states" / "run.json").read_bytes())
        loader = make(drops)
        loader.load("s3://out/states/run.json")
        assert sums(loader) == whole[done:]


def test_a_run_goes_on_from_a_folder_of_steps_in_a_bucket(bucket: FaultServer, drops: Path) -> None:
    config = stream(drops).config
    whole = sums(gm.DataLoader(config))
    found: list[float] = []
    while len(found) < len(whole):
        with gm.resume("s3://out/run/loader", config) as loader:
            found += [float(np.asarray(loader.get_next()["planes"], dtype=np.float64).sum())]
            loader.save("s3://out/run/loader")
    assert found == whole
    names = sorted(path.name for path in (bucket.folder / "out" / "run" / "loader").iterdir())
    assert len(names) == 2, "the step before is kept, older ones are not"
    with pytest.raises(FileNotFoundError, match=r"s3://out/none.json"):
        gm.DataLoader(config).load("s3://out/none.json")
    with pytest.raises(gm.ConfigError, match="read only"):
        gm.DataLoader(config).save(f"{bucket.address}/out/state.json")


def test_ranks_share_a_folder_of_states_in_a_bucket(bucket: FaultServer, drops: Path) -> None:
    config = gm.presets.lc0(drops / "games", pool=64, batch_size=16, reservoir=32, seed=5, index="off", lanes=2)

    def first(loader: gm.DataLoader, count: int) -> list[float]:
        return [float(np.asarray(loader.get_next()["planes"], dtype=np.float64).sum()) for _ in range(count)]

    with gm.DataLoader(config) as loader:
        whole = first(loader, 5)
    place, folder = "s3://out/ranks", bucket.folder / "out" / "ranks"
    for rank in range(2):
        with gm.DataLoader(dataclasses.replace(config, rank=rank, world_size=2)) as loader:
            first(loader, 2)
            loader.save(place)
    assert len(tree(folder)) == 2
    with gm.resume(place, config) as loader:
        assert first(loader, 3) == whole[2:]
    with (
        gm.DataLoader(dataclasses.replace(config, rank=1, world_size=2)) as loader,
        pytest.raises(gm.ConfigError, match=r"ranks.json: ranks save into a folder"),
    ):
        loader.save("s3://out/ranks.json")
    (folder / sorted(tree(folder))[1]).unlink()
    with pytest.raises(gm.StateError, match="lacks rank 1 of 2"):
        gm.resume(place, config)
