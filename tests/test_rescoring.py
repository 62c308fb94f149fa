"""The rescorer on arrays: games played by python-chess, judged by it and by the real tables of up to four men."""

import random
import shutil
from pathlib import Path
from typing import Any

import chess
import chess.syzygy
import numpy as np
import pytest
from chess_games import index, transform_of
from played_games import policy_index, random_board, random_moves, records

import gristmill as gm


def opening(plies: int, seed: int) -> tuple[chess.Board, list[chess.Move]]:
    board = chess.Board()
    return board, random_moves(random.Random(seed), board, plies)


def test_v6_comes_out_as_v7_with_the_moves_that_were_played() -> None:
    board, moves = opening(40, 3)
    game = records(board, moves)
    game["root_q"] = np.linspace(-0.9, 0.9, len(game))
    before = game.copy()
    done, counts = gm.chess.rescore(game)
    assert game.tobytes() == before.tobytes()
    assert done.dtype == gm.chess.V7.dtype
    assert (done["version"] == 7).all()
    assert counts["frames_to_v7"] == len(game)
    np.testing.assert_array_equal(done["opp_played_idx"][:-1], game["played_idx"][1:])
    np.testing.assert_array_equal(done["next_played_idx"][-2:], [65535, 65535])
    # The same sum, in double precision.
    signs = np.where(np.arange(len(game)) % 2, -1.0, 1.0)
    expected = np.empty(len(game))
    value = None
    for k in reversed(range(len(game))):
        now = float(game["root_q"][k]) * signs[k]
        value = now if value is None else 0.8333333 * value + (1 - 0.8333333) * now
        expected[k] = value * signs[k]
    np.testing.assert_allclose(done["q_st"], expected, atol=1e-5)
    for name in gm.chess.V6.names:
        if name not in ("version", "q_st"):
            assert done[name].tobytes() == game[name].tobytes(), name


@pytest.mark.parametrize("seed", range(6))
def test_every_random_game_is_replayed_in_every_format(seed: int) -> None:
    board, moves = opening(120, seed)
    game = records(board, moves)
    for input_format in (1, 2, 3, 4, 5, 132, 133):
        there, counts = gm.chess.rescore(game, new_input_format=input_format, keep_v6=True)
        assert (there["input_format"] == input_format).all()
        assert counts["frames_converted"] == (0 if input_format == 1 else len(game))
        back, _ = gm.chess.rescore(there, new_input_format=1, keep_v6=True)
        assert back.tobytes() == game.tobytes()


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("compat", "half_turn"), [([], True), (["all"], True), (["planes_policy"], False)])
def test_canonical_policies_are_where_lc0_has_them(seed: int, compat: list[str], half_turn: bool) -> None:
    rng = random.Random(seed)
    start = random_board(rng, rng.choice((3, 4, 5)), pawns=0.1, en_passant=0)
    moves = random_moves(rng, start, 60)
    game = records(start, moves)
    # No two moves have the same probability.
    for policy in game["probabilities"]:
        legal = np.flatnonzero(policy >= 0)
        policy[legal] = np.arange(1, len(legal) + 1) / (len(legal) * (len(legal) + 1) / 2)
    old = game.copy()
    old["visits"], old["played_idx"], old["best_idx"] = 0, 0, 0
    for told in (game, old):
        there, _ = gm.chess.rescore(told, new_input_format=4, keep_v6=True, compat=compat)
        board = start.copy()
        for k, record in enumerate(there):
            transform = transform_of(board)
            assert record["invariance_info"] & 7 == transform
            expected = np.full(1858, -1, np.float32)
            for move in board.legal_moves:
                expected[index(board, move, transform, half_turn)] = told["probabilities"][k][policy_index(board, move)]
            assert np.asarray(record["probabilities"]).tobytes() == expected.tobytes(), board.fen()
            if k < len(moves):
                if told is game:
                    assert record["played_idx"] == index(board, moves[k], transform, half_turn)
                board.push(moves[k])
        # Among all quirks is one that takes White to begin.
        back, _ = gm.chess.rescore(there, new_input_format=1, keep_v6=True, compat=compat if compat != ["all"] else [])
        assert back.tobytes() == told.tobytes()


def test_results_are_those_of_the_tables(syzygy: Path) -> None:
    rng = random.Random(5)
    rescorer = gm.chess.Rescorer(syzygy_paths=str(syzygy))
    assert rescorer.coverage is not None
    captures = 0
    with chess.syzygy.open_tablebase(str(syzygy)) as tables:
        for _ in range(30):
            start = random_board(rng, 5, pawns=0.7)
            moves = random_moves(rng, start, 60)
            boards = [start.copy()]
            for move in moves:
                boards.append(boards[-1].copy())
                boards[-1].push(move)
            done, _ = rescorer(records(start, moves))
            hits = [k for k, b in enumerate(boards) if k and not b.halfmove_clock and chess.popcount(b.occupied) <= 4]
            first = 0
            for k in hits:
                captures += 1
                score = {2: 1, -2: -1}.get(tables.probe_wdl(boards[k]), 0)
                own = np.array([score if (k - i) % 2 == 0 else -score for i in range(first, k + 1)])
                # Later passes look at positions between captures again.
                zeroed = [i == k or boards[i].halfmove_clock == 0 or i == 0 for i in range(first, k + 1)]
                outside = [chess.popcount(boards[i].occupied) > 4 for i in range(first, k + 1)]
                sure = np.array(zeroed) | np.array(outside)
                np.testing.assert_array_equal(done["result_q"][first : k + 1][sure], own[sure])
                np.testing.assert_array_equal(done["result_d"][first : k + 1][sure], (own == 0)[sure])
                first = k + 1
    assert captures > 20


def test_the_fastest_wins_are_boosted(syzygy: Path) -> None:
    board = chess.Board("8/8/8/8/8/2k5/7R/K7 w - - 0 1")
    game = records(board, [])
    done, counts = gm.chess.rescore(game, syzygy_paths=str(syzygy), dtz_boost=0.9, keep_v6=True)
    assert counts["policies_boosted"] == 1
    policy = np.asarray(done["probabilities"][0])
    with chess.syzygy.open_tablebase(str(syzygy)) as tables:
        plies = {}
        for move in board.legal_moves:
            board.push(move)
            plies[policy_index_of(board, move)] = -tables.probe_dtz(board)
            board.pop()
    fastest = {i for i, n in plies.items() if n == min(n for n in plies.values() if n > 0)}
    assert {int(i) for i in np.flatnonzero(policy == policy.max())} == fastest
    np.testing.assert_allclose(policy[policy >= 0].sum(), 1, atol=1e-5)


def policy_index_of(board: chess.Board, move: chess.Move) -> int:
    """The index of the last move of `board`."""
    last = board.copy()
    last.pop()
    return policy_index(last, move)


def test_a_kings_and_rook_ending_gets_its_plies_to_mate(syzygy: Path) -> None:
    board = chess.Board("8/8/8/2k5/4p3/4R3/8/K7 w - - 3 50")
    game = records(board, [chess.Move.from_uci(m) for m in ("e3e4", "c5d5", "e4a4")])
    done, counts = gm.chess.rescore(game, syzygy_paths=str(syzygy), keep_v6=True)
    board.push_uci("e3e4")
    with chess.syzygy.open_tablebase(str(syzygy)) as tables:
        plies = abs(tables.probe_dtz(board))
    assert done["plies_left"][:2].tolist() == [plies + 1, plies]
    assert counts["plies_left_by_tablebase"] >= 2
    assert done["result_q"].tolist() == [1, -1, 1, -1]


def test_refusals_say_which_rule_and_where() -> None:
    board, moves = opening(12, 1)
    game = records(board, moves)
    game["best_q"][5] = np.nan
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.rescore(game)
    assert (refused.value.kind, refused.value.frame, refused.value.offset) == ("values", 5, 5 * 8356 + 8284)
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.rescore(records(board, moves)[:0])
    assert refused.value.kind == "empty"
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.rescore(records(board, moves)[::2])
    assert refused.value.kind == "side_to_move"


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"dist_temp": 0}, "dist_temp"),
        ({"dtz_boost": 0.5}, "dtz_boost"),
        ({"gaviota_paths": "g"}, "gaviota"),
        ({"dist_tmp": 1.2}, "did you mean `dist_temp`"),
        ({"compat": ["quirk"]}, "planes_policy"),
        ({"compat": ["half_turn_policy", "planes_policy"]}, "contradict"),
        ({"new_input_format": 6}, "new_input_format"),
        ({"deblunder_threshold": 0.1}, "deblunder_width"),
    ],
)
def test_settings_that_cannot_be_are_refused_by_name(fields: dict[str, Any], says: str) -> None:
    with pytest.raises(gm.ConfigError, match=says):
        gm.chess.Rescorer(**fields)


def test_missing_tables_are_never_passed_over_in_silence(tmp_path: Path) -> None:
    with pytest.raises(gm.ConfigError, match="syzygy_paths"):
        gm.chess.Rescorer(syzygy_paths=str(tmp_path))
    rescorer = gm.chess.Rescorer(
        gm.ChunkRescorerConfig(syzygy_paths=str(tmp_path)), allow_missing_tables=True, keep_v6=True
    )
    assert rescorer.coverage == "0 WDL and 0 DTZ tables of up to 2 men"
    game = records(chess.Board("8/8/8/8/8/2k5/7R/K7 w - - 0 1"), [])
    assert rescorer(game).counts["probes"] == 0


def test_a_missing_table_silences_no_other_and_is_counted_by_name(syzygy: Path, tmp_path: Path) -> None:
    part = tmp_path / "part"
    shutil.copytree(syzygy, part)
    for name in ("KNvK", "KBvK"):
        (part / f"{name}.rtbw").unlink()
    whole = gm.chess.Rescorer(syzygy_paths=str(syzygy), keep_v6=True)
    partial = gm.chess.Rescorer(syzygy_paths=str(part), keep_v6=True, allow_missing_tables=True)
    # A pawn may become what has no table, but only its own table is read.
    board = chess.Board("8/8/8/8/4k3/8/4P3/R3K3 w - - 3 50")
    game = records(board, [chess.Move.from_uci(m) for m in ("a1a4", "e4d5", "e2e4", "d5c5", "a4a1", "c5d6")])
    (expected, _), (found, counts) = whole(game), partial(game)
    assert found.tobytes() == expected.tobytes()
    assert counts["missing_tables"] == 0
    assert not [name for name in counts if name.startswith("missing:")]
    # Three men whose own table is gone.
    knight = records(chess.Board("8/8/8/4k3/8/8/8/N3K3 w - - 3 50"), [chess.Move.from_uci("a1b3")])
    counts = partial(knight).counts
    assert counts["missing:KNvK.rtbw"] == counts["missing_tables"] > 0
