"""What stands for one row of a batch: the steps around it, a later one beside it, or its whole game.

    gm.DataLoader(games, view=gm.views.Stack(4, tensors=["planes"]), batch_size=1024)
    gm.DataLoader(rows, encoder=gm.g2048.Steps(), view=gm.views.Trajectory(512, longer="split"), batch_size=8)

Only loaders of packs have views. No view reaches across the end of a game. Which steps a row shows is known before
anything is read, and each is encoded where it stands in the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from gristmill.errors import ConfigError
from gristmill.options.arguments import named, named_fields

__all__ = ["NextStep", "Offsets", "Pad", "Stack", "Trajectory", "View", "Window", "delta_timestamps"]

#: What stands where a game has no step: the nearest that it has, zeros, or nothing (the row is left out of the epoch).
Pad: TypeAlias = Literal["edge", "zero", "drop"]


@named_fields
@dataclass(frozen=True)
class Offsets:
    """The steps at these distances from each row, ascending: tensors of shape (batch, time, ...).

    `mask` (bool, (batch, time)) says which steps there are; with `pad="drop"` all are, and there is none. Turns and
    mirrors of 2048 are the same for all steps of a row, and those of the row alone.

    Args:
        offsets: distances in steps, such as `(-8, -1, 0, 1)`.
        pad: what stands beyond the ends of the game.
        tensors: the tensors that have the axis of time; by default all. The others are of the row alone and come first.
    """

    offsets: Sequence[int]
    pad: Pad = "edge"
    tensors: Sequence[str] | None = None

    def to_config(self) -> dict[str, Any]:
        """The value of `view` in a configuration."""
        return _window(self.offsets, self.pad, self.tensors)


@named_fields
@dataclass(frozen=True)
class Window:
    """`past` steps before each row, the row, and `future` steps after it: tensors of shape (batch, time, ...).

    `mask` is as for `Offsets`; the row itself stands at `[:, past]`.

    Args:
        past: how many steps before the row.
        future: how many steps after it.
        step: distance of neighbours: `past=3, step=2` shows the steps 6, 4 and 2 before.
        pad: what stands beyond the ends of the game.
        tensors: the tensors that have the axis of time; by default all. The others are of the row alone and come first.
    """

    past: int = 0
    future: int = 0
    step: int = 1
    pad: Pad = "edge"
    tensors: Sequence[str] | None = None

    def to_config(self) -> dict[str, Any]:
        """The value of `view` in a configuration."""
        return _window([self.step * i for i in range(-self.past, self.future + 1)], self.pad, self.tensors)


@named_fields
@dataclass(frozen=True)
class Stack:
    """Frame stacks: each row after the `frames - 1` steps before it, oldest first.

    At the start of a game its first step stands for those before it, or what `pad` says. Shapes are
    (batch, frames, ...), as Gymnasium's `FrameStackObservation` has them; `.reshape(batch, -1, 8, 8)` lays the planes
    of all frames one after the other. `mask` is as for `Offsets`.

    Args:
        frames: steps of a stack, the row among them.
        step: distance of neighbours.
        pad: what stands before the start of the game.
        tensors: the tensors that are stacked, such as `["planes"]`; by default all. The others are of the row alone
            and come first.
    """

    frames: int = 4
    step: int = 1
    pad: Pad = "edge"
    tensors: Sequence[str] | None = None

    def to_config(self) -> dict[str, Any]:
        """The value of `view` in a configuration."""
        return _window([self.step * i for i in range(1 - self.frames, 1)], self.pad, self.tensors)


@named_fields
@dataclass(frozen=True)
class NextStep:
    """Transitions: each tensor of a row, and as `next_<name>` that of the step `n` later.

    `done` (bool, (batch)) is true where the game ends before that; with `pad="drop"` such rows are left out, and there
    is no `done`.

    Args:
        n: how many steps later.
        pad: what stands after the end of the game.
    """

    n: int = 1
    pad: Pad = "edge"

    def to_config(self) -> dict[str, Any]:
        """The value of `view` in a configuration."""
        return {"next": {"steps": self.n, "pad": self.pad}}


@named_fields
@dataclass(frozen=True)
class Trajectory:
    """Whole games: a row is one, from its first step on; tensors of shape (batch, length, ...).

    `mask` (bool, (batch, length)) is true for steps that the game has and that are selected: of a game some of whose
    rows are filtered away, all steps are shown and those are masked. Turns and mirrors of 2048 are the same for the
    whole row.

    Args:
        length: steps of a row.
        pad: what stands after the end of shorter games; `"drop"` leaves out what is not full.
        longer: what becomes of longer games: `"refuse"` raises `ConfigError` and says how long they are, `"cut"` shows
            their first steps, `"split"` makes several rows of them, one after the other.
    """

    length: int
    pad: Pad = "zero"
    longer: Literal["refuse", "cut", "split"] = "refuse"

    def to_config(self) -> dict[str, Any]:
        """The value of `view` in a configuration."""
        return {"trajectory": {"length": self.length, "pad": self.pad, "longer": self.longer}}


@named
def delta_timestamps(
    seconds: Sequence[float] | Mapping[str, Sequence[float]],
    fps: float,
    *,
    tolerance: float = 1e-4,
    pad: Pad = "edge",
    tensors: Sequence[str] | None = None,
) -> Offsets:
    """The steps at these times from each row, as LeRobot's `delta_timestamps` have them: a view by seconds.

        fps = gm.open("so100/").metadata["lerobot"]["fps"]
        view = gm.views.delta_timestamps([-0.2, -0.1, 0], fps)  # Offsets((-2, -1, 0)) at 10 frames of a second

    Args:
        seconds: times from the row, ascending. By tensor: each of these tensors has the times of all, each once and
            ascending; `offsets` of what is returned says which stands where.
        fps: steps of a second.
        tolerance: seconds that a time may be off a whole step.
        pad: what stands beyond the ends of the episode, as of `Offsets`.
        tensors: the tensors that have the axis of time; by default all, or those that `seconds` names.

    Raises:
        ConfigError: no times, times that are not ascending, no multiple of a step, or `fps` that is no number above 0.
        TypeError: what is no number.
    """
    if isinstance(seconds, Mapping):
        if tensors is not None:
            raise ConfigError("tensors does not go with seconds by tensor, which names them", field="tensors")
        for name, one in seconds.items():
            _whole_steps(one, fps, tolerance, f"`{name}`")
        tensors, seconds = list(seconds), sorted({time for one in seconds.values() for time in one})
        # Times of two tensors may be the same step.
        return Offsets(tuple(sorted(set(_whole_steps(seconds, fps, tolerance, "seconds", apart=False)))), pad, tensors)
    return Offsets(_whole_steps(seconds, fps, tolerance, "seconds"), pad, tensors)


def _whole_steps(
    seconds: Sequence[float], fps: float, tolerance: float, what: str, apart: bool = True
) -> tuple[int, ...]:
    """Times as steps."""
    for name, value, least in (("fps", fps, 0.0), ("tolerance", tolerance, None)):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise TypeError(f"{name} is {value!r}; expected a number")
        if not (0 <= value < 1e9) or value == least:
            raise ConfigError(
                f"{name} is {value!r}; expected a number {'from' if least is None else 'above'} 0", field=name
            )
    found: list[int] = []
    for time in seconds:
        if isinstance(time, bool) or not isinstance(time, int | float):
            raise TypeError(f"{what}: {time!r}; expected seconds")
        if not -1e9 < time * fps < 1e9:
            raise ConfigError(f"{what}: {time!r} seconds; expected less than 10^9 steps", field="seconds")
        step = round(time * fps)
        if abs(time - step / fps) > tolerance:
            near = f"the nearest step is at {step / fps:.6g}, {step} of {fps:g} steps of a second"
            raise ConfigError(f"{what}: {time!r} seconds are no whole steps; {near}", field="seconds")
        if apart and found and step <= found[-1]:
            raise ConfigError(f"{what}: {time!r} follows step {found[-1]}; expected ascending times", field="seconds")
        found.append(step)
    if not found:
        raise ConfigError(f"{what}: no times", field="seconds")
    return tuple(found)


#: Any of them.
View: TypeAlias = Offsets | Window | Stack | NextStep | Trajectory


def _window(offsets: Iterable[int], pad: str, tensors: Sequence[str] | None) -> dict[str, Any]:
    names = {} if tensors is None else {"tensors": [tensors] if isinstance(tensors, str) else list(tensors)}
    return {"window": {"offsets": list(offsets), "pad": pad, **names}}
