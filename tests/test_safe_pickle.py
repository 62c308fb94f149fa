"""Pickles as plain values: against Python's own reader for what is harmless, refused for what is not."""

import builtins
import codecs
import collections
import gzip
import hashlib
import io
import json
import os
import pickle
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gristmill as gm
from gristmill import safe_pickle

PROTOCOLS = range(6)


def same(one: Any, two: Any) -> bool:
    """Whether two values are the same, of the same types; arrays bit for bit."""
    if type(one) is not type(two):
        return False
    if isinstance(one, np.ndarray | np.generic):
        native = one.dtype.newbyteorder("=")  # NumPy's reader turns what it copies; ours leaves bytes as they are
        if native != two.dtype.newbyteorder("=") or one.shape != two.shape:
            return False
        if one.dtype == object:
            return all(same(a, b) for a, b in zip(one.ravel(), two.ravel(), strict=True))
        return bool(one.astype(native).tobytes() == two.astype(native).tobytes())
    if isinstance(one, dict):
        return list(map(repr, one)) == list(map(repr, two)) and all(same(one[key], two[key]) for key in one)
    if isinstance(one, list | tuple | collections.deque):
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two, strict=True))
    return repr(one) == repr(two) if isinstance(one, float | complex) else bool(one == two)


VALUES: list[Any] = [
    None,
    [True, False, 0, -1, 255, 65536, 2**63 - 1, -(2**63), 2**63, -(2**200), 10**60],
    [0.0, -0.0, 1.5, float("inf"), float("nan"), 1 - 2j],
    ["", "text", "größe \U0001f600 \\u0041 \n", b"", b"\x00\xff\n", bytearray(b"ab")],
    {"a": [1, (2, "x")], 3: {4, 5}, (1, 2): frozenset({"k"}), None: (), b"k": ((((),),),)},
    collections.OrderedDict([("b", 1), ("a", 2)]),
    collections.deque([1, 2]),
    np.arange(24, dtype="<i2").reshape(2, 3, 4),
    np.asfortranarray(np.arange(12.0).reshape(3, 4)),
    np.arange(10)[::2],
    np.array(3.5),
    np.zeros((0, 3), "f4"),
    np.array([1, 2], ">f8"),
    np.array([(1, 2.0, [1, 2])], dtype=[("x", "<i4"), ("y", "<f8"), ("z", "u1", (2,))]),
    np.array(["ab", "c"]),
    np.array([b"ab", b"c"]),
    np.array(["2021-01-01T00:00:00.5"], "M8[ns]"),
    np.array([{"a": 1}, [1, 2], np.array(5), None], dtype=object),
    np.array([[{"a": 1}, [1]], [2, 3]], dtype=object),
    [np.float32(1.5), np.int64(-2), np.bool_(True), np.complex64(1j), np.str_("s"), np.datetime64(5, "s")],
    [np.dtype("<f4"), np.dtype([("x", "<i4")]), np.dtype((np.uint8, (2, 3)))],
    {"Time.truncated": False, "episode": {"r": np.float32(1.5), "l": 5}},
]


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("value", VALUES, ids=lambda value: type(value).__name__)
def test_values_are_those_of_pythons_own_reader(value: Any, protocol: int) -> None:
    data = pickle.dumps(value, protocol)
    assert same(safe_pickle.loads(data), pickle.loads(data))
    assert same(safe_pickle.loads(memoryview(bytearray(data)), copy=True), pickle.loads(data))


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=15,
)


@given(plain, st.integers(0, 5))
def test_any_plain_value_comes_through(value: Any, protocol: int) -> None:
    assert same(safe_pickle.loads(pickle.dumps(value, protocol)), value)


@given(st.binary(max_size=60))
def test_any_bytes_are_a_value_or_an_error_of_ours(data: bytes) -> None:
    try:
        safe_pickle.loads(data)
    except gm.GristmillError:
        return


class Plain(pickle.Unpickler):
    """Python's own reader. It refuses all but plain values."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) == ("_codecs", "encode"):
            return codecs.encode
        if module in ("builtins", "__builtin__") and name in ("set", "frozenset", "bytearray", "bytes", "complex"):
            return getattr(builtins, name)
        raise pickle.UnpicklingError(f"{module}.{name}")


@settings(max_examples=int(os.environ.get("GRISTMILL_INPUTS", "100")), deadline=None)
@given(plain, st.integers(0, 5), st.randoms(use_true_random=False))
def test_damaged_pickles_are_refused_or_what_python_reads(value: Any, protocol: int, chance: random.Random) -> None:
    """We may refuse what Python reads, such as bytes after the pickle, or values left on the stack."""
    data = bytearray(pickle.dumps(value, protocol))
    for _ in range(chance.randrange(4)):
        at = chance.randrange(len(data))
        length = chance.randrange(1, 4)
        piece = chance.choice([bytes([chance.randrange(256)]), bytes(data[at : at + length]), b""])
        to = chance.randrange(len(data))
        data[to : to + chance.randrange(3)] = piece
        data += b"." * (not data)
    try:
        ours = safe_pickle.loads(bytes(data))
    except gm.GristmillError:
        return
    assert same(ours, Plain(io.BytesIO(bytes(data))).load()), bytes(data)


def test_shared_and_recursive_values_stay_so() -> None:
    inner = [1]
    shared = safe_pickle.loads(pickle.dumps({"a": inner, "b": inner}))
    assert shared["a"] is shared["b"]
    itself: list[Any] = [1]
    itself.append((itself, {"up": itself}))
    found = safe_pickle.loads(pickle.dumps(itself))
    assert found[1][0] is found
    assert found[1][1]["up"] is found
    cycle: list[Any] = []
    holder = (cycle,)
    cycle.append(holder)
    round_trip = safe_pickle.loads(pickle.dumps(holder))
    assert round_trip[0][0] is round_trip


def test_depth_is_no_danger() -> None:
    deep = b"]" * 100_000 + b"a" * 99_999 + b"."
    found, depth = safe_pickle.loads(deep), 1
    while found:
        found, depth = found[0], depth + 1
    assert depth == 100_000


def test_arrays_lie_over_the_pickle_where_they_can() -> None:
    array = np.arange(100_000, dtype="u1")
    data = pickle.dumps({"obs": array, "acts": array.astype("f8")}, 5)
    found = safe_pickle.loads(data)
    start = np.frombuffer(data, "u1")
    assert np.shares_memory(found["obs"], start)
    assert not found["obs"].flags.writeable
    assert not found["acts"].flags.writeable
    assert found["acts"].flags.aligned
    own = safe_pickle.loads(data, copy=True)
    assert own["obs"].flags.writeable
    assert not np.shares_memory(own["obs"], start)
    kept = found["obs"]
    del data, found, start
    np.testing.assert_array_equal(kept, array)


class Runs:
    """Pickles as a call of something."""

    def __init__(self, function: Any, *args: Any) -> None:
        self.call = function, args

    def __reduce__(self) -> Any:
        return self.call


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_would_run_is_refused_by_name_without_a_trace(tmp_path: Path, protocol: int) -> None:
    mark = tmp_path / "ran"
    for name, evil in {
        "system": Runs(os.system, f"touch {mark}"),
        "eval": Runs(eval, f"open({str(mark)!r}, 'w')"),
        "Path": Path("/"),
    }.items():
        path = tmp_path / "evil.pkl"
        path.write_bytes(pickle.dumps([1, {"x": evil}], protocol))
        with pytest.raises(gm.FormatError, match=name) as refused:
            safe_pickle.load(path)
        assert refused.value.kind == "forbidden"
        assert refused.value.source == str(path)
        assert refused.value.offset is not None
        assert 0 < refused.value.offset < path.stat().st_size
    assert not mark.exists()


def test_bounds_hold(tmp_path: Path) -> None:
    data = pickle.dumps(list(range(1000)))
    with pytest.raises(gm.FormatError) as refused:
        safe_pickle.loads(data, max_bytes=10_000)
    assert refused.value.kind == "too_large"
    path = tmp_path / "list.pkl"
    path.write_bytes(data)
    assert safe_pickle.load(path, max_file_bytes=len(data)) == list(range(1000))
    with pytest.raises(gm.FormatError, match="max_file_bytes") as refused:
        safe_pickle.load(path, max_file_bytes=len(data) - 1)
    assert (refused.value.kind, refused.value.source) == ("too_large", str(path))


def test_files_of_every_kind(tmp_path: Path) -> None:
    path = tmp_path / "x.pkl.gz"
    with gzip.open(path, "wb") as packed:
        pickle.dump({"a": 1}, packed)
    with gzip.open(path) as opened:
        assert safe_pickle.load(opened) == {"a": 1}
    assert safe_pickle.load(io.BytesIO(b"N.")) is None
    with pytest.raises(FileNotFoundError):
        safe_pickle.load(tmp_path / "none.pkl")
    with pytest.raises(gm.FormatError) as refused:
        safe_pickle.load(io.BytesIO(b"N.N."))
    assert (refused.value.kind, refused.value.offset) == ("corrupt", 2)
    with pytest.raises(TypeError):
        safe_pickle.loads("text")  # type: ignore[arg-type]


def test_listed_classes_become_data() -> None:
    space = b"cgymnasium.spaces.discrete\nDiscrete\n)\x81}(U\x01nK\x06ub."
    assert safe_pickle.loads(space) == safe_pickle.Instance("Discrete", (), {"n": 6})
    assert safe_pickle.loads(b"cgym.spaces.box\nBox\n.") == safe_pickle.Name("Box")
    assert safe_pickle.loads(b"\x80\x02cimitation.augment.color\nColorSpace\nU\x03RGB\x85R.") == "RGB"
    row = safe_pickle.loads(b"\x80\x02cmagical.saved_trajectories\nMAGICALTrajectory\n(K\x01K\x02K\x03K\x04t\x81.")
    assert row == safe_pickle.TrajectoryTuple(acts=1, obs=2, rews=3, infos=4)


def described(value: Any, known: Any, above: tuple[int, ...] = ()) -> None:
    """Compares a value with what the vectors say of it."""
    kind = known["t"]
    if id(value) in above:
        assert kind == "RECURSIVE"
        return
    above = (*above, id(value))
    if kind in {"NoneType", "bool"}:
        assert value is known["v"]
    elif kind in {"int", "float", "complex"}:
        assert type(value).__name__ == kind
        assert repr(value) == known["v"] or str(value) == known["v"] or kind == "complex"
    elif kind == "str":
        assert value == known["v"]
    elif kind in {"bytes", "bytearray"}:
        assert type(value).__name__ == kind
        assert value.hex() == known["hex" if "hex" in known else "v"]
    elif kind in {"list", "tuple", "deque"}:
        assert type(value).__name__ == kind
        for item, expected in zip(value, known["items"], strict=True):
            described(item, expected, above)
    elif kind in {"set", "frozenset"}:
        assert type(value).__name__ == kind
        assert len(value) == len(known["items"])
    elif kind in {"dict", "OrderedDict", "defaultdict"}:
        assert type(value).__name__ == kind
        for (key, item), (expected_key, expected) in zip(value.items(), known["items"], strict=True):
            described(key, expected_key, above)
            described(item, expected, above)
    elif kind == "ndarray":
        assert list(value.shape) == known["shape"]
        if known["dtype"] == "O":
            for item, expected in zip(value.ravel(), known["items"], strict=True):
                described(item, expected, above)
        else:
            assert str(value.dtype if value.dtype.names else value.dtype.str) == known["dtype"]
            found = np.ascontiguousarray(value).tobytes()
            assert hashlib.sha256(found).hexdigest() == known["c_order_sha256"]
    elif kind == "npscalar":
        assert value.astype(known["dtype"]).tobytes().hex() == known["hex"]
    elif kind == "dtype":
        assert str(value if value.names else value.str) == known["v"]
    elif kind == "enum":
        assert value == known["v"]
    else:
        assert kind == "opaque"
        assert isinstance(value, safe_pickle.Instance)


@pytest.mark.parametrize("folder", ["pickles_np1", "pickles_np2"])
def test_every_vector(shared: Path, folder: str) -> None:
    root = shared / "vectors" / "demos" / folder
    index = json.loads((root / "index.json").read_text())
    read = refused = 0
    for name in index["files"]:
        if name.startswith("EVIL_"):
            with pytest.raises(gm.FormatError, match=r"system|eval") as evil:
                safe_pickle.load(root / name)
            assert evil.value.kind == "forbidden"
            assert evil.value.offset is not None
            refused += 1
        else:
            described(safe_pickle.load(root / name), index["expected"][name.split(".")[0]])
            read += 1
    assert read > 300
    assert refused == 8
