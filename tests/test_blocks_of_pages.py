"""Blocks of the pages that are neither Python nor lines of the command: each is read here, or by a test that is named.

Configurations are laid over a preset, as the pages say, and fed; what Prometheus reads is held against the metrics that
there are.
"""

import re
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gristmill as gm
from gristmill._gristmill import metric_families

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

#: Which test reads the blocks of a language that are read elsewhere; without a page those of all.
ELSEWHERE = {
    ("python", "guide/"): "tests/test_docs_run.py",
    ("c", "guide/your-own-game.md"): "crates/gristmill-c/tests/playing/main.rs",
    ("diff", "adding/"): "tests/test_adding_pages.py",
    ("json", "format/order.md"): "crates/gristmill-engine/tests/page_order.rs",
    ("sh", "guide/many-machines.md"): "tests/test_sharing.py",
    ("sql", "format/pack.md"): "crates/gristmill-jobs/tests/pack/document.rs",
}


class Block(NamedTuple):
    """A block of a page: the page below docs/, its first line, its language, and its text."""

    page: str
    line: int
    language: str
    text: str


def blocks() -> Iterator[Block]:
    for page in PAGES:
        text = page.read_text()
        name = page.name if page.parent == ROOT else str(page.relative_to(ROOT / "docs"))
        for found in re.finditer(r"^```(\w+)[^\n]*\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
            yield Block(name, text[: found.start()].count("\n") + 2, found[1], found[2])


def of(language: str) -> list[Any]:
    return [pytest.param(one, id=f"{one.page}:{one.line}") for one in blocks() if one.language == language]


def reader(block: Block) -> str | None:
    for (language, page), test in ELSEWHERE.items():
        # The README is among the guides.
        if block.language == language and (
            block.page.startswith(page) or (page == "guide/" and block.page == "README.md")
        ):
            return test
    return None


def test_every_language_of_a_block_has_a_reader() -> None:
    strange = [one for one in blocks() if one.language not in ("toml", "yaml") and reader(one) is None]
    assert strange == []
    for (language, page), test in ELSEWHERE.items():
        assert any(reader(one) == test for one in blocks()), f"no {language} in {page}"
        assert Path(page).name in (ROOT / test).read_text(), f"{test} does not name {page}"


def between(config: gm.DataLoaderConfig, name: str, before: str) -> None:
    """A stage that a block added stands before another one, which reads it now."""
    next(stage for stage in config.stage if stage.name == before).input = [name]


def with_a_window(config: gm.DataLoaderConfig) -> None:
    between(config, "dedup", "sample")


def with_hits(config: gm.DataLoaderConfig) -> None:
    between(config, "both", "sample")


def nothing(config: gm.DataLoaderConfig) -> None:
    """The block says all."""


class Laid(NamedTuple):
    """What a block is laid over, and what else the page says to do."""

    options: dict[str, Any]
    then: Callable[[gm.DataLoaderConfig], None] = nothing
    rescores: bool = False


#: By page and a word of its block.
OVER = {
    ("guide/dedup-window.md", "dedup_window"): Laid({}, with_a_window),
    ("guide/sampling.md", "hanse_sampling_threshold"): Laid({"position_count": 1}),
    ("guide/sampling.md", "position_cache_size"): Laid({"position_count": 1}, with_hits),
    ("guide/from-lczero.md", "allow_missing_tables"): Laid({}, rescores=True),
}


def based(laid: Laid) -> gm.DataLoaderConfig:
    config = gm.presets.lc0("games", batch_size=16, reservoir=32, watch=False, **{"seed": 1, **laid.options})
    if laid.rescores:
        unpacker = next(stage for stage in config.stage if stage.chunk_unpacker)
        rescorer = gm.ChunkRescorerConfig()
        config.stage.append(gm.StageConfig("rescorer", unpacker.input, chunk_rescorer=rescorer))
        unpacker.input = ["rescorer"]
    return config


@pytest.mark.parametrize("block", of("toml"))
def test_a_configuration_of_a_page_is_fed(block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    gm.generate("chess", "games", games=20, seed=1)
    laid = next(laid for (page, word), laid in OVER.items() if page == block.page and word in block.text)
    Path("block.toml").write_text(block.text)
    Path("run").mkdir()
    config = based(laid).overlaid("block.toml")
    laid.then(config)
    with gm.DataLoader(config) as loader:
        assert len(loader.get_next()["planes"]) == 16
    # What it says is what is fed.
    values = config.to_dict()
    for name, value in tomllib.loads(block.text).items():
        if name != "stage":
            assert values[name] == value or Path(values[name]).is_relative_to(tmp_path), name


def test_the_graph_of_the_position_cache_is_that_of_the_preset(tmp_path: Path) -> None:
    (block,) = (one for one in blocks() if one.language == "toml" and "position_cache_size" in one.text)
    (tmp_path / "block.toml").write_text(block.text)
    laid = OVER["guide/sampling.md", "position_cache_size"]
    config = based(laid).overlaid(tmp_path / "block.toml")
    laid.then(config)
    size = tomllib.loads(block.text)["stage"][0]["shuffling_chunk_pool"]["position_cache_size"]
    wanted = based(Laid({"position_count": 1, "position_cache": size}))
    by_name = [{stage["name"]: stage for stage in one.to_dict()["stage"]} for one in (config, wanted)]
    assert by_name[0] == by_name[1]


@pytest.mark.parametrize("block", of("yaml"))
def test_what_prometheus_reads_is_what_it_takes(block: Block, tmp_path: Path) -> None:
    yaml = pytest.importorskip("yaml")
    said = yaml.safe_load(block.text)
    known = {name for name, *_ in metric_families()}
    assert set(re.findall(r"gristmill_\w+", block.text)) <= known
    file = tmp_path / "file.yml"
    file.write_text(block.text)
    if "scrape_configs" in said:
        check = ["check", "config", "--syntax-only"]
        for job in said["scrape_configs"]:
            assert set(job) <= {"job_name", "scrape_interval", "static_configs", "authorization"}
            assert all(
                re.fullmatch(r"[\w.]+:\d+", target) for one in job["static_configs"] for target in one["targets"]
            )
    else:
        check = ["check", "rules"]
        for rule in (rule for group in said["groups"] for rule in group["rules"]):
            assert set(rule) == {"alert", "expr", "for"} or set(rule) == {"alert", "expr"}
            assert rule["expr"].count("(") == rule["expr"].count(")")
    if (promtool := shutil.which("promtool")) is not None:
        done = subprocess.run([promtool, *check, str(file)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
