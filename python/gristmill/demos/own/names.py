"""Names of arrays -> the fields of demonstrations: the usual names are known, others are chosen by `fields`."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

from gristmill.errors import ConfigError, FormatError

#: The usual names of each field, the commonest first.
USUAL = {
    "obs": ("observations", "observation", "obs"),
    "next_obs": ("next_observations", "next_observation", "next_obs"),
    "acts": ("actions", "action", "acts"),
    "rews": ("rewards", "reward", "rews", "next.reward"),
    "terminated": ("terminals", "terminated", "terminations", "terminal", "is_terminal"),
    "truncated": ("timeouts", "truncated", "truncations", "timeout"),
    "dones": ("dones", "done"),
    "episode_starts": ("episode_starts", "episode_start"),
    "episode_lengths": ("episode_lengths", "traj_lengths", "lengths"),
    "episode_index": ("episode_index", "episode_id", "episode_ids"),
}

#: What says where episodes end, in the order in which people are shown it.
ENDS = ("terminated", "truncated", "dones", "episode_starts", "episode_lengths", "episode_index")

#: Flags of a step: true where it is the last of its episode (`episode_starts`: the first).
FLAGS = ("terminated", "truncated", "dones", "episode_starts")

#: Names that no other form of demonstrations has.
TELLING = ("observations", "observation", "actions", "terminals", "timeouts", "episode_starts", "next_observations")

_BY_NAME = {name: field for field, names in USUAL.items() for name in names}


def usual(name: str) -> str | None:
    """The field that an array of a usual name is, else `None`. Parts go along: `observations/image` is `obs.image`."""
    head, *rest = [name] if name in _BY_NAME else re.split(r"[./]", name)
    field = _BY_NAME.get(head)
    return None if field is None or (rest and field in ENDS) else ".".join([field, *rest])


def choose(path: str, place: str, names: Iterable[str], fields: Mapping[str, str] | None) -> dict[str, str]:
    """Which array each field is of: by name of the field.

    Without `fields` the usual names are taken for what they are, and all others under their own. With `fields` only
    those that it names, and what says where episodes end. `path` is what was opened, `place` what of it.

    Raises:
        FormatError: an array that `fields` names is not there, or no name is a usual one.
        ConfigError: two arrays would be one field.
    """
    there = list(names)
    found: dict[str, str] = {}
    for field, source in (fields or {}).items():
        parts = {
            name: name[len(source) :]
            for name in there
            if name == source or name.startswith((f"{source}/", f"{source}."))
        }
        if not parts:
            near = difflib.get_close_matches(source, there, 1)
            says = f"there is no `{source}`" + (f"; did you mean `{near[0]}`?" if near else "")
            raise FormatError(f"{place}: missing: {says} {advice(path, there)}", kind="missing", source=path)
        found.update({field + rest.replace("/", "."): name for name, rest in parts.items()})
    taken = set(found.values())
    for name in there:
        known = usual(name)
        if name in taken or (fields is not None and (known not in ENDS or known in found)):
            continue
        field = known or name.replace("/", ".")
        if field in found:
            message = f"{place}: `{found[field]}` and `{name}` would both be `{field}`; choose one: {call(path, there)}"
            raise ConfigError(message, field="fields")
        found[field] = name
    if fields is None and not any(field.split(".")[0] in ("obs", "acts") for field in found):
        says = "no array has a usual name of observations or actions"
        raise FormatError(f"{place}: unknown_format: {says} {advice(path, there)}", kind="unknown_format", source=path)
    return found


def advice(path: str, names: Iterable[str]) -> str:
    """What was found, what would do, and the call that takes it."""
    there = list(names)
    would = ", ".join(USUAL[field][0] for field in ("obs", "acts", "rews", "next_obs"))
    return (
        f"({listed(there)}). Names that would do: {would}; for ends of episodes {usual_ends()}. "
        f"Others are taken by {call(path, there)}"
    )


def no_ends(path: str, names: Iterable[str]) -> str:
    """What to do where nothing says where episodes end."""
    there = list(names)
    return (
        f"nothing says where episodes end ({listed(there)}). Names that would do: {usual_ends()}. An array of another "
        f"name is taken by {call(path, there, ends=True)}; lengths by gristmill.demos.from_arrays(lengths, fields); a "
        f"folder with one file for each episode needs neither"
    )


def listed(there: list[str]) -> str:
    """The names that were found."""
    more = f" and {len(there) - 20} more" if len(there) > 20 else ""
    return "found: " + (", ".join(f"`{name}`" for name in there[:20]) + more if there else "nothing")


def usual_ends() -> str:
    """The commonest names of arrays that say where episodes end."""
    return ", ".join(name for field in ENDS for name in USUAL[field][: 2 if field in FLAGS[:2] else 1])


def call(path: str, names: Iterable[str], ends: bool = False) -> str:
    """The call that takes these arrays, with the names that are likeliest."""
    free = list(names)
    chosen: dict[str, str] = {}
    for field, hints in (("obs", ("obs", "state", "image", "pixel")), ("acts", ("act",))):
        for name in [name for hint in hints for name in free if hint in name.lower() and "next" not in name.lower()][
            :1
        ]:
            chosen[field] = name
            free.remove(name)
    if not chosen:
        chosen = dict(zip(("obs", "acts"), free, strict=False)) or {"obs": "NAME"}
    if ends:
        chosen["dones"] = "NAME"
    words = ",".join(f"{field}={name}" for field, name in chosen.items())
    return f"gristmill.open({path!r}, fields={chosen!r}), or on the command line --fields {words}"
