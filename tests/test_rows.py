"""Packs opened, selected, split and fed: what comes out is what NumPy says lies there."""

import json
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import STEP, classes, exponents, make_rows, write_pack, write_tokenizer

import gristmill as gm


@pytest.fixture(scope="module")
def rows() -> np.ndarray[Any, Any]:
    return make_rows(20)


@pytest.fixture
def pack(tmp_path: Path, rows: np.ndarray[Any, Any]) -> gm.Rows:
    opened: gm.Rows = gm.open(write_pack(tmp_path / "pack", rows))
    return opened


def same(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> None:
    for name in STEP.names or ():
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shard_rows", [None, 100])
@pytest.mark.parametrize("memory", [False, True])
def test_every_form_of_pack_gives_its_rows(
    tmp_path: Path, rows: np.ndarray[Any, Any], packed: bool, shard_rows: int | None, memory: bool
) -> None:
    pack = gm.open(write_pack(tmp_path / "pack", rows, packed=packed, shard_rows=shard_rows), memory=memory)
    assert (len(pack), pack.num_runs, pack.layout.dtype.itemsize) == (len(rows), 20, 46 if packed else 48)
    assert pack.valuation_types == ["search", "tuple11", "tuple10"]
    same(pack.take(np.arange(len(rows))), rows)
    indices = np.array([[5, -1], [101, 100]])
    same(pack.take(indices), rows[indices])
    assert pack.take([]).shape == (0,)
    for wrong in ([len(rows)], [-len(rows) - 1], np.array([2**64 - 1], np.uint64)):
        with pytest.raises(IndexError):
            pack.take(wrong)
    with pytest.raises(TypeError):
        pack.take([0.5])


def test_an_index_reads_a_row_and_a_slice_selects(pack: gm.Rows, rows: np.ndarray[Any, Any]) -> None:
    assert pack.num_frames == len(rows)
    assert pack[-2].tobytes() == pack.take(len(rows) - 2).tobytes() == rows[-2].tobytes()
    some = pack.filter(step_index=(5, None))[10:-3]
    assert isinstance(some, gm.Rows)
    same(some.take(np.arange(len(some))), rows[rows["step_index"] >= 5][10:-3])
    np.testing.assert_array_equal(
        [row["step_index"] for row in some], rows["step_index"][rows["step_index"] >= 5][10:-3]
    )
    assert len(pack[7:7]) == 0
    for wrong, error in ((len(rows), IndexError), (slice(0, 9, 3), ValueError)):
        with pytest.raises(error):
            pack[wrong]


def test_rows_are_selected_by_sql_and_by_value(pack: gm.Rows, rows: np.ndarray[Any, Any]) -> None:
    some = pack.where("max_score >= ? AND id % ? = 0", 500, 2)
    expected = rows[(rows["run_id"] >= 5) & (rows["run_id"] % 2 == 0)]
    assert some.run_ids == [6, 8, 10, 12, 14, 16, 18]
    same(some.take(np.arange(len(some))), expected)
    late = some.filter(step_index=(10, 20), valuation="search")
    wanted = (expected["step_index"] >= 10) & (expected["step_index"] <= 20) & (expected["valuation_type"] == 0)
    same(late.take(np.arange(len(late))), expected[wanted])
    assert len(pack.filter(max_rank=16)) == np.count_nonzero(rows["max_rank"] == 16)
    assert len(pack.filter(max_rank=(None, 10))) == np.count_nonzero(rows["max_rank"] <= 10)
    assert len(pack.where("seed = ?", None)) == 0
    with pytest.raises(gm.ConfigError, match="no such column"):
        pack.where("score > 3")
    with pytest.raises(gm.ConfigError, match="tuple12"):
        pack.filter(valuation=["tuple12"])
    with pytest.raises(ValueError, match="negative"):
        pack.filter(step_index=(-1, None))


def test_splits_never_share_a_run(pack: gm.Rows) -> None:
    splits = [
        pack.split(0.3, seed=7),
        pack.split(val_where="max_score < ?", params=[300]),
        pack.split(val_runs=np.array([3, 4])),
    ]
    for split in splits:
        assert sorted(split.train.run_ids + split.val.run_ids) == pack.run_ids
        assert split.val.run_ids
        assert len(split.train) + len(split.val) == len(pack)
        runs = [set(side.take(np.arange(len(side)))["run_id"].tolist()) for side in split]
        assert runs == [set(split.train.run_ids), set(split.val.run_ids)]
    assert (splits[1].val.run_ids, splits[2].val.run_ids) == ([0, 1, 2], [3, 4])
    assert pack.split(0.3, seed=7).val.run_ids == splits[0].val.run_ids
    with pytest.raises(TypeError, match="exactly one"):
        pack.split(0.3, val_runs=[1])
    with pytest.raises(gm.ConfigError, match="val side"):
        pack.split(1e-9)


def expected(encoder: gm.g2048.Steps, row: Any, spec: dict[str, Any], turns: int, axis: int) -> dict[str, Any]:
    """What an encoder is to make of a row that is turned and then mirrored, by moving whole boards in NumPy."""
    board = np.rot90(np.array(exponents(row)).reshape(4, 4), -turns)
    board = board if axis == 0 else np.flip(board, 2 - axis)
    # Where each direction goes: vectors of (row, column), moved like the board.
    vectors = {0: (-1, 0), 1: (1, 0), 2: (0, -1), 3: (0, 1)}
    goes = {}
    for direction, (down, right) in vectors.items():
        for _ in range(turns):
            down, right = right, -down
        down, right = (-down if axis == 2 else down), (-right if axis == 1 else right)
        goes[direction] = next(d for d, vector in vectors.items() if vector == (down, right))
    evs, legal = [0.0] * 4, 0
    for old, new in goes.items():
        evs[new] = float(row["branch_evs"][old])
        legal |= (int(row["ev_legal"]) >> old & 1) << new
    exps, move = board.reshape(-1).tolist(), goes[int(row["move_dir"])]
    made: dict[str, Any] = {"tokens": exps}
    if isinstance(encoder, gm.g2048.Tokens):
        return {**made, "targets": classes(spec, row, exps, evs, legal, move)}
    if isinstance(encoder, gm.g2048.HardMove):
        return {**made, "branch_values": evs, "move_targets": move}
    if isinstance(encoder, gm.g2048.BinnedEV):
        edges = np.array(encoder.DEFAULT_EDGES)
        clipped = np.clip(evs, 0, 1)
        bins = np.searchsorted(edges, clipped, side="left")
        bins = np.where(clipped == 0, 0, np.where(clipped == 1, 11, bins))
        return {
            **made,
            "branch_values": evs,
            "branch_bin_targets": bins.tolist(),
            "branch_mask": [bool(legal >> i & 1) for i in range(4)],
        }
    return {**made, "run_id": row["run_id"], "step_index": row["step_index"]}


def encoders(tokenizer: Path, **options: Any) -> list[gm.g2048.Steps]:
    return [
        gm.g2048.Steps(**options),
        gm.g2048.HardMove(**options),
        gm.g2048.BinnedEV(**options),
        gm.g2048.Tokens(tokenizer, **options),
    ]


def test_encoders_follow_the_published_rules(tmp_path: Path, pack: gm.Rows, rows: np.ndarray[Any, Any]) -> None:
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json", 7)
    spec = json.loads(tokenizer.read_text())
    every = np.arange(len(rows))
    for encoder in encoders(tokenizer):
        made = pack.encode(encoder, every)
        for i, row in enumerate(rows):
            for name, value in expected(encoder, row, spec, 0, 0).items():
                np.testing.assert_array_equal(made[name][i], value, err_msg=f"{name} of row {i}")
    assert {name: (a.dtype.str, a.shape[1:]) for name, a in made.items()} == {
        "tokens": ("<i8", (16,)),
        "targets": ("<i8", (4,)),
    }
    assert gm.g2048.Tokens(tokenizer).n_classes == 10
    assert gm.g2048.BinnedEV().n_bins == 12


def test_augmented_rows_are_one_of_the_symmetries_as_a_whole(
    tmp_path: Path, pack: gm.Rows, rows: np.ndarray[Any, Any]
) -> None:
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    spec = json.loads(tokenizer.read_text())
    some = np.arange(0, len(rows), 7)
    choices: dict[str, list[tuple[int, int]]] = {
        "rotate": [(turns, 0) for turns in range(4)],
        "flip": [(0, axis) for axis in range(3)],
    }
    for option, symmetries in choices.items():
        for encoder in encoders(tokenizer, **{option: True}):
            made = pack.encode(encoder, some, seed=3, epoch=1)
            drawn = set()
            for i, row in enumerate(rows[some]):
                wanted = [expected(encoder, row, spec, *symmetry) for symmetry in symmetries]
                fits = [all(np.array_equal(made[n][i], v) for n, v in want.items()) for want in wanted]
                assert any(fits), f"{encoder}, row {some[i]}"
                drawn.add(fits.index(True))
            assert drawn == set(range(len(symmetries)))
    changed = pack.encode(gm.g2048.Steps(rotate="changed"), some)["tokens"]
    assert not any(
        np.array_equal(a, b) for a, b in zip(changed, pack.encode(gm.g2048.Steps(), some)["tokens"], strict=True)
    )
    whole = pack.encode(gm.g2048.Tokens(tokenizer, rotate=True, flip=True), some, seed=3)
    again = pack.encode(gm.g2048.Tokens(tokenizer, rotate=True, flip=True), some[::-1], seed=3)
    np.testing.assert_array_equal(whole["targets"], again["targets"][::-1])


def collected(loader: gm.DataLoader) -> list[tuple[int, int]]:
    with loader:
        return [(int(r), int(s)) for batch in loader for r, s in zip(batch["run_id"], batch["step_index"], strict=True)]


@pytest.mark.parametrize("shuffle", [False, True, gm.Blocks(rows=32, blocks=2)])
def test_a_loader_gives_each_row_once_an_epoch(pack: gm.Rows, shuffle: bool | gm.Blocks) -> None:
    train = pack.split(0.3).train
    loader = gm.DataLoader(
        train, encoder=gm.g2048.Steps(), batch_size=64, epochs=2, joined=True, shuffle=shuffle, seed=1
    )
    assert loader.num_batches == -(-2 * len(train) // 64)
    seen = collected(loader)
    stored = train.take(np.arange(len(train)))
    every = list(zip(stored["run_id"].tolist(), stored["step_index"].tolist(), strict=True))
    for epoch in (seen[: len(every)], seen[len(every) :]):
        assert sorted(epoch) == every
        assert (epoch == every) == (shuffle is False)
    again = gm.DataLoader(
        train, encoder=gm.g2048.Steps(), batch_size=64, epochs=2, joined=True, shuffle=shuffle, seed=1, threads=1
    )
    assert collected(again) == seen


def test_ranks_share_each_batch(pack: gm.Rows) -> None:
    options: dict[str, Any] = {"encoder": gm.g2048.Steps(), "batch_size": 60, "seed": 5}

    def batches(rank: int, world_size: int) -> list[set[tuple[int, int]]]:
        with gm.DataLoader(pack, rank=rank, world_size=world_size, **options) as loader:
            return [set(zip(b["run_id"].tolist(), b["step_index"].tolist(), strict=True)) for b in loader]

    alone = batches(0, 1)
    for world_size in (2, 3, 5):
        parts = [batches(rank, world_size) for rank in range(world_size)]
        assert [set.union(*step) for step in zip(*parts, strict=True)] == alone
    with pytest.raises(gm.ConfigError, match="batch_size"):
        batches(0, 7)


def test_a_state_continues_to_the_bit(tmp_path: Path, pack: gm.Rows) -> None:
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    encoder = gm.g2048.Tokens(tokenizer, rotate=True, flip=True)

    def loader(**options: Any) -> gm.DataLoader:
        return gm.DataLoader(pack, encoder=encoder, batch_size=50, epochs=3, joined=True, **options)

    with loader() as running:
        for _ in range(5):
            next(running)
        state = json.loads(json.dumps(running.state_dict()))
        rest = [batch["targets"].copy() for batch in running]
        assert running.seed is not None
    moved = write_tokenizer(tmp_path / "moved.json")
    same_rows = gm.DataLoader(
        pack, encoder=gm.g2048.Tokens(moved, rotate=True, flip=True), batch_size=50, epochs=3, joined=True, threads=1
    )
    same_rows.load_state_dict(state)
    with same_rows:
        found = [batch["targets"].copy() for batch in same_rows]
    assert len(found) == len(rest)
    for a, b in zip(found, rest, strict=True):
        np.testing.assert_array_equal(a, b)
    sought = loader(seed=running.seed)
    sought.seek(5)
    with sought:
        np.testing.assert_array_equal(next(sought)["targets"], rest[0])
    with pytest.raises(gm.StateError, match="selection"):
        gm.DataLoader(pack.where("id > 3"), encoder=encoder, batch_size=50).load_state_dict(state)


def test_rows_that_move_take_the_state_along(tmp_path: Path, rows: np.ndarray[Any, Any]) -> None:
    here, there = (gm.open(write_pack(tmp_path / name, rows)) for name in ("here", "there"))
    other = gm.open(write_pack(tmp_path / "other", make_rows(20, seed=1)))
    state = gm.DataLoader(here, encoder=gm.g2048.Steps(), seed=1).state_dict()
    gm.DataLoader(there, encoder=gm.g2048.Steps(), seed=1).load_state_dict(state)
    with pytest.raises(gm.StateError, match="pack"):
        gm.DataLoader(other, encoder=gm.g2048.Steps(), seed=1).load_state_dict(state)


def test_misuse_is_told(tmp_path: Path, pack: gm.Rows) -> None:
    with pytest.raises(TypeError, match="need an encoder"):
        gm.DataLoader(pack)
    with pytest.raises(TypeError, match="batch_size"):
        gm.DataLoader({}, batch_size=3)
    with pytest.raises(gm.ConfigError, match="no rows"):
        gm.DataLoader(pack.where("id > 99"), encoder=gm.g2048.Steps())
    with pytest.raises(FileNotFoundError):
        gm.DataLoader(pack, encoder=gm.g2048.Tokens(tmp_path / "none.json"))
    old = tmp_path / "v1.json"
    old.write_text('{"tokenizer_type": "winner_margins", "version": 1}')
    with pytest.raises(gm.FormatError, match="tokenizer fit"):
        gm.DataLoader(pack, encoder=gm.g2048.Tokens(old))
    with pytest.raises(gm.ConfigError, match="dtype"):
        gm.DataLoader(pack, encoder=gm.g2048.Tokens(write_tokenizer(tmp_path / "wide.json", 300), dtype="u8"))
    with pytest.raises(gm.ConfigError, match="edges"):
        gm.DataLoader(pack, encoder=gm.g2048.BinnedEV(edges=[1, 0]))
    with pytest.raises(gm.ConfigError, match="no games that can be weighed"):
        gm.DataLoader(pack, encoder=gm.g2048.Steps(), sampling=gm.Hanse())
    loader = gm.DataLoader(pack, encoder=gm.g2048.Steps(), epochs=1)
    with pytest.raises(TypeError, match="no stages"):
        _ = loader.config
    with pytest.raises(gm.StateError, match="raise epochs"):
        loader.seek(10**9)
    assert "Rows(" in repr(pack)


def losses(rows: np.ndarray[Any, Any], kind: int, cutoff: float) -> list[float]:
    """What the edges of one kind of valuation are made of: how much worse each losing branch is."""
    found = []
    for row in rows[rows["valuation_type"] == kind]:
        evs = row["branch_evs"].astype(float)
        scaled = np.rint(evs * 1000) - int(row["board_eval"]) if kind == 0 else evs
        for i in range(4):
            d = scaled[i] - scaled[row["move_dir"]]
            legal = int(row["ev_legal"]) >> i & 1
            fails = scaled[i] < cutoff if kind == 0 else scaled[i] <= 1e-9
            if i != row["move_dir"] and legal and not fails and d < (-0.5 if kind == 0 else -1e-9):
                found.append(d)
    return found


@pytest.mark.parametrize("num_bins", [1, 4, 32])
def test_a_fit_has_the_edges_that_numpy_finds(tmp_path: Path, num_bins: int) -> None:
    rows = make_rows(30, seed=5)
    pack = gm.open(write_pack(tmp_path / "pack", rows, packed=True, shard_rows=70))
    path = tmp_path / "tokenizer.json"
    summary = gm.g2048.fit_tokenizer(pack, path, num_bins=num_bins, search_failure_cutoff=-2000)
    spec = json.loads(path.read_text())
    for kind, name in enumerate(["search", "tuple11", "tuple10"]):
        edges = np.quantile(losses(rows, kind, -2000), np.linspace(0, 1, num_bins + 1))
        edges[-1] = max(edges[-1], 0)
        for i in range(1, num_bins + 1):
            if edges[i] <= edges[i - 1]:
                edges[i] = edges[i - 1] + 1e-9
        assert spec[name]["bin_edges"] == edges.tolist()
    assert (spec["num_bins"], spec["metadata"]["search_value_scale"], summary["rows"]) == (num_bins, 1000, len(rows))
    assert gm.g2048.Tokens(path).n_classes == num_bins + 3
    made = pack.encode(gm.g2048.Tokens(path), np.arange(len(rows)))["targets"]
    for i, row in enumerate(rows):
        evs, legal = [float(ev) for ev in row["branch_evs"]], int(row["ev_legal"])
        assert made[i].tolist() == classes(spec, row, exponents(row), evs, legal, int(row["move_dir"]))
    with pytest.raises(FileExistsError):
        gm.g2048.fit_tokenizer(pack, path)
    with pytest.raises(gm.FormatError, match="losing branches"):
        gm.g2048.fit_tokenizer(pack.filter(valuation="search"), path, overwrite=True)


def test_many_threads_may_ask(pack: gm.Rows) -> None:
    loader = gm.DataLoader(pack, encoder=gm.g2048.Steps(dtype="u8"), batch_size=16, epochs=1, seed=2)
    seen: list[tuple[int, int]] = []

    def take() -> None:
        # A thread that begins its loop when the others have taken everything is refused.
        with suppress(gm.EndOfStream):
            for batch in loader:
                seen.extend(zip(batch["run_id"].tolist(), batch["step_index"].tolist(), strict=True))

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(seen)) == len(seen) == len(pack)


def test_games_of_rows_are_runs(tmp_path: Path) -> None:
    rows = make_rows(6)
    pack = gm.open(write_pack(tmp_path / "pack", rows))
    assert (len(pack.games), pack.num_games, pack.game_ids) == (6, 6, pack.run_ids)
    for run, records in zip(pack.run_ids, pack.games, strict=True):
        same(records, rows[rows["run_id"] == run])
    some = pack.games[2:4]
    assert isinstance(some, gm.Rows)
    assert some.run_ids == pack.run_ids[2:4]
    same(some.take(np.arange(len(some))), rows[np.isin(rows["run_id"], some.run_ids)])
    assert pack[3:].frames(0) == pack.frames(0) - 3
    assert pack.split(val_games=[1]).val.run_ids == pack.split(val_runs=[1]).val.run_ids == [1]
