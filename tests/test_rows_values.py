"""Rewards and returns beside the rows of a pack, through the loader."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import exponents, make_rows, write_pack, write_tokenizer

import gristmill as gm


def slide(line: list[int]) -> tuple[list[int], int]:
    tiles, gain, out, i = [rank for rank in line if rank], 0, [], 0
    while i < len(tiles):
        if tiles[i : i + 2] == [tiles[i]] * 2:
            out.append(tiles[i] + 1)
            gain += 2 ** (tiles[i] + 1)
            i += 2
        else:
            out.append(tiles[i])
            i += 1
    return out + [0] * (4 - len(out)), gain


def reward(exps: list[int], move: int) -> int:
    lines = [exps[i::4] if move < 2 else exps[4 * i : 4 * i + 4] for i in range(4)]
    return sum(slide(line[::-1] if move in (1, 3) else line)[1] for line in lines)


def expected(
    rows: np.ndarray[Any, Any], gamma: float = 0.997, scale: float = 1.0, epsilon: float = 0.001
) -> np.ndarray[Any, Any]:
    """The values of rows, straight from the text."""
    values = np.zeros(len(rows), gm.g2048.VALUE_ROW.dtype)
    later, run = 0.0, None
    for row, value in zip(rows[::-1], values[::-1], strict=True):
        gain = reward(exponents(row), int(row["move_dir"]))
        later = gain + gamma * (later if row["run_id"] == run else 0.0)
        run = row["run_id"]
        value["run_id"], value["step_index"] = row["run_id"], row["step_index"]
        value["reward"], value["reward_scaled"] = gain, gain * scale
        value["return_raw"], value["return_scaled"] = later, np.sqrt(later + 1) - 1 + epsilon * later
    return values


def two_hot(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    values = np.clip(values, 0, 600)
    low = np.floor(values).astype(int)
    out = np.zeros((len(values), 602), np.float32)
    out[np.arange(len(values)), low] = 1 - (values - low)
    out[np.arange(len(values)), low + 1] += values - low
    return out[:, :601]


@pytest.fixture(scope="module")
def rows() -> np.ndarray[Any, Any]:
    return make_rows(15)


@pytest.fixture
def folder(tmp_path: Path, rows: np.ndarray[Any, Any]) -> Path:
    return write_pack(tmp_path / "pack", rows, shard_rows=100)


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("shard_rows", [None, 70])
def test_values_are_those_of_the_definition(
    tmp_path: Path, rows: np.ndarray[Any, Any], packed: bool, shard_rows: int | None
) -> None:
    folder = write_pack(tmp_path / "pack", rows, packed=packed, shard_rows=shard_rows)
    pack = gm.open(folder)
    assert not pack.has_values
    with pytest.raises(gm.FormatError, match="gristmill values"):
        pack.take_values([0])
    done = gm.value_rows(folder, gamma=0.9, reward_scale=0.5, epsilon=0.01, workers=2)
    values = expected(rows, 0.9, 0.5, 0.01)
    assert (done.rows, done.runs, done.gamma, done.dry_run) == (len(rows), 15, 0.9, False)
    assert done.reward == values["reward"].sum(dtype=np.float64)
    pack = gm.open(folder)
    assert pack.has_values
    indices = np.array([[3, -1], [70, 69]])
    np.testing.assert_array_equal(pack.take_values(np.arange(len(rows))), values)
    np.testing.assert_array_equal(pack.take_values(indices), values[indices])
    np.testing.assert_array_equal(pack.where("id = 4").take_values([0]), values[rows["run_id"] == 4][:1])
    files = sorted(folder.glob("values*.npy"))
    lengths = [len(np.load(file)) for file in files]
    assert lengths == [len(np.load(file)) for file in sorted(folder.glob("steps*.npy"))]
    np.testing.assert_array_equal(np.concatenate([np.load(file) for file in files]), values)


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("form", ["scalar", "two_hot"])
def test_batches_have_value_targets(
    tmp_path: Path, folder: Path, rows: np.ndarray[Any, Any], form: Any, threads: int
) -> None:
    gm.value_rows(folder)
    values = expected(rows)["return_scaled"]
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    encoders: list[gm.g2048.Steps] = [
        gm.g2048.Steps(value_targets=form, rotate=True),
        gm.g2048.HardMove(value_targets=form),
        gm.g2048.BinnedEV(value_targets=form),
        gm.g2048.Tokens(tokenizer, value_targets=form, rotate=True, flip=True, dtype="u8"),
    ]
    targets = values if form == "scalar" else two_hot(values)
    for encoder in encoders:
        loader = gm.DataLoader(gm.open(folder), encoder=encoder, batch_size=64, shuffle=False, seed=3, threads=threads)
        assert loader.outputs[""].tensors[-1].name == "value_targets"
        with loader:
            batches = list(loader)
        found = np.concatenate([np.asarray(batch["value_targets"]) for batch in batches])
        assert found.dtype == np.float32
        assert found.shape == targets.shape
        np.testing.assert_allclose(found, targets, atol=1e-4 if form == "two_hot" else 0)
        np.testing.assert_allclose(found.sum(-1), 1 if form == "two_hot" else found.sum(-1), atol=1e-6)
    steps = gm.g2048.Steps(value_targets=form)
    with gm.DataLoader(gm.open(folder), encoder=steps, batch_size=64, seed=3, threads=threads) as loader:
        for batch in loader:
            places = [
                np.flatnonzero((rows["run_id"] == r) & (rows["step_index"] == s))[0]
                for r, s in zip(np.asarray(batch["run_id"]), np.asarray(batch["step_index"]), strict=True)
            ]
            np.testing.assert_allclose(batch["value_targets"], targets[places], atol=1e-4)
    made = gm.open(folder).encode(steps, [5, -1])["value_targets"]
    np.testing.assert_allclose(made, targets[[5, -1]], atol=1e-4)


def test_states_go_on_with_values_and_know_other_values(folder: Path) -> None:
    gm.value_rows(folder)

    def loader() -> gm.DataLoader:
        encoder = gm.g2048.HardMove(value_targets="scalar", rotate=True)
        return gm.DataLoader(gm.open(folder), encoder=encoder, batch_size=50, epochs=2, joined=True, seed=1)

    with loader() as whole:
        batches = [{name: np.asarray(array).copy() for name, array in batch.asdict().items()} for batch in whole]
    with loader() as first:
        for _ in range(4):
            first.get_next()
        state = json.loads(json.dumps(first.state_dict()))
    later = loader()
    later.load_state_dict(state)
    with later:
        for batch, known in zip(later, batches[4:], strict=True):
            for name, array in known.items():
                np.testing.assert_array_equal(batch[name], array)
    plain = gm.DataLoader(
        gm.open(folder), encoder=gm.g2048.HardMove(rotate=True), batch_size=50, epochs=2, joined=True, seed=1
    )
    with pytest.raises(gm.StateError, match="encoder"):
        plain.load_state_dict(state)
    gm.value_rows(folder, gamma=0.5, overwrite=True)
    with pytest.raises(gm.StateError, match="rows"):
        loader().load_state_dict(state)


def test_the_loader_refuses_values_of_other_rows(folder: Path, rows: np.ndarray[Any, Any]) -> None:
    encoder = gm.g2048.Steps(value_targets="scalar")

    def load(**options: Any) -> gm.DataLoader:
        return gm.DataLoader(gm.open(folder), encoder=encoder, batch_size=50, shuffle=False, **options)

    with pytest.raises(gm.EncoderError, match="gristmill values"):
        load()
    gm.value_rows(folder)
    path = folder / "values-00001.npy"
    good = np.load(path)
    renamed, shifted, other = good.copy(), good.copy(), good.copy()
    renamed["run_id"][1] += 1
    shifted["step_index"][-1] += 1
    for values, words in [
        (good[:-1], "99 values for the 100 rows"),
        (renamed, "value 1 is of step"),
        (shifted, "value 99 is of step"),
        (other["return_raw"], "values-00001.npy"),
        (other.astype(np.dtype(other.dtype.descr, align=True).newbyteorder(">")), "records of"),
    ]:
        np.save(path, values)
        with pytest.raises(gm.FormatError, match=words):
            load()
    path.write_bytes(path.read_bytes()[:200])
    with pytest.raises(gm.FormatError, match="values-00001"):
        load()
    broken = good.copy()
    broken["return_scaled"][50] = np.nan
    np.save(path, broken)
    with load() as loader:
        loader.get_next()
        loader.get_next()
        loader.get_next()
        with pytest.raises(gm.FormatError, match="value of NaN"):
            loader.get_next()
        loader.get_next()
    np.save(path, good)
    np.save(folder / "values-00009.npy", good)
    with pytest.raises(gm.FormatError, match="values without rows"):
        load()
    (folder / "values-00009.npy").unlink()
    assert gm.open(folder, memory=True).has_values
    with pytest.raises(gm.ConfigError, match="value_targets"):
        gm.open(folder).encode(gm.g2048.Steps(value_targets="one_hot"), [0])  # type: ignore[arg-type]


def test_senseless_options_are_refused_and_values_may_lie_elsewhere(tmp_path: Path, folder: Path) -> None:
    for options in ({"gamma": 1.5}, {"epsilon": -1.0}, {"reward_scale": 0.0}, {"workers": 0}):
        with pytest.raises(gm.ConfigError, match=next(iter(options))):
            gm.value_rows(folder, **options)
    assert gm.value_rows(folder, dry_run=True).dry_run
    assert not list(folder.glob("values*"))
    gm.value_rows(folder, output=tmp_path / "values")
    assert not gm.open(folder).has_values
    pack = gm.open(folder, values=tmp_path / "values")
    assert pack.has_values
    assert len(pack.take_values(np.arange(len(pack)))) == len(pack)
    gm.value_rows(folder)
    with pytest.raises(gm.ConfigError, match="--overwrite"):
        gm.value_rows(folder)
    merged = gm.merge([folder, write_pack(tmp_path / "other", make_rows(2))], tmp_path / "merged")
    assert merged.carried == []
    assert "has none" in merged.lost[0]


def test_adapters_have_value_targets(folder: Path, rows: np.ndarray[Any, Any]) -> None:
    gm.value_rows(folder)
    values = expected(rows)["return_scaled"]
    jax = pytest.importorskip("jax")
    from gristmill import jax as adapter

    encoder = gm.g2048.HardMove(dtype="i32", value_targets="two_hot")
    with gm.DataLoader(gm.open(folder), encoder=encoder, batch_size=40, shuffle=False) as loader:
        batch = next(adapter.batches(loader))
        assert isinstance(batch["value_targets"], jax.Array)
        np.testing.assert_allclose(np.asarray(batch["value_targets"]), two_hot(values)[:40], atol=1e-4)


def test_torch_collates_value_targets(tmp_path: Path, folder: Path, rows: np.ndarray[Any, Any]) -> None:
    torch = pytest.importorskip("torch")
    from gristmill.torch import make_collate_macroxue, make_collate_steps

    gm.value_rows(folder)
    values = expected(rows)["return_scaled"]
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    for collate in (
        make_collate_macroxue(folder, tokenizer, value_targets="scalar"),
        make_collate_steps(folder, "hard_move", value_targets="scalar"),
        make_collate_steps(folder, "binned_ev", value_targets="scalar"),
    ):
        made = collate([7, 3])["value_targets"]
        assert (made.dtype, tuple(made.shape)) == (torch.float32, (2,))
        np.testing.assert_array_equal(made.numpy(), values[[7, 3]])
