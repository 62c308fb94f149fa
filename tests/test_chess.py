"""Chess records to tensors: the format's published vectors, all forms of planes, foreign dtypes, refusals."""

import hashlib
from typing import Any

import numpy as np
import pytest
from generated_games import game, published_record

import gristmill as gm


def sha(a: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(a).tobytes()).hexdigest()


def test_layouts_are_the_published_ones() -> None:
    assert (gm.chess.V6.itemsize, gm.chess.V7.itemsize) == (8356, 8396)
    assert gm.chess.V6.dtype.fields["planes"][1] == 7440  # type: ignore[index]
    assert gm.chess.V7.names[-4:] == ("d_st", "opp_played_idx", "next_played_idx", "reserved")
    assert sha(published_record()) == "7222c7d56bf642ce6366444f79b3bb5c75a60e76993e13a3b2c62f5d3043fc6a"


def test_policy_moves_are_the_published_ones() -> None:
    moves = gm.chess.policy_moves()
    assert (
        hashlib.sha256("\n".join(moves).encode()).hexdigest()
        == "4a901f49851725496e39e34648dd58f240950fa6b72a0bbf6b2816b9af767cc7"
    )
    assert (len(moves), moves.index("d2d4"), moves.index("e7e8q")) == (1858, 293, 1828)


def test_the_published_record_gives_the_published_tensors() -> None:
    made = gm.chess.encode(published_record())
    assert list(made) == ["planes", "probs", "values"]
    assert [a.shape for a in made.values()] == [(1, 112, 8, 8), (1, 1858), (1, 6, 3)]
    assert sha(made["planes"]) == "78bafec33e16d0a4aeba5a83805e1804ea733d568df0d91d3ce426a26a095e76"
    assert sha(made["probs"]) == "aebe16a166a8852e223099f0b1ec80a928b310e93533f81e3d3141f88536f452"
    assert sha(made["values"]) == "0acc9268626d63b919b421ba939ceb3b3ea6658b173c5f5e8dbd7af2dd9cc87d"


@pytest.mark.parametrize(
    ("version", "bytes_from_8272", "expected"),
    [
        (2, "0180018001250000", "fb6826e651dd5ebe4a1d249c107dfa61a47821e69aeabd88883a399582bdf881"),
        (3, "0220004010258100", "d7b7c9094f28c4aa497482024fa6b1ad51cd3bbcbef70fd424d59fa4ba068394"),
        (4, "0000000008258300", "0441c3f6e3860f5067adfe296859a4f5fe9371bc2ef12812d872083a217bd3c7"),
        (5, "0000000000320700", "0604f14b726b88a9473dcfe826dd89ca13bf60ab8f8778a423c2345df60f3fc8"),
        (132, "0000000001638100", "05454cde05b89d1e529a453d572329c178d48e39380b624eaaba6c0818115966"),
        (133, "0000000000640100", "c3384d63c7c9fe979cde1048ba0d4dd34de6e2facb6afe887a624190999c6834"),
    ],
)
def test_other_input_formats_give_the_published_planes(version: int, bytes_from_8272: str, expected: str) -> None:
    record = published_record()
    record["input_format"] = version
    record.view(np.uint8)[8272:8280] = np.frombuffer(bytes.fromhex(bytes_from_8272), np.uint8)
    assert sha(gm.chess.encode(record)["planes"]) == expected


def test_all_forms_of_planes_agree() -> None:
    records = game(3, 7)
    f32 = gm.chess.encode(records)["planes"]
    f16 = gm.chess.encode(records, planes="f16")["planes"]
    u8 = gm.chess.encode(records, planes="u8")["planes"]
    flat = gm.chess.encode(records, planes="flat")["planes"]
    bits = gm.chess.encode(records, planes="bits")
    np.testing.assert_array_equal(f16, np.asarray(f32).astype(np.float16))
    np.testing.assert_array_equal(flat.reshape(f32.shape), f32)
    np.testing.assert_array_equal(u8[:, :109], f32[:, :109])
    np.testing.assert_array_equal(u8[:, 109, 0, 0], records["rule50_count"])
    np.testing.assert_array_equal(bits["planes"], records["planes"])
    unpacked = np.unpackbits(bits["planes"].view(np.uint8).reshape(7, 104, 8), axis=-1).reshape(7, 104, 8, 8)
    np.testing.assert_array_equal(unpacked, f32[:, :104])
    np.testing.assert_array_equal(bits["meta"][:, 5], records["rule50_count"])


def test_tensors_can_be_selected() -> None:
    records = game(1, 5)
    made = gm.chess.encode(records, planes="u8", tensors=["legal", "planes", "played_idx", "plies_left"])
    assert list(made) == ["legal", "planes", "played_idx", "plies_left"]
    assert [str(a.dtype) for a in made.values()] == ["bool", "uint8", "int32", "float32"]
    np.testing.assert_array_equal(made["legal"], records["probabilities"] >= 0)
    np.testing.assert_array_equal(made["plies_left"], records["plies_left"])
    assert all(a.ctypes.data % 64 == 0 for a in made.values())
    assert list(gm.chess.encode(records, tensors="ids")) == ["ids"]


@pytest.mark.parametrize("layout", [gm.chess.V6, gm.chess.V7])
def test_foreign_dtypes_are_conformed(layout: gm.Layout) -> None:
    records = layout.records(game(2, 4))
    expected = gm.chess.encode(records)
    parts: Any = layout.dtype.fields
    padded = np.dtype(
        {
            "names": list(layout.names),
            "formats": [parts[n][0] for n in layout.names],
            "offsets": [16 + parts[n][1] for n in layout.names],
            "itemsize": 8448,
        }
    )
    for dtype in (layout.dtype.newbyteorder(">"), padded):
        foreign = np.zeros(4, dtype)
        for name in layout.names:
            foreign[name] = records[name]
        for name, array in gm.chess.encode(foreign).items():
            np.testing.assert_array_equal(array, expected[name])
    np.testing.assert_array_equal(gm.chess.encode(records[::-1])["planes"], expected["planes"][::-1])


def test_any_shape_of_records_is_taken() -> None:
    records = game(1, 6)
    planes = gm.chess.encode(records)["planes"]
    assert gm.chess.encode(records.reshape(2, 3))["planes"].shape == (2, 3, 112, 8, 8)
    assert gm.chess.encode(records[:0])["planes"].shape == (0, 112, 8, 8)
    one = gm.chess.encode(records[2])["planes"]
    assert one.shape == (112, 8, 8)
    np.testing.assert_array_equal(one, planes[2])


def test_v7_fields_reach_the_values() -> None:
    records = gm.chess.V7.records(published_record())
    records["version"], records["d_st"], records["opp_played_idx"] = 7, 0.5, 65535
    made = gm.chess.encode(records, tensors=["values", "opp_played_idx"])
    assert sha(made["values"]) == "0942a054d76575b2a1632f3df34604daa3163d304015d457c3465fd0618b22b1"
    assert made["opp_played_idx"].tolist() == [-1]


def test_what_cannot_be_encoded_is_refused_with_its_place() -> None:
    records = game(0, 4)
    records["version"][2] = 70
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.encode(records)
    assert (refused.value.kind, refused.value.frame) == ("unknown_version", 2)
    records["version"][2], records["input_format"][3] = 6, 77
    with pytest.raises(gm.FormatError) as refused:
        gm.chess.encode(records)
    assert (refused.value.kind, refused.value.frame) == ("out_of_range", 3)
    with pytest.raises(gm.FormatError, match="known are planes"):
        gm.chess.encode(game(0, 1), tensors=["plane"])
    with pytest.raises(gm.FormatError, match="no field in common"):
        gm.chess.encode(np.zeros(1, dtype=[("x", "u1")]))
    with pytest.raises(TypeError, match="named fields"):
        gm.chess.encode(np.zeros(1))  # type: ignore[arg-type]
