"""Steps of an episode while it is played -> a game of records, whose last row has the observation after the end."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.recording.folder import begin
from gristmill.demos.spaces import Leaf, described, leaves
from gristmill.errors import ConfigError, FormatError, StageError
from gristmill.records.writing import Records, Writer

#: What an info that was chosen has beside its value: whether the environment said it in this step.
SAID = "said"

#: What a step has beside observation and action.
_FLAGS = ("terminated", "truncated")


class Recording:
    """A folder that is being recorded to: the fields of a step, and the writer of this process."""

    def __init__(
        self,
        folder: str | os.PathLike[str],
        env: str,
        observation_space: Any,
        action_space: Any,
        infos: Mapping[str, npt.DTypeLike],
        file_bytes: int,
    ) -> None:
        self.observed = _numbers("observation", observation_space)
        self.acted = _numbers("action", action_space)
        #: By name of an info its field of a row.
        self.infos = {name: np.dtype(dtype) for name, dtype in infos.items()}
        fields: list[Any] = [(leaf.under("obs"), leaf.dtype, leaf.shape) for leaf in self.observed]
        fields += [(leaf.under("acts"), leaf.dtype, leaf.shape) for leaf in self.acted]
        fields += [("rews", "f8"), *((name, "?") for name in _FLAGS)]
        for name, dtype in self.infos.items():
            fields += [(f"infos.{name}", dtype), (f"infos.{name}.{SAID}", "?")]
        try:
            layout = np.dtype(fields)
        except ValueError as error:
            raise ConfigError(f"fields of a step: {error}", field="infos") from error
        spaces = {"observation_space": str(observation_space), "action_space": str(action_space)}
        about = {"env": env, **spaces, "schema": Records(layout).text}
        # First, so that a folder of other recordings is refused before anything is in it.
        begin(os.fspath(folder), about)
        self.writer = Writer(folder, layout, file_bytes=file_bytes)
        self.dtype = layout


class Episode:
    """An episode that is being played."""

    def __init__(self, to: Recording) -> None:
        self._to = to
        self._seen: list[dict[str, npt.NDArray[Any]]] = []
        self._done: list[dict[str, Any]] = []
        self._open = False

    def begin(self, observation: Any) -> None:
        """Begins the next one; one that was going on is written as it is: it was cut."""
        self.end()
        self._seen = [_values(self._to.observed, "obs", observation)]
        self._open = True

    def step(
        self, action: Any, observation: Any, reward: Any, terminated: Any, truncated: Any, info: Mapping[str, Any]
    ) -> None:
        """Takes a step, and writes the episode where that was its last.

        Raises:
            StageError: no episode was begun.
            FormatError: a value is none of its space or type; nothing of the episode is written.
            OSError: it cannot be written.
        """
        if not self._open:
            raise StageError("the episode has ended, or was never begun: call reset")
        row: dict[str, Any] = dict(_values(self._to.acted, "acts", action))
        row |= {"rews": float(reward), "terminated": bool(terminated), "truncated": bool(truncated)}
        for name, dtype in self._to.infos.items():
            value = _found(info, name)
            row[f"infos.{name}.{SAID}"] = value is not None
            row[f"infos.{name}"] = np.zeros(dtype.shape, dtype.base) if value is None else np.asarray(value)
        self._done.append(row)
        self._seen.append(_values(self._to.observed, "obs", observation))
        if terminated or truncated:
            self.end()

    def end(self) -> None:
        """Writes the episode, where it has steps."""
        seen, done = self._seen, self._done
        self._seen, self._done, self._open = [], [], False
        if not done:
            return
        nothing = {name: np.zeros_like(value) for name, value in done[-1].items()}
        game = {name: _stacked(name, [row[name] for row in seen]) for name in seen[0]}
        game |= {name: _stacked(name, [row[name] for row in (*done, nothing)]) for name in nothing}
        self._to.writer.write(game)


def _numbers(what: str, space: Any) -> list[Leaf]:
    """The arrays of a space.

    Raises:
        ConfigError: a part of it is no array.
    """
    found = leaves(described(space))
    texts = [leaf.name or what for leaf in found if leaf.dtype is None]
    if texts:
        raise ConfigError(f"{what}s: `{texts[0]}` is a text; recordings have numbers", field=f"{what}_space")
    return found


def _values(parts: list[Leaf], head: str, value: Any) -> dict[str, npt.NDArray[Any]]:
    """The arrays of a value by field, copied: environments may use theirs again."""
    found = {}
    for leaf in parts:
        one = value
        for part in leaf.path:
            one = one[part]
        found[leaf.under(head)] = np.array(one)
    return found


def _found(info: Mapping[str, Any], name: str) -> Any:
    """A value of an info; `episode.r` is `r` in `episode`."""
    value: Any = info
    for part in [name] if name in info else name.split("."):
        if not isinstance(value, Mapping) or part not in value:
            return None
        value = value[part]
    return value


def _stacked(name: str, values: list[Any]) -> npt.NDArray[Any]:
    try:
        return np.stack(values)
    except ValueError as error:
        odd = next(i for i, value in enumerate(values) if np.shape(value) != np.shape(values[0]))
        says = f"shape {np.shape(values[odd])} in step {odd}, {np.shape(values[0])} in step 0"
        raise FormatError(f"`{name}`: wrong_size: {says}", kind="wrong_size", member=name, frame=odd) from error
