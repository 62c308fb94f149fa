"""Tables of frames become packs: of Arrow, Parquet and every library that gives a stream, to the bit."""

import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated_games import game
from test_command import told
from test_packs_arrow import boards, chess, records, rows, self_play, trajectories

import gristmill as gm
from gristmill.demos.own.by_game import Tabled
from gristmill.demos.own.tabled import write
from gristmill.packs.arrow import column

pa = pytest.importorskip("pyarrow")
compute = pytest.importorskip("pyarrow.compute")

BACK = [chess, rows, boards, trajectories, records]


@pytest.fixture(params=BACK, ids=lambda make: make.__name__)
def pack(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return request.param(tmp_path)


def assert_same(path: Path, pack: Any, games: list[int] | None = None) -> None:
    """The pack at `path` has the frames of `pack`, or those of some of its games, to the bit."""
    found = gm.open(path)
    assert type(found) is type(pack)
    chosen = pack if games is None else pack.where(f"id IN ({', '.join(map(str, games))})")
    assert found.layout == pack.layout
    assert [found.frames(i) for i in range(found.num_games)] == [chosen.frames(i) for i in range(chosen.num_games)]
    for i in range(chosen.num_games):
        one, other = np.asarray(found.games[i]), np.asarray(chosen.games[i])
        for name in found.layout.names:
            assert one[name].tobytes() == other[name].tobytes(), name


def test_a_table_of_arrow_becomes_the_pack_that_it_was(pack: Any, tmp_path: Path) -> None:
    done = gm.pack(pa.table(pack), tmp_path / "again")
    assert (done.rows, done.skipped) == (len(pack), [])
    assert_same(tmp_path / "again", pack)
    assert gm.open(tmp_path / "again").game_ids == pack.game_ids
    assert not list(tmp_path.glob(".*"))


def test_a_stream_is_taken_batch_by_batch(pack: Any, tmp_path: Path) -> None:
    gm.pack(pack.to_arrow(batch_size=3), tmp_path / "again")
    assert_same(tmp_path / "again", pack)


def test_a_parquet_file_of_frames_is_packed(pack: Any, tmp_path: Path) -> None:
    pack.to_parquet(tmp_path / "frames.parquet")
    gm.pack(tmp_path / "frames.parquet", tmp_path / "again")
    assert_same(tmp_path / "again", pack)
    done = told("pack", tmp_path / "frames.parquet", tmp_path / "other")
    assert done["rows"] == len(pack)
    assert_same(tmp_path / "other", pack)


def test_an_arrow_file_of_frames_is_packed(pack: Any, tmp_path: Path) -> None:
    feather, ipc = pytest.importorskip("pyarrow.feather"), pytest.importorskip("pyarrow.ipc")
    with ipc.new_stream(tmp_path / "stream.arrow", pack.to_arrow().schema) as writer:
        for batch in pack.to_arrow(batch_size=7):
            writer.write_batch(batch)
    feather.write_feather(pa.table(pack), tmp_path / "frames.feather")
    for name in ("stream.arrow", "frames.feather"):
        gm.pack(tmp_path / name, tmp_path / f"of-{name}")
        assert_same(tmp_path / f"of-{name}", pack)
        assert told("pack", tmp_path / name, tmp_path / f"by-{name}")["rows"] == len(pack)
        assert_same(tmp_path / f"by-{name}", pack)
    data = (tmp_path / "stream.arrow").read_bytes()
    (tmp_path / "cut.arrow").write_bytes(data[: len(data) * 3 // 5])
    (tmp_path / "bad.arrow").write_bytes(b"ARROW1 no table ARROW1")
    for name in ("cut.arrow", "bad.arrow"):
        with pytest.raises(gm.FormatError, match=rf"{name}: corrupt: Arrow"):
            gm.pack(tmp_path / name, tmp_path / "wrong")
    assert not (tmp_path / "wrong").exists()


def test_whole_games_may_be_left_out(pack: Any, tmp_path: Path) -> None:
    last = pack.game_ids[-1]
    table = pa.table(pack)
    kept = table.filter(compute.equal(table["game_id"], last))
    gm.pack(kept, tmp_path / "some")
    found = gm.open(tmp_path / "some")
    one, other = np.asarray(found.games[0]), np.asarray(pack.where("id = ?", last).games[0])
    for name in set(found.layout.names) - {"run_id"}:
        assert one[name].tobytes() == other[name].tobytes(), name


def test_names_of_valuations_come_along(tmp_path: Path) -> None:
    pack = rows(tmp_path)
    gm.pack(pack.to_arrow(), tmp_path / "again")
    found = gm.open(tmp_path / "again", expect=gm.Rows)
    assert found.valuation_types == pack.valuation_types
    facts = ["id", "seed", "steps", "max_score", "highest_tile"]
    assert found.games.to_arrow(columns=facts).read_all() == pack.games.to_arrow(columns=facts).read_all()


def test_rows_of_2048_are_written_while_the_table_is_read(tmp_path: Path) -> None:
    """No more than a game of them is in memory, however long the table is."""
    pack, sizes, folder = rows(tmp_path), [], tmp_path / "files"
    folder.mkdir()
    batches = list(pack.to_arrow(batch_size=16))
    games = len(pack.game_ids)

    def many() -> Iterator[Any]:
        for again in range(300 // games):
            sizes.append(sum(file.stat().st_size for file in folder.glob("*.npy")))
            for batch in batches:
                ids = compute.add(batch.column("game_id"), again * 1000)
                yield batch.set_column(batch.schema.names.index("game_id"), "game_id", ids)

    assert write(Tabled("made", pack.to_arrow().schema, many()), folder)
    made = np.load(folder / "steps.npy")
    assert len(made) == len(pack) * len(sizes)
    assert made[: len(pack)].tobytes() == made[-len(pack) :].tobytes()
    assert sizes[-1] > made.nbytes * 3 // 4, "rows wait in memory for the end of the table"


def test_records_of_both_versions_are_told_apart(tmp_path: Path) -> None:
    six = pa.table({"game_id": [0] * 9} | columns(game(1, 9)))
    gm.pack(six, tmp_path / "six")
    found = gm.open(tmp_path / "six")
    assert found.games.to_arrow().read_all()["version"].to_pylist() == [6]
    assert np.asarray(found.games[0])["planes"].tobytes() == game(1, 9)["planes"].tobytes()


def columns(records: Any) -> dict[str, Any]:
    return {name: column(records[name]) for name in records.dtype.names}


def test_episodes_of_others_are_taken_by_their_index(tmp_path: Path) -> None:
    obs = np.arange(24, dtype="f4").reshape(12, 2)
    table = pa.table({"observation": column(obs), "action": np.arange(12), "episode_index": [0] * 7 + [1] * 5})
    gm.pack(table, tmp_path / "pack")
    found = gm.open(tmp_path / "pack", expect=gm.Trajectories)
    assert found.lengths == [7, 5]
    np.testing.assert_array_equal(found.column("obs"), obs)
    assert found.column("acts").tolist() == list(range(12))
    pytest.importorskip("pyarrow.feather").write_feather(table, tmp_path / "episodes.feather")
    gm.pack(tmp_path / "episodes.feather", tmp_path / "of-a-file")
    assert gm.open(tmp_path / "of-a-file").lengths == [7, 5]


def test_how_trajectories_ended_is_kept(tmp_path: Path) -> None:
    pack = trajectories(tmp_path)
    assert [pack.truncated(i) for i in range(2)] == [False, True]
    for number, name in enumerate(["game_terminated", "nothing"]):
        gm.pack(pa.table(pack).drop_columns([name] if name != "nothing" else []), tmp_path / f"{number}")
        found = gm.open(tmp_path / f"{number}", expect=gm.Trajectories)
        assert [found.truncated(i) for i in range(2)] == [False, True]


def facts_of(pack: Any, names: list[str]) -> Any:
    return pack.games.to_arrow(columns=names).read_all().to_pydict()


SAID = ["result", "plies", "elo", "who"]


def test_records_keep_columns_facts_and_identity(tmp_path: Path) -> None:
    pack = records(tmp_path)
    gm.pack(pack.to_arrow(batch_size=4), tmp_path / "again")
    again = gm.open(tmp_path / "again", expect=gm.Games)
    assert again._compiled.schema() == pack._compiled.schema()
    assert facts_of(again, [*SAID, "key_xxh3"]) == facts_of(pack, [*SAID, "key_xxh3"])
    # What is made of a field that was left out goes with it.
    gm.pack(pack.to_arrow(columns=["frame", "game_id", "game_elo", "value", "board"]), tmp_path / "some")
    some = gm.open(tmp_path / "some", expect=gm.Games)
    assert some.layout.names == ("board", "value")
    assert facts_of(some, ["result", "elo"]) == facts_of(pack, ["result", "elo"])
    assert "plies" not in some.games.to_arrow().schema.names


def test_without_the_schema_what_is_said_of_games_is_a_fact(tmp_path: Path) -> None:
    pack = records(tmp_path)
    table = pa.table(pack).replace_schema_metadata(None)
    gm.pack(table, tmp_path / "again")
    again = gm.open(tmp_path / "again", expect=gm.Games)
    assert facts_of(again, SAID) == facts_of(pack, SAID)
    told: dict[str, Any] = {"columns": {"result": "last:value"}, "facts": {"elo": int}, "identity": ["board"]}
    gm.pack(table, tmp_path / "told", **told)
    told_so = gm.open(tmp_path / "told", expect=gm.Games)
    names = ["result", "elo", "key_xxh3"]
    assert facts_of(told_so, names) == facts_of(pack, names)
    pack.to_parquet(tmp_path / "frames.parquet")
    gm.pack(tmp_path / "frames.parquet", tmp_path / "file", layout=[("value", "<f8")], facts={"who": str})
    of_file = gm.open(tmp_path / "file", expect=gm.Games)
    assert (of_file.layout.dtype["value"], of_file.layout.names) == (np.dtype("f8"), ("value",))
    assert facts_of(of_file, ["who"]) == facts_of(pack, ["who"])


def test_rows_of_ones_own_need_no_more_than_their_game(tmp_path: Path) -> None:
    boards, moves = column(np.arange(12, dtype="i1").reshape(6, 2)), ["a", "bc", "d", "e", "f", "g"]
    match, elo = ["x", "x", "y", "y", "y", "z"], [7, 7, 8, 8, 8, None]
    table = pa.table({"board": boards, "move": moves, "match": match, "elo": elo})
    options: dict[str, Any] = {"layout": [("board", "i1", 2), ("move", "U2")], "game": "match", "facts": {"elo": int}}
    gm.pack(table, tmp_path / "pack", **options)
    pack = gm.open(tmp_path / "pack", expect=gm.Games)
    assert [list(records["move"]) for records in pack.games] == [["a", "bc"], ["d", "e", "f"], ["g"]]
    assert facts_of(pack, ["elo"]) == {"elo": [7, 8, None]}
    assert pa.table(pack)["move"].to_pylist() == moves
    wrongs: list[tuple[dict[str, Any], type[Exception], str]] = [
        ({"layout": [("board", "i1", 2), ("move", "U1")]}, gm.FormatError, "values of game x do not fit <U1"),
        ({"layout": [("boards", "i1", 2)]}, gm.ConfigError, "no column `boards`; there are board, move, match, elo"),
        ({"game": "round"}, gm.ConfigError, "no column says of which game a row is; expected round"),
        ({"facts": {"name": str}}, gm.ConfigError, "no column `name` of this fact"),
        ({"facts": {"move": str}, "layout": [("board", "i1", 2)]}, gm.FormatError, "several values of this fact"),
        ({"layout": None}, gm.ConfigError, "`move` is text; `layout` says how long it may be"),
    ]
    for wrong, error, says in wrongs:
        with pytest.raises(error, match=says):
            gm.pack(table, tmp_path / "wrong", **{**options, **wrong})
    assert not (tmp_path / "wrong").exists()


def test_a_schema_that_lies_is_not_believed(tmp_path: Path) -> None:
    pack = records(tmp_path)
    table = pa.table(pack)
    for said in (b"no JSON", b"[]", b'{"form": "records", "of": "frames", "schema": {"layout": "__import__(1)"}}'):
        gm.pack(table.replace_schema_metadata({b"gristmill": said}), tmp_path / "again", existing="overwrite")
        assert_same(tmp_path / "again", pack)
    smaller = table.schema.metadata[b"gristmill"].replace(b"<i8", b"|i1")
    with pytest.raises(gm.FormatError, match="do not fit int8"):
        gm.pack(table.replace_schema_metadata({b"gristmill": smaller}), tmp_path / "wrong")


def test_rows_that_are_no_whole_games_in_order_are_refused(pack: Any, tmp_path: Path) -> None:
    table = pa.table(pack)
    turned = table.take(pa.array(range(len(table) - 1, -1, -1)))
    with pytest.raises(gm.ConfigError, match="sort the table by game_id and frame") as error:
        gm.pack(turned, tmp_path / "again")
    assert error.value.field == "input"
    with pytest.raises(gm.ConfigError, match="a pack holds whole games"):
        gm.pack(table.slice(1), tmp_path / "again")
    apart = pa.concat_tables([table, table.slice(0, pack.frames(0))])
    with pytest.raises(gm.ConfigError, match="are not together"):
        gm.pack(apart, tmp_path / "again")
    assert not (tmp_path / "again").exists()
    assert not list(tmp_path.glob(".*"))


def test_columns_that_are_no_frames_are_refused(tmp_path: Path) -> None:
    one, other, demos = (make(tmp_path / make.__name__) for make in (chess, rows, trajectories))
    for table, says in [
        (one.games, "a table of games; a pack is made of their frames"),
        (one.to_arrow(columns=["frame", "game_id", "planes", "probabilities"]), "chess without the column `version`"),
        (other.to_arrow(columns=["game_id", "run_id", "board"]), "2048 without the column `step_index`"),
        (pa.table(other).drop_columns(["game_seed"]), "need the column `game_seed`"),
        (pa.table({"text": ["a"], "game_id": [1]}), "`text` is text"),
        (pa.table({"game_id": [1]}), "no column is a field of frames"),
        (pa.table(demos).drop_columns(["game_id"]), "no column says of which game a row is"),
        (pa.table(demos).slice(0, 0), "it has no row"),
        (self_play(tmp_path / "self").to_arrow(), "2048 without the column `step_index`"),
    ]:
        with pytest.raises(gm.ConfigError, match=says):
            gm.pack(table, tmp_path / "again")
    with pytest.raises(TypeError, match="object cannot be packed"):
        gm.pack(object(), tmp_path / "again")


def test_values_that_records_cannot_hold_are_refused(tmp_path: Path) -> None:
    table = pa.table(chess(tmp_path))
    place = table.schema.get_field_index("rule50_count")
    wide = table.set_column(place, "rule50_count", pa.array(np.arange(len(table)) + 200))
    with pytest.raises(gm.FormatError, match="do not fit uint8") as error:
        gm.pack(wide, tmp_path / "again")
    assert error.value.kind == "out_of_range"
    lacking = table.set_column(place, "rule50_count", pa.array([None] * len(table), pa.uint8()))
    with pytest.raises(gm.FormatError, match="no value in row 0"):
        gm.pack(lacking, tmp_path / "again")
    place = table.schema.get_field_index("planes")
    short = table.set_column(place, "planes", column(np.zeros((len(table), 3), "u8")))
    with pytest.raises(gm.FormatError, match=r"expected values of shape \(104,\), found \(3,\)"):
        gm.pack(short, tmp_path / "again")
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 no table PAR1")
    with pytest.raises(gm.FormatError, match=r"bad\.parquet"):
        gm.pack(tmp_path / "bad.parquet", tmp_path / "again")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(table, tmp_path / "frames.parquet", compression="zstd")
    data = bytearray((tmp_path / "frames.parquet").read_bytes())
    data[100 : len(data) // 2] = bytes(len(data) // 2 - 100)
    (tmp_path / "frames.parquet").write_bytes(data)
    with pytest.raises(gm.FormatError, match=r"frames\.parquet") as error:
        gm.pack(tmp_path / "frames.parquet", tmp_path / "again")
    assert error.value.kind == "corrupt"
    assert not (tmp_path / "again").exists()


def test_boards_that_are_selected_are_packed(tmp_path: Path) -> None:
    pack = boards(tmp_path)
    gm.pack(pack.where("id = 0"), tmp_path / "some")
    assert np.asarray(gm.open(tmp_path / "some").take([3])).tobytes() == np.asarray(pack.take([3])).tobytes()


@pytest.mark.parametrize("library", ["polars", "duckdb", "pandas"])
def test_tables_of_other_libraries_become_packs(pack: Any, tmp_path: Path, library: str) -> None:
    module = pytest.importorskip(library)
    if library == "polars":
        table = module.DataFrame(pack)
    elif library == "duckdb":
        table = module.sql("FROM pack ORDER BY frame")
    else:
        table = module.DataFrame.from_arrow(pack)
    gm.pack(table, tmp_path / "again")
    assert_same(tmp_path / "again", pack)


def test_data_sets_of_hugging_face_become_packs(pack: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dataset = pack.to_dataset(tmp_path / "frames.arrow")
        gm.pack(dataset, tmp_path / "again")
        assert_same(tmp_path / "again", pack)
        # As it comes back from the hub: by Parquet, without the metadata of the schema.
        dataset.to_parquet(str(tmp_path / "hub.parquet"))
        back = datasets.load_dataset(
            "parquet", data_files=str(tmp_path / "hub.parquet"), split="train", cache_dir=str(tmp_path / "cache")
        )
        gm.pack(back.shuffle(seed=1).sort(["game_id", "frame"]), tmp_path / "sorted")
        assert_same(tmp_path / "sorted", pack)
        with pytest.raises(gm.ConfigError, match="sort the table by game_id and frame"):
            gm.pack(back.shuffle(seed=1), tmp_path / "wrong")
        with pytest.raises(gm.ConfigError, match="splits train; pack one of them"):
            gm.pack(datasets.DatasetDict({"train": back}), tmp_path / "wrong")
