"""Bad files through the loader: skipped and counted, listed, or raised; never a hang, and the rest arrives."""

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from generated_games import frames_of, game, write_tar

import gristmill as gm

PASS: dict[str, Any] = {"epochs": 1, "batch_size": 16, "seed": 1, "threads": 2, "index": "off", "tensors": ["ids"]}

GOOD = gzip.compress(game(5, 20).tobytes(), 1, mtime=0)
RAW = game(5, 20).tobytes()

FAULTS: dict[str, bytes] = {
    "truncated": GOOD[: len(GOOD) // 2],
    "corrupt": GOOD[:-8] + bytes([GOOD[-8] ^ 1]) + GOOD[-7:],
    "wrong_size": gzip.compress(RAW[:-1], 1),
    "unknown_version": gzip.compress(bytes([70]) + RAW[1:], 1),
    "empty": gzip.compress(b""),
    "too_large": gzip.compress(bytes(64 << 20), 9),
}


def games_seen(loader: gm.DataLoader) -> list[int]:
    """Numbers of the generated games whose frames came, once per frame."""
    found = []
    for batch in loader:
        for source in batch["ids"][:, 0].tolist():
            found.append(int(str(loader.source_path(source)).split(".")[1]))
    return found


@pytest.mark.parametrize("kind", FAULTS)
def test_a_bad_file_is_skipped_and_counted(games: Path, kind: str) -> None:
    (games / "training.5.gz").write_bytes(FAULTS[kind])
    loader = gm.DataLoader(gm.presets.lc0(games, **PASS))
    assert games_seen(loader) == [f // 1000 for f in frames_of(12) if f // 1000 != 5]
    assert loader.metrics()["bad_chunks"]["by_kind"] == {kind: 1}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_bad_file_is_listed_with_its_reason(games: Path, tmp_path: Path, kind: str) -> None:
    (games / "training.5.gz").write_bytes(FAULTS[kind])
    report = tmp_path / "bad.jsonl"
    loader = gm.DataLoader(gm.presets.lc0(games, bad_chunks="quarantine", quarantine=report, **PASS))
    assert 5 not in games_seen(loader)
    [line] = report.read_text().splitlines()
    assert json.loads(line)["kind"] == kind
    assert "training.5.gz" in line


@pytest.mark.parametrize("kind", FAULTS)
def test_a_bad_file_is_raised_at_its_place(games: Path, kind: str) -> None:
    (games / "training.5.gz").write_bytes(FAULTS[kind])
    loader = gm.DataLoader(gm.presets.lc0(games, bad_chunks="raise", **PASS))
    batches = (20 + 21 + 22 + 20 + 21) // 16
    assert [loader.get_next().number for _ in range(batches)] == list(range(batches))
    with pytest.raises(gm.FormatError) as refused:
        loader.get_next()
    assert refused.value.kind == kind
    assert "training.5.gz" in str(refused.value.source)


def test_a_bad_member_of_a_tar_is_named(games: Path) -> None:
    path = write_tar(games / "z.tar", {"d/a.gz": game(1, 5), "d/b.gz": game(2, 5)})
    data = bytearray(path.read_bytes())
    data[data.rindex(b"\x1f\x8b") + 20] ^= 0xFF
    path.write_bytes(bytes(data))
    with pytest.raises(gm.FormatError) as refused:
        list(gm.DataLoader(gm.presets.lc0(games, bad_chunks="raise", **PASS)))
    assert str(refused.value.source).endswith("z.tar")
    assert (refused.value.member, refused.value.chunk) == ("d/b.gz", 1)


@pytest.mark.parametrize(
    "damage",
    [
        lambda d: (d / "loop").symlink_to(d, target_is_directory=True),
        lambda d: (d / "nowhere.gz").symlink_to(d / "missing"),
        lambda d: os.mkfifo(d / "pipe.gz"),
        lambda d: (d / "notes.txt").write_text("not a game"),
        lambda d: (d / ".training.99.gz").write_bytes(b"hidden"),
        lambda d: (d / "folder.gz").mkdir(),
    ],
    ids=["symlink loop", "dangling link", "pipe", "foreign file", "hidden file", "folder named like a game"],
)
def test_what_is_no_game_does_no_harm(games: Path, damage: Callable[[Path], object]) -> None:
    damage(games)
    loader = gm.DataLoader(gm.presets.lc0(games, **PASS))
    assert games_seen(loader) == [f // 1000 for f in frames_of(12)]


@pytest.mark.skipif(os.geteuid() == 0, reason="skipped: root may read everything")
def test_an_unreadable_file_is_skipped(games: Path) -> None:
    (games / "training.5.gz").chmod(0)
    assert 5 not in games_seen(gm.DataLoader(gm.presets.lc0(games, **PASS)))


def test_files_that_vanish_are_skipped(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, pool=12, reservoir=16, watch=False, **(PASS | {"epochs": None})))
    with loader:
        loader.get_next()
        for number in range(6):
            (games / f"training.{number}.gz").unlink()
        for _ in range(100):
            loader.get_next(timeout=20)


def test_all_files_vanishing_ends_in_an_error(games: Path) -> None:
    loader = gm.DataLoader(gm.presets.lc0(games, pool=12, reservoir=16, watch=False, **(PASS | {"epochs": None})))

    def drain() -> None:
        while True:
            loader.get_next(timeout=20)

    with loader:
        loader.get_next()
        for path in games.iterdir():
            path.unlink()
        with pytest.raises(gm.GristmillError):
            drain()


def test_a_pass_over_an_empty_directory_says_so(tmp_path: Path) -> None:
    (tmp_path / "none").mkdir()
    with gm.DataLoader(gm.presets.lc0(tmp_path / "none", **PASS)) as loader:
        with pytest.raises(gm.StageError, match="no games of chess") as refused:
            loader.get_next(timeout=20)
        assert refused.value.stage == "extract"


def test_too_little_memory_is_refused_before_anything_runs(games: Path) -> None:
    with pytest.raises(gm.ConfigError) as refused:
        gm.DataLoader(gm.presets.lc0(games, memory="1MiB", reservoir=100_000))
    assert "memory" in str(refused.value)


def test_a_replay_without_a_journal_is_refused(games: Path) -> None:
    with pytest.raises(gm.ConfigError) as refused:
        gm.DataLoader(gm.presets.lc0(games, replay=True))
    assert refused.value.field == "replay"
