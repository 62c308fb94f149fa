"""Journals and ledgers have one writer at a time, and what a full disk tears is mended before anything is appended."""

import errno
import json
import subprocess
import sys
from pathlib import Path

import pytest
from generated_games import write_games

import gristmill as gm

HOLDER = """
import sys
from pathlib import Path
import gristmill as gm
folder = Path(sys.argv[1])
options = {"pool": 6, "batch_size": 4, "reservoir": 8, "tensors": ["ids"], "index": "off", "watch": True}
config = gm.presets.lc0(folder / "games", journal=folder / "journal", **options)
loader = gm.DataLoader(config, ledger=folder / "ledger")
loader.get_next()
print("ready", flush=True)
sys.stdin.read()
"""

# A write that meets the limit leaves a part of its line, as on a disk that is full.
FULL_DISK = """
import json, resource, sys
from pathlib import Path
import gristmill as gm
folder, unlimited = Path(sys.argv[1]), resource.RLIM_INFINITY
rows = gm.open(folder / "pack")
told = []
for room in range(0, 240, 5):
    ledger = folder / f"ledger.{room}"
    loader = gm.DataLoader(rows, batch_size=1, seed=2, epochs=None, ledger=ledger)
    numbers = [loader.get_next().number for _ in range(64)]
    resource.setrlimit(resource.RLIMIT_FSIZE, (ledger.stat().st_size + room, unlimited))
    failed = []
    for ask in (loader.get_next, loader.get_next, loader.state_dict):
        try:
            found = ask()
            numbers += [found.number] if not isinstance(found, dict) else []
        except OSError as error:
            failed.append(error.errno)
    resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
    while len(numbers) < 70:
        numbers.append(loader.get_next().number)
    state = loader.state_dict()
    loader.stop()
    # A writer that resumes reads every line and its checksum.
    again = gm.DataLoader(rows, batch_size=1, seed=2, epochs=None, ledger=ledger)
    again.load_state_dict(state)
    again.start()
    again.stop()
    told.append([room, failed, numbers == list(range(70))])
print(json.dumps(told))
"""


def loader_of(folder: Path, *, journal: bool, ledger: bool) -> gm.DataLoader:
    config = gm.presets.lc0(
        folder / "games",
        pool=6,
        batch_size=4,
        reservoir=8,
        tensors=["ids"],
        index="off",
        watch=True,
        journal=folder / "journal" if journal else None,
    )
    return gm.DataLoader(config, ledger=folder / "ledger" if ledger else None)


def test_a_second_process_is_refused_until_the_first_is_gone(tmp_path: Path) -> None:
    write_games(tmp_path / "games", 6)
    words = [sys.executable, "-c", HOLDER, str(tmp_path)]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        try:
            assert holder.stdout is not None
            assert holder.stdout.readline() == "ready\n"
            for name in ("journal", "ledger"):
                second = loader_of(tmp_path, journal=name == "journal", ledger=name == "ledger")
                with pytest.raises(
                    OSError, match=rf"another loader or command is writing it; stop that one first.*{name}"
                ):
                    second.start()
        finally:
            holder.kill()
    with loader_of(tmp_path, journal=True, ledger=True) as again:
        assert again.get_next().number == 0


def test_a_full_disk_tears_no_ledger_and_loses_no_batch(tmp_path: Path) -> None:
    gm.pack(write_games(tmp_path / "games", 6), tmp_path / "pack")
    words = [sys.executable, "-c", FULL_DISK, str(tmp_path)]
    told = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
    assert [failed for room, failed, _ in told if room < 100] == [[errno.EFBIG] * 3] * 20
    for room, _, whole in told:
        assert whole, f"{room} bytes were left"
        lines = [json.loads(line[17:]) for line in (tmp_path / f"ledger.{room}").read_text().splitlines()]
        delivered = [line["delivered"] for line in lines if "delivered" in line]
        assert [record["first"] for record in delivered] == [0, *[record["end"] for record in delivered[:-1]]]
        assert delivered[-1]["end"] == 70
