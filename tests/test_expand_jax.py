"""Compact tensors made whole in JAX are those of the host, bit for bit: every input format, streams and packs, 2048."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_games import BY_MEN, COMPACT, FULL, every_format, every_position, same_bits, write_formats
from packs2048 import make_rows, write_pack

import gristmill as gm

jax = pytest.importorskip("jax", reason="skipped: JAX is not installed")
adapter: Any = pytest.importorskip("gristmill.jax")


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_every_input_format_is_that_of_the_host(planes: Any) -> None:
    records = every_format()
    made = adapter.expand(gm.chess.encode(records, tensors=COMPACT), planes=planes)
    expected = gm.chess.encode(records, planes, tensors=FULL)
    assert list(made) == list(expected)
    for name, array in expected.items():
        assert same_bits(made[name], array), name
        assert name == "values" or isinstance(made[name], jax.Array)


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_men_of_every_input_format_become_the_planes_of_the_host(planes: Any) -> None:
    records = every_position(12)
    expected = gm.chess.encode(records, planes)["planes"]
    for room in (96, 447):
        compact = gm.chess.encode(records, tensors=[f"planes:position:{room}"])
        assert compact["planes_position"].shape == (len(records), 43 + room + -(-room // 2))
        assert same_bits(adapter.expand(compact, planes=planes)["planes"], expected)


@pytest.mark.parametrize("tensors", [COMPACT, BY_MEN], ids=["packed", "men"])
def test_a_jitted_step_and_more_axes_give_the_same(tensors: list[str]) -> None:
    records = every_position(4).reshape(7, 4)
    compact = {name: np.asarray(array) for name, array in gm.chess.encode(records, tensors=tensors).items()}
    expected = gm.chess.encode(records, tensors=FULL)
    made = jax.jit(lambda batch: adapter.expand(batch, planes="f32"))(compact)
    assert all(same_bits(made[name], array) for name, array in expected.items())


def test_streams_and_packs_give_the_tensors_of_the_host(tmp_path: Path) -> None:
    pytest.importorskip("chess", reason="skipped: python-chess is not installed")
    folder = write_formats(tmp_path / "games")
    gm.pack(folder, tmp_path / "pack")

    def loaders(tensors: list[str]) -> list[gm.DataLoader]:
        config = gm.presets.lc0(folder, pool=14, reservoir=64, batch_size=32, seed=1, watch=False, tensors=tensors)
        pack = gm.open(tmp_path / "pack")
        return [gm.DataLoader(config), gm.DataLoader(pack, encoder=gm.chess.Tensors(tensors), batch_size=32, seed=1)]

    for tensors in (COMPACT, BY_MEN):
        for compact, full in zip(loaders(tensors), loaders(FULL), strict=True):
            with compact, full:
                for _ in range(8):
                    made, expected = adapter.expand(compact.get_next()), full.get_next()
                    assert list(made) == list(expected.names)
                    assert all(same_bits(made[name], array) for name, array in expected.items())


@pytest.mark.parametrize("tokens", ["i32", "u8"])
def test_nibbles_become_tokens_in_the_symmetry_that_was_drawn(tmp_path: Path, tokens: Any) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(6)))
    options: dict[str, Any] = {"dtype": tokens, "rotate": True, "flip": True}
    numbers = np.arange(len(rows))
    made = adapter.expand(rows.encode(gm.g2048.HardMove(board="nibbles", **options), numbers, seed=3), tokens=tokens)
    expected = rows.encode(gm.g2048.HardMove(**options), numbers, seed=3)
    assert expected["tokens"].max() == 16
    assert list(made) == list(expected)
    assert all(same_bits(made[name], array) for name, array in expected.items())


def test_what_is_not_compact_passes_and_what_is_wrong_is_refused() -> None:
    batch: dict[str, Any] = dict(gm.chess.encode(every_format(1), tensors=COMPACT))
    odd: dict[str, Any] = {"obs": np.ones(3), "infos": [{}]}
    passed = adapter.expand(odd)
    assert all(passed[name] is value for name, value in odd.items())
    for wrong, words in [
        ({"planes_packed": batch["planes_packed"][:, :843]}, r"uint8\(7, 843\); expected uint8\(\.\.\., 844\)"),
        ({"planes_packed": batch["planes_packed"].view(np.int8)}, "`planes_packed` is int8"),
        ({"planes_position": np.zeros((2, 74), np.uint8)}, "has rows of 74 bytes; the output planes:position:N makes"),
        ({"planes_position": np.zeros((2, 43), np.uint8)}, "has rows of 43 bytes"),
        ({"planes_position": np.zeros((2, 75), np.int8)}, "`planes_position` is int8"),
        ({"probs_values": batch["probs_values"]}, "`probs_values` without `probs_indices`"),
        ({"probs_indices": batch["probs_indices"]}, "`probs_indices` without `probs_values`"),
        (batch | {"legal": np.ones(3, bool)}, "has `legal` and a compact form of it"),
    ]:
        with pytest.raises(ValueError, match=words):
            adapter.expand(wrong)
    with pytest.raises(ValueError, match="planes='f64'; expected f32, bf16, f16, u8"):
        adapter.expand(batch, planes="f64")
    with pytest.raises(TypeError, match="jax_enable_x64"):
        adapter.expand(batch, tokens="i64")
    with pytest.raises(TypeError, match="found list"):
        adapter.expand([])
