"""Games of one's own -> files of records, while they are played; images of rows that draws choose."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from gristmill import _gristmill
from gristmill.errors import ConfigError, FormatError
from gristmill.options.arguments import named
from gristmill.records.layout import Layout

#: A game: a structured array with a record for each row, or by field an array with a value for each row.
Game: TypeAlias = npt.NDArray[Any] | Mapping[str, npt.ArrayLike]

#: How a column follows from a field of all rows of a game.
_HOW = ("first", "last", "min", "max", "sum", "mean")

#: Types of facts: how files call them, and of which values they are.
_SORTS: dict[type, str] = {bool: "int", int: "int", float: "real", str: "text"}
_TAKES: dict[type, tuple[type, ...]] = {bool: (bool, int), int: (bool, int), float: (int, float), str: (str,)}


class Records:
    """What the records of a game are: their fields, the columns that packs have of them, who a game is.

    Args:
        layout: the fields of a row: a structured dtype, or a `Layout`. Numbers become little-endian, padding goes.
        columns: fields of which a pack has a column, for `where`: of one number each. By name of the column a field, or
            `"last:value"`: one of first, last, min, max, sum, mean of the rows. A field alone is its first row.
        facts: what is said of each game beside its rows: names, each with its type (`int`, `float`, `str`, `bool`).
        identity: fields that say who a game is: games alike in them are duplicates. All fields by default.

    Raises:
        TypeError: no structured dtype, or an argument of another type.
        FormatError: fields, columns or names that there cannot be.
    """

    def __init__(
        self,
        layout: Layout | npt.DTypeLike,
        columns: Sequence[str] | Mapping[str, str] = (),
        facts: Mapping[str, type] | None = None,
        identity: Sequence[str] = (),
    ) -> None:
        given = layout.dtype if isinstance(layout, Layout) else np.dtype(layout)
        if given.names is None or given.fields is None:
            raise TypeError(f"layout: expected a structured dtype with named fields, found {given}")
        parts = [(name, *_plain(given.fields[name][0])) for name in given.names]
        #: The dtype of a row.
        self.dtype: np.dtype[Any] = np.dtype(parts)
        #: Names of the facts, and their types.
        self.facts: dict[str, type] = dict(facts or {})
        for name, kind in self.facts.items():
            if kind not in _SORTS:
                raise TypeError(f"facts: {name!r} is {kind!r}; expected int, float, str or bool")
        named_columns = columns.items() if isinstance(columns, Mapping) else [(name, name) for name in columns]
        #: The schema as JSON, as files have it.
        self.text = json.dumps(
            {
                "layout": Layout.from_dtype(self.dtype).descr,
                "identity": [identity] if isinstance(identity, str) else list(identity),
                "columns": [(name, *_column(source)) for name, source in named_columns],
                "facts": [(name, _SORTS[kind]) for name, kind in self.facts.items()],
            }
        )

    def rows(self, game: Game, place: str) -> npt.NDArray[Any]:
        """The records of a game, checked field by field; `place` is what errors call it."""
        if isinstance(game, np.ndarray):
            if game.dtype == self.dtype and game.ndim == 1:
                return np.ascontiguousarray(game)
            names: Sequence[str] = game.dtype.names or ()
            if not names or game.ndim != 1:
                says = f"expected a structured array of one axis, found {game.dtype} {game.shape}"
                raise _fault(place, "unsupported", says)
            fields: Mapping[str, Any] = {name: game[name] for name in names}
        elif isinstance(game, Mapping):
            fields = game
        else:
            raise TypeError(f"{place}: expected a structured array or arrays by field, found {type(game).__name__}")
        wanted = self.dtype.names or ()
        for name in wanted:
            if name not in fields:
                raise _fault(place, "missing", f"no field `{name}`; there are {', '.join(map(str, fields))}", name)
        strange = [name for name in fields if name not in wanted]
        if strange:
            raise _fault(place, "unsupported", f"a field `{strange[0]}`; expected {', '.join(wanted)}", strange[0])
        arrays = {name: _array(place, name, fields[name]) for name in wanted}
        count = len(arrays[wanted[0]])
        rows = np.zeros(count, self.dtype)
        for name, values in arrays.items():
            shape = rows[name].shape
            if values.shape != shape:
                says = f"an array {values.shape}; expected {shape}: {count} rows of `{wanted[0]}`"
                raise _fault(place, "wrong_size", says, name)
            rows[name] = _cast(place, name, values, rows[name].dtype)
        return rows

    def facts_text(self, facts: Mapping[str, Any], place: str) -> str:
        """The facts of a game as files have them; what is not given is unknown."""
        strange = [name for name in facts if name not in self.facts]
        if strange:
            known = ", ".join(self.facts) or "none"
            raise _fault(place, "unsupported", f"a fact `{strange[0]}`; declared are {known}", strange[0])
        if not facts:
            return ""
        values = []
        for name, kind in self.facts.items():
            value = facts.get(name)
            value = value.item() if isinstance(value, np.generic) else value
            if value is not None and type(value) not in _TAKES[kind]:
                raise _fault(place, "out_of_range", f"{value!r}; expected {kind.__name__} or None", name)
            values.append(None if isinstance(value, float) and np.isnan(value) else value)
        try:
            return json.dumps(values, allow_nan=False)
        except ValueError as error:
            raise _fault(place, "out_of_range", f"{error}: facts are finite numbers, texts or None") from error


class Writer:
    """Writes games into a folder while they are played, of which `gristmill.pack` makes a pack, or adds to one.

        with gm.Writer("games", [("board", "i1", 42), ("value", "f4")], facts={"elo": int}) as writer:
            writer.write({"board": boards, "value": values}, elo=1500)
        gm.pack("games", "pack")

    Any number of processes may write into one folder at once: each has files of its own. A game is in its file when
    `write` returns; the file appears to readers, whole, by `flush`, `close`, or when it has `file_bytes`. Where a
    process is killed, the next writer or pack job of the folder takes up its file with all games that it had
    written. A forked process begins a file of its own.

    Args:
        folder: made where it does not exist.
        layout: the fields of a row: a structured dtype, or a `Layout`.
        columns: fields of which a pack has columns, as `gristmill.pack` explains them.
        facts: what is said of each game beside its rows, by name its type.
        identity: fields that say who a game is.
        file_bytes: bytes of a file before the next one is begun.

    Raises:
        TypeError: `layout` is no structured dtype.
        FormatError: fields, columns or names that there cannot be.
        OSError: the folder cannot be written.
    """

    @named
    def __init__(
        self,
        folder: str | os.PathLike[str],
        layout: Layout | npt.DTypeLike,
        *,
        columns: Sequence[str] | Mapping[str, str] = (),
        facts: Mapping[str, type] | None = None,
        identity: Sequence[str] = (),
        file_bytes: int = 64 << 20,
    ) -> None:
        if file_bytes < 1:
            raise ConfigError(f"file_bytes: {file_bytes}, expected 1 or more", field="file_bytes")
        self._records = Records(layout, columns, facts, identity)
        self._folder = os.fspath(folder)
        self._writer = _gristmill.GameWriter(self._folder, self._records.text, file_bytes)
        self._count = 0

    @property
    def recovered(self) -> int:
        """Games of killed writers that were put in place when this one was opened."""
        return self._writer.adopted()

    def write(self, game: Game, **facts: object) -> None:
        """Writes a game, all of it or nothing.

        Args:
            game: a structured array with a record for each row, or by field an array with a value for each row.
            facts: of those that were declared; what is not given is unknown.

        Raises:
            FormatError: it does not fit; the message says game, row, field, and what was expected.
            OSError: it cannot be written.
            ValueError: the writer is closed.
        """
        self.write_as(f"game {self._count}", game, facts)

    def write_as(self, place: str, game: Game, facts: Mapping[str, object]) -> None:
        """As `write`, of a game that errors call `place`."""
        rows = self._records.rows(game, place)
        if not len(rows):
            raise _fault(place, "empty", "a game without rows")
        self._writer.write(rows.view(np.uint8), self._records.facts_text(facts, place))
        self._count += 1

    def flush(self) -> None:
        """Shows what was written to readers, durably; the next game begins another file."""
        self._writer.flush()

    def close(self) -> None:
        """Flushes; nothing can be written afterwards. A second call does nothing."""
        self._writer.finish()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def symmetric(
    values: npt.NDArray[Any],
    draw: npt.NDArray[np.uint64],
    images: Sequence[Callable[[npt.NDArray[Any]], npt.NDArray[Any]]],
) -> npt.NDArray[Any]:
    """Each row as one of its images: which one, the draw of the row says. The same draws turn several arrays together.

        batch = next(iter(gm.DataLoader(pack, encoder=gm.Fields(["board", "policy", "draw"]), batch_size=256, seed=1)))
        flip = [lambda rows: rows, lambda rows: rows[..., ::-1]]
        board = gm.symmetric(batch["board"], batch["draw"], flip)
        policy = gm.symmetric(batch["policy"], batch["draw"], flip)

    The tensor `draw` depends on the seed, the row and the epoch alone, so that a run that resumes turns as before.

    Args:
        values: an array with a row for each of the batch.
        draw: the tensor `draw` of the batch, uint64.
        images: functions that make images of several rows at once, of their shape; the first may give them as they are.

    Raises:
        ValueError: no image, lengths that differ, or an image of another shape.
    """
    found = np.asarray(values)
    if not images or len(found) != len(draw):
        raise ValueError(
            f"{len(images)} images of {len(found)} rows with {len(draw)} draws; expected a draw for each row"
        )
    which = np.asarray(draw) % np.uint64(len(images))
    made = np.empty_like(found)
    for i, image in enumerate(images):
        rows = which == i
        some = np.asarray(image(found[rows]))
        if some.shape != found[rows].shape:
            raise ValueError(f"image {i} of rows {found[rows].shape} has the shape {some.shape}")
        made[rows] = some
    return made


def _plain(dtype: np.dtype[Any]) -> tuple[np.dtype[Any], tuple[int, ...]]:
    """Element and shape of a field, little-endian."""
    base, shape = dtype.subdtype or (dtype, ())
    return base.newbyteorder("<") if base.names is None else base, shape


def _column(source: str) -> tuple[str, str]:
    how, colon, field = source.partition(":")
    return (how, field) if colon and how in _HOW else ("first", source)


def _array(place: str, name: str, values: Any) -> npt.NDArray[Any]:
    try:
        found = np.asarray(values)
    except (ValueError, OverflowError) as error:
        raise _fault(place, "wrong_size", f"rows of different shapes: {error}", name) from error
    if found.ndim == 0:
        raise _fault(place, "wrong_size", f"one value {found.dtype}; expected an array with a value for each row", name)
    return found


def _cast(place: str, name: str, values: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Values as a field has them. Fractions may be rounded; whole numbers have to fit."""
    if values.dtype == dtype:
        return values
    fits = np.can_cast(values.dtype, dtype, "same_kind") or (values.dtype.kind in "iu" and dtype.kind in "iu")
    if not fits:
        raise _fault(place, "unsupported", f"values of {values.dtype}; expected {dtype}", name)
    with np.errstate(over="ignore", invalid="ignore"):
        cast = values.astype(dtype)
    same = cast == values if dtype.kind != "f" else np.isfinite(cast) | ~np.isfinite(values)
    if not same.all():
        at = np.argwhere(~same)[0]
        says = f"row {at[0]} has {values[tuple(at)]!s}, which {dtype} cannot hold"
        raise _fault(place, "out_of_range", says, name, int(at[0]))
    return cast


def _fault(place: str, kind: str, says: str, field: str | None = None, row: int | None = None) -> FormatError:
    where = place if field is None else f"{place}: `{field}`"
    return FormatError(f"{where}: {kind}: {says}", kind=kind, source=place, member=field, frame=row)
