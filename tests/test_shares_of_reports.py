"""Reports and marks of shares: `verify`, `stats` and `mark` with `share=`, and what a commit gives back."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import gristmill as gm


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "games"
    gm.generate("chess", folder, games=6, seed=1, plies_max=20)
    (folder / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00")
    return folder


def test_a_verification_of_shares_is_that_of_one_process(games: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    planned = gm.verify(games, share="1/3", output=report, dry_run=True)
    assert planned.dry_run
    assert not any(tmp_path.iterdir())
    made = [gm.verify(games, share=(number, 3), output=report) for number in (3, 1, 2)]
    assert sum(one.share.inputs for one in made) == 7
    assert not any(one.share.there for one in made)
    assert gm.verify(games, share="2/3", output=report).share.there
    assert gm.shares(report).done == 3
    with pytest.raises(gm.ConfigError, match="max_faults: 100 there, 7 now"):
        gm.verify(games, share="1/3", output=report, max_faults=7)
    found, whole = gm.commit(report), gm.verify(games)
    assert found == whole
    assert not whole.ok
    assert json.loads(report.read_text())["fault_count"] == whole.fault_count
    assert list(tmp_path.iterdir()) == [report]


def test_statistics_of_shares_are_those_of_one_process(games: Path, tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    frames = [gm.stats(games, share=(number, 2), output=report).frames for number in (1, 2)]
    whole = gm.stats(games)
    assert gm.commit(report) == whole == json.loads(report.read_text())
    assert sum(frames) == whole["frames"]
    assert min(frames) > 0


def test_a_mark_of_shares_is_that_of_one_process(games: Path, tmp_path: Path) -> None:
    gm.pack(games, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert pack.mark("early", "ply < 6", share="1/2", dry_run=True).marked == 0
    made = [pack.mark("early", "ply < 6", share=(number, 2)) for number in (1, 2)]
    assert sum(one.marked for one in made) == 36
    assert sum(one.asked for one in made) == pack.num_frames
    assert not pack.marks()
    assert gm.commit(tmp_path / "pack")["marked"] == 36
    assert pack.marked("early").num_frames == 36
    with pytest.raises(gm.ConfigError, match="there is a mark `early` already"):
        pack.mark("early", "ply < 6", share="1/2")


def test_words_that_do_not_fit_are_refused(games: Path, tmp_path: Path) -> None:
    for share in ("0/3", "4/3", "some", (1,), "1/0"):
        with pytest.raises(gm.ConfigError, match="share"):
            gm.verify(games, share=share, output=tmp_path / "report")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="beside its report"):
        gm.stats(games, share="1/2")  # type: ignore[call-overload]
    with pytest.raises(gm.ConfigError, match="goes with share"):
        gm.stats(games, output=tmp_path / "report")  # type: ignore[call-overload]
    with pytest.raises(gm.ConfigError, match="every process must list the same files"):
        gm.verify(tmp_path / "none", share="1/2", output=tmp_path / "report")
    assert not any(tmp_path.iterdir())
