"""`verify`, `stats` and `generate` from Python, as the commands do them; and states in folders that are made."""

import json
import subprocess
from pathlib import Path

import pytest
from steps_in_memory import columns

import gristmill as gm


def test_what_is_generated_is_sound_and_the_same_for_a_seed(tmp_path: Path) -> None:
    made = gm.generate("chess", tmp_path / "a", games=5, seed=3)
    assert (made.games, made.files, made.seed) == (5, 5, 3)
    assert made.bytes == sum(path.stat().st_size for path in (tmp_path / "a").iterdir())
    found = gm.verify(tmp_path / "a")
    assert found.ok
    assert found.checked == made.frames
    assert found.chunks == 5
    more = gm.generate("chess", tmp_path / "a", games=1, seed=3, first=6)
    gm.generate("chess", tmp_path / "b", games=6, seed=3)
    assert more.games == 1
    for path in (tmp_path / "b").iterdir():
        assert path.read_bytes() == (tmp_path / "a" / path.name).read_bytes()
    with pytest.raises(FileExistsError):
        gm.generate("chess", tmp_path / "a", games=1, seed=3)

    logs = gm.generate("2048", tmp_path / "c", games=9, seed=1, moves_max=20, threads=1)
    assert (logs.games, logs.files, logs.frames) == (9, 18, 180)
    gm.generate("2048", tmp_path / "d", games=9, seed=1, moves_max=20, threads=3)
    for path in (tmp_path / "c").iterdir():
        assert path.read_bytes() == (tmp_path / "d" / path.name).read_bytes()
    assert gm.stats(tmp_path / "c")["g2048"]["games"] == 9


def test_stats_and_faults_are_those_of_the_commands(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "games", games=3, seed=1)
    stats = gm.stats(tmp_path / "games", workers=1)
    assert stats["chunks"] == 3
    assert stats == gm.stats(tmp_path / "games", workers=4)
    bad = sorted((tmp_path / "games").iterdir())[1]
    bad.write_bytes(bad.read_bytes()[:-9])
    found = gm.verify(tmp_path / "games", max_faults=0)
    assert not found.ok
    assert found.fault_count == 1
    assert found.faults == []
    found = gm.verify(tmp_path / "games")
    assert found.faults[0]["file"] == str(bad)
    assert repr(found).startswith("Verification(1 faults: ")
    for look in (gm.verify, gm.stats):
        with pytest.raises(FileNotFoundError, match="nowhere"):
            look(tmp_path / "games", tmp_path / "nowhere")
    with pytest.raises(TypeError, match="at least one path"):
        gm.verify()
    with pytest.raises(ValueError, match="expected 'chess' or '2048'"):
        gm.generate("go", tmp_path / "x")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="games='many'; expected a whole number"):
        gm.generate("chess", tmp_path / "x", games="many")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="workers"):
        gm.stats(tmp_path, workers=0)


def test_a_state_is_saved_into_a_folder_that_is_made(tmp_path: Path) -> None:
    gm.generate("chess", tmp_path / "games", games=3, seed=1)
    gm.pack(tmp_path / "games", tmp_path / "pack")
    loader = gm.DataLoader(gm.open(tmp_path / "pack"), batch_size=8, seed=1)
    loader.get_next()
    loader.save(tmp_path / "new" / "folder" / "x")
    again = gm.DataLoader(gm.open(tmp_path / "pack"), batch_size=8, seed=1)
    again.load(tmp_path / "new" / "folder" / "x")
    assert (again.get_next()["probs"] == loader.get_next()["probs"]).all()

    stream = gm.DataLoader(gm.presets.lc0(tmp_path / "games", epochs=1, seed=1, batch_size=8))
    stream.get_next()
    stream.save(tmp_path / "of" / "a" / "stream")
    assert json.loads((tmp_path / "of" / "a" / "stream").read_text().splitlines()[0])
    stream.stop()

    pairs = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)
    pairs.save(tmp_path / "pairs" / "x")
    gm.PairLoader(columns([5, 7]), batch_size=4, seed=1).load(tmp_path / "pairs" / "x")


def test_an_interrupt_ends_what_is_generated(tmp_path: Path) -> None:
    program = (
        "import signal, threading, os, time, pathlib, sys, gristmill as gm\n"
        "out = pathlib.Path(sys.argv[1])\n"
        "def interrupt():\n"
        "    while not (out.is_dir() and any(out.iterdir())): time.sleep(0.01)\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "threading.Thread(target=interrupt, daemon=True).start()\n"
        "try: gm.generate(sys.argv[2], out, games=1_000_000_000, seed=1)\n"
        "except KeyboardInterrupt: print('interrupted')\n"
    )
    import sys

    for kind in ("chess", "2048"):
        words = [sys.executable, "-c", program, str(tmp_path / kind), kind]
        done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=True)
        assert done.stdout == "interrupted\n"
