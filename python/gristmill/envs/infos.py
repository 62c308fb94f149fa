"""What each of many environments said about its last step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_FINAL = ("final_obs", "final_info")


def info_of(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    """The info of one environment's last step, out of those that `step` or `reset` gave for all.

    Where the step ended an episode it is the info of that end, with `episode`; else what the environment said. Arrays
    of several environments become the value of this one.
    """
    if _has(infos, "final_info", index):
        infos = infos["final_info"]
    return _picked(infos, index)


def _picked(infos: Mapping[str, Any], index: int) -> dict[str, Any]:
    names = [name for name in infos if name not in _FINAL and _has(infos, name, index)]
    values = {name: infos[name] for name in names}
    return {name: _picked(v, index) if isinstance(v, Mapping) else v[index] for name, v in values.items()}


def _has(infos: Mapping[str, Any], name: str, index: int) -> bool:
    """Whether this environment said something under the name: Gymnasium keeps a mask beside each."""
    return f"_{name}" in infos and bool(infos[f"_{name}"][index])
