"""Files that are read whole, fed as a stream: several forms, bad files, one replaced in mid-run, states and kills."""

import gzip
import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import write_dm_control, write_imitation, write_magical, write_procgen
from generated_games import game, write_tar

import gristmill as gm

TENSORS = ["obs:u8[3,8,8]", "acts:f32[2]", "rews:f64"]


def config(folder: Path, **more: Any) -> gm.DataLoaderConfig:
    options: dict[str, Any] = {
        "batch_size": 8,
        "seed": 3,
        "encoder": "fields",
        "tensors": TENSORS,
        "max_solid_bytes": "1MiB",
        "index": "off",
    }
    return gm.presets.lc0(folder, **(options | more))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Five files of dm_control, each with trajectories of other lengths."""
    for i in range(5):
        write_dm_control(tmp_path / "in" / f"spin-{i}.pkl.gz", [4 + i, 9, 2])
    return tmp_path / "in"


def steps(folder: Path) -> list[tuple[bytes, ...]]:
    """Each step of a folder, as `gm.open` reads it."""
    demos = [gm.open(path) for path in sorted(folder.iterdir()) if not path.name.startswith(".")]
    return sorted(
        tuple(np.asarray(trajectory[name][i]).tobytes() for name in ("obs", "acts", "rews"))
        for demo in demos
        for trajectory in demo
        for i in range(len(trajectory))
    )


def rows(batches: Any) -> list[tuple[bytes, ...]]:
    return [
        tuple(batch[name][i].tobytes() for name in ("obs", "acts", "rews"))
        for batch in batches
        for i in range(batch.rows)
    ]


def digests(loader: gm.DataLoader, count: int) -> list[int]:
    return [hash(b"".join(array.tobytes() for array in loader.get_next(timeout=60))) for _ in range(count)]


def faults(loader: gm.DataLoader) -> str:
    return "\n".join(fault for stage in loader.metrics()["stages"] for fault in stage.get("faults", []))


def test_a_pass_gives_each_step_of_each_file_once(folder: Path) -> None:
    with gm.DataLoader(config(folder, epochs=1, last_batch="keep")) as loader:
        found = rows(loader)
    assert len(found) == 85
    assert sorted(found) == steps(folder)


def test_other_forms_stream_by_the_same_words(tmp_path: Path) -> None:
    (tmp_path / "imitation").mkdir()
    write_imitation(tmp_path / "imitation" / "a.pkl", [3, 5])
    write_procgen(tmp_path / "procgen" / "a.pkl", [6, 2, 4])
    write_magical(tmp_path / "magical" / "demo-a.pkl.gz", [1, 2, 3], side=8)
    for name, count in [("imitation", 8), ("procgen", 12), ("magical", 3)]:
        (file,) = (tmp_path / name).iterdir()
        demo = gm.open(file)
        layout = demo[0].dtype
        codes = {"|u1": "u8", "<i8": "i64", "<f4": "f32", "<f8": "f64"}
        fields = [
            f"{field}:{codes[layout[field].base.str]}{list(layout[field].shape) if layout[field].shape else ''}"
            for field in layout.names or ()
            if layout[field].base.str in codes
        ]
        assert len(fields) >= 2, fields
        stream = gm.DataLoader(config(tmp_path / name, tensors=fields, epochs=1, last_batch="keep", reservoir=0))
        batches = list(stream)
        assert sum(batch.rows for batch in batches) == count
        for field in (text.split(":")[0] for text in fields):
            made = np.concatenate([batch[field][: batch.rows] for batch in batches])
            np.testing.assert_array_equal(made, np.concatenate([trajectory[field] for trajectory in demo]))


def packed(games: list[int], path: Path) -> None:
    """A tar of games, compressed as a whole."""
    plain = write_tar(path.with_suffix(""), {f"training.{i}.gz": game(i, 12) for i in games})
    path.write_bytes(gzip.compress(plain.read_bytes()))
    plain.unlink()


def test_compressed_tars_of_games_stream_by_the_encoder_of_chess(tmp_path: Path) -> None:
    for i in range(3):
        packed([10 * i, 10 * i + 1], tmp_path / f"games-{i}.tar.gz")
    loader = gm.DataLoader(
        gm.presets.lc0(tmp_path, epochs=1, batch_size=8, max_solid_bytes="1MiB", tensors=["values", "ids"])
    )
    assert sum(batch.rows for batch in loader) == 3 * 2 * 12
    refused = gm.DataLoader(gm.presets.lc0(tmp_path, epochs=1, batch_size=8))
    with pytest.raises(
        gm.StageError, match=r'read whole: say how large one may be, such as max_solid_bytes = "256MiB"'
    ):
        refused.get_next(timeout=60)


def test_bad_files_are_named_and_the_others_flow(folder: Path) -> None:
    good = steps(folder)
    whole = (folder / "spin-0.pkl.gz").read_bytes()
    (folder / "cut.pkl.gz").write_bytes(whole[: len(whole) // 2])
    (folder / "empty.npz").write_bytes(b"")
    (folder / "bomb.pkl.gz").write_bytes(gzip.compress(b"\0" * (64 << 20)))
    # A pickle that claims bytes of a length of 2^40.
    (folder / "claim.pkl").write_bytes(b"\x80\x04\x8e" + struct.pack("<Q", 1 << 40) + b"few.")
    (folder / "large.pkl").write_bytes(b"\0" * ((1 << 20) + 1))
    (folder / "archive.tar.xz").write_bytes(b"\xfd7zXZ\0")
    with gm.DataLoader(config(folder, epochs=1, last_batch="keep")) as loader:
        assert sorted(rows(loader)) == good
        told = faults(loader)
    for name in ("cut.pkl.gz", "empty.npz", "bomb.pkl.gz", "claim.pkl", "large.pkl", "archive.tar.xz"):
        assert name in told
    assert f"of {(1 << 20) + 1} bytes" in told
    assert "at most 1048576" in told


def test_a_file_that_is_replaced_in_mid_run_is_a_new_one(folder: Path, tmp_path: Path) -> None:
    with gm.DataLoader(config(folder, pool=15, reservoir=0, watch=True)) as loader:
        loader.get_next(timeout=60)
        write_dm_control(tmp_path / "new" / "spin-2.pkl.gz", [30, 20, 10])
        fresh = set(steps(tmp_path / "new"))
        old = {row for row in steps(folder) if row not in fresh}
        os.replace(tmp_path / "new" / "spin-2.pkl.gz", folder / "spin-2.pkl.gz")
        gone = old - set(steps(folder))
        assert gone
        end = time.monotonic() + 60
        while not fresh & set(rows([loader.get_next(timeout=60)])):
            assert time.monotonic() < end
        later = {row for _ in range(60) for row in rows([loader.get_next(timeout=60)])}
        assert not later & gone, "what was replaced is drawn no more"
        assert loader.metrics()["bad_chunks"]["chunks"] == 0


def test_a_state_goes_on_after_any_batch(folder: Path) -> None:
    stream = config(folder, pool=15, reservoir=20)
    with gm.DataLoader(stream) as loader:
        states, expected = [loader.state_dict()], []
        for _ in range(8):
            expected += digests(loader, 1)
            states.append(loader.state_dict())
        expected += digests(loader, 6)
    for after, state in enumerate(states):
        again = gm.DataLoader(config(folder, pool=15, reservoir=20, threads=1 + after % 3))
        again.load_state_dict(state)
        assert digests(again, 6) == expected[after : after + 6]


VICTIM = """
import sys, hashlib, gristmill as gm
loader = gm.DataLoader(gm.DataLoaderConfig.from_json(open(sys.argv[1]).read()))
try:
    loader.load(sys.argv[2])
except FileNotFoundError:
    pass
for batch in loader:
    print(batch.number, hashlib.sha256(b"".join(a.tobytes() for a in batch)).hexdigest(), flush=True)
    if batch.number % 3 == 2:
        loader.save(sys.argv[2])
"""


def test_a_killed_process_goes_on_from_its_last_state(folder: Path, tmp_path: Path) -> None:
    stream = config(folder, pool=15, reservoir=20)
    (tmp_path / "config.json").write_text(stream.to_json())
    (tmp_path / "victim.py").write_text(VICTIM)
    seen: dict[int, str] = {}
    for life in range(4):
        command = [sys.executable, "victim.py", "config.json", "state"]
        with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as victim:
            assert victim.stdout is not None
            for _ in range(5 + 4 * life):
                number, digest = victim.stdout.readline().split()
                assert seen.setdefault(int(number), digest) == digest, f"batch {number} in life {life}"
            victim.send_signal(signal.SIGKILL)
    assert len(seen) > 20


def test_a_pack_of_demonstrations_streams_as_it_is(folder: Path, tmp_path: Path) -> None:
    gm.pack(folder, tmp_path / "pack")
    loader = gm.DataLoader(config(tmp_path / "pack", max_solid_bytes=None, epochs=1, last_batch="keep"))
    assert sorted(rows(loader)) == steps(folder)


def test_fields_are_declared(folder: Path) -> None:
    with pytest.raises(gm.ConfigError, match=r"such as `obs:u8\[64,64,3\]`"):
        gm.DataLoader(config(folder, tensors=["obs"]))
    with pytest.raises(gm.GristmillError, match="rewards"):
        gm.DataLoader(config(folder, tensors=["rewards:f32"])).get_next(timeout=60)


def test_memory_counts_what_is_read_whole(folder: Path) -> None:
    gm.DataLoader(config(folder, memory="600MiB", max_solid_bytes="16MiB", reservoir=0))
    with pytest.raises(gm.ConfigError, match="max_solid_bytes"):
        gm.DataLoader(config(folder, memory="600MiB", max_solid_bytes="64MiB", reservoir=0))


def test_plain_shards_are_read_whole_too(folder: Path, tmp_path: Path) -> None:
    gm.convert(folder, tmp_path / "plain" / "demos.tar", benchmark="dm_control", task="finger-spin")
    # The command stacks three pictures.
    tensors = ["obs:u8[9,8,8]", *TENSORS[1:]]
    found = rows(gm.DataLoader(config(tmp_path / "plain", tensors=tensors, epochs=1, last_batch="keep")))
    assert len(found) == 85
