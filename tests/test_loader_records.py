"""Records of other versions, or with values that are no numbers, in streams that name a version."""

import gzip
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import Records, frames_in, game, write_gz

import gristmill as gm


def as_v5(records: Records) -> bytes:
    """The same frames as V5 had them: no visits, no move played, the result as a byte."""
    old = b""
    for record in records:
        stored = record.tobytes()
        result = int(record["result_q"]).to_bytes(1, "little", signed=True)
        old += (5).to_bytes(4, "little") + stored[4:8279] + result + stored[8280:8308]
    return old


def as_v7(records: Records) -> bytes:
    wide = np.zeros(len(records), gm.chess.V7.dtype)
    for name in records.dtype.names or ():
        wide[name] = records[name]
    wide["version"] = 7
    return wide.tobytes()


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Games 1 to 3 in V6, V5 and V7, and games 4 to 7 in V6 with a value that is no number each."""
    folder = tmp_path / "games"
    folder.mkdir()
    write_gz(folder / "training.1.gz", game(1, 10))
    (folder / "training.2.gz").write_bytes(gzip.compress(as_v5(game(2, 11))))
    (folder / "training.3.gz").write_bytes(gzip.compress(as_v7(game(3, 12))))
    for number, field, value in ((4, "root_q", np.nan), (5, "played_m", np.inf), (6, "orig_q", np.nan)):
        records = game(number, 10 + number)
        records[field][7] = value
        write_gz(folder / f"training.{number}.gz", records)
    records = game(7, 17)
    records["probabilities"][3, 100] = np.nan
    write_gz(folder / "training.7.gz", records)
    return folder


def read(folder: Path, version: str, report: Path, **options: Any) -> tuple[set[int], dict[str, str]]:
    """Numbers of the games that came whole, and the kinds of refusals by file."""
    config = gm.presets.lc0(
        folder, epochs=1, batch_size=16, sampling_rate=1.0, bad_chunks="quarantine", quarantine=report, **options
    )
    for stage in config.stage:
        if stage.chunk_source_loader is not None:
            stage.chunk_source_loader.frame_format = version  # type: ignore[assignment]
    with gm.DataLoader(config) as loader:
        batches = list(loader)
        frames = frames_in(loader, batches)
    lines = report.read_text().splitlines() if report.exists() else []
    games = {frame // 1000 for frame in frames}
    assert len(frames) == sum({1: 10, 2: 11, 3: 12, 6: 16, 7: 17}[number] for number in games)
    return games, {re.findall(r"training\.(\d)\.gz", line)[0]: json.loads(line)["kind"] for line in lines}


@pytest.mark.parametrize(
    ("version", "taken", "refused"),
    [
        ("AUTO", {1, 2, 3, 6, 7}, {}),
        ("V6TrainingData", {1, 2, 6, 7}, {"3": "unknown_version"}),
        ("V7TrainingData", {3}, dict.fromkeys(("1", "2", "6", "7"), "unknown_version")),
    ],
)
def test_versions_and_values(
    mixed: Path, tmp_path: Path, version: str, taken: set[int], refused: dict[str, str]
) -> None:
    games, bad = read(mixed, version, tmp_path / "bad.jsonl", tensors=["ids"])
    assert games == taken
    wild = {"4": "out_of_range", "5": "out_of_range"}
    if version == "V7TrainingData":
        # Which of its faults a game is refused for is no promise.
        bad = {number: kind for number, kind in bad.items() if number not in wild}
        wild = {}
    assert bad == wild | refused


def test_an_old_record_gives_the_tensors_of_its_upgrade(mixed: Path) -> None:
    for path in mixed.glob("*.gz"):
        if path.name != "training.2.gz":
            path.unlink()
    options: dict[str, Any] = {"epochs": 1, "batch_size": 11, "sampling_rate": 1.0}
    config = gm.presets.lc0(mixed, tensors=["planes", "probs", "values", "ids"], **options)
    for stage in config.stage:
        if stage.chunk_source_loader is not None:
            stage.chunk_source_loader.frame_format = "V6TrainingData"
    with gm.DataLoader(config) as loader:
        batch = next(loader)
    order = np.asarray(batch["ids"])[:, 2]
    upgraded = game(2, 11)
    upgraded["version"] = 6
    for name in ("visits", "played_idx", "best_idx", "policy_kld", "played_q", "played_d", "played_m", "dummy"):
        if name in (upgraded.dtype.names or ()):
            upgraded[name] = 0
    for name in ("orig_q", "orig_d", "orig_m"):
        upgraded[name] = np.nan
    upgraded["result_d"] = upgraded["result_q"] == 0
    expected = gm.chess.encode(upgraded[order], tensors=["planes", "probs", "values"])
    for name in ("planes", "probs", "values"):
        np.testing.assert_array_equal(np.asarray(batch[name]), np.asarray(expected[name]), err_msg=name)


@pytest.mark.parametrize("input_format", [1, 2, 3, 4, 5, 132, 133])
def test_planes_104_to_110_are_those_of_the_format(input_format: int) -> None:
    record = game(1, 1)
    record["input_format"] = input_format
    record["castling_us_ooo"], record["castling_us_oo"] = 1, 128
    record["castling_them_ooo"], record["castling_them_oo"] = 2, 64
    record["side_to_move_or_enpassant"] = 1 if input_format < 3 else 4
    record["rule50_count"], record["invariance_info"] = 50, 0x80
    planes = np.asarray(gm.chess.encode(record, tensors=["planes"])["planes"])[0]

    def edge(us: int, them: int) -> np.ndarray[Any, Any]:
        plane = np.zeros((8, 8), np.float32)
        plane[0], plane[7] = [us >> file & 1 for file in range(8)], [them >> file & 1 for file in range(8)]
        return plane

    def full(value: float) -> np.ndarray[Any, Any]:
        return np.full((8, 8), value, np.float32)

    if input_format == 1:
        expected = [full(1), full(128), full(2), full(64)]
    else:
        expected = [edge(1, 2), edge(128, 64), full(0), full(0)]
    for number, plane in enumerate(expected):
        np.testing.assert_array_equal(planes[104 + number], plane, err_msg=f"plane {104 + number}")
    canonical = input_format not in (1, 2)
    if canonical:
        en_passant = np.zeros((8, 8), np.float32)
        en_passant[7] = [4 >> file & 1 for file in range(8)]
        np.testing.assert_array_equal(planes[108], en_passant)
    else:
        np.testing.assert_array_equal(planes[108], full(1))
    np.testing.assert_allclose(planes[109], full(50 / (100 if input_format >= 4 else 99)), rtol=1e-6)
    np.testing.assert_array_equal(planes[110], full(float(input_format >= 132)))
    np.testing.assert_array_equal(planes[111], full(1))
