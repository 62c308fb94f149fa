"""Windows that grow by a law, and draws that wait for new games, from Python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gristmill as gm

LAW = gm.config.WindowLawConfig(least=10, slope=0.5, power=0.75)


def loader(folder: Path, **options: Any) -> gm.DataLoader:
    own = {"pool": 1000, "reservoir": 0, "batch_size": 4, "position_count": 1, "seed": 3, "index": "off"}
    return gm.DataLoader(gm.presets.lc0(folder, **{**own, **options}))


def pool(source: gm.DataLoader) -> dict[str, int]:
    (stage,) = (stage for stage in source.metrics()["stages"] if stage["kind"] == "shuffling_chunk_pool")
    return {gauge["name"]: gauge["value"] for gauge in stage["gauges"]}


@pytest.mark.parametrize("games", [9, 10, 11, 40])
def test_a_stream_has_the_window_of_the_newest_rows(tmp_path: Path, games: int) -> None:
    gm.generate("chess", tmp_path, games=games, seed=1)
    source = loader(tmp_path, window_law=LAW)
    source.get_next()
    assert pool(source)["chunks_current"] == gm.newest_rows(games, least=10, slope=0.5, power=0.75)
    assert pool(source)["chunks_total"] == games


def test_draws_wait_until_games_come(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path, games=6, seed=1)
    limit = gm.config.RateLimitConfig(samples_per_insert=2)
    source = loader(tmp_path, rate_limit=limit, watch=True)
    for _ in range(3):
        source.get_next()
    with pytest.raises(TimeoutError):
        source.get_next(timeout=0.3)
    assert source.metrics()["limited_by"] == "arrivals"
    assert "samples_per_insert" in source.explain()
    assert pool(source)["reuse_permille"] == 2000
    gm.generate("chess", tmp_path, games=2, first=100, seed=1)
    source.get_next(timeout=60)
    source.stop()
    over = loader(tmp_path, rate_limit=limit, watch=False)
    for _ in range(4):
        over.get_next()
    with pytest.raises(gm.StageError, match="16 were made of 8 chunks"):
        over.get_next()


def test_what_makes_no_sense_is_refused_with_stage_and_option(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path, games=2, seed=1)
    for options, text in (
        ({"window_law": gm.config.WindowLawConfig(least=0)}, r"window_law\.least"),
        ({"window_law": gm.config.WindowLawConfig(least=5, slope=2)}, r"window_law\.slope"),
        ({"rate_limit": gm.config.RateLimitConfig(samples_per_insert=0)}, r"rate_limit\.samples_per_insert"),
        ({"rate_limit": gm.config.RateLimitConfig(samples_per_insert=2, max_diff=1)}, r"rate_limit\.max_diff"),
    ):
        with pytest.raises(gm.ConfigError, match=text):
            loader(tmp_path, **options)
    with pytest.raises(gm.ConfigError, match="endless stream"):
        loader(tmp_path, window_law=LAW, epochs=1)
