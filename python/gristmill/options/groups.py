"""Named groups of options as dataclasses: read strictly, updated recursively.

A group is one table of a configuration, such as `env_cfg`. An unknown key is refused with the nearest known one.
"""

from __future__ import annotations

import dataclasses
import difflib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from gristmill.errors import ConfigError


@dataclass
class Group:
    """Base of the groups. A subclass is a dataclass whose fields all have defaults, and gives its table's name."""

    #: Name of the table, such as `env_cfg`.
    group: ClassVar[str]
    #: Keys that other programs write beside the options, and that say nothing about them.
    ignored: ClassVar[frozenset[str]] = frozenset({"__doc__"})
    #: Keys of earlier programs -> the key of today, to be named in a refusal.
    renamed: ClassVar[Mapping[str, str]] = {}

    def __post_init__(self) -> None:
        """Checks the types of all options; a subclass that checks more calls this first."""
        for name, hint in _hints(type(self)).items():
            value = getattr(self, name)
            if not _fits(value, hint):
                expected = str(hint) if typing.get_origin(hint) else hint.__name__
                raise self.refusal(name, f"expected {expected}, got {value!r} ({type(value).__name__})")

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """The defaults, updated with `values`. Raises as `updated`."""
        return cls().updated(values)

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """The group's table in a TOML text; the defaults where there is none. Other tables are ignored.

        Raises:
            ConfigError: no TOML; else as `updated`.
        """
        import tomllib

        try:
            table = tomllib.loads(text).get(cls.group, {})
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"no TOML: {error}", stage=cls.group) from None
        if not isinstance(table, Mapping):
            raise ConfigError(f"`{cls.group}`: expected a table, got {table!r}", stage=cls.group)
        return cls.from_dict(table)

    def updated(self, values: Mapping[str, Any]) -> Self:
        """A copy with other values: mappings merge key by key at every depth, anything else is replaced.

        Raises:
            ConfigError: an unknown key, with the nearest known one; a value of the wrong type or out of range.
                `stage` is the group's name and `field` the key.
        """
        known = _hints(type(self))
        given = {name: value for name, value in values.items() if name not in self.ignored}
        for name in given:
            if name not in known:
                raise self.refusal(name, f"no such option; {self.advice(str(name), list(known))}")
        return dataclasses.replace(self, **{name: _merge(getattr(self, name), new) for name, new in given.items()})

    def to_dict(self) -> dict[str, Any]:
        """Plain values under the documented keys, `None` included."""
        return dataclasses.asdict(self)

    @classmethod
    def refusal(cls, name: str, says: str) -> ConfigError:
        """The error about one option."""
        return ConfigError(f"`{cls.group}.{name}`: {says}", stage=cls.group, field=str(name))

    @classmethod
    def advice(cls, name: str, known: list[str]) -> str:
        """What to write instead of an unknown name: the nearest known one, else all there are."""
        if name in cls.renamed:
            return f"it is called `{cls.renamed[name]}` now"
        nearest = difflib.get_close_matches(name, known, n=1) or [option for option in known if name in option][:1]
        return f"did you mean `{nearest[0]}`?" if nearest else f"there are: {', '.join(known)}"


def _hints(group: type[Group]) -> dict[str, Any]:
    """Types of the options, in their order."""
    hints = typing.get_type_hints(group)
    return {field.name: hints[field.name] for field in dataclasses.fields(group)}


def _fits(value: object, hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return any(_fits(value, one) for one in typing.get_args(hint))
    if origin is dict:
        key, item = typing.get_args(hint)
        return isinstance(value, Mapping) and all(_fits(k, key) and _fits(v, item) for k, v in value.items())
    if hint in (int, float):
        return isinstance(value, int if hint is int else int | float) and not isinstance(value, bool)
    return hint is Any or isinstance(value, origin or hint)


def _merge(old: object, new: object) -> object:
    if not (isinstance(old, Mapping) and isinstance(new, Mapping)):
        return new
    return {**old, **{key: _merge(old.get(key), value) for key, value in new.items()}}
