"""Reports and marks that a Ray cluster makes by shares: those of one process, and nothing is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from bullet_boards import write_boards
from test_command import run, told

import gristmill as gm
import gristmill.ray


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "games"
    gm.generate("chess", folder, games=12, seed=1, plies_max=20)
    (folder / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00")
    return folder


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_makes_the_reports_of_one_process(cluster: Any, games: Path, tmp_path: Path) -> None:
    gm.verify(games, share=(2, 3), output=tmp_path / "checked.json")
    checked = gristmill.ray.verify(games, tmp_path / "checked.json", shares=3, address=cluster.address)
    assert (checked.there, checked.made) == (1, 2)
    assert checked.result == gm.verify(games)
    assert not checked.result.ok
    counted = told("ray", "stats", games, tmp_path / "counted.json", "--shares", 3, "--address", cluster.address)
    assert counted["result"] == gm.stats(games) == json.loads((tmp_path / "counted.json").read_text())
    words = ["ray", "verify", games, tmp_path / "again.json", "--shares", 2, "--address", cluster.address]
    assert "faults of" in run(*words, code=1).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "checked.json", "counted.json"]


@pytest.mark.filterwarnings("ignore")  # Ray warns about its own code.
def test_ray_tells_and_compares_games_as_one_process(cluster: Any, games: Path, tmp_path: Path) -> None:
    pack, one, text = tmp_path / "pack", tmp_path / "one.pgn", tmp_path / "ray.pgn"
    told_by_one = gm.convert(games, one, "pgn")
    words = ["ray", "convert", games, text, "--to", "pgn", "--shares", 3, "--address", cluster.address]
    assert f"{told_by_one.games} games of" in run(*words, code=1).stdout
    assert text.read_bytes() == one.read_bytes()
    gm.pack(games, pack)
    found = gristmill.ray.verify(pack, tmp_path / "report.json", against=games, shares=3, address=cluster.address)
    expected = gm.verify(pack, against=games)
    assert (found.made, found.result, expected.fault_count) == (3, expected, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one.pgn", "pack", "ray.pgn", "report.json"]


def test_reports_are_planned_without_a_cluster(games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    for job in (gristmill.ray.verify, gristmill.ray.stats):
        plan = job(games, tmp_path / "report.json", shares=4, dry_run=True)
        assert (plan.shares, plan.there, plan.made, plan.result) == (4, 0, 0, None)
    with pytest.raises(gm.ConfigError, match="expected a whole number of processors"):
        gristmill.ray.stats(games, tmp_path / "report.json", num_cpus=-1)
    planned = told("ray", "verify", games, tmp_path / "report.json", "--shares", 3, "--dry-run", "--max-faults", 5)
    assert (planned["shares"], planned["result"]) == (3, None)
    assert not any(tmp_path.iterdir())


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_finds_duplicates_and_marks_as_one_process(cluster: Any, tmp_path: Path) -> None:
    write_boards(tmp_path / "boards", 1500)
    (tmp_path / "boards/b.bf").write_bytes((tmp_path / "boards/a.bf").read_bytes())
    pack, report = tmp_path / "pack", tmp_path / "report.json"
    gm.pack(tmp_path / "boards", pack)
    expected = gm.open(pack).duplicates()
    gm.open(pack).duplicates(mark="again", share=(2, 3), output=report)
    found = gristmill.ray.dedup(pack, report, mark="again", shares=3, address=cluster.address)
    assert (found.there, found.made, found.result) == (1, 2, expected)
    assert gm.open(pack).without("again").num_frames == gm.open(pack).num_frames - expected.frames
    with pytest.raises(gm.ConfigError, match="there is a file already: its shares were committed"):
        gristmill.ray.dedup(pack, report, mark="again", shares=3)
    with pytest.raises(gm.ConfigError, match="there is a mark `again` already"):
        gristmill.ray.dedup(pack, tmp_path / "other.json", mark="again", shares=3)
    done = told("ray", "mark", pack, "lost", "--rule", "score < 0", "--shares", 3, "--address", cluster.address)
    assert done["result"]["marked"] == gm.open(pack).marked("lost").num_frames == 2 * 100
    words = ["ray", "dedup", pack, tmp_path / "again.json", "--shares", 2, "--address", cluster.address]
    assert f"{expected.different} games are different" in run(*words).stdout
    words = ["ray", "mark", pack, "won", "--rule", "score > 0", "--shares", 2, "--address", cluster.address]
    assert "holds mark `won` of" in run(*words).stdout
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.json", "boards", "pack", "report.json"]


def test_jobs_on_packs_are_planned_without_a_cluster(
    games: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "ray", None)
    pack, report = tmp_path / "pack", tmp_path / "report.json"
    gm.pack(games, pack)
    plan = gristmill.ray.dedup(pack, report, shares=4, dry_run=True)
    assert (plan.shares, plan.there, plan.output, plan.result) == (4, 0, str(report), None)
    monkeypatch.chdir(tmp_path)
    plan_of_mark = gristmill.ray.mark("pack", "early", "ply < 6", dry_run=True)
    assert (plan_of_mark.shares, plan_of_mark.output) == (1, str(pack))
    assert told("ray", "dedup", pack, report, "--shares", 3, "--dry-run", "--mark", "again")["shares"] == 3
    wrong: list[tuple[list[object], str]] = [
        (["dedup", games / "training.1.gz", report], "expected a pack"),
        (["dedup", pack, pack / "report.json"], "lies within"),
        (["dedup", pack, report, "--mark", "a/b"], "a/b"),
        (["mark", pack, "early"], "--rule"),
        (["mark", games / "training.1.gz", "early", "--rule", "ply < 6"], "expected a pack"),
        (["mark", pack, "a/b", "--rule", "ply < 6"], "a/b"),
    ]
    for words, says in wrong:
        assert says in run("ray", *words, "--dry-run", code=2).stderr
    assert "this folder is no pack" in run("ray", "dedup", games, report, "--dry-run", code=1).stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pack"]
