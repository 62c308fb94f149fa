"""make soak: a run of games on a machine where things go wrong, for a given time.

Games arrive. The folder of games is a mount that vanishes and comes back. The disk of the run (states, journals,
ledgers) fills up and is freed. Consumers are slow. The script kills processes, and starts them again as one, two or
four ranks. Beside them one loader runs all the time. Each row that comes again must be the same row, and memory and
descriptors of the long loader must stay flat.

    python scripts/soak_world.py PROGRAM SECONDS [SEED]

The script needs mounts of its own (`unshare -rm`). It prints `skipped` if the user may not have them.
"""

import contextlib
import faulthandler
import hashlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm

#: Bytes of memory and number of descriptors by which the long loader may grow after a quarter of the time.
MEMORY, DESCRIPTORS = 32 << 20, 8

STREAM: dict[str, Any] = {
    "pool": 200,
    "reservoir": 1024,
    "batch_size": 32,
    "lanes": 4,
    "seed": 1,
    "index": "off",
    "watch": True,
    "tensors": ["planes:bits", "values"],
}

#: Number of batches between two saved states.
STEP = 5

#: Seconds within which all ranks run, or end once they have a signal, on a machine that other processes use, too.
START = 600


def rows(batch: Any) -> list[str]:
    """Returns a digest of each row."""
    columns = [np.asarray(batch[name]) for name in ("planes", "values")]
    parts = zip(*columns, strict=True)
    return [hashlib.blake2b(b"".join(part.tobytes() for part in row), digest_size=8).hexdigest() for row in parts]


def rank(seen: Path, disk: Path, notes: Path, rank: int, world_size: int) -> None:
    """Runs one rank: notes the rows of each batch, saves a state every few batches, is slow, and waits for others."""
    faulthandler.enable()
    # A shell starts what runs in the background with this signal ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    config = gm.presets.lc0(seen, journal=disk / "journal", **STREAM)
    loader = gm.resume(disk / "state", config, rank=rank, world_size=world_size, ledger=disk / "ledger")
    pace = random.Random(rank)
    taken = np.memmap(notes.with_name("taken"), np.int64, "r+")

    def together(number: int) -> None:
        taken[rank] = number
        while taken[:world_size].min() < number:
            time.sleep(0.002)

    # A run with a ledger cannot begin again if it was killed before its first state. So each rank saves a state here,
    # after all ranks have looked for one.
    together(-1)
    loader.save(disk / "state")
    with notes.open("a") as file:
        for batch in loader:
            note = {"batch": batch.number, "rank": rank, "world_size": world_size, "rows": rows(batch)}
            file.write(json.dumps(note) + "\n")
            file.flush()
            time.sleep(pace.choice([0, 0, 0.01, 0.3]))
            together(batch.number)
            if (batch.number + 1) % STEP == 0:
                loader.save(disk / "state")


def steady(seen: Path, sizes: Path) -> None:
    """Runs one loader through everything. Notes the memory and the descriptors of its process once a second."""
    loader = gm.DataLoader(gm.presets.lc0(seen, **STREAM))
    due = 0.0
    with sizes.open("a") as file:
        for number in itertools.count():
            batch = loader.get_next()
            if time.monotonic() >= due:
                due = time.monotonic() + 1
                resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
                note = {"batches": number, "resident": resident, "open": len(os.listdir("/proc/self/fd"))}
                file.write(json.dumps(note) + "\n")
                file.flush()
            del batch
            time.sleep(0.02)


def started(*words: object, said: Path) -> subprocess.Popen[bytes]:
    """Starts a process of this program. Appends its output to the file `said`."""
    with said.open("ab") as file:
        return subprocess.Popen([sys.executable, __file__, *map(str, words)], stdout=file, stderr=file)


class World:
    """The machine: folders, mounts, processes, and the digest of each row that came."""

    def __init__(self, program: str, folder: Path, seed: int) -> None:
        self.program, self.folder, self.chance = program, folder, random.Random(seed)
        self.games, self.seen, self.disk = (folder / name for name in ("games", "seen", "disk"))
        for made in (self.games, self.seen, self.disk):
            made.mkdir()
        self.known: dict[tuple[int, int], str] = {}
        self.ranks: list[subprocess.Popen[bytes]] = []
        self.counts = {"generations": 0, "again": 0, "mounts": 0, "full": 0, "killed": 0, "refused": 0}
        # The games lie on a device of their own, so that a loader can tell a missing mount from an empty folder.
        self.mount("-t", "tmpfs", "-o", "size=512m", "none", self.games)
        self.mount("-t", "tmpfs", "-o", "size=32m", "none", self.disk)
        self.appear()
        self.generate("--games", "300")

    def mount(self, *words: object) -> None:
        """Runs `mount` with `words`."""
        subprocess.run(["mount", *map(str, words)], check=True)

    def appear(self) -> None:
        """Mounts the folder of games where the loaders read it."""
        self.mount("--bind", self.games, self.seen)

    def vanish(self) -> None:
        """Unmounts the folder of games. Open files stay, and an empty folder is left."""
        subprocess.run(["umount", "--lazy", self.seen], check=True)
        self.counts["mounts"] += 1

    def generate(self, *words: str) -> None:
        """Generates games into the folder of games."""
        subprocess.run(
            [self.program, "generate", "chess", self.games, "--seed", "1", *words], check=True, capture_output=True
        )

    def fill(self) -> None:
        """Fills the disk of the run."""
        self.counts["full"] += 1
        with (self.disk / "filler").open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(bytes(4096))

    def free(self) -> None:
        """Frees the disk of the run."""
        (self.disk / "filler").unlink(missing_ok=True)

    def generation(self, seconds: float) -> None:
        """Runs ranks for `seconds` beside a fault. Each ends by an error that it prints, or the script stops it."""
        world_size = self.chance.choice([1, 2, 4])
        notes = [self.folder / f"notes.{rank}" for rank in range(world_size)]
        for note in notes:
            note.unlink(missing_ok=True)
        np.full(4, -2, np.int64).tofile(self.folder / "taken")
        said = self.folder / "said"
        said.unlink(missing_ok=True)
        words = [("rank", self.seen, self.disk, note, i, world_size) for i, note in enumerate(notes)]
        ranks = self.ranks = [started(*word, said=said) for word in words]
        self.counts["generations"] += 1
        fault = self.chance.choice(["none", "mount", "full"])
        # A loader refuses to start without its mount. So the mount vanishes only after all ranks run.
        begun = time.monotonic()
        while np.fromfile(self.folder / "taken", np.int64)[:world_size].min() < 0:
            assert all(process.poll() is None for process in ranks), said.read_text()[-2000:]
            assert time.monotonic() < begun + START, f"not all ranks ran within {START} s: {said.read_text()[-2000:]}"
            time.sleep(0.1)
        if fault == "mount":
            self.vanish()
        if fault == "full":
            self.fill()
        time.sleep(seconds / 3)
        if fault == "mount":
            self.appear()
        time.sleep(seconds / 3)
        ended = [process.poll() for process in ranks]
        assert fault == "full" or ended == [None] * world_size, f"{fault}: {ended}: {said.read_text()[-2000:]}"
        if any(code is not None for code in ended):
            self.counts["refused"] += 1
            assert "No space left" in said.read_text(), said.read_text()[-2000:]
        signals = [self.chance.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT]) for _ in ranks]
        for process, how in zip(ranks, signals, strict=True):
            process.send_signal(how)
            self.counts["killed"] += 1
        for i, (process, how) in enumerate(zip(ranks, signals, strict=True)):
            try:
                process.wait(START)
            except subprocess.TimeoutExpired:
                # Where it stands, is in what it prints.
                process.send_signal(signal.SIGABRT)
                process.wait(START)
                end = f"rank {i} of {world_size} did not end within {START} s of {how.name}"
                raise AssertionError(f"{end}: {said.read_text()[-2000:]}") from None
        self.free()
        for note in notes:
            self.compare(note)

    def compare(self, notes: Path) -> None:
        """Checks that each row that comes again is the same row, whichever rank had it before."""
        for line in notes.read_text().splitlines() if notes.exists() else []:
            if not line.endswith("}"):
                continue
            note = json.loads(line)
            for i, digest in enumerate(note["rows"]):
                place = note["batch"], i * note["world_size"] + note["rank"]
                self.counts["again"] += place in self.known
                was = self.known.setdefault(place, digest)
                assert was == digest, (
                    f"batch {place[0]}, row {place[1]}: {was} before, {digest} now, in {note['world_size']} ranks"
                )
        newest = max((batch for batch, _ in self.known), default=0)
        self.known = {place: digest for place, digest in self.known.items() if place[0] > newest - 1000}

    def forget(self) -> None:
        """Begins another run once the files of the last run take half of the disk."""
        used = sum(path.stat().st_size for path in self.disk.rglob("*") if path.is_file())
        if used > 16 << 20:
            for path in self.disk.iterdir():
                subprocess.run(["rm", "-rf", path], check=True)
            self.known.clear()

    def run(self, seconds: float) -> None:
        """Runs the long loader and generations of ranks for `seconds`, then checks what was noted."""
        sizes, begun = self.folder / "sizes", time.monotonic()
        long = started("steady", self.seen, sizes, said=self.folder / "long")
        try:
            first = 301
            while time.monotonic() < begun + seconds:
                self.generate("--games", "20", "--first", str(first))
                first += 20
                self.generation(min(12.0, seconds / 4))
                self.forget()
                assert long.poll() is None, (self.folder / "long").read_text()[-2000:]
        finally:
            for process in (long, *self.ranks):
                process.kill()
                process.wait()
        noted = [json.loads(line) for line in sizes.read_text().splitlines() if line.endswith("}")]
        early, late = noted[len(noted) // 4], noted[-1]
        grown = {name: late[name] - early[name] for name in ("resident", "open")}
        print(json.dumps(self.counts | {"batches_of_the_long_loader": late["batches"], "grown": grown}))
        assert self.counts["again"] > 0, "nothing came again"
        assert grown["resident"] < MEMORY, f"memory grew by {grown['resident'] >> 20} MiB: {early}, {late}"
        assert grown["open"] <= DESCRIPTORS, f"descriptors: {early}, {late}"


def main(words: list[str]) -> None:
    """Enters mounts of its own, and runs the part that `words` name."""
    match words:
        case ["rank", seen, disk, notes, number, world_size]:
            rank(Path(seen), Path(disk), Path(notes), int(number), int(world_size))
        case ["steady", seen, sizes]:
            steady(Path(seen), Path(sizes))
        case ["inside", program, seconds, seed]:
            # The mounts end with this process.
            with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
                World(program, Path(name), int(seed)).run(float(seconds))
        case [program, seconds, *seed]:
            own = ["unshare", "--user", "--map-root-user", "--mount"]
            if subprocess.run([*own, "true"], check=False, capture_output=True).returncode != 0:
                print("skipped: this user may have no mounts of its own")
                return
            inside = [sys.executable, __file__, "inside", program, seconds, *(seed or ["1"])]
            sys.exit(subprocess.run([*own, *inside], check=False).returncode)
        case _:
            sys.exit(__doc__)


main(sys.argv[1:])
