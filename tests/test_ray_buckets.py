"""Jobs whose shares a Ray cluster makes into a bucket: its machines share no disk for the output."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from buckets import FaultServer, empty_bucket
from ray_machines import machines_of_ray
from trees import tree

import gristmill as gm
import gristmill.ray


@pytest.fixture
def bucket(tmp_path: Path) -> Iterator[FaultServer]:
    """A server with an empty bucket `out`, which processes of the cluster find by their environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path / "elsewhere"))
        with empty_bucket(tmp_path) as server:
            yield server


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_makes_shares_in_a_bucket(bucket: FaultServer, tmp_path: Path) -> None:
    ray = pytest.importorskip("ray", reason="skipped: needs ray")
    games = tmp_path / "games"
    gm.generate("chess", games, games=24, seed=5)
    gm.pack(games, tmp_path / "whole")
    gm.pack(games, "s3://out/pack", share=(2, 4))
    planned = gristmill.ray.pack(games, "s3://out/pack", dry_run=True)
    assert (planned.shares, planned.there) == (4, 1)
    with machines_of_ray(2) as cluster, ray.init(address=cluster.address, log_to_driver=False):
        done = gristmill.ray.pack(games, "s3://out/pack")
        report = gristmill.ray.verify("s3://out/pack", "s3://out/report.json", shares=2)
    assert (done.output, done.shares, done.there, done.made) == ("s3://out/pack", 4, 1, 3)
    assert done.result is not None
    assert done.result.pack == "s3://out/pack"
    assert report.result == gm.verify("s3://out/pack")
    assert tree(bucket.folder / "out" / "pack") == tree(tmp_path / "whole")
    assert tree(bucket.folder / "out").keys() == {"report.json", *(f"pack/{name}" for name in tree(tmp_path / "whole"))}
    assert not os.listdir(tmp_path / "elsewhere" / "gristmill" / "twins" / "outgoing")
    with pytest.raises(gm.ConfigError, match="its shares were committed"):
        gristmill.ray.pack(games, "s3://out/pack", shares=4)
