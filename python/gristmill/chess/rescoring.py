"""Better targets for chess games: the rescorer on arrays, and the tablebase that it asks."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.config import ChunkRescorerConfig, Path, plain, to_json
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout

_V6, _V7 = map(Layout, _gristmill.chess_layouts())


class Rescored(NamedTuple):
    """A rescored game."""

    #: Its records, as V7 unless they are to stay V6.
    records: Array
    #: What was changed and asked, by name; all names are always there, and `missing:KQvK.rtbw` and the like for each
    #: table that was missing.
    counts: Mapping[str, int]


class Rescorer:
    """Mends games one at a time, with its tables open: results and plies left by tablebase, policies, blunders, format.

    Args:
        config: the settings of the stage `chunk_rescorer`.
        keep_v6: V6 records stay V6.
        drop_flagged: frames flagged for deletion (bit 6 of `invariance_info`) are left out.
        fields: fields of the settings, instead of `config` or on top of it.

    Raises:
        ConfigError: a value out of range, Gaviota tables, tables that are missing and may not be; names the field.
        FormatError: a damaged table, or a game of the policy directory that is not sound.
        OSError: a directory cannot be read.
    """

    def __init__(
        self,
        config: ChunkRescorerConfig | None = None,
        *,
        keep_v6: bool = False,
        drop_flagged: bool = False,
        **fields: Any,
    ) -> None:
        settings = {**(plain(config) if config is not None else {}), **fields}
        self._compiled = _gristmill.Rescorer(to_json(settings), keep_v6, drop_flagged)

    @property
    def coverage(self) -> str | None:
        """What the tables cover, in words; `None` without tables."""
        return self._compiled.coverage()

    def __call__(self, records: npt.NDArray[np.void]) -> Rescored:
        """Rescores one game: its frames in playing order, in the fields of V6 or V7. The array is left as it is.

        Raises:
            FormatError: the game cannot be trusted; `kind` is the rule that it breaks, `frame` and `offset` say where.
        """
        array = np.asanyarray(records).reshape(-1)
        wide = "d_st" in (array.dtype.names or ())
        layout = _V7 if wide else _V6
        flat = np.ascontiguousarray(layout.records(array)).view(np.uint8)
        memory, wide, counts = self._compiled.rescore(flat, wide)
        layout = _V7 if wide else _V6
        return Rescored(Array.over(memory, (memory.nbytes // layout.itemsize,), layout.dtype), dict(counts))


def rescore(
    records: npt.NDArray[np.void],
    config: ChunkRescorerConfig | None = None,
    *,
    keep_v6: bool = False,
    drop_flagged: bool = False,
    **fields: Any,
) -> Rescored:
    """Rescores one game; see `Rescorer`, which keeps its tables open between games."""
    return Rescorer(config, keep_v6=keep_v6, drop_flagged=drop_flagged, **fields)(records)


class Tablebase:
    """Syzygy tables of some directories.

    Args:
        directories: one, or several; of two tables of one name the first counts.
        allow_missing: whether tables may be missing or damaged.

    Raises:
        ConfigError: no table is there, or a complete set of as many men has more.
        FormatError: a damaged table.
        OSError: a directory cannot be read.
    """

    def __init__(self, directories: Path | Iterable[Path], allow_missing: bool = False) -> None:
        several = [directories] if isinstance(directories, str | os.PathLike) else list(directories)
        self._compiled = _gristmill.Tablebase(several, allow_missing)

    @property
    def coverage(self) -> str:
        """What is there, and what a complete set has more, in words."""
        return self._compiled.coverage()

    @property
    def most_men(self) -> int:
        """Men of the largest positions that can be probed; 2 without tables."""
        return self._compiled.most_men()

    @property
    def faults(self) -> list[str]:
        """Damaged tables that were left out."""
        return self._compiled.faults()

    def wdl(self, fen: str) -> int:
        """The value of a position for the side to move: 2 won, 1 won but for the fifty-move rule, 0, -1, -2.

        Raises:
            FormatError: by `kind`: no position (`out_of_range`, or `illegal_position` for kings side by side); one with
                castling rights (`castling_at_probe`) or too many men (`too_many_men`); one without a sound table
                (`missing_table`, `corrupt_table`).
        """
        return self._compiled.probe(fen, False)[0]

    def dtz(self, fen: str) -> int:
        """Plies to the next capture or pawn move by best play: positive for the side that wins, 0 for a draw.

        Raises:
            FormatError: as `wdl`.
        """
        plies = self._compiled.probe(fen, True)[1]
        assert plies is not None
        return plies
