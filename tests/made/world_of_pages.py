"""What the lines of the guides are about: each name that a line says, made small, and what stands in a line for it."""

import gzip
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from demo_files import write_dm_control, write_imitation, write_magical
from lerobot_sets import unpacked
from mcap_files import write_arm

import gristmill as gm

ROOT = Path(__file__).resolve().parents[2]

#: Lines that are not run, by how they begin, and why.
NOT_RUN = {
    "doctor ~/.minari": "it is a data set of the reader; test_examining.py does it",
    "doctor mine.hdf5": "they are arrays of the reader; test_examining.py does it",
    "inspect shards/data0.npz": "it is a shard of KataGo; test_katago.py does it",
    "stats shards": "they are shards of KataGo; test_katago.py does it",
    "verify s3://": "it is a bucket of the reader",
    "pack s3://": "it is a bucket of the reader",
    "plan s3://": "it is a bucket of the reader",
    "pack games s3://": "it is a bucket of the reader",
    "rescore s3://": "it is a bucket of the reader",
    "clean s3://": "it is a bucket of the reader",
    "shares s3://": "it is a bucket of the reader; test_stores_shares.py does it",
    "commit s3://": "it is a bucket of the reader; test_stores_shares.py does it",
    "generate random --env PongNoFrameskip-v4": "needs the extra atari",
    "generate random --config demos.toml": "plays for 250 000 steps, of a configuration of one's own",
    "ray mark": "needs a Ray cluster; test_ray_reports.py does it",
    "ray pack": "needs a Ray cluster; test_ray_pack.py does it",
    "ray rescore": "needs a Ray cluster; test_ray_games.py does it",
    "rescore games rescored": "needs tables",
    "rescore games.tar out": "needs tables",
    "convert /data /data": "stands at the root of the disk",
    "feed games --metrics": "runs until it is interrupted",
    "feed games --top": "runs until it is interrupted",
    "generate chess games --games 500 --seed 1 --first": "waits between files, as a directory that grows",
    "install-lczero": "needs the package installed there; its own tests do it",
    "view ": "runs until it is interrupted",
    "top ": "needs a loader that serves its metrics",
}

#: What is long in a line, and what stands for it here.
SHORTER = {
    "--games 1000": "--games 12",
    "--games 500": "--games 12",
    "--games 100": "--games 4",
    "--env CartPole-v1": "--env CartPole-v1 --n-timesteps-min 200",
    "--games-per-tar 100": "--games-per-tar 5",
    "--first 100 --depth 2": "--first 100 --depth 0",
    "--frame 100000": "--frame 100",
    "--run 17 --step 240": "--chunk 1 --frame 3",
    "--batch 18342": "--batch 3",
    "--batch 20000": "--batch 4",
    "--batches 100": "--batches 8",
    "--batches 200": "--batches 8",
    "--batches 500": "--batches 8",
    "--pool 50000": "--pool 20",
    "--reservoir 100000": "--reservoir 100",
    "--batch-size 1024": "--batch-size 16",
    "max_score > 100000": "max_score > 1",
}

#: Lines about a pack that is of chess games.
CHESS = (
    *("inspect pack", "verify pack", "mark pack", "dedup pack", "verify-run", "xray", "when", "plan"),
    *("convert pack games.pgn", "convert pack positions.fen"),
)


class World:
    """A folder with everything that the lines name, made once; each line gets a copy."""

    def __init__(self, root: Path, command: Path) -> None:
        self.root, self.command = root, command
        self.games()
        self.rows()
        self.demonstrations()
        self.runs()
        self.positions()
        unpacked("v3.0", root).rename(root / "so100")
        write_arm(root / "arm.mcap")

    def do(self, *words: str) -> str:
        env = {**os.environ, "GRISTMILL_PYTHON": sys.executable}
        line: list[str | Path] = [self.command, *words]
        done = subprocess.run(line, cwd=self.root, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (words, done.stderr)
        return done.stdout

    def games(self) -> None:
        for folder, seed in [("games", "1"), ("old", "2"), ("new", "3")]:
            self.do("generate", "chess", folder, "--games", "30", "--seed", seed, "--plies-max", "60")
        self.do("generate", "chess", "tars", "--games", "12", "--seed", "4", "--tar", "--games-per-tar", "12")
        tar = next((self.root / "tars").glob("*.tar"))
        for name in ("games.tar", "training.tar", "more.tar"):
            shutil.copy(tar, self.root / name)
        self.do("pack", "games", "chess-pack")
        self.do("convert", "games", "v7", "--version", "7")
        self.do("convert", "games", "x.pgn")
        (self.root / "lichess.pgn.gz").write_bytes(gzip.compress((self.root / "x.pgn").read_bytes()))

    def rows(self) -> None:
        for name, seed in [("drop", "1"), ("drop2", "50"), ("drop3", "90")]:
            self.do("generate", "2048", name, "--games", "5", "--seed", seed, "--moves-max", "150", "--depth", "0")
        for name, drop in [("steps", "drop"), ("pack1", "drop"), ("pack2", "drop2"), ("pack3", "drop3"), ("a", "drop")]:
            self.do("pack", drop, name)
        self.do("pack", "drop2", "b")
        self.do("values", "a")
        self.do("pack", "drop", "2048-pack", "--layout", "packed46")
        self.do("convert", "steps", "selfplay", "--to", "self-play", "--lossy")
        self.do("convert", "steps", "legacy", "--to", "legacy", "--lossy", "--defaults")
        # Annotations of each step, beside a pack whose values are there, too.
        self.do("pack", "drop", "annotated")
        self.do("values", "annotated")
        rows = np.load(self.root / "annotated" / "steps.npy")
        notes = np.zeros(len(rows), [("run_id", "<u4"), ("step_index", "<u4"), ("note", "<f4")])
        notes["run_id"], notes["step_index"] = rows["run_id"], rows["step_index"]
        np.save(self.root / "annotated" / "annotations.npy", notes)

    def demonstrations(self) -> None:
        (self.root / "magical" / "move-to-region").mkdir(parents=True)
        write_magical(self.root / "magical" / "move-to-region" / "demo-1.pkl.gz", [1, 2, 3, 4])
        write_dm_control(self.root / "finger-spin-1.pkl.gz", [4, 5])
        write_imitation(self.root / "final.pkl", [4, 5, 6, 7, 8, 9], actions=2)
        what = ["--benchmark", "gymnasium", "--task", "CartPole-v1", "--n-actions", "2"]
        self.do("convert", "final.pkl", "demos.tar.zst", *what)
        (self.root / "shards").mkdir()
        shutil.copy(self.root / "demos.tar.zst", self.root / "shards")
        self.do("convert", "demos.tar.zst", "datasets/mine/pong-v0", "--to", "minari-hdf5")
        ends = np.arange(12) % 4 == 3
        np.savez(
            self.root / "other.npz", state=np.ones((12, 3), "f4"), torque=np.ones((12, 2), "f4"), dones=ends, over=ends
        )

    def positions(self) -> None:
        (self.root / "binpacks").mkdir()
        shutil.copy(ROOT / "fuzz/corpus/binpack/golden", self.root / "binpacks" / "one.binpack")
        self.do("pack", "binpacks", "positions")
        self.do("convert", "binpacks", "boards.bf")

    def runs(self) -> None:
        with gm.DataLoader(
            gm.open(self.root / "chess-pack"), batch_size=16, epochs=2, seed=1, ledger=self.root / "pack.ledger"
        ) as loader:
            for number, _ in enumerate(loader):
                if number == 1:
                    loader.save(self.root / "pack.json")
        text = self.do(
            "feed", "games", *["--dry-run", "--epochs", "1", "--seed", "1", "--batch-size", "16", "--reservoir", "50"]
        )
        for name in ("loader.toml", "run.toml"):
            (self.root / name).write_text(text)
        config = gm.DataLoaderConfig.from_toml(text)
        (self.root / "training.textproto").write_text(config.to_textproto())
        files = config.stage[0].file_path_provider
        assert files is not None
        files.directory = self.root / "games"
        with gm.DataLoader(config, ledger=self.root / "stream.ledger") as stream:
            for number, _ in enumerate(stream):
                if number == 1:
                    stream.save(self.root / "stream.json")


def prepared(world: Path, words: list[str]) -> list[str]:
    """The words of a line, shortened, in a copy of the world where what they name lies under its name."""
    line = "\n".join(words)
    for long, short in SHORTER.items():
        line = line.replace(long.replace(" ", "\n"), short.replace(" ", "\n")).replace(long, short)
    words = line.split("\n")
    said = " ".join(words)
    rows = "annotated" if "--join" in words else "steps"
    shutil.copytree(world / ("chess-pack" if said.startswith(CHESS) else rows), world / "pack")
    of = "stream" if "--config" in words else "pack"
    shutil.copy(world / f"{of}.json", world / "run.json")
    shutil.copy(world / f"{of}.ledger", world / "run.ledger")
    (world / "ledgers").mkdir()
    shutil.copy(world / f"{of}.ledger", world / "ledgers" / "run.ledger")
    # What a line makes is not there before.
    makes = {"pack": 2, "filter": 2, "split": 2, "convert": 2, "generate": 2}.get(words[0])
    if makes and "--append" not in words:
        there = world / words[makes]
        there.unlink() if there.is_file() else shutil.rmtree(there, ignore_errors=True)
    if words[0] == "feed" and not {"--batches", "--epochs"} & set(words) and not words[1].endswith(("toml", "proto")):
        words += ["--batches", "8"]
    return words


def before(words: list[str]) -> list[list[str]]:
    """The lines that a line builds on."""
    if words[0] == "mark" and "late" in words and "--rule" not in words:
        return [["mark", "pack", "late", "--rule", "plies_left < 20"]]
    if words[0] == "xray" and "--config" in words and "--survey" not in words:
        return [["feed", "run.toml"]]
    if words[0] in ("shares", "commit"):
        job = ["pack", "games", words[1]]
        if words[1] == "pack":
            job = ["mark", "pack", "early", "--rule", "ply < 6"]
        elif words[1] == "tokenizer.json":
            job = ["tokenizer", "fit", "pack1", "pack2", words[1]]
        elif words[1].endswith(".json"):
            job = ["stats" if "--html" in words else "verify", "games", "--output", words[1]]
        return [[*job, "--share", f"{number}/2"] for number in (1, 2)]
    return []
