"""Data and running loaders as web pages, served by a thread of this process: as `gristmill view` does it."""

from __future__ import annotations

import os
import re
import warnings
import weakref
from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from gristmill import _gristmill
from gristmill.options.arguments import named
from gristmill.packs.selection import Selection
from gristmill.packs.source import Source

if TYPE_CHECKING:
    from gristmill.packs.selection import GamesOf

#: What a URL may have of a condition: servers refuse longer requests.
_LONGEST = 4000

#: The address of a loader, as `gristmill top` takes it: `PORT`, `HOST:PORT`, `http://HOST:PORT` and its pages.
_LOADER = re.compile(r"(?:http://)?((?:[\w.-]+|\[[0-9a-fA-F:.]+\]):)?(\d{1,5})(?:/|/status|/metrics)?")


class Serving(Protocol):
    """A loader that serves its numbers."""

    def serve_metrics(self, address: str = ..., *, token: str | None = ...) -> str:
        """Serves them; gives the address."""


#: What can be shown.
Shown: TypeAlias = "str | os.PathLike[str] | Source | Selection | GamesOf[Selection] | Serving"


class View:
    """Web pages that this process serves until they are closed, by `close`, by the end of a `with`, or at its end."""

    def __init__(self, pages: _gristmill.Pages, query: str) -> None:
        #: The address of the first page. It has a token where other machines reach it.
        self.url: str = pages.url + query
        #: Whether other machines reach it.
        self.open: bool = pages.open
        self._end = weakref.finalize(self, _close, pages, os.getpid())

    @property
    def closed(self) -> bool:
        """Whether nothing is served any more."""
        return not self._end.alive

    def close(self) -> None:
        """Ends the pages. A second time does nothing."""
        self._end()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"View({self.url!r}{', closed' if self.closed else ''})"

    def _repr_html_(self) -> str:
        from html import escape

        return f'<a href="{escape(self.url)}" target="_blank" rel="noopener">{escape(self.url)}</a>'


@named
def view(what: Shown, *, address: str = "127.0.0.1:0", token: str | None = None) -> View:
    """Shows data or a running loader as web pages, which a thread of this process serves.

        with gm.view("packed/") as pages:
            print(pages.url)

    Of a selection the page has the condition that names its games; where they are too many and too scattered for an
    address, it shows the whole pack and warns. A loader is started and serves its metrics for it, on this machine.

    Args:
        what: a path or URL of a pack, a file of games or a folder of both; what `open` gave; a selection, or its
            `games`; a loader; or the address of one elsewhere, such as `trainer:9100`.
        address: where to listen, `HOST:PORT`; port 0 is any free one. One that other machines reach has a random token
            in the address of its pages.
        token: the token of a loader that is named by its address.

    Raises:
        TypeError: what cannot be shown.
        ConfigError: an address that cannot be listened on.
        ConnectionError: no loader answers there, or something else does.
        OSError, FormatError: as `open`.
    """
    path, loader, query = _named(what)
    if path is not None and token is not None:
        raise TypeError(f"a token is for the address of a loader, not for {what!r}")
    if loader is not None and isinstance(what, str):
        return View(_gristmill.serve_pages(None, (loader, token), address), "")
    if loader is not None:
        return View(_gristmill.serve_pages(None, (loader, None), address), "")
    return View(_gristmill.serve_pages(path, None, address), query)


def _named(what: Shown) -> tuple[str | os.PathLike[str] | None, str | None, str]:
    """The path of data or the address of a loader, and the query of the page."""
    if isinstance(what, str | os.PathLike):
        text = os.fspath(what)
        if isinstance(text, bytes):
            raise TypeError(f"a path is text or os.PathLike of text, found {what!r}; os.fsdecode makes text of bytes")
        found = _LOADER.fullmatch(text)
        if found and isinstance(what, str) and not os.path.exists(text):
            return None, f"{found[1] or '127.0.0.1:'}{found[2]}", ""
        return _gristmill.resolved_place(os.path.expanduser(text)), None, ""
    selection = getattr(what, "_selection", what)
    if isinstance(selection, Selection):
        return selection.path, None, _condition(selection)
    if isinstance(what, Source):
        path = what._path
        if not path or (_gristmill.is_local(path) and not os.path.exists(path)):
            raise TypeError(f"{what!r} lies in no file that could be shown; save it, and show the file")
        return path, None, ""
    serve = getattr(what, "serve_metrics", None)
    if callable(serve):
        return None, str(serve("127.0.0.1:0")), ""
    kinds = "a path or URL, what gristmill.open gives, a selection, a loader, or the address of one"
    raise TypeError(f"{type(what).__name__} cannot be shown; expected {kinds}")


def _condition(selection: Selection) -> str:
    """The query that names the games of a selection; empty for all of the pack."""
    from urllib.parse import quote

    if selection._compiled.num_frames == selection._compiled.total_frames:
        return ""
    ids = selection.game_ids
    parts = [f"id = {first}" if first == last else f"id BETWEEN {first} AND {last}" for first, last in _runs(ids)]
    found = "?where=" + quote(" OR ".join(parts) or "0", safe="")
    if len(found) <= _LONGEST:
        return found
    text = f"{len(ids)} games in {len(parts)} places are too many for an address: the pages show the whole pack"
    warnings.warn(text, stacklevel=4)
    return ""


def _runs(ids: Iterable[int]) -> list[list[int]]:
    """Numbers as their runs: the first and the last of each."""
    runs: list[list[int]] = []
    for one in sorted(ids):
        if runs and one <= runs[-1][1] + 1:
            runs[-1][1] = one
        else:
            runs.append([one, one])
    return runs


def _close(pages: _gristmill.Pages, process: int) -> None:
    # A forked child has the object, and no thread.
    if os.getpid() == process:
        pages.close()
