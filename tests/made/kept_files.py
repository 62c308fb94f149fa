"""Makes the small states, journals, ledgers and packs in `data/kept`, and says how each of them was made.

They were written once, by version 0.1 before stages became rows of a table: whatever comes later must open, resume and
verify them. `python tests/made/kept_files.py FOLDER` makes new ones of what the package writes now.
"""

import hashlib
import json
import os
import shutil
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.envs import EnvConfig
from gristmill.safe_pickle import Instance

#: When every file was changed, in nanoseconds: states say it, and a checkout does not keep it.
MTIME = 1_760_000_000_123_456_789

#: Batches that each loader gave in all, and those before its state.
BATCHES, BEFORE = 24, 7

#: The loaders of rows and of pairs, whose states lie beside each other.
ROWS = ("rows48", "rows46", "marked", "chunks", "demos")


def stream(name: str, at: Path, *, ranks: tuple[int, int] | None = None, **more: Any) -> gm.DataLoader:
    """A loader of one of the streams, whose folder is `at/streams/name`."""
    own = at / "streams" / name
    options: dict[str, Any] = {"pool": 8, "reservoir": 30, "batch_size": 8, "seed": 11, "index": "off", "watch": True}
    options |= {"tensors": ["planes:bits", "values"], "journal": own / "journal.jsonl"}
    directory: Any = {at / "games": 2.0, at / "tars": 1.0}
    if name == "cached":
        options |= {"position_count": 1, "hanse_sampling_threshold": 1, "position_cache": 12}
        directory = at / "games"
    elif name == "passes":
        options |= {"epochs": 9, "watch": False, "last_batch": "pad"}
        directory = at / "games"
    elif name == "lanes":
        options |= {"lanes": 2}
        directory = at / "games"
    elif name in ("arrivals", "held"):
        directory = own / "games"
        if name == "held":
            options |= {"spill": own / "spill"}
    else:
        options |= {"ledger": own / "ledger"}
    options |= more
    if ranks is not None:
        options |= {"rank": ranks[0], "world_size": ranks[1]}
    config = gm.presets.lc0(directory, **{k: v for k, v in options.items() if k != "ledger"})
    if name == "stages":
        unpacker = next(stage for stage in config.stage if stage.chunk_unpacker)
        validate = gm.StageConfig("validate", unpacker.input, chunk_validator=gm.ChunkValidatorConfig())
        rescore = gm.StageConfig("rescore", ["validate"], chunk_rescorer=gm.ChunkRescorerConfig(dist_temp=1.25))
        unpacker.input = ["rescore"]
        config.stage += [validate, rescore]
    return gm.DataLoader(config, ledger=options.get("ledger"))


#: The streams that one process fed from its beginning.
STREAMS = ("plain", "stages", "cached", "passes", "arrivals", "held")


def rows(name: str, at: Path, **more: Any) -> gm.DataLoader:
    """A loader of rows of one of the packs."""
    options: dict[str, Any] = {"batch_size": 8, "seed": 12, "epochs": 60, **more}
    pack = gm.open(at / {"marked": "chunks"}.get(name, name))
    if name in ("rows48", "rows46"):
        chosen = pack.marked("early") if name == "rows46" else pack.split(0.3, seed=3).train
        return gm.DataLoader(chosen, encoder=gm.g2048.HardMove(rotate="changed", flip="changed"), **options)
    if name == "demos":
        return gm.DataLoader(pack, encoder=gm.Fields(["obs", "acts"]), view=gm.views.NextStep(), **options)
    encoder = gm.chess.Tensors(["planes:bits", "values"])
    return gm.DataLoader(pack.marked("late") if name == "marked" else pack, encoder=encoder, **options)


def pairs(at: Path) -> gm.PairLoader:
    """The loader of pairs: of a pack of demonstrations and of the shards themselves."""
    data = [gm.open(at / "demos"), gm.open(at / "shards")]
    return gm.PairLoader(data, gm.pairs.Windows(2), batch_size=4, weights=[2, 1], seed=13)


def digest(batch: Any) -> str:
    """What is in a batch, in 16 digits."""
    held = batch if isinstance(batch, gm.Batch) else batch.asdict()
    names = held.names if isinstance(held, gm.Batch) else list(held)
    hashed = hashlib.sha256()
    for name in names:
        array = np.asarray(held[name])
        hashed.update(f"{name} {array.dtype} {array.shape} ".encode())
        hashed.update(array.tobytes())
    return hashed.hexdigest()[:16]


def taken(loader: Iterable[Any], count: int) -> list[str]:
    """Digests of the next batches; a loader that ends a pass begins the next."""
    found: list[str] = []
    while len(found) < count:
        for batch in loader:
            found.append(digest(batch))
            if len(found) == count:
                break
    return found


def of_stream(loader: gm.DataLoader, count: int) -> list[str]:
    """Digests of the next batches of a stream, across the ends of its passes."""
    return [digest(loader.get_next(timeout=60)) for _ in range(count)]


def settle(folder: Path) -> None:
    """Gives every file below a folder its time."""
    for path in folder.rglob("*"):
        if path.is_file():
            os.utime(path, ns=(MTIME, MTIME))


def content(pack: Path) -> str:
    """All frames of a pack, in 16 digits."""
    opened = gm.open(pack)
    return hashlib.sha256(np.asarray(opened.take(np.arange(opened.num_frames))).tobytes()).hexdigest()[:16]


def _frames() -> list[dict[str, Any]]:
    rng = np.random.default_rng(3)
    made = []
    for i, length in enumerate((5, 9, 3, 7)):
        pictures = rng.integers(0, 256, (length + 4, 6, 6), dtype=np.uint8)
        for t in range(length):
            one = {"obs": pictures[t : t + 4], "next_obs": pictures[t + 1 : t + 5], "acts": np.int64(t % 6)}
            made.append(one | {"dones": np.bool_(t == length - 1), "rews": np.float64(i), "infos": {"t": t}})
    return made


def _data(at: Path) -> None:
    gm.generate("chess", at / "games", games=6, seed=5, plies_max=12)
    gm.generate("chess", at / "tars", games=3, seed=6, plies_max=12, first=100, games_per_tar=3)
    gm.generate("2048", at / "logs", games=3, seed=7, moves_max=20, depth=0)
    box = {"shape": (4, 6, 6), "dtype": np.dtype("u1")}
    space = Instance("Box", (), {"low": np.zeros((4, 6, 6)), "high": np.full((4, 6, 6), 255), **box})
    meta = get_meta_dict(EnvConfig(task_name="cheetah-run"), space, Instance("Discrete", (), {"n": 6}))
    (at / "shards").mkdir()
    write_frames(at / "shards" / "demos.tar.zst", meta, _frames())
    gm.pack(at / "logs", at / "rows48")
    gm.pack(at / "logs", at / "rows46", layout="packed46", shard_rows=25)
    gm.pack(at / "games", at / "chunks")
    gm.pack(at / "shards", at / "demos")
    gm.open(at / "rows46").mark("early", "step_index < 9")
    chunks = gm.open(at / "chunks")
    chunks.mark("late", "plies_left < 8")
    chunks.mark("third", np.arange(chunks.num_frames) % 3 == 0)
    for name in ("arrivals", "held"):
        shutil.copytree(at / "games", at / "streams" / name / "games")
    settle(at)


def _until(loader: gm.DataLoader, chunks: int, found: list[str]) -> None:
    def known() -> int:
        pool = next(stage for stage in loader.metrics()["stages"] if stage["kind"] == "shuffling_chunk_pool")
        return int({gauge["name"]: gauge["value"] for gauge in pool["gauges"]}["chunks_total"])

    until = time.monotonic() + 60
    while known() < chunks:
        assert time.monotonic() < until
        found += of_stream(loader, 1)


def _arrive(at: Path, number: int) -> None:
    gm.generate("chess", at / "new", games=1, seed=8, plies_max=12, first=number)
    (made,) = (at / "new").iterdir()
    os.utime(made, ns=(MTIME, MTIME))
    made.rename(at / "games" / made.name)


def _streams(at: Path) -> dict[str, Any]:
    expected: dict[str, Any] = {}
    for name in STREAMS:
        own = at / "streams" / name
        own.mkdir(parents=True, exist_ok=True)
        loader = stream(name, at)
        found = of_stream(loader, BEFORE)
        if name in ("arrivals", "held"):
            _arrive(own, 50)
            _until(loader, 7, found)
        before = len(found)
        loader.save(own / "state.json")
        if name == "arrivals":
            _arrive(own, 51)
            _until(loader, 8, found)
        expected[name] = {"before": before, "batches": found + of_stream(loader, BATCHES)}
        loader.stop()
        shutil.rmtree(own / "new", ignore_errors=True)
    (at / "streams" / "held" / "games" / "training.2.gz").unlink()
    own = at / "streams" / "lanes"
    own.mkdir()
    ranks = [stream("lanes", at, ranks=(rank, 2)) for rank in range(2)]
    shares = [of_stream(rank, BEFORE) for rank in ranks]
    for rank in ranks:
        rank.save(own / "state")
    whole = stream("lanes", at, journal=None)
    expected["lanes"] = {"before": BEFORE, "shares": shares, "batches": of_stream(whole, BEFORE + BATCHES)}
    for loader in [*ranks, whole]:
        loader.stop()
    return expected


def make(at: Path) -> None:
    """Makes everything again in an empty folder."""
    _data(at)
    expected = _streams(at)
    for name in ROWS:
        ledger = at / f"{name}.ledger" if name == "chunks" else None
        with rows(name, at, ledger=ledger) as loader:
            before = of_stream(loader, BEFORE)
            loader.save(at / f"{name}.json")
            expected[name] = {"before": BEFORE, "batches": before + of_stream(loader, BATCHES)}
    paired = pairs(at)
    before = taken(paired, 5)
    paired.save(at / "pairs.json")
    expected["pairs"] = {"before": 5, "batches": before + taken(paired, BATCHES)}
    expected["content"] = {name: content(at / name) for name in ("rows48", "rows46", "chunks", "demos")}
    # What the command reads, which runs in that folder.
    (at / "plain.toml").write_text(stream("plain", Path()).config.to_toml())
    (at / "expected.json").write_text(json.dumps(expected, indent=1) + "\n")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True)
    make(folder)
