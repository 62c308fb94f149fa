"""Games in PGN: opened, fed, packed with their tags, written again, and held against python-chess."""

import gzip
import io
import random
from pathlib import Path

import chess
import chess.pgn
import numpy as np
import pytest

import gristmill as gm


def game(seed: int, plies: int, number: int | None = None) -> chess.pgn.Game:
    """A random game; of Chess960 where there is the number of a first position."""
    rng = random.Random(seed)
    board = chess.Board() if number is None else chess.Board.from_chess960_pos(number)
    played = chess.pgn.Game()
    played.setup(board)
    played.headers.update({"White": f"w{seed}", "Black": "J\u00f6rg", "WhiteElo": str(1500 + seed), "BlackElo": "?"})
    played.headers["ECO"] = "A00"
    node: chess.pgn.GameNode = played
    while len(list(played.mainline())) < plies and not node.board().is_game_over():
        node = node.add_variation(rng.choice(list(node.board().legal_moves)))
        node.comment = rng.choice(["", "[%eval 0.17] [%clk 0:10:00] good (or not)"])
        if rng.random() < 0.1 and node.parent is not None:
            node.parent.add_variation(rng.choice(list(node.parent.board().legal_moves)))
    over = node.board().outcome()
    played.headers["Result"] = over.result() if over else rng.choice(["1-0", "0-1", "1/2-1/2"])
    return played


@pytest.fixture(scope="module")
def games() -> list[chess.pgn.Game]:
    return [game(seed, 1 + 7 * seed % 90, seed * 37 % 960 if seed % 4 == 3 else None) for seed in range(16)]


@pytest.fixture
def path(games: list[chess.pgn.Game], tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    path = tmp_path / "in" / "a.pgn"
    path.write_text("\n\n".join(str(game) for game in games) + "\n")
    return path


def test_every_position_is_that_of_python_chess(games: list[chess.pgn.Game], path: Path) -> None:
    source = gm.open(path)
    assert (source.format, len(source)) == ("pgn", len(games))
    for i, game in enumerate(games):
        chunk = source[i]
        nodes = list(game.mainline())
        assert len(chunk) == len(nodes)
        before = [game, *nodes][:-1]
        for record, node, after in zip(np.asarray(chunk), before, nodes, strict=True):
            board = node.board()
            legal = np.flatnonzero(record["probabilities"] >= 0)
            assert len(legal) == board.legal_moves.count()
            assert record["rule50_count"] == board.halfmove_clock
            men = sum(int(record["planes"][k]).bit_count() for k in range(12))
            assert men == len(board.piece_map())
            assert record["probabilities"][record["played_idx"]] == 1
            assert after.parent is node
            white = {"1-0": 1, "0-1": -1, "1/2-1/2": 0}[game.headers["Result"]]
            assert record["result_q"] == (white if board.turn else -white)
    assert gm.verify(path).ok


def test_a_stream_takes_it_plain_and_packed(path: Path) -> None:
    def hashes(folder: Path, most: str | None = None) -> list[bytes]:
        config = gm.presets.lc0(folder, epochs=1, batch_size=32, seed=5, reservoir=64, max_solid_bytes=most)
        with gm.DataLoader(config) as loader:
            return [np.asarray(batch["planes"]).tobytes() for batch in loader]

    plain = hashes(path.parent)
    assert len(plain) > 3
    path.with_suffix(".pgn.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    packed = hashes(path.parent, "4MiB")
    assert sorted(map(len, packed)) == sorted(map(len, plain))


def test_a_pack_is_asked_for_its_players_and_becomes_the_text_again(
    games: list[chess.pgn.Game], path: Path, tmp_path: Path
) -> None:
    gm.pack(path.parent, tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    strong = pack.where("white_elo >= 1510 AND black_elo IS NULL AND eco = 'A00'")
    assert len(strong) == sum(len(list(game.mainline())) for game in games[10:])
    assert gm.verify(tmp_path / "pack").ok
    done = gm.convert(path, tmp_path / "v6", version=6)
    assert done.chunks == len(games)
    assert gm.verify(tmp_path / "v6").ok
    assert gm.convert(path, tmp_path / "v7", to="v7").changed == len(games)
    told = gm.convert(tmp_path / "pack", tmp_path / "again.pgn", to="pgn")
    assert (told.games, told.frames, told.left_out) == (len(games), len(pack), {})
    with (tmp_path / "again.pgn").open() as text:
        for game in games:
            again = chess.pgn.read_game(text)
            assert again is not None
            assert not again.errors
            assert [node.move for node in again.mainline()] == [node.move for node in game.mainline()]
            assert again.board().board_fen() == game.board().board_fen()
            assert [again.headers[name] for name in ("Result", "White", "Black", "WhiteElo")] == [
                game.headers[name] for name in ("Result", "White", "Black", "WhiteElo")
            ]
    fens = gm.convert(path, tmp_path / "all.fen", to="fen")
    assert (tmp_path / "all.fen").read_text().count("\n") == fens.frames == len(pack)
    with pytest.raises(gm.ConfigError, match="overwrite"):
        gm.convert(path, tmp_path / "all.fen", to="fen")
    with pytest.raises(gm.ConfigError, match="container"):
        gm.convert(path, tmp_path / "b.fen", to="fen", container="tar")  # type: ignore[call-overload]


def test_a_bad_game_is_named_and_the_others_stay(path: Path) -> None:
    text = path.read_text()
    path.write_text('[Event "bad"]\n\n1. e4 e5 2. Qh6 1-0\n\n' + text)
    source = gm.open(path)
    with pytest.raises(gm.FormatError, match="Qh6"):
        source[0]
    assert len(source[1]) > 0
    verified = gm.verify(path)
    assert not verified.ok
    assert chess.pgn.read_game(io.StringIO(text)) is not None
