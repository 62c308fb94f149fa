"""Unknown arguments: refused with the nearest known one."""

from __future__ import annotations

import difflib
import functools
import inspect
import warnings
from collections.abc import Callable, Iterable
from typing import ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")
_Class = TypeVar("_Class")

#: What other libraries call what is here called otherwise, by preference.
_ELSEWHERE: dict[str, tuple[str, ...]] = {
    "bs": ("batch_size",),
    "collate_fn": ("encoder", "constructor"),
    "data": ("source", "datasets", "input"),
    "dataset": ("source", "datasets", "input"),
    "drop_last": ("last_batch",),
    "max_epochs": ("epochs",),
    "n_epochs": ("epochs",),
    "n_workers": ("threads", "workers"),
    "num_epochs": ("epochs",),
    "num_replicas": ("world_size",),
    "num_workers": ("threads", "workers"),
    "prefetch_factor": ("queue_capacity",),
    "random_state": ("seed",),
    "rng": ("seed",),
    "threads": ("workers",),
    "transform": ("encoder", "prepare"),
    "workers": ("threads",),
}

#: What an option was called before, and is called now; a call by the old name is warned of.
_BEFORE = {"spill": "columns"}


def unknown(function: str, name: str, known: Iterable[str]) -> str:
    """What is said of an argument that `function` does not take."""
    names = list(known)
    called = [other for other in _ELSEWHERE.get(name, ()) if other in names]
    nearest = called or difflib.get_close_matches(name, names, n=1)
    hint = f"did you mean '{nearest[0]}'?" if nearest else f"it has: {', '.join(names)}"
    return f"{function}() has no option '{name}'; {hint}"


def named(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """The function, which now refuses keywords that it does not know by a `TypeError` that names the nearest one."""
    return _checked(function, [])


def named_with(options: type[object]) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """As `named`, for a function whose `**` takes the keys of a `TypedDict` or the fields of a dataclass."""
    return lambda function: _checked(function, list(options.__annotations__))


def named_as(taker: Callable[..., object]) -> Callable[[Callable[_Given, _Result]], Callable[_Given, _Result]]:
    """As `named`, for a function whose `**` goes on to `taker`."""
    return lambda function: _checked(function, list(inspect.signature(taker).parameters))


def named_fields(cls: type[_Class]) -> type[_Class]:
    """As `named`, for the constructor of a class."""
    made: Callable[..., None] = vars(cls)["__init__"]
    setattr(cls, "__init__", _checked(made, []))  # noqa: B010  (mypy knows no other way)
    return cls


def _checked(function: Callable[_Given, _Result], more: list[str]) -> Callable[_Given, _Result]:
    parameters = list(inspect.signature(function).parameters.values())
    words = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    if any(p.kind is p.VAR_KEYWORD for p in parameters) and not more:
        raise TypeError(f"{function.__qualname__} takes any keyword; say which by named_with")
    known = [p.name for p in parameters if p.kind in words and p.name != "self"] + more
    called = function.__qualname__.removesuffix(".__init__")

    @functools.wraps(function)
    def checked(*args: _Given.args, **kwargs: _Given.kwargs) -> _Result:
        for name in [name for name in kwargs if name not in known]:
            now = _BEFORE.get(name)
            if now not in known or now in kwargs:
                raise TypeError(unknown(called, name, known))
            warnings.warn(f"{called}(): `{name}` is called `{now}` now", DeprecationWarning, stacklevel=2)
            kwargs[now] = kwargs.pop(name)
        return function(*args, **kwargs)

    return checked
