"""What is known of a pack -> a dataset card: Markdown whose front matter is YAML, as the Hugging Face hub takes it."""

from __future__ import annotations

import json
from collections.abc import Iterator

from gristmill.packs.about import FRAMES, GAMES, About, Column
from gristmill.packs.croissant import summary
from gristmill.packs.packed import LineageStep

#: Bounds of the hub's size categories, and their names from below.
_SIZES = [10**3, 10**4, 10**5, 10**6, 10**7, 10**8, 10**9, 10**10, 10**11, 10**12]
_NAMES = ["1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T"]


def card(about: About) -> str:
    """The text of the card.

    The front matter has `pretty_name`, `license`, `size_categories`, `tags`, and `configs` where the tables lie beside
    the pack as Parquet, so that the hub shows them and `datasets.load_dataset` reads them. The text has counts, how to
    read it, columns, files, and how it came to be.
    """
    return "\n".join([*_front(about), "", *_text(about), ""])


def _front(about: About) -> Iterator[str]:
    words = about.words
    yield "---"
    yield f"pretty_name: {json.dumps(about.name)}"
    if words.license is not None and "://" in words.license:
        yield "license: other"
        yield f"license_link: {json.dumps(words.license)}"
    elif words.license is not None:
        yield f"license: {json.dumps(words.license.lower())}"
    yield f"size_categories: [{json.dumps(_size(about.frames))}]"
    yield "task_categories: [reinforcement-learning]"
    yield f"tags: [gristmill, {json.dumps(about.kind)}]"
    if about.has_tables:
        yield "configs:"
        tables = [("frames", FRAMES)] + ([("games", GAMES)] if about.game_columns else [])
        for name, file in tables:
            yield f"- config_name: {name}"
            yield f"  data_files: {file}"
    yield "---"


def _size(frames: int) -> str:
    below = next((place for place, bound in enumerate(_SIZES) if frames < bound), len(_SIZES))
    if below == 0:
        return f"n<{_NAMES[0]}"
    return f"n>{_NAMES[-1]}" if below == len(_SIZES) else f"{_NAMES[below - 1]}<n<{_NAMES[below]}"


def _text(about: About) -> Iterator[str]:
    words = about.words
    yield f"# {_plain(about.name)}"
    yield ""
    if words.description:
        yield words.description
        yield ""
    yield summary(about)
    yield ""
    yield "```python"
    yield "import gristmill as gm"
    yield ""
    yield f"pack = gm.open({about.name!r})  # the folder that has these files"
    yield "for batch in gm.DataLoader(pack, batch_size=1024, seed=1): ..."
    yield "```"
    yield ""
    said = {"Creators": ", ".join(words.creators), "Version": words.version, "Published": words.published}
    for name, value in said.items():
        if value:
            yield f"{name}: {_plain(value)}  "
    if words.citation:
        yield ""
        yield "```"
        yield words.citation
        yield "```"
    yield from _columns("Frames", about.frame_columns)
    if about.game_columns:
        yield from _columns("Games", about.game_columns)
    yield from ("", "## Files", "", "| file | bytes | sha256 |", "|---|---|---|")
    for file in about.files:
        yield f"| `{_plain(file.name)}` | {file.size} | `{file.sha256}` |"
    if about.lineage:
        yield from ("", "## How it came to be", "")
        yield from _jobs(about.lineage, 0)


def _columns(title: str, columns: list[Column]) -> Iterator[str]:
    yield from ("", f"## {title}", "", "| column | type | shape |", "|---|---|---|")
    kinds = {"U": "text", "S": "bytes", "V": "bytes"}
    for column in columns:
        base = column.dtype.base
        kind = "record" if base.names is not None else kinds.get(base.kind, base.name)
        yield f"| `{_plain(column.name)}` | {kind} | {' x '.join(map(str, column.dtype.shape))} |"


def _jobs(steps: list[LineageStep], depth: int) -> Iterator[str]:
    for step in steps:
        options = ", ".join(f"{name} {value}" for name, value in step.options.items())
        told = f"{'  ' * depth}- {step.job}, by {step.writer}"
        sources = step.sources or {}
        games = (
            f": {sources['games']} games of {_plain(str(sources['name']))}" if {"games", "name"} <= set(sources) else ""
        )
        yield f"{told}{games}{f' ({_plain(options)})' if options else ''}"
        for before in step.made_from:
            yield from _jobs(before, depth + 1)


def _plain(text: str) -> str:
    """Text that begins no markup of a table or a line: names are of files, and free."""
    return text.replace("|", "\\|").replace("`", "'").replace("\n", " ").replace("<", "&lt;")
