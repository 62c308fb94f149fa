"""What another process is sent of data that lies in files: their place, and what was selected; it opens them again."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from gristmill.errors import StateError

#: A method.
F = TypeVar("F", bound=Callable[..., Any])


def open_again(opener: Callable[..., Any], path: str, options: dict[str, Any], size: tuple[int, int]) -> Any:
    """What `opener` gives for a path, if it is as large as it was.

    Raises:
        StateError: it was changed meanwhile.
        OSError: it is not here.
    """
    return as_large(opener(path, **options), path, size)


def select_again(path: str, ids: list[int] | None, size: tuple[int, int]) -> Any:
    """The games or runs of these ids of a pack, or all of it, if they are as large as they were.

    Raises:
        StateError: the pack was changed meanwhile.
        OSError: it is not here.
    """
    from gristmill.packs.source import open as open_path

    whole = open_path(path)
    if ids is None:
        return as_large(whole, path, size)
    return as_large(type(whole)(whole._compiled.split_ids(ids)[1]), path, size)


def as_large(found: Any, path: str, size: tuple[int, int]) -> Any:
    """What was opened, if its games and its frames are these.

    Raises:
        StateError: they are others.
    """
    games = found.num_games if hasattr(found, "num_games") else len(found)
    now = (games, found.num_frames)
    if now != size:
        message = f"{path} has changed: {size[1]} frames were meant when this was sent, now there are {now[1]}"
        raise StateError(f"{message}; open it again")
    return found


def make_again(
    cls: Callable[..., Any], given: dict[str, Any], stands: tuple[str, tuple[Any, ...], dict[str, Any]] | None
) -> Any:
    """A loader of what it was given, standing where it was put."""
    loader = cls(**given)
    if stands is not None:
        method, args, options = stands
        getattr(loader, method)(*args, **options)
    return loader


def remembered(method: F) -> F:
    """A method that makes selections of a selection, which then know what they were made of, and how."""

    @functools.wraps(method)
    def call(self: Any, *args: Any, **options: Any) -> Any:
        made = method(self, *args, **options)
        _note(made, (self, method.__name__, args, options), ())
        return made

    return cast(F, call)


def _note(made: Any, origin: tuple[Any, ...], place: tuple[int, ...]) -> None:
    if isinstance(made, tuple | list):
        for i, one in enumerate(made):
            _note(one, origin, (*place, i))
    elif hasattr(made, "made_from"):
        made.made_from = (*origin, place)


def derive_again(
    made_from: tuple[Any, str, tuple[Any, ...], dict[str, Any], tuple[int, ...]], path: str, size: tuple[int, int]
) -> Any:
    """What was selected of another selection, if it is as large as it was.

    Raises:
        StateError: the pack was changed meanwhile, or its marks.
    """
    parent, method, args, options, place = made_from
    made = getattr(parent, method)(*args, **options)
    for i in place:
        made = made[i]
    return as_large(made, path, size)
