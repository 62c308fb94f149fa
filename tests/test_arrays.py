"""Arrays over the engine's memory: alignment, lifetime, and DLPack to NumPy, JAX and PyTorch without a copy."""

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import gristmill as gm
from gristmill import _gristmill

OLD_NUMPY = np.lib.NumpyVersion(np.__version__) < "2.1.0"
needs_dlpack_1 = pytest.mark.skipif(OLD_NUMPY, reason="skipped: NumPy before 2.1 reads no DLPack 1.0")


def array(shape: tuple[int, ...], dtype: Any = np.float32) -> gm.Array:
    dtype = np.dtype(dtype)
    count = int(np.prod(shape))
    made = gm.Array.over(_gristmill.allocate(count * dtype.itemsize), shape, dtype)
    made[...] = np.arange(count).reshape(shape).astype(dtype)
    return made


def address(a: Any) -> int:
    return int(a.__array_interface__["data"][0])


@pytest.mark.parametrize("nbytes", [0, 1, 63, 64, 65, 1 << 20])
def test_memory_is_aligned_zeroed_and_writable(nbytes: int) -> None:
    memory = _gristmill.allocate(nbytes)
    made = gm.Array.over(memory, (nbytes,), np.uint8)
    assert memory.nbytes == nbytes
    assert address(made) % 64 == 0
    assert not made.any()
    assert made.flags.writeable
    assert made.flags.c_contiguous


def test_more_than_there_is_raises_memory_error() -> None:
    with pytest.raises(MemoryError):
        _gristmill.allocate(1 << 62)


@pytest.mark.parametrize("max_version", [None, (0, 8), *([] if OLD_NUMPY else [(1, 0), (1, 1)])])
@pytest.mark.parametrize("code", ["f2", "f4", "f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "c8", "c16", "?"])
def test_numpy_takes_every_element_type_without_a_copy(code: str, max_version: tuple[int, int] | None) -> None:
    class Old:
        def __dlpack__(self, **_: object) -> Any:
            return source.__dlpack__(max_version=max_version)

        def __dlpack_device__(self) -> Any:
            return source.__dlpack_device__()

    source = array((3, 4), code)
    taken = np.from_dlpack(Old())
    assert taken.dtype == source.dtype
    assert address(taken) == address(source)
    np.testing.assert_array_equal(taken, np.asarray(source))


@pytest.mark.parametrize("cut", [np.s_[1:], np.s_[:, ::-1], np.s_[::2, 1], np.s_[2, 3, None], np.s_[..., 0]])
def test_views_export_their_own_shape_and_strides(cut: Any) -> None:
    view = array((4, 5))[cut].view(gm.Array)
    taken = np.from_dlpack(view)
    assert address(taken) == address(view)
    assert taken.strides == view.strides
    np.testing.assert_array_equal(taken, np.asarray(view))


def test_the_memory_lives_as_long_as_anything_over_it() -> None:
    memory = _gristmill.allocate(64)
    made = gm.Array.over(memory, (16,), np.float32)
    made[:] = 7
    capsule = made.__dlpack__(max_version=(1, 0))
    taken = np.from_dlpack(made)
    del made, memory
    gc.collect()
    assert taken.tolist() == [7.0] * 16
    del capsule, taken
    gc.collect()


def test_a_view_is_ours_and_a_computed_array_is_not() -> None:
    source = array((4, 4))
    assert source[1:].view(gm.Array).memory() is source.memory() is not None
    assert np.asarray(source)[1:].view(gm.Array).memory() is source.memory()
    computed = source + 1
    assert isinstance(computed, gm.Array)
    assert computed.memory() is None
    np.testing.assert_array_equal(np.from_dlpack(computed), np.asarray(computed))


def test_a_computed_array_does_not_keep_the_engines_memory() -> None:
    class Watched(gm.Array):
        pass

    source = Watched.over(_gristmill.allocate(64), (16,), np.float32)
    gone = weakref.ref(source)
    computed = source * 2
    del source
    gc.collect()
    assert gone() is None
    assert computed.shape == (16,)


@needs_dlpack_1
def test_copies_are_asked_for_and_flagged() -> None:
    source = array((5, 5))
    taken = np.from_dlpack(source, copy=True)
    assert address(taken) != address(source)
    np.testing.assert_array_equal(taken, np.asarray(source))
    np.testing.assert_array_equal(np.from_dlpack(source[:, 1].view(gm.Array), copy=True), np.asarray(source)[:, 1])
    assert address(source.aligned_copy()) % 64 == 0


@needs_dlpack_1
def test_read_only_arrays_say_so_or_are_refused() -> None:
    source = array((2, 2))
    source.flags.writeable = False
    assert not np.from_dlpack(source).flags.writeable
    with pytest.raises(BufferError, match="read-only"):
        source.__dlpack__()


def test_what_dlpack_cannot_say_is_refused() -> None:
    records = gm.Layout.from_dtype([("a", "<u4"), ("b", "u1")]).records(np.zeros(2, dtype=[("a", ">u4")]))
    with pytest.raises(BufferError):
        records.__dlpack__()
    with pytest.raises(BufferError):
        records["a"].__dlpack__()
    with pytest.raises(BufferError, match="device"):
        array((2,)).__dlpack__(dl_device=(2, 0))
    assert np.from_dlpack(array((0, 3))).shape == (0, 3)


def test_a_span_outside_the_memory_is_refused() -> None:
    memory = _gristmill.allocate(64)
    start = address(gm.Array.over(memory, (64,), np.uint8))
    for where, shape, strides in [
        (start + 64, [1], [1]),
        (start, [65], [1]),
        (start, [2], [-1]),
        (start - 1, [1], [1]),
        (start, [2**62], [2**62]),
        (start, [3], [2**62]),
        (start, [1, 1], [1]),
        (2**63, [1], [1]),
    ]:
        with pytest.raises(BufferError, match="does not lie inside"):
            memory.dlpack(where, shape, strides, 1, 8, True, 0)


def test_jax_aliases() -> None:
    jax = pytest.importorskip("jax")
    source = array((64, 112, 8, 8))
    for taken in (jax.dlpack.from_dlpack(source), jax.device_put(source, may_alias=True)):
        assert taken.unsafe_buffer_pointer() == address(source)
        assert float(taken.sum()) == float(np.asarray(source).astype(np.float64).sum()) or taken.shape == source.shape
    np.testing.assert_array_equal(np.asarray(jax.dlpack.from_dlpack(source)), np.asarray(source))


def test_torch_takes_arrays_without_a_copy() -> None:
    torch = pytest.importorskip("torch")
    source = array((3, 4))
    taken = torch.from_dlpack(source)
    assert taken.data_ptr() == address(source)
    taken[0, 0] = 41
    assert source[0, 0] == 41
