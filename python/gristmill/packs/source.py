"""Opening one file of chunks, whatever its format, the folder of a pack, or one of shards."""

from __future__ import annotations

import glob
import operator
import os
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypedDict, TypeVar, Unpack, overload

from gristmill import _gristmill
from gristmill.errors import ConfigError, FormatError
from gristmill.options.arguments import named
from gristmill.packs.again import open_again
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.records.arrays import Array
from gristmill.records.drawing import table, with_card
from gristmill.records.layout import Layout
from gristmill.stores import absolute

#: What the data is expected to open as.
Expected = TypeVar("Expected", bound="Source | Rows | Games")


class Source:
    """A sequence of chunks; each is a structured array with one record per frame."""

    def __init__(self, path: str, compiled: _gristmill.Source | _gristmill.Demos) -> None:
        self._path = path
        self._compiled: _gristmill.Source | _gristmill.Demos = compiled

    @property
    def key(self) -> str:
        """File name without directory: what sorting goes by, and splitting where games have no names of their own."""
        return self._compiled.key

    @property
    def format(self) -> str:
        """Short name of the container and format, such as `lc0.tar`."""
        return self._compiled.format

    @property
    def layout(self) -> Layout:
        """Layout of the records."""
        return Layout(self._compiled.layout())

    @property
    def num_frames(self) -> int:
        """Frames in all chunks."""
        return self._compiled.num_frames()

    def frames(self, index: int) -> int:
        """Frames in one chunk."""
        return self._compiled.frames(self._place(index))

    def member(self, index: int) -> str | None:
        """Name of the member that holds a chunk; `None` where the file is the chunk."""
        return self._compiled.member(self._place(index))

    def __len__(self) -> int:
        """How many chunks there are."""
        return len(self._compiled)

    @overload
    def __getitem__(self, index: int) -> Array: ...
    @overload
    def __getitem__(self, index: slice) -> list[Array]: ...
    def __getitem__(self, index: int | slice) -> Array | list[Array]:
        """One chunk as a structured array, or several as a list.

        Raises:
            IndexError: there is no such chunk.
            FormatError: the chunk is bad; it says where.
        """
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        layout, frames, memory = self._compiled.chunk(self._place(index))
        return Array.over(memory, (frames,), Layout(layout).dtype)

    def __iter__(self) -> Iterator[Array]:
        return (self[i] for i in range(len(self)))

    def _repr_html_(self) -> str:
        fields = self.layout.dtype
        rows = ((name, fields[name].base, fields[name].shape) for name in fields.names or ())
        shown = table(f"{self!r}, {self.num_frames} frames", ("field", "dtype", "shape"), rows)
        return with_card(shown, lambda: _gristmill.card_of_file(self._path, 0))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._path!r}, format={self.format!r}, chunks={len(self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        """The place of the file: another process opens it again."""
        return open_again, (open, absolute(self._path), {}, (len(self), self.num_frames))

    def _place(self, index: int) -> int:
        place = operator.index(index)
        if place < 0:
            place += len(self)
        if not 0 <= place < len(self):
            raise IndexError(f"chunk {index} of {self._path}, which has {len(self)}")
        return place


class _Options(TypedDict, total=False):
    """Options of `open`, as it explains them."""

    memory: bool
    mmap: bool
    values: str | os.PathLike[str] | None
    columns: str | os.PathLike[str] | None
    verify: Literal["open", "first_touch", "off"] | None
    strict: bool
    fields: Mapping[str, str] | None


@overload
def open(path: str | os.PathLike[str], *, expect: type[Expected], **options: Unpack[_Options]) -> Expected: ...  # noqa: A001
@overload
def open(path: str | os.PathLike[str], *, expect: None = None, **options: Unpack[_Options]) -> Any: ...  # noqa: A001
@named
def open(  # noqa: A001  (gristmill.open is the public name)
    path: str | os.PathLike[str],
    *,
    expect: type[Any] | None = None,
    memory: bool = False,
    mmap: bool = True,
    values: str | os.PathLike[str] | None = None,
    columns: str | os.PathLike[str] | None = None,
    verify: Literal["open", "first_touch", "off"] | None = None,
    strict: bool = True,
    fields: Mapping[str, str] | None = None,
) -> Any:
    """Opens a file that is known, by its name and first bytes, or a folder: a pack, 2048 rows, shards, a data set.

    Arrays of one's own (`.npz`, pickle, HDF5, Parquet, MCAP, a folder of `.npy`, or of a file for each episode) are
    demonstrations: usual names are known (observations, actions, rewards, terminals, ...), `fields` names others. So
    are data sets of Minari, LeRobot, TFDS (RLDS) and `imitation`, by their folders.

        rows = gm.open("2048-pack/", expect=gm.Rows)  # and type checkers know what it is

    Nothing is decoded yet, but for demonstrations that cannot be read in parts. A folder of rows is a pack,
    self-play, a legacy pack or exponents: `Rows.form` says which.

    Returns:
        `Games` for a chunk pack, `Trajectories` for one of demonstrations (`Demos` with `columns`), `Rows` for a
        folder of rows, `Demos` for a file of demonstrations, a folder of shards or a data set, else `Source`.

    Args:
        path: the file or folder, or its URL (`file:`, `memory:`); `~` is the home folder, and a pattern such as
            `runs/*.npz` one data set of arrays.
        expect: the class that it opens as, such as `gristmill.Rows`; data of another class is refused.
        memory: for a pack: read the files into memory now, instead of letting the system keep what it has room for.
        mmap: for a pack: `False` maps no file, which is what `memory=True` does too. The files of a pack that is mapped
            must stay as long as they are: where one is cut meanwhile, the system ends the process (SIGBUS) and nothing
            can be raised. Without a mapping a file that is too short is an error of this call, and what becomes of it
            later changes nothing.
        values: for a pack: folder of its values, where they do not lie beside its rows.
        columns: for demonstrations: a folder to keep them in as columns that are mapped, instead of memory; more
            options has `gristmill.demos.open_demos`.
        verify: for a pack of rows: when rows are held against the checksums beside them. `open` does it for all now,
            `first_touch` for each block of 256 rows when the first of them is wanted, `off` never. By default
            `first_touch` where there are checksums; `gristmill checksum` makes them for packs that have none.
        strict: for demonstrations: `False` reads what lies before the end mark of a tar that has more after it,
            instead of refusing it.
        fields: for arrays of one's own and LeRobot: by field the name of its array, as `{"obs": "observations"}`; only
            these are read, and what says where episodes end.

    Raises:
        OSError: it cannot be read, as its own subclass (`FileNotFoundError`, `PermissionError`, ...).
        FormatError: nothing in it is recognised, its headers are bad, the folder is no pack, rows do not have their
            checksums, or it opens as another class than `expect`.
        ConfigError: `columns` for what is no demonstration, `verify` for what has no checksums.
        TypeError: a path that is neither text nor `os.PathLike`; of bytes, `os.fsdecode` makes text.
        MissingPackageError: a Minari data set needs the extra `minari`, LeRobot `lerobot`, RLDS `rlds`.
    """
    if isinstance(path, bytes) or not isinstance(path, str | os.PathLike) or isinstance(os.fspath(path), bytes):
        raise TypeError(f"a path is text or os.PathLike of text, found {path!r}; os.fsdecode makes text of bytes")
    if expect is not None and not (isinstance(expect, type) and issubclass(expect, Source | Rows | Games)):
        raise TypeError(f"expect={expect!r}; expected a class that data opens as, such as gristmill.Rows")
    path = _gristmill.resolved_place(os.path.expanduser(os.fspath(path)))
    if _gristmill.is_local(path):
        found = _opened(path, memory or not mmap, values, columns, verify, strict, fields)
    else:
        found = _opened_elsewhere(path, memory or not mmap, values, columns, verify, strict, fields)
    if expect is not None and not isinstance(found, expect):
        classes = f"gristmill.{type(found).__name__}, expected gristmill.{expect.__name__}"
        raise FormatError(f"{path} opens as {classes}", kind="unsupported", source=path)
    return found


def _opened_elsewhere(
    path: str,
    memory: bool,
    values: str | os.PathLike[str] | None,
    columns: str | os.PathLike[str] | None,
    verify: Literal["open", "first_touch", "off"] | None,
    strict: bool,
    fields: Mapping[str, str] | None,
) -> Source | Rows | Games:
    if fields is not None:
        text = f"{path}: arrays of one's own are read from files of this machine; copy them to a folder"
        raise ConfigError(text, field="fields")
    if _gristmill.holds_games(path) and columns is None:
        for option, value in {"verify": verify, "values": values}.items():
            if value is not None:
                raise ConfigError(f"{path} holds whole games, `{option}` is of rows of 2048", field=option)
        from gristmill.packs.kinds import opened

        return opened(_gristmill.open_pack(path, memory, None, None))
    if _gristmill.holds_demos(path):
        from gristmill.demos.source import open_demos

        return open_demos(path, columns=columns, strict=strict)
    if _gristmill.is_folder(path):
        return Rows(_gristmill.open_pack(path, memory, values, verify))
    return Source(path, _gristmill.open_source(path))


def _opened(
    path: str,
    memory: bool,
    values: str | os.PathLike[str] | None,
    columns: str | os.PathLike[str] | None,
    verify: Literal["open", "first_touch", "off"] | None,
    strict: bool,
    fields: Mapping[str, str] | None,
) -> Source | Rows | Games:
    rows_only = "of rows of 2048 that lie in a folder alone; other data is checked as docs/format/checks.md says"
    from gristmill.demos.minari.catalogue import data_folder
    from gristmill.demos.own.opening import could_be_own, files_of_a_form, is_own, open_own

    pattern = not os.path.exists(path) and glob.has_magic(path)
    packed = not pattern and _gristmill.holds_games(path)
    shards = os.path.isdir(path) and not packed and _gristmill.holds_demos(path)
    known = packed or shards or data_folder(path) is not None
    if fields is not None or pattern or (is_own(path) and not known):
        given = {"memory": memory, "values": values, "verify": verify}
        for option, value in given.items():
            if value:
                raise ConfigError(f"{path}: {option} does not go with arrays of one's own", field=option)
        try:
            return open_own(path, fields=fields, columns=columns)
        except FormatError:
            inside = files_of_a_form(path) if fields is None else []
            if len(inside) == 1:
                return _opened(inside[0], False, None, columns, None, strict, None)
            if not inside:
                raise
            advice = f"{len(inside)} files of demonstrations, each a data set: gristmill.open({inside[0]!r}) opens one"
            text = f"{path} holds {advice}, gristmill.pack({path!r}, PACK) makes a pack of all, which opens as one"
            raise FormatError(text, kind="unsupported", source=path) from None
    is_rows = os.path.isdir(path) and data_folder(path) is None
    if verify is not None and not is_rows:
        raise ConfigError(f"{path}: checksums are {rows_only}", field="verify")
    if data_folder(path) is not None:
        from gristmill.demos.minari import open_minari

        return open_minari(path, columns=columns)
    if (columns is not None or not packed) and _gristmill.holds_demos(path):
        from gristmill.demos.source import open_demos

        try:
            return open_demos(path, columns=columns, strict=strict)
        except FormatError as error:
            if error.kind not in ("unknown_format", "unsupported") or not could_be_own(path):
                raise
            # What no form knows may be arrays, and the error says which there are.
            try:
                return open_own(path, columns=columns)
            except FormatError as own:
                raise (own if error.kind == "unknown_format" else error) from None
    if columns is not None:
        raise ConfigError(f"{path} holds no demonstrations, and nothing else is kept in columns", field="columns")
    if packed:
        if verify is not None:
            raise ConfigError(f"{path} holds whole games: checksums are {rows_only}", field="verify")
        if values is not None:
            raise ConfigError(f"{path} holds whole games, which have no values beside them", field="values")
        from gristmill.packs.kinds import opened

        return opened(_gristmill.open_pack(path, memory, None, None))
    if os.path.isdir(path) and could_be_own(path):
        return open_own(path, columns=columns)
    if os.path.isdir(path):
        return Rows(_gristmill.open_pack(path, memory, values, verify))
    return Source(path, _gristmill.open_source(path))
