"""Videos that RecordVideo of Gymnasium 1.4 wrote, of three episodes: 5, 6 and 7 frames of 48 x 64."""

import json
import subprocess
import sys
import tarfile
from pathlib import Path

import numpy as np
import pytest

import gristmill as gm
from gristmill.demos.own.opening import open_own

pytest.importorskip("av", reason="skipped: needs PyAV (pip install .[video])")

LENGTHS = [5, 6, 7]
DATA = Path(__file__).resolve().parent / "data/record-video-1.4.tar.xz"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with tarfile.open(DATA) as file:
        file.extractall(tmp_path, filter="data")
    return tmp_path / "videos"


def test_each_video_is_an_episode_of_pictures(data: Path, tmp_path: Path) -> None:
    demos = gm.open(data)
    assert (demos.lengths, demos.format) == (LENGTHS, "demo.own.video")
    for i, steps in enumerate(LENGTHS):
        pictures = demos[i]["obs"]
        assert (pictures.dtype, pictures.shape) == (np.dtype(np.uint8), (steps, 3, 48, 64))
        said = np.stack([20 * np.arange(steps), np.full(steps, 40 * (i + 1)), np.full(steps, 100)], 1)
        assert np.abs(pictures.astype(int) - said[:, :, None, None]).max() <= 4
    assert demos.metadata["lossy"] == ["obs"]
    assert set(demos.metadata["left_out"]) == {"actions", "rewards", "terminated", "truncated"}
    assert gm.open(data / "rl-video-episode-1.mp4").lengths == [6]
    assert gm.open(data, columns=tmp_path / "columns").lengths == LENGTHS
    gm.pack(data, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    np.testing.assert_array_equal(pack.column("obs"), demos.column("obs"))
    loader = gm.DataLoader(demos, encoder=gm.pairs.Steps(("obs",)), batch_size=4, seed=1, epochs=1, last_batch="keep")
    assert sum(len(batch["obs"]) for batch in loader) == sum(LENGTHS)
    before = gm.views.Offsets((-1, 0))
    stacks = gm.DataLoader(pack, encoder=gm.Fields(["obs"]), view=before, batch_size=18, seed=1, epochs=1)
    (batch,) = stacks
    assert batch["obs"].shape == (18, 2, 3, 48, 64)
    assert np.count_nonzero(~batch["mask"]) == 3
    for words in (["inspect", "videos"], ["verify", "videos"], ["pack", "videos", "other"]):
        line = [sys.executable, "-m", "gristmill", *words, "--json"]
        told = json.loads(subprocess.run(line, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
        assert sum(LENGTHS) in (told.get("frames"), told.get("checked"), told.get("rows"))


def test_damaged_videos_are_refused_with_their_name(data: Path) -> None:
    file = data / "rl-video-episode-1.mp4"
    whole = file.read_bytes()
    for content in (b"", b"no video", whole[: len(whole) // 2], whole[:-300]):
        file.write_bytes(content)
        with pytest.raises(gm.FormatError, match=r"rl-video-episode-1\.mp4"):
            gm.open(data)
    file.write_bytes(whole)
    with pytest.raises(gm.FormatError, match=r"too_large: \d+ frames of \(48, 64\); the bound is 40000 bytes"):
        open_own(data, max_bytes=40_000)
