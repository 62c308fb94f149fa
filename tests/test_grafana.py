"""The dashboard of the guide: every number and label that it asks for is one that loaders export."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from buckets import FaultServer, built
from steps_in_memory import columns
from test_metrics import scraped

import gristmill as gm

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


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What a stream, a stream of a bucket and a loader of pairs say of themselves."""
    folder = tmp_path_factory.mktemp("dashboard")
    gm.generate("chess", folder / "drops" / "games", games=12, seed=1)
    bad = folder / "drops" / "games" / "training.999.gz"
    bad.write_bytes(b"\x1f\x8b no game")
    options: dict[str, Any] = {"pool": 10, "reservoir": 40, "batch_size": 16, "seed": 1, "index": "off", "epochs": 1}
    found = []
    with gm.DataLoader(gm.presets.lc0(folder / "drops" / "games", **options)) as loader:
        list(loader)
        found.append(scraped(loader.serve_metrics()))
    del options["epochs"]
    with gm.DataLoader(gm.presets.lc0(folder / "drops" / "games", watch=False, **options)) as loader:
        loader.get_next()
        found.append(scraped(loader.serve_metrics()))
    pairs = gm.PairLoader(columns([5, 7]), batch_size=4, seed=1)
    list(pairs)
    found.append(scraped(pairs.serve_metrics()))
    server = FaultServer(built(), folder, "--anonymous")
    try:
        gm.stores.reach("s3://", endpoint=server.address, anonymous=True)
        with gm.DataLoader(gm.presets.lc0("s3://drops/games", watch=False, **options)) as loader:
            loader.get_next()
            found.append(scraped(loader.serve_metrics()))
    finally:
        server.close()
    return found


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
