"""Numbers of loaders: as Prometheus reads them, flat for logs of experiments, and of pairs and steps."""

import gc
import json
import re
import socket
import time
import urllib.request
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.openmetrics import parser
from steps_in_memory import columns

import gristmill as gm

#: Untyped there.
read: Any = parser.text_string_to_metric_families


def scraped(address: str) -> str:
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=30) as answer:
        assert "openmetrics-text" in answer.headers["content-type"] or "text/plain" in answer.headers["content-type"]
        text: str = answer.read().decode()
        return text


def test_the_text_is_read_by_prometheus_own_parser(games: Path) -> None:
    config = gm.presets.lc0(games, pool=10, reservoir=40, batch_size=16, seed=1, watch=False, lanes=2)
    with gm.DataLoader(config, rank=1, world_size=2) as loader:
        address = loader.serve_metrics()
        for _ in range(5):
            loader.get_next()
        text = scraped(address)
        families = {family.name: family for family in read(text)}
        names = [line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")]
        assert len(names) == len(set(names)), "one family for each quantity"
        assert [line for line in scraped(address).splitlines() if line.startswith("# TYPE")] == [
            line for line in text.splitlines() if line.startswith("# TYPE")
        ]
    (info,) = families["gristmill_build"].samples
    assert info.name == "gristmill_build_info"
    assert info.labels["version"]
    assert families["gristmill_rank"].samples[0].value == 1
    assert families["gristmill_world_size"].samples[0].value == 2
    (wait,) = families["gristmill_consumer_wait_seconds"].samples
    assert wait.name == "gristmill_consumer_wait_seconds_total"
    assert wait.labels == {"stage": "tensors", "kind": "tensor_generator"}
    assert 0 < wait.value < 600
    assert families["gristmill_busy_seconds"].unit == "seconds"
    assert families["gristmill_stored_bytes"].unit == "bytes"
    (rows,) = (s for s in families["gristmill_rows"].samples if s.labels["stage"] == "tensors")
    assert rows.value >= 5 * 8


def test_flat_numbers_are_those_of_the_stages(games: Path) -> None:
    config = gm.presets.lc0(games, pool=10, reservoir=40, batch_size=16, seed=1, watch=False)
    with gm.DataLoader(config) as loader:
        for _ in range(3):
            loader.get_next()
        flat = loader.metrics(flat=True)
    assert all(isinstance(value, int | float) for value in flat.values())
    assert flat["tensors/rows"] >= 48
    assert flat["tensors/busy_seconds"] > 0
    assert flat["consumer_wait_seconds"] > 0
    assert flat["tensors/queue_capacity"] > 0
    assert flat["bad_chunks"] == 0
    assert not any(name.endswith("_ns") for name in flat)

    gm.pack(games, games.parent / "pack")
    with gm.DataLoader(gm.open(games.parent / "pack"), batch_size=16, seed=1) as rows:
        rows.get_next()
        assert rows.metrics(flat=True)["tensors/rows"] >= 16


def test_who_waits_for_whom_is_measured_and_explained(games: Path) -> None:
    config = gm.presets.lc0(games, pool=10, reservoir=0, batch_size=16, seed=1, watch=False)
    with gm.DataLoader(config) as loader:
        assert loader.metrics()["limited_by_since_start"] == ""
        assert "no batch was wanted" in loader.explain()
        # The first scan took its time; then a second is the trainer's, once the loader gets a core in time.
        for _ in range(100):
            loader.get_next()
            time.sleep(0.15)
            found = loader.metrics()
            if found["limited_by"] == "trainer" and found["waits"][0]["seconds"] > 1:
                break
        assert found["limited_by"] == "trainer", found["waits"]
        assert found["stall"] < 0.05
        assert re.search("^The trainer limits|In the last second the limit was: trainer", loader.explain())
        flat = loader.metrics(flat=True)
        assert flat["waited_trainer_seconds"] > 1
        with urllib.request.urlopen(f"http://{loader.serve_metrics()}/status", timeout=30) as answer:
            status = json.load(answer)
        causes = {one["cause"]: one["seconds"] for one in status["outputs"][0]["waits"]}
        assert {"trainer", "storage", "decode", "encode", "handoff", "core", "pool"} <= set(causes)
        assert sum(causes.values()) <= status["uptime_seconds"] + 0.1


def test_a_loader_that_waits_for_games_says_so(tmp_path: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(tmp_path, watch=True, seed=1)) as loader:
        with pytest.raises(TimeoutError):
            loader.get_next(timeout=0.5)
        assert loader.metrics()["limited_by_since_start"] == "pool"
        assert loader.explain().startswith("The pool is not filled")


def test_pairs_and_steps_have_numbers() -> None:
    loader = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1, rank=0, world_size=2)
    batches = list(loader)
    found = loader.metrics(flat=True)
    assert found["batches"] == len(batches) == len(loader)
    assert found["rows"] == sum(len(batch.context) for batch in batches)
    assert found["consumer_wait_seconds"] > 0
    assert (found["epoch"], found["rank"], found["world_size"]) == (1, 0, 2)
    steps = gm.StepLoader(columns([5, 7]), batch_size=4, seed=1)
    next(iter(steps))
    assert steps.metrics()["rows"] == 4


def test_pairs_and_steps_serve_their_numbers() -> None:
    loader = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1, rank=1, world_size=2)
    address = loader.serve_metrics()
    given = sum(len(batch.context) for _ in range(2) for batch in loader)
    families = {family.name: family for family in read(scraped(address))}
    for name, value in [("rows", given), ("batches", 2 * len(loader)), ("epoch", 1), ("rank", 1), ("world_size", 2)]:
        (sample,) = families[f"gristmill_{name}"].samples
        assert sample.value == value, name
    (wait,) = families["gristmill_consumer_wait_seconds"].samples
    assert wait.labels == {"stage": "pairs", "kind": "pairs"}
    assert wait.value > 0
    with urllib.request.urlopen(f"http://{address}/status", timeout=30) as answer:
        status = json.load(answer)
    assert (status["gristmill_status"], status["state"], status["seed"]) == (1, "running", 1)
    assert status["limited_by_since_start"] in ("gather", "trainer")
    assert [one["cause"] for one in status["outputs"][0]["waits"]] == ["trainer", "gather"]
    (stage,) = status["stages"]
    assert (stage["name"], stage["gives"]) == ("pairs", "batches")
    assert {"name": "rows", "total": given} in stage["counts"]
    with pytest.raises(gm.ConfigError, match="token"):
        loader.serve_metrics("0.0.0.0:0")
    steps = gm.StepLoader(columns([5, 7]), batch_size=4, seed=1)
    assert 'stage="steps"' in scraped(steps.serve_metrics())
    host, port = address.split(":")
    del loader
    gc.collect()
    until = time.monotonic() + 30
    with pytest.raises(ConnectionRefusedError):  # noqa: PT012
        while time.monotonic() < until:
            socket.create_connection((host, int(port)), timeout=5).close()


# Of JAX, which other tests of this process have imported: this test does not call it.
@pytest.mark.filterwarnings("ignore:.*fork.*:RuntimeWarning")
@pytest.mark.parametrize("workers", [0, 2])
def test_torch_workers_batches_are_counted(workers: int) -> None:
    pytest.importorskip("torch")
    from gristmill import torch as adapter

    loader = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)
    feed = adapter.DataLoader(loader, num_workers=workers)
    rows = sum(len(batch["context"]) for batch in feed)
    found = loader.metrics()
    assert (found["batches"], found["rows"]) == (len(feed), rows)
    assert found["consumer_wait_seconds"] > 0
