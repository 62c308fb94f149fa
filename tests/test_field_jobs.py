"""The jobs of the field from end to end: shares of many machines end with the bytes of one process."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from buckets import FaultServer, serving
from ray_machines import machines_of_ray
from trees import tree

import gristmill as gm

#: How many machines there are.
MACHINES = 3

#: A job by its name, over an input, into an output, with its options.
ByMany = Callable[..., None]


def by_shares(job: str, source: Any, output: Path, **options: Any) -> None:
    """Makes each share where an array job would, in any order, and commits."""
    for number in (2, 1, 3, 2):
        share = {"share": (number, MACHINES), **options}
        if job == "fit_tokenizer":
            gm.g2048.fit_tokenizer(gm.open(source), output, **share)
        elif job in ("verify", "stats"):
            getattr(gm, job)(source, output=output, **share)
        else:
            getattr(gm, job)(source, output, **share)
    gm.commit(output)


@pytest.fixture(params=["shares", "ray"])
def many(request: pytest.FixtureRequest) -> Iterator[ByMany]:
    """Makes an output on many machines. Machines of the cluster have the environment of the test."""
    if request.param == "shares":
        yield by_shares
        return
    pytest.importorskip("ray")
    import gristmill.ray

    with machines_of_ray(1) as cluster:

        def on_ray(job: str, source: Any, output: Path, **options: Any) -> None:
            made: Callable[..., Any] = getattr(gristmill.ray, job)
            made(source, output, shares=MACHINES, address=cluster.address, num_cpus=0.5, **options)

        yield on_ray


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[FaultServer]:
    """A server of buckets."""
    (tmp_path / "served").mkdir()
    with serving(tmp_path / "served", tmp_path / "twins") as server:
        yield server


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_an_archive_in_a_bucket_is_rescored_by_tables_and_packed(
    bucket: FaultServer, many: ByMany, syzygy: Path, tmp_path: Path
) -> None:
    for number in range(4):
        gm.generate(
            "chess",
            bucket.folder / "archive" / f"day-{number}",
            games=6,
            first=1 + 100 * number,
            seed=3,
            games_per_tar=2,
        )
    many("rescore", "s3://archive", tmp_path / "rescored", syzygy=syzygy, allow_missing_tables=True)
    many("pack", tmp_path / "rescored", tmp_path / "pack")
    gm.rescore(bucket.folder / "archive", tmp_path / "alone", syzygy=syzygy, allow_missing_tables=True)
    by_one, by_all = tree(tmp_path / "alone"), tree(tmp_path / "rescored")
    tars = [name for name in by_one if name.endswith(".tar")]
    assert len(tars) == 12
    assert [by_one[name] for name in tars] == [by_all[name] for name in tars]
    gm.pack(tmp_path / "rescored", tmp_path / "whole")
    packs = [tree(tmp_path / name) for name in ("whole", "pack")]
    assert packs[0] == packs[1]
    assert gm.verify(tmp_path / "pack").ok
    assert gm.open(tmp_path / "pack").num_games == 24


@pytest.mark.filterwarnings("ignore")
def test_drops_of_many_machines_are_one_pack_with_one_tokenizer(many: ByMany, tmp_path: Path) -> None:
    drops = [tmp_path / "drops" / f"machine-{number}" for number in range(MACHINES)]
    for number, drop in enumerate(drops):
        gm.generate("2048", drop, games=4, seed=10 + number)
    many("pack", tmp_path / "drops", tmp_path / "pack", shard_rows=500)
    gm.pack(tmp_path / "drops", tmp_path / "whole", shard_rows=500)
    assert tree(tmp_path / "pack") == tree(tmp_path / "whole")
    for job in ("verify", "stats"):
        many(job, tmp_path / "pack", tmp_path / f"{job}.json")
    found = json.loads((tmp_path / "verify.json").read_text())
    assert found["ok"]
    assert found["checked"] == len(gm.open(tmp_path / "pack"))
    assert json.loads((tmp_path / "stats.json").read_text()) == gm.stats(tmp_path / "pack")
    many("fit_tokenizer", tmp_path / "pack", tmp_path / "tokenizer.json", num_bins=8)
    fitted = gm.g2048.fit_tokenizer(gm.open(tmp_path / "pack"), tmp_path / "alone.json", num_bins=8)
    assert (tmp_path / "tokenizer.json").read_bytes() == (tmp_path / "alone.json").read_bytes()
    tokens = gm.g2048.Tokens(tmp_path / "tokenizer.json")
    batch = next(iter(gm.DataLoader(gm.open(tmp_path / "pack"), encoder=tokens, batch_size=64, seed=1)))
    assert batch.rows == 64
    # Each machine packs its own drop: the tokenizer of all packs is that of the merged one.
    packs = []
    for drop in drops:
        packs.append(tmp_path / "packs" / drop.name)
        gm.pack(drop, packs[-1])
    gm.merge(packs, tmp_path / "merged")
    of_packs = [gm.open(pack) for pack in packs]
    for number in (3, 1, 2, 4):
        made = gm.g2048.fit_tokenizer(of_packs, tmp_path / "several.json", num_bins=8, share=(number, 4))
        assert 0 < made.rows < len(gm.open(tmp_path / "merged"))
    several = gm.commit(tmp_path / "several.json")
    merged = gm.g2048.fit_tokenizer(gm.open(tmp_path / "merged"), tmp_path / "merged.json", num_bins=8)
    assert several == merged == fitted
    gm.g2048.fit_tokenizer(of_packs, tmp_path / "one.json", num_bins=8)
    assert (tmp_path / "several.json").read_bytes() == (tmp_path / "one.json").read_bytes()


@pytest.mark.filterwarnings("ignore")
def test_demonstrations_of_ten_tasks_are_packs_with_one_metadata(many: ByMany, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for task in range(10):
        for part in range(2):
            steps = 6 + task
            dones = np.zeros(steps, bool)
            dones[[steps // 2, -1]] = True
            folder = tmp_path / "tasks" / f"task-{task}"
            folder.mkdir(parents=True, exist_ok=True)
            np.savez(
                folder / f"part-{part}.npz",
                obs=rng.integers(0, 255, (steps, 8, 8, 3), np.uint8),
                acts=rng.integers(0, 4, steps),
                dones=dones,
            )
    many("pack", tmp_path / "tasks", tmp_path / "pack")
    gm.pack(tmp_path / "tasks", tmp_path / "whole")
    assert tree(tmp_path / "pack") == tree(tmp_path / "whole")
    pack = gm.open(tmp_path / "pack")
    assert pack.num_games == 40
    batch = gm.DataLoader(pack, encoder=gm.Fields(["obs", "acts"]), batch_size=32, seed=1).get_next()
    assert batch["obs"].shape == (32, 8, 8, 3)
