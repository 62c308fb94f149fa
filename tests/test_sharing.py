"""Shares of a job and their commit, as a program uses them; wrong arguments are refused by name."""

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from games_of_records import COLUMNS, FACTS, ROW, game
from katago_shards import members, write_shard, write_shards
from viewers import binary

import gristmill as gm

#: Commits each output that it reads the name of, and says what came of it.
COMMITS = """
import sys
import gristmill as gm
print("ready", flush=True)
for line in sys.stdin:
    try:
        gm.commit(line.strip())
        print("done", flush=True)
    except gm.ConfigError as e:
        print(e, flush=True)
    except OSError as e:
        print("busy" if "another" in str(e) else repr(e), flush=True)
    except Exception as e:
        print(repr(e), flush=True)
"""


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def make_games(folder: Path, kind: str) -> None:
    """Files of a kind that shares are cut of: nine games of a generator, five data sets, seven shards or writers."""
    if kind in ("chess", "2048"):
        gm.generate(kind, folder, games=9, seed=1)  # type: ignore[arg-type]
    elif kind == "demonstrations":
        folder.mkdir()
        draws = np.random.default_rng(3)
        for name in range(5):
            lengths = [3, 4 + name]
            steps = sum(lengths)
            arrays: dict[str, Any] = {"obs": draws.random((steps, 2), np.float32), "acts": draws.integers(0, 3, steps)}
            one = folder.with_name(f"made{name}")
            gm.pack(gm.demos.from_arrays(lengths, arrays), one)
            (chunks,) = one.glob("*.chunks")
            chunks.rename(folder / f"task{name}.chunks")
    elif kind == "katago":
        write_shards(folder, [40, 0, 7, 300, 3, 1, 20])
        # Of another shape than the first: each share leaves it out as one process would.
        write_shard(folder / "nine.npz", members(10, 9, edge=9))
        (folder / "cut.npz").write_bytes((folder / "data0.npz").read_bytes()[:900])
    else:
        for first in range(0, 21, 3):
            with gm.Writer(folder, ROW, columns=COLUMNS, facts=FACTS, identity=["board"]) as writer:
                for i in range(first, first + 3):
                    writer.write(game(i), elo=i)


KINDS = ["chess", "2048", "demonstrations", "katago", "records"]


@pytest.mark.parametrize("kind", KINDS)
def test_shares_are_the_pack_of_one_process(tmp_path: Path, kind: str) -> None:
    games = tmp_path / "games"
    make_games(games, kind)
    whole = gm.pack(games, tmp_path / "whole")
    out = tmp_path / "out"
    for number in (3, 1, 4, 2):
        made = gm.pack(games, out, share=(number, 4))
        assert made.share is not None
        assert (made.share.share, made.share.there) == (f"{number}/4", False)
    stand = gm.shares(out)
    assert (stand.done, stand.missing, len(stand.shares)) == (4, 0, 4)
    committed = gm.commit(out)
    assert (committed.rows, committed.skipped) == (whole.rows, whole.skipped)
    assert _files(out) == _files(tmp_path / "whole")
    assert not (tmp_path / "out.shares").exists()


@pytest.mark.parametrize("kind", ["chess", "2048"])
def test_commits_at_the_same_moment_make_one_pack(tmp_path: Path, kind: str) -> None:
    """Four processes commit each of some outputs at once: one does, and the others say that one does or did."""
    games = tmp_path / "games"
    make_games(games, kind)
    gm.pack(games, tmp_path / "whole")
    outputs = [tmp_path / f"out{i}" for i in range(8)]
    for out in outputs:
        for number in (1, 2, 3):
            gm.pack(games, out, share=(number, 3))
    committers = [
        subprocess.Popen([sys.executable, "-c", COMMITS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(4)
    ]
    try:
        said = [one.stdout.readline() for one in committers if one.stdout]
        assert said == ["ready\n"] * 4
        for out in outputs:
            for one in committers:
                assert one.stdin is not None
                one.stdin.write(f"{out}\n")
                one.stdin.flush()
            said = [one.stdout.readline().strip() for one in committers if one.stdout]
            assert "done" in said, said
            assert all(one in ("done", "busy") or "committed already" in one for one in said), said
            assert _files(out) == _files(tmp_path / "whole")
    finally:
        for one in committers:
            one.kill()
            one.communicate()
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["games", *(out.name for out in outputs), "whole"]


def test_a_share_that_runs_is_running_with_its_lease(tmp_path: Path) -> None:
    """A process is stopped in the middle of its share, which is seen from outside; then it goes on to its end."""
    games = tmp_path / "games"
    gm.generate("chess", games, games=60, seed=2)
    program = "import sys, gristmill as gm; gm.pack(sys.argv[1], sys.argv[2], share='1/2', workers=1)"
    for i in range(20):
        out = tmp_path / f"out{i}"
        process = subprocess.Popen([sys.executable, "-c", program, games, out])
        try:
            while process.poll() is None and not list(tmp_path.glob(f"out{i}.shares/*/.*/lease")):
                time.sleep(0.001)
            process.send_signal(signal.SIGSTOP)
            # It may have been done by then; then it is tried again.
            if process.poll() is not None or not list(tmp_path.glob(f"out{i}.shares/*/.*/lease")):
                continue
            first, second = gm.shares(out).shares
            assert (first.state, first.why, second.state, second.noted) == ("running", None, "missing", None)
            assert first.noted is not None
            assert first.noted >= 0
            with pytest.raises(gm.ConfigError, match="0 of 2 shares are done; 1/2 runs; 2/2 is missing"):
                gm.commit(out)
            process.send_signal(signal.SIGCONT)
            assert process.wait() == 0
            assert [share.state for share in gm.shares(out).shares] == ["done", "missing"]
            return
        finally:
            process.kill()
            process.wait()
    raise AssertionError("no process of 20 was stopped in the middle of its share")


def test_what_is_read_before_it_is_packed_has_no_shares(tmp_path: Path) -> None:
    """Tables, arrays of one's own and what is open are refused by the name of the option, and nothing is left."""
    rows = tmp_path / "rows"
    rows.mkdir()
    np.savez(rows / "table.npz", game=np.zeros(9, np.int64), board=np.zeros((9, 3), np.int8))
    own = tmp_path / "own"
    own.mkdir()
    np.savez(own / "a.npz", observations=np.zeros((4, 2)), actions=np.zeros((4, 1)), terminals=np.arange(4) == 3)
    lines = tmp_path / "lines.jsonl"
    lines.write_text('{"game": 1, "x": 2}\n')
    before = sorted(path.name for path in tmp_path.iterdir())
    for source in (rows / "table.npz", own / "a.npz", own, lines, [np.zeros(3, ROW)], gm.open(own / "a.npz")):
        with pytest.raises(gm.ConfigError, match="shares are of") as refused:
            gm.pack(source, tmp_path / "out", share=(1, 2))
        assert refused.value.field == "share"
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_wrong_shares_are_refused(tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=2, seed=1)
    wrong: list[Any] = ["0/4", (5, 4), "four", (1, 0), (1, 2, 3), (1.5, 4), ("1", "4"), 3, ()]
    for share in wrong:
        with pytest.raises(gm.ConfigError, match="share") as refused:
            gm.pack(games, out, share=share)
        assert refused.value.field == "share", share
    for below in (games / "out", games / "new" / "out"):
        with pytest.raises(gm.ConfigError, match="lies within") as refused:
            gm.pack(games, below, share="1/2")
        assert refused.value.field == "output"
    assert len(list(games.iterdir())) == 2
    with pytest.raises(gm.ConfigError, match="no shares"):
        gm.commit(out)
    with pytest.raises(gm.ConfigError, match="no shares"):
        gm.shares(out)
    with pytest.raises((OSError, gm.FormatError)):
        gm.pack(tmp_path / "nowhere", out, share="1/2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games"]
    gm.pack(games, out, share="1/2")
    assert gm.pack(games, out, share="1/2").share.there  # type: ignore[union-attr]
    with pytest.raises(gm.ConfigError, match=r"^`output`: .*2/2 is missing"):
        gm.commit(out)
    for dry_run in (True, False):
        with pytest.raises(gm.ConfigError, match=r"^`share`: .*shard_rows"):
            gm.pack(games, out, share="1/2", shard_rows=9, dry_run=dry_run)
    looks = [gm.pack(games, out, share=(number, 2), dry_run=True).share for number in (1, 2)]
    assert [share and share.there for share in looks] == [True, False]
    gm.pack(games, out, share="2/2")
    gm.commit(out)
    for dry_run in (True, False):
        with pytest.raises(gm.ConfigError, match="its shares were committed"):
            gm.pack(games, out, share="1/2", dry_run=dry_run)


def test_plans_that_cannot_be_are_refused_and_end(tmp_path: Path) -> None:
    """Cut, changed by hand, of absurd numbers, or a name without a file: no loop, and no memory for what they claim."""
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=2, seed=1)
    gm.pack(games, out, share="1/2")
    path = tmp_path / "out.shares" / "plan.json"
    plan = path.read_text()
    for text in ("", plan[:-9], plan.replace('"shares": 2', '"shares": 4000000000'), "[" * 9000, '{"name": "../.."}'):
        assert text != plan
        path.write_text(text)
        asks: list[Any] = [lambda: gm.commit(out), lambda: gm.shares(out), lambda: gm.pack(games, out, share="2/2")]
        for ask in asks:
            with pytest.raises(gm.FormatError, match="remove its folder") as refused:
                ask()
            assert (refused.value.kind, refused.value.source) == ("corrupt", str(path))
    path.unlink()
    path.symlink_to("nothing")
    with pytest.raises(gm.FormatError, match="nothing can be read there"):
        gm.pack(games, out, share="2/2")


def kill_shares(job: Callable[..., Any], games: Path, out: Path, **options: Any) -> None:
    """Kills a process at each of four shares, makes the shares here, and commits them."""
    call = f"gm.{job.__name__}(sys.argv[1], sys.argv[2], share=sys.argv[3], **{options!r})"
    draws = random.Random(7)
    for number in range(1, 5):
        killed = subprocess.Popen(
            [sys.executable, "-c", f"import sys, gristmill as gm; {call}", games, out, f"{number}/4"]
        )
        try:
            killed.wait(timeout=draws.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            killed.kill()
        killed.wait()
        assert job(games, out, share=(number, 4), **options).share is not None
    stand = gm.shares(out)
    assert (stand.done, stand.running, stand.missing, stand.failed) == (4, 0, 0, 0)
    gm.commit(out)


def test_a_share_that_is_killed_anywhere_counts_for_nothing(tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=40, seed=2)
    gm.pack(games, tmp_path / "whole")
    kill_shares(gm.pack, games, out, workers=1)
    assert _files(out) == _files(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "out", "whole"]


def test_the_array_jobs_of_many_machines_md_make_their_shares(tmp_path: Path) -> None:
    page = (Path(__file__).parents[1] / "docs/guide/many-machines.md").read_text()
    (block,) = re.findall(r"^```sh\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    lines = [line for line in block.splitlines() if not line.startswith("#")]
    gm.generate("chess", tmp_path / "games", games=9, seed=1)
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "gristmill").symlink_to(binary())
    env = {**os.environ, "SLURM_ARRAY_TASK_ID": "3", "JOB_COMPLETION_INDEX": "4"}
    env["PATH"] = f"{programs}:{env['PATH']}"
    for line in lines:
        if "parallel" in line and shutil.which("parallel") is None:
            line = line.split("gristmill", 1)[1].replace("{}", "7")
            line = f"gristmill{line}"
        done = subprocess.run(["bash", "-c", line], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (line, done.stderr)
    done_shares = {share.share for share in gm.shares(tmp_path / "everything").shares if share.state == "done"}
    assert {"3/400", "5/400"} <= done_shares
    assert len(done_shares) in (3, 400)
