"""Marks of packs from Python: rules and masks, selections of what they let through, and loaders that see nothing else."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    write_games(folder, 6)
    gm.pack(folder, folder / "pack")
    return folder


def test_rules_and_masks_select_positions_and_loaders_see_no_others(folder: Path) -> None:
    pack = gm.open(folder / "pack")
    assert isinstance(pack, gm.Games)
    frames = np.asarray(pack.take(np.arange(pack.num_frames)))
    late = frames["plies_left"] < 20
    mark = pack.mark("late", "plies_left < 20", workers=2)
    assert mark == gm.Mark("late", "rule", "plies_left < 20", int(late.sum()), len(frames))
    assert 0 < mark.marked < mark.frames
    some = pack.marked("late")
    np.testing.assert_array_equal(np.asarray(some.take(np.arange(some.num_frames))), frames[late])
    assert f"frames={mark.marked} of {len(frames)}" in repr(some)
    assert sum(some.frames(i) for i in range(len(some))) == mark.marked

    mask = np.arange(len(frames)) % 3 == 1
    assert pack.mark("third", mask).origin == "given"
    both = some.without("third")
    np.testing.assert_array_equal(np.asarray(both.take(np.arange(both.num_frames))), frames[late & ~mask])
    train, val = both.split(0.5, seed=1)
    assert train.num_frames + val.num_frames == both.num_frames
    some.mark("third-of-late", np.arange(some.num_frames) % 3 == 0)
    assert pack.marked("third-of-late").num_frames == -(-some.num_frames // 3)

    with gm.DataLoader(both, batch_size=8, shuffle=False, threads=2) as loader:
        seen = np.concatenate([np.array(batch["values"]) for batch in loader])
        gather = next(stage for stage in loader.metrics()["stages"] if stage["kind"] == "gather")
    expected = gm.chess.encode(frames[late & ~mask], tensors=["values"])["values"]
    np.testing.assert_array_equal(seen, expected)
    assert {gauge["name"]: gauge["value"] for gauge in gather["gauges"]} == {
        "rows_selected": both.num_frames,
        "rows_of_table": len(frames),
    }
    first = gm.DataLoader(both, batch_size=8, seed=1)
    next(first)
    with pytest.raises(gm.StateError, match="rows"):
        gm.DataLoader(some, batch_size=8, seed=1).load_state_dict(first.state_dict())
    first.stop()

    assert [mark.name for mark in pack.marks()] == ["late", "third", "third-of-late"]
    with pytest.raises(gm.ConfigError, match="already"):
        pack.mark("late", "1")
    with pytest.raises(gm.ConfigError, match="no such column"):
        pack.mark("new", "nonsense > 3")
    with pytest.raises(ValueError, match="a mask of 2"):
        pack.mark("new", np.array([True, False]))
    with pytest.raises(TypeError, match="mask of booleans"):
        pack.mark("new", np.arange(3))
    with pytest.raises(gm.FormatError, match="there are: late"):
        pack.marked("new")
    pack.remove_mark("third")
    assert len(pack.marks()) == 2


def test_marks_of_a_pack_that_grew_are_refused_and_extended(folder: Path, tmp_path: Path) -> None:
    grown = tmp_path / "pack"
    gm.pack(folder, grown)
    pack = gm.open(grown)
    assert isinstance(pack, gm.Games)
    pack.mark("opening", "ply < 4")
    more = tmp_path / "more"
    shutil.copytree(folder, more, ignore=shutil.ignore_patterns("pack"))
    write_games(more, 9)
    gm.pack(more, grown, append=True)
    pack = gm.open(grown)
    assert isinstance(pack, gm.Games) and len(pack) == 9
    assert pack.marks()[0].fit == "grown"
    with pytest.raises(gm.FormatError, match="--update"):
        pack.without("opening")
    assert pack.update_mark("opening").fit == "fits"
    assert pack.marked("opening").num_frames == 4 * len(pack)


def test_rows_of_2048_are_marked_too(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(8)))
    assert isinstance(rows, gm.Rows)
    records = np.asarray(rows.take(np.arange(len(rows))))
    rows.mark("right", "move_dir = 3 AND game.id < 6")
    keep = (records["move_dir"] == 3) & (records["run_id"] < 6)
    assert 0 < keep.sum() < len(rows)
    marked = rows.marked("right")
    np.testing.assert_array_equal(np.asarray(marked.take(np.arange(len(marked)))), records[keep])
    assert len(rows.without("right")) == len(rows) - len(marked)
    assert f"rows={len(marked)} of {len(rows)}" in repr(marked)
