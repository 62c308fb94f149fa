"""Shares of games written again: the folder of one process, whatever is killed; what has none."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_sharing import kill_shares
from trees import tree
from viewers import binary

import gristmill as gm

#: Jobs that write games again: the name of each, and its options.
JOBS: list[tuple[str, dict[str, Any]]] = [
    ("rescore", {"dist_temp": 1.5}),
    ("filter", {"rules": "all"}),
    ("convert", {"to": "v7"}),
    ("convert", {"container": "tar", "games_per_tar": 4}),
    ("convert", {"container": "loose", "version": 7}),
    ("split", {"into": {"train": 2, "test": 1}}),
    ("split", {"into": {"train": 9, "val": 0, "test": 1}, "by": "content", "folds": 3, "fold": 1}),
]


def make(job: str, *places: Path, **options: Any) -> gm.ConvertedGames:
    """Runs a job by its name."""
    made: gm.ConvertedGames = getattr(gm, job)(*places, **options)
    return made


@pytest.fixture
def drop(tmp_path: Path) -> Path:
    """Games loose and in tars, a damaged one, and a file that is no game."""
    games = tmp_path / "games"
    gm.generate("chess", games, games=7, seed=1)
    gm.generate("chess", games / "tars", games=9, seed=2, games_per_tar=3)
    (games / "bad.gz").write_bytes(b"\x1f\x8b\x08\x00")
    (games / "notes.txt").write_text("no game")
    return games


@pytest.mark.parametrize(("job", "options"), JOBS)
def test_shares_write_the_folder_of_one_process(drop: Path, tmp_path: Path, job: str, options: dict[str, Any]) -> None:
    out, whole = tmp_path / "out", tmp_path / "whole"
    expected = make(job, drop, out, **options)
    assert expected.share is None
    # The ledger has the name of its folder.
    out.rename(whole)
    for number in (3, 1, 4, 2):
        looked = make(job, drop, out, share=(number, 4), dry_run=True, **options)
        made = make(job, drop, out, share=(number, 4), threads=1, **options)
        again = make(job, drop, out, share=f"{number}/4", **options)
        assert made.share is not None
        assert not made.share.there
        assert looked.share == made.share
        assert looked.chunks == 0
        assert again == replace(made, share=replace(made.share, there=True))
    stand = gm.shares(out)
    assert (stand.plan["job"], stand.done, stand.missing) == (job, 4, 0)
    assert gm.commit(out, dry_run=True) == replace(expected, dry_run=True)
    assert gm.commit(out) == expected
    assert tree(out) == tree(whole)
    assert make(job, drop, out, **options).resumed == expected.files
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "out", "whole"]


def test_rescoring_and_filtering_from_python_are_what_the_commands_do(drop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words: list[tuple[list[str], Callable[[], gm.ConvertedGames]]] = [
        (["rescore", "--dist-temp", "1.5", "--keep-v6"], lambda: gm.rescore(drop, out, dist_temp=1.5, keep_v6=True)),
        (["filter", "--rules", "nan,policy_sum"], lambda: gm.filter(drop, out, rules=["nan", "policy_sum"])),
    ]
    for (verb, *rest), call in words:
        # A damaged game ends the command with 1.
        line = [str(binary()), verb, str(drop), str(out), *rest]
        done = subprocess.run(line, capture_output=True, check=False)
        assert done.returncode == 1, done.stderr
        by_command = tree(out)
        shutil.rmtree(out)
        made = call()
        assert tree(out) == by_command
        assert (made.chunks, sum(made.damaged.values()), made.skipped) == (17, 1, 1)
        # The same job: it resumes, and does not refuse.
        assert call().resumed == made.files
        shutil.rmtree(out)
    for wrong, says in (({"rules": "nun"}, "nun"), ({"threads": 0}, "threads")):
        with pytest.raises((gm.ConfigError, ValueError, TypeError), match=says):
            gm.filter(drop, out, **wrong)
    with pytest.raises(gm.ConfigError, match="dist_temp"):
        gm.rescore(drop, out, dist_temp=-1)
    with pytest.raises(TypeError, match="did you mean 'dist_temp'"):
        gm.rescore(drop, out, dist_tmp=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("to", ["pgn", "fen"])
def test_texts_of_shares_are_that_of_one_process(drop: Path, tmp_path: Path, to: Any) -> None:
    """Games lie loose, in tars and in a pack. One is damaged, and the commit names it as one process does."""
    gm.pack(drop / "tars", drop / "pack")
    out, whole = tmp_path / "out", tmp_path / "whole"
    expected = gm.convert(drop, whole, to)
    assert expected.games == 25
    assert sum(expected.left_out.values()) == 1
    for of in (1, 4, 40):
        made = [gm.convert(drop, out, to, share=(number, of)) for number in range(of, 0, -1)]
        assert sum(one.games for one in made) == expected.games
        again = gm.convert(drop, out, to, share=(1, of)).share
        assert again is not None
        assert again.there
        with pytest.raises(gm.ConfigError, match=f"the job: convert --to {to} there, convert --to bulletformat now"):
            gm.convert(drop, out, "bulletformat", share=(1, of))
        kept = shutil.copytree(f"{out}.shares", tmp_path / "kept")
        done = gm.commit(out)
        assert replace(done, seconds=0, output="") == replace(expected, seconds=0, output="")
        assert out.read_bytes() == whole.read_bytes()
        # A killed commit left the shares. Then another file lies at the output. Then a share lacks its last byte.
        shutil.copytree(kept, f"{out}.shares")
        gm.commit(out)
        shutil.copytree(kept, f"{out}.shares")
        out.write_bytes(b"mine")
        with pytest.raises(gm.ConfigError, match="overwrite replaces it"):
            gm.commit(out)
        assert out.read_bytes() == b"mine"
        gm.commit(out, overwrite=True)
        assert out.read_bytes() == whole.read_bytes()
        words = next(path for path in kept.glob("*/*/words") if path.stat().st_size)
        words.write_bytes(words.read_bytes()[:-1])
        out.unlink()
        kept.rename(f"{out}.shares")
        with pytest.raises(gm.FormatError, match="make it again"):
            gm.commit(out)
        shutil.rmtree(f"{out}.shares")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "whole"]


def test_what_is_made_of_all_inputs_together_has_no_shares(drop: Path, tmp_path: Path) -> None:
    rows, demos, out = tmp_path / "rows", tmp_path / "demos.npz", tmp_path / "out"
    gm.generate("2048", tmp_path / "logs", games=2, seed=1, depth=0, moves_max=20)
    gm.pack(tmp_path / "logs", rows)
    np.savez(demos, obs=np.zeros((4, 2)), acts=np.zeros((4, 1)), terminal=np.array([True]))
    before = sorted(path.name for path in tmp_path.iterdir())
    wrong: list[tuple[Path, Path, dict[str, Any], str]] = [
        (rows, out, {"to": "exponents"}, "for games of chess"),
        (drop, tmp_path / "out.binpack", {"to": "binpack"}, "binpacks that are put one behind the other are one"),
        (drop, tmp_path / "out.pgn", {"to": "pgn", "overwrite": True}, "a commit with overwrite does"),
        (drop, out, {"version": 7, "share": (0, 2)}, "counted from 1"),
        (drop, out, {"version": 7, "share": "two"}, "such as 17/400"),
        (drop, out, {"version": 7, "share": (1.5, 2)}, "such as"),
        (drop, drop / "out", {"version": 7}, "lies within"),
        (drop, Path("http://127.0.0.1:1/out"), {"version": 7}, "is read only"),
    ]
    for source, place, options, says in wrong:
        with pytest.raises(gm.ConfigError, match=says):
            gm.convert(source, place, **{"share": (1, 2), **options})
    refused: list[tuple[list[Any], str]] = [
        ([rows, out, "--to", "exponents"], "which are put in order together"),
        ([demos, tmp_path / "shard.tar.zst"], "become a shard of their own"),
        ([drop, out, "--version", "7", "--share", "3/2"], "from 1 to 2"),
    ]
    for words, says in refused:
        line = [
            str(word) for word in [binary(), "convert", *words, *([] if "--share" in words else ["--share", "1/2"])]
        ]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == 2, done
        assert says in done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_split_from_python_is_what_the_command_does(drop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    line = [str(binary()), "split", str(drop), str(out), "--into", "train:2,test:1", "--folds", "3", "--fold", "1"]
    assert subprocess.run(line, capture_output=True, check=False).returncode == 0
    by_command = tree(out)
    shutil.rmtree(out)
    made = gm.split(drop, out, {"train": 2, "test": 1}, folds=3, fold=1)
    assert tree(out) == by_command
    # Damaged games go by their names, too.
    assert (made.kept, made.frames_in, made.resumed) == (17, 0, 0)
    assert gm.split(drop, out, {"train": 2, "test": 1}, folds=3, fold=1).resumed == made.files
    shutil.rmtree(out)
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"into": {}}, "a positive sum"),
        ({"into": {"a": 0}}, "a positive sum"),
        ({"into": {"a": -1}}, "expected a whole number"),
        ({"into": {"a": 0.5}}, "expected a whole number"),
        ({"into": {"a/b": 1}}, "is no name of a folder below OUT"),
        ({"into": {"a": 1}, "by": "colour"}, "there are name, file and content"),
        ({"into": {"a": 1, "b": 1}, "folds": 3}, "go together"),
        ({"into": {"a": 1, "b": 1}, "folds": 3, "fold": 3}, "fold 3 of 3"),
        ({"into": {"a": 1, "b": 1}, "share": "3/2"}, "from 1 to 2"),
        ({"into": {"a": 1, "b": 1}, "share": (0, 2)}, "counted from 1"),
    ]
    for options, says in wrong:
        with pytest.raises(gm.ConfigError, match=says):
            gm.split(drop, out, **options)
    for share in (None, (1, 2)):
        with pytest.raises(gm.ConfigError, match=r"would be read|lies within"):
            gm.split(drop, drop / "out", {"a": 1}, share=share)
    with pytest.raises(TypeError, match="did you mean 'fold'"):
        gm.split(drop, out, {"a": 1}, folt=1)  # type: ignore[call-arg]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games"]


def test_shares_of_another_job_are_refused_by_name(drop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    gm.rescore(drop, out, share=(1, 2))
    for dry_run in (True, False):
        with pytest.raises(gm.ConfigError, match="the job: rescore there, filter now"):
            gm.filter(drop, out, share=(1, 2), dry_run=dry_run)
        with pytest.raises(gm.ConfigError, match="keep_v6: false there, true now"):
            gm.rescore(drop, out, share=(2, 2), keep_v6=True, dry_run=dry_run)
        with pytest.raises(gm.ConfigError, match="the job: rescore there, pack now"):
            gm.pack(drop, out, share=(1, 2), dry_run=dry_run)
    plan = out.with_name("out.shares") / "plan.json"
    assert gm.shares(out).done == 1
    plan.unlink()
    gm.filter(drop, out, share=(2, 2))
    with pytest.raises(
        gm.ConfigError, match=r"1/2 is missing; `gristmill shares .* lists them, `gristmill filter` with"
    ):
        gm.commit(out)


@pytest.mark.parametrize(("job", "options"), [("rescore", {}), ("split", {"into": {"a": 1, "b": 1}, "by": "content"})])
def test_a_share_of_games_that_is_killed_anywhere_counts_for_nothing(
    tmp_path: Path, job: str, options: dict[str, Any]
) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=60, seed=2)
    make(job, games, out, **options)
    out.rename(tmp_path / "whole")
    kill_shares(getattr(gm, job), games, out, threads=1, **options)
    assert tree(out) == tree(tmp_path / "whole")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["games", "out", "whole"]


@pytest.mark.parametrize(("job", "options"), [("rescore", {}), ("split", {"into": {"a": 1, "b": 1}})])
def test_two_commits_at_once_write_the_folder_once(tmp_path: Path, job: str, options: dict[str, Any]) -> None:
    games, out = tmp_path / "games", tmp_path / "out"
    gm.generate("chess", games, games=40, seed=2)
    make(job, games, out, **options)
    out.rename(tmp_path / "whole")
    program = "import sys, gristmill as gm; gm.commit(sys.argv[1])"
    for _ in range(4):
        for number in (1, 2, 3):
            make(job, games, out, share=(number, 3), **options)
        both = [
            subprocess.Popen([sys.executable, "-c", program, out], stderr=subprocess.PIPE, text=True) for _ in range(2)
        ]
        ended = [(child.communicate()[1], child.returncode) for child in both]
        assert any(code == 0 for _, code in ended), ended
        for said, code in ended:
            assert code == 0 or "committed already" in said or "another" in said or "busy" in said, said
        assert tree(out) == tree(tmp_path / "whole")
        assert not os.path.exists(f"{out}.shares")
        shutil.rmtree(out)


def test_the_words_of_shares_of_games(drop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"

    def said(*words: object, code: int = 0) -> str:
        line = [binary(), *map(str, words)]
        done = subprocess.run(line, capture_output=True, text=True, check=False)
        assert done.returncode == code, done
        return done.stdout

    assert "share 1/2 of plan" in said("filter", drop, out, "--share", "1/2", "--dry-run")
    assert "would be made of" in said("filter", drop, out, "--share", "1/2", "--dry-run")
    # What a share lacks is a matter of the commit.
    for number in (1, 2):
        assert "games, of" in said("filter", drop, out, "--share", f"{number}/2")
    assert "is done already" in said("filter", drop, out, "--share", "1/2")
    assert "2 of 2 shares are done" in said("shares", out)
    assert "unreadable: " in said("commit", out, code=1)
    assert said("commit", out, code=2) == ""
