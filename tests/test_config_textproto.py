"""Configs in the protobuf forms of Lc0's trainer, beside dataclasses and TOML."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill as gm
from gristmill.compat import lczero
from gristmill.config import STAGE_KINDS

TRAINING = """
name: "little"  # the network
training { schedule { steps_per_network: 250 } }
data_loader {
  stage { name: "files" file_path_provider { directory: "games" } }
  stage { name: "load" input: "files" chunk_source_loader { threads: 2 } }
  stage { name: "pool" input: "load" shuffling_chunk_pool { chunk_pool_size: 250000 } }
  stage { name: "unpack" input: "pool" chunk_unpacker { position_sampling_rate: 0.03 } }
  stage { name: "tensors" input: "unpack" tensor_generator { batch_size: 512 } }
  output: "tensors"
}
model { embedding { size: 1024 } }
"""


def test_a_training_configuration_is_read_and_written() -> None:
    config = gm.DataLoaderConfig.from_textproto(TRAINING)
    pool, tensors = config.stage[2].shuffling_chunk_pool, config.stage[4].tensor_generator
    assert pool is not None
    assert tensors is not None
    assert (pool.chunk_pool_size, pool.key_order) == (250_000, "bytes")
    assert (tensors.batch_size, tensors.last_batch) == (512, "drop")
    text = config.to_textproto()
    assert text.startswith("data_loader {")
    assert gm.DataLoaderConfig.from_textproto(text) == config
    assert gm.DataLoaderConfig.from_proto_bytes(config.to_proto_bytes()) == config
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    assert gm.DataLoader(config).outputs[""].batch_size == 512


#: Stages that upstream does not know, so that there is no message for them.
WITHOUT_A_MESSAGE = ("dedup_window",)


@pytest.mark.parametrize("name", WITHOUT_A_MESSAGE)
def test_a_stage_without_a_message_is_refused_by_name(name: str) -> None:
    config = gm.DataLoaderConfig(stage=[gm.StageConfig(name="x", **{name: STAGE_KINDS[name]()})])
    for write in (config.to_textproto, config.to_proto_bytes):
        with pytest.raises(gm.ConfigError, match=name):
            write()


@pytest.mark.parametrize("name", sorted(set(STAGE_KINDS) - set(WITHOUT_A_MESSAGE)))
def test_every_kind_of_stage_has_both_forms(name: str) -> None:
    stage = gm.StageConfig(name="x", **{name: STAGE_KINDS[name]()})
    config = gm.DataLoaderConfig(stage=[stage])
    assert gm.DataLoaderConfig.from_textproto(config.to_textproto()) == config
    assert gm.DataLoaderConfig.from_proto_bytes(config.to_proto_bytes()) == config


@given(
    seed=st.none() | st.integers(0, 2**63 - 1),
    pool=st.integers(1, 2**40),
    count=st.integers(1, 50),
    reservoir=st.integers(0, 10_000),
    batch_size=st.integers(1, 4096),
    split=st.none() | st.just({"train": 9, "test": 1}),
    epochs=st.none() | st.integers(1, 4),
    last_batch=st.sampled_from(["keep", "drop", "pad"]),
    directory=st.text(min_size=1, max_size=12).filter(lambda text: "\0" not in text),
)
def test_graphs_survive_every_form(directory: str, count: int, **options: Any) -> None:
    config = gm.presets.lc0(directory, position_count=count, **options)
    assert gm.DataLoaderConfig.from_textproto(config.to_textproto()) == config
    assert gm.DataLoaderConfig.from_proto_bytes(config.to_proto_bytes()) == config
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    assert gm.DataLoaderConfig.from_dict(config.to_dict()) == config


def test_the_protobuf_package_reads_what_is_written() -> None:
    text_format = pytest.importorskip("google.protobuf.text_format")
    module: Any = lczero
    config = gm.presets.lc0("games", split={"train": 9, "test": 1}, seed=3, tensors=["planes:bits", "values"])
    read = text_format.Parse(config.to_textproto(), module.RootConfig()).data_loader
    assert module.DataLoaderConfig.FromString(config.to_proto_bytes()) == read
    assert gm.DataLoaderConfig.from_proto_bytes(read.SerializeToString()) == config
    assert gm.DataLoaderConfig.from_textproto(text_format.MessageToString(read)) == config


@pytest.mark.parametrize(
    ("change", "says", "stage", "field"),
    [
        (
            ("chunk_pool_size", "chunk_pol_size"),
            "line 7, column .*did you mean `chunk_pool_size`",
            "pool",
            "chunk_pol_size",
        ),
        (("batch_size: 512", "batch_size: 'x'"), "line 9, column", "tensors", "batch_size"),
        (('"tensors"\n}', '"tensors"\n  outptu: ""\n}'), "line 11, column 3: .*did you mean `output`", None, "outptu"),
        (
            ("model { embedding {", "model { embedding ("),
            r"line 12, column 19: expected a value of `embedding`",
            None,
            None,
        ),
    ],
)
def test_faults_of_the_text_have_a_place(
    change: tuple[str, str], says: str, stage: str | None, field: str | None
) -> None:
    assert change[0] in TRAINING
    with pytest.raises(gm.ConfigError, match=says) as refused:
        gm.DataLoaderConfig.from_textproto(TRAINING.replace(*change))
    assert (refused.value.stage, refused.value.field) == (stage, field)


def test_faults_of_the_graph_are_placed_in_the_text_that_was_read() -> None:
    config = gm.DataLoaderConfig.from_textproto(TRAINING.replace('input: "load"', 'input: "lode"'))
    with pytest.raises(gm.ConfigError, match=r"line 7, column 24: .*did you mean `load`") as refused:
        gm.DataLoader(config)
    assert (refused.value.stage, refused.value.field) == ("pool", "input")
    with pytest.raises(gm.ConfigError) as refused:
        gm.DataLoader(config.to_dict())
    assert "line" not in str(refused.value)


def test_what_protobuf_cannot_hold_is_refused() -> None:
    config = gm.DataLoaderConfig.from_textproto(TRAINING)
    tensors = config.stage[4].tensor_generator
    assert tensors is not None
    tensors.tensors = []
    with pytest.raises(gm.ConfigError, match="empty list"):
        config.to_textproto()
    with pytest.raises(gm.ConfigError, match="has no field 15"):
        gm.DataLoaderConfig.from_proto_bytes(b"\x7a\x01a")


def test_messages_come_without_protobuf_where_only_bytes_are_used(tmp_path: Path) -> None:
    """Bytes need no `protobuf` package; classes say which package they need."""
    program = """
import sys
sys.modules["google.protobuf"] = None
import gristmill as gm
from gristmill.compat import lczero
loader = lczero.DataLoader(gm.presets.lc0(sys.argv[1]).to_proto_bytes())
assert loader.get_bucket_metrics(0, False)[0] == b""
try:
    lczero.DataLoaderConfig
except ImportError as error:
    assert "pip install protobuf" in str(error)
else:
    raise AssertionError
"""
    subprocess.run([sys.executable, "-c", program, str(tmp_path)], check=True)


def test_the_protos_keep_our_fields_apart() -> None:
    """Numbers from 1000 are ours; the lower ones are the interface's and never change."""
    text = (lczero.PROTOS / "data_loader_config.proto").read_text()
    numbers = [int(number) for number in re.findall(r"= (\d+)(?: \[|;)", text)]
    assert all(number <= 13 or number >= 1000 for number in numbers)
