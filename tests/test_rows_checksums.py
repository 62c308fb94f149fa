"""Packs of 2048 rows that were damaged: no row of a damaged block is handed out; when that is checked is chosen."""

import shutil
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm

BLOCK = 256


def long_games() -> np.ndarray[Any, Any]:
    """Two games of many blocks, the last not full: opening a pack looks at some rows, not at every block."""
    games = [np.tile(make_rows(1, steps=200, seed=seed), 100) for seed in (1, 2)]
    for run, game in enumerate(games):
        game["run_id"], game["step_index"], game["seed"] = run, np.arange(len(game)), 500 + run
    return np.concatenate(games)


ROWS = long_games()


@pytest.fixture(params=["one", "shards"])
def pack(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A pack with checksums, as a merge of two makes them."""
    halves = [write_pack(tmp_path / f"half{i}", ROWS[ROWS["run_id"] % 2 == i]) for i in (0, 1)]
    shard_rows = None if request.param == "one" else 15_000
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


def same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    """Field by field: NumPy leaves padding as it finds it."""
    for name in expected.dtype.names or ():
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


def test_no_row_of_a_damaged_block_is_handed_out(pack: Path) -> None:
    whole = np.asarray(gm.open(pack).take(np.arange(len(ROWS))))
    path, start = files(pack)[0], offset(files(pack)[0])
    looked_at = {i * (len(ROWS) - 1) // 63 // BLOCK for i in range(64)}
    block = next(block for block in range(1, 50) if block not in looked_at)
    first, last = BLOCK * block, BLOCK * block + BLOCK - 1
    # Bytes that no encoder would complain about: of a board, a seed, a value.
    for row, byte in ((first + 44, 8), (last, 28), (first, 45)):
        flip(path, start + 48 * row + byte)
        rows = gm.open(pack, verify="first_touch")
        good = np.r_[0:first, last + 1 : len(ROWS)]
        same(rows.take(good), whole[good])
        for wanted in (first, first + 44, last):
            with pytest.raises(gm.FormatError, match=f"rows {first} to {last} do not have their checksum") as caught:
                rows.take([0, wanted])
            assert (caught.value.kind, caught.value.source) == ("corrupt", str(path))
            assert caught.value.offset == start + 48 * first
        loader = gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=64, shuffle=False)
        assert len(next(loader)["tokens"]) == 64
        with pytest.raises(gm.FormatError, match="checksum"):
            list(loader)
        with pytest.raises(gm.FormatError, match=f"rows {first} to {last}"):
            gm.open(pack, verify="open")
        as_they_are = np.asarray(gm.open(pack, verify="off").take(np.arange(len(ROWS))))
        assert as_they_are.tobytes() != whole.tobytes()
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
    data = path.read_bytes()
    names = data[: offset(path)].replace(b"ev_legal", b"********").replace(b"max_rank", b"ev_legal")
    path.write_bytes(names.replace(b"********", b"max_rank") + data[offset(path) :])
    with pytest.raises(gm.FormatError, match=r"the header is not what it was|differ from the"):
        gm.open(pack)
    path.write_bytes(data)
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
    folder = write_pack(tmp_path / "old", ROWS, packed=True, shard_rows=15_000)
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
    flip(files(folder)[1], offset(files(folder)[1]) + 45)
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
        gm.open(folder, verify="always")  # type: ignore[call-overload]
    with pytest.raises(gm.ConfigError, match=r"checks\.md"):
        gm.open(folder / "steps.npy", verify="open")
    for path in (b"pack", 7):
        with pytest.raises(TypeError, match="a path is text"):
            gm.open(path)  # type: ignore[call-overload]


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
