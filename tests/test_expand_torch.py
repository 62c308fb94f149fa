"""Compact tensors made whole in PyTorch are those of the host, bit for bit, of every input format and of 2048."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compact_games import BY_MEN, COMPACT, FULL, every_format, every_position, same_bits, write_formats
from packs2048 import make_rows, write_pack

import gristmill as gm

torch = pytest.importorskip("torch", reason="skipped: PyTorch is not installed")
adapter: Any = pytest.importorskip("gristmill.torch")


def bits(tensor: Any) -> Any:
    """A tensor as NumPy has it; bfloat16, which it has not, as whole numbers."""
    return tensor.view(torch.uint16).numpy() if tensor.dtype == torch.bfloat16 else tensor.numpy()


def compact_of(records: Any, tensors: list[str] = COMPACT) -> dict[str, Any]:
    return {name: torch.from_dlpack(a) for name, a in gm.chess.encode(records, tensors=tensors).items()}


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_every_input_format_is_that_of_the_host(planes: Any) -> None:
    records = every_format()
    made = adapter.expand(compact_of(records), planes=planes)
    expected = gm.chess.encode(records, planes, tensors=FULL)
    assert list(made) == list(expected)
    for name, array in expected.items():
        host = array.view(np.uint16) if planes == "bf16" and name == "planes" else array
        assert same_bits(bits(made[name]), host), name


@pytest.mark.parametrize("planes", ["f32", "bf16", "f16", "u8"])
def test_men_of_every_input_format_become_the_planes_of_the_host(planes: Any) -> None:
    records = every_position(12)
    host = gm.chess.encode(records, planes)["planes"]
    for room in (96, 447):
        made = adapter.expand(compact_of(records, [f"planes:position:{room}"]), planes=planes)["planes"]
        assert same_bits(bits(made), host.view(np.uint16) if planes == "bf16" else host)


@pytest.mark.parametrize("tensors", [COMPACT, BY_MEN], ids=["packed", "men"])
def test_a_compiled_step_and_more_axes_give_the_same(tensors: list[str]) -> None:
    records = every_position(4).reshape(7, 4)
    compiled = torch.compile(adapter.expand, backend="eager", fullgraph=True)
    made, expected = compiled(compact_of(records, tensors)), gm.chess.encode(records, tensors=FULL)
    assert all(same_bits(bits(made[name]), array) for name, array in expected.items())


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
                    assert all(same_bits(bits(made[name]), array) for name, array in expected.items())


@pytest.mark.parametrize("tokens", ["i64", "i32", "u8"])
def test_nibbles_become_tokens_in_the_symmetry_that_was_drawn(tmp_path: Path, tokens: Any) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(6)))
    options: dict[str, Any] = {"dtype": tokens, "rotate": True, "flip": True}
    numbers = np.arange(len(rows))
    nibbles = rows.encode(gm.g2048.HardMove(board="nibbles", **options), numbers, seed=3)
    made = adapter.expand({name: torch.from_dlpack(a) for name, a in nibbles.items()}, tokens=tokens)
    expected = rows.encode(gm.g2048.HardMove(**options), numbers, seed=3)
    assert all(same_bits(made[name].numpy(), array) for name, array in expected.items())


def test_what_is_wrong_is_refused() -> None:
    with pytest.raises(ValueError, match=r"`legal_bits` is uint8\(2, 7\)"):
        adapter.expand({"legal_bits": torch.zeros(2, 7, dtype=torch.uint8)})
    with pytest.raises(ValueError, match="tokens='i16'; expected i64, i32, u8"):
        adapter.expand({}, tokens="i16")
