"""Single steps under the names that their fields have: what imitation and reinforcement learning consume."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

from gristmill.errors import ConfigError
from gristmill.options.arguments import named_fields
from gristmill.pairs.constructor import At, Constructor, Numbers, PairSet, Piece

#: Arrays by field, with a leading batch axis; `infos` is a list of dictionaries.
StepBatch: TypeAlias = dict[str, Any]


@named_fields
@dataclass(frozen=True)
class Steps(Constructor[StepBatch]):
    """Each step by itself: the named fields, `dones` as truth values, `infos` as a list of dictionaries.

    Where the data has no `infos`, they are empty dictionaries. Any other field must be there.
    """

    names: tuple[str, ...] = ("obs", "acts")

    def __post_init__(self) -> None:
        object.__setattr__(self, "names", tuple(self.names))
        if not self.fields():
            raise ConfigError(f"fields {list(self.names)}; expected at least one array", field="names")
        if len(set(self.names)) < len(self.names):
            raise ConfigError(f"fields {list(self.names)}: one is there twice", field="names")

    def fields(self) -> tuple[str, ...]:
        """All but `infos`."""
        return tuple(name for name in self.names if name != "infos")

    def describe(self) -> dict[str, Any]:
        """The names."""
        return {"kind": "Steps", "names": list(self.names)}

    def pieces(self, pairs: PairSet[StepBatch], rows: Numbers) -> dict[str, Piece]:
        """The fields of each step."""
        steps = pairs.context(rows)
        found: dict[str, Piece] = {name: At(name, steps) for name in self.names}
        if "dones" in found:
            found["dones"] = pairs.values("dones", steps) != 0
        if "infos" in found:
            found["infos"] = pairs.infos(rows)
        return found

    def batch(self, arrays: dict[str, Any]) -> StepBatch:
        """The arrays in the order of the names."""
        return {name: arrays[name] for name in self.names}


#: What behaviour cloning consumes.
BC = Steps(("obs", "acts"))
#: What adversarial imitation consumes.
GAIL = Steps(("obs", "acts", "next_obs", "dones", "infos"))
#: What Q-learning from demonstrations consumes.
DQN = Steps(("obs", "next_obs", "acts", "rews", "dones"))
