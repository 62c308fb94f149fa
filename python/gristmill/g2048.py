"""2048: encoders of step rows, and the fit of a tokenizer."""

from __future__ import annotations

import json
import os
from typing import Any

from gristmill import _gristmill
from gristmill.config import Path
from gristmill.encoders import BinnedEV, HardMove, Steps, Tokens
from gristmill.rows import Rows

__all__ = ["BinnedEV", "HardMove", "Steps", "Tokens", "fit_tokenizer"]


def fit_tokenizer(
    rows: Rows,
    output: Path,
    *,
    num_bins: int = 32,
    search_failure_cutoff: int = -1500,
    zero_tolerance: float = 1e-9,
    overwrite: bool = False,
) -> dict[str, Any]:
    """Fits the bins of a tokenizer (advantage, version 2) to rows and writes `tokenizer.json`.

    The rows are read a few times; memory does not grow with them. Does what `gristmill tokenizer fit` does.

    Args:
        rows: the rows, of all three valuations.
        output: the file to write.
        num_bins: bins of each kind of valuation.
        search_failure_cutoff: search branches with a lower advantage over `board_eval` are failures, in thousandths.
        zero_tolerance: tuple values up to this are failures, differences up to this are ties.
        overwrite: whether a file that is there is replaced.

    Returns:
        What the fit was made of: rows, passes, and for each valuation its counts and edges.

    Raises:
        FileExistsError: the file is there already.
        FormatError: a valuation has fewer losing branches than bins.
    """
    summary: dict[str, Any] = json.loads(
        _gristmill.fit_tokenizer(
            rows._compiled, os.fspath(output), num_bins, search_failure_cutoff, zero_tolerance, overwrite
        )
    )
    return summary
