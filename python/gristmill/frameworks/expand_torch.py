"""Compact tensors -> those of the host encoder, in PyTorch, on the device where they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from gristmill.frameworks import compact
from gristmill.frameworks.compact import MOVES, STORED
from gristmill.frameworks.tensors import tensors
from gristmill.loaders.batch import Batch

_PLANES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "u8": torch.uint8}
_TOKENS = {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}


def expand(
    batch: Batch | Mapping[str, Any], *, planes: compact.Planes = "f32", tokens: compact.Tokens = "i64"
) -> dict[str, Any]:
    """The tensors of the host encoder, bit for bit, made of the compact ones on the device where these lie.

    `planes_packed` becomes `planes` (..., 112, 8, 8), `probs_indices` and `probs_values` become `probs` (..., 1858),
    `legal_bits` becomes `legal` (bool, (..., 1858)), `board_nibbles` becomes `tokens` (..., 16); docs/format/compact.md
    has their bytes.
    All else passes as it is. It is made of plain operations, so that `torch.compile` takes it as a part of a step.

    Args:
        batch: a batch, or tensors by name, with any leading axes.
        planes: element type of `planes`, as the outputs `planes:f32`, `planes:bf16`, `planes:f16` and `planes:u8` have.
        tokens: element type of `tokens`: what the encoder's `dtype` would be.

    Raises:
        ValueError: a compact tensor of another type or shape; a name that is there twice; an element type not known.
    """
    made: dict[str, Callable[..., Any]] = {
        "planes": partial(_planes, dtype=compact.choice("planes", planes, _PLANES)),
        "probs": _probs,
        "legal": _legal,
        "tokens": partial(_tokens, dtype=compact.choice("tokens", tokens, _TOKENS)),
    }
    found = tensors(batch.asdict()) if isinstance(batch, Batch) else batch
    return compact.expanded(found, made, lambda tensor: str(tensor.dtype).removeprefix("torch."))


def _bits(numbers: torch.Tensor, *, highest_first: bool = False) -> torch.Tensor:
    """The bits of bytes, with an axis of 8 more."""
    places = torch.arange(8, dtype=torch.uint8, device=numbers.device)
    return (numbers[..., None] >> (places.flip(0) if highest_first else places)) & 1


def _planes(packed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    lead, device = packed.shape[:-1], packed.device
    made = torch.empty((*lead, 112, 8, 8), dtype=dtype, device=device)
    made[..., :104, :, :] = _bits(packed[..., :STORED], highest_first=True).reshape(*lead, 104, 8, 8)
    # Scalars with two axes more, which are rank and file.
    us_ooo, us_oo, them_ooo, them_oo, side, count, info, _, form = (
        packed[..., STORED + i, None, None] for i in range(9)
    )
    ranks = torch.arange(8, device=device)[:, None]
    files = torch.arange(8, dtype=torch.uint8, device=device)

    def edge(first: torch.Tensor, last: torch.Tensor) -> torch.Tensor:
        return torch.where(ranks == 0, (first >> files) & 1, torch.where(ranks == 7, (last >> files) & 1, 0))

    masks, nothing = form >= 2, torch.zeros_like(form)
    made[..., 104, :, :] = torch.where(masks, edge(us_ooo, them_ooo), us_ooo)
    made[..., 105, :, :] = torch.where(masks, edge(us_oo, them_oo), us_oo)
    made[..., 106, :, :] = torch.where(masks, nothing, them_ooo)
    made[..., 107, :, :] = torch.where(masks, nothing, them_oo)
    made[..., 108, :, :] = torch.where(form >= 3, edge(nothing, side), side)
    if dtype == torch.uint8:
        made[..., 109, :, :] = count
    else:
        table = torch.from_numpy(compact.quotients()).to(dtype).to(device)
        made[..., 109, :, :] = table[(form >= 4).long(), count.long()]
    made[..., 110, :, :] = (form >= 132) & (info >= 128)
    made[..., 111, :, :] = 1
    return made


def _probs(indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    # As whole numbers: a NaN keeps its bits.
    bits = values.contiguous().view(torch.int32)
    moves = indices.long()
    policy = bits[..., -1:].repeat(*[1] * (bits.dim() - 1), MOVES + 1)
    # What is no move goes after the last one.
    policy.scatter_(-1, torch.where(moves < 0, MOVES, moves), bits)
    return policy[..., :MOVES].contiguous().view(torch.float32)


def _legal(packed: torch.Tensor) -> torch.Tensor:
    return _bits(packed).reshape(*packed.shape[:-1], -1)[..., :MOVES].bool()


def _tokens(packed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    lead, halves = packed.shape[:-1], packed[..., :8]
    cells = torch.stack([halves >> 4, halves & 15], dim=-1).reshape(*lead, 16)
    return torch.where(_bits(packed[..., 8:]).reshape(*lead, 16) == 1, 16, cells).to(dtype)
