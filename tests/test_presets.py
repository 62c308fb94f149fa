"""The ready graph for chess games: every option reaches its stage, and a misspelt one is refused."""

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import gristmill as gm
from gristmill import _gristmill


def only(config: gm.DataLoaderConfig, kind: str) -> Any:
    found = [getattr(s, kind) for s in config.stage if getattr(s, kind) is not None]
    assert len(found) == 1, kind
    return found[0]


def test_options_reach_their_stages() -> None:
    config = gm.presets.lc0(
        Path("games"),
        pool=500,
        reservoir=64,
        batch_size=8,
        sampling_rate=0.25,
        tensors=["planes:u8", "values"],
        last_batch="drop",
        queue_capacity=2,
        seed=3,
        threads=2,
        memory="64MiB",
        bad_chunks="quarantine",
        io_errors="raise",
        quarantine="bad.jsonl",
        journal="journal.jsonl",
        replay=True,
        spill=Path(".spill"),
        spill_limit="2GiB",
        index="off",
    )
    assert only(config, "file_path_provider").directory == "games"
    assert only(config, "shuffling_chunk_pool").chunk_pool_size == 500
    assert only(config, "shuffling_frame_sampler").reservoir_size_per_thread == 64
    assert only(config, "chunk_unpacker").position_sampling_rate == 0.25
    tensors = only(config, "tensor_generator")
    assert (tensors.batch_size, tensors.tensors, tensors.last_batch) == (8, ["planes:u8", "values"], "drop")
    assert tensors.output.queue_capacity == 2
    assert (config.seed, config.threads, config.memory) == (3, 2, "64MiB")
    assert (config.bad_chunks, config.io_errors, config.quarantine) == ("quarantine", "raise", "bad.jsonl")
    assert (config.journal, config.replay, config.index) == ("journal.jsonl", True, "off")
    assert (config.spill, config.spill_limit) == (".spill", "2GiB")


def test_one_pass_for_validation() -> None:
    config = gm.presets.lc0("games", epochs=2, position_count=3)
    assert only(config, "simple_chunk_extractor").epochs == 2
    assert not only(config, "file_path_provider").watch
    assert only(config, "chunk_unpacker").position_count == 3
    assert only(config, "chunk_unpacker").position_sampling_rate is None


def test_several_directories_with_weights_and_a_split() -> None:
    config = gm.presets.lc0({Path("a"): 0.7, "b": 0.3}, split={"train": 9, "test": 1})
    assert [o.split(":")[0] for o in config.output] == ["train", "test"]
    joins = [s.join_positions for s in config.stage if s.join_positions]
    assert [join.weight for join in joins] == [[0.7, 0.3], [0.7, 0.3]]
    even = gm.presets.lc0(["a", "b", "c"])
    assert only(even, "join_positions").weight == [1.0, 1.0, 1.0]


def test_every_option_of_the_engine_is_an_argument() -> None:
    with pytest.raises(gm.ConfigError) as refused:
        _gristmill.preset_lc0('{"zz": 1}')
    known = set(re.findall("`([^`]+)`", str(refused.value).split("expected", 1)[1].split("; did you")[0]))
    parameters = inspect.signature(gm.presets.lc0).parameters.values()
    ours = {p.name for p in parameters if p.kind is p.KEYWORD_ONLY}
    assert known == ours | {"directories"}


def test_unknown_and_unfit_options_are_refused() -> None:
    with pytest.raises(TypeError, match=r"no option 'pol'; did you mean 'pool'\?"):
        gm.presets.lc0("games", pol=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="it has: directory, pool, "):
        gm.presets.lc0("games", xyzzy=3)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="directory=3; expected a path"):
        gm.presets.lc0(3)  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="at least one directory"):
        gm.presets.lc0([])
    with pytest.raises(gm.ConfigError, match="did you mean `quarantine`"):
        gm.presets.lc0("games", bad_chunks="quarantin")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError):
        gm.presets.lc0("games", batch_size=-1)


def test_options_of_a_wrong_type_are_refused_in_words() -> None:
    for options, says in (
        ({"pool": -1}, "`pool`: integer `-1`; expected a whole number of at least 0"),
        ({"batch_size": "x"}, '`batch_size`: string "x"; expected a whole number of at least 0'),
        ({"sampling_rate": "x"}, '`sampling_rate`: string "x"; expected a number'),
    ):
        with pytest.raises(gm.ConfigError) as refused:
            gm.presets.lc0("games", **options)
        assert (str(refused.value), refused.value.line) == (says, None)
