"""What to make of 2048 step rows: exponents and the targets of one task, shown as they are or turned and mirrored."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeAlias

from gristmill import _gristmill
from gristmill.config import Path, to_json
from gristmill.options.arguments import named_fields

#: `False` never, `True` uniformly over all choices, `"changed"` only over those that change something.
Augment: TypeAlias = bool | Literal["changed"]

#: The value of a position: the number, or its two-hot form.
ValueTargets: TypeAlias = Literal["scalar", "two_hot"]

#: How exponents are given.
BoardForm: TypeAlias = Literal["tokens", "nibbles"]

#: Where symmetries are drawn.
DrawnOn: TypeAlias = Literal["host", "device"]

#: Which number of the values beside a row.
ValueField: TypeAlias = Literal["reward", "reward_scaled", "return_raw", "return_scaled"]

_AUGMENTATIONS: dict[Augment, str] = {False: "off", True: "any", "changed": "changed"}


@named_fields
@dataclass(frozen=True, kw_only=True)
class Steps:
    """The exponents alone: `tokens` (16), with `run_id` and `step_index` of the row. Fits every pack that has boards.

    Args:
        rotate: quarter turns.
        flip: mirrors, after the turn: left-right or up-down. What a row gets depends on the loader's seed, the row and
            the epoch alone.
        dtype: element type of whole numbers.
        board: `"nibbles"` gives `board_nibbles` (uint8, (10)) in the place of `tokens`, of which `gristmill.jax.expand`
            and `gristmill.torch.expand` make `tokens` on a device (docs/format/compact.md).
        draw: `"device"` gives rows as they are, with `symmetry_draws` (int32, (6)), of which `gristmill.jax.expand` and
            `gristmill.torch.expand` draw on a device the symmetry that the host would have drawn, and turn board,
            values, moves and masks (docs/format/compact.md). `Tokens`, whose classes depend on the turned board, refuse
            it.
        value_targets: adds `value_targets` (float32), of the values that `gristmill values` put beside the rows:
            `"scalar"` one number a row; `"two_hot"` its two-hot form, whose mean it is. Turns and mirrors do not change
            them.
        value_field: which number: `return_scaled`, the rescaled return h(G), unless another is named.
        value_bins: of the two-hot form, the lowest and the highest number and how many bins there are from one to the
            other, evenly spaced: `(0, 600, 601)` by default. What lies outside counts as the nearest end.

    Raises:
        ValueError: `rotate`, `flip`, `board` or `draw` is none of their values.
    """

    target: ClassVar[str] = "steps"

    rotate: Augment = False
    flip: Augment = False
    dtype: Literal["i64", "i32", "u8"] = "i64"
    value_targets: ValueTargets | None = None
    value_field: ValueField | None = None
    value_bins: tuple[float, float, int] | None = None
    board: BoardForm = "tokens"
    draw: DrawnOn = "host"

    def __post_init__(self) -> None:
        if self.board not in ("tokens", "nibbles"):
            raise ValueError(f"board={self.board!r}; expected 'tokens' or 'nibbles'")
        if self.draw not in ("host", "device"):
            raise ValueError(f"draw={self.draw!r}; expected 'host' or 'device'")
        for name, value in (("rotate", self.rotate), ("flip", self.flip)):
            if not any(value is known or value == known for known in _AUGMENTATIONS):
                raise ValueError(f"{name}={value!r}; expected False, True or 'changed'")

    def to_config(self) -> dict[str, Any]:
        """The value of `encoder` in a configuration."""
        return {
            "g2048": {
                "target": self.target,
                "rotate": _AUGMENTATIONS[self.rotate],
                "flip": _AUGMENTATIONS[self.flip],
                "dtype": self.dtype,
                **({} if self.board == "tokens" else {"board": self.board}),
                **({} if self.draw == "host" else {"draw": self.draw}),
                **({} if self.value_targets is None else {"value_targets": self.value_targets}),
                **({} if self.value_field is None else {"value_field": self.value_field}),
                **({} if self.value_bins is None else {"value_bins": list(self.value_bins)}),
                **self._options(),
            }
        }

    def to_json(self) -> str:
        """`to_config` as JSON text."""
        return to_json(self.to_config())

    def _options(self) -> dict[str, Any]:
        return {}


@named_fields
@dataclass(frozen=True, kw_only=True)
class HardMove(Steps):
    """`tokens` (16), `branch_values` (4, float32: up, down, left, right) and `move_targets`: the move that was made."""

    target: ClassVar[str] = "hard_move"


#: What edges mean.
EdgeForm: TypeAlias = Literal["special_zero_one", "edges", "upper_bounds", "upper_bounds_compat"]

#: How many more bins there are than edges.
_MORE_BINS: dict[str, int] = {"special_zero_one": 1, "edges": -1, "upper_bounds": 0, "upper_bounds_compat": 0}


@named_fields
@dataclass(frozen=True, kw_only=True)
class BinnedEV(Steps):
    """`tokens`, `branch_values`, `branch_bin_targets` (4), and `branch_mask` (4, bool): which branches have a value.

    Args:
        edges: strictly increasing numbers from 0 to 1; by default those of the reference.
        edge_form: `special_zero_one`: exactly 0 is the first bin, exactly 1 the last, `(low, high]` between the edges
            are the others. `edges`: only those between. `upper_bounds`: each edge ends a bin, itself included, as the
            documents of existing training code say. `upper_bounds_compat`: as its code does, a value at an edge is one
            bin higher, 0 and less with an edge at 0 in bin 1; for comparison with models trained so.

    Edges and values are compared as numbers of 32 bits: a value that was logged as 0.8 is at the edge 0.8.

    Raises:
        ValueError: `edge_form`, `rotate` or `flip` is none of their values.
    """

    target: ClassVar[str] = "binned_ev"

    edges: Sequence[float] | None = None
    edge_form: EdgeForm = "special_zero_one"

    #: The edges that are used where none are given.
    DEFAULT_EDGES: ClassVar[tuple[float, ...]] = (0, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 1)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not any(self.edge_form == form for form in _MORE_BINS):
            raise ValueError(f"edge_form={self.edge_form!r}; expected {', '.join(_MORE_BINS)}")

    @property
    def n_bins(self) -> int:
        """How many bins there are."""
        edges = len(self.DEFAULT_EDGES if self.edges is None else self.edges)
        return edges + _MORE_BINS[self.edge_form]

    def _options(self) -> dict[str, Any]:
        edges = {} if self.edges is None else {"edges": [float(edge) for edge in self.edges]}
        return {"edge_form": self.edge_form, **edges}


@named_fields
@dataclass(frozen=True)
class Tokens(Steps):
    """`tokens` (16) and `targets` (4): the class of each branch by a fitted tokenizer (`macroxue_ev_advantage_v2`).

    The file is read here, and its digest kept: a worker process or a loader that finds another file under this path
    later refuses it. A running loader keeps the file that it read.

    Args:
        tokenizer: a `tokenizer.json`, as `gristmill tokenizer fit` writes it.
        compat_swapped_tuple_ids: take `tuple10` for id 1 and `tuple11` for id 2 whatever the pack says, as existing
            training code does by mistake; only for comparison with models trained so.

    Raises:
        OSError: the file cannot be read.
        FormatError: it is no tokenizer of version 2.
    """

    target: ClassVar[str] = "tokens"

    tokenizer: Path
    compat_swapped_tuple_ids: bool = False
    #: XXH3-128 of the file, hexadecimal.
    digest: str = field(init=False)
    #: How many classes there are: ILLEGAL, FAILURE, the bins, WINNER.
    n_classes: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        super().__post_init__()
        bins, digest = _gristmill.read_tokenizer(self.tokenizer)
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "n_classes", bins + 3)

    def _options(self) -> dict[str, Any]:
        return {
            "tokenizer": os.fspath(self.tokenizer),
            "tokenizer_xxh3": self.digest,
            "compat_swapped_tuple_ids": self.compat_swapped_tuple_ids,
        }
