"""In which order a loader takes the rows of a pack: drawn by weight, or shuffled block by block."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from gristmill.config import PositionSamplingConfig
from gristmill.options.arguments import named_fields


@named_fields
@dataclass(frozen=True, kw_only=True)
class Hanse:
    """Each row is a draw of its own: a game in proportion to its chance, then one of its positions.

    By default every position is equally likely. The names are those of a pool's options `hanse_sampling_*` and
    `position_sampling`, and mean the same, but that the largest weight is that of all selected games.
    """

    #: Exponent of a game's chance.
    gamma: float = 1.0
    #: The chance: `"weight"` (weight / largest weight)^gamma, `"length"` min(1, frames / threshold)^gamma.
    form: Literal["weight", "length"] = "weight"
    #: Frames of a game that has the full chance; the length form needs it.
    threshold: int | None = None
    #: What a position weighs; a game weighs what its positions do. 1 each when absent.
    position_sampling: PositionSamplingConfig | None = None
    #: Whether a position of the game is drawn by its weight too, or each is as likely as any.
    positions: Literal["weighted", "uniform"] = "weighted"

    def to_config(self) -> dict[str, Any]:
        """The value of `sampling` in a configuration."""
        values = {
            "hanse_sampling_gamma": self.gamma,
            "hanse_sampling_form": self.form,
            "hanse_sampling_threshold": self.threshold,
            "position_sampling": None if self.position_sampling is None else _set(self.position_sampling),
            "positions": self.positions,
        }
        return {name: value for name, value in values.items() if value is not None}


def _set(config: PositionSamplingConfig) -> dict[str, Any]:
    return {name: value for name, value in asdict(config).items() if value is not None}


@named_fields
@dataclass(frozen=True)
class Blocks:
    """Shuffling for packs beyond memory: blocks in random order, the rows of several of them shuffled together.

    Only the blocks that are being shuffled, and those that come next, have to be in memory.
    """

    #: Neighbouring rows of a block.
    rows: int = 65_536
    #: Blocks whose rows are shuffled together.
    blocks: int = 16

    def to_config(self) -> dict[str, dict[str, int]]:
        """The value of `shuffle` in a configuration."""
        return {"blocks": {"rows": self.rows, "blocks": self.blocks}}
