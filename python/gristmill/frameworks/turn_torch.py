"""Draws of rows -> the symmetry that the host draws, and tensors turned by it, in PyTorch, on their device."""

from __future__ import annotations

import torch

from gristmill.frameworks import symmetries

_WORD = 0xFFFFFFFF


def _bits(draws: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """The lower and the upper half of the random bits of rows."""
    k0, k1, c0, c1, words = (draws[..., i] for i in range(5))
    c2, c3 = words >> 2, torch.zeros_like(words)
    for _ in range(symmetries.ROUNDS):
        # Products of 64 bits, of which no sign matters.
        p, q = (c * by for c, by in zip((c0, c2), symmetries.MULTIPLIERS, strict=True))
        c0, c1, c2, c3 = (q >> 32 & _WORD) ^ c1 ^ k0, q & _WORD, (p >> 32 & _WORD) ^ c3 ^ k1, p & _WORD
        k0, k1 = (k + step & _WORD for k, step in zip((k0, k1), symmetries.KEY_STEPS, strict=True))
    # Bits are two words, so that an even number of them is drawn before.
    is_first = words & 2 == 0
    return torch.where(is_first, c0, c2), torch.where(is_first, c1, c3)


def _choice(how: torch.Tensor, half: torch.Tensor, choices: int) -> torch.Tensor:
    """0 where nothing is drawn; one of all choices, or of all but the first."""
    changed = 1 + (half * (choices - 1) >> 32)
    return torch.where(how == 0, 0, torch.where(how == 1, half * choices >> 32, changed))


def symmetry(draws: torch.Tensor) -> torch.Tensor:
    """The symmetry of each row of `symmetry_draws` (int32, (..., 6)), 0 to 7."""
    words = draws.long() & _WORD
    low, high = _bits(words)
    how = words[..., 5]
    turns, mirror = _choice(how % 3, low, 4), _choice(how // 3, high, 3)
    return torch.from_numpy(symmetries.NUMBERS).to(draws.device)[3 * turns + mirror].long()


def turned(name: str, symmetry: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A tensor of the name as the host turns it. `symmetry` has the leading axes of `values`."""
    what = symmetries.TURNED[name]
    if what == "directions":
        directions = torch.from_numpy(symmetries.DIRECTIONS).to(values.device).flatten()
        return directions[4 * symmetry + values.long()].to(values.dtype)
    places = torch.from_numpy(symmetries.PLACES[what]).to(values.device)[symmetry].long()
    return torch.gather(values, -1, places)


def image(draws: torch.Tensor) -> torch.Tensor:
    """The image of each row of `image_draws` (int32, (..., 5)), 0 to 7 (uint8)."""
    return (_bits(draws.long() & _WORD)[0] & 7).to(torch.uint8)


def imaged(axes: symmetries.Axes, image: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    """A tensor of Go as the host turns it. `image` has the leading axes of `values`."""
    edge = symmetries.edge(axes, tuple(values.shape))
    points = edge * edge
    places = torch.from_numpy(symmetries.images(edge)).to(values.device)[image.long()].long()[..., None, :]
    if axes == "points":
        return _moved(values.flatten(-2), places).reshape(values.shape)
    if axes == "moves":
        return torch.cat([_moved(values[..., :points], places), values[..., points:]], dim=-1)
    weights = torch.arange(7, -1, -1, dtype=torch.uint8, device=values.device)
    bits = ((values[..., None] >> weights) & 1).flatten(-2)
    turned = torch.cat([_moved(bits[..., :points], places), torch.zeros_like(bits[..., points:])], dim=-1)
    return (turned.reshape(*values.shape, 8) << weights).sum(-1, dtype=torch.uint8)


def _moved(values: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """What stands at places of the last axis, which are the same for each plane."""
    return torch.gather(values, -1, places.expand(values.shape))
