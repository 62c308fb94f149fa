"""Shares of outputs in a bucket, as a program uses them: the bytes of one process; what fails and is left is named."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import demo_files
import pytest
from buckets import FaultServer, empty_bucket
from trees import tree

import gristmill as gm
from gristmill import stores


@pytest.fixture(scope="module")
def drops(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games of chess and logs of 2048, and their packs."""
    folder = tmp_path_factory.mktemp("shares")
    gm.generate("chess", folder / "games", games=9, seed=1)
    gm.generate("2048", folder / "logs", games=6, seed=2)
    gm.pack(folder / "games", folder / "chess")
    gm.pack(folder / "logs", folder / "rows", shard_rows=500)
    return folder


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[FaultServer]:
    """A server with an empty bucket `out`."""
    with empty_bucket(tmp_path) as server:
        yield server


def test_shares_in_a_bucket_are_those_of_a_disk(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    out = bucket.folder / "out"
    for data, pack, rows in [("games", "chess", None), ("logs", "rows", 500)]:
        place = f"s3://out/{pack}"
        for number in (3, 1, 2):
            made = gm.pack(drops / data, place, shard_rows=rows, share=(number, 3))
            assert made.share is not None
            assert (made.share.share, made.share.there) == (f"{number}/3", False)
        stand = gm.shares(place)
        assert (stand.folder, stand.done, stand.missing) == (f"{place}.shares", 3, 0)
        assert gm.commit(place, dry_run=True).dry_run
        done = gm.commit(place)
        assert (done.pack, done.rows) == (place, len(gm.open(drops / pack)))
        assert tree(out / pack) == tree(drops / pack)
        with pytest.raises(gm.ConfigError, match="committed already"):
            gm.commit(place)
        with pytest.raises(gm.ConfigError, match="its shares were committed"):
            gm.pack(drops / data, place, shard_rows=rows, share=(1, 3))
    for number in (1, 2):
        gm.convert(drops / "games", "s3://out/v7", version=7, share=(number, 2))
        gm.stats("s3://out/chess", share=(number, 2), output="s3://out/stats.json")
        gm.open("s3://out/chess").mark("few", "ply < 5", share=(number, 2))
        if number == 1:
            with pytest.raises(gm.ConfigError, match="1 of 2 shares are done; 2/2 is missing"):
                gm.commit("s3://out/v7")
    assert gm.commit("s3://out/v7").changed == 9
    assert gm.commit("s3://out/stats.json") == gm.stats("s3://out/chess")
    assert gm.commit("s3://out/chess")["marked"] == gm.open("s3://out/chess").marked("few").num_frames
    assert not [name for name in tree(out) if ".shares" in name]
    assert [path.name for path in tmp_path.glob("twins/outgoing/*")] == []


def test_splits_shards_duplicates_and_tokenizers_are_committed_to_a_bucket(bucket: FaultServer, drops: Path) -> None:
    sides = {"train": 2, "test": 1}
    gm.split(drops / "games", "s3://out/alone", sides)
    for number in (1, 2):
        gm.split(drops / "games", "s3://out/sides", sides, share=(number, 2))
        gm.open(drops / "chess").duplicates(share=(number, 2), output="s3://out/same.json")
        gm.g2048.fit_tokenizer(gm.open(drops / "rows"), "s3://out/bins.json", num_bins=8, share=(number, 2))
    done = gm.commit("s3://out/sides")
    assert done.changed + done.kept == 9
    assert tree(bucket.folder / "out" / "sides") == tree(bucket.folder / "out" / "alone")
    assert gm.commit("s3://out/same.json") == gm.open(drops / "chess").duplicates()
    demos: dict[str, Any] = {"benchmark": "magical", "task": "MoveToRegion-Demo-v0", "files_per_shard": 2}
    for i in range(3):
        demo_files.write_magical(drops / f"demos/demo-{i}.pkl.gz", [1, 2, 3 + i, 0])
    gm.convert(drops / "demos", drops / "shards", **demos)
    for number in (1, 2):
        gm.convert(drops / "demos", "s3://out/shards", share=(number, 2), **demos)
    names = [f"s3://out/shards/demos-00000{i}.tar.zst" for i in range(2)]
    assert gm.commit("s3://out/shards").output == names
    assert tree(bucket.folder / "out" / "shards") == tree(drops / "shards")
    bins = gm.g2048.fit_tokenizer(gm.open(drops / "rows"), drops / "bins.json", num_bins=8)
    assert gm.commit("s3://out/bins.json") == bins
    assert (bucket.folder / "out" / "bins.json").read_bytes() == (drops / "bins.json").read_bytes()


def test_reports_in_a_bucket_are_replaced_only_where_that_is_said(bucket: FaultServer, drops: Path) -> None:
    report = bucket.folder / "out" / "report.json"
    for number in (1, 2):
        gm.verify(drops / "games", share=(number, 2), output="s3://out/report.json")
    report.write_text("{}")
    with pytest.raises(gm.ConfigError, match="there is a file already: overwrite replaces it"):
        gm.commit("s3://out/report.json")
    assert gm.commit("s3://out/report.json", overwrite=True) == gm.verify(drops / "games")
    assert json.loads(report.read_text())["faults"] == []


def test_what_failed_is_said_and_what_was_killed_is_cleaned(bucket: FaultServer, drops: Path, tmp_path: Path) -> None:
    games = tmp_path / "games"
    gm.generate("chess", games, games=6, seed=3)
    bad = games / "training.2.gz"
    sound = bad.read_bytes()
    bad.write_bytes(sound[:300] + bytes(len(sound) - 300))
    with pytest.raises(gm.FormatError, match=r"training.2.gz"):
        gm.pack(games, "s3://out/pack", share=(1, 2), on_error="raise")
    gm.pack(games, "s3://out/pack", share=(2, 2), on_error="raise")
    first = gm.shares("s3://out/pack").shares[0]
    assert first.state == "failed"
    assert "training.2.gz" in str(first.why)
    with pytest.raises(gm.ConfigError, match=r"1/2 failed: .*training.2.gz"):
        gm.commit("s3://out/pack")
    # What a killed process leaves: its lease, and some of its files.
    plan = gm.shares("s3://out/pack").plan["name"]
    left = {f"{plan}/shares/.00001-of-00002.0123": b"{}", f"{plan}/files/00001-of-00002/0123/pack/metadata.db": b"x"}
    for name, data in left.items():
        path = bucket.folder / "out" / "pack.shares" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    assert gm.shares("s3://out/pack").running == 1
    seen = stores.clean("s3://out/pack", dry_run=True)
    assert (seen.shares, seen.running) == ({}, 1)
    before = tree(bucket.folder / "out")
    seen = stores.clean("s3://out/pack", dead=True, dry_run=True)
    assert seen.shares == {name: len(data) for name, data in left.items()}
    assert tree(bucket.folder / "out") == before
    stores.clean("s3://out/pack", dead=True)
    assert before.keys() - tree(bucket.folder / "out").keys() == {f"pack.shares/{name}" for name in left}
    bad.write_bytes(sound)
    gm.pack(games, "s3://out/pack", share=(1, 2), on_error="raise")
    gm.commit("s3://out/pack")
    gm.pack(games, tmp_path / "whole")
    assert tree(bucket.folder / "out" / "pack") == tree(tmp_path / "whole")
    # What a commit leaves that is killed as it removes the shares.
    path = bucket.folder / "out" / "pack.shares" / plan / "files" / "some"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x")
    assert stores.clean("s3://out/pack").shares == {f"{plan}/files/some": 1}
    assert tree(bucket.folder / "out" / "pack.shares") == {}


@pytest.mark.parametrize("fault", ["slow_down", "internal_error", {"stall": 100}])
def test_what_fails_now_and_then_changes_nothing(bucket: FaultServer, drops: Path, fault: Any) -> None:
    for operation in ("put", "get", "list", "head", "delete"):
        bucket.fail(fault, operation=operation, after=2, times=2)
    for number in (1, 2):
        gm.pack(drops / "games", "s3://out/pack", share=(number, 2))
    gm.commit("s3://out/pack")
    assert tree(bucket.folder / "out" / "pack") == tree(drops / "chess")
    assert tree(bucket.folder / "out").keys() == {f"pack/{name}" for name in tree(drops / "chess")}


def test_rights_are_named(bucket: FaultServer, drops: Path) -> None:
    bucket.fail("access_denied", operation="put")
    with pytest.raises(PermissionError, match=r"needs the right s3:PutObject.*plan.json"):
        gm.pack(drops / "games", "s3://out/pack", share=(1, 2))
    bucket.mend()
    assert tree(bucket.folder / "out") == {}
    for number in (1, 2):
        gm.pack(drops / "games", "s3://out/pack", share=(number, 2))
    bucket.fail("access_denied", operation="delete", key="plan.json")
    with pytest.raises(PermissionError, match=r"needs the right s3:DeleteObject.*plan.json"):
        gm.commit("s3://out/pack")
    bucket.mend()
    assert gm.commit("s3://out/pack").rows == len(gm.open(drops / "chess"))
    assert tree(bucket.folder / "out").keys() == {f"pack/{name}" for name in tree(drops / "chess")}
