"""Verdicts on games: sound games of python-chess in every input format, broken ones, refusals.

GRISTMILL_POSITIONS sets how many random positions are compared; `make soak` takes 100 000.
"""

import os
import random
from pathlib import Path

import chess
import numpy as np
import pytest
from chess_games import FORMATS, Game, few_men, index, play, transform_of, write
from generated_games import Records, game, write_gz

import gristmill as gm

POSITIONS = int(os.environ.get("GRISTMILL_POSITIONS", "2100"))


def sound(seed: int, format: int = 1, version: int = 6, plies: int = 8) -> tuple[Game, Records]:  # noqa: A002
    """A game of some length."""
    rng = random.Random(seed)
    while True:
        played = play(rng, format)
        if len(played.moves) >= plies:
            return played, write(played, format, version, rng)


@pytest.mark.parametrize("format", FORMATS)
def test_positions_moves_and_transforms_are_those_of_python_chess(format: int) -> None:  # noqa: A002
    rng = random.Random(format)
    positions = 0
    while positions < POSITIONS / len(FORMATS):
        played = play(rng, format)
        if not played.moves:
            continue
        records = write(played, format, rng.choice([6, 7]), rng)
        assert gm.chess.check(records, "all") == [], played.boards[0].fen()
        for fen, board in zip(gm.chess.fens(records), played.boards, strict=True):
            ours = chess.Board(fen, chess960=True)
            passing = chess.square_name(board.ep_square or 0) if board.has_pseudo_legal_en_passant() else "-"
            assert fen.split()[3:] == [passing, str(board.halfmove_clock), "1"]
            assert (ours.board_fen(), ours.turn) == (board.board_fen(), board.turn)
            assert ours.clean_castling_rights() == board.clean_castling_rights()
        # One legal move fewer, and one illegal move more, are each found at their frame.
        i = rng.randrange(len(records))
        legal = np.flatnonzero(records["probabilities"][i] >= 0)
        illegal = np.flatnonzero(records["probabilities"][i] < 0)
        for moves, value in ((legal, -1), (illegal, 0)):
            broken = records.copy()
            broken["probabilities"][i, rng.choice(moves)] = value
            found = gm.chess.check(broken, ["policy_moves"])
            assert [(b.rule, b.frame) for b in found] == [("policy_moves", i)]
        positions += len(records)


def test_every_transform_is_chosen_as_documented() -> None:
    rng = random.Random(1)
    seen = set()
    for _ in range(400):
        board = few_men(rng)
        seen.add(transform_of(board))
        records = write(Game([board], [next(iter(board.legal_moves))]), 4, 6, rng)
        assert gm.chess.check(records, "all") == [], board.fen()
    assert seen == set(range(8))


@pytest.mark.parametrize("format", [3, 5])
def test_a_wrong_transform_history_or_en_passant_of_canonical_games_is_found(format: int) -> None:  # noqa: A002
    found = set()
    for seed in range(20):
        played, records = sound(seed, format)
        rng = random.Random(seed)
        i = rng.randrange(1, len(records))
        broken = records.copy()
        broken["invariance_info"][i] ^= rng.choice([1, 2, 4])
        # What is left may be the right transform of the mirrored position: then no move leads there.
        assert gm.chess.check(broken, ["transform", "moves"]), played.boards[i].fen()
        broken = records.copy()
        broken["side_to_move_or_enpassant"][i] ^= 1 << rng.randrange(8)
        assert "en_passant" in {b.rule for b in gm.chess.check(broken)}
        filled = np.flatnonzero(records["planes"][i].reshape(8, 13)[1:].any(axis=1))
        if filled.size:
            broken = records.copy()
            plane = 13 * (1 + int(rng.choice(filled)))
            broken["planes"][i, plane + 5] ^= np.uint64(1 << rng.randrange(64))
            found |= {b.rule for b in gm.chess.check(broken)}
    assert "history" in found


def test_the_verdict_says_rule_frame_byte_and_reason() -> None:
    _, records = sound(1)
    records["result_q"][3], records["result_d"][3] = 1, 0
    records["best_idx"][5] = 1858
    first, *_, last = gm.chess.check(records)
    assert isinstance(first, gm.chess.Breach)
    assert (first.rule, first.frame, first.offset) == ("result", 2, 8308)
    assert (last.rule, last.frame, last.offset) == ("best_idx", 5, 8346)
    assert "1858" in last.reason
    assert set(gm.chess.RULES) >= {first.rule, last.rule}


def test_rules_are_chosen_by_name() -> None:
    records = game(1, 6)
    everything = {b.rule for b in gm.chess.check(records, ["all"])}
    assert {"men", "moves", "history"} <= everything
    assert gm.chess.check(records, ["men"]) == [b for b in gm.chess.check(records) if b.rule == "men"]
    assert "men" not in {b.rule for b in gm.chess.check(records, ["-men"])}
    with pytest.raises(gm.FormatError, match="no rule is called `mne`"):
        gm.chess.check(records, ["mne"])


def test_dtypes_may_be_foreign_and_shapes_may_not() -> None:
    _, records = sound(2, version=7)
    big = records.astype(records.dtype.newbyteorder(">"))
    assert gm.chess.check(big) == []
    assert gm.chess.fens(big) == gm.chess.fens(records)
    assert gm.chess.check(records[:0]) == []
    assert gm.chess.check(gm.chess.V7.records(sound(2)[1])) == [], "a widened V6 game"
    with pytest.raises(ValueError, match="shape"):
        gm.chess.check(records.reshape(1, -1))
    with pytest.raises(gm.FormatError):
        gm.chess.check(np.zeros(3, [("x", "<i4")]))
    with pytest.raises(gm.FormatError) as error:
        gm.chess.fens(game(1, 2))
    assert error.value.frame == 0


def test_a_game_that_loses_a_ply_is_found() -> None:
    for seed in range(10):
        _, records = sound(seed, format=random.Random(seed).choice(FORMATS))
        cut = np.delete(records, random.Random(seed).randrange(1, len(records) - 1))
        assert {"moves", "side_to_move"} <= {b.rule for b in gm.chess.check(cut)}


def test_either_policy_mapping_of_a_transposed_board_is_sound() -> None:
    board = chess.Board("8/8/8/8/4q3/7K/8/k7 w - - 0 1", chess960=True)
    assert transform_of(board) & 4
    move = next(m for m in board.legal_moves if m.uci() == "h3g3")
    assert index(board, move, transform_of(board), True) != index(board, move, transform_of(board), False)
    for seed in range(6):
        assert gm.chess.check(write(Game([board], [move]), 3, 6, random.Random(seed)), "all") == []


def test_the_validator_is_a_stage_of_any_graph(tmp_path: Path) -> None:
    for n in range(6):
        _, records = sound(n, plies=12)
        if n in (1, 4):
            policy = records["probabilities"][5]
            policy[policy > 0] *= 0.5
        write_gz(tmp_path / f"training.{n}.gz", records)
    config = gm.presets.lc0(tmp_path, epochs=1, batch_size=8, reservoir=0, tensors=["ids"])
    unpacker = next(stage for stage in config.stage if stage.chunk_unpacker)
    rules = gm.ChunkValidatorConfig(rules=["default", "-history"])
    config.stage.append(gm.StageConfig(name="validate", input=unpacker.input, chunk_validator=rules))
    unpacker.input = ["validate"]
    assert gm.DataLoaderConfig.from_toml(config.to_toml()) == config
    with gm.DataLoader(config) as loader:
        sources = {int(source) for batch in loader for source in batch["ids"][: batch.rows, 0]}
        counts = loader.metrics()["bad_chunks"]
    assert sources == {0, 2, 3, 5}
    assert counts["by_kind"] == {"policy_sum": 2}
    config.stage[-1].chunk_validator = gm.ChunkValidatorConfig(rules=["histroy"])
    with pytest.raises(gm.ConfigError, match="no rule is called `histroy`"):
        gm.DataLoader(config)
