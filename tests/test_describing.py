"""Croissant metadata and cards of packs: they say what is there, other programs read them, nothing is half done."""

import hashlib
import itertools
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_command import run, told
from test_packs_arrow import LAYOUTS, chess, rows, trajectories

import gristmill as gm
from gristmill.jobs.describing import describe
from gristmill.packs.about import Column
from gristmill.packs.croissant import data_type

WORDS: dict[str, Any] = {
    "name": "my data",
    "description": "What was played.",
    "license": "CC0-1.0",
    "creators": ["A. Player", "B. Player"],
    "url": "https://example.org/data/",
    "citation": "@misc{mine}",
    "version": "1.0.0",
    "published": "2026-11-24",
}


def croissant(folder: Path | str) -> Any:
    return json.loads((Path(folder) / "croissant.json").read_text())


def validated(folder: Path | str) -> Any:
    """The data set as the reader of the standard's authors has it: it refuses what does not conform."""
    with warnings.catch_warnings():
        # What that reader's own packages warn of.
        warnings.simplefilter("ignore")
        mlc = pytest.importorskip("mlcroissant")
        found = mlc.Dataset(str(Path(folder) / "croissant.json"))
    assert found.metadata.ctx.issues.errors == set()
    assert found.metadata.ctx.conforms_to.value == "http://mlcommons.org/croissant/1.1"
    return found


@pytest.fixture(params=LAYOUTS, ids=lambda make: make.__name__)
def pack(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


def test_every_file_is_listed_with_its_hash(pack: Any) -> None:
    there = {path.name: path.read_bytes() for path in Path(pack.path).iterdir()}
    done = describe(pack.path)
    assert done.output == [str(Path(pack.path) / name) for name in ("croissant.json", "README.md")]
    assert (done.frames, done.games, done.files) == (len(pack), pack.num_games, len(there))
    listed = [file for file in croissant(pack.path)["distribution"] if file["@type"] == "cr:FileObject"]
    assert {file["contentUrl"]: (file["contentSize"], file["sha256"]) for file in listed} == {
        name: (f"{len(data)} B", hashlib.sha256(data).hexdigest()) for name, data in there.items()
    }
    # It is still the pack that it was, and another call gives the same bytes.
    assert np.asarray(gm.open(pack.path).take([0])).tobytes() == np.asarray(pack.take([0])).tobytes()
    texts = [Path(path).read_bytes() for path in done.output]
    describe(pack.path, overwrite=True)
    assert [Path(path).read_bytes() for path in done.output] == texts


def stored_as(pack: gm.Rows) -> list[str]:
    return ["steps-*.npy"] if pack.form == "self-play" else ["steps.npy"]


def test_columns_are_those_of_the_tables(pack: Any) -> None:
    describe(pack.path)
    sets = {one["@id"]: one for one in croissant(pack.path)["recordSet"]}
    for name, table in (("frames", pack), ("games", pack.games)):
        fields = sets[name]["field"]
        assert [field["source"]["extract"]["column"] for field in fields] == table.to_arrow().schema.names
    shapes = {field["@id"]: field.get("arrayShape") for field in sets["frames"]["field"]}
    for name in pack.layout.names:
        shape = ",".join(map(str, pack.layout.dtype[name].shape)) or None
        assert shapes.get(f"frames/field_{name}", shapes.get(f"frames/{name}")) == shape
    stored = next(one for one in croissant(pack.path)["distribution"] if one["@type"] == "cr:FileSet")
    assert stored["includes"] == (["games-*.chunks"] if isinstance(pack, gm.Games) else stored_as(pack))


@pytest.mark.parametrize("parquet", [False, True])
def test_the_validator_of_the_standard_takes_it(pack: Any, parquet: bool) -> None:
    describe(pack.path, parquet=parquet, license="CC0-1.0")
    assert validated(pack.path).metadata.name == "pack"


def test_records_are_read_by_the_reader_of_the_standard(pack: Any) -> None:
    describe(pack.path, parquet=True)
    found = validated(pack.path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        records = list(itertools.islice(found.records("frames"), 3))
        games = list(found.records("games"))
    taken = np.asarray(pack.take([0, 1, 2]))
    for name in pack.layout.names:
        column = f"frames/field_{name}" if f"frames/field_{name}" in records[0] else f"frames/{name}"
        np.testing.assert_array_equal([record[column] for record in records], taken[name])
    assert [record["games/id"] for record in games] == pack.game_ids


def test_words_are_taken_as_they_are_said(tmp_path: Path) -> None:
    pack = chess(tmp_path)
    describe(pack.path, **WORDS)
    found = croissant(pack.path)
    assert found["license"] == "https://spdx.org/licenses/CC0-1.0"
    assert [one["name"] for one in found["creator"]] == WORDS["creators"]
    said = {"name": "name", "url": "url", "citeAs": "citation", "version": "version", "datePublished": "published"}
    assert {key: found[key] for key in said} == {key: WORDS[word] for key, word in said.items()}
    assert found["distribution"][0]["contentUrl"].startswith("https://example.org/data/games-")
    card = (Path(pack.path) / "README.md").read_text()
    assert all(word in card for word in ("# my data", "A. Player, B. Player", "@misc{mine}", "What was played."))
    assert validated(pack.path).metadata.ctx.issues.warnings == set()


def test_lineage_is_provenance(tmp_path: Path) -> None:
    one, two = chess(tmp_path / "one"), chess(tmp_path / "two")
    gm.merge([one.path, two.path], tmp_path / "both")
    describe(tmp_path / "both")
    (merge,) = croissant(tmp_path / "both")["prov:wasGeneratedBy"]
    assert (merge["name"], merge["prov:wasAssociatedWith"]["name"]) == ("merge", f"gristmill {gm.__version__}")
    made = [entity["prov:wasGeneratedBy"][0] for entity in merge["prov:used"] if "prov:wasGeneratedBy" in entity]
    assert [job["name"] for job in made] == ["pack", "pack"]
    assert made[0]["prov:used"][0]["name"] == "in"
    assert "- merge, by gristmill" in (tmp_path / "both/README.md").read_text()
    assert "  - pack, by gristmill" in (tmp_path / "both/README.md").read_text()
    validated(tmp_path / "both")


def front(folder: Path | str) -> Any:
    yaml = pytest.importorskip("yaml")
    text = (Path(folder) / "README.md").read_text()
    assert text.startswith("---\n")
    return yaml.safe_load(text.split("---\n")[1])


def test_the_front_matter_is_what_the_hub_takes(tmp_path: Path) -> None:
    pack = rows(tmp_path)
    describe(pack.path, license="CC-BY-4.0", name='2048: "it"\u2026')
    found = front(pack.path)
    assert (found["license"], found["pretty_name"]) == ("cc-by-4.0", '2048: "it"\u2026')
    assert (found["size_categories"], found["tags"]) == (["n<1K"], ["gristmill", "2048"])
    assert "configs" not in found
    describe(pack.path, license="https://example.org/mine", parquet=True, overwrite=True)
    found = front(pack.path)
    assert (found["license"], found["license_link"]) == ("other", "https://example.org/mine")
    names = [(one["config_name"], one["data_files"]) for one in found["configs"]]
    assert names == [("frames", "frames.parquet"), ("games", "games.parquet")]


def test_datasets_loads_the_folder_by_its_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    pack = trajectories(tmp_path)
    describe(pack.path, parquet=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        frames = datasets.load_dataset(pack.path, "frames", split="train", cache_dir=str(tmp_path / "cache"))
        games = datasets.load_dataset(pack.path, "games", split="train", cache_dir=str(tmp_path / "cache"))
    assert frames["frame"][:] == list(range(len(pack)))
    np.testing.assert_array_equal(np.asarray(frames["obs"][:], "f4"), pack.column("obs"))
    assert games["id"][:] == pack.game_ids


def test_documents_may_lie_elsewhere_and_replace_none_unasked(tmp_path: Path) -> None:
    pack = chess(tmp_path)
    before = sorted(path.name for path in Path(pack.path).iterdir())
    plan = describe(pack.path, tmp_path / "out", parquet=True, dry_run=True)
    assert [Path(path).name for path in plan.output] == [
        "frames.parquet",
        "games.parquet",
        "croissant.json",
        "README.md",
    ]
    assert (plan.dry_run, (tmp_path / "out").exists()) == (True, False)
    done = describe(pack.path, tmp_path / "out", parquet=True)
    assert sorted(path.name for path in Path(pack.path).iterdir()) == before
    assert done.output == plan.output
    listed = [file["@id"] for file in croissant(tmp_path / "out")["distribution"]]
    assert listed == sorted([*before, "frames.parquet", "games.parquet"])
    with pytest.raises(gm.ConfigError, match="it is there already") as error:
        describe(pack.path, tmp_path / "out")
    assert error.value.field == "output"
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        describe(pack.path, tmp_path / "file")
    assert not list(tmp_path.rglob(".*.part"))


def test_a_described_pack_takes_more_games(tmp_path: Path) -> None:
    from generated_games import write_games

    pack = chess(tmp_path)
    describe(pack.path, parquet=True)
    gm.pack(write_games(tmp_path / "more", 9), pack.path, existing="append")
    assert gm.open(pack.path).num_games == 9
    describe(pack.path, parquet=True, overwrite=True)
    files = {file["@id"] for file in croissant(pack.path)["distribution"]}
    assert {"games-00000.chunks", "games-00001.chunks"} <= files


def test_what_is_no_pack_is_refused(tmp_path: Path) -> None:
    from generated_games import write_games

    pack, games = chess(tmp_path), write_games(tmp_path / "games", 2)
    with pytest.raises(FileNotFoundError):
        describe(tmp_path / "none")
    with pytest.raises(gm.ConfigError, match=r"Source, no pack; gristmill\.pack makes one") as error:
        describe(next(games.glob("*.gz")))
    assert error.value.field == "pack"
    with pytest.raises(gm.GristmillError):
        describe(games)
    with pytest.raises(TypeError):
        describe(42)  # type: ignore[arg-type]
    place = gm.stores.Memory("described-pack")
    for file in Path(pack.path).iterdir():
        place[file.name] = file.read_bytes()
    with pytest.raises(gm.ConfigError, match="no folder of this machine"):
        describe("memory://described-pack")
    (Path(pack.path) / "metadata.db").write_bytes(b"no database")
    with pytest.raises(gm.FormatError):
        describe(pack.path)
    assert not (Path(pack.path) / "croissant.json").exists()


@pytest.mark.parametrize(
    ("words", "error", "says"),
    [
        ({"published": "yesterday"}, gm.ConfigError, "expected a date"),
        ({"license": "do what you want"}, gm.ConfigError, "SPDX"),
        ({"url": "example"}, gm.ConfigError, "expected an address"),
        ({"name": "  "}, gm.ConfigError, "`name`: it is empty"),
        ({"creators": "me"}, TypeError, "a list of names"),
        ({"creators": [1]}, TypeError, "creators is text"),
        ({"version": 1}, TypeError, "version is text"),
        ({"licence": "MIT"}, TypeError, "did you mean 'license'"),
    ],
)
def test_words_that_make_no_sense_are_refused(
    tmp_path: Path, words: dict[str, Any], error: type[Exception], says: str
) -> None:
    pack = chess(tmp_path)
    with pytest.raises(error, match=says):
        describe(pack.path, **words)
    assert not (Path(pack.path) / "croissant.json").exists()


def test_the_command_writes_and_tells(tmp_path: Path) -> None:
    pack = chess(tmp_path)
    words = ["describe", pack.path, "--license", "CC0-1.0", "--creator", "A", "--creator", "B"]
    assert told(*words, "--dry-run")["dry_run"]
    made = told(*words, "--data-version", "1.0.0")
    assert (made["frames"], made["games"]) == (len(pack), 5)
    assert [one["name"] for one in croissant(pack.path)["creator"]] == ["A", "B"]
    assert "--overwrite" in run(*words, code=2).stderr
    said = run(*words, "--overwrite", "--parquet").stdout
    assert f"{pack.path}/frames.parquet written" in said
    assert "no pack; " in run("describe", next((tmp_path / "in").glob("*.gz")), code=2).stderr


@pytest.mark.parametrize(
    ("dtype", "found"),
    [
        ("?", "sc:Boolean"),
        ("<i1", "cr:Int8"),
        (">u8", "cr:UInt64"),
        ("<f2", "cr:Float16"),
        ("S4", "sc:Text"),
        ("U3", "sc:Text"),
        ("V2", "sc:Text"),
    ],
)
def test_types_of_columns(dtype: str, found: str) -> None:
    assert data_type(np.dtype(dtype)) == found


def test_records_within_records_and_complex_numbers_have_a_form() -> None:
    from gristmill.packs.croissant import _field

    inner = Column("pair", np.dtype([("a", "<i2"), ("b", "<c8", 3)]))
    found = _field("frames/pair", inner.name, inner.dtype, {"fileObject": {"@id": "x"}})
    assert [(one["@id"], one["dataType"], one.get("arrayShape")) for one in found["subField"]] == [
        ("frames/pair/a", "cr:Int16", None),
        ("frames/pair/b", "cr:Float32", "3,2"),
    ]
