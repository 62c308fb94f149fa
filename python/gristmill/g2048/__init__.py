"""2048 boards and step rows: layouts, packed boards, the heuristic value, encoders and the fit of a tokenizer."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.errors import ConfigError, FormatError
from gristmill.g2048.recording import SELF_PLAY_ROW, SelfPlayWriter, SessionRecorder
from gristmill.jobs import part
from gristmill.options.arguments import named
from gristmill.packs.encoders import BinnedEV, HardMove, Steps, Tokens
from gristmill.packs.rows import Rows
from gristmill.records.arrays import Array
from gristmill.records.drawing import Drawing, g2048_board
from gristmill.records.layout import Layout

__all__ = [
    "CELLS",
    "PACKED_ROW",
    "ROW",
    "SELF_PLAY_ROW",
    "VALUE_ROW",
    "BinnedEV",
    "HardMove",
    "SelfPlayWriter",
    "SessionRecorder",
    "Steps",
    "TokenizerShare",
    "Tokens",
    "board",
    "board_eval",
    "fit_tokenizer",
    "pack_boards",
    "unpack_boards",
]

#: The 48-byte step row (aligned), the 46-byte one of existing packs, and the 24-byte row of values beside either.
ROW, PACKED_ROW, VALUE_ROW = map(Layout, _gristmill.g2048_layouts())

#: Cells of a board.
CELLS = 16


@named
def board_eval(exps: npt.ArrayLike, *, interactive: bool = False) -> Array:
    """The line heuristic's value of boards, exactly as step rows store it in `board_eval`.

    Args:
        exps: integers of shape (..., 16): ranks in row-major order, 0 for empty, r for the tile 2^r.
        interactive: the variant that takes the better direction of rows and of columns; no row stores it.

    Returns:
        int32 of shape (...).

    Raises:
        FormatError: a rank above 31, or a value beyond 32 bits; `frame` is the index of the board in row-major order.
        ValueError: not sixteen cells in the last axis, or numbers outside 0 to 255.
        TypeError: not integers.
    """
    ranks = _ranks(exps)
    return Array.over(_gristmill.g2048_board_eval(ranks.reshape(-1), interactive), ranks.shape[:-1], "<i4")


def pack_boards(exps: npt.ArrayLike) -> tuple[Array, Array]:
    """Boards as step rows store them: `board` (uint64) and `tile_65536_mask` (uint16), each of shape (...).

    Ranks of 16 and more are 15 in `board` and a bit of the mask, so that 131072 and more come back as 65536.
    Takes and raises what `board_eval` does, but for values beyond 32 bits.
    """
    ranks = _ranks(exps)
    boards, masks = _gristmill.g2048_pack(ranks.reshape(-1))
    return Array.over(boards, ranks.shape[:-1], "<u8"), Array.over(masks, ranks.shape[:-1], "<u2")


@named
def unpack_boards(board: npt.ArrayLike, tile_65536_mask: npt.ArrayLike = 0) -> Array:
    """Ranks (uint8, shape (..., 16)) of packed boards; the two arguments are broadcast against each other.

    A set bit of the mask is rank 16, whatever the board says.

    Raises:
        ValueError: numbers that do not fit in 64 and 16 bits.
        TypeError: not integers.
    """
    boards, masks = np.broadcast_arrays(_unsigned(board, "<u8"), _unsigned(tile_65536_mask, "<u2"))
    flat = [np.ascontiguousarray(array).reshape(-1).view(np.uint8) for array in (boards, masks)]
    return Array.over(_gristmill.g2048_unpack(*flat), (*boards.shape, CELLS), "u1")


def board(record: npt.ArrayLike) -> Drawing:
    """A board of 2048 as a picture in SVG, which notebooks show.

    Args:
        record: sixteen ranks in row-major order, such as `unpack_boards` gives; or one row of a pack, `rows[3]`.

    Raises:
        ValueError: more boards than one.
        FormatError: a rank above 31.
    """
    array = np.asanyarray(record)
    names = array.dtype.names or ()
    if "board" in names:
        array = unpack_boards(array["board"], array["tile_65536_mask"] if "tile_65536_mask" in names else 0)
    elif "exps" in names:
        array = np.asanyarray(array["exps"])
    ranks = _ranks(array)
    if ranks.size != CELLS:
        raise ValueError(f"expected one board, found {ranks.size // CELLS}; a picture shows one")
    found = ranks.reshape(-1).tolist()
    if max(found) > 31:
        raise FormatError(f"rank {max(found)}; boards have ranks from 0 to 31")
    return g2048_board(found)


@dataclass(frozen=True)
class TokenizerShare:
    """A share of a fit: its folder, its number, the rows that it read, and the differences that it found in them."""

    folder: str
    share: part.Share
    rows: int
    differences: int
    #: Whether this was a dry run, which reads and writes nothing.
    dry_run: bool


@overload
def fit_tokenizer(
    rows: Rows | Iterable[Rows],
    output: Path,
    *,
    num_bins: int = 32,
    search_failure_cutoff: int = -1500,
    zero_tolerance: float = 1e-9,
    valuations: Iterable[str] | None = None,
    overwrite: bool = False,
) -> dict[str, Any]: ...
@overload
def fit_tokenizer(
    rows: Rows | Iterable[Rows],
    output: Path,
    *,
    num_bins: int = 32,
    search_failure_cutoff: int = -1500,
    zero_tolerance: float = 1e-9,
    valuations: Iterable[str] | None = None,
    share: part.OneOf,
    dry_run: bool = False,
) -> TokenizerShare: ...
@named
def fit_tokenizer(
    rows: Rows | Iterable[Rows],
    output: Path,
    *,
    num_bins: int = 32,
    search_failure_cutoff: int = -1500,
    zero_tolerance: float = 1e-9,
    valuations: Iterable[str] | None = None,
    overwrite: bool = False,
    share: part.OneOf | None = None,
    dry_run: bool = False,
) -> dict[str, Any] | TokenizerShare:
    """Fits the bins of a tokenizer (advantage, version 2) to rows and writes `tokenizer.json`.

    The rows are read a few times; memory does not grow with them. Does what `gristmill tokenizer fit` does.

    Args:
        rows: the rows, of all valuations that are fitted; of one pack, or of several, as a list.
        output: the file to write.
        num_bins: bins of each kind of valuation.
        search_failure_cutoff: search branches with a lower advantage over `board_eval` are failures, in thousandths.
        zero_tolerance: tuple values up to this are failures, differences up to this are ties.
        valuations: which of `search`, `tuple10` and `tuple11` to fit; all by default. Encoding rows of others with the
            result is refused, and the reference's programs read only tokenizers of all three.
        overwrite: whether a file that is there is replaced.
        share: of a fit by many machines, the share that is made now, `"17/400"` or `(17, 400)`, counted from 1. It is
            made beside `output`, once however often this is called, and reads its rows once; `gristmill.commit` makes
            the tokenizer of all, to the byte that of one process, and reads no rows.
        dry_run: with `share`, see what the share would be only.

    Returns:
        What the fit was made of: rows, passes, and for each valuation its counts and edges. Of a share what it is.

    Raises:
        FileExistsError: the file is there already.
        ConfigError: `valuations` has an unknown name, or none; options that do not fit each other; a share of another
            plan than those that are there, or of a tokenizer that is there.
        FormatError: a valuation has fewer losing branches than bins; of shares, the commit raises it.
    """
    if share is not None and overwrite:
        raise ConfigError("a share replaces no tokenizer; a commit with overwrite does", field="share")
    if share is None and dry_run:
        raise ConfigError("it goes with share, for one share of a fit", field="dry_run")
    found = json.loads(
        _gristmill.fit_tokenizer(
            [one._compiled for one in ([rows] if isinstance(rows, Rows) else rows)],
            os.fspath(output),
            {
                "num_bins": num_bins,
                "search_failure_cutoff": search_failure_cutoff,
                "zero_tolerance": zero_tolerance,
                "valuations": [valuations] if isinstance(valuations, str) else valuations and list(valuations),
                "overwrite": overwrite,
                "share": None if share is None else part.words(share),
                "dry_run": dry_run,
            },
        )
    )
    if share is None:
        return dict[str, Any](found)
    return TokenizerShare(**{**found, "share": part.Share(**found["share"])})


def _ranks(exps: npt.ArrayLike) -> npt.NDArray[np.uint8]:
    """Contiguous bytes of shape (..., 16)."""
    ranks = _unsigned(exps, "u1")
    if ranks.shape[-1:] != (CELLS,):
        raise ValueError(f"expected boards of shape (..., {CELLS}), found {ranks.shape}")
    return np.ascontiguousarray(ranks)


def _unsigned(numbers: npt.ArrayLike, dtype: str) -> npt.NDArray[np.unsignedinteger]:
    """The numbers as an unsigned dtype that holds all of them."""
    array, wanted = np.asarray(numbers), np.dtype(dtype)
    if array.dtype.kind not in "iu":
        raise TypeError(f"expected integers, found {array.dtype}")
    if array.dtype != wanted and array.size:
        least, most = int(array.min()), int(array.max())
        if least < 0 or most > np.iinfo(wanted).max:
            raise ValueError(f"expected numbers from 0 to {np.iinfo(wanted).max}, found {least} to {most}")
    return array.astype(wanted, copy=False)
