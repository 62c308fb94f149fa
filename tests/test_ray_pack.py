"""Packs whose shares a Ray cluster makes: the bytes of one process, whatever is lost or killed, and nothing is left."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from test_command import run, told

import gristmill as gm
import gristmill.ray

SHARES = 10


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Games whose shares take a while, beside the pack that one process makes of them."""
    folder = tmp_path_factory.mktemp("many")
    gm.generate("chess", folder / "games", games=300, seed=4)
    gm.pack(folder / "games", folder / "whole")
    return folder


def driver(games: Path, out: Path, cluster: Any) -> subprocess.Popen[str]:
    """The command at work on the cluster."""
    words = ["ray", "pack", games, out, "--address", cluster.address, "--shares", str(SHARES), "--json"]
    line = [sys.executable, "-m", "gristmill", *words]
    return subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def wait_until(is_so: Callable[[gm.Shares], bool], out: Path, child: subprocess.Popen[str]) -> None:
    """Waits until the shares of `out` stand so, while a process makes them."""
    while True:
        assert child.poll() is None, child.communicate()
        try:
            if is_so(gm.shares(out)):
                return
        except gm.ConfigError:
            # It has not begun.
            pass
        time.sleep(0.02)


def at_rest(out: Path) -> gm.Shares:
    """How the shares stand when no process makes one any more."""
    while (stand := gm.shares(out)).running:
        time.sleep(0.1)
    return stand


def finished(child: subprocess.Popen[str]) -> tuple[int, int]:
    """How many shares were there, and how many the command made."""
    said, complaint = child.communicate()
    assert child.returncode == 0, complaint
    # What Ray prints of lost machines stands elsewhere.
    done = json.loads(said)
    return done["there"], done["made"]


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
@pytest.mark.parametrize("kind", ["chess", "2048"])
def test_ray_makes_the_pack_of_one_process(cluster: Any, tmp_path: Path, kind: Any) -> None:
    import ray
    from ray._private.internal_api import memory_summary

    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate(kind, games, games=20, seed=1)
    whole = gm.pack(games, tmp_path / "whole")
    seen: list[tuple[int, int]] = []
    with ray.init(address=cluster.address, log_to_driver=False):
        with pytest.raises(gm.ConfigError, match="is connected to a cluster"):
            gristmill.ray.pack(games, out, shares=4, address="auto")
        gm.pack(games, out, share=(3, 4))
        done = gristmill.ray.pack(games, out, shares=4, num_cpus=0.5, progress=lambda *now: seen.append(now))
        # Games are in files, and not in what machines of the cluster share.
        assert "Plasma memory usage 0 MiB, 0 objects" in memory_summary(stats_only=True)
        assert ray.is_initialized()
    assert (done.shares, done.there, done.made, done.output) == (4, 1, 3, str(out))
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert done.result is not None
    assert done.result.rows == whole.rows
    assert done.cpu_seconds > 0
    assert files(out) == files(tmp_path / "whole")
    with pytest.raises(gm.ConfigError, match="its shares were committed"):
        gristmill.ray.pack(games, out, shares=4)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "out", "whole"]


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_ray_pack_that_is_stopped_leaves_what_is_done(
    cluster: Any, many: Path, tmp_path: Path, end: signal.Signals
) -> None:
    """The command, which resumes by the same words; the number of shares is known from before."""
    out = tmp_path / "out"
    child = driver(many / "games", out, cluster)
    wait_until(lambda stand: stand.done >= 2, out, child)
    child.send_signal(end)
    said, complaint = child.communicate()
    assert child.returncode == 130, complaint
    assert json.loads(said)["error"]["kind"] == "stopped"
    assert "Traceback" not in complaint
    stand = at_rest(out)
    assert stand.failed == 0
    assert 2 <= stand.done < SHARES
    done = told("ray", "pack", many / "games", out, "--address", cluster.address)
    assert (done["shares"], done["there"], done["made"]) == (SHARES, stand.done, SHARES - stand.done)
    assert files(out) == files(many / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.filterwarnings("ignore")  # Of Ray, of itself.
def test_ray_finishes_all_shares_but_those_whose_data_fail(cluster: Any, tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=12, seed=1)
    gm.pack(games, tmp_path / "whole")
    bad = games / "training.7.gz"
    sound = bad.read_bytes()
    bad.write_bytes(sound[:300] + bytes(len(sound) - 300))
    for _ in range(2):
        with pytest.raises(
            gm.SharesError, match="1 of 4 shares failed, 3 are done, and nothing was committed"
        ) as failed:
            gristmill.ray.pack(games, out, shares=4, on_error="raise", address=cluster.address)
        ((share, why),) = failed.value.failed.items()
        assert why.startswith("FormatError on ")
        assert "training.7.gz" in why
        stand = gm.shares(out)
        assert [one.state for one in stand.shares if one.share == share] == ["failed"]
        assert (stand.done, out.exists()) == (3, False)
    bad.write_bytes(sound)
    done = gristmill.ray.pack(games, out, shares=4, on_error="raise", address=cluster.address)
    assert (done.there, done.made) == (3, 1)
    assert gm.open(out).num_frames == gm.open(tmp_path / "whole").num_frames


def test_a_ray_cluster_that_does_not_answer_is_named(tmp_path: Path, games: Path) -> None:
    pytest.importorskip("ray")
    for address in ("127.0.0.1:1", "[::1]:1", "127.0.0.1:99999999"):
        with pytest.raises(ConnectionError, match="no Ray cluster answers there") as failed:
            gristmill.ray.pack(games, tmp_path / "out", address=address)
        assert str(failed.value).startswith(address)
    assert list(tmp_path.iterdir()) == [games]


def test_ray_that_is_not_installed_is_named(tmp_path: Path, games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(gm.MissingPackageError, match=r"pip install gristmill\[ray\]"):
        gristmill.ray.pack(games, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games"]


def test_ray_pack_plans_without_a_cluster(tmp_path: Path, games: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its plan is the one of shares by hand, in other current folders, too; what does not fit is refused before."""
    monkeypatch.setitem(sys.modules, "ray", None)
    out = tmp_path / "out"
    plan = gristmill.ray.pack(games, out, dry_run=True)
    assert (plan.shares, plan.there, plan.made, plan.result, plan.dry_run) == (1, 0, 0, None, True)
    gm.pack(games, out, share=(2, 3))
    monkeypatch.chdir(tmp_path)
    plan = gristmill.ray.pack("games", "out", dry_run=True)
    assert (plan.output, plan.shares, plan.there) == (str(out), 3, 1)
    refused: list[tuple[dict[str, Any], str]] = [
        ({"shares": 4}, "number of shares: 3 there, 4 now"),
        ({"shard_rows": 9}, "shard_rows: null there, 9 now"),
        ({"shares": 0}, "1 to 1000000 shares"),
        ({"num_cpus": 0}, "expected a whole number of processors"),
        ({"num_cpus": 1.5}, "expected a whole number of processors"),
    ]
    for options, says in refused:
        for dry_run in (True, False):
            with pytest.raises(gm.ConfigError, match=says):
                gristmill.ray.pack(games, out, dry_run=dry_run, **options)
    with pytest.raises(gm.ConfigError, match="lies within"):
        gristmill.ray.pack(games, games / "out")
    with pytest.raises(TypeError, match="did you mean 'num_cpus'"):
        gristmill.ray.pack(games, out, num_cpu=2)  # type: ignore[call-arg]
    gm.pack(games, tmp_path / "whole")
    for dry_run in (True, False):
        with pytest.raises(gm.ConfigError, match="there is a pack already"):
            gristmill.ray.pack(games, tmp_path / "whole", dry_run=dry_run)
    assert sorted(os.listdir(tmp_path)) == ["games", "out.shares", "whole"]


def test_shares_that_are_all_there_are_committed_without_a_cluster(
    tmp_path: Path, games: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where the process was killed between the last share and the commit."""
    monkeypatch.setitem(sys.modules, "ray", None)
    for number in (1, 2):
        gm.pack(games, tmp_path / "out", share=(number, 2))
    done = gristmill.ray.pack(games, tmp_path / "out")
    assert (done.shares, done.there, done.made) == (2, 2, 0)
    gm.pack(games, tmp_path / "whole")
    assert files(tmp_path / "out") == files(tmp_path / "whole")


def test_the_words_of_ray_pack(tmp_path: Path, games: Path) -> None:
    out = tmp_path / "out"
    planned = told("ray", "pack", games, out, "--shares", 3, "--dry-run", "--num-cpus", 0.5)
    assert (planned["shares"], planned["made"], planned["result"]) == (3, 0, None)
    assert (
        "3 of 3 shares would be made, 0 are there" in run("ray", "pack", games, out, "--shares", 3, "--dry-run").stdout
    )
    rule = ("--weigh", "diff_focus_q_weight = 6, diff_focus_pol_scale = 2")
    assert told("ray", "pack", games, out, *rule, "--dry-run")["shares"] == 1
    for words, says in (
        (["--weigh", "focus = 1"], "focus"),
        (["--endpoint", "http://127.0.0.1:1"], "--endpoint does not reach the machines"),
        (["--num-cpus", "0"], "expected a whole number of processors"),
        (["--shares", "0"], "0 is not in 1..1000000"),
        (["--overwrite"], "unrecognized arguments"),
    ):
        assert says in run("ray", "pack", games, out, *words, code=2).stderr
    assert list(tmp_path.iterdir()) == [games]
