"""Reports that a Ray cluster makes by shares: those of one process, and nothing is left."""

import json
from pathlib import Path
from typing import Any

import pytest
from test_command import run, told
from test_ray_pack import cluster  # noqa: F401  (a fixture)

import gristmill as gm
import gristmill.ray


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports") / "games"
    gm.generate("chess", folder, games=12, seed=1, plies_max=20)
    (folder / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00")
    return folder


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_makes_the_reports_of_one_process(cluster: Any, games: Path, tmp_path: Path) -> None:  # noqa: F811
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
