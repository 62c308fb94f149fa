"""Reports and marks of shares: `verify`, `stats`, `dedup` and `mark` with `share=`, and what a commit gives back."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from bullet_boards import board, write_boards
from test_sharing import KINDS, make_games
from viewers import binary

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


def boards(folder: Path) -> None:
    """Files of boards of bulletformat: the same positions in each, with other scores."""
    write_boards(folder, 2000)
    for number in (1, 2):
        (folder / f"{number}.bf").write_bytes(b"".join(board(40 * number + i) for i in range(2000)))


@pytest.mark.parametrize("kind", [*KINDS, "boards"])
def test_duplicates_of_shares_are_those_of_one_process(tmp_path: Path, kind: str) -> None:
    games, report = tmp_path / "games", tmp_path / "report.json"
    (boards if kind == "boards" else partial(make_games, kind=kind))(games)
    if kind == "chess":
        shutil.copy(games / "training.2.gz", games / "copy.gz")
    gm.pack(games, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    line = [binary(), "dedup", str(tmp_path / "pack"), "--json"]
    whole = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert json.loads(whole)["games"] == pack.num_games
    planned = pack.duplicates(share="1/4", output=report, dry_run=True)
    assert (planned.games, planned.dry_run, report.exists()) == (0, True, False)
    made = [pack.duplicates(share=(number, 4), output=report, workers=1) for number in (3, 1, 4, 2)]
    assert sum(one.games for one in made) == pack.num_games
    assert pack.duplicates(share="2/4", output=report).share.there
    with pytest.raises(gm.ConfigError, match='mark: null there, "again" now'):
        pack.duplicates(share="2/4", output=report, mark="again")
    assert gm.commit(report) == pack.duplicates()
    assert report.read_text() == whole
    report.unlink()
    for number in (1, 2):
        pack.duplicates(share=(number, 2), output=report, mark="again")
    gm.commit(report)
    mark = tmp_path / "pack/marks/again.mark"
    by_shares = mark.read_bytes()
    whole = subprocess.run([*line, "--mark", "again", "--overwrite"], capture_output=True, text=True, check=True).stdout
    assert (report.read_text(), by_shares) == (whole, mark.read_bytes())
    if kind in ("chess", "boards"):
        assert pack.without("again").num_frames < pack.num_frames


def test_duplicates_that_do_not_fit_are_refused(games: Path, tmp_path: Path) -> None:
    gm.pack(games, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    report = tmp_path / "report.json"
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"share": "0/2", "output": report}, "counted from 1"),
        ({"share": "3/2", "output": report}, "from 1 to 2"),
        ({"share": "1/2"}, "beside its report"),
        ({"output": report}, "goes with share"),
        ({"dry_run": True}, "goes with share"),
        ({"share": "1/2", "output": tmp_path / "pack/report"}, "lies within"),
        ({"share": "1/2", "output": report, "mark": "again", "replace": True}, "a commit with overwrite"),
    ]
    for options, says in wrong:
        with pytest.raises(gm.ConfigError, match=says):
            pack.duplicates(**options)
    with pytest.raises(gm.ConfigError, match="there are no shares"):
        gm.commit(report)
    pack.duplicates(share="1/2", output=report)
    with pytest.raises(gm.ConfigError, match="2/2 is missing"):
        gm.commit(report)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack", "report.json.shares"]


def test_a_share_of_duplicates_that_is_killed_anywhere_counts_for_nothing(tmp_path: Path) -> None:
    boards(tmp_path / "games")
    gm.pack(tmp_path / "games", tmp_path / "pack")
    pack, report = gm.open(tmp_path / "pack"), tmp_path / "report.json"
    call = "import sys, gristmill as gm; gm.open(sys.argv[1]).duplicates(share=sys.argv[2], output=sys.argv[3])"
    for number in range(1, 5):
        child = subprocess.Popen([sys.executable, "-c", call, tmp_path / "pack", f"{number}/4", report])
        try:
            child.wait(timeout=0.2 + number / 20)
        except subprocess.TimeoutExpired:
            child.kill()
        child.wait()
        pack.duplicates(share=(number, 4), output=report)
    assert (gm.shares(report).done, gm.shares(report).running) == (4, 0)
    assert gm.commit(report) == pack.duplicates()
    assert not (tmp_path / "report.json.shares").exists()


def test_processes_at_once_make_a_share_and_a_report_once(tmp_path: Path) -> None:
    boards(tmp_path / "games")
    gm.pack(tmp_path / "games", tmp_path / "pack")
    report = tmp_path / "report.json"

    def both(program: str, *words: object) -> list[str]:
        line = [sys.executable, "-c", f"import sys, gristmill as gm; {program}", *map(str, words)]
        children = [subprocess.Popen(line, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        said = [(child.communicate()[1], child.returncode) for child in children]
        assert any(code == 0 for _, code in said), said
        return [text for text, code in said if code]

    find = "gm.open(sys.argv[1]).duplicates(mark='again', share=sys.argv[2], output=sys.argv[3])"
    for share in ("1/2", "2/2"):
        assert not both(find, tmp_path / "pack", share, report)
    assert all("committed already" in text for text in both("gm.commit(sys.argv[1])", report))
    pack = gm.open(tmp_path / "pack")
    assert pack.without("again").num_frames == pack.num_frames - pack.duplicates().frames
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "pack", "report.json"]


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
