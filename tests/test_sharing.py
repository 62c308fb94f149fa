"""Shares of a job and their commit, as a program uses them; wrong arguments are refused by name."""

import os
import random
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from viewers import binary

import gristmill as gm


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.mark.parametrize("kind", ["chess", "2048", "demonstrations"])
def test_shares_are_the_pack_of_one_process(tmp_path: Path, kind: Literal["chess", "2048", "demonstrations"]) -> None:
    games = tmp_path / "games"
    if kind == "demonstrations":
        games.mkdir()
        draws = np.random.default_rng(3)
        for name in range(5):
            lengths = [3, 4 + name]
            steps = sum(lengths)
            arrays: dict[str, Any] = {"obs": draws.random((steps, 2), np.float32), "acts": draws.integers(0, 3, steps)}
            one = tmp_path / f"made{name}"
            gm.pack(gm.demos.from_arrays(lengths, arrays), one)
            (chunks,) = one.glob("*.chunks")
            chunks.rename(games / f"task{name}.chunks")
    else:
        gm.generate(kind, games, games=9, seed=1)
    whole = gm.pack(games, tmp_path / "whole")
    out = tmp_path / "out"
    for number in (3, 1, 4, 2):
        made = gm.pack(games, out, share=(number, 4))
        assert made.share is not None
        assert (made.share.share, made.share.there) == (f"{number}/4", False)
    stand = gm.shares(out)
    assert (stand.done, stand.missing, len(stand.shares)) == (4, 0, 4)
    assert gm.commit(out).rows == whole.rows
    assert _files(out) == _files(tmp_path / "whole")
    assert not (tmp_path / "out.shares").exists()


def test_wrong_shares_are_refused(tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=2, seed=1)
    for share in ("0/4", (5, 4), "four", (1, 0)):
        with pytest.raises(gm.ConfigError, match="share"):
            gm.pack(games, out, share=share)
    with pytest.raises(gm.ConfigError, match="no shares"):
        gm.commit(out)
    with pytest.raises(gm.ConfigError, match="no shares"):
        gm.shares(out)
    with pytest.raises((OSError, gm.FormatError)):
        gm.pack(tmp_path / "nowhere", out, share="1/2")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games"]
    gm.pack(games, out, share="1/2")
    assert gm.pack(games, out, share="1/2").share.there  # type: ignore[union-attr]
    with pytest.raises(gm.StateError, match="2/2 is missing"):
        gm.commit(out)
    with pytest.raises(gm.StateError, match="shard_rows"):
        gm.pack(games, out, share="1/2", shard_rows=9)


def test_a_share_that_is_killed_anywhere_counts_for_nothing(tmp_path: Path) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=40, seed=2)
    gm.pack(games, tmp_path / "whole")
    program = "import sys, gristmill as gm; gm.pack(sys.argv[1], sys.argv[2], share=sys.argv[3], workers=1)"
    draws = random.Random(7)
    for number in range(1, 5):
        killed = subprocess.Popen([sys.executable, "-c", program, games, out, f"{number}/4"])
        try:
            killed.wait(timeout=draws.uniform(0.1, 0.6))
        except subprocess.TimeoutExpired:
            killed.kill()
        killed.wait()
        assert gm.pack(games, out, share=(number, 4)).share is not None
    stand = gm.shares(out)
    assert (stand.done, stand.running, stand.missing, stand.failed) == (4, 0, 0, 0)
    gm.commit(out)
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
