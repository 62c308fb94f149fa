"""The loader through its public face: order, ends, threads, waits, states, refusals."""

import contextlib
import gc
import json
import os
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import frames_in, frames_of, write_games

import gristmill as gm

PASS: dict[str, Any] = {"epochs": 1, "batch_size": 16, "seed": 1, "threads": 2, "index": "off"}
STREAM: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "threads": 2, "index": "off"}


def test_one_pass_gives_every_frame_once_in_order(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, tensors=["ids", "values"], **PASS))
    batches = list(loader)
    assert [b.number for b in batches] == list(range(16))
    assert [b.rows for b in batches] == [16] * 15 + [12]
    assert batches[-1]["values"].shape == (12, 6, 3)
    assert frames_in(loader, batches) == frames_of(12)
    with pytest.raises(gm.EndOfStream):
        loader.get_next()
    with pytest.raises(gm.EndOfStream):
        loader.maybe_get_next()
    for again in (lambda: list(loader), lambda: list(loader.batches()), lambda: next(iter(loader))):
        with pytest.raises(gm.EndOfStream, match=r"all epochs \(epochs=1\) are over.*larger epochs="):
            again()
    with pytest.raises(StopIteration):
        next(loader)


def test_a_loop_that_would_find_nothing_says_so(games: Path, tmp_path: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **PASS)) as first:
        number = len(list(first))
        state = first.state_dict()
    assert number == 16
    behind = gm.DataLoader(gm.presets.lc0(games, **PASS))
    behind.load_state_dict(state)
    with pytest.raises(gm.EndOfStream, match="a loop would do nothing"):
        list(behind)
    gm.pack(games, tmp_path / "pack")
    rows = gm.open(tmp_path / "pack")
    loader = gm.DataLoader(rows, batch_size=16, epochs=3, seed=1)
    for epoch in range(3):
        assert [batch.number for batch in loader] == list(range(16 * epoch, 16 * (epoch + 1)))
    for _ in range(2):
        with pytest.raises(gm.EndOfStream, match=r"\(epochs=3\)"):
            list(loader)
    broken = gm.DataLoader(rows, batch_size=16, seed=1)
    for batch in broken:
        if batch.number == 4:
            break
    assert next(iter(broken)).number == 5, "a loop that was left resumes where it stood"


def test_the_length_of_a_loader_is_told_where_it_is_known(games: Path, tmp_path: Path) -> None:
    gm.pack(games, tmp_path / "pack")
    rows = gm.open(tmp_path / "pack")
    for last, known in (("keep", 32), ("drop", 31), ("pad", 32)):
        options: dict[str, Any] = {"batch_size": 16, "epochs": 2, "seed": 1, "last_batch": last}
        loader = gm.DataLoader(rows, joined=True, **options)
        assert len(loader) == loader.num_batches == known == len(list(loader))
        loader = gm.DataLoader(rows, **options)
        assert [len(loader), loader.num_batches] == [(known + 1) // 2 - (last == "drop"), 2 * len(loader)]
        assert [len(list(loader)) for _ in range(2)] == [len(loader)] * 2
    endless = [gm.DataLoader(rows, joined=True), gm.DataLoader(gm.presets.lc0(games, **PASS))]
    for loader in endless:
        with pytest.raises(TypeError, match="the number of batches is unknown"):
            len(loader)
        assert loader, "a loader is no empty thing"


@pytest.mark.parametrize(("last", "rows", "length"), [("keep", 12, 12), ("pad", 12, 16), ("drop", 16, 16)])
def test_the_last_batch_is_kept_padded_or_dropped(games: Path, last: Any, rows: int, length: int) -> None:
    batch = list(gm.DataLoader(gm.presets.lc0(games, last_batch=last, **PASS)))[-1]
    assert (batch.rows, len(batch["planes"])) == (rows, length)
    assert not batch["planes"][batch.rows :].any()


def test_a_batch_unpacks_and_is_indexed(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        batch = loader.get_next()
        planes, probs, values = batch
        assert batch.names == ("planes", "probs", "values")
        assert (batch.number, batch.rows, len(batch)) == (0, 16, 3)
        assert batch["planes"] is planes is batch[0]
        assert batch[-1] is values
        assert "probs" in batch
        assert "prob" not in batch
        assert [a.shape for a in batch] == [(16, 112, 8, 8), (16, 1858), (16, 6, 3)]
        assert all(a.dtype == np.float32 and a.ctypes.data % 64 == 0 and a.flags.writeable for a in batch)
        assert probs.memory() is not None
        with pytest.raises(KeyError, match="this batch has: planes, probs, values"):
            batch["prob"]
        assert "planes: float32[16, 112, 8, 8]" in repr(batch)


def test_tensors_come_as_asked_and_as_encode_gives(games: Path) -> None:
    names = ["probs", "planes:u8", "values", "legal", "ids"]
    loader = gm.DataLoader(gm.presets.lc0(games, tensors=names, **PASS))
    assert [t.name for t in loader.outputs[""].tensors] == ["probs", "planes", "values", "legal", "ids"]
    assert loader.outputs[""].tensors[1] == gm.TensorSpec("planes", "|u1", (112, 8, 8))
    assert loader.outputs[""].batch_size == 16
    first = loader.get_next()
    records = gm.open(games / "training.0.gz")[0]
    for name, expected in gm.chess.encode(records, planes="u8", tensors=["probs", "planes", "values", "legal"]).items():
        np.testing.assert_array_equal(first[name], expected[:16])


def test_delivered_batches_are_never_overwritten(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, queue_capacity=1, **STREAM)) as loader:
        kept = [loader.get_next() for _ in range(3)]
        before = [b["planes"].copy() for b in kept]
        views = [b["planes"][1:] for b in kept]
        for _ in range(30):
            loader.get_next()
        for batch, copy, view in zip(kept, before, views, strict=True):
            np.testing.assert_array_equal(batch["planes"], copy)
            np.testing.assert_array_equal(view, copy[1:])


def test_batches_outlive_their_loader(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, **STREAM))
    batch = loader.get_next()
    expected = batch["planes"].sum()
    loader.stop()
    del loader
    gc.collect()
    assert batch["planes"].sum() == expected


def test_batches_do_not_depend_on_threads(games: Path) -> None:
    def some(threads: int) -> list[bytes]:
        options = STREAM | {"threads": threads, "sampling_rate": 0.5, "split": {"a": 2, "b": 1}}
        with gm.DataLoader(gm.presets.lc0(games, watch=False, **options)) as loader:
            return [loader.get_next(alias)["planes"].tobytes() for alias in ("a", "b") for _ in range(5)]

    assert some(1) == some(2) == some(8)


def test_a_split_has_an_output_for_each_side(games: Path) -> None:
    config = gm.presets.lc0(games, split={"train": 3, "test": 1}, tensors=["ids"], **PASS)
    loader = gm.DataLoader(config)
    assert list(loader.outputs) == ["train", "test"]
    train = frames_in(loader, loader.batches("train"))
    test = frames_in(loader, loader.batches("test"))
    assert sorted(train + test) == frames_of(12)
    assert {f // 1000 for f in train} & {f // 1000 for f in test} == set()
    with pytest.raises(gm.AliasError, match="train") as refused:
        loader.get_next("tarin")
    assert isinstance(refused.value, LookupError)


def test_several_directories_are_mixed(tmp_path: Path) -> None:
    a = write_games(tmp_path / "a", 4)
    b = write_games(tmp_path / "b", 4, first=100)
    loader = gm.DataLoader(gm.presets.lc0({a: 0.5, b: 0.5}, tensors=["ids"], **PASS))
    assert sorted(frames_in(loader, loader)) == sorted(frames_of(4) + frames_of(4, first=100))


def test_threads_share_a_loader_and_each_batch_comes_once(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, tensors=["ids"], **(PASS | {"epochs": 5, "batch_size": 4})))
    found: list[gm.Batch] = []

    def consume() -> None:
        with contextlib.suppress(gm.EndOfStream):
            while True:
                found.extend(loader.batches())

    workers = [threading.Thread(target=consume) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(30)
    assert sorted(b.number for b in found) == list(range(5 * 252 // 4))
    assert sorted(frames_in(loader, found)) == sorted(frames_of(12) * 5)


def test_other_python_threads_run_while_one_waits(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    loader = gm.DataLoader(gm.presets.lc0(tmp_path / "empty", watch=True, **STREAM))
    outcome: list[BaseException] = []

    def wait() -> None:
        try:
            loader.get_next()
        except gm.GristmillError as error:
            outcome.append(error)

    waiting = threading.Thread(target=wait)
    waiting.start()
    counted = 0
    until = time.monotonic() + 0.3
    while time.monotonic() < until:
        counted += 1
    assert counted > 1000
    assert loader.maybe_get_next() is None
    begun = time.monotonic()
    loader.stop()
    waiting.join(5)
    assert time.monotonic() - begun < 2
    assert isinstance(outcome[0], gm.StoppedError)


def test_waiting_has_an_end_when_asked(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    with gm.DataLoader(gm.presets.lc0(tmp_path / "empty", watch=True, **STREAM)) as loader:
        begun = time.monotonic()
        with pytest.raises(TimeoutError):
            loader.get_next(timeout=0.2)
        assert 0.15 < time.monotonic() - begun < 1
        with pytest.raises(TimeoutError):
            loader.get_next(timeout=-1)


def test_games_that_arrive_are_delivered(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, tensors=["ids"], **STREAM)) as loader:
        loader.get_next()
        write_games(games, 3, first=500)
        until = time.monotonic() + 20
        while time.monotonic() < until:
            if any(f >= 500_000 for f in frames_in(loader, [loader.get_next()])):
                return
        pytest.fail("new games never came")


def test_stopping_is_idempotent_and_final(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, **STREAM))
    loader.get_next()
    assert loader.stop() == []
    assert loader.stop() == []
    with pytest.raises(gm.StoppedError):
        loader.get_next()
    with pytest.raises(gm.StoppedError):
        next(loader)


def rules_of_ours() -> list[tuple[str, int]]:
    """Name of each thread of a loader, and how the system schedules it: field 41 of the thread's counts."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):  # It ended meanwhile.
            name, counts = (task / "comm").read_text().strip(), (task / "stat").read_text().rpartition(")")[2]
            if name.startswith("gm-"):
                found.append((name, int(counts.split()[38])))
    return found


@pytest.mark.skipif(not hasattr(os, "SCHED_BATCH"), reason="skipped: this system has no such rule")
def test_threads_that_a_consumer_wakes_give_way_to_it(games: Path) -> None:
    own = os.sched_getscheduler(0)
    theirs = os.SCHED_BATCH if own == os.SCHED_OTHER else own
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        loader.get_next()
        until = time.monotonic() + 5
        while not {("gm-work-0", theirs), ("gm-read-0", theirs)} <= (rules := set(rules_of_ours())) or any(
            rule != theirs for _, rule in rules
        ):
            assert time.monotonic() < until, rules
            time.sleep(0.01)
    assert os.sched_getscheduler(0) == own, "the rule of the trainer's thread is its own"


def test_nothing_runs_before_it_is_asked_for(games: Path) -> None:
    before = len(os.listdir("/proc/self/task"))
    loader = gm.DataLoader(gm.presets.lc0(games, **STREAM))
    assert len(os.listdir("/proc/self/task")) == before
    loader.start()
    loader.start()
    assert len(os.listdir("/proc/self/task")) > before
    del loader
    gc.collect()
    until = time.monotonic() + 5
    while len(os.listdir("/proc/self/task")) > before:
        assert time.monotonic() < until, "threads outlive their loader"
        time.sleep(0.01)


def test_metrics_are_plain_data(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        loader.get_next()
        metrics = loader.metrics()
    assert isinstance(metrics, dict)
    assert metrics


def test_metrics_are_served_as_prometheus_text(games: Path) -> None:
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        loader.get_next()
        address = loader.serve_metrics()
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=5) as answer:
            text = answer.read().decode()
        assert "# TYPE" in text
        with urllib.request.urlopen(f"http://{address}/status", timeout=5) as answer:
            status = json.load(answer)
        assert [stage["name"] for stage in status["stages"]] == [stage.name for stage in loader.config.stage]
        assert status["state"] == "running"
        with pytest.raises(gm.ConfigError, match="cannot listen"):
            loader.serve_metrics("nowhere:x")


def test_other_machines_need_a_token(games: Path) -> None:
    token = "a-token-of-20-letters"
    with gm.DataLoader(gm.presets.lc0(games, **STREAM)) as loader:
        for address, given in [("0.0.0.0:0", None), ("127.0.0.1:0", "short")]:
            with pytest.raises(gm.ConfigError) as refused:
                loader.serve_metrics(address, token=given)
            assert refused.value.field == "token"
        port = loader.serve_metrics("0.0.0.0:0", token=token).rpartition(":")[2]
        for page in ["status", "metrics"]:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/{page}")
            with pytest.raises(urllib.error.HTTPError, match="401") as unknown:
                urllib.request.urlopen(request, timeout=5)
            unknown.value.close()
            request.add_header("Authorization", f"Bearer {token}")
            with urllib.request.urlopen(request, timeout=5) as answer:
                assert answer.status == 200


def test_the_seed_that_was_drawn_is_told(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, **(STREAM | {"seed": None})))
    assert loader.config.seed is None
    first = loader.get_next()
    seed = loader.config.seed
    assert seed is not None
    again = gm.DataLoader(gm.presets.lc0(games, **(STREAM | {"seed": seed})))
    assert again.get_next()["planes"].tobytes() == first["planes"].tobytes()


def test_wrong_graphs_are_refused_by_stage_and_field(games: Path) -> None:
    def refuse(**changes: Any) -> gm.ConfigError:
        config = gm.presets.lc0(games, **STREAM)
        stages = {s.name: s for s in config.stage}
        for name, change in changes.items():
            change(config if name == "config" else stages[name])
        with pytest.raises(gm.ConfigError) as refused:
            gm.DataLoader(config)
        return refused.value

    def rate(stage: Any) -> None:
        stage.chunk_unpacker.position_sampling_rate = 1.5

    def size(stage: Any) -> None:
        stage.tensor_generator.batch_size = 0

    def source(stage: Any) -> None:
        stage.input = ["nowhere"]

    def second(stage: Any) -> None:
        stage.join_positions = gm.JoinPositionsConfig()

    assert refuse(unpack=rate).stage == "unpack"
    assert refuse(unpack=rate).field == "position_sampling_rate"
    assert (refuse(tensors=size).stage, refuse(tensors=size).field) == ("tensors", "batch_size")
    assert refuse(unpack=source).stage == "unpack"
    assert refuse(unpack=second).stage == "unpack"
    assert "nowhere" in str(refuse(config=lambda c: c.output.append("x:nowhere")))


def test_a_directory_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with (
        pytest.raises((FileNotFoundError, gm.ConfigError)),
        gm.DataLoader(gm.presets.lc0(tmp_path / "no", **PASS)) as loader,
    ):
        loader.get_next(timeout=10)


@pytest.mark.parametrize("policy", ["skip", "quarantine", "raise"])
def test_bad_chunks_follow_the_policy(games: Path, tmp_path: Path, policy: Any) -> None:
    (games / "training.5.gz").write_bytes(b"\x1f\x8bnonsense")
    report = tmp_path / "bad.jsonl"
    quarantine = report if policy == "quarantine" else None
    loader = gm.DataLoader(gm.presets.lc0(games, tensors=["ids"], bad_chunks=policy, quarantine=quarantine, **PASS))
    if policy == "raise":
        with pytest.raises(gm.FormatError) as refused:
            list(loader)
        assert "training.5.gz" in str(refused.value.source)
    else:
        assert frames_in(loader, loader) == [f for f in frames_of(12) if f // 1000 != 5]
        assert report.exists() == (policy == "quarantine")
        if policy == "quarantine":
            assert "training.5.gz" in report.read_text()


def test_all_chunks_bad_is_an_error_not_a_hang(tmp_path: Path) -> None:
    directory = write_games(tmp_path / "bad", 3)
    for path in directory.iterdir():
        path.write_bytes(b"nonsense")
    with gm.DataLoader(gm.presets.lc0(directory, **STREAM)) as loader, pytest.raises(gm.StageError):
        loader.get_next(timeout=20)
