"""Chunk packs of chess games: packed, opened, selected and fed, against what NumPy says lies in the files."""

import sqlite3
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import Records, write_games
from sides import refuses_impossible_sides, resumes_only_itself

import gristmill as gm


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Records]:
    folder = tmp_path_factory.mktemp("games")
    write_games(folder, 6)
    gm.pack(folder, folder / "pack")
    games = [np.asarray(gm.open(path)[0]) for path in sorted(folder.glob("*.gz"))]
    return folder / "pack", np.concatenate(games)


def test_positions_come_back_by_number(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    assert isinstance(pack, gm.Games)
    assert (len(pack.games), pack.num_frames, pack.layout.dtype) == (6, len(frames), gm.chess.V7.dtype)
    assert sum(pack.frames(i) for i in range(6)) == len(frames)
    assert pack.member(-1).endswith(".gz")
    order = np.random.default_rng(1).permutation(len(frames)).reshape(2, -1) if len(frames) % 2 == 0 else np.arange(3)
    taken = np.asarray(pack.take(order))
    for name in frames.dtype.names or ():
        np.testing.assert_array_equal(taken[name], frames[name][order], err_msg=name)
    with pytest.raises(IndexError):
        pack.take([len(frames)])
    with pytest.raises(IndexError):
        pack.frames(6)


def test_batches_are_the_tensors_of_the_records_and_go_on_exactly(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    with gm.DataLoader(pack, batch_size=16, shuffle=False) as loader:
        batch = next(loader)
        expected = gm.chess.encode(frames[:16], tensors=["planes", "probs", "values"])
        for name in ("planes", "probs", "values"):
            np.testing.assert_array_equal(batch[name], expected[name])
    with gm.DataLoader(pack, batch_size=16, seed=3, threads=2) as loader:
        whole = [np.array(batch["values"]) for batch in loader]
    first = gm.DataLoader(pack, batch_size=16, seed=3)
    next(first)
    second = gm.DataLoader(pack, batch_size=16, seed=3, threads=1)
    second.load_state_dict(first.state_dict())
    rest = [np.array(batch["values"]) for batch in second]
    assert len(rest) == len(whole) - 1
    for found, expected_values in zip(rest, whole[1:], strict=True):
        np.testing.assert_array_equal(found, expected_values)
    with pytest.raises(TypeError, match=r"chess\.Tensors"):
        gm.DataLoader(pack, encoder=gm.g2048.Steps())


@pytest.mark.parametrize("planes", ["f32", "f16", "u8", "bits", "flat"])
def test_tensors_are_chosen_as_for_records(records: tuple[Path, Records], planes: gm.chess.Planes) -> None:
    folder, frames = records
    pack = gm.open(folder)
    names = ["legal", "planes", "winner", "best_q", "plies_left", "played_idx", "probs", "values", "ids"]
    encoder = gm.chess.Tensors(names, planes=planes)
    with gm.DataLoader(pack, encoder=encoder, batch_size=len(frames), shuffle=False) as loader:
        batch = loader.get_next().asdict()
    expected = gm.chess.encode(frames, planes=planes, tensors=names)
    assert list(batch) == list(expected)
    chosen = pack.encode([5, -1], encoder)
    for name in set(batch) - {"ids"}:
        np.testing.assert_array_equal(batch[name], expected[name], err_msg=name)
        np.testing.assert_array_equal(chosen[name], np.asarray(batch[name])[[5, -1]], err_msg=name)
    with sqlite3.connect(folder / "metadata.db") as db:
        games = db.execute("SELECT file, chunk, frames FROM games ORDER BY id").fetchall()
    assert batch["ids"].tolist() == [[file, chunk, i] for file, chunk, plies in games for i in range(plies)]
    assert batch["planes"].dtype == {"f16": np.float16, "u8": np.uint8, "bits": np.uint64}.get(planes, np.float32)


def test_a_state_belongs_to_its_tensors(records: tuple[Path, Records]) -> None:
    pack = gm.open(records[0])
    state = gm.DataLoader(pack, seed=1).state_dict()
    same = gm.chess.Tensors(["planes", "probs", "values"], planes="f32")
    gm.DataLoader(pack, encoder=same).load_state_dict(state)
    with pytest.raises(gm.StateError, match="encoder"):
        gm.DataLoader(pack, encoder=gm.chess.Tensors(planes="u8")).load_state_dict(state)
    with pytest.raises(gm.ConfigError, match="two outputs are called `planes`") as refused:
        gm.DataLoader(pack, encoder=gm.chess.Tensors(["planes:u8", "planes:f16"]))
    assert refused.value.field == "tensors"


def test_an_index_reads_a_game_and_a_slice_selects(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    lengths = [pack.frames(i) for i in range(pack.num_games)]
    at = np.cumsum([0, *lengths])
    for i, records_of_game in enumerate(pack.games):
        np.testing.assert_array_equal(records_of_game["visits"], frames["visits"][at[i] : at[i + 1]])
    np.testing.assert_array_equal(pack.games[-1]["best_q"], frames["best_q"][at[-2] :])
    some = pack.games[1:4]
    assert isinstance(some, gm.Games)
    assert (some.game_ids, some.num_frames) == ([1, 2, 3], sum(lengths[1:4]))
    np.testing.assert_array_equal(some.games[1]["visits"], pack.games[2]["visits"])
    assert len(pack.games[4:2].games) == 0
    assert pack.games[:].game_ids == pack.game_ids
    with pytest.raises(IndexError):
        pack.games[6]
    with pytest.raises(ValueError, match="no step"):
        pack.games[::2]


def test_sides_are_named_in_sql_or_by_id(records: tuple[Path, Records]) -> None:
    pack = gm.open(records[0])
    train, val = pack.split(val_where="id % 3 = ?", params=[1])
    assert (train.game_ids, val.game_ids) == ([0, 2, 3, 5], [1, 4])
    assert pack.split(val_games=[5, 0]).val.game_ids == [0, 5]
    some: list[dict[str, Any]] = [{}, {"val": 0.5, "val_games": [1]}]
    for wrong in some:
        with pytest.raises(TypeError, match="val_games"):
            pack.split(**wrong)


def test_a_folder_of_games_is_told_to_be_packed(records: tuple[Path, Records]) -> None:
    with pytest.raises(
        gm.FormatError, match=r"such as training\.0\.gz: `gristmill pack` \(in Python gristmill\.pack\)"
    ):
        gm.open(records[0].parent)


def test_a_test_side_and_folds(tmp_path: Path) -> None:
    write_games(tmp_path / "drop", 40)
    gm.pack(tmp_path / "drop", tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert isinstance(pack, gm.Games)
    every = set(pack.game_ids)
    for by in ("records", "content"):
        train, val, test = pack.split(0.2, test=0.3, seed=3, by=by)
        ids = [set(side.game_ids) for side in (train, val, test)]
        assert set.union(*ids) == every
        assert sum(map(len, ids)) == len(every)
        assert all(ids)
        assert ids[1] == set(pack.split(0.2, seed=3, by=by).val.game_ids)
        assert sum(side.num_frames for side in (train, val, test)) == pack.num_frames
        # Folds of what is not tested: each of its games in one, and no other.
        folds = train.folds(3, seed=3, by=by)
        assert len(folds) == 3
        assert sorted(game for fold in folds for game in fold.val.game_ids) == train.game_ids
        for fold in folds:
            assert set(fold.train.game_ids) == ids[0] - set(fold.val.game_ids)
            assert fold.train.num_frames + fold.val.num_frames == train.num_frames
        for side, other in ((test, train), (folds[0].val, folds[1].val), (folds[0].train, folds[0].val)):
            resumes_only_itself(side, other, batch_size=4, seed=1)
    # The same sides in another pack of the games.
    gm.pack(tmp_path / "drop", tmp_path / "again", shard_rows=50)
    again = gm.open(tmp_path / "again")
    assert isinstance(again, gm.Games)
    members = [{side.member(i) for i in range(side.num_games)} for side in pack.split(0.2, test=0.3, seed=3)]
    assert [{side.member(i) for i in range(side.num_games)} for side in again.split(0.2, test=0.3, seed=3)] == members
    refuses_impossible_sides(pack)


def test_games_are_selected_in_sql_and_split(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    with sqlite3.connect(folder / "metadata.db") as db:
        lengths = dict(db.execute("SELECT id, frames FROM games").fetchall())
    some = pack.where("frames >= ?", sorted(lengths.values())[3])
    assert some.game_ids == [i for i, n in lengths.items() if n >= sorted(lengths.values())[3]]
    assert some.num_frames == sum(lengths[i] for i in some.game_ids)
    train, val = pack.split(0.5, seed=1)
    assert sorted(train.game_ids + val.game_ids) == list(range(6))
    assert train.num_frames + val.num_frames == len(frames)
    with pytest.raises(gm.ConfigError, match="nonsense"):
        pack.where("nonsense")


def test_positions_are_drawn_by_weight(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    weights = gm.PositionSamplingConfig(diff_focus_q_weight=6.0, diff_focus_pol_scale=3.5, default_weight=0.25)
    sampling = gm.Hanse(gamma=1.0, position_sampling=weights)
    surprise = (6 * np.abs(frames["best_q"] - frames["orig_q"]) + frames["policy_kld"]) / 9.5
    share = np.where(np.isnan(frames["orig_q"]), 0.25, np.minimum(surprise, 1.0)).astype(np.float64)
    share /= share.sum()
    with gm.DataLoader(pack, batch_size=512, epochs=40, joined=True, sampling=sampling, seed=4) as loader:
        drawn = np.concatenate([np.array(batch["values"]).reshape(batch.rows, -1) for batch in loader])
    assert len(drawn) == 40 * len(frames)
    with gm.DataLoader(pack, batch_size=512, shuffle=False) as loader:
        stored = np.concatenate([np.array(batch["values"]).reshape(batch.rows, -1) for batch in loader])
    number = {row.tobytes(): i for i, row in enumerate(stored)}
    found = np.bincount([number[row.tobytes()] for row in drawn], minlength=len(frames))
    expected = share * len(drawn)
    assert len(number) == len(frames)
    assert ((found - expected) ** 2 / expected).sum() < len(frames) + 4 * np.sqrt(2 * len(frames))
    first = gm.DataLoader(pack, batch_size=16, sampling=sampling, seed=4)
    next(first)
    with pytest.raises(gm.StateError, match="sampling"):
        gm.DataLoader(pack, batch_size=16, seed=4).load_state_dict(first.state_dict())


def test_sampling_that_cannot_be_is_refused(records: tuple[Path, Records]) -> None:
    pack = gm.open(records[0])
    with pytest.raises(gm.ConfigError, match="hanse_sampling_threshold"):
        gm.DataLoader(pack, sampling=gm.Hanse(form="length"))
    with pytest.raises(gm.ConfigError, match="shuffle"):
        gm.DataLoader(pack, shuffle=False, sampling=gm.Hanse())
    with pytest.raises(TypeError, match="sampling"):
        gm.DataLoader(gm.presets.lc0("games/"), sampling=gm.Hanse())


def test_packs_are_merged(tmp_path: Path, records: tuple[Path, Records]) -> None:
    folder, frames = records
    write_games(tmp_path / "more", 8)
    gm.pack(tmp_path / "more", tmp_path / "second")
    merged = gm.merge([folder, tmp_path / "second"], tmp_path / "both")
    assert (merged.runs + merged.known, merged.packs, merged.layout) == (14, 2, "chess")
    both = gm.open(tmp_path / "both")
    assert isinstance(both, gm.Games)
    assert both.num_frames == merged.rows
    assert (
        np.asarray(both.take(np.arange(len(frames)))).tobytes()
        == np.asarray(gm.open(folder).take(np.arange(len(frames)))).tobytes()
    )
    with pytest.raises(gm.ConfigError, match="shard_rows"):
        gm.merge([folder, tmp_path / "second"], tmp_path / "other", shard_rows=10)


def test_packs_keep_what_games_weigh(tmp_path: Path) -> None:
    write_games(tmp_path / "drop", 4)
    rule = gm.PositionSamplingConfig(diff_focus_q_weight=2.0, diff_focus_gamma=2.0)
    gm.pack(tmp_path / "drop", tmp_path / "pack", weigh=[rule])
    before = {path.name: path.read_bytes() for path in (tmp_path / "pack").glob("*.sums")}
    assert len(before) == 2, "by the pack's own rule, and by the one of the loader"
    sampling = gm.Hanse(form="weight", position_sampling=rule)
    with gm.DataLoader(gm.open(tmp_path / "pack"), sampling=sampling, batch_size=8, seed=1) as loader:
        next(loader)
    assert {path.name: path.read_bytes() for path in (tmp_path / "pack").glob("*.sums")} == before
    with pytest.raises(gm.ConfigError, match="diff_focus_q_weight"):
        gm.pack(tmp_path / "drop", tmp_path / "other", weigh=[gm.PositionSamplingConfig()])


def test_faults_say_what_differs_and_where(tmp_path: Path, records: tuple[Path, Records]) -> None:
    games = gm.open(records[0])
    assert isinstance(games, gm.Games)
    chosen = games.where("id > 2")
    options: dict[str, Any] = {"batch_size": 8, "seed": 1}
    loader = gm.DataLoader(games, **options)
    shown = gm.DataLoader(chosen, **options)
    assert repr(shown).startswith(f"DataLoader({chosen!r}, Output("), "it says how many of how many"
    with pytest.raises(gm.StateError, match=r'selection of rows: saved \[\], now \[\{"where":\{"sql":"id > 2"\}\}\]$'):
        shown.load_state_dict(loader.state_dict())
    with pytest.raises(gm.StateError, match=r'shuffle: saved "rows", now "off"$'):
        gm.DataLoader(games, shuffle=False, **options).load_state_dict(loader.state_dict())
    with pytest.raises(ValueError, match="missing is 'ignore'; expected 'refuse', 'skip' or 'spill'"):
        loader.load_state_dict(loader.state_dict(), missing="ignore")  # type: ignore[arg-type]
    (tmp_path / "state.json").write_text("{]")
    with pytest.raises(gm.StateError, match=r"state\.json: no state of a loader of rows: "):
        loader.load(tmp_path / "state.json")
    with pytest.raises(gm.ConfigError, match=r"7 rows for 2 ranks; .* 6 would do"):
        gm.DataLoader(games, batch_size=7, rank=0, world_size=2)
    with pytest.raises(
        gm.ConfigError, match=r"^`where`: no such column: resul; `games` has id, file, .*, in `resul = 1`$"
    ):
        games.where("resul = 1")


def test_a_slice_selects_positions_of_whatever_games_they_are(records: tuple[Path, Records]) -> None:
    folder, frames = records
    pack = gm.open(folder)
    lengths = [pack.frames(i) for i in range(pack.num_games)]
    some = pack[3 : lengths[0] + 2]
    assert isinstance(some, gm.Games)
    assert (len(some), some.num_games, some.frames(0), some.frames(1), some.frames(2)) == (
        lengths[0] - 1,
        6,
        lengths[0] - 3,
        2,
        0,
    )
    np.testing.assert_array_equal(some.take(np.arange(len(some)))["visits"], frames["visits"][3 : lengths[0] + 2])
    np.testing.assert_array_equal(some.games[1]["visits"], frames["visits"][lengths[0] : lengths[0] + 2])
    assert (some[0].tobytes(), pack[-1].tobytes()) == (pack.take(3).tobytes(), pack.take(len(pack) - 1).tobytes())
    assert [record["visits"] for record in some] == frames["visits"][3 : lengths[0] + 2].tolist()
    assert some.games[1:2].num_frames == 2
    with pytest.raises(IndexError):
        pack[len(frames)]
