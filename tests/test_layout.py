"""Layouts and NumPy structured dtypes: nested, padded, of either byte order, there and back."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gristmill as gm

scalars = st.sampled_from(
    ["?", "i1", "<u2", ">u2", "<i4", ">i8", "<f2", "<f4", ">f8", "<c8", ">c16", "S3", "<U2", "V5"]
)
shapes = st.one_of(st.just(()), st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple))


def dtypes(depth: int) -> st.SearchStrategy[np.dtype[Any]]:
    element = scalars.map(np.dtype) if depth == 0 else st.one_of(scalars.map(np.dtype), dtypes(depth - 1))
    fields = st.lists(st.tuples(element, shapes), min_size=1, max_size=4)

    def build(parts: list[tuple[Any, Any]], align: bool) -> np.dtype[Any]:
        return np.dtype([(f"f{i}", kind, shape) for i, (kind, shape) in enumerate(parts)], align=align)

    return st.builds(build, fields, st.booleans())


@given(dtypes(2))
def test_any_structured_dtype_comes_back_the_same(dtype: np.dtype[Any]) -> None:
    layout = gm.Layout.from_dtype(dtype)
    assert layout.dtype == dtype
    assert layout.itemsize == dtype.itemsize
    assert [layout.dtype.fields[n][1] for n in layout.names] == [dtype.fields[n][1] for n in dtype.names]  # type: ignore[index,union-attr]
    assert gm.Layout.from_descr(layout.descr) == layout
    assert pickle.loads(pickle.dumps(layout)) == layout


@given(dtypes(1), st.integers(0, 3), st.integers(0, 2**32 - 1))
def test_records_become_little_endian_and_keep_their_values(dtype: np.dtype[Any], count: int, seed: int) -> None:
    raw = np.random.default_rng(seed).integers(0, 2, count * dtype.itemsize, np.uint8)
    array = raw.view(dtype) if count else np.empty(0, dtype)
    target = gm.Layout.from_dtype(dtype.newbyteorder("<"))
    got = target.records(array)
    assert got.dtype == target.dtype
    for name in dtype.names or ():
        np.testing.assert_array_equal(got[name], array[name])


def test_fields_are_matched_by_name_and_absent_ones_are_zero() -> None:
    array = np.array([(1, [2, 3], 9), (4, [5, 6], 9)], dtype=[("a", ">u4"), ("b", ">f8", 2), ("gone", "u1")])
    target = gm.Layout.from_dtype(np.dtype([("b", "<f8", 2), ("new", "<i2"), ("a", "<u4")], align=True))
    got = target.records(array[::-1])
    assert got.dtype == target.dtype
    assert got.ctypes.data % 64 == 0
    np.testing.assert_array_equal(got["a"], [4, 1])
    np.testing.assert_array_equal(got["b"], [[5, 6], [2, 3]])
    assert got["new"].tolist() == [0, 0]


def test_the_same_dtype_is_not_copied() -> None:
    array = np.zeros((3, 2), dtype=[("a", "<u4")])
    got = gm.Layout.from_dtype(array.dtype).records(array)
    assert np.shares_memory(got, array)
    assert got.shape == (3, 2)


def test_what_is_no_layout_is_refused() -> None:
    with pytest.raises(TypeError, match="named fields"):
        gm.Layout.from_dtype(np.float32)
    with pytest.raises(gm.FormatError, match=r"\|O") as refused:
        gm.Layout.from_dtype([("a", "O")])
    assert refused.value.kind == "unsupported"
    with pytest.raises(gm.FormatError, match="`a`"):
        gm.Layout.from_dtype([("a", "<f4")]).records(np.zeros(1, dtype=[("a", "<u4")]))
    with pytest.raises(gm.FormatError, match="no field in common"):
        gm.Layout.from_dtype([("a", "<f4")]).records(np.zeros(1, dtype=[("b", "<f4")]))
    with pytest.raises(gm.FormatError) as hostile:
        gm.Layout.from_descr("[('a', '<u4', (99999999999999999999,))]")
    assert hostile.value.offset is not None
