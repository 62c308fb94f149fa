"""Contradictory configs through every form: each is refused with its stage and field, texts with line and column."""

import dataclasses
from collections.abc import Callable

import pytest

import gristmill as gm
from gristmill.compat import lczero
from gristmill.config import JoinPositionsConfig, SimpleChunkExtractorConfig

GRAPH = """data_loader {
  stage { name: "files" file_path_provider { directory: "games" } }
  stage { name: "load" input: "files" chunk_source_loader { } }
  stage {
    name: "split" input: "load"
    chunk_source_splitter { output { name: "train" } output { name: "test" } weight: 3 weight: 1 }
  }
  stage { name: "pool" input: "split.train" shuffling_chunk_pool { chunk_pool_size: 100 } }
  stage { name: "unpack" input: "pool" chunk_unpacker { position_sampling_rate: 0.5 } }
  stage { name: "sample" input: "unpack" shuffling_frame_sampler { reservoir_size_per_thread: 20 } }
  stage { name: "tensors" input: "sample" tensor_generator { batch_size: 16 } }
  output: "tensors"
}
"""

Change = Callable[[gm.DataLoaderConfig], object]
Form = Callable[[gm.DataLoaderConfig], gm.DataLoaderConfig]


def at(config: gm.DataLoaderConfig, name: str) -> gm.StageConfig:
    return next(stage for stage in config.stage if stage.name == name)


def several(config: gm.DataLoaderConfig) -> None:
    at(config, "pool").simple_chunk_extractor = SimpleChunkExtractorConfig()


def same_name(config: gm.DataLoaderConfig) -> None:
    splitter = at(config, "split").chunk_source_splitter
    assert splitter is not None
    splitter.output[1].name = "train"


def ring(config: gm.DataLoaderConfig) -> None:
    config.stage.append(gm.StageConfig("ring", input=["ring"], join_positions=JoinPositionsConfig()))


def reads(name: str, *inputs: str) -> Change:
    return lambda config: setattr(at(config, name), "input", list(inputs))


CONTRADICTIONS: dict[str, tuple[Change, str | None, str | None, str]] = {
    "several kinds": (several, "pool", None, "several kinds"),
    "two outputs of a name": (same_name, "split", "output.name", "two outputs are called `train`"),
    "no input": (reads("unpack"), "unpack", "input", "found 0 inputs"),
    "two inputs": (reads("unpack", "pool", "pool"), "unpack", "input", "found 2 inputs"),
    "another item": (reads("unpack", "load"), "unpack", "input", "expected chunks"),
    "unknown stage": (reads("unpack", "pol"), "unpack", "input", "did you mean `pool`"),
    "a cycle": (ring, "ring", "input", "what it gives itself"),
    "an alias twice": (lambda config: config.output.append("tensors"), None, "output", "two outputs have the alias"),
    "an alias of nothing": (lambda config: config.output.append("x:pool"), None, "output", "gives no batches"),
}

FORMS: dict[str, Form] = {
    "dataclasses": dataclasses.replace,
    "dictionaries": lambda config: gm.DataLoaderConfig.from_dict(config.to_dict()),
    "json": lambda config: gm.DataLoaderConfig.from_json(config.to_json()),
    "bytes": lambda config: gm.DataLoaderConfig.from_proto_bytes(config.to_proto_bytes()),
    "toml": lambda config: gm.DataLoaderConfig.from_toml(config.to_toml()),
    "textproto": lambda config: gm.DataLoaderConfig.from_textproto(config.to_textproto()),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_contradictions_are_refused_in_every_form(what: str, form: str) -> None:
    change, stage, field, says = CONTRADICTIONS[what]
    config = gm.DataLoaderConfig.from_textproto(GRAPH)
    change(config)
    with pytest.raises(gm.ConfigError, match=says) as refused:
        gm.DataLoader(FORMS[form](config))
    assert (refused.value.stage, refused.value.field) == (stage, field)
    text = {"toml": config.to_toml, "textproto": config.to_textproto}.get(form)
    if text is None:
        assert refused.value.line is None
        return
    line, column = refused.value.line, refused.value.column
    assert line is not None
    assert column is not None
    there = text().splitlines()[line - 1][column - 1 :]
    # What the text leaves out is looked for at its stage.
    assert there.startswith(((field or "name").split(".")[0], "name", "{", "[[stage]]")), there
    assert str(refused.value).startswith(f"line {line}, column {column}: ")


@pytest.mark.parametrize("what", CONTRADICTIONS)
def test_the_drop_in_names_stage_and_field_too(what: str) -> None:
    change, stage, field, says = CONTRADICTIONS[what]
    config = gm.DataLoaderConfig.from_textproto(GRAPH)
    change(config)
    with pytest.raises(lczero.LoaderConfigError, match=says) as refused:
        lczero.DataLoader(config.to_proto_bytes())
    assert (refused.value.stage, refused.value.field) == (stage, field)


@pytest.mark.parametrize(
    ("read", "place", "stage", "field"),
    [
        (lambda: gm.DataLoaderConfig.from_textproto(GRAPH.replace("_size:", "_sighs:")), (8, 68), "pool", "_sighs"),
        (lambda: gm.DataLoaderConfig.from_toml('[[stage]]\nname = "p"\njoin_positions = 3'), (3, 18), "p", "join"),
        (lambda: gm.DataLoaderConfig.from_json('{"stage": [{"name": "p",\n"join": 3}]}'), (2, 1), "p", "join"),
        (
            lambda: gm.DataLoaderConfig.from_proto_bytes(b"\x0a\x08\x0a\x01p\x4a\x03\x98\x06\x01"),
            (None, None),
            "p",
            "te",
        ),
        (lambda: gm.DataLoaderConfig.from_proto_bytes(b"no message"), (None, None), None, None),
    ],
    ids=["textproto", "toml", "json", "bytes", "no message"],
)
def test_what_cannot_be_read_is_refused_at_its_place(
    read: Callable[[], object], place: tuple[int | None, int | None], stage: str | None, field: str | None
) -> None:
    with pytest.raises(gm.ConfigError) as refused:
        read()
    assert (refused.value.line, refused.value.column) == place
    assert refused.value.stage == stage
    assert (field or "") in (refused.value.field or "")
