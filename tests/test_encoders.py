"""Targets of 2048 rows beside the reference: edges of bins, tokenizers read once, value targets, sides and folds."""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack, write_tokenizer
from sides import refuses_impossible_sides, resumes_only_itself

import gristmill as gm

EDGES = np.array(gm.g2048.BinnedEV.DEFAULT_EDGES, np.float32)


@pytest.fixture(scope="module")
def rows() -> np.ndarray[Any, Any]:
    made = make_rows(25)
    made["branch_evs"][:3] = EDGES[[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 0, 1]].reshape(3, 4)
    made["branch_evs"][3] = [0.3, -2, 7, np.float32(0.8).item()]
    return made


@pytest.fixture
def pack(tmp_path: Path, rows: np.ndarray[Any, Any]) -> gm.Rows:
    opened: gm.Rows = gm.open(write_pack(tmp_path / "pack", rows))
    return opened


def test_a_value_at_an_edge_is_in_the_bin_that_ends_there(pack: gm.Rows, rows: np.ndarray[Any, Any]) -> None:
    values = np.clip(rows["branch_evs"], 0, 1)
    ends = np.searchsorted(EDGES, values, side="left")
    expected = {
        "special_zero_one": np.where(values == 1, 11, ends),
        "edges": np.maximum(ends, 1) - 1,
        "upper_bounds": ends,
        # What the reference's code computes: bucketize(values, edges, right=True).
        "upper_bounds_compat": np.minimum(np.searchsorted(EDGES, values, side="right"), 10),
    }
    for form, bins in expected.items():
        encoder = gm.g2048.BinnedEV(edge_form=form)  # type: ignore[arg-type]
        made = pack.encode(encoder, np.arange(len(rows)))
        np.testing.assert_array_equal(made["branch_bin_targets"], bins, err_msg=form)
        assert encoder.n_bins == {"special_zero_one": 12, "edges": 10}.get(form, 11)


def test_forms_of_edges_are_named_when_they_are_wrong() -> None:
    for wrong in ("nope", None, ["edges"]):
        with pytest.raises(ValueError, match=r"edge_form=.*; expected special_zero_one, edges"):
            gm.g2048.BinnedEV(edge_form=wrong)  # type: ignore[arg-type]


def test_augmentations_are_named_when_they_are_wrong() -> None:
    for wrong in ("yes", None, 2, [True]):
        with pytest.raises(ValueError, match=r"rotate=.*; expected False, True or 'changed'"):
            gm.g2048.Steps(rotate=wrong)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="flip="):
            gm.g2048.HardMove(flip=wrong)  # type: ignore[arg-type]


def test_a_tokenizer_is_read_once(tmp_path: Path, pack: gm.Rows) -> None:
    path = write_tokenizer(tmp_path / "tokenizer.json", bins=4)
    encoder = gm.g2048.Tokens(path)
    first = pack.encode(encoder, np.arange(50))["targets"]
    assert (encoder.n_classes, len(encoder.digest)) == (7, 32)
    state = gm.DataLoader(pack, encoder=encoder, batch_size=8, seed=1).state_dict()

    write_tokenizer(path, bins=9)
    # What has begun goes by what it read.
    np.testing.assert_array_equal(pack.encode(encoder, np.arange(50))["targets"], first)
    assert encoder.n_classes == 7
    # What begins now finds another file than the encoder knows, in this process or another.
    copied = pickle.loads(pickle.dumps(encoder))
    assert copied == encoder
    for late in (encoder, copied):
        with pytest.raises(gm.ConfigError, match=f"another one than when the encoder was made: .*{encoder.digest}"):
            pack[:40].encode(late, [0])
        with pytest.raises(gm.ConfigError, match="another one"):
            gm.DataLoader(pack, encoder=late, batch_size=8)
    new = gm.g2048.Tokens(path)
    assert (new != encoder, new.n_classes) == (True, 12)
    loader = gm.DataLoader(pack, encoder=new, batch_size=8, seed=1)
    with pytest.raises(gm.StateError, match="encoder"):
        loader.load_state_dict(state)

    # The same tokenizer at another path resumes.
    moved = write_tokenizer(tmp_path / "moved.json", bins=4)
    gm.DataLoader(pack, encoder=gm.g2048.Tokens(moved), batch_size=8, seed=1).load_state_dict(state)
    with pytest.raises(FileNotFoundError):
        gm.g2048.Tokens(tmp_path / "none.json")
    (tmp_path / "bad.json").write_text("{}")
    with pytest.raises(gm.FormatError, match="tokenizer_type"):
        gm.g2048.Tokens(tmp_path / "bad.json")


def test_tokenizers_of_chosen_valuations(tmp_path: Path, pack: gm.Rows) -> None:
    out = tmp_path / "some.json"
    search = pack.filter(valuation="search")
    with pytest.raises(gm.FormatError, match="--valuations"):
        gm.g2048.fit_tokenizer(search, out, num_bins=3)
    told = gm.g2048.fit_tokenizer(search, out, num_bins=3, valuations=["search"])
    assert [kind["name"] for kind in told["valuations"]] == ["search"]
    artifact = json.loads(out.read_text())
    assert artifact["valuation_types"] == ["search"]
    assert "tuple10" not in artifact
    whole = gm.g2048.fit_tokenizer(pack, tmp_path / "all.json", num_bins=3)
    assert told["valuations"][0]["bin_edges"] == whole["valuations"][0]["bin_edges"]
    encoder = gm.g2048.Tokens(out)
    assert encoder.n_classes == 6
    indices = np.arange(len(search))
    np.testing.assert_array_equal(
        search.encode(encoder, indices)["targets"],
        search.encode(gm.g2048.Tokens(tmp_path / "all.json"), indices)["targets"],
    )
    other = pack.filter(valuation="tuple10")
    with pytest.raises(gm.FormatError, match="`tuple10` has no bins in the tokenizer"):
        other.encode(encoder, [0])
    for wrong in (["tuple12"], []):
        with pytest.raises((gm.ConfigError, gm.FormatError), match=r"tuple12|name one"):
            gm.g2048.fit_tokenizer(pack, tmp_path / "no.json", valuations=wrong)
    with pytest.raises(gm.FormatError, match="0 bins, expected 1 to 65533"):
        gm.g2048.fit_tokenizer(pack, tmp_path / "no.json", num_bins=0)


def test_value_targets_of_other_fields_and_bins(tmp_path: Path, rows: np.ndarray[Any, Any]) -> None:
    folder = write_pack(tmp_path / "valued", rows)
    gm.value_rows(folder, reward_scale=0.01)
    pack = gm.open(folder)
    indices = np.arange(len(rows))
    values = pack.take_values(indices)
    for field in ("reward", "reward_scaled", "return_raw", "return_scaled"):
        encoder = gm.g2048.Steps(value_targets="scalar", value_field=field)
        np.testing.assert_array_equal(pack.encode(encoder, indices)["value_targets"], values[field], err_msg=field)
        loader = gm.DataLoader(pack, encoder=encoder, batch_size=16, shuffle=False)
        np.testing.assert_array_equal(next(iter(loader))["value_targets"], values[field][:16])
    encoder = gm.g2048.Steps(value_targets="two_hot", value_field="reward", value_bins=(0, 64, 33))
    made = pack.encode(encoder, indices)["value_targets"]
    assert made.shape == (len(rows), 33)
    np.testing.assert_allclose(made @ np.linspace(0, 64, 33), np.minimum(values["reward"], 64))
    assert (np.count_nonzero(made, axis=1) <= 2).all()
    plain = pack.encode(gm.g2048.Steps(value_targets="two_hot"), indices)["value_targets"]
    said = gm.g2048.Steps(value_targets="two_hot", value_field="return_scaled", value_bins=(0, 600, 601))
    np.testing.assert_array_equal(pack.encode(said, indices)["value_targets"], plain)

    state = gm.DataLoader(pack, encoder=encoder, batch_size=8, seed=1).state_dict()
    with pytest.raises(gm.StateError, match="value_bins"):
        gm.DataLoader(pack, encoder=said, batch_size=8, seed=1).load_state_dict(state)
    for options, field in (
        ({"value_field": "reward"}, "value_field"),
        ({"value_bins": (0, 1, 2)}, "value_bins"),
        ({"value_targets": "scalar", "value_bins": (0, 1, 2)}, "value_bins"),
        ({"value_targets": "two_hot", "value_bins": (1, 1, 2)}, "value_bins"),
        ({"value_targets": "two_hot", "value_bins": (0, 1, 1)}, "value_bins"),
        ({"value_targets": "scalar", "value_field": "score"}, ""),
    ):
        with pytest.raises(gm.ConfigError) as caught:
            pack.encode(gm.g2048.Steps(**options), [0])
        assert not field or caught.value.field == field


def test_a_test_side_and_folds(tmp_path: Path, pack: gm.Rows) -> None:
    every = set(pack.run_ids)
    for by in ("seed", "content"):
        train, val, test = pack.split(0.2, test=0.3, seed=3, by=by)
        sides = [set(side.run_ids) for side in (train, val, test)]
        assert set.union(*sides) == every
        assert sum(map(len, sides)) == len(every)
        assert all(sides)
        assert sides[1] == set(pack.split(0.2, seed=3, by=by).val.run_ids)
        folds = pack.folds(4, seed=3, by=by)
        assert len(folds) == 4
        assert sorted(run for fold in folds for run in fold.val.run_ids) == sorted(every)
        for fold in folds:
            assert set(fold.train.run_ids) == every - set(fold.val.run_ids)
            assert len(fold.train) + len(fold.val) == len(pack)
        for side, other in ((test, train), (folds[0].val, folds[1].val)):
            resumes_only_itself(side, other, encoder=gm.g2048.Steps(), batch_size=4, seed=1)
    again = gm.open(write_pack(tmp_path / "again", make_rows(25)))
    assert again.split(0.2, test=0.3, seed=3).test.run_ids == pack.split(0.2, test=0.3, seed=3).test.run_ids
    refuses_impossible_sides(pack)


def test_rows_are_taken_by_any_whole_numbers(pack: gm.Rows, rows: np.ndarray[Any, Any]) -> None:
    for indices in (
        np.array([3, -1, 0]),
        np.array([[3], [2]], np.int32),
        np.arange(20)[::-3],
        np.array([7], np.uint8),
        5,
        [-2],
    ):
        found = pack.take(indices)
        for name in rows.dtype.names or ():
            np.testing.assert_array_equal(found[name], rows[indices][name], err_msg=name)
        assert found.shape == np.shape(indices)
    assert pack.layout is pack.layout
    for wrong in (len(rows), -len(rows) - 1, np.array([0, len(rows)]), np.uint64(2**63)):
        with pytest.raises(IndexError, match=f"of {len(rows)}"):
            pack.take(wrong)
    some = pack.filter(step_index=(3, 5))
    assert some.take([-1]).tobytes() == some[len(some) - 1].tobytes()


def test_ids_may_name_valuations(tmp_path: Path, rows: np.ndarray[Any, Any]) -> None:
    folder = write_pack(tmp_path / "pack", rows)
    names = folder / "valuation_types.json"
    before = gm.open(folder).filter(valuation="tuple10")
    names.write_text('{"2": "tuple10", "0": "search", "1": "tuple11"}')
    pack = gm.open(folder)
    assert pack.valuation_types == ["search", "tuple11", "tuple10"]
    assert len(pack.filter(valuation="tuple10")) == len(before)
    names.write_text('{"0": "search", "tuple11": 1}')
    with pytest.raises(gm.FormatError, match="the other way round"):
        gm.open(folder)
