"""Boards as SVG and tables as HTML, for notebooks. Whatever comes from data is escaped."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from gristmill.errors import GristmillError

#: Side of a square, in pixels.
_SIDE = 44

#: Men as letters of a FEN, and as they are drawn: those of both colours by the filled symbols.
_MEN = dict(zip("kqrbnp", "♚♛♜♝♞♟", strict=True))

_LIGHT, _DARK, _PLAYED, _BEST = "#f0d9b5", "#b58863", "#d08700", "#2e7d32"

#: Colours of tiles by rank, from none to 2048; higher ones are as the last.
_TILES = (
    ("#cdc1b4", "#776e65"),
    ("#eee4da", "#776e65"),
    ("#ede0c8", "#776e65"),
    ("#f2b179", "#f9f6f2"),
    ("#f59563", "#f9f6f2"),
    ("#f67c5f", "#f9f6f2"),
    ("#f65e3b", "#f9f6f2"),
    ("#edcf72", "#f9f6f2"),
    ("#edcc61", "#f9f6f2"),
    ("#edc850", "#f9f6f2"),
    ("#edc53f", "#f9f6f2"),
    ("#edc22e", "#f9f6f2"),
    ("#3c3a32", "#f9f6f2"),
)


class Drawing(str):
    """A picture as SVG text, which notebooks show; `pathlib.Path("board.svg").write_text(drawing)` keeps it."""

    __slots__ = ()

    def _repr_svg_(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"Drawing({len(self)} characters of SVG)"


def chess_board(fen: str, arrows: Iterable[tuple[str, str]] = ()) -> Drawing:
    """A position as White sees it.

    Args:
        fen: of which the first field is drawn, and the second named.
        arrows: moves such as `e2e4` with `"played"` or `"best"`.
    """
    places, side = fen.split()[:2]
    parts = []
    for row, rank in enumerate(places.split("/")):
        file = 0
        for letter in rank:
            for _ in range(int(letter) if letter.isdigit() else 1):
                fill = _DARK if (row + file) % 2 else _LIGHT
                parts.append(_rect(file * _SIDE, row * _SIDE, fill))
                if not letter.isdigit():
                    parts.append(_man(letter, file, row))
                file += 1
    parts += [_arrow(move, _PLAYED if kind == "played" else _BEST) for move, kind in arrows]
    title = f"{fen.split()[0]}, {'black' if side == 'b' else 'white'} to move"
    return _svg(8 * _SIDE, title, parts)


def g2048_board(ranks: Sequence[int]) -> Drawing:
    """A board of 2048: sixteen ranks in row-major order, 0 for empty, r for the tile 2^r."""
    side = 2 * _SIDE
    parts = [f'<rect width="{4 * side}" height="{4 * side}" fill="#bbada0"/>']
    for place, rank in enumerate(ranks):
        x, y = place % 4 * side, place // 4 * side
        fill, ink = _TILES[min(rank, len(_TILES) - 1)]
        parts.append(f'<rect x="{x + 4}" y="{y + 4}" width="{side - 8}" height="{side - 8}" rx="4" fill="{fill}"/>')
        if rank:
            text = str(1 << rank)
            size = min(34, 110 // max(len(text), 1))
            place_of = f'x="{x + side // 2}" y="{y + side // 2}" dominant-baseline="central" text-anchor="middle"'
            parts.append(
                f'<text {place_of} font-family="sans-serif" font-weight="bold" font-size="{size}" fill="{ink}">'
                f"{text}</text>"
            )
    return _svg(4 * side, "2048: " + " ".join(map(str, ranks)), parts)


def table(caption: str, head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """A table as HTML; captions and cells are texts, and escaped."""
    from html import escape

    first = "".join(f"<th>{escape(str(cell))}</th>" for cell in head)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in rows)
    return f"<table><caption>{escape(caption)}</caption><thead><tr>{first}</tr></thead><tbody>{body}</tbody></table>"


def with_card(shown: str, card: Callable[[], str]) -> str:
    """A table with a card below it; the table alone where nothing can be drawn, such as of a file that has gone."""
    try:
        return shown + card()
    except (GristmillError, OSError, ValueError):
        return shown


def _svg(side: int, title: str, parts: Iterable[str]) -> Drawing:
    from html import escape

    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side} {side}" width="{side}" height="{side}">'
    return Drawing(f"{head}<title>{escape(title)}</title>{''.join(parts)}</svg>")


def _rect(x: int, y: int, fill: str) -> str:
    return f'<rect x="{x}" y="{y}" width="{_SIDE}" height="{_SIDE}" fill="{fill}"/>'


def _man(letter: str, file: int, row: int) -> str:
    x, y = file * _SIDE + _SIDE // 2, row * _SIDE + _SIDE // 2
    fill, edge = ("#ffffff", "#333333") if letter.isupper() else ("#111111", "#111111")
    place = f'x="{x}" y="{y}" dominant-baseline="central" text-anchor="middle" font-size="{_SIDE - 8}"'
    return f'<text {place} fill="{fill}" stroke="{edge}" stroke-width="0.8">{_MEN[letter.lower()]}</text>'


def _arrow(move: str, colour: str) -> str:
    """A line from the middle of one square to that of another, with a dot at its end."""
    (x1, y1), (x2, y2) = (_middle(move[i : i + 2]) for i in (0, 2))
    ink = f'stroke="{colour}" stroke-width="6" stroke-opacity="0.75" stroke-linecap="round"'
    dot = f'<circle cx="{x2}" cy="{y2}" r="9" fill="{colour}" fill-opacity="0.75"/>'
    return f'<g data-move="{move}"><line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" {ink}/>{dot}</g>'


def _middle(square: str) -> tuple[int, int]:
    file, rank = ord(square[0]) - ord("a"), int(square[1])
    return file * _SIDE + _SIDE // 2, (8 - rank) * _SIDE + _SIDE // 2
