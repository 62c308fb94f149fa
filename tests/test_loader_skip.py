"""Batches that are left out of a run: the others keep their numbers and contents."""

from pathlib import Path

import numpy as np
import pytest
from generated_games import write_games

import gristmill as gm


def stream(folder: Path, skip: list[tuple[int, int] | str]) -> gm.DataLoader:
    config = gm.presets.lc0(
        folder,
        pool=24,
        reservoir=48,
        batch_size=24,
        seed=1,
        index="off",
        watch=False,
        tensors=["planes:bits", "values"],
    )
    return gm.DataLoader(config, skip=skip)


def taken(loader: gm.DataLoader, count: int) -> list[tuple[int, bytes]]:
    batches = [loader.get_next(timeout=60) for _ in range(count)]
    return [(batch.number, np.asarray(batch["planes"]).tobytes()) for batch in batches]


def test_a_stream_leaves_out_what_a_later_edit_names(tmp_path: Path) -> None:
    folder = write_games(tmp_path / "games", 30)
    whole = taken(stream(folder, []), 9)
    first = stream(folder, [(1, 3)])
    assert taken(first, 2) == [whole[0], whole[3]]
    edited = stream(folder, [(1, 3), "5..8"])
    edited.load_state_dict(first.state_dict())
    assert taken(edited, 2) == [whole[4], whole[8]]
    with pytest.raises(gm.StateError, match=r"skip before batch 4: saved 1\.\.3, configured none"):
        stream(folder, []).load_state_dict(first.state_dict())
    with pytest.raises(gm.ConfigError, match="the end is not included"):
        stream(folder, [(3, 3)])
