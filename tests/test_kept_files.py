"""What earlier versions wrote still opens, resumes and verifies, to the bit: states, journals, packs, marks."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from kept_files import ROWS, STREAMS, content, of_stream, pairs, rows, settle, stream, taken

import gristmill as gm

KEPT = Path(__file__).parent / "data" / "kept"
EXPECTED: dict[str, Any] = json.loads((KEPT / "expected.json").read_text())


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A copy of all of it, with the times that the files had."""
    shutil.copytree(KEPT, tmp_path / "kept")
    settle(tmp_path / "kept")
    return tmp_path / "kept"


def batches(name: str) -> list[str]:
    found: list[str] = EXPECTED[name]["batches"]
    return found


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("threads", [1, 3])
def test_a_stream_resumes_from_its_state(kept: Path, name: str, threads: int) -> None:
    rest = batches(name)[EXPECTED[name]["before"] :]
    loader = stream(name, kept, threads=threads)
    loader.load(kept / "streams" / name / "state.json")
    assert of_stream(loader, len(rest)) == rest
    loader.stop()


@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_begins_again_by_its_journal_alone(kept: Path, name: str) -> None:
    if name == "held":
        # Without a state the run needs all that it began with.
        shutil.copy2(kept / "games" / "training.2.gz", kept / "streams" / name / "games")
    for replay in (False, True):
        loader = stream(name, kept, replay=replay, **({"spill": None} if replay else {}))
        if (ledger := kept / "streams" / name / "ledger").exists():
            ledger.unlink()
        assert of_stream(loader, len(batches(name))) == batches(name)
        loader.stop()


def test_what_was_held_is_still_found(kept: Path) -> None:
    assert not (kept / "streams" / "held" / "games" / "training.2.gz").exists()
    loader = stream("held", kept, spill=None)
    loader.load(kept / "streams" / "held" / "state.json")
    with pytest.raises(gm.GristmillError, match=r"training\.2\.gz"):
        loader.start()


@pytest.mark.parametrize("world", [1, 2])
def test_the_parts_of_two_ranks_are_one_state(kept: Path, world: int) -> None:
    before = EXPECTED["lanes"]["before"]
    ranks = [stream("lanes", kept, ranks=(rank, world)) for rank in range(world)]
    for rank in ranks:
        rank.load(kept / "streams" / "lanes" / "state")
    found = [of_stream(rank, 9) for rank in ranks]
    if world == 1:
        assert found[0] == batches("lanes")[before : before + 9]
    for rank in ranks:
        rank.stop()
    again = [stream("lanes", kept, ranks=(rank, 2), journal=None) for rank in range(2)]
    assert [of_stream(rank, before) for rank in again] == EXPECTED["lanes"]["shares"]
    if world == 2:
        assert [of_stream(rank, 9) for rank in again] == found
    for rank in again:
        rank.stop()


@pytest.mark.parametrize("name", ROWS)
def test_rows_resume_from_their_state(kept: Path, name: str) -> None:
    before = EXPECTED[name]["before"]
    ledger = kept / f"{name}.ledger"
    loader = rows(name, kept, ledger=ledger if ledger.exists() else None)
    loader.load(kept / f"{name}.json")
    assert of_stream(loader, len(batches(name)) - before) == batches(name)[before:]
    loader.stop()
    with rows(name, kept) as loader:
        assert of_stream(loader, len(batches(name))) == batches(name)


def test_pairs_resume_from_their_state(kept: Path) -> None:
    before = EXPECTED["pairs"]["before"]
    loader = pairs(kept)
    loader.load(kept / "pairs.json")
    assert taken(loader, len(batches("pairs")) - before) == batches("pairs")[before:]


def test_packs_open_and_verify(kept: Path) -> None:
    assert {name: content(kept / name) for name in EXPECTED["content"]} == EXPECTED["content"]
    for name in ("rows48", "rows46", "chunks", "demos", "games", "tars", "logs", "shards"):
        found = gm.verify(kept / name)
        assert found.ok, (name, found)
    assert gm.verify(kept / "chunks", against=kept / "games").ok
    marks = [(name, [mark.name for mark in gm.open(kept / name).marks()]) for name in ("rows46", "chunks")]
    assert marks == [("rows46", ["early"]), ("chunks", ["late", "third"])]


def test_packs_are_merged_with_new_ones(kept: Path, tmp_path: Path) -> None:
    gm.generate("2048", tmp_path / "more", games=2, seed=70, moves_max=20, depth=0)
    for name, data in (("rows48", tmp_path / "more"), ("chunks", kept / "tars")):
        gm.pack(data, tmp_path / f"new-{name}")
        new = gm.open(tmp_path / f"new-{name}").num_frames
        merged = gm.merge([kept / name, tmp_path / f"new-{name}"], tmp_path / f"merged-{name}")
        assert merged.rows == gm.open(kept / name).num_frames + new
        assert gm.verify(tmp_path / f"merged-{name}").ok


def test_a_state_of_another_kind_is_refused_by_what_it_is_of(kept: Path) -> None:
    plain = kept / "streams" / "plain" / "state.json"
    with pytest.raises(gm.StateError, match=r"plain/state\.json: it is of a stream: .*this one is a loader of rows"):
        rows("rows48", kept).load(plain)
    with pytest.raises(gm.StateError, match=r"pairs\.json: it is of pairs or steps"):
        rows("rows48", kept).load(kept / "pairs.json")
    with pytest.raises(gm.StateError, match=r"rows48\.json: it is of rows: .*this one is a stream"):
        stream("plain", kept).load(kept / "rows48.json")
    with pytest.raises(gm.StateError, match="it is of pairs or steps"):
        stream("plain", kept).load_state_dict(json.loads((kept / "pairs.json").read_text()))


def test_states_of_now_have_one_envelope(kept: Path) -> None:
    of_rows, of_stream = rows("rows48", kept), stream("plain", kept)
    of_rows.load(kept / "rows48.json")
    of_stream.load(kept / "streams" / "plain" / "state.json")
    for loader, of in ((of_rows, "rows"), (of_stream, "stream")):
        state = loader.state_dict()
        assert list(state)[:2] == ["gristmill_state", "of"]
        assert "checksum" in state
        assert (state["gristmill_state"], state["of"]) == (4, of)
        assert gm.merge_states([state]).items() >= {"of": of, "gristmill_state": 4}.items()
