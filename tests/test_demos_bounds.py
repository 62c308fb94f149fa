"""Small files that stand for large values: refused within `max_bytes` in every form; keys and types that cannot be."""

import io
import pickle
import subprocess
import sys
from collections import OrderedDict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from demo_files import MAGICALTrajectory, TrajectoryWithRew, as_if_in, npy, write_wds

import gristmill as gm
from gristmill import safe_pickle

#: What one file may take, and what the whole process may.
MOST, PROCESS = 32 << 20, 3 << 30


def laughs(depth: int) -> Any:
    """A value of 2^depth numbers in a few bytes."""
    value: Any = [1, 2]
    for _ in range(depth):
        value = [value, value]
    return value


def imitation(path: Path) -> None:
    steps = 400
    infos = [laughs(21)] * steps
    one = TrajectoryWithRew(np.zeros((steps + 1, 2)), np.zeros(steps), infos, np.zeros(steps))
    with as_if_in("imitation.data.types", TrajectoryWithRew):
        path.write_bytes(pickle.dumps([one], protocol=4))


def observations_of_imitation(path: Path) -> None:
    steps = 200_000
    one = TrajectoryWithRew([np.zeros((96, 96, 3), np.uint8)] * (steps + 1), np.zeros(steps), None, np.zeros(steps))
    with as_if_in("imitation.data.types", TrajectoryWithRew):
        path.write_bytes(pickle.dumps([one], protocol=4))


def magical(path: Path) -> None:
    view, steps = np.zeros((96, 96, 3), np.uint8), 200_000
    row = MAGICALTrajectory(
        acts=np.zeros(steps, np.int64),
        obs=[OrderedDict(allo=view, ego=view)] * (steps + 1),
        rews=[0.0] * steps,
        infos=None,
    )
    with as_if_in("magical.saved_trajectories", MAGICALTrajectory):
        path.write_bytes(
            pickle.dumps({"trajectory": row, "score": 0.5, "env_name": "MoveToRegion-Demo-v0"}, protocol=4)
        )


def procgen(path: Path) -> None:
    one = {
        "obs": np.zeros((101, 16, 16, 3), np.uint8),
        "acts": np.zeros(100),
        "rews": np.zeros(100),
        "dones": np.zeros(100),
    }
    path.write_bytes(pickle.dumps({name: [array] * 50_000 for name, array in one.items()}, protocol=4))


def atari(path: Path) -> None:
    steps = 200_000
    array = np.empty(1, dtype=object)
    array[0] = {
        "states": [np.zeros((84, 84, 4), np.uint8)] * steps,
        "actions": [np.array(0)] * steps,
        "dones": [np.array(False)] * steps,
    }
    np.savez(path, array)


CHILD = f"""
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, ({PROCESS}, {PROCESS}))
import gristmill as gm
try:
    gm.demos.open_demos(sys.argv[1], max_bytes={MOST})
except gm.FormatError as error:
    print(error.kind)
"""


@pytest.mark.parametrize(
    "write", [imitation, observations_of_imitation, magical, procgen, atari], ids=lambda f: f.__name__
)
def test_small_files_of_large_values_stay_within_the_bound(tmp_path: Path, write: Callable[[Path], None]) -> None:
    path = tmp_path / ("demo.npz" if write is atari else "demo.pkl")
    write(path)
    assert path.stat().st_size < MOST
    done = subprocess.run([sys.executable, "-c", CHILD, path], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout.strip()) == (0, "too_large"), done.stderr[-2000:]


def test_values_of_one_file_are_counted_together(tmp_path: Path) -> None:
    half = np.zeros(3 << 18, np.uint8)
    np.savez_compressed(tmp_path / "all.npz", acts=np.zeros(1), dones=np.zeros(1), a=half, b=half, c=half)
    members = io.BytesIO()
    np.savez_compressed(members, a=half, b=half, c=half)
    write_wds(tmp_path / "demos.tar", [{"dones.npy": npy(True), "obs.npz": members.getvalue()}])
    for path in (tmp_path / "all.npz", tmp_path / "demos.tar"):
        with pytest.raises(gm.FormatError) as refused:
            gm.demos.open_demos(path, max_bytes=2 << 20)
        assert (refused.value.kind, str(refused.value.member)[-5:]) == ("too_large", "c.npy")


def test_documents_are_bounded_by_what_their_values_take(tmp_path: Path) -> None:
    for suffix, data in {
        "json": b"[" + b"1," * 99_999 + b"1]",
        "mp": b"\xdd\x00\x01\x86\xa0" + b"\x01" * 100_000,
    }.items():
        write_wds(tmp_path / "demos.tgz", [{"dones.npy": npy(True), f"info.{suffix}": data}])
        with pytest.raises(gm.FormatError, match="a document of") as refused:
            gm.demos.open_demos(tmp_path / "demos.tgz", max_bytes=1 << 20)
        assert (refused.value.kind, refused.value.member) == ("too_large", f"frame_000.info.{suffix}")


def test_samples_of_very_many_members_are_refused(tmp_path: Path) -> None:
    write_wds(tmp_path / "demos.tgz", [{f"f{i}.npy": npy(i) for i in range(5000)}])
    with pytest.raises(gm.FormatError, match="more than 4096") as refused:
        gm.open(tmp_path / "demos.tgz")
    assert (refused.value.kind, refused.value.frame is None) == ("too_large", True)


def test_keys_that_collide_are_refused() -> None:
    # Python's hash of a whole number is what is left over from 2^61 - 1.
    keys = [i * (2**61 - 1) for i in range(200_000)]
    tuples = [(key,) for key in keys[:1000]]
    sets = [pickle.dumps(kind(keys[:1000]), protocol=4) for kind in (set, frozenset)]
    for data in (mapping_of(keys), mapping_of(tuples), *sets):
        with pytest.raises(gm.FormatError, match="one hash") as refused:
            safe_pickle.loads(data)
        assert refused.value.kind == "too_large"
    few = {key: i for i, key in enumerate(keys[:200])}
    assert safe_pickle.loads(pickle.dumps(few)) == few
    many = {f"name {i}": i for i in range(200_000)}
    assert safe_pickle.loads(pickle.dumps(many)) == many


def mapping_of(keys: Sequence[Any]) -> bytes:
    """A pickled mapping of these keys, written by hand: making the mapping would take minutes."""
    return b"\x80\x02}(" + b"".join(pickle.dumps(key, 2)[2:-1] + b"N" for key in keys) + b"u."


def test_keys_that_take_for_ever_to_hash_are_refused() -> None:
    twice: Any = ()
    for _ in range(60):
        twice = (twice, twice)
    deep = b"\x80\x03})" + b"\x85" * 1_000_000 + b"K\x01s."
    wide = pickle.dumps(twice, protocol=3)[2:-1]
    for data in (deep, b"\x80\x03}" + wide + b"K\x01s.", b"\x80\x04\x8f(" + wide + b"\x90."):
        with pytest.raises(gm.FormatError, match="a key of more than") as refused:
            safe_pickle.loads(data)
        assert refused.value.kind == "too_large"
    assert safe_pickle.loads(pickle.dumps({((1, 2), (3,)): 4})) == {((1, 2), (3,)): 4}


def dtype(code: str, state: Any) -> bytes:
    """A pickled dtype, of which NumPy was not asked."""
    return b"cnumpy\ndtype\n(V" + code.encode() + b"\nI00\nI01\ntR" + pickle.dumps(state, 2)[2:-1] + b"b"


def nested_records(depth: int) -> bytes:
    one = dtype("V1", (3, "|", None, None, None, 1, 1, 0))
    for _ in range(depth):
        one = b"cnumpy\ndtype\n(VV1\nI00\nI01\ntR(I3\nV|\nN(Va\nt(dVa\n(" + one + b"I0\ntsI1\nI1\nI0\ntb"
    return one + b"."


@pytest.mark.parametrize(
    "data",
    [
        b"cnumpy\ndtype\n(VS3000000000\nI00\nI01\ntR.",
        b"cnumpy\ndtype\n(VU999999999\nI00\nI01\ntR.",
        b"cnumpy\ndtype\n(VV4294967296\nI00\nI01\ntR.",
        dtype("M8", (4, "<", None, None, None, -1, -1, 0, (None, (b"ns", 2**40, 1, 1)))) + b".",
        dtype("M8", (4, "<", None, None, None, -1, -1, 0, (None, (b"ns", -5, 1, 1)))) + b".",
        b"cnumpy\ndtype\n(VV8\nI00\nI01\ntR(I3\nV|\n(cnumpy\ndtype\n(Vf4\nI00\nI01\ntR(I3\nV<\nNNNI-1\nI-1\nI0\ntb("
        + b"I1\n" * 70
        + b"ttNNI4\nI4\nI0\ntb.",
        nested_records(40),
    ],
)
def test_types_that_cannot_be_are_refused(data: bytes) -> None:
    with pytest.raises(gm.FormatError):
        safe_pickle.loads(data)


def test_shapes_that_no_record_has_are_refused(tmp_path: Path) -> None:
    for shape in [(2**31, 0), (1,) * 40]:
        header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(1013) + b"\n"
        array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"\0" * (0 in shape or 1)
        write_wds(tmp_path / "demos.tgz", [{"obs.npy": array, "dones.npy": npy(True)}])
        with pytest.raises(gm.FormatError, match="no record of NumPy") as refused:
            gm.open(tmp_path / "demos.tgz")
        assert refused.value.kind == "unsupported"


def test_whole_numbers_are_written_with_their_sign() -> None:
    from gristmill import _gristmill

    edges = [1 << bits for bits in (0, 7, 8, 15, 16, 31, 32, 62)]
    numbers = [sign * edge + more for edge in edges for sign in (1, -1) for more in (-1, 0, 1)]
    values = [*numbers, -(2**63), 2**63 - 1, 2**70, -(2**70), {-1: [-2, (-3,)]}]
    written = _gristmill.plain_pickle(pickle.dumps(values, 4))
    assert pickle.loads(written) == values
    assert pickle.dumps(values, 3) != pickle.dumps([abs(n) if isinstance(n, int) else n for n in values], 3)
