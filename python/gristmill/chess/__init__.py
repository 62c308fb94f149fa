"""Leela Chess Zero records: the layouts, the policy vector, the tensors made of them, and the rules for games."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.chess.features import FEATURES, Sparse, dense, sparse
from gristmill.chess.rescoring import Rescored, Rescorer, Tablebase, rescore
from gristmill.options.arguments import named_fields
from gristmill.records.arrays import Array
from gristmill.records.drawing import Drawing, chess_board
from gristmill.records.layout import Layout

__all__ = [
    "FEATURES",
    "V6",
    "V7",
    "Rescored",
    "Rescorer",
    "Sparse",
    "Tablebase",
    "Tensors",
    "board",
    "dense",
    "encode",
    "fens",
    "moves",
    "policy_moves",
    "rescore",
    "sparse",
]

#: The 8356-byte V6 record and the 8396-byte V7 record.
V6, V7 = map(Layout, _gristmill.chess_layouts())


#: The rules that games are judged by, and what each says.
RULES: Mapping[str, str] = MappingProxyType({name: says for name, says, _ in _gristmill.chess_rules()})


class Breach(NamedTuple):
    """One thing that is wrong with a game."""

    #: The rule that is broken: a key of `RULES`.
    rule: str
    #: The frame, counted from 0.
    frame: int
    #: First byte within the record of the field that the rule is about.
    offset: int
    #: What was expected and what was found.
    reason: str


#: Forms of the tensor `planes`.
Planes: TypeAlias = Literal["f32", "f16", "bf16", "u8", "bits", "packed", "position", "flat"]


@named_fields
@dataclass(frozen=True)
class Tensors:
    """Which tensors a loader makes of games of chess: the encoder of `gm.DataLoader(games, encoder=...)`.

        gm.chess.Tensors(["planes", "probs", "values", "legal", "ids"], planes="u8")

    `ids` (uint64, (3)) says where a position is from: chunk file and game there, as columns `file` and `chunk` of the
    pack's table `games` have them, and its number in the game.

    `probs:sparse`, `legal:bits`, `planes="packed"` and `planes="position"` are small: `gristmill.jax.expand` and
    `gristmill.torch.expand` make `probs`, `legal` and `planes` of them on a device (docs/format/compact.md).

    `halfkp_white`, `halfkav2_hm_stm` and others of `FEATURES` are sparse features of NNUE, int32 (32) padded with -1
    (docs/format/nnue-features.md), of which `sparse` and `gristmill.torch.sparse` make one list with offsets.

    Args:
        tensors: what to make, in this order, as in a loader's config; by default `planes`, `probs` (1858) and `values`
            (6, 3). The tuple of older trainers is `planes:flat`, `probs`, `winner`, `best_q`, `plies_left`.
        planes: form of the tensor `planes`, as for `encode`.
    """

    tensors: Sequence[str] | None = None
    planes: Planes = "f32"

    @property
    def names(self) -> list[str]:
        """What is made, as texts of a config."""
        wanted = ("planes", "probs", "values") if self.tensors is None else self.tensors
        texts = (wanted,) if isinstance(wanted, str) else wanted
        return [f"planes:{self.planes}" if text == "planes" else text for text in texts]


@functools.cache
def policy_moves() -> tuple[str, ...]:
    """The 1858 moves of the policy vector in order of index, such as `d2d4` or `a7b8q`.

    Moves are as the side to move sees them; castling is the king capturing its own rook, and a promotion to a
    knight is the plain move.
    """
    return tuple(_gristmill.chess_policy_moves())


def encode(
    records: npt.NDArray[np.void] | np.void,
    planes: Planes = "f32",
    tensors: Iterable[str] | None = None,
) -> dict[str, Array]:
    """Encodes V6 or V7 records into tensors, by name.

    Args:
        records: a structured array of any shape with the field names of V6 or V7; its dtype may be padded, of
            foreign byte order, or lack the fields of V7.
        planes: form of the tensor `planes`: (112, 8, 8) as `f32`, `f16`, `bf16` or `u8`; (112, 64) f32 as `flat`;
            104 u64 words, and a tensor `meta` of 12 bytes, as `bits`; a tensor `planes_packed` of 844 bytes as
            `packed`; a tensor `planes_position` of 75 bytes as `position`. NumPy has `bf16` by the package `ml_dtypes`;
            without it, its bits are uint16.
        tensors: what to make, as in a loader's config; by default `planes`, `probs` (1858) and `values` (6, 3).

    Returns:
        One array per tensor: the shape of `records`, then that of the tensor.

    Raises:
        FormatError: a tensor that does not exist, a record of unknown version or input format, one that a compact form
            has no room for.
    """
    array = np.asanyarray(records)
    names = Tensors(tensors if tensors is None or isinstance(tensors, str) else tuple(tensors), planes).names
    made = _gristmill.chess_encode(np.ascontiguousarray(V7.records(array)).reshape(-1).view(np.uint8), names)
    return {name: Array.over(memory, (*array.shape, *shape[1:]), dtype) for name, dtype, shape, memory in made}


def fens(records: npt.NDArray[np.void]) -> list[str]:
    """The position of each record in Forsyth-Edwards notation, as White sees it; the move number is 1.

    Raises:
        ValueError: records that are not one run.
        FormatError: a record that holds no position: two men on a square, an unknown input format.
    """
    return _gristmill.chess_fens(*_stored(records))


def moves(records: npt.NDArray[np.void]) -> list[tuple[str | None, str | None]]:
    """The move that was played and the best one of each record, as White sees the board; `None` without a search.

    Castling is the king capturing its own rook, and a promotion names its piece: `e1h1`, `a7a8n`.

    Raises:
        ValueError: records that are not one run.
        FormatError: a record that holds no position.
    """
    return _gristmill.chess_moves(*_stored(records))


def board(record: npt.NDArray[np.void] | np.void) -> Drawing:
    """A position as a picture in SVG, which notebooks show: as White sees it, with the move that was played
    (yellow) and the best one (green).

    Args:
        record: one V6 or V7 record, such as `pack.games[3][12]`.

    Raises:
        ValueError: more records than one.
        FormatError: a record that holds no position.
    """
    records = np.asanyarray(record).reshape(-1)
    if records.shape != (1,):
        raise ValueError(f"expected one record, found {np.shape(record)}; a board shows one position")
    played, best = moves(records)[0]
    shown = [(move, kind) for move, kind in ((best, "best"), (played, "played")) if move is not None]
    return chess_board(fens(records)[0], shown)


def check(records: npt.NDArray[np.void], rules: Iterable[str] = ("default",)) -> list[Breach]:
    """Judges one game: what breaks the rules, frame by frame; an empty list when nothing does.

    Args:
        records: the game, a structured array (plies) with the field names of V6 or V7; its dtype may be padded or
            of foreign byte order.
        rules: names from `RULES`, `default` (all that a sound game of any writer keeps) or `all`; `-name` takes one
            out again, and a list that begins so starts from `default`.

    Raises:
        ValueError: records that are not one run of plies.
        FormatError: a rule that does not exist, fields of another type or shape.
    """
    wanted = [rules] if isinstance(rules, str) else list(rules)
    return [Breach(*breach) for breach in _gristmill.chess_check(*_stored(records), wanted)]


def _stored(records: npt.NDArray[np.void]) -> tuple[npt.NDArray[np.uint8], int]:
    array = np.asanyarray(records)
    if array.ndim != 1:
        raise ValueError(f"expected one run of records, shape (plies,); found shape {array.shape}")
    layout = V7 if "d_st" in (array.dtype.names or ()) else V6
    return np.ascontiguousarray(layout.records(array)).view(np.uint8), layout.itemsize
