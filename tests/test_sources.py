"""One loader: streams and rows answer the same calls by one rule, and take the same options."""

import inspect
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill import _gristmill

ROWS: dict[str, Any] = {"encoder": gm.g2048.Steps(), "batch_size": 48, "seed": 1}


@pytest.fixture
def rows(tmp_path: Path) -> Any:
    return gm.open(write_pack(tmp_path / "rows", make_rows(6)))


@pytest.fixture
def makers(rows: Any, games: Path) -> dict[str, Callable[..., gm.DataLoader]]:
    def stream(**options: Any) -> gm.DataLoader:
        config = gm.presets.lc0(games, epochs=2, batch_size=16, seed=1, index="off")
        return gm.DataLoader(config, **options)

    return {"rows": lambda **options: gm.DataLoader(rows, epochs=2, **ROWS, **options), "stream": stream}


@pytest.mark.parametrize("of", ["rows", "stream"])
def test_every_loader_is_one_class_over_one_engine(makers: Any, of: str) -> None:
    loader = makers[of]()
    assert type(loader._engine) is _gristmill.Loader
    assert (loader.rank, loader.world_size, loader.seed) == (0, 1, 1)
    assert loader.vanished == []
    assert loader.oldest_needed == {}
    assert loader.source_path(1 << 40) is None
    assert set(loader.control()) <= {"pool"}
    first, second = ([batch.number for batch in loader] for _ in range(2))
    assert [*first, *second] == list(range(len(first) + len(second))), "a loop is what is left of a pass"
    assert abs(len(first) - len(second)) <= 1
    with pytest.raises(gm.EndOfStream, match=r"epochs=2"):
        next(iter(loader))
    assert loader.stop() == []


@pytest.mark.parametrize("of", ["rows", "stream"])
def test_a_pass_that_was_begun_elsewhere_ends_where_it_ends(makers: Any, of: str) -> None:
    whole = makers[of]()
    first, second = ([batch.number for batch in whole] for _ in range(2))
    for taken in (1, len(first) - 1, len(first), len(first) + 1):
        begun = makers[of]()
        for _ in range(taken):
            begun.get_next()
        left = [number for number in first if number >= taken] or [number for number in second if number >= taken]
        state = begun.state_dict()
        assert [batch.number for batch in begun] == left
        again = makers[of]()
        again.load_state_dict(state)
        assert [batch.number for batch in again] == left


def test_what_one_kind_cannot_do_says_which_kind_can(makers: Any) -> None:
    rows, stream = makers["rows"](), makers["stream"]()
    with pytest.raises(TypeError, match="only a loader of rows can go anywhere"):
        stream.seek(1)
    with pytest.raises(TypeError, match="a loader of rows has no stages"):
        _ = rows.config
    assert stream.config.stage
    assert (bool(rows.num_rows), stream.num_rows) == (True, None)
    with pytest.raises(gm.AliasError, match="`train`"):
        rows.xray(0, alias="train")
    with pytest.raises(gm.AliasError, match="`train`"):
        rows.get_next("train")


def test_an_option_has_one_default_which_is_the_engines(makers: Any) -> None:
    options = inspect.signature(gm.DataLoader).parameters
    assert {option.default for name, option in options.items() if name not in ("source", "skip")} == {None}
    for name, value in (("batch_size", 1024), ("shuffle", True), ("last_batch", "keep"), ("queue_capacity", 4)):
        with pytest.raises(TypeError, match=f"`{name}` belongs to loaders of rows"):
            makers["stream"](**{name: value})


def test_the_rank_travels_with_a_loader_of_any_kind(rows: Any, games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = gm.presets.lc0(games, batch_size=16, seed=1, index="off", lanes=2)
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    sent = [pickle.dumps(gm.DataLoader(config)), pickle.dumps(gm.DataLoader(rows, **ROWS))]
    monkeypatch.delenv("RANK")
    monkeypatch.delenv("WORLD_SIZE")
    for loader in map(pickle.loads, sent):
        assert (loader.rank, loader.world_size) == (1, 2)
