"""Compact tensors -> those of the host encoder, in PyTorch, on the device where they lie."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import torch

from gristmill.frameworks import compact
from gristmill.frameworks.compact import FIXED, MOVES, STORED
from gristmill.frameworks.tensors import tensors
from gristmill.frameworks.turn_torch import image, imaged, symmetry, turned
from gristmill.loaders.batch import Batch

_PLANES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16, "u8": torch.uint8}
#: Divided here: a compiled step would divide on the device, which may give another last bit.
_QUOTIENTS = torch.from_numpy(compact.quotients())
_TOKENS = {"i64": torch.int64, "i32": torch.int32, "u8": torch.uint8}


def expand(
    batch: Batch | Mapping[str, Any], *, planes: compact.Planes = "f32", tokens: compact.Tokens = "i64"
) -> dict[str, Any]:
    """The tensors of the host encoder, bit for bit, made of the compact ones on the device where these lie.

    `planes_packed` or `planes_position` becomes `planes` (..., 112, 8, 8), `probs_indices` and `probs_values` become
    `probs` (..., 1858), `legal_bits` becomes `legal` (bool, (..., 1858)), `board_nibbles` becomes `tokens` (..., 16);
    docs/format/compact.md has their bytes. Where `symmetry_draws` lies, which is taken out, the symmetry of each row is
    drawn of it as the host draws it, and board, values, moves and masks are turned; so are planes, values and moves of
    KataGo's rows where `image_draws` lies, which becomes `symmetry` (uint8, (...)).
    All else passes as it is. It is made of plain operations, so that `torch.compile` takes it as a part of a step.

    Args:
        batch: a batch, or tensors by name, with any leading axes.
        planes: element type of `planes`, as the outputs `planes:f32`, `planes:bf16`, `planes:f16` and `planes:u8` have.
        tokens: element type of `tokens`: what the encoder's `dtype` would be.

    Raises:
        ValueError: a compact tensor of another type or shape; a name that is there twice; an element type not known.
    """
    of_planes = compact.choice("planes", planes, _PLANES)
    made: dict[str, Callable[..., Any]] = {
        "planes": partial(_planes, dtype=of_planes),
        "position": partial(_position, dtype=of_planes),
        "probs": _probs,
        "legal": _legal,
        "tokens": partial(_tokens, dtype=compact.choice("tokens", tokens, _TOKENS)),
        "symmetry": symmetry,
        "turned": turned,
        "image": image,
        "imaged": imaged,
    }
    found = tensors(batch.asdict()) if isinstance(batch, Batch) else batch
    return compact.expanded(found, made, lambda tensor: str(tensor.dtype).removeprefix("torch."))


def _bits(numbers: torch.Tensor, *, highest_first: bool = False) -> torch.Tensor:
    """The bits of bytes, with an axis of 8 more."""
    places = torch.arange(8, dtype=torch.uint8, device=numbers.device)
    return (numbers[..., None] >> (places.flip(0) if highest_first else places)) & 1


def _nibbles(numbers: torch.Tensor) -> torch.Tensor:
    """The halves of bytes, the upper one first."""
    return torch.stack([numbers >> 4, numbers & 15], dim=-1).flatten(-2)


def _planes(packed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    stored = _bits(packed[..., :STORED], highest_first=True).reshape(*packed.shape[:-1], 104, 8, 8)
    rest = packed[..., STORED:]
    return _whole(stored, torch.cat([rest[..., :7], rest[..., 8:9]], dim=-1), dtype)


def _position(packed: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    changes, device = compact.room(packed.shape[-1]), packed.device
    cells = _nibbles(packed[..., :32])
    repeated, shown, changed = (_bits(packed[..., i]) for i in (32, 33, 34))
    squares, men = packed[..., FIXED : FIXED + changes], _nibbles(packed[..., FIXED + changes :])[..., :changes]
    # Of each changed square, and of each board, which of the boards with changes it is.
    of_square = torch.cumsum((squares >> 6) & 1, dim=-1, dtype=torch.int32)
    of_board = torch.cumsum(changed, dim=-1, dtype=torch.int32)
    is_there = (squares[..., None] & 191) == torch.arange(64, dtype=torch.uint8, device=device)
    kinds = torch.arange(1, 13, dtype=torch.uint8, device=device)[:, None]
    boards: list[torch.Tensor] = []
    for board in range(8):
        is_of = (of_square == of_board[..., board, None]) & (changed[..., board, None] == 1)
        here = is_there & is_of[..., None]
        put = torch.where(here, men[..., None] + 1, 0).amax(-2)
        cells = torch.where(put > 0, put - 1, cells).to(torch.uint8)
        boards.append((cells[..., None, :] == kinds) & (shown[..., board, None, None] == 1))
        boards.append((repeated[..., board, None, None] == 1).expand(*packed.shape[:-1], 1, 64))
    stored = torch.cat(boards, dim=-2).to(torch.uint8).reshape(*packed.shape[:-1], 104, 8, 8)
    return _whole(stored, packed[..., 35:FIXED], dtype)


def _whole(stored: torch.Tensor, scalars: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """The stored planes, and those of seven scalars and the input format behind them."""
    device = stored.device
    made = torch.empty((*stored.shape[:-3], 112, 8, 8), dtype=dtype, device=device)
    made[..., :104, :, :] = stored
    # Scalars with two axes more, which are rank and file.
    us_ooo, us_oo, them_ooo, them_oo, side, count, info, form = (scalars[..., i, None, None] for i in range(8))
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
        table = _QUOTIENTS.to(dtype).to(device)
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
    large = _bits(packed[..., 8:]).reshape(*packed.shape[:-1], 16)
    return torch.where(large == 1, 16, _nibbles(packed[..., :8])).to(dtype)
