"""Features of NNUE equal those of an oracle, in streams and packs, of records and boards, padded and as lists."""

import random
import re
from pathlib import Path
from typing import Any

import chess
import nnue_by_hand
import numpy as np
import numpy.typing as npt
import pytest
from bullet_boards import write_boards
from played_games import random_board, random_moves, records

import gristmill as gm

SETS = {"halfkp": nnue_by_hand.halfkp, "halfkav2_hm": nnue_by_hand.halfkav2_hm}
COLOURS = [f"{name}_{colour}" for name in SETS for colour in ("white", "black")]
SIDES = [f"{name}_{side}" for name in SETS for side in ("stm", "nstm")]
TENSORS = [*COLOURS, *SIDES, "white_to_move", "men_bucket"]


def positions(seed: int) -> list[chess.Board]:
    """Positions of a game, and others of few men."""
    rng = random.Random(seed)
    board = chess.Board()
    found = [board.copy()]
    for move in random_moves(rng, board, 60):
        board.push(move)
        found.append(board.copy())
    return [*found, *(random_board(rng, men) for men in (2, 3, 5, 9, 14))]


def expected(board: chess.Board) -> dict[str, Any]:
    made: dict[str, Any] = {"white_to_move": float(board.turn), "men_bucket": (len(board.piece_map()) - 1) // 4}
    for name, features in SETS.items():
        views = {"white": True, "black": False, "stm": board.turn, "nstm": not board.turn}
        made |= {f"{name}_{view}": nnue_by_hand.row(features(board, colour)) for view, colour in views.items()}
    return made


def record(board: chess.Board) -> npt.NDArray[np.void]:
    return records(board, [])[:1]


def test_rows_are_those_of_the_oracle() -> None:
    boards = [board for seed in range(4) for board in positions(seed)]
    made = gm.chess.encode(np.concatenate([record(board) for board in boards]), tensors=TENSORS)
    assert {name: (a.dtype.name, a.shape[1:]) for name, a in made.items()} == {
        **dict.fromkeys([*COLOURS, *SIDES], ("int32", (32,))),
        "white_to_move": ("float32", ()),
        "men_bucket": ("int32", ()),
    }
    for i, board in enumerate(boards):
        for name, row in expected(board).items():
            np.testing.assert_array_equal(made[name][i], row, f"{name} of {board.fen()}")


def test_images_of_a_position_have_equal_rows() -> None:
    sides = ["halfkav2_hm_stm", "halfkav2_hm_nstm"]
    for board in positions(7):
        mirrored = board.transform(chess.flip_horizontal)
        images = [board, mirrored, board.mirror(), mirrored.mirror()]
        rows = [gm.chess.encode(record(image), tensors=[*SIDES, *COLOURS]) for image in images]
        for name in sides:
            np.testing.assert_array_equal(rows[0][name], rows[1][name])
            np.testing.assert_array_equal(rows[0][name], rows[2][name])
        np.testing.assert_array_equal(rows[0]["halfkav2_hm_white"], rows[2]["halfkav2_hm_black"])
        # Half a circle is both mirrors.
        np.testing.assert_array_equal(rows[0]["halfkp_white"], rows[3]["halfkp_black"])
        np.testing.assert_array_equal(rows[0]["halfkp_stm"], rows[3]["halfkp_stm"])


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("features")
    gm.generate("chess", folder / "games", games=12, seed=1)
    return folder


def test_streams_and_packs_have_the_rows_of_their_records(played: Path) -> None:
    stream = gm.presets.lc0(
        played / "games", pool=12, reservoir=64, batch_size=50, epochs=1, seed=1, tensors=[*TENSORS, "ids"]
    )
    loader = gm.DataLoader(stream)
    games: dict[str, npt.NDArray[np.void]] = {}
    count = 0
    for batch in loader:
        rows = {name: np.asarray(array)[: batch.rows] for name, array in batch.items()}
        for i, (source, chunk, frame) in enumerate(rows["ids"].tolist()):
            path = str(loader.source_path(source))
            game = games.setdefault(path, np.asarray(gm.open(played / "games" / path)[chunk]))
            made = gm.chess.encode(game[frame : frame + 1], tensors=TENSORS)
            assert all(np.array_equal(rows[name][i], made[name][0]) for name in TENSORS), (path, frame)
            count += 1
    assert count == sum(map(len, games.values())) > 200

    gm.pack(played / "games", played / "pack")
    pack = gm.open(played / "pack")
    fens = gm.chess.fens(np.asarray(pack.take(range(pack.num_frames))))
    loader = gm.DataLoader(pack, encoder=gm.chess.Tensors(TENSORS), batch_size=len(fens), shuffle=False)
    (packed,) = loader
    for i, fen in enumerate(fens):
        for name, row in expected(chess.Board(fen)).items():
            np.testing.assert_array_equal(packed[name][i], row, f"{name} of {fen}")


def test_boards_have_the_views_that_need_no_colours(tmp_path: Path) -> None:
    folder = write_boards(tmp_path / "in", 300)
    config = gm.presets.lc0(
        folder, encoder="bullet", epochs=1, batch_size=100, seed=5, tensors=[*SIDES, "men_bucket", "stm", "score"]
    )
    rows = 0
    for batch in gm.DataLoader(config):
        for i in range(batch.rows):
            board = chess.Board(None)
            for square, man in ((4, "K"), (8 + int(batch["score"][i] + 100) % 40, "P"), (60, "k")):
                board.set_piece_at(square, chess.Piece.from_symbol(man))
            made = expected(board)
            for name in [*SIDES, "men_bucket"]:
                np.testing.assert_array_equal(batch[name][i], made[name])
            rows += 1
    assert rows == 300
    for name in (*COLOURS, "white_to_move"):
        with pytest.raises(gm.ConfigError, match=r"boards do not say who is White.*_stm"):
            gm.DataLoader(gm.presets.lc0(folder, encoder="bullet", tensors=[name]))


def test_the_sets_are_as_large_as_the_page_says() -> None:
    page = (Path(__file__).parents[1] / "docs/format/nnue-features.md").read_text()
    sizes = {
        name: int(size.replace(" ", "")) for name, size in re.findall(r"^## (Half\w+)\n\n([\d ]+) features", page, re.M)
    }
    assert {name.lower(): size for name, size in sizes.items()} == {
        name.rpartition("_")[0]: size for name, size in gm.chess.FEATURES.items() if "half" in name
    }
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.encode(record(chess.Board()), tensors=["none"])
    assert all(name in str(refused.value) for name in gm.chess.FEATURES if "half" in name)


def test_what_is_no_position_is_refused_with_its_place() -> None:
    two = np.concatenate([record(chess.Board()), record(chess.Board())])
    two["planes"][1, 5] = 0
    with pytest.raises(gm.FormatError, match="0 kings of the side to move, expected one") as refused:
        gm.chess.encode(two, tensors=["halfkp_stm"])
    assert (refused.value.frame, refused.value.offset) == (1, 7440)
    assert gm.chess.encode(two, tensors=["planes"])["planes"].shape == (2, 112, 8, 8)
    with pytest.raises(gm.FormatError, match=r"`halfkp`; known are .*halfkp_white"):
        gm.chess.encode(two, tensors=["halfkp"])


def test_lists_with_offsets_are_the_padded_rows() -> None:
    boards = np.concatenate([record(board) for board in positions(3)])
    made = gm.chess.encode(boards, tensors=TENSORS)
    for name in [*COLOURS, *SIDES]:
        indices, offsets = gm.chess.sparse(made, name)
        assert (indices.dtype.name, offsets.dtype.name, offsets.shape) == ("int32", "int32", (len(boards),))
        ends = [*offsets[1:], len(indices)]
        rows = [nnue_by_hand.row(indices[a:b].tolist()) for a, b in zip(offsets, ends, strict=True)]
        np.testing.assert_array_equal(rows, made[name])
        whole = gm.chess.dense(made, name)
        assert (whole.dtype.name, whole.shape) == ("float32", (len(boards), gm.chess.FEATURES[name]))
        assert [np.flatnonzero(row).tolist() for row in whole] == [[f for f in row if f >= 0] for row in rows]
        assert whole.sum() == len(indices)
    # Two kings have no features of HalfKP: an empty row between others.
    alone = next(i for i, row in enumerate(made["halfkp_stm"]) if row[0] < 0)
    offsets = gm.chess.sparse(made, "halfkp_stm").offsets
    assert offsets[alone] == offsets[alone + 1]
    empty = {"stm": np.empty((0, 32), np.int32)}
    assert [len(part) for part in gm.chess.sparse(empty, "stm")] == [0, 0]
    assert gm.chess.dense(empty, "stm").shape == (0, 768)


def test_what_is_not_padded_features_is_refused() -> None:
    made = gm.chess.encode(record(chess.Board()), tensors=["halfkp_white", "men_bucket", "winner"])
    for take in (gm.chess.sparse, gm.chess.dense):
        with pytest.raises(KeyError, match="no array is called 'halfkp_black'; the batch has: halfkp_white"):
            take(made, "halfkp_black")
    with pytest.raises(ValueError, match=r"`winner` is float32\(1, 3\); expected padded features, int32 \(rows, 32\)"):
        gm.chess.sparse(made, "winner")
    with pytest.raises(ValueError, match=r"`men_bucket` is int32\(1,\)"):
        gm.chess.sparse(made, "men_bucket")
    with pytest.raises(ValueError, match=r"no tensor of features is called `winner`; there are halfkp_white"):
        gm.chess.dense(made, "winner")
    beyond = {"stm": np.full((1, 32), 768, np.int32)}
    with pytest.raises(ValueError, match="`stm` has the feature 768; the set has 768"):
        gm.chess.dense(beyond, "stm")
