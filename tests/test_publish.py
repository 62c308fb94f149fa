"""A signal at any line: whatever is written is there whole or not at all, and nothing hidden is left."""

import gc
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.jobs.publish import published_folder

#: Files whose lines are interrupted, by what their paths end with.
_FILES = ("gristmill/jobs/publish.py", "gristmill/jobs/arrow.py", "gristmill/demos/writer.py", "minari/packing.py")


@contextmanager
def interrupted(at: int) -> Iterator[list[int]]:
    """Raises `KeyboardInterrupt` at the line of these files that runs as number `at`, as a signal does; counts them."""
    count = [0]

    def trace(frame: FrameType, event: str, _: Any) -> Callable[..., Any] | None:
        if not frame.f_code.co_filename.endswith(_FILES):
            return None
        if event == "line":
            count[0] += 1
            if count[0] == at:
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield count
    finally:
        sys.settrace(before)


def listed(folder: Path) -> dict[str, bytes]:
    """All below a folder, hidden or not; folders by their names."""
    found = sorted(folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_bytes() if path.is_file() else b"" for path in found}


def at_every_line(folder: Path, write: Callable[[], object]) -> None:
    """Runs `write` with a signal at its first line, its second, ... until it ends: the folder is as it was or as it is
    at the end, each time.
    """
    before = listed(folder)
    seen: list[Any] = []
    # What lives already is no garbage of `write`: looking through it a thousand times takes minutes.
    gc.freeze()
    for at in range(1, 10_000):
        stopped = True
        try:
            with interrupted(at) as count:
                write()
        except KeyboardInterrupt:
            pass
        else:
            stopped = count[0] >= at
        gc.collect()
        now = listed(folder)
        if not stopped:
            assert now != before
            assert all(one in (before, now) for one in seen), "something between the two was left"
            assert before in seen
            gc.unfreeze()
            return
        if now not in seen:
            seen.append(now)
        restore(folder, before)
    raise AssertionError("it does not end")


def restore(folder: Path, files: dict[str, bytes]) -> None:
    """Makes a folder what it was."""
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    for name, text in files.items():
        path = folder / name
        if text:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text)
        else:
            path.mkdir(parents=True, exist_ok=True)


def test_a_folder_that_replaces_another(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out/a").write_text("before")

    def write() -> None:
        with published_folder(str(tmp_path / "out")) as made:
            Path(made, "a").write_text("after")

    at_every_line(tmp_path, write)
    assert (tmp_path / "out/a").read_text() == "after"


def test_shards_that_replace_others(tmp_path: Path) -> None:
    box = gym.spaces.Box(-1, 1, (2,), np.float32)
    meta = get_meta_dict({"task_name": "CartPole-v1"}, box, gym.spaces.Discrete(2))

    def write(last: float) -> None:
        frames = [{"obs": np.zeros(2, np.float32), "acts": np.int64(1), "rews": last, "dones": True}] * 3
        write_frames(tmp_path / "demos.tar", meta, frames, overwrite=True)

    write(1.0)
    at_every_line(tmp_path, lambda: write(2.0))


def test_rows_as_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    out = tmp_path / "out"
    pack = write_pack(tmp_path / "pack", make_rows(2, 5))
    (out / "x").mkdir(parents=True)
    at_every_line(out, lambda: gm.convert(pack, out / "x", "parquet", overwrite=True))


def test_a_link_under_the_hidden_name_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/a").write_text("mine")
    (tmp_path / ".out.part").symlink_to(tmp_path / "mine")
    with published_folder(str(tmp_path / "out")) as made:
        Path(made, "b").write_text("new")
    assert sorted(listed(tmp_path)) == ["mine", "mine/a", "out", "out/b"]
