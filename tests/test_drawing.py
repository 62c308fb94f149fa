"""What notebooks and prompts show: batches as mappings and trees, tables, boards, short records. All of it escaped."""

import xml.dom.minidom
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import STEP
from played_games import records as played
from steps_in_memory import columns

import gristmill as gm


class Cells(HTMLParser):
    """The cells of a table, and that every tag is closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.cells: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        # A table, and below it what the engine draws: nothing that runs, and nothing of another place.
        assert tag not in {"script", "iframe", "object", "embed", "link", "img", "b", "form"}, tag
        assert not any(name.startswith("on") for name, _ in attrs), attrs
        self.open.append(tag)
        if tag in {"td", "caption"}:
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1] in {"td", "caption"}:
            self.cells[-1] += data


def batch_of(games: Path) -> gm.Batch:
    with gm.DataLoader(gm.presets.lc0(games, epochs=1, batch_size=16, seed=1, watch=False)) as loader:
        return loader.get_next()


def test_a_batch_is_a_mapping_by_name_and_a_tuple_by_place(games: Path) -> None:
    batch = batch_of(games)
    planes, probs, values = batch
    assert dict(batch).keys() == batch.keys() == {"planes": 0, "probs": 0, "values": 0}.keys()
    assert dict(batch)["probs"] is probs is batch["probs"] is batch[1]
    assert {**batch} == dict(batch.items())
    assert list(batch.values())[2] is values
    assert batch.get("planes") is planes
    assert batch.get("plane") is None
    assert batch.get("plane", 3) == 3

    def model(planes: Any, probs: Any, values: Any) -> int:
        return len(planes)

    assert model(**batch) == 16


def test_batches_are_trees_of_jax(games: Path) -> None:
    jax = pytest.importorskip("jax")
    import gristmill.jax

    batch = batch_of(games)
    put = jax.device_put(batch)
    assert isinstance(put, gm.Batch)
    assert isinstance(put["planes"], jax.Array)
    assert put.rows == 16
    assert put.names == batch.names
    np.testing.assert_array_equal(put["probs"], batch["probs"])
    shapes = jax.tree.map(np.shape, batch)
    assert shapes["values"] == (16, 6, 3)
    assert [str(path[0]) for path, _ in jax.tree_util.tree_leaves_with_path(batch)] == [
        "['planes']",
        "['probs']",
        "['values']",
    ]
    traced = []

    def total(batch: Any) -> Any:
        traced.append(1)
        return jax.numpy.nansum(batch["values"])

    step = jax.jit(total)
    first, second = step(batch), step(batch_of(games))
    assert first == second
    assert len(traced) == 1
    again = gm.Batch(7, 16, batch.asdict())
    step(again)
    assert len(traced) == 1, "the number of a batch makes nothing compile again"

    pairs = next(iter(gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)))
    assert isinstance(pairs, gm.pairs.PairBatch)
    moved = jax.device_put(pairs)
    np.testing.assert_array_equal(moved.context, pairs.context)
    assert set(dict(pairs)) == set(pairs.asdict())
    assert pairs["context"] is pairs.context
    assert gristmill.jax.arrays(batch)["probs"].shape == (16, 1858)


def test_tables_are_shown_and_escaped(games: Path, tmp_path: Path) -> None:
    batch = batch_of(games)
    cells = Cells(batch._repr_html_()).cells
    assert "planes" in cells
    assert "(16, 112, 8, 8)" in cells

    odd = tmp_path / "<b>&amp;"
    gm.pack(games, odd)
    pack = gm.open(odd)
    cells = Cells(pack._repr_html_()).cells
    assert cells[0] == repr(pack)
    assert "<b>&amp;" in cells[0]
    assert "best_q" in cells
    one = next(games.glob("*.gz"))
    assert "252" not in Cells(gm.open(one)._repr_html_()).cells[0]
    config = gm.presets.lc0(odd, seed=3)
    cells = Cells(config._repr_html_()).cells
    assert any("<b>&amp;" in cell for cell in cells)
    assert "seed=3" in cells[0]
    assert "shuffling_chunk_pool" in cells

    pairs = next(iter(gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)))
    assert "target" in Cells(pairs._repr_html_()).cells
    assert "acts" in Cells(gm.open(_demos(tmp_path))._repr_html_()).cells


def _demos(folder: Path) -> Path:
    path = folder / "one.npz"
    ends = np.array([False, False, True])
    np.savez(path, obs=np.zeros((3, 3), np.float32), acts=np.arange(3), dones=ends)
    return path


def test_records_are_short(games: Path) -> None:
    game = gm.open(next(games.glob("*.gz")))[0]
    assert repr(game).startswith(f"Array({len(game)} records of 8356 bytes: version, input_format, probabilities")
    assert len(repr(game)) < 1500
    record = game[3, ...]
    assert "version=6" in repr(record)
    assert "probabilities=float32[1858]" in repr(record)
    assert repr(game["best_q"]) == repr(game["best_q"].view(np.ndarray)).replace("array(", "Array(", 1)


def test_a_chess_board_is_drawn_with_its_moves() -> None:
    import chess

    board = chess.Board()
    moves = [chess.Move.from_uci(move) for move in ("e2e4", "g8f6", "e4e5")]
    record = played(board, moves)
    for k, (move, men) in enumerate(zip(moves, (32, 32, 32), strict=True)):
        drawn = gm.chess.board(record[k])
        page = xml.dom.minidom.parseString(drawn._repr_svg_())
        assert len(page.getElementsByTagName("rect")) == 64
        assert len(page.getElementsByTagName("text")) == men
        assert [g.getAttribute("data-move") for g in page.getElementsByTagName("g")][-1] == move.uci()
        assert gm.chess.moves(record)[k][0] == move.uci()
    unsearched = record[:1].copy()
    unsearched["visits"] = 0
    assert gm.chess.moves(unsearched) == [(None, None)]
    assert "<g" not in gm.chess.board(unsearched)
    with pytest.raises(ValueError, match="a board shows one position"):
        gm.chess.board(record)
    assert repr(gm.chess.board(record[0])).startswith("Drawing(")


def test_a_2048_board_is_drawn() -> None:
    ranks = [0, 1, 2, 3, 11, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 17]
    page = xml.dom.minidom.parseString(gm.g2048.board(ranks))
    assert [text.firstChild.data for text in page.getElementsByTagName("text")] == [  # type: ignore[union-attr]
        *("2", "4", "8", "2048", "131072")
    ]
    row = np.zeros((), STEP)
    board, mask = gm.g2048.pack_boards([*ranks[:15], 16])
    row["board"], row["tile_65536_mask"] = board, mask
    assert ">65536<" in gm.g2048.board(row)
    with pytest.raises(ValueError, match="found 2"):
        gm.g2048.board(np.zeros((2, 16), np.uint8))
    with pytest.raises(gm.FormatError, match="rank 40"):
        gm.g2048.board([40] + [0] * 15)
