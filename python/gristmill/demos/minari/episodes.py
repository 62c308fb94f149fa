"""Demonstrations of any form -> episodes as Minari keeps them: each observation once, one more than there are steps."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from gristmill.demos.minari.guessed import space_of_values
from gristmill.demos.minari.infos import Losses, columns
from gristmill.demos.source import Demos
from gristmill.demos.spaces import Leaf, described, leaves
from gristmill.errors import ConfigError, FormatError
from gristmill.safe_pickle import Instance

if TYPE_CHECKING:
    from gristmill.packs.trajectories import Trajectories

#: Fields whose meaning is known, and numbers that a shard gives its members.
_KNOWN = ("rews", "dones", "truncated", "terminated", "frame")
_KNOWN_EXTRAS = ("infos", "reset", "__key__")


@dataclass
class Episode:
    """One episode: T + 1 observations, T of everything else; infos of the reset first."""

    observations: dict[Leaf, Any]
    actions: dict[Leaf, Any]
    rewards: npt.NDArray[np.float64]
    terminations: npt.NDArray[np.bool_]
    truncations: npt.NDArray[np.bool_]
    #: T + 1 rows each; empty where nothing was recorded.
    infos: dict[str, Any]
    #: `seed` and `options`, where they are known.
    begun: dict[str, Any]


class Episodes:
    """The episodes of some demonstrations.

    Raises:
        ConfigError: a space is unknown or does not fit, or there is no observation after the last step.
    """

    def __init__(self, demos: Demos | Trajectories, observation_space: Any, action_space: Any, lossy: bool) -> None:
        self._demos, self._lossy = demos, lossy
        self._names = demos.layout.names
        #: What was made up and what is left out.
        self.losses = Losses()
        self.observation_space = self._space("obs", observation_space)
        self.action_space = self._space("acts", action_space)
        extras = demos.extras(0) if len(demos.games) else {}
        self._texts = [name for name in extras if name not in _KNOWN_EXTRAS]
        self._observations = {leaf: self._field("obs", leaf) for leaf in leaves(self.observation_space)}
        self._next = {leaf: self._field("next_obs", leaf) for leaf in self._observations}
        self._actions = {leaf: self._field("acts", leaf) for leaf in leaves(self.action_space)}
        used = {*self._observations.values(), *self._next.values(), *self._actions.values(), *_KNOWN}
        self._others = [name for name in (*self._names, *self._texts) if name not in used]
        if "rews" not in self._names:
            self.losses.fill("rewards: 0")

    def __len__(self) -> int:
        return len(self._demos.games)

    def __getitem__(self, index: int) -> Episode:
        """One episode.

        Raises:
            FormatError: `next_obs` contradicts `obs`; something has no place in Minari; unless that may be lost.
        """
        records, extras = self._demos.games[index], self._demos.extras(index)
        steps = len(records)
        values: dict[str, Any] = {**extras, **{name: np.asarray(records[name]) for name in self._names}}
        observations = {leaf: self._joined(index, values, leaf) for leaf in self._observations}
        truncations = values["truncated"].astype(np.bool_) if "truncated" in values else np.zeros(steps, np.bool_)
        if "terminated" in values:
            terminations = values["terminated"].astype(np.bool_)
        else:
            if "truncated" not in values:
                truncations[-1] = self._demos.truncated(index)
            terminations = np.zeros(steps, np.bool_)
            terminations[-1] = not truncations[-1]
        begun = dict(extras["reset"][0]) if isinstance(extras.get("reset", [None])[0], dict) else {}
        said = [dict(info) if isinstance(info, dict) else {} for info in extras.get("infos", [{}] * steps)]
        for name in self._others:
            said = [{**info, name: value} for info, value in zip(said, values[name], strict=True)]
        infos = columns([begun.pop("infos", {}), *said], self.losses)
        if self.losses.lost and not self._lossy:
            raise FormatError(
                f"{self._demos.path}: trajectory {index}: unsupported: {self.losses.lost[0]}; lossy=True leaves it out",
                kind="unsupported",
                source=self._demos.path,
                chunk=index,
            )
        rewards = np.asarray(values["rews"], np.float64) if "rews" in values else np.zeros(steps)
        actions = {leaf: values[name] for leaf, name in self._actions.items()}
        return Episode(observations, actions, rewards, terminations, truncations, infos, begun)

    def _space(self, head: str, given: Any) -> Instance:
        key = "observation_space" if head == "obs" else "action_space"
        space = self._demos.metadata.get(key) if given is None else given
        if space is not None:
            return described(space)
        found = space_of_values(self._demos, head)
        self.losses.fill(f"{key}: found from the values")
        return found

    def _field(self, head: str, leaf: Leaf) -> str:
        """Name of the field or the extra that has a leaf's values."""
        for name in (leaf.under(head), leaf.flat(head)):
            if name in self._names:
                shape = self._demos.layout.dtype[name].shape
                if leaf.dtype is None or shape != leaf.shape:
                    says = f"`{name}` has steps of shape {list(shape)}; its space says {list(leaf.shape)}"
                    raise ConfigError(f"{self._demos.path}: {says}", field=name)
                return name
            if leaf.dtype is None and name in self._texts:
                return name
        if head == "next_obs" and self._lossy:
            self.losses.lose("the observation after the last step: there is no `next_obs`, the last `obs` stands twice")
            return self._field("obs", leaf)
        missing = leaf.under(head)
        advice = "; lossy=True repeats the last observation" if head == "next_obs" else ""
        raise ConfigError(f"{self._demos.path}: no field is called `{missing}`{advice}", field=missing)

    def _joined(self, index: int, values: dict[str, Any], leaf: Leaf) -> Any:
        """T + 1 observations, of T and T that follow them."""
        now, then = values[self._observations[leaf]], values[self._next[leaf]]
        apart = _apart(now[1:], then[:-1])
        if apart is not None and self._next[leaf] != self._observations[leaf]:
            says = f"`{leaf.under('next_obs')}` of step {apart} is not `{leaf.under('obs')}` of the step after it"
            if not self._lossy:
                raise FormatError(
                    f"{self._demos.path}: trajectory {index}: {says}, and Minari keeps each observation once; "
                    "lossy=True keeps `obs`",
                    kind="unsupported",
                    source=self._demos.path,
                    chunk=index,
                    frame=apart,
                )
            self.losses.lose(f"{leaf.under('next_obs')}, where it is not `obs` of the step after it")
        if leaf.dtype is None:
            return [*now, then[-1]]
        return np.concatenate([now, then[-1:]])


def _apart(ones: Any, others: Any) -> int | None:
    """The first row in which two columns differ."""
    if isinstance(ones, list):
        return next((row for row, (one, other) in enumerate(zip(ones, others, strict=True)) if one != other), None)
    differs = ones != others
    if ones.dtype.kind == "f":
        differs &= ~(np.isnan(ones) & np.isnan(others))
    rows = np.flatnonzero(differs.reshape(len(ones), -1).any(axis=1)) if len(ones) else np.zeros(0, np.intp)
    return int(rows[0]) if len(rows) else None
