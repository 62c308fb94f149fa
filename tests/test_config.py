"""The dataclasses against the engine's own schema, and configs through TOML, JSON and dictionaries."""

import dataclasses
import json
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill.config import STAGE_KINDS

GRAPH = """
seed = 7
memory = "2GiB"
output = ["train:tensors"]
[[stage]]
name = "files"
file_path_provider = { directory = "games" }
[[stage]]
name = "pool"
input = ["files"]
[stage.shuffling_chunk_pool]
chunk_pool_size = 5
[stage.shuffling_chunk_pool.output]
overflow_behavior = "KEEP_NEWEST"
"""


def engine_fields(values: dict[str, Any]) -> set[str]:
    """The fields the engine knows, from its own refusal of one that it cannot know."""
    with pytest.raises(gm.ConfigError, match="unknown field") as refused:
        gm.DataLoaderConfig.from_dict(values)
    listed = str(refused.value).split("expected", 1)[1].split("; did you mean")[0]
    return set(re.findall("`([^`]+)`", listed))


def names(kind: type[Any]) -> set[str]:
    return {field.name for field in dataclasses.fields(kind)}


@pytest.mark.parametrize("name", STAGE_KINDS)
def test_each_stage_mirrors_the_engine_field_by_field(name: str) -> None:
    kind = STAGE_KINDS[name]
    assert engine_fields({"stage": [{name: {"zz": 1}}]}) == names(kind)
    from_engine = gm.DataLoaderConfig.from_dict({"stage": [{"name": "x", name: {}}]})
    assert getattr(from_engine.stage[0], name) == kind()
    ours = gm.DataLoaderConfig(stage=[gm.StageConfig(name="x", **{name: kind()})])
    assert from_engine == ours


def test_tables_within_stages_come_back_as_their_classes() -> None:
    pool = gm.ShufflingChunkPoolConfig(
        hanse_sampling_threshold=80,
        position_sampling=gm.PositionSamplingConfig(diff_focus_q_weight=6.0, default_weight=0.5),
        cachehit_output=gm.QueueConfig("hits"),
    )
    unpacker = gm.ChunkUnpackerConfig(position_count=1, prefetch_count=8, prefetch_output=gm.QueueConfig("ahead"))
    config = gm.DataLoaderConfig(
        stage=[gm.StageConfig("a", shuffling_chunk_pool=pool), gm.StageConfig("b", chunk_unpacker=unpacker)]
    )
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    assert gm.DataLoaderConfig.from_json(config.to_json()) == config


def test_the_loader_stage_and_queue_mirror_the_engine() -> None:
    assert engine_fields({"zz": 1}) == names(gm.DataLoaderConfig)
    assert engine_fields({"stage": [{"zz": 1}]}) == names(gm.StageConfig)
    assert engine_fields({"stage": [{"chunk_unpacker": {"output": {"zz": 1}}}]}) == names(gm.QueueConfig)
    weights = {"stage": [{"shuffling_chunk_pool": {"position_sampling": {"zz": 1}}}]}
    assert engine_fields(weights) == names(gm.PositionSamplingConfig)
    assert gm.DataLoaderConfig.from_dict({}) == gm.DataLoaderConfig()
    assert set(STAGE_KINDS) == names(gm.StageConfig) - {"name", "input"}


def test_configs_round_trip_through_toml_and_dictionaries() -> None:
    config = gm.DataLoaderConfig.from_toml(GRAPH)
    assert config.seed == 7
    pool = config.stage[1].shuffling_chunk_pool
    assert pool is not None
    assert (pool.chunk_pool_size, pool.output.overflow_behavior) == (5, "KEEP_NEWEST")
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    assert gm.DataLoaderConfig.from_dict(config.to_dict()) == config
    assert gm.DataLoaderConfig.from_json(config.to_json()) == config
    assert "threads" not in config.to_dict()


def test_paths_and_numpy_numbers_may_stand_in_a_config() -> None:
    config = gm.DataLoaderConfig(
        stage=[gm.StageConfig(name="files", file_path_provider=gm.FilePathProviderConfig(Path("a") / "b"))],
        seed=np.uint64(2**63),  # type: ignore[arg-type]
    )
    values = json.loads(config.to_json())
    assert values["seed"] == 2**63
    assert values["stage"][0]["file_path_provider"]["directory"] == "a/b"
    with pytest.raises(gm.ConfigError, match="object"):
        gm.DataLoaderConfig(seed=object()).to_json()  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="not a number"):
        gm.DataLoaderConfig.from_dict({"seed": float("nan")})


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (GRAPH.replace("chunk_pool_size", "chunk_pol_size"), "did you mean `chunk_pool_size`"),
        (GRAPH.replace("seed", "sede"), "did you mean `seed`"),
        (GRAPH.replace("KEEP_NEWEST", "KEEP_NEWES"), "did you mean `KEEP_NEWEST`"),
        (GRAPH.replace("2GiB", "2 potatoes"), "no size"),
        ("stage = 3", "line 1"),
    ],
)
def test_wrong_texts_are_refused_with_advice(text: str, says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says) as refused:
        gm.DataLoaderConfig.from_toml(text)
    assert isinstance(refused.value, ValueError)
    assert isinstance(refused.value, gm.GristmillError)


def test_exceptions_survive_pickling() -> None:
    error = gm.ConfigError("no", stage="pool", field="weight")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.stage, again.field) == ("no", "pool", "weight")
