"""The documentation as a site: it is built without a warning, and says what the program and the package say."""

import html
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import gristmill as gm
from gristmill._gristmill import metric_families

ROOT = Path(__file__).resolve().parents[1]


def words(page: Path) -> str:
    return re.sub(r"<[^>]+>", "", page.read_text())


def has_every_page(site: Path) -> None:
    for page in (ROOT / "docs").rglob("*.md"):
        inside = page.relative_to(ROOT / "docs").with_suffix("")
        assert (site / ("index.html" if page.name == "README.md" else inside / "index.html")).exists(), page
    assert (site / "search/search_index.json").exists()


def has_references(site: Path) -> None:
    """They are what the program and the package say."""
    commands = words(site / "reference/commands/index.html")
    for said in ("gristmill generate chess", "gristmill tokenizer fit", "gristmill verify-run", "--dry-run"):
        assert said in commands
    python = words(site / "reference/python/index.html")
    for said in ("oldest_needed", "Delivers the batches that a", "StateError", "TemporalOffset", "resume", "describe"):
        assert said in python
    configuration = words(site / "reference/configuration/index.html")
    assert "hanse_sampling_gamma" in configuration
    assert "dedup" in configuration.lower()
    metrics = words(site / "reference/metrics/index.html")
    for name, _, about in metric_families():
        assert name in metrics
        assert html.escape(about, quote=False) in metrics


def test_every_path_and_every_origin_has_its_page() -> None:
    """The five guided paths, and what people come from."""
    navigation = (ROOT / "mkdocs.yml").read_text()
    for title in ("My first batch", "My Lc0 run", "My 2048 logs", "My demonstrations", "Many machines"):
        assert f"- {title}: guide/" in navigation
    for page in ("from-lczero.md", "from-2048former.md", "why-exactly-once.md"):
        assert f"guide/{page}" in navigation
        assert (ROOT / "docs/guide" / page).exists()
    origins = re.findall(r"^## (.+)$", (ROOT / "docs/guide/coming-from.md").read_text(), re.MULTILINE)
    assert {"il-representations", "webdataset", "Grain", "Minari", "LeRobot", "PyTorch"} <= set(origins)
    assert "- search" in navigation
    for page, picture in (
        *(("top.md", "top.svg"), ("commands.md", "inspect.svg"), ("commands.md", "stats.png")),
        ("view.md", "view-chess.png"),
    ):
        assert f"]({picture})" in (ROOT / "docs/guide" / page).read_text()
        drawn = (ROOT / "docs/guide" / picture).read_bytes()
        assert drawn.startswith((b"<svg", b"\x89PNG"))
        assert b"url(http" not in drawn


def loads_nothing_from_elsewhere(site: Path) -> None:
    for page in site.rglob("*.html"):
        loaded = re.findall(r"""<(?:script|img|link|iframe)[^>]+(?:src|href)=["'](https?:)?//""", page.read_text())
        assert not loaded, page


def links_lead_somewhere(site: Path) -> None:
    """What lies beside `docs/` is a page or a plain name, never a link into nothing."""
    for page in site.rglob("*.html"):
        for target in re.findall(r'href="([^"#]+)[^"]*"', page.read_text()):
            if page.name != "404.html" and not target.startswith("/") and "://" not in target:
                there = (page.parent / target).resolve()
                assert there.exists(), f"{page.relative_to(site)}: {target}"


def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """As `make site` builds it. One test checks all of it, for it takes seconds to build."""
    pytest.importorskip("mkdocs")
    pytest.importorskip("mkdocstrings")
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    if not any((target / built / "gristmill").exists() for built in ("debug", "release")):
        pytest.skip("skipped: no gristmill command; `cargo build` makes it")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    has_every_page(tmp_path)
    has_references(tmp_path)
    loads_nothing_from_elsewhere(tmp_path)
    links_lead_somewhere(tmp_path)


def test_every_error_is_in_the_index_of_errors() -> None:
    page = (ROOT / "docs/guide/errors.md").read_text()
    for name, error in vars(gm.errors).items():
        if inspect.isclass(error) and issubclass(error, gm.GristmillError) and error is not gm.GristmillError:
            row = next((line for line in page.splitlines() if line.startswith(f"| `{name}` |")), "")
            builtin = next(base.__name__ for base in error.__mro__ if base.__module__ == "builtins")
            assert f"| `{builtin}` |" in row, f"{name} is a {builtin}; the page says: {row or 'nothing'}"
    code = (ROOT / "crates/gristmill-bytes/src/error.rs").read_text()
    kinds = re.findall(r'Kind::\w+(?:\([^)]*\))? => "(\w+)"', code)
    assert len(kinds) > 12
    for file in (ROOT / "python/gristmill").rglob("*.py"):
        # Of `fault(place, kind, ...)` and `FormatError(..., kind=...)`.
        raised = re.findall(r'\b_?fault\(\s*[\w.]+, "([a-z_]+)"|FormatError\([^)]*kind="([a-z_]+)"', file.read_text())
        kinds += [one or other for one, other in raised]
    for kind in kinds:
        assert f"`{kind}`" in page, kind
