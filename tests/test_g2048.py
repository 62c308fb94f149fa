"""2048 boards as arrays: published values, any batch shape, packing both ways, refusals."""

import json
import os
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import gristmill as gm

WORKED = [0, 1, 2, 3, 4, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]


def test_rows_have_the_published_layouts() -> None:
    assert (gm.g2048.ROW.itemsize, gm.g2048.PACKED_ROW.itemsize) == (48, 46)
    fields = gm.g2048.ROW.dtype.fields
    assert fields is not None
    assert (fields["seed"][1], fields["branch_evs"][1]) == (28, 32)
    assert gm.g2048.ROW.names == gm.g2048.PACKED_ROW.names


def test_the_worked_example() -> None:
    board, mask = gm.g2048.pack_boards(WORKED)
    assert (int(board), int(mask)) == (0x01234F6789ABCDEF, 32)
    assert (board.dtype, mask.dtype, board.shape) == (np.uint64, np.uint16, ())
    assert gm.g2048.unpack_boards(board, mask).tolist() == WORKED
    value = gm.g2048.board_eval(WORKED)
    assert (int(value), value.dtype, value.shape) == (-39035046, np.int32, ())


def test_published_vectors() -> None:
    shared = Path(os.environ.get("GRISTMILL_SHARED", Path(__file__).parents[2] / "shared"))
    path = shared / "vectors/macroxue/board_eval_vectors.json"
    if not path.exists():
        pytest.skip(f"no vectors at {path}; set GRISTMILL_SHARED")
    vectors = json.loads(path.read_text())["vectors"]
    exps = np.array([vector["exps"] for vector in vectors]).reshape(7, 9, 16)
    expected = np.array([[vector[key] for vector in vectors] for key in ("eval", "eval_interactive")]).reshape(2, 7, 9)
    assert (gm.g2048.board_eval(exps) == expected[0]).all()
    assert (gm.g2048.board_eval(exps, interactive=True) == expected[1]).all()
    boards, _ = gm.g2048.pack_boards(exps)
    assert boards.shape == (7, 9)
    assert [f"0x{board:016x}" for board in boards.reshape(-1)] == [vector["board"] for vector in vectors]


@given(
    hnp.arrays(
        np.uint8,
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0).map(lambda s: (*s, 16)),
        elements=st.integers(0, 16),
    )
)
def test_packing_is_undone_for_any_batch_shape(exps: np.ndarray) -> None:
    boards, masks = gm.g2048.pack_boards(exps)
    assert boards.shape == masks.shape == exps.shape[:-1] == gm.g2048.board_eval(exps).shape
    assert (gm.g2048.unpack_boards(boards, masks) == exps).all()
    assert (masks == ((exps == 16) << np.arange(16)).sum(-1)).all()


def test_strides_foreign_order_and_other_frameworks_are_taken() -> None:
    exps = np.arange(4 * 32).reshape(4, 32) % 16
    every_other = exps[:, ::2]
    expected = gm.g2048.board_eval(np.ascontiguousarray(every_other))
    for same in (every_other, every_other.astype(">i2"), every_other.tolist(), jnp.asarray(every_other)):
        assert (gm.g2048.board_eval(same) == expected).all()
    boards, masks = gm.g2048.pack_boards(every_other)
    for board, mask in ((boards.astype(">u8"), masks), (boards, 0), (boards[:, None], masks[:, None].astype(np.int64))):
        assert (gm.g2048.unpack_boards(board, mask).reshape(4, 16) == every_other).all()
    assert gm.g2048.unpack_boards(0, np.array([1, 2])).shape == (2, 16)


def test_what_makes_no_sense_is_refused() -> None:
    high = np.zeros((2, 3, 16), np.int64)
    high[1, 0, 5] = 32
    for call in (gm.g2048.board_eval, gm.g2048.pack_boards):
        with pytest.raises(gm.FormatError, match="cell 5 has rank 32") as caught:
            call(high)
        assert caught.value.frame == 3
        for bad in (np.full(16, 256), np.full(16, -1)):
            with pytest.raises(ValueError, match="from 0 to 255"):
                call(bad)
        with pytest.raises(TypeError, match="integers"):
            call(np.zeros(16))
        for shape in ((4, 4), (15,), (0,), ()):
            with pytest.raises(ValueError, match="16"):
                call(np.zeros(shape, np.uint8))
    with pytest.raises(gm.FormatError, match="32 bits"):
        gm.g2048.board_eval(np.full(16, 25))
    with pytest.raises(ValueError, match="65535"):
        gm.g2048.unpack_boards(0, 1 << 16)
    with pytest.raises(TypeError, match="float"):
        gm.g2048.unpack_boards(0.5)


def test_a_raw_log_opens_as_a_source(tmp_path: Path) -> None:
    line = '{"seed":5,"move":"left","board":[0,1,0,0,0,0,0,0,0,0,0,0,0,0,0,0],"branch_evs":{"left":1.5}}'
    path = tmp_path / "g.jsonl.gz"
    path.write_text(line + "\n" + line)
    rows = gm.open(path)[0]
    assert (rows.dtype, rows["step_index"].tolist(), rows["ev_legal"].tolist()) == (gm.g2048.ROW.dtype, [0, 1], [4, 4])
    path.write_text(line + "\n" + line.replace("left", "Left"))
    with pytest.raises(gm.FormatError) as caught:
        gm.open(path)[0]
    assert (caught.value.line, caught.value.kind) == (2, "corrupt")
    assert (caught.value.column or 0) > 10
