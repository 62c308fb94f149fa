"""Games that a Ray cluster writes again by shares: the folder of one process, and nothing is left."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import demo_files
import pytest
from test_command import run, told
from test_sharing_games import make
from trees import tree

import gristmill as gm
import gristmill.ray

JOBS: list[tuple[str, dict[str, Any]]] = [
    ("rescore", {"dist_temp": 1.5}),
    ("filter", {"rules": ["nan"]}),
    ("convert", {"to": "v7", "container": "tar", "games_per_tar": 4}),
    ("split", {"into": {"train": 2, "test": 1}}),
]


def whole(job: str, games: Path, out: Path, **options: Any) -> tuple[gm.ConvertedGames, dict[str, bytes]]:
    """What one process makes at the place of the shares."""
    made, found = make(job, games, out, **options), tree(out)
    out.rename(out.with_name("whole"))
    return made, found


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
@pytest.mark.parametrize(("job", "options"), JOBS)
def test_ray_writes_the_folder_of_one_process(
    cluster: Any,
    tmp_path: Path,
    job: str,
    options: dict[str, Any],
) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=20, seed=1)
    expected, files = whole(job, games, out, **options)
    make(job, games, out, share=(3, 4), **options)
    seen: list[tuple[int, int]] = []
    on_ray: Callable[..., gristmill.ray.OnRay[gm.ConvertedGames]] = getattr(gristmill.ray, job)
    done = on_ray(
        games, out, shares=4, address=cluster.address, num_cpus=0.5, progress=lambda *now: seen.append(now), **options
    )
    assert (done.shares, done.there, done.made, done.output) == (4, 1, 3, str(out))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert done.result == expected
    assert done.cpu_seconds > 0
    assert tree(out) == files
    with pytest.raises(gm.ConfigError, match="its shares were committed"):
        on_ray(games, out, shares=4, **options)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "out", "whole"]


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_converts_demonstrations_to_the_shards_of_one_process(cluster: Any, tmp_path: Path) -> None:
    for i in range(3):
        demo_files.write_magical(tmp_path / f"in/demo-{i}.pkl.gz", [1, 2, 3 + i, 0])
    task: dict[str, Any] = {"benchmark": "magical", "task": "MoveToRegion-Demo-v0"}
    one = gm.convert(tmp_path / "in", tmp_path / "one", files_per_shard=1, **task)
    done = gristmill.ray.convert(
        tmp_path / "in", tmp_path / "out", files_per_shard=1, demonstrations=task, shares=2, address=cluster.address
    )
    assert (done.made, tree(tmp_path / "out")) == (2, tree(tmp_path / "one"))
    assert done.result is not None
    assert done.result.frames == one.frames


def test_ray_jobs_on_games_plan_without_a_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=6, seed=1)
    gm.rescore(games, out, share=(2, 3))
    monkeypatch.chdir(tmp_path)
    plan = gristmill.ray.rescore("games", "out", dry_run=True)
    assert (plan.output, plan.shares, plan.there, plan.result) == (str(out), 3, 1, None)
    with pytest.raises(gm.ConfigError, match="the job: rescore there, filter now"):
        gristmill.ray.filter(games, out)
    with pytest.raises(gm.ConfigError, match="keep_v6: false there, true now"):
        gristmill.ray.rescore(games, out, keep_v6=True, dry_run=True)
    with pytest.raises(gm.ConfigError, match="nothing to convert to"):
        gristmill.ray.convert(games, tmp_path / "other")
    with pytest.raises(gm.ConfigError, match="expected a whole number of processors"):
        gristmill.ray.filter(games, out, num_cpus=1.5)
    with pytest.raises(TypeError, match="did you mean 'num_cpus'"):
        gristmill.ray.filter(games, out, num_cpu=2)  # type: ignore[call-arg]
    for number in (1, 3):
        gm.rescore(games, out, share=(number, 3))
    # As where the process was killed between the last share and the commit.
    done = gristmill.ray.rescore(games, out)
    assert (done.shares, done.there, done.made) == (3, 3, 0)
    assert sorted(os.listdir(tmp_path)) == ["games", "out"]


def test_the_words_of_ray_jobs_on_games(tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=6, seed=1)
    words: dict[str, list[object]] = {
        "rescore": ["--dist-temp", 1.5, "--keep-v6", "--compat", "all"],
        "filter": ["--rules=-plies_left"],
        "convert": ["--container", "tar", "--games-per-tar", 3],
        "split": ["--into", "a:2,b:1", "--by", "content", "--folds", 3, "--fold", 2],
    }
    for job, own in words.items():
        planned = told("ray", job, games, out, "--shares", 3, "--dry-run", *own)
        assert (planned["shares"], planned["made"], planned["result"]) == (3, 0, None), job
        assert "3 of 3 shares would be made" in run("ray", job, games, out, "--shares", 3, "--dry-run", *own).stdout
    refused: list[tuple[str, list[object], str]] = [
        ("rescore", ["--syzygy", tmp_path / "none"], "none"),
        ("filter", ["--rules", "nun"], "nun"),
        ("convert", [], "nothing to convert to"),
        ("convert", ["--version", 8], "invalid choice"),
        ("split", [], "--into"),
        ("split", ["--into", "a:x"], "expected NAME:WEIGHT, such as train:9"),
        ("split", ["--into", "a:1,a:2"], "given twice"),
        ("split", ["--into", "a:1,b:1", "--folds", 2], "go together"),
    ]
    for job, own, says in refused:
        assert says in run("ray", job, games, out, *own, code=1 if job == "rescore" else 2).stderr
    assert list(tmp_path.iterdir()) == [games]
