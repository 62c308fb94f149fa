"""What loaders ask of buckets is seen in their metrics; what was replaced in a bucket is another file for a state."""

import json
import os
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from buckets import FaultServer, built
from generated_games import write_games

import gristmill as gm
from gristmill import stores


@pytest.fixture(scope="module")
def program() -> Path:
    return built()


@pytest.fixture
def server(program: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    """A bucket `traffic` with twelve games and a pack of them."""
    folder = tmp_path / "buckets"
    write_games(folder / "traffic" / "games", 12)
    gm.pack(folder / "traffic" / "games", folder / "traffic" / "chess")
    with FaultServer(program, folder) as server:
        for name, value in server.environment.items():
            monkeypatch.setenv(name, value)
        stores.reach("s3://traffic", patience=20)
        stores.cache(tmp_path / "twins")
        yield server
    stores.cache()


def stream(place: Any, **more: Any) -> gm.DataLoader:
    options = {"pool": 12, "batch_size": 16, "reservoir": 0, "seed": 5, "index": "off", **more}
    return gm.DataLoader(gm.presets.lc0(place, **options))


def scraped(loader: gm.DataLoader) -> tuple[dict[str, int], dict[str, int]]:
    """What a loader asked of stores as `/metrics` and `/status` say it."""
    address = loader.serve_metrics()

    def page(name: str) -> str:
        with urllib.request.urlopen(f"http://{address}/{name}", timeout=60) as answer:
            return str(answer.read().decode())

    lines = [line.split() for line in page("metrics").splitlines() if line.startswith("gristmill_store_")]
    metrics = {name.partition("{")[0].removeprefix("gristmill_"): int(value) for name, value in lines}
    counts = [count for stage in json.loads(page("status"))["stages"] for count in stage["counts"]]
    return metrics, {count["name"]: count["total"] for count in counts if count["name"].startswith("store_")}


def test_a_stream_tells_what_it_asks_of_its_bucket(server: FaultServer) -> None:
    server.fail("slow_down", operation="get", times=3)
    loader = stream("s3://traffic/games", epochs=1)
    for _ in loader:
        pass
    metrics, status = scraped(loader)
    assert status["store_retries"] == 3
    assert status["store_requests"] >= 13
    assert status["store_failures"] == 0
    assert status["store_bytes"] == server.counts()["bytes"]
    assert metrics == {
        f"{name}_total": status[name]
        for name in ("store_requests", "store_retries", "store_hedges", "store_failures", "store_bytes")
    }
    stage = {stage["kind"]: stage for stage in loader.metrics()["stages"]}["chunk_source_loader"]
    assert {count["name"]: count["total"] for count in stage["counts"]}["store_retries"] == 3


def test_a_loader_of_rows_tells_what_it_asks_of_its_bucket(server: FaultServer) -> None:
    gm.generate("chess", server.folder / "many", games=120, seed=2)
    gm.pack(server.folder / "many", server.folder / "traffic" / "many")
    pack = gm.open("s3://traffic/many")
    server.fail("slow_down", operation="get", key="chunks", times=2)
    loader = gm.DataLoader(pack, batch_size=256, seed=3, epochs=1)
    for _ in loader:
        pass
    _, status = scraped(loader)
    assert status["store_retries"] == 2
    assert status["store_bytes"] > 1000


def test_a_loader_of_this_machine_tells_of_no_requests(server: FaultServer) -> None:
    loader = stream(server.folder / "traffic" / "games", epochs=1)
    assert len(list(loader)) > 1
    assert scraped(loader) == ({}, {})


@pytest.mark.parametrize("longer", [False, True])
def test_a_state_that_needs_an_object_which_was_replaced_is_refused_with_both_versions(
    server: FaultServer, longer: bool
) -> None:
    loader = stream("s3://traffic/games")
    batches = iter(loader)
    first = list(zip(range(40), batches, strict=False))
    assert len(first) == 40, "each game was read"
    state = loader.state_dict()
    loader.stop()
    path = server.folder / "traffic" / "games" / "training.3.gz"
    before = path.stat()
    other = path.with_name(".other")
    other.write_bytes(path.read_bytes()[:-1] + b"x" * (1 + longer))
    # Of the same second, as lists tell times.
    os.utime(other, ns=(before.st_mtime_ns, before.st_mtime_ns))
    other.rename(path)
    again = stream("s3://traffic/games")
    again.load_state_dict(state)
    sizes = (before.st_size, before.st_size + longer)
    versions = rf"version [0-9a-f]{{16}} of 20..-..-..T..:..:..Z, {sizes[0]} bytes; now .*version [0-9a-f]{{16}} of .*"
    with pytest.raises(gm.StateError, match=rf"`training\.3\.gz` was replaced: it was {versions}, {sizes[1]} bytes"):
        next(iter(again))


def test_objects_of_the_same_bytes_are_as_many_files_as_on_a_disk(server: FaultServer) -> None:
    games = server.folder / "traffic" / "games"
    (games / "training.99.gz").write_bytes((games / "training.3.gz").read_bytes())
    os.link(games / "training.3.gz", games / "training.100.gz")

    def names(place: Any) -> int:
        return sum(batch.rows for batch in stream(place, epochs=1))

    there, alone = names("s3://traffic/games"), names(games / "training.3.gz")
    assert there == names(games) + alone, "a link is one file on a disk, and an object of its own in a bucket"


def test_a_pack_that_was_replaced_fits_no_state_of_the_one_before(server: FaultServer, tmp_path: Path) -> None:
    loader = gm.DataLoader(gm.open("s3://traffic/chess"), batch_size=16, seed=3, epochs=2)
    next(iter(loader))
    state = loader.state_dict()
    write_games(tmp_path / "others", 12, first=30)
    gm.pack(tmp_path / "others", tmp_path / "chess")
    for path in sorted((tmp_path / "chess").iterdir()):
        path.rename(server.folder / "traffic" / "chess" / path.name)
    with pytest.raises(gm.StateError, match=r"saved [0-9a-f\"]+.*now \"?[0-9a-f]{8}"):
        gm.DataLoader(gm.open("s3://traffic/chess"), batch_size=16, seed=3, epochs=2).load_state_dict(state)
