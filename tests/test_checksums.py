"""Packs of 2048 rows whose bytes were changed: no row of a damaged block is handed out, and when that is checked is chosen."""

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm

BLOCK = 256
#: Rows of every pack here: some blocks, the last of them not full.
ROWS = make_rows(30, steps=40)


@pytest.fixture(params=["one", "shards"])
def pack(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A pack with checksums, as a merge of two makes them."""
    halves = [write_pack(tmp_path / f"half{i}", ROWS[ROWS["run_id"] % 2 == i]) for i in (0, 1)]
    shard_rows = None if request.param == "one" else 700
    gm.merge(halves, tmp_path / "pack", shard_rows=shard_rows)
    return tmp_path / "pack"


def files(pack: Path) -> list[Path]:
    return sorted(pack.glob("steps*.npy"))


def offset(path: Path) -> int:
    with path.open("rb") as file:
        np.lib.format.read_magic(file)
        np.lib.format.read_array_header_1_0(file)
        return file.tell()


def flip(path: Path, at: int) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        byte = file.read(1)
        file.seek(at)
        file.write(bytes([byte[0] ^ 4]))


def test_no_row_of_a_damaged_block_is_handed_out(pack: Path) -> None:
    whole = np.asarray(gm.open(pack).take(np.arange(len(ROWS))))
    path, start = files(pack)[0], offset(files(pack)[0])
    # Seven bytes that no encoder would complain about: a board, a value, a seed; whatever the block.
    for row, byte in ((300, 8), (511, 33), (256, 47)):
        flip(path, start + 48 * row + byte)
        rows = gm.open(pack, verify="first_touch")
        good = np.r_[0:256, 512 : len(ROWS)]
        assert rows.take(good).tobytes() == whole[good].tobytes()
        for wanted in (256, 300, 511):
            with pytest.raises(gm.FormatError, match="rows 256 to 511 do not have their checksum") as caught:
                rows.take([0, wanted])
            assert (caught.value.kind, caught.value.file) == ("corrupt", str(path))
            assert caught.value.offset == start + 48 * 256
        loader = gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=64, shuffle=False)
        assert len(next(loader)["tokens"]) == 64
        with pytest.raises(gm.FormatError, match="checksum"):
            list(loader)
        with pytest.raises(gm.FormatError, match="rows 256 to 511"):
            gm.open(pack, verify="open")
        as_they_are = gm.open(pack, verify="off").take([row])
        assert as_they_are.tobytes() != whole[[row]].tobytes()
        flip(path, start + 48 * row + byte)
    assert gm.open(pack, verify="open").take(np.arange(len(ROWS))).tobytes() == whole.tobytes()


def test_headers_and_checksums_of_other_rows_are_refused(pack: Path, tmp_path: Path) -> None:
    path = files(pack)[0]
    sums = Path(f"{path}.xxh3")
    head = path.read_bytes().index(b"'seed'")
    flip(path, head + 2)  # an unknown field instead
    with pytest.raises(gm.FormatError):
        gm.open(pack)
    flip(path, head + 2)
    flip(path, path.read_bytes().index(b"\n") - 1)  # a space that nobody looks at
    with pytest.raises(gm.FormatError, match="the header is not what it was"):
        gm.open(pack)
    flip(path, path.read_bytes().index(b"\n") - 1)
    good = sums.read_bytes()
    for bad, match in (
        (b"", "shorter than"),
        (good[:-8], "xxh3"),
        (good[:16] + struct.pack("<Q", 1) + good[24:], "checksums of 1 rows"),
        (b"GMXXH399" + good[8:], "no checksums of rows"),
        (good[:8] + struct.pack("<I", 3) + good[12:], "power of two"),
    ):
        sums.write_bytes(bad)
        with pytest.raises(gm.FormatError, match=match):
            gm.open(pack)
        gm.open(pack, verify="off")
    # Damaged checksums make good rows look damaged, never the other way round.
    sums.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(gm.FormatError, match="or the checksums beside them"):
        gm.open(pack, verify="open")


def test_older_packs_get_checksums_once(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "old", ROWS, packed=True, shard_rows=500)
    with pytest.raises(gm.ConfigError, match="gristmill checksum") as caught:
        gm.open(folder, verify="first_touch")
    assert caught.value.field == "verify"
    before = gm.open(folder).take(np.arange(len(ROWS)))

    made = gm.checksum(folder)
    assert (made.rows, made.known, made.there) == (len(ROWS), False, [])
    assert made.made == sorted(path.name for path in folder.glob("*.xxh3"))
    assert len(made.made) == 3
    assert gm.checksum(folder).there == made.made
    rows = gm.open(folder, verify="open")
    assert rows.take(np.arange(len(ROWS))).tobytes() == before.tobytes()
    flip(files(folder)[1], offset(files(folder)[1]))
    with pytest.raises(gm.FormatError):
        gm.open(folder, verify="open")
    assert gm.checksum(folder, overwrite=True).made == made.made
    gm.open(folder, verify="open")
    # Rows that a manifest knows otherwise get none.
    merged = tmp_path / "merged"
    gm.merge([folder, write_pack(tmp_path / "more", ROWS)], merged)
    flip(merged / "steps.npy", 5000)
    (merged / "steps.npy.xxh3").unlink()
    with pytest.raises(gm.FormatError, match="damaged or were changed"):
        gm.checksum(merged)
    assert not (merged / "steps.npy.xxh3").exists()


def test_verify_is_for_rows_alone(tmp_path: Path) -> None:
    folder = write_pack(tmp_path / "pack", ROWS)
    with pytest.raises(gm.ConfigError, match="expected open, first_touch or off"):
        gm.open(folder, verify="always")  # type: ignore[arg-type]
    with pytest.raises(gm.ConfigError, match="checks.md"):
        gm.open(folder / "steps.npy", verify="open")
    for path in (b"pack", 7):
        with pytest.raises(TypeError, match="a path is text"):
            gm.open(path)  # type: ignore[arg-type]


def random_damage(seed: int, folder: Path, pack: Path) -> None:
    """Any byte of any file of rows changed: the rows that are handed out are the right ones, or none are."""
    rng: Any = np.random.default_rng(seed)
    shutil.copytree(pack, folder)
    path = files(folder)[int(rng.integers(len(files(folder))))]
    at = int(rng.integers(path.stat().st_size))
    flip(path, at)


def test_any_changed_byte_is_found(pack: Path, tmp_path: Path) -> None:
    whole = gm.open(pack).take(np.arange(len(ROWS))).tobytes()
    for seed in range(60):
        folder = tmp_path / f"damaged{seed}"
        random_damage(seed, folder, pack)
        with pytest.raises(gm.FormatError):
            gm.open(folder).take(np.arange(len(ROWS)))
        assert gm.open(pack).take(np.arange(len(ROWS))).tobytes() == whole
        shutil.rmtree(folder)


