"""What a loader says through Python's `logging`: what `gristmill top` shows, each warning once, and by no thread."""

import json
import logging
import re
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from generated_games import game, write_games, write_tar

import gristmill as gm

PASS: dict[str, Any] = {"epochs": 1, "batch_size": 16, "seed": 1, "threads": 2, "index": "off", "tensors": ["ids"]}


def said(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno == level]


def test_bad_chunks_and_ends_are_said_once(games: Path, caplog: pytest.LogCaptureFixture) -> None:
    bad = sorted(games.glob("*.gz"))[3]
    bad.write_bytes(bad.read_bytes()[:50])
    caplog.set_level(logging.INFO, logger="gristmill")
    loader = gm.DataLoader(gm.presets.lc0(games, **PASS | {"epochs": 3}))
    assert all(list(loader) for _ in range(3))
    with pytest.raises(gm.EndOfStream):
        list(loader)
    (warning,) = said(caplog, logging.WARNING)
    assert warning.startswith("bad_chunk")
    assert bad.name in warning
    told = said(caplog, logging.INFO)
    for kind in ("started", "scanned", "ended"):
        assert sum(line.startswith(kind) for line in told) == 1, told
    assert {record.name for record in caplog.records} == {"gristmill"}
    event = next(record for record in caplog.records if record.levelno == logging.WARNING).gristmill  # type: ignore[attr-defined]
    assert event["kind"] == "bad_chunk"


def test_a_flood_is_cut_off(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    games = write_games(tmp_path / "games", 60)
    for path in sorted(games.glob("*.gz"))[:50]:
        path.write_bytes(path.read_bytes()[:50])
    assert list(gm.DataLoader(gm.presets.lc0(games, **PASS)))
    lines = said(caplog, logging.WARNING)
    assert len(lines) == 21
    assert "are counted in metrics()" in lines[-1]


def test_the_guide_makes_lines_of_json(games: Path, caplog: pytest.LogCaptureFixture) -> None:
    guide = (Path(__file__).resolve().parents[1] / "docs/guide/top.md").read_text()
    (block,) = re.findall(r"^```python\n(import json\n.*?)^handler = ", guide, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    exec(block, names)
    bad = sorted(games.glob("*.gz"))[3]
    bad.write_bytes(bad.read_bytes()[:50])
    caplog.set_level(logging.INFO, logger="gristmill")
    assert list(gm.DataLoader(gm.presets.lc0(games, **PASS)))
    logging.getLogger("gristmill").info("pass: it is over")
    lines = [json.loads(names["Lines"]().format(record)) for record in caplog.records]
    assert {"started", "bad_chunk"} <= {line.get("kind") for line in lines}
    (warning,) = (line for line in lines if line.get("kind") == "bad_chunk")
    assert (warning["logger"], warning["level"], warning["details"]["source"]) == ("gristmill", "warning", str(bad))
    assert lines[-1] == {
        "time": lines[-1]["time"],
        "logger": "gristmill",
        "level": "INFO",
        "message": "pass: it is over",
    }


def test_files_that_cannot_be_read_are_said(games: Path, caplog: pytest.LogCaptureFixture) -> None:
    (games / "bad.tar").write_bytes(b"no tar at all" * 100)
    assert list(gm.DataLoader(gm.presets.lc0(games, **PASS)))
    assert any("bad.tar" in line for line in said(caplog, logging.WARNING)), caplog.records


def test_waiting_is_said_and_refusing_to_wait_is_raised(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder = tmp_path / "games"
    folder.mkdir()
    options: dict[str, Any] = {"pool": 10, "reservoir": 0, "batch_size": 8, "seed": 1, "index": "off"}
    with (
        gm.DataLoader(gm.presets.lc0(folder, **options)) as loader,
        pytest.raises(gm.StageError, match=r"is empty.*watch=True"),
    ):
        loader.get_next()
    heard = threading.Event()

    class Heard(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if record.getMessage().startswith("waiting"):
                heard.set()

    # Before the start: that may be quick enough to say it.
    handler = Heard()
    logging.getLogger("gristmill").addHandler(handler)
    found: list[gm.Batch] = []
    with gm.DataLoader(gm.presets.lc0(folder, watch=True, **options)) as loader:
        waiting = threading.Thread(target=lambda: found.append(loader.get_next()))
        waiting.start()
        assert heard.wait(60)
        write_games(folder, 3)
        waiting.join(60)
    logging.getLogger("gristmill").removeHandler(handler)
    assert len(found) == 1
    (warning,) = said(caplog, logging.WARNING)
    assert "is empty. Waiting for games to come" in warning


def test_a_large_tar_that_is_being_opened_is_not_called_empty(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "games").mkdir()
    write_tar(tmp_path / "games" / "training.tar", dict.fromkeys(map("d/{}.gz".format, range(20_000)), game(1, 3)))
    options: dict[str, Any] = {"pool": 20, "reservoir": 0, "batch_size": 8, "seed": 1, "index": "off"}
    with gm.DataLoader(gm.presets.lc0(tmp_path / "games", watch=True, **options)) as loader:
        for _ in range(20):
            loader.get_next()
    assert said(caplog, logging.WARNING) == []


@pytest.mark.parametrize("kind", ["logs", "pack", "demos"])
def test_other_data_is_named_with_what_takes_it(tmp_path: Path, kind: str) -> None:
    folder = tmp_path / kind
    folder.mkdir()
    names = {"logs": "a.jsonl.gz", "pack": "steps.npy", "demos": "a.npz"}
    (folder / names[kind]).write_bytes(b"\x1f\x8b")
    told = {"logs": "raw log of a 2048 game", "pack": r"gristmill\.open\(", "demos": "PairLoader"}[kind]
    with (
        gm.DataLoader(gm.presets.lc0(folder, pool=10, reservoir=0, batch_size=8)) as loader,
        pytest.raises(gm.GristmillError, match=told),
    ):
        loader.get_next()


PROGRAM = """
import logging, multiprocessing, sys
import gristmill as gm

def work(folder):
    options = dict(epochs=1, batch_size=16, seed=1, index="off", tensors=["ids"])
    print(sum(batch.rows for batch in gm.DataLoader(gm.presets.lc0(folder, **options))), flush=True)

if __name__ == "__main__":
    worker = multiprocessing.get_context("spawn").Process(target=work, args=(sys.argv[1],))
    worker.start()
    worker.join()
    # And one that is still running when the interpreter ends.
    running = gm.DataLoader(gm.presets.lc0(sys.argv[1], pool=5, reservoir=0, batch_size=8, index="off"))
    running.get_next()
    sys.exit(worker.exitcode)
"""


def test_workers_say_it_and_nothing_is_said_at_the_exit(games: Path, tmp_path: Path) -> None:
    bad = sorted(games.glob("*.gz"))[3]
    bad.write_bytes(bad.read_bytes()[:50])
    (tmp_path / "program.py").write_text(PROGRAM)
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), str(games)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) > 0
    lines = done.stderr.splitlines()
    assert any(line.startswith("bad_chunk") and bad.name in line for line in lines), done.stderr
    assert all(line.startswith("bad_chunk") for line in lines), done.stderr
