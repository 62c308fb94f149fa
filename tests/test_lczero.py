"""The drop-in for the Lc0 trainer's module: a whole program on it, and what it refuses."""

import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import write_games

import gristmill as gm
from gristmill.compat import lczero

pytest.importorskip("google.protobuf")

GRAPH = """
stage {{ name: "files" file_path_provider {{ directory: "{games}" }} }}
stage {{ name: "load" input: "files" chunk_source_loader {{ }} }}
stage {{
  name: "split" input: "load"
  chunk_source_splitter {{ output {{ name: "train" }} output {{ name: "test" }} weight: 3 weight: 1 }}
}}
stage {{ name: "pool" input: "split.train" shuffling_chunk_pool {{ chunk_pool_size: 100 }} }}
stage {{ name: "unpack" input: "pool" chunk_unpacker {{ position_sampling_rate: 0.5 }} }}
stage {{ name: "sample" input: "unpack" shuffling_frame_sampler {{ reservoir_size_per_thread: 20 }} }}
stage {{ name: "tensors" input: "sample" tensor_generator {{ batch_size: 16 output {{ queue_capacity: 2 }} }} }}
stage {{ name: "all" input: "split.test" simple_chunk_extractor {{ }} }}
stage {{ name: "unpack_all" input: "all" chunk_unpacker {{ position_sampling_rate: 1 }} }}
stage {{ name: "test_tensors" input: "unpack_all" tensor_generator {{ batch_size: 4 }} }}
output: "tensors"
output: "test:test_tensors"
"""


@pytest.fixture
def messages(tmp_path: Path) -> Path:
    """A folder with the messages compiled from our `.proto` files, as a program would have them."""
    pytest.importorskip("grpc_tools")
    folder = tmp_path / "compiled"
    folder.mkdir()
    files = [str(path) for path in sorted(lczero.PROTOS.glob("*.proto"))]
    compiler = [sys.executable, "-m", "grpc_tools.protoc", f"-I{lczero.PROTOS}", f"--python_out={folder}"]
    subprocess.run([*compiler, *files], check=True)
    return folder


def test_a_trainers_program_runs_with_only_the_import_changed(messages: Path, tmp_path: Path, games: Path) -> None:
    graph = tmp_path / "graph.textproto"
    graph.write_text(GRAPH.format(games=games))
    (games / "notes.txt").write_text("no game")
    program = Path(__file__).parent / "made" / "lczero_program.py"
    ran = subprocess.run(
        [sys.executable, "-W", "error", str(program), str(messages), str(graph)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert ran.returncode == 0, ran.stderr
    seen = json.loads(ran.stdout)
    assert seen["no_outputs"].startswith("no output is called")
    assert seen["shapes"] == [[16, 112, 8, 8], [16, 1858], [16, 6, 3]]
    assert seen["formats"] == ["f", "f", "f"]
    assert seen["writable"]
    assert seen["finite_planes"]
    assert seen["test_batch"] == [[4, 112, 8, 8], [4, 1858], [4, 6, 3]]
    assert seen["set"] == ["pool", "training.3.gz", 0]
    assert seen["query"][:2] == ["pool", "training.3.gz"]
    stage, anchor, since = seen["reset"]
    assert (stage, since) == ("pool", seen["query"][2])
    assert anchor.startswith("training.")
    assert seen["after_reset"] == ["pool", anchor, 0]
    assert seen["anchor"] == anchor
    assert "`validation`" in seen["unknown_alias"]
    assert "`test`" in seen["unknown_alias"]
    assert "started" in seen["second_start"]
    assert "start" in seen["late_stages"]
    names = ["files", "load", "split", "pool", "unpack", "sample", "tensors", "all", "unpack_all", "test_tensors"]
    assert seen["stages"] == names
    assert seen["batches_got"] == 8
    assert seen["not_lost"]
    assert seen["seconds"] > 0
    assert seen["pool_loads"] == ["source_ingestion", "chunk_loading"]
    assert seen["skipped"] == [1]
    [[_, current, capacity]] = seen["window"]
    assert 0 < current <= 12
    assert capacity == 100
    assert seen["age_is_a_number"]
    assert seen["after_stop"].startswith("Queue is closed")
    assert seen["maybe_after_stop"] is None


@pytest.fixture
def loader(games: Path) -> Iterator[lczero.DataLoader]:
    config = gm.DataLoaderConfig.from_textproto(GRAPH.format(games=games))
    loader = lczero.DataLoader(config.to_proto_bytes())
    yield loader
    loader.stop()


def test_the_stream_is_that_of_the_native_loader(games: Path) -> None:
    config = gm.DataLoaderConfig.from_textproto(GRAPH.format(games=games) + "seed: 5")
    with gm.DataLoader(config) as native:
        ours = [native.get_next() for _ in range(3)]
    loader = lczero.make_dataloader(config.to_proto_bytes())
    for batch in ours:
        for ours_of_it, theirs in zip(batch, loader.get_next(), strict=True):
            np.testing.assert_array_equal(ours_of_it, theirs)
    loader.stop()


def test_own_message_classes_and_descriptor_pools_work_alike(games: Path) -> None:
    from google.protobuf import text_format

    module: Any = lczero
    config = text_format.Parse(GRAPH.format(games=games), module.DataLoaderConfig())
    loader = lczero.DataLoader(config)
    query = module.StageControlRequest(chunk_pool_request=module.ChunkPoolControlRequest())
    [(stage, response)] = loader.send_control_message(query)
    assert (stage, type(response)) == ("pool", module.StageControlResponse)
    [(_, same)] = loader.send_control_message(query.SerializeToString())
    assert same == response
    assert loader.send_control_message(module.StageControlRequest()) == []
    # Defaults are those of the interface.
    assert module.ShufflingChunkPoolConfig().chunk_pool_size == 100_000
    assert module.ShufflingChunkPoolConfig().chunk_loading_threads == 4
    assert module.StatisticsProtoDouble().min == sys.float_info.max
    assert module.StatisticsProtoInt64().max == -(2**63 - 1)
    with pytest.raises(AttributeError, match="NoSuchMessage"):
        _ = module.NoSuchMessage


def test_metrics_are_empty_before_the_start(loader: lczero.DataLoader) -> None:
    assert loader.get_bucket_metrics(0, True) == (b"", 0.0)
    assert loader.get_aggregate_ending_now(math.inf, False) == (b"", 0.0)


@pytest.mark.parametrize("wrong", [None, 3, "text", {"stage": []}, object()])
def test_what_is_no_message_is_refused(loader: lczero.DataLoader, wrong: object) -> None:
    for call in (lczero.DataLoader, loader.add_stages, loader.send_control_message):
        with pytest.raises(ValueError, match="message or its bytes, found"):
            call(wrong)


def test_other_messages_and_bytes_are_refused(loader: lczero.DataLoader) -> None:
    module: Any = lczero
    with pytest.raises(ValueError, match=r"expected a lczero.training.DataLoaderConfig message, found a lczero"):
        lczero.DataLoader(module.RootConfig())
    with pytest.raises(ValueError, match=r"StageControlRequest message, found a lczero.training.StageConfig"):
        loader.send_control_message(module.StageConfig())
    for broken in (b"\xff", b"\x0a\x05abc", module.RootConfig(log_filename="x", name="y").SerializeToString()):
        with pytest.raises(lczero.LoaderConfigError, match="DataLoaderConfig") as refused:
            lczero.DataLoader(broken)
        assert isinstance(refused.value, gm.ConfigError)
        assert isinstance(refused.value, RuntimeError)
    with pytest.raises(lczero.LoaderConfigError, match="StageControlRequest"):
        loader.send_control_message(b"\xff")


@pytest.mark.parametrize(
    ("change", "says", "stage"),
    [
        (('input: "unpack"', 'input: "unpick"'), "no stage is called `unpick`; did you mean `unpack`", "sample"),
        (("simple_chunk_extractor { }", ""), "has no kind", "all"),
        (("simple_chunk_extractor { }", "simple_chunk_extractor { } join_positions { }"), "several kinds", "all"),
        (('name: "test" }', 'name: "train" }'), "two outputs are called `train`", "split"),
        (("weight: 3 weight: 1", "weight: 0 weight: 0"), "positive sum", "split"),
        (("weight: 3 weight: 1", "weight: 3"), "1 weights for 2 outputs", "split"),
        (('"test:test_tensors"', '":test_tensors"'), "two outputs have the alias", None),
        (('"test:test_tensors"', '"test:all"'), "gives no batches", None),
        (('name: "unpack_all"', 'name: "unpack"'), "two stages have this name", "unpack"),
        (("position_sampling_rate: 0.5", ""), "exactly one of", "unpack"),
    ],
)
def test_contradictory_graphs_are_refused_by_stage(
    games: Path, change: tuple[str, str], says: str, stage: str | None
) -> None:
    text = GRAPH.format(games=games)
    assert change[0] in text
    config = gm.DataLoaderConfig.from_textproto(text.replace(*change))
    with pytest.raises(lczero.LoaderConfigError, match=says) as refused:
        lczero.DataLoader(config.to_proto_bytes())
    assert refused.value.stage == stage


def test_a_stream_that_ends_closes_its_queue(tmp_path: Path) -> None:
    games = write_games(tmp_path / "few", 4)
    config = gm.presets.lc0(games, epochs=1, batch_size=32, seed=1)
    loader = lczero.make_dataloader(config.to_proto_bytes())
    while loader.maybe_get_next() is None:
        pass
    for _ in range(2):
        assert loader.get_next()[0].shape[0] > 0
    with pytest.raises(lczero.QueueClosed, match="Queue is closed"):
        loader.get_next()
    assert loader.maybe_get_next() is None
    with pytest.raises(ValueError, match="period_exponent"):
        loader.get_bucket_metrics(-3, False)
    with pytest.raises(ValueError, match="duration_seconds"):
        loader.get_aggregate_ending_now(math.nan, False)
