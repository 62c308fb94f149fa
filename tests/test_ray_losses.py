"""Jobs on a Ray cluster that loses machines and drivers and gets others: what comes out is what one process makes."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from ray_machines import lose, machine
from test_ray_pack import at_rest, finished, wait_until
from trees import tree
from viewers import binary

import gristmill as gm


@dataclass(frozen=True)
class Job:
    """A job on Ray: its words after the places, how many shares it has, and what one process makes at the same places.

    `places` are the input, the output, and the folder or file that is compared, by the folder of games and pack.
    """

    name: str
    words: list[str]
    shares: int
    places: Callable[[Path, Path], tuple[Path, Path, Path]]
    of_one: list[str]

    def driver(self, many: Path, folder: Path, address: str, num_cpus: int = 1) -> subprocess.Popen[str]:
        """The command at work on the cluster."""
        source, out, _ = self.places(many, folder)
        to = self.words[0] if out == source else out
        line: list[Any] = [
            sys.executable,
            "-m",
            "gristmill",
            "ray",
            self.name,
            source,
            to,
            *self.words[out == source :],
        ]
        line += ["--address", address, "--shares", self.shares, "--num-cpus", num_cpus, "--json"]
        return subprocess.Popen(list(map(str, line)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def whole(self, many: Path, folder: Path) -> dict[str, bytes]:
        """What one process makes; nothing of it stays."""
        source, out, made = self.places(many, folder)
        to = [] if "--json" in self.of_one or out == source else [out]
        line = [binary(), self.name, source, *to, *self.of_one]
        done = subprocess.run(list(map(str, line)), capture_output=True, text=True, check=True)
        if "--json" in self.of_one:
            made.write_text(done.stdout)
        found = content(made)
        shutil.rmtree(made) if made.is_dir() else made.unlink()
        return found


def content(made: Path) -> dict[str, bytes]:
    """A file, or all files of a folder, by name."""
    return tree(made) if made.is_dir() else {made.name: made.read_bytes()}


def of_games(many: Path, folder: Path) -> tuple[Path, Path, Path]:
    return many / "games", folder / "out", folder / "out"


def of_pack(many: Path, folder: Path) -> tuple[Path, Path, Path]:
    return many / "pack", folder / "report.json", folder / "report.json"


def in_pack(_: Path, folder: Path) -> tuple[Path, Path, Path]:
    return folder / "pack", folder / "pack", folder / "pack/marks/early.mark"


#: Jobs whose shares are short have more of them.
JOBS = [
    Job("pack", [], 10, of_games, []),
    Job("rescore", ["--dist-temp", "1.5"], 10, of_games, ["--dist-temp", "1.5"]),
    Job("verify", [], 30, of_pack, ["--json"]),
    Job("split", ["--into", "a:2,b:1", "--by", "content"], 30, of_games, ["--into", "a:2,b:1", "--by", "content"]),
    Job("dedup", [], 100, of_pack, ["--json"]),
    Job("mark", ["early", "--rule", "ply < 6"], 60, in_pack, ["early", "--rule", "ply < 6"]),
]

every_job = pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games whose shares take a while, and a pack of them."""
    folder = tmp_path_factory.mktemp("many")
    gm.generate("chess", folder / "games", games=300, seed=4)
    gm.pack(folder / "games", folder / "pack")
    return folder


@pytest.fixture
def folder(many: Path, tmp_path: Path) -> Path:
    """An empty folder but for a pack in which marks are made."""
    shutil.copytree(many / "pack", tmp_path / "pack")
    return tmp_path


def left_alone(folder: Path, out: Path) -> bool:
    """Whether nothing lies there but the pack and the output."""
    return {path.name for path in folder.iterdir()} == {"pack", out.name}


@every_job
def test_shares_are_made_again_whose_machine_was_lost(cluster: Any, many: Path, folder: Path, job: Job) -> None:
    """One of two machines goes without grace in the middle, then the other, and a third comes."""
    _, out, made = job.places(many, folder)
    whole = job.whole(many, folder)
    machine(cluster)
    child = job.driver(many, folder, cluster.address)
    wait_until(lambda stand: stand.done >= 2, out, child)
    for _ in range(2):
        lose(cluster)
    lost = at_rest(out)
    machine(cluster)
    assert 2 <= lost.done < job.shares, "they were lost in the middle"
    assert sum(finished(child)) == job.shares
    assert content(made) == whole
    assert left_alone(folder, out)


@every_job
def test_only_missing_shares_are_made_after_a_driver_was_killed(
    cluster: Any,
    many: Path,
    folder: Path,
    job: Job,
) -> None:
    _, out, made = job.places(many, folder)
    whole = job.whole(many, folder)
    child = job.driver(many, folder, cluster.address)
    wait_until(lambda stand: stand.done >= 2, out, child)
    child.kill()
    child.communicate()
    stand = at_rest(out)
    assert 2 <= stand.done < job.shares
    child = job.driver(many, folder, cluster.address)
    assert finished(child) == (stand.done, job.shares - stand.done)
    assert content(made) == whole
    assert left_alone(folder, out)


def test_tasks_of_a_pack_use_the_processors_of_one_process(cluster: Any, many: Path, folder: Path) -> None:
    """Ray's own processes beside them use a few seconds, whatever the job is; `docs/design` has both."""
    whole = gm.pack(many / "games", folder / "whole", workers=1)
    child = JOBS[0].driver(many, folder, cluster.address)
    said, complaint = child.communicate()
    assert child.returncode == 0, complaint
    assert json.loads(said)["cpu_seconds"] <= 1.2 * whole.cpu_seconds
    assert content(folder / "out") == content(folder / "whole")


@pytest.mark.parametrize("job", JOBS[1:3], ids=lambda job: job.name)
def test_a_machine_that_is_added_makes_the_shares_that_wait(
    cluster: Any,
    many: Path,
    folder: Path,
    job: Job,
) -> None:
    """No machine has two processors until a third comes, which makes all shares."""
    _, out, made = job.places(many, folder)
    whole = job.whole(many, folder)
    machine(cluster)
    child = job.driver(many, folder, cluster.address, num_cpus=2)
    assert child.stderr is not None
    while "no machine of the cluster has 2 processors now" not in (line := child.stderr.readline()):
        assert line, "it ended"
    assert not os.path.exists(f"{out}.shares")
    third = machine(cluster, 2)
    assert finished(child) == (0, job.shares)
    assert content(made) == whole
    cluster.remove_node(third)
