"""The dashboard and the reference of metrics: every name and label is one that loaders export, with help of its own."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from buckets import FaultServer, built
from steps_in_memory import columns
from test_metrics import scraped

import gristmill as gm
from gristmill._gristmill import chess_rules, metric_families

ROOT = Path(__file__).resolve().parents[1]
BOARD: Any = json.loads((ROOT / "docs/guide/grafana.json").read_text())

#: Labels that Prometheus itself adds.
ADDED = {"job", "instance"}


def queries() -> Iterator[tuple[str, str, str]]:
    """The title of each panel, what it asks, and how its lines are called."""
    for panel in BOARD["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"], target["legendFormat"]


def names(text: str) -> set[str]:
    return set(re.findall(r"\bgristmill_[a-z_]+", text))


def exported(text: str) -> set[str]:
    """Names of the series: those that have values, and those that have some once there is something to count."""
    kinds = re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE)
    ends = {"counter": "_total", "info": "_info"}
    return {name + ends.get(kind, "") for name, kind in kinds}


Options: TypeAlias = dict[str, Any]


def lines_of(loader: gm.DataLoader) -> str:
    """What a loader exports that has given a batch."""
    with loader:
        loader.get_next()
        return scraped(loader.serve_metrics())


def streams(folder: Path, games: Path, options: Options) -> Iterator[str]:
    """Streams with every stage, and every option that counts."""
    with gm.DataLoader(gm.presets.lc0(games, epochs=1, **options)) as loader:
        list(loader)
        yield scraped(loader.serve_metrics())
    yield lines_of(gm.DataLoader(gm.presets.lc0(games, watch=False, lanes=2, **options), rank=1, world_size=2))
    options = options | {"watch": False}
    cached: Options = {"hanse_sampling_threshold": 1, "position_count": 1, "position_cache": 200}
    loader = gm.DataLoader(gm.presets.lc0(games, **cached, **options))
    loader.control(reset_chunk_anchor=True)
    yield lines_of(loader)
    yield lines_of(gm.DataLoader(with_stages(gm.presets.lc0(games, spill=folder / "spill", **options))))


def with_stages(config: gm.DataLoaderConfig) -> gm.DataLoaderConfig:
    """The stages that a preset does not have: of whole games before the unpacker, of frames after it."""
    unpacker = next(stage for stage in config.stage if stage.chunk_unpacker)
    sampler = next(stage for stage in config.stage if stage.shuffling_frame_sampler)
    config.stage += [
        gm.StageConfig("validate", unpacker.input, chunk_validator=gm.ChunkValidatorConfig()),
        gm.StageConfig("rescore", ["validate"], chunk_rescorer=gm.ChunkRescorerConfig()),
        gm.StageConfig("dedup", sampler.input, dedup_window=gm.DedupWindowConfig(window=100)),
    ]
    unpacker.input, sampler.input = ["rescore"], ["dedup"]
    return config


def packs(folder: Path, games: Path) -> Iterator[str]:
    gm.pack(games, folder / "pack")
    yield lines_of(gm.DataLoader(gm.open(folder / "pack"), batch_size=16, seed=1))


def demonstrations() -> Iterator[str]:
    pairs = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)
    list(pairs)
    yield scraped(pairs.serve_metrics())
    steps = gm.StepLoader(columns([5, 7]), batch_size=4, seed=1)
    next(iter(steps))
    yield scraped(steps.serve_metrics())


def elsewhere(folder: Path, options: Options) -> Iterator[str]:
    """A stream of a bucket that sends events to a queue."""
    server = FaultServer(built(), folder, "--anonymous")
    try:
        gm.stores.reach("s3://", endpoint=server.address, anonymous=True)
        # A queue that does not answer has counts, too.
        gm.stores.reach("sqs://drops", endpoint="http://127.0.0.1:9")
        yield lines_of(gm.DataLoader(gm.presets.lc0("s3://drops/games", events="sqs://drops", **options)))
    finally:
        server.close()


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What loaders of every kind say of themselves."""
    folder = tmp_path_factory.mktemp("dashboard")
    games = folder / "drops" / "games"
    gm.generate("chess", games, games=12, seed=1)
    (games / "training.999.gz").write_bytes(b"\x1f\x8b no game")
    options: Options = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "index": "off"}
    found = [streams(folder, games, options), packs(folder, games), demonstrations(), elsewhere(folder, options)]
    return [text for kind in found for text in kind]


def test_every_number_is_in_the_reference_with_help_of_its_own(texts: list[str]) -> None:
    known = {name: (kind, about) for name, kind, about in metric_families()}
    rules = {f"gristmill_refused_by_{name}_total" for name, *_ in chess_rules()}
    met = set[str]()
    for text in texts:
        kinds = dict(re.findall(r"^# TYPE (\S+) (\S+)$", text, re.MULTILINE))
        for family, about in re.findall(r"^# HELP (\S+) (.*)$", text, re.MULTILINE):
            name = family + {"counter": "_total", "info": "_info"}.get(kinds[family], "")
            if name in rules:
                assert about.endswith(
                    f"by the rule {name.removeprefix('gristmill_refused_by_').removesuffix('_total')} first"
                )
                name = "gristmill_refused_by_*_total"
            else:
                assert known[name] == (kinds[family], about), name
            met.add(name)
    assert len({about for _, about in known.values()}) == len(known)
    assert set(known) == met, "the reference has what no run exports"


def test_every_number_is_one_that_a_loader_exports(texts: list[str]) -> None:
    there = set[str]().union(*map(exported, texts))
    asked = {name: title for title, query, _ in queries() for name in names(query)}
    asked |= {name: "variables" for one in BOARD["templating"]["list"] for name in names(json.dumps(one["query"]))}
    assert len(asked) > 25
    assert {name: title for name, title in asked.items() if name not in there} == {}


def test_every_label_is_one_that_its_number_has(texts: list[str]) -> None:
    labels: dict[str, set[str]] = {}
    for name, said in re.findall(r"^(gristmill_\w+)(?:\{(.*?)\})? ", "\n".join(texts), re.MULTILINE):
        labels.setdefault(name, set()).update(re.findall(r"(\w+)=", said))
    checked = 0
    for title, query, legend in queries():
        wanted = set(re.findall(r"\{\{(\w+)\}\}", legend))
        for one in re.findall(r"by \((.*?)\)", query):
            wanted |= set(one.split(", "))
        for name in names(query) & set(labels):
            assert wanted - ADDED <= labels[name], (title, name)
            checked += 1
        assert set(re.findall(r"(\w+)=~", query)) <= ADDED, title
        assert query.count("(") == query.count(")"), title
    assert checked > 20


def test_the_board_is_one_that_grafana_imports() -> None:
    panels = BOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert max(x for x, _ in cells) < 24, panel["title"]
        taken |= cells
        assert panel["type"] == "row" or (panel["targets"] and panel["description"].endswith(".")), panel["title"]
    variables = {one["name"] for one in BOARD["templating"]["list"]}
    assert variables == {"source", "job", "instance"}
    text = json.dumps(BOARD)
    assert set(re.findall(r"\$\{?([a-z]\w*)", text)) == variables
    assert "http" not in text.replace("https://grafana.com", "")


def test_the_guide_names_what_the_board_shows() -> None:
    guide = (ROOT / "docs/guide/top.md").read_text()
    assert "(grafana.json)" in guide
    said = names(guide.replace("`_store", "`gristmill_store").replace("`_", "`gristmill_queue_"))
    for title, query, _ in queries():
        assert names(query) <= said, title
