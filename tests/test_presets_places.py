"""What a directory of games may be: a folder, one tar, a pattern, the home folder; and the options of the pool."""

from pathlib import Path
from typing import Any

import pytest
from generated_games import frames_in, game, write_games, write_tar

import gristmill as gm


def seen(directory: Any) -> int:
    """Positions in one pass; game n has 20 + n % 3 of them."""
    with gm.DataLoader(gm.presets.lc0(directory, epochs=1, batch_size=16, tensors=["ids"], index="off")) as loader:
        return sum(batch.rows for batch in loader)


def test_a_tar_a_pattern_and_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tar(tmp_path / "a.tar", {f"training.{n}.gz": game(n, 20 + n % 3) for n in (1, 2)})
    write_tar(tmp_path / "b.tar", {f"training.{n}.gz": game(n, 20 + n % 3) for n in (3,)})
    write_games(tmp_path / "run-1/deep", 2, first=4)
    write_games(tmp_path / "run-2", 1, first=6)
    write_games(tmp_path / "other", 1, first=7)
    assert seen(tmp_path / "a.tar") == 21 + 22
    assert seen(tmp_path / "*.tar") == 21 + 22 + 20
    assert seen(tmp_path / "run-*") == 21 + 22 + 20
    assert seen(tmp_path / "**/training.[57].gz") == 22 + 21
    monkeypatch.setenv("HOME", str(tmp_path))
    assert seen("~/run-2") == 20
    assert seen("~/*.tar") == 21 + 22 + 20
    monkeypatch.chdir(tmp_path)
    assert seen("a.tar") == 21 + 22
    assert seen("run-?") == 21 + 22 + 20


@pytest.mark.parametrize("url", ["ftp://host/games", "sftp://host/games.tar", "hf://x"])
def test_urls_of_unknown_schemes_are_named(url: str) -> None:
    with pytest.raises(gm.ConfigError, match="cannot be read; expected a path, file: or memory:") as caught:
        gm.DataLoader(gm.presets.lc0(url, seed=1)).start()
    assert url in str(caught.value)
    assert (caught.value.stage, caught.value.field) == ("files", "directory")


def test_what_is_not_there_is_still_called_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        gm.DataLoader(gm.presets.lc0(tmp_path / "none")).start()
    with pytest.raises(gm.ConfigError, match="no pattern"):
        gm.DataLoader(gm.presets.lc0(tmp_path / "[")).start()


def test_options_of_the_pool(tmp_path: Path) -> None:
    games = write_games(tmp_path, 12)
    usual: dict[str, Any] = {"batch_size": 8, "reservoir": 0, "tensors": ["ids"], "index": "off", "seed": 3}
    usual |= {"position_count": 1, "watch": False}

    def batches(**more: Any) -> list[int]:
        with gm.DataLoader(gm.presets.lc0(games, **usual, **more)) as loader:
            return frames_in(loader, [next(loader) for _ in range(20)])

    plain = batches()
    assert batches(position_cache=40) == plain, "a cache changes no batch"
    hanse = batches(hanse_sampling_threshold=22, hanse_sampling_gamma=2.0, hanse_sampling_form="length")
    assert hanse != plain
    two = gm.presets.lc0({games: 1, tmp_path / "other": 2}, position_cache=9, hanse_sampling_threshold=1, **usual)
    pools = [stage.shuffling_chunk_pool for stage in two.stage if stage.shuffling_chunk_pool]
    assert [(pool.hanse_sampling_threshold, pool.position_cache_size) for pool in pools] == [(1, 9), (1, 9)]


@pytest.mark.parametrize(
    ("options", "field", "says"),
    [
        ({"hanse_sampling_gamma": 2.0}, "hanse_sampling_gamma", "nothing without `hanse_sampling_threshold`"),
        ({"hanse_sampling_form": "length"}, "hanse_sampling_form", "nothing without `hanse_sampling_threshold`"),
        ({"hanse_sampling_threshold": 1, "epochs": 1}, "hanse_sampling_threshold", "endless stream"),
        ({"position_cache": 9}, "position_cache", "needs a `position_count` of 1"),
        ({"position_cache": 9, "position_count": 2}, "position_cache", "needs a `position_count` of 1"),
        ({"position_cache": 9, "position_count": 1, "epochs": 1}, "position_cache", "endless stream"),
    ],
)
def test_options_that_do_nothing_are_refused(options: dict[str, Any], field: str, says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says) as caught:
        gm.presets.lc0("games", **options)
    assert caught.value.field == field
