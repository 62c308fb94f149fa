"""Views of packs: windows, stacks, next steps, trajectories; against NumPy over the same records."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from generated_games import Records, game, write_gz
from packs2048 import make_rows, write_pack

import gristmill as gm

LENGTHS = (7, 1, 12, 4)

Numbers = npt.NDArray[np.int64]


@pytest.fixture(scope="module")
def chess_pack(tmp_path_factory: pytest.TempPathFactory) -> tuple[gm.Games, Records]:
    folder = tmp_path_factory.mktemp("games")
    games = [game(i, plies) for i, plies in enumerate(LENGTHS)]
    for i, records in enumerate(games):
        write_gz(folder / f"training.{i}.gz", records)
    gm.pack(folder, folder / "pack")
    return gm.open(folder / "pack"), np.concatenate(games)


def steps_of(offsets: list[int]) -> tuple[Numbers, npt.NDArray[np.bool_]]:
    """For each frame the numbers of its steps, the nearest of the game where there is none; and which there are."""
    ends = np.cumsum(LENGTHS)
    frames = np.arange(ends[-1])
    game_of = np.searchsorted(ends, frames, side="right")
    wanted = frames[:, None] + np.asarray(offsets)
    first, last = (ends - LENGTHS)[game_of, None], ends[game_of, None] - 1
    return np.clip(wanted, first, last), (wanted >= first) & (wanted <= last)


def blanked(values: npt.NDArray[Any], kept: npt.NDArray[np.bool_]) -> npt.NDArray[Any]:
    return np.where(kept.reshape(kept.shape + (1,) * (values.ndim - kept.ndim)), values, np.zeros((), values.dtype))


def whole(loader: gm.DataLoader) -> dict[str, npt.NDArray[Any]]:
    """All batches, one after the other."""
    batches = [batch.asdict() for batch in loader]
    return {name: np.concatenate([np.asarray(batch[name]) for batch in batches]) for name in batches[0]}


TENSORS = gm.chess.Tensors(["planes", "values", "legal", "ids"], planes="u8")

VIEWS: list[tuple[Callable[..., gm.views.View], list[int]]] = [
    (lambda pad: gm.views.Window(past=3, future=2, pad=pad), [-3, -2, -1, 0, 1, 2]),
    (lambda pad: gm.views.Window(past=1, future=1, step=4, pad=pad), [-4, 0, 4]),
    (lambda pad: gm.views.Stack(4, step=2, pad=pad), [-6, -4, -2, 0]),
    (lambda pad: gm.views.Offsets((-5, 2, 9), pad), [-5, 2, 9]),
]


@pytest.mark.parametrize(("view", "offsets"), VIEWS)
@pytest.mark.parametrize("pad", ["edge", "zero", "drop"])
def test_windows_of_games_are_their_records(
    chess_pack: tuple[gm.Games, Records], view: Callable[..., gm.views.View], offsets: list[int], pad: str
) -> None:
    games, records = chess_pack
    steps, kept = steps_of(offsets)
    if pad == "drop":
        steps, kept = steps[kept.all(1)], kept[kept.all(1)]
    if not len(steps):
        with pytest.raises(gm.ConfigError, match="no game is as long"):
            gm.DataLoader(games, view=view(pad))
        return
    with gm.DataLoader(games, encoder=TENSORS, view=view(pad), batch_size=8, shuffle=False, threads=2) as loader:
        assert loader.num_rows == len(steps)
        found = whole(loader)
    encoded = gm.chess.encode(records[steps], planes="u8", tensors=["planes", "values", "legal"])
    for name, expected in encoded.items():
        values = np.asarray(expected) if pad != "zero" else blanked(np.asarray(expected), kept)
        np.testing.assert_array_equal(found[name], values, err_msg=name)
    if pad == "drop":
        assert "mask" not in found
    else:
        np.testing.assert_array_equal(found["mask"], kept)
        assert found["mask"].dtype == np.bool_


def test_only_planes_are_stacked_where_only_they_are_named(chess_pack: tuple[gm.Games, Records]) -> None:
    games, records = chess_pack
    view = gm.views.Stack(3, tensors=["planes"])
    with gm.DataLoader(games, view=view, batch_size=8, shuffle=False) as loader:
        assert {name: tensor.shape for name, tensor in loader.get_next().asdict().items()} == {
            "probs": (8, 1858),
            "values": (8, 6, 3),
            "planes": (8, 3, 112, 8, 8),
            "mask": (8, 3),
        }
    with gm.DataLoader(games, view=view, batch_size=8, shuffle=False) as loader:
        found = whole(loader)
    steps, _ = steps_of([-2, -1, 0])
    np.testing.assert_array_equal(found["planes"], gm.chess.encode(records[steps])["planes"])
    for name in ("probs", "values"):
        np.testing.assert_array_equal(found[name], gm.chess.encode(records)[name])


@pytest.mark.parametrize("pad", ["edge", "zero", "drop"])
def test_next_steps_stand_beside_their_rows(chess_pack: tuple[gm.Games, Records], pad: Any) -> None:
    games, records = chess_pack
    steps, kept = steps_of([0, 3])
    rows = kept[:, 1] if pad == "drop" else np.ones(len(kept), bool)
    with gm.DataLoader(games, view=gm.views.NextStep(3, pad), batch_size=8, shuffle=False) as loader:
        found = whole(loader)
    now, later = (gm.chess.encode(records[steps[rows, i]]) for i in range(2))
    for name in ("planes", "probs", "values"):
        np.testing.assert_array_equal(found[name], now[name])
        expected = blanked(np.asarray(later[name]), kept[rows, 1]) if pad == "zero" else later[name]
        np.testing.assert_array_equal(found[f"next_{name}"], expected)
    if pad == "drop":
        assert "done" not in found
    else:
        np.testing.assert_array_equal(found["done"], ~kept[:, 1])


def test_trajectories_are_whole_games(chess_pack: tuple[gm.Games, Records]) -> None:
    games, records = chess_pack
    with pytest.raises(gm.ConfigError, match="longest of these trajectories has 12 steps") as refused:
        gm.DataLoader(games, view=gm.views.Trajectory(5))
    assert refused.value.field == "view"
    starts = np.cumsum(LENGTHS) - LENGTHS
    for length, longer in ((12, "refuse"), (5, "cut"), (5, "split")):
        view = gm.views.Trajectory(length, longer=longer)  # type: ignore[arg-type]
        with gm.DataLoader(games, view=view, batch_size=3, shuffle=False) as loader:
            found = whole(loader)
        rows = []
        for start, plies in zip(starts, LENGTHS, strict=True):
            pieces = range(0, plies, length) if longer == "split" else [0]
            rows += [np.arange(start + at, start + min(plies, at + length)) for at in pieces]
        expected = np.zeros((len(rows), length, 6, 3), np.float32)
        for i, row in enumerate(rows):
            expected[i, : len(row)] = gm.chess.encode(records[row])["values"]
        np.testing.assert_array_equal(found["values"], expected)
        np.testing.assert_array_equal(found["mask"].sum(1), [len(row) for row in rows])


def test_views_of_a_shuffled_pack_go_on_exactly(chess_pack: tuple[gm.Games, Records]) -> None:
    games, _ = chess_pack
    options: dict[str, Any] = {
        "encoder": TENSORS,
        "view": gm.views.Window(past=1, future=1),
        "batch_size": 5,
        "seed": 2,
    }
    ids = [np.array(batch["ids"]) for batch in gm.DataLoader(games, epochs=2, joined=True, threads=2, **options)]
    centres = np.concatenate(ids)[:, 1, :]
    frames = sum(LENGTHS)
    for epoch in (centres[:frames], centres[frames:]):
        expected = [(0, i, frame) for i, plies in enumerate(LENGTHS) for frame in range(plies)]
        assert sorted(map(tuple, epoch.tolist())) == expected
    first = gm.DataLoader(games, epochs=2, joined=True, **options)
    for taken in range(len(ids)):
        rest = gm.DataLoader(games, epochs=2, joined=True, threads=1, **options)
        rest.load_state_dict(first.state_dict())
        np.testing.assert_array_equal(np.concatenate([batch["ids"] for batch in rest]), np.concatenate(ids[taken:]))
        first.get_next()
    other = gm.DataLoader(games, epochs=2, joined=True, **{**options, "view": gm.views.Window(past=2)})
    with pytest.raises(gm.StateError, match="view"):
        other.load_state_dict(first.state_dict())


def test_windows_stand_around_rows_that_are_drawn_by_weight(chess_pack: tuple[gm.Games, Records]) -> None:
    games, _ = chess_pack
    options: dict[str, Any] = {
        "encoder": TENSORS,
        "sampling": gm.Hanse(),
        "batch_size": 24,
        "epochs": 20,
        "joined": True,
        "seed": 3,
    }
    found = whole(gm.DataLoader(games, view=gm.views.Window(past=4, pad="drop"), **options))["ids"]
    assert found.shape == (20 * sum(max(0, plies - 4) for plies in LENGTHS), 5, 3)
    assert (np.diff(found[:, :, 2].astype(int), axis=1) == 1).all()
    assert set(found[:, 0, 1].tolist()) == {0, 2}
    assert 0.5 < np.mean(found[:, 0, 1] == 2) < 0.95
    with pytest.raises(gm.ConfigError, match="trajectories come each once"):
        gm.DataLoader(games, view=gm.views.Trajectory(12), **options)


def test_views_of_2048_turn_all_steps_alike(tmp_path: Path) -> None:
    rows = make_rows(4, 9)
    pack = gm.open(write_pack(tmp_path / "pack", rows))
    encoder = gm.g2048.HardMove(rotate=True, flip=True)
    options: dict[str, Any] = {"encoder": encoder, "batch_size": 6, "shuffle": False, "seed": 5}
    alone = whole(gm.DataLoader(pack, **options))
    found = whole(gm.DataLoader(pack, view=gm.views.Stack(3, tensors=["tokens"]), **options))
    assert found["tokens"].shape == (len(rows), 3, 16)
    np.testing.assert_array_equal(found["tokens"][:, 2], alone["tokens"])
    np.testing.assert_array_equal(found["move_targets"], alone["move_targets"])
    starts = np.flatnonzero(rows["step_index"] == 0)
    np.testing.assert_array_equal(found["mask"].sum(1), np.minimum(rows["step_index"] + 1, 3))
    np.testing.assert_array_equal(found["tokens"][starts, 0], alone["tokens"][starts])
    plain = whole(gm.DataLoader(pack, **{**options, "encoder": gm.g2048.HardMove()}))["tokens"].reshape(-1, 4, 4)
    turned = found["tokens"].reshape(-1, 3, 4, 4)
    for i in np.flatnonzero(rows["step_index"] >= 2):
        assert any(np.array_equal(way, turned[i]) for way in symmetries(plain[i - 2 : i + 1])), i


def symmetries(boards: npt.NDArray[Any]) -> list[npt.NDArray[Any]]:
    """Boards (n, 4, 4), all of them in each of the eight symmetries."""
    mirrored = np.flip(boards, 2)
    return [np.rot90(side, turns, (1, 2)) for side in (boards, mirrored) for turns in range(4)]


def test_frameworks_take_the_axis_of_time(tmp_path: Path) -> None:
    jax = pytest.importorskip("jax")
    from gristmill import jax as adapter

    pack = gm.open(write_pack(tmp_path / "pack", make_rows(3, 6)))
    view = gm.views.Window(past=1, future=1, pad="zero")
    with gm.DataLoader(pack, encoder=gm.g2048.HardMove(dtype="i32"), view=view, batch_size=4) as loader:
        batch = next(adapter.batches(loader))
    assert (batch["tokens"].shape, batch["mask"].dtype) == ((4, 3, 16), jax.numpy.bool_)


def test_torch_takes_the_axis_of_time(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    from gristmill import torch as adapter

    pack = gm.open(write_pack(tmp_path / "pack", make_rows(3, 6)))
    with gm.DataLoader(pack, encoder=gm.g2048.Steps(), view=gm.views.Trajectory(8), batch_size=3) as loader:
        batch = next(adapter.batches(loader))
    assert (tuple(batch["tokens"].shape), batch["mask"].dtype) == ((3, 8, 16), torch.bool)
    assert batch["mask"].sum(1).sort().values.tolist() == [6, 7, 8]


def test_what_makes_no_sense_is_refused_and_names_are_told_apart(
    chess_pack: tuple[gm.Games, Records], tmp_path: Path
) -> None:
    games, _ = chess_pack
    refused: list[tuple[gm.views.View, str]] = [
        (gm.views.Window(past=2, step=0), "ascend"),
        (gm.views.Window(past=-1), "0 steps"),
        (gm.views.Stack(0), "0 steps"),
        (gm.views.NextStep(0), "0 steps"),
        (gm.views.Stack(2, tensors=["moves"]), "no tensor `moves`"),
        (gm.views.Window(pad="wrap"), "wrap"),  # type: ignore[arg-type]
    ]
    for view, word in refused:
        with pytest.raises(gm.ConfigError, match=word) as error:
            gm.DataLoader(games, view=view)
        assert error.value.field == ("pad" if word == "wrap" else "view")
    twice = gm.chess.Tensors(["played_idx", "next_played_idx"])
    with pytest.raises(gm.ConfigError, match="two tensors would be called `next_played_idx`"):
        gm.DataLoader(games, encoder=twice, view=gm.views.NextStep())
    bits = gm.chess.Tensors(["planes", "values"], planes="bits")
    with gm.DataLoader(games, encoder=bits, view=gm.views.Stack(2, tensors=["planes"]), batch_size=3) as loader:
        shapes = {name: tensor.shape[1:] for name, tensor in loader.get_next().asdict().items()}
    assert shapes == {"meta": (12,), "values": (6, 3), "planes": (2, 104), "mask": (2,)}
    with pytest.raises(TypeError, match="`view` belongs to loaders of rows"):
        gm.DataLoader(gm.presets.lc0(tmp_path), view=gm.views.Stack(2))
    with pytest.raises(gm.ConfigError, match="planes:f64"):
        gm.DataLoader(games, encoder=gm.chess.Tensors(["planes:f64"]))
