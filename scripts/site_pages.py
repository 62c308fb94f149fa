"""A hook of mkdocs: the pages that the program and the package say themselves, and links that leave the documentation.

References of commands, of Python, of configurations and of metrics are made at each build of what is installed, so they
cannot go stale. Files of the repository that lie beside `docs/` become pages where they are text, and plain names where
they are code.
"""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
import sys
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent

#: Pages of the repository that become pages of the site.
_BESIDE = {"ARCHITECTURE.md": "architecture.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}

#: A link to a file: its text, the file, and a place in it.
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")

#: Parts of the reference of Python: title, and names of `gristmill`, or a module whole.
_PYTHON = (
    (
        "Feed",
        [
            *("DataLoader", "resume", "Batch", "Output", "TensorSpec", "Blocks", "Hanse", "Certificate"),
            *("merge_states", "OldestNeeded"),
        ],
    ),
    ("Open", ["open", "Rows", "Games", "Trajectories", "Fields", "Source", "Layout", "Array"]),
    (
        "Make",
        ["pack", "merge", "convert", "generate", "value_rows", "checksum", "recover", "stats", "verify", "doctor"],
    ),
    ("Demonstrations of a task", ["Demos", "PairLoader", "StepLoader", "load_dataset_dict", "load_wds_datasets"]),
)
#: Modules that are shown whole.
_MODULES = (
    *("chess", "g2048", "pairs", "views", "presets", "config", "stores", "errors", "jobs.describing"),
    *("jax", "ray", "torch"),
)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fills the parts of the navigation that are folders, in the order of names."""
    for part in config.nav or []:
        for title, folder in (("Formats", "format"), ("Adding", "adding"), ("Decisions", "design")):
            if title in part:
                pages = sorted((ROOT / "docs" / folder).glob("*.md"))
                part[title] = [f"{folder}/{page.name}" for page in pages]
        if "Adding" in part:
            part["Adding"] += list(_BESIDE.values())
        if "Reference" in part:
            part["Reference"] = [
                {"Commands": "reference/commands.md"},
                {"Python": "reference/python.md"},
                {"Configurations": "reference/configuration.md"},
                {"Metrics": "reference/metrics.md"},
                *part["Reference"],
            ]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that are made."""
    made = {
        "reference/commands.md": commands(),
        "reference/python.md": python(),
        "reference/configuration.md": configuration(),
        "reference/metrics.md": metrics(),
        **{name: (ROOT / beside).read_text() for beside, name in _BESIDE.items()},
    }
    for name, text in made.items():
        files.append(File.generated(config, name, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Makes links to what is no page of the site plain, and links to pages beside the documentation whole."""
    at = PurePosixPath(page.file.src_uri).parent
    # Where the page lies in the repository.
    home = PurePosixPath("." if page.file.src_uri in _BESIDE.values() else "docs") / at

    def linked(found: re.Match[str]) -> str:
        text, target, anchor = found[1], found[2], found[3] or ""
        path = PurePosixPath(os.path.normpath(home / target))
        if str(path) in _BESIDE or path.is_relative_to("docs"):
            inside = _BESIDE.get(str(path)) or str(path.relative_to("docs"))
            if str(path) == "docs" or files.get_file_from_path(inside) is None:
                inside = "README.md"
            return f"[{text}]({os.path.relpath(inside, at)}{anchor})"
        if str(path) == "README.md":
            return f"[{text}]({os.path.relpath('README.md', at)})"
        return text

    # Every second part is a block of code; what a block needs is for the tests.
    parts = re.split(r"^(```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    parts[::2] = [_LINK.sub(linked, part) for part in parts[::2]]
    parts[1::2] = [re.sub(r"\A```python needs=\w+", "```python", part) for part in parts[1::2]]
    return "".join(parts)


def commands() -> str:
    """The help of every command."""
    program = next(
        (path for path in (Path(sys.executable).with_name("gristmill"), *_built()) if path.exists()),
        None,
    )
    if program is None:
        raise SystemExit("site: no gristmill command; `cargo build -p gristmill-cli` makes it")

    def said(*words: str) -> str:
        line = [program, *words, "--help"]
        env = {**os.environ, "GRISTMILL_PYTHON": sys.executable, "COLUMNS": "100"}
        return subprocess.run(line, check=True, stdout=subprocess.PIPE, text=True, env=env).stdout

    def below(text: str, heading: str) -> list[str]:
        lines = text.split(f"{heading}\n", 1)[-1].split("\nOptions:", 1)[0].splitlines()
        names = [found[1] for line in lines if (found := re.match(r"  ([a-z0-9-]+)  ", line))]
        return [name for name in names if name != "help"]

    head = said()
    parts = [f"# Commands\n\nWhat `gristmill --help` says, and each command.\n\n```text\n{head}```\n"]
    for name in below(head, "Look at data:"):
        text = said(name)
        groups = below(text, "Commands:") if "\nCommands:\n" in text else []
        for words in [[name], *([name, kind] for kind in groups)]:
            body = text if words == [name] else said(*words)
            parts.append(f"\n## {' '.join(words)}\n\n```text\n{body}```\n")
    return "".join(parts)


def _built() -> list[Path]:
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    return [target / "release" / "gristmill", target / "debug" / "gristmill"]


def python() -> str:
    """The public names, and the modules that users import."""
    parts = ["# Python\n\n`import gristmill as gm`.\n"]
    for title, names in _PYTHON:
        parts.append(f"\n## {title}\n")
        parts += [f"\n::: gristmill.{name}\n" for name in names]
    for module in _MODULES:
        parts.append(
            f"\n## gristmill.{module}\n\n::: gristmill.{module}\n    options:\n      show_root_heading: false\n"
        )
    return "".join(parts)


def configuration() -> str:
    """Every table of a configuration, its fields, and what they are where nothing is said."""
    from gristmill import config

    parts = [
        "# Configurations\n\nThe tables of a configuration in TOML, as `gristmill feed FILE --dry-run` prints it.\n"
    ]
    for name, table in vars(config).items():
        if dataclasses.is_dataclass(table) and isinstance(table, type) and name.endswith("Config"):
            about = " ".join((table.__doc__ or "").split("\n\n")[0].split())
            parts.append(
                f"\n## {name.removesuffix('Config')}\n\n{about}\n\n| field | type | default |\n|---|---|---|\n"
            )
            for field in dataclasses.fields(table):
                kind = str(field.type).replace("|", "\\|")
                parts.append(f"| `{field.name}` | {kind} | {_default(field)} |\n")
    return "".join(parts)


def _default(field: dataclasses.Field[Any]) -> str:
    if field.default_factory is not dataclasses.MISSING:
        value = field.default_factory()
        return "a queue" if dataclasses.is_dataclass(value) else f"`{value!r}`"
    if field.default is dataclasses.MISSING:
        return "must be given"
    return "the engine decides" if field.default is None else f"`{field.default!r}`"


def metrics() -> str:
    """What loaders say of themselves at `/metrics`."""
    from gristmill._gristmill import metric_families

    lines = [f"| `{name}` | {kind} | {about} |\n" for name, kind, about in metric_families()]
    about = (
        "What `/metrics` of loaders says, of streams, packs and pairs, in the text format of Prometheus; "
        "[top](../guide/top.md) shows it live. A loader exports the families that its stages have. "
        "`*` stands for the name of a [rule](../format/chess-rules.md)."
    )
    return f"# Metrics\n\n{about}\n\n" + "| name | type | means |\n|---|---|---|\n" + "".join(lines)
