"""Marks of packs from Python: rules and masks, selections of what they let through, and loaders of that."""

import shutil
from pathlib import Path

import numpy as np
import pytest
from generated_games import game, write_games, write_gz
from packs2048 import make_rows, write_pack

import gristmill as gm


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    gm.pack(write_games(folder / "in", 6), folder / "pack")
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
    assert sum(some.frames(i) for i in range(some.num_games)) == mark.marked

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
    with pytest.raises(gm.StateError, match="selection"):
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
    gm.pack(folder / "in", grown)
    pack = gm.open(grown)
    assert isinstance(pack, gm.Games)
    pack.mark("opening", "ply < 4")
    more = tmp_path / "more"
    shutil.copytree(folder / "in", more)
    write_games(more, 9)
    gm.pack(more, grown, existing="append")
    pack = gm.open(grown)
    assert isinstance(pack, gm.Games)
    assert len(pack.games) == 9
    assert pack.marks()[0].fit == "grown"
    with pytest.raises(gm.FormatError, match="--update"):
        pack.without("opening")
    assert pack.update_mark("opening").fit == "fits"
    assert pack.marked("opening").num_frames == 4 * len(pack.games)


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


def test_copies_and_mirrors_are_found_marked_and_kept_on_one_side(tmp_path: Path) -> None:
    write_games(tmp_path, 12)
    mirror = game(3, 20)
    mirror["side_to_move_or_enpassant"] ^= 1
    write_gz(tmp_path / "training.90.gz", mirror)
    write_gz(tmp_path / "training.91.gz", game(4, 21))
    gm.pack(tmp_path, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert isinstance(pack, gm.Games)
    found = pack.duplicates(mark="again")
    assert (found.games, found.different, found.exact, found.same, found.mirrored) == (14, 12, 1, 0, 1)
    groups = [[(one.relation, one.source) for one in group] for group in found.groups]
    assert groups == [
        [("first", "training.3.gz"), ("mirrored", "training.90.gz")],
        [("first", "training.4.gz"), ("exact", "training.91.gz")],
    ]
    assert pack.without("again").num_frames == pack.num_frames - found.frames == pack.num_frames - 41
    # Which side a seed gives a game is a promise.
    val = {seed: pack.split(0.4, seed=seed, by="content").val.game_ids for seed in (1, 2, 42)}
    assert val == VAL
    for ids in val.values():
        assert (3 in ids) == (12 in ids)
        assert (4 in ids) == (13 in ids)
    assert [(step.job, (step.sources or {})["games"]) for step in pack.lineage] == [("pack", 14)]

    rows = make_rows(4)
    again = rows[rows["run_id"] == 1].copy()
    again["run_id"] = 4
    steps = gm.open(write_pack(tmp_path / "steps", np.concatenate([rows, again])))
    assert isinstance(steps, gm.Rows)
    assert [[one.id for one in group] for group in steps.duplicates().groups] == [[1, 4]]
    train, val_runs = steps.split(0.5, seed=3, by="content")
    assert (1 in train.run_ids) == (4 in train.run_ids)
    assert sorted(train.run_ids + val_runs.run_ids) == list(range(5))
    assert steps.lineage == []


VAL = {1: [4, 7, 9, 10, 11, 13], 2: [4, 13], 42: [0]}
