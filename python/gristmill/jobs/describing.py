"""A pack -> documents about it, beside its files: Croissant metadata, a dataset card, on request tables as Parquet."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import date

from gristmill.config import Path
from gristmill.errors import ConfigError
from gristmill.jobs.publish import published_file
from gristmill.options.arguments import named
from gristmill.options.optional import optional
from gristmill.packs.about import CARD, CROISSANT, FRAMES, GAMES, Words, about
from gristmill.packs.card import card
from gristmill.packs.croissant import croissant
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.source import open as open_pack


@dataclass(frozen=True)
class Described:
    """What came of `describe`."""

    pack: str
    #: The files that were written.
    output: list[str]
    frames: int
    games: int
    #: Files of the data set that the documents list.
    files: int
    dry_run: bool


@named
def describe(
    pack: Path,
    output: Path | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    license: str | None = None,  # noqa: A002  (what catalogues call it)
    creators: Sequence[str] = (),
    url: str | None = None,
    citation: str | None = None,
    version: str | None = None,
    published: str | None = None,
    parquet: bool = False,
    overwrite: bool = False,
    dry_run: bool = False,
    progress: Callable[[int, int], object] | None = None,
) -> Described:
    """Writes `croissant.json` and `README.md` of a pack, from its manifest, layout, lineage, counts and files.

        from gristmill.jobs.describing import describe

        describe("chess-pack", license="CC0-1.0", creators=["A. Player"], parquet=True)

    The first is Croissant 1.1, which catalogues of data sets read; the second a dataset card, Markdown with YAML front
    matter, as the Hugging Face hub takes it. Both list each file with its SHA-256, for which all are read once. The
    same files and words give the same bytes. A pack that is changed afterwards is described again.

    Args:
        pack: the folder of a pack, or of rows.
        output: the folder of what is written, by default the pack's. Names in it are as if it lay beside the pack.
        name: by default that of the folder.
        description: what the data is.
        license: an SPDX id such as `CC0-1.0`, or a URL.
        creators: names of people.
        url: where the data set is published; addresses of files are below it, else relative.
        citation: BibTeX, or any text.
        version: such as `1.0.0`.
        published: a date, as `2026-11-24`.
        parquet: write the tables too, `frames.parquet` and `games.parquet`, from which readers of Croissant, the hub
            and `datasets.load_dataset` take records. They are larger than the pack.
        overwrite: replace what an earlier call wrote.
        dry_run: look only.
        progress: called with files that were read, and all of them.

    Raises:
        ConfigError: there is such a file already, a place that is no folder of this machine, a license or date that is
            none.
        FormatError: no pack, or a damaged one.
        MissingPackageError: `parquet` without pyarrow: `pip install gristmill[arrow]`.
        OSError: a file or folder.
        TypeError: a path or word of another type.
    """
    if isinstance(creators, str):
        raise TypeError(f"creators is a list of names, found {creators!r}")
    words = Words(name, description, license, tuple(creators), url, citation, version, published)
    _checked(words)
    opened = open_pack(pack)
    if not isinstance(opened, Games | Rows):
        what = f"{type(opened).__name__}, no pack; gristmill.pack makes one"
        raise ConfigError(f"`pack`: {os.fspath(pack)}: {what}", field="pack")
    folder = os.path.abspath(opened.path)
    if not os.path.isdir(folder):
        raise ConfigError(f"`pack`: {opened.path}: no folder of this machine; copy it to one", field="pack")
    out = folder if output is None else os.path.abspath(os.path.expanduser(os.fspath(output)))
    tables = [FRAMES, GAMES] if parquet else []
    if parquet:
        optional("pyarrow.parquet", "arrow")
        tables = tables if opened._compiled.facts([]) else [FRAMES]
    made = [os.path.join(out, file) for file in [*tables, CROISSANT, CARD]]
    there = [path for path in made if os.path.lexists(path)]
    if there and not overwrite:
        raise ConfigError(
            f"`output`: {there[0]}: it is there already; overwrite=True (--overwrite) replaces it", field="output"
        )
    if not dry_run:
        os.makedirs(out, exist_ok=True)
        if parquet:
            opened.to_parquet(os.path.join(out, FRAMES), overwrite=overwrite)
        if len(tables) > 1:
            opened.games.to_parquet(os.path.join(out, GAMES), overwrite=overwrite)
        told = about(opened, words, list(dict.fromkeys([folder, out] if parquet else [folder])), progress)
        texts = {CROISSANT: json.dumps(croissant(told), indent=1, ensure_ascii=False) + "\n", CARD: card(told)}
        with ExitStack() as both:
            for file, text in texts.items():
                staged = both.enter_context(published_file(os.path.join(out, file)))
                with open(staged, "w", encoding="utf-8") as written:
                    written.write(text)
    return Described(
        pack=folder,
        output=made,
        frames=opened.num_frames,
        games=opened.num_games,
        files=0 if dry_run else len(told.files),
        dry_run=dry_run,
    )


def _checked(words: Words) -> None:
    """Refuses words that a catalogue would not take.

    Raises:
        ConfigError: a name without letters, a license or a date that is none.
        TypeError: a word that is no text.
    """
    for field, value in vars(words).items():
        for one in value if field == "creators" else [value]:
            if one is not None and not isinstance(one, str):
                raise TypeError(f"{field} is text, found {one!r}")
            if one is not None and not one.strip():
                raise ConfigError(f"`{field}`: it is empty; leave it out", field=field)
    if words.license is not None and "://" not in words.license and any(c.isspace() for c in words.license):
        message = f"`license`: {words.license!r}: expected an SPDX id, such as CC0-1.0, or a URL"
        raise ConfigError(message, field="license")
    if words.url is not None and "://" not in words.url:
        raise ConfigError(f"`url`: {words.url!r}: expected an address, such as https://example.org/data", field="url")
    if words.published is not None:
        try:
            date.fromisoformat(words.published)
        except ValueError as error:
            message = f"`published`: {words.published!r}: expected a date, such as 2026-11-24"
            raise ConfigError(message, field="published") from error
