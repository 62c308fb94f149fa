"""Journals and ledgers in a bucket: another machine resumes from their segments, and of two writers one goes on."""

import itertools
import os
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import game, write_games, write_gz
from moto_server import KEYS, moto, use_keys

import gristmill as gm
from gristmill import stores

boto3 = pytest.importorskip("boto3", reason="skipped: needs moto[server]")
pytest.importorskip("moto.server", reason="skipped: needs moto[server]")

#: Trains until it is killed: a state every seven batches.
TRAINS = """
import sys
import gristmill as gm
pack, place, cache = sys.argv[1:]
gm.stores.cache(cache)
loader = gm.DataLoader(gm.open(pack), batch_size=4, seed=3, epochs=None, ledger=f"{place}/ledger")
loader.start()
for number, _ in enumerate(loader):
    if number % 7 == 6:
        loader.save(f"{place}/state.json")
        print(number, flush=True)
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with moto(tmp_path_factory.mktemp("server")) as address:
        yield address


@pytest.fixture
def s3(address: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    use_keys(monkeypatch)
    monkeypatch.setenv("AWS_ENDPOINT_URL", address)
    stores.cache(tmp_path / "cache")
    yield boto3.client("s3", endpoint_url=address, **KEYS)
    stores.cache()


@pytest.fixture
def place(s3: Any) -> str:
    name = f"run-{uuid.uuid4().hex[:12]}"
    s3.create_bucket(Bucket=name)
    # As the environment says, whatever other tests said of all buckets.
    stores.reach(f"s3://{name}")
    return f"s3://{name}/run"


def objects(s3: Any, place: str) -> list[str]:
    bucket = place.split("/")[2]
    return [found["Key"] for found in s3.list_objects_v2(Bucket=bucket).get("Contents", [])]


def body(s3: Any, place: str, key: str) -> bytes:
    return bytes(s3.get_object(Bucket=place.split("/")[2], Key=key)["Body"].read())


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pack")
    gm.generate("chess", folder / "games", games=10, seed=1)
    gm.pack(folder / "games", folder / "pack")
    return folder / "pack"


def rows(pack: Path, place: str, **more: Any) -> gm.DataLoader:
    return gm.DataLoader(gm.open(pack), batch_size=8, seed=3, epochs=1, ledger=f"{place}/ledger", **more)


def test_a_ledger_goes_on_on_another_machine(s3: Any, place: str, pack: Path, tmp_path: Path) -> None:
    loader = rows(pack, place)
    for _ in range(5):
        next(loader)
    loader.save(f"{place}/state.json")
    expected = np.array(next(loader)["planes"])
    loader.stop()
    stores.cache(tmp_path / "another")
    again = rows(pack, place)
    again.load(f"{place}/state.json")
    np.testing.assert_array_equal(next(again)["planes"], expected)
    list(again)
    again.stop()
    keys = objects(s3, place)
    assert keys[0] == "run/ledger/0-of-1/00000000"
    assert "run/state.json" in keys
    last = body(s3, place, [key for key in keys if "ledger" in key][-1])
    assert f'"end":{again.num_batches},'.encode() in last, "what came at the end was sent at the stop"
    stores.cache(tmp_path / "third")
    with pytest.raises(OSError, match="resume from its state, or name another file"):
        next(rows(pack, place))


def test_of_two_writers_the_later_one_goes_on(s3: Any, place: str, pack: Path, tmp_path: Path) -> None:
    first = rows(pack, place)
    next(first)
    first.save(f"{place}/state.json")
    with pytest.raises(gm.ConfigError, match=r"another process of this machine writes there"):
        next(rows(pack, place))
    stores.cache(tmp_path / "another")
    with pytest.raises(OSError, match="resume from its state"):
        next(rows(pack, place))
    next(first)
    first.save(f"{place}/state.json")
    second = rows(pack, place)
    second.load(f"{place}/state.json")
    next(second)
    state = body(s3, place, "run/state.json")
    next(first)
    with pytest.raises(FileExistsError, match=r"another loader has written this segment.*0-of-1/\d{8}"):
        first.save(f"{place}/state.json")
    assert body(s3, place, "run/state.json") == state, "no state is ahead of what it rests on"
    next(second)
    second.save(f"{place}/state.json")
    first.stop()
    second.stop()


def test_a_journal_goes_on_on_another_machine_and_is_replayed(s3: Any, place: str, tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 8)
    options: dict[str, Any] = {"pool": 20, "batch_size": 12, "reservoir": 24, "seed": 4, "index": "off"}
    options |= {"tensors": ["ids"], "watch": True, "journal": f"{place}/journal"}

    def stream(**more: Any) -> gm.DataLoader:
        return gm.DataLoader(gm.presets.lc0(games, **(options | more)), ledger=f"{place}/ledger")

    loader = stream()
    batches = [np.array(loader.get_next()["ids"]) for _ in range(8)]
    write_gz(games / ".training.50.gz", game(50, 20))
    (games / ".training.50.gz").rename(games / "training.50.gz")
    end = time.monotonic() + 60
    while {stage["kind"]: stage for stage in loader.metrics()["stages"]}["chunk_source_loader"]["counts"][0][
        "total"
    ] < 9:
        assert time.monotonic() < end
        time.sleep(0.05)
    batches += [np.array(loader.get_next()["ids"]) for _ in range(60)]
    loader.save(f"{place}/state.json")
    after = [np.array(loader.get_next()["ids"]) for _ in range(20)]
    loader.stop()
    stores.cache(tmp_path / "another")
    with stream(replay=True) as replayed:
        for batch in batches:
            np.testing.assert_array_equal(replayed.get_next()["ids"], batch)
    resumed = stream()
    resumed.load(f"{place}/state.json")
    with resumed:
        for batch in after:
            np.testing.assert_array_equal(resumed.get_next()["ids"], batch)
    journal = b"".join(body(s3, place, key)[35:] for key in objects(s3, place) if key.startswith("run/journal/0-of-1/"))
    assert journal.count(b'"admit"') >= 1
    with pytest.raises(gm.GristmillError, match="seed"):
        stream(seed=5).start()


def test_ranks_write_beside_each_other(s3: Any, place: str, tmp_path: Path) -> None:
    games = write_games(tmp_path / "games", 12)
    options: dict[str, Any] = {"pool": 20, "batch_size": 12, "reservoir": 24, "seed": 4, "index": "off", "lanes": 4}
    config = gm.presets.lc0(games, tensors=["ids"], watch=True, journal=f"{place}/journal", **options)

    def ranks(world: int) -> list[gm.DataLoader]:
        return [gm.DataLoader(config, rank=n, world_size=world, ledger=f"{place}/ledger") for n in range(world)]

    def step(loaders: list[gm.DataLoader]) -> Any:
        return np.concatenate([np.array(loader.get_next()["ids"]) for loader in loaders])

    two = ranks(2)
    for _ in range(6):
        step(two)
    for loader in two:
        loader.save(f"{place}/states")
    expected = {tuple(row) for _ in range(4) for row in step(two).tolist()}
    for loader in two:
        loader.stop()
    assert {key.split("/")[2] for key in objects(s3, place) if "/journal/" in key} == {"0-of-2", "1-of-2"}
    stores.cache(tmp_path / "another")
    (one,) = ranks(1)
    one.load(f"{place}/states")
    assert {tuple(row) for _ in range(4) for row in step([one]).tolist()} == expected
    one.save(f"{place}/states")
    one.stop()


def test_a_kill_leaves_a_beginning(s3: Any, place: str, pack: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-c", TRAINS, os.fspath(pack), place, os.fspath(tmp_path / "there")]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    list(itertools.islice(process.stdout, 5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    again = gm.DataLoader(gm.open(pack), batch_size=4, seed=3, epochs=None, ledger=f"{place}/ledger")
    again.load(f"{place}/state.json")
    for _ in range(9):
        next(again)
    again.save(f"{place}/state.json")
    again.stop()


def test_segments_that_are_damaged_or_missing_are_named(s3: Any, place: str, pack: Path, tmp_path: Path) -> None:
    loader = rows(pack, place)
    for _ in range(4):
        next(loader)
        loader.save(f"{place}/state.json")
    loader.stop()
    bucket, keys = place.split("/")[2], [key for key in objects(s3, place) if "ledger" in key]
    assert len(keys) >= 4
    kept = {key: body(s3, place, key) for key in keys}

    def refused(key: str, text: str, found: bytes | None) -> None:
        stores.cache(tmp_path / uuid.uuid4().hex)
        if found is None:
            s3.delete_object(Bucket=bucket, Key=key)
        else:
            s3.put_object(Bucket=bucket, Key=key, Body=found)
        again = rows(pack, place)
        again.load(f"{place}/state.json")
        with pytest.raises(OSError, match=text):
            next(again)
        s3.put_object(Bucket=bucket, Key=key, Body=kept[key])

    refused(keys[1], r"the segment after this one is not there.*0-of-1/00000000", None)
    refused(keys[0], r"the first segments are not there", None)
    refused(keys[2], r"no segment, or one that was cut.*0-of-1/00000002", kept[keys[2]][:20])
    refused(keys[1], r"no segment, or one that was cut.*0-of-1/00000001", kept[keys[1]][:-1])
    refused(keys[1], r"its checksum is another", kept[keys[1]][:60] + b"x" + kept[keys[1]][61:])


def test_what_cannot_be_written_is_refused(pack: Path) -> None:
    with pytest.raises(gm.ConfigError, match="read only"):
        next(rows(pack, "http://127.0.0.1:9/run"))
