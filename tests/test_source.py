"""Opening files: chunks as structured arrays, real and generated, good and bad."""

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import game, published_record, write_gz, write_tar

import gristmill as gm


def test_a_gz_file_is_one_chunk(tmp_path: Path) -> None:
    records = game(3, 12)
    source = gm.open(write_gz(tmp_path / "training.3.gz", records))
    assert (len(source), source.num_frames, source.key) == (1, 12, "training.3.gz")
    assert type(source.frames(0)) is int
    assert source.frames(0) == 12
    assert source.layout == gm.chess.V6
    assert source.layout.dtype.itemsize == 8356
    assert source[0].dtype == records.dtype
    np.testing.assert_array_equal(source[0].view(np.uint8), records.view(np.uint8))
    assert source.member(0) is None


def test_a_tar_holds_a_chunk_per_game(tmp_path: Path) -> None:
    games = {f"d/training.{n}.gz": game(n, 5 + n) for n in range(4)}
    source = gm.open(write_tar(tmp_path / "games.tar", games))
    assert (len(source), source.num_frames, source.key) == (4, 5 + 6 + 7 + 8, "games.tar")
    assert [source.frames(i) for i in range(-4, 4)] == [5, 6, 7, 8] * 2
    assert source.member(2) == "d/training.2.gz"
    for chunk, records in zip(source, games.values(), strict=True):
        np.testing.assert_array_equal(chunk["visits"], records["visits"])
    np.testing.assert_array_equal(source[-1]["visits"], source[3]["visits"])
    assert [len(chunk) for chunk in source[1:3]] == [6, 7]
    assert source[np.int64(1)].shape == (6,)


def test_chunks_belong_to_the_caller(tmp_path: Path) -> None:
    source = gm.open(write_gz(tmp_path / "training.1.gz", game(1, 3)))
    chunk = source[0]
    chunk["visits"] = 7
    del source
    assert chunk["visits"].tolist() == [7, 7, 7]


def test_indices_outside_raise_index_error(tmp_path: Path) -> None:
    source = gm.open(write_gz(tmp_path / "training.1.gz", game(1, 3)))
    for wrong in (1, -2, 10**30):
        with pytest.raises(IndexError, match="which has 1"):
            source[wrong]
        with pytest.raises(IndexError):
            source.frames(wrong)
    with pytest.raises(TypeError):
        source["0"]


def test_chunks_encode(tmp_path: Path) -> None:
    source = gm.open(write_gz(tmp_path / "training.1.gz", published_record()))
    planes = gm.chess.encode(source[0])["planes"]
    found = hashlib.sha256(planes.tobytes()).hexdigest()
    assert found == "78bafec33e16d0a4aeba5a83805e1804ea733d568df0d91d3ce426a26a095e76"


def test_the_operating_systems_refusals_keep_their_classes(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError) as missing:
        gm.open(tmp_path / "training.1.gz")
    assert missing.value.filename == str(tmp_path / "training.1.gz")
    secret = write_gz(tmp_path / "training.2.gz", game(1, 1))
    secret.chmod(0)
    if not os.access(secret, os.R_OK):
        with pytest.raises(PermissionError):
            gm.open(secret)
    with pytest.raises(gm.FormatError, match="folder"):
        gm.open(tmp_path)


def test_bad_bytes_are_refused_with_their_place(tmp_path: Path) -> None:
    good = gzip.compress(game(1, 4).tobytes(), mtime=0)
    raw = game(1, 4).tobytes()
    cases = {
        "truncated": good[: len(good) // 2],
        "corrupt": good[:-8] + bytes([good[-8] ^ 1]) + good[-7:],
        "wrong_size": gzip.compress(raw[:-1]),
        "unknown_version": gzip.compress(bytes([70]) + raw[1:]),
        "empty": gzip.compress(b""),
    }
    for kind, data in cases.items():
        path = tmp_path / f"{kind}.gz"
        path.write_bytes(data)
        source = gm.open(path)
        with pytest.raises(gm.FormatError) as refused:
            source[0]
        assert refused.value.kind == kind, refused.value
        assert refused.value.source is not None
        assert kind in refused.value.source
        assert refused.value.chunk == 0
        assert isinstance(refused.value, ValueError)


def test_a_bomb_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "bomb.gz"
    path.write_bytes(gzip.compress(bytes(64 << 20)))
    with pytest.raises(gm.FormatError) as refused:
        gm.open(path)[0]
    assert refused.value.kind == "too_large"


def test_what_is_not_known_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("hello")
    with pytest.raises(gm.FormatError) as refused:
        gm.open(path)
    assert refused.value.kind in {"unknown_format", "unsupported"}


def test_the_real_sample(shared: Path) -> None:
    source = gm.open(shared / "data" / "lc0" / "lc0-data-sample.tar")
    assert (len(source), source.num_frames) == (4, 324)
    assert source.layout.itemsize == 8356
    games = {source.member(i): source[i] for i in range(4)}
    hashes = {
        str(name).rsplit("/", 1)[-1]: hashlib.sha256(chunk.tobytes()).hexdigest()[:16] for name, chunk in games.items()
    }
    assert hashes == {
        "training.1387366601.gz": "ba7e3dce2b572732",
        "training.1387366590.gz": "cfe2401d8af4bf65",
        "training.1387368810.gz": "2525474bf61f59c0",
        "training.1387357298.gz": "9927d8b3796597f7",
    }
    for chunk in games.values():
        planes = gm.chess.encode(chunk[:1])["planes"]
        found = hashlib.sha256(planes.tobytes()).hexdigest()
        assert found == "c33ae28cfa8081c3ff247f2ee36881e28520e4be8d585df726b8728b7dac22b6"


def test_what_is_expected_is_what_it_opens_as(tmp_path: Path) -> None:
    path = write_gz(tmp_path / "training.3.gz", game(3, 12))
    assert gm.open(path, expect=gm.Source).num_frames == 12
    with pytest.raises(gm.FormatError, match=r"training\.3\.gz opens as gristmill\.Source, expected gristmill\.Rows"):
        gm.open(path, expect=gm.Rows)
    wrong: Any
    for wrong in ("Rows", int, gm.Rows | gm.Games):
        with pytest.raises(TypeError, match=r"such as gristmill\.Rows"):
            gm.open(path, expect=wrong)


def test_a_file_of_no_known_format_is_refused_with_those_that_are(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(gm.FormatError, match=r"notes\.txt: unknown_format: .*expected games of chess \(\.gz.*KataGo"):
        gm.open(tmp_path / "notes.txt")
