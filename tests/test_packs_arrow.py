"""Selections as Arrow: every layout, column by column, batch by batch; and what reads them in one call."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from bullet_boards import write_boards
from games_of_records import packed
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm
from gristmill.packs.arrow import column

pa = pytest.importorskip("pyarrow")


def chess(folder: Path) -> gm.Games:
    gm.pack(write_games(folder / "in", 5), folder / "pack")
    return gm.open(folder / "pack", expect=gm.Games)


def rows(folder: Path) -> gm.Rows:
    return gm.open(write_pack(folder / "pack", make_rows(7, 40, seed=1)), expect=gm.Rows)


def self_play(folder: Path) -> gm.Rows:
    """Rows of two games by turns."""
    with gm.g2048.SelfPlayWriter(folder / "pack") as writer:
        writer.write(np.arange(12) % 2, np.arange(12) // 2, np.arange(12 * 16).reshape(12, 16) % 12)
        for run in range(2):
            writer.put_run(run, seed=run + 7, steps=6, max_score=10 * run, highest_tile=2048)
    return gm.open(folder / "pack", expect=gm.Rows)


def boards(folder: Path) -> gm.Games:
    gm.pack(write_boards(folder / "in", 300), folder / "pack")
    return gm.open(folder / "pack", expect=gm.Games)


def trajectories(folder: Path) -> gm.Trajectories:
    rng = np.random.default_rng(1)
    fields: dict[str, Any] = {
        "obs": rng.random((12, 2, 3), np.float32),
        "acts": np.arange(12),
        "frame": np.arange(12) * 0.5,
    }
    gm.pack(gm.demos.from_arrays([7, 5], fields, truncated=[False, True]), folder / "pack")
    return gm.open(folder / "pack", expect=gm.Trajectories)


def records(folder: Path) -> gm.Games:
    packed(folder / "pack", 6)
    return gm.open(folder / "pack", expect=gm.Games)


LAYOUTS = [chess, rows, self_play, boards, trajectories, records]


@pytest.fixture(params=LAYOUTS, ids=lambda make: make.__name__)
def pack(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    make: Callable[[Path], gm.Games | gm.Rows] = request.param
    return make(tmp_path)


def as_numpy(column: Any, dtype: np.dtype[Any]) -> Any:
    """A column of numbers, lists of numbers included."""
    found = column.combine_chunks()
    while pa.types.is_fixed_size_list(found.type):
        found = found.flatten()
    return found.to_numpy(zero_copy_only=False).astype(dtype.base).reshape(-1, *dtype.shape)


def test_every_field_of_every_frame_is_there(pack: Any) -> None:
    table = pack.to_arrow(batch_size=5).read_all()
    table.validate(full=True)
    records = np.asarray(pack.take(np.arange(len(pack))))
    for field in pack.layout.names:
        name = f"field_{field}" if field in ("frame", "game_id") else field
        np.testing.assert_array_equal(as_numpy(table[name], records.dtype[field]), records[field])
    assert table["frame"].to_pylist() == list(range(len(pack)))


def test_each_frame_has_the_columns_of_its_game(pack: Any) -> None:
    facts = pa.table(pack.games)
    assert facts["id"].to_pylist() == pack.game_ids
    some = pack[1 : len(pack) - 1]
    table = some.to_arrow(batch_size=4).read_all()
    of = dict(zip(facts["id"].to_pylist(), facts.to_pylist(), strict=True))
    for row in table.select(["frame", *(f"game_{name}" for name in facts.column_names)]).to_pylist():
        assert {f"game_{name}": value for name, value in of[row["game_id"]].items()}.items() <= row.items()
    for game in pack.game_ids:
        alone = pack.where("id = ?", game)
        assert pa.table(alone)["game_id"].to_pylist() == [game] * len(alone)
        assert pa.table(alone.games)["id"].to_pylist() == [game]


def test_frames_are_found_again_by_their_number(pack: Any) -> None:
    pack.mark("some", np.arange(len(pack)) % 3 == 1)
    some = pack.marked("some")
    numbers = pa.table(some)["frame"].to_numpy()
    np.testing.assert_array_equal(numbers, np.arange(len(pack))[1::3])
    assert np.asarray(pack.take(numbers)).tobytes() == np.asarray(some.take(np.arange(len(some)))).tobytes()


def test_batches_have_a_size_and_nothing_is_read_before(pack: Any) -> None:
    sizes = [batch.num_rows for batch in pack.to_arrow(batch_size=5)]
    assert sizes == [min(5, len(pack) - first) for first in range(0, len(pack), 5)]
    assert pack[0:0].to_arrow().read_all().schema == pack.to_arrow().schema
    with pytest.raises(ValueError, match="batch_size=0"):
        pack.to_arrow(batch_size=0)


def test_columns_are_chosen_by_name(pack: Any) -> None:
    last = pack.layout.names[-1]
    table = pack.to_arrow(columns=[last, "frame"]).read_all()
    assert table.column_names == [last, "frame"]
    assert pack.games.to_arrow(columns=["id"]).read_all().column_names == ["id"]
    with pytest.raises(gm.ConfigError, match=f"no column 'elo'; there are frame, game_id, .*{last}") as error:
        pack.to_arrow(columns=["elo"])
    assert error.value.field == "columns"
    with pytest.raises(gm.ConfigError, match="a column twice"):
        pack.to_arrow(columns=["frame", "frame"])
    with pytest.raises(TypeError, match="a list of names, found 'frame'"):
        pack.to_arrow(columns="frame")


def test_a_parquet_file_appears_whole_and_replaces_none_unasked(pack: Any, tmp_path: Path) -> None:
    from pyarrow import parquet

    pack.to_parquet(tmp_path / "a.parquet")
    assert parquet.read_table(tmp_path / "a.parquet") == pa.table(pack)
    with pytest.raises(gm.ConfigError, match="it is there already; overwrite=True replaces it"):
        pack[:3].to_parquet(tmp_path / "a.parquet")
    pack.games.to_parquet(tmp_path / "a.parquet", columns=["id"], overwrite=True)
    assert parquet.read_table(tmp_path / "a.parquet").to_pydict() == {"id": pack.game_ids}
    with pytest.raises(gm.ConfigError, match="a folder; name a file"):
        pack.to_parquet(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        pack.to_parquet(tmp_path / "file" / "a.parquet")
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


def test_a_damaged_game_is_named_where_the_reader_comes_to_it(tmp_path: Path) -> None:
    folder = chess(tmp_path).path
    file = next(Path(folder).glob("*.chunks"))
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 0xFF
    file.write_bytes(data)
    reader = gm.open(folder).to_arrow(batch_size=20)
    reader.read_next_batch()
    with pytest.raises(gm.FormatError, match=r"games-00000\.chunks"):
        reader.read_all()


def test_a_column_that_holds_another_type_than_it_declares_is_named(tmp_path: Path) -> None:
    import sqlite3

    pack = chess(tmp_path)
    with sqlite3.connect(Path(pack.path) / "metadata.db") as database:
        database.execute("UPDATE games SET white_elo = 'much' WHERE id = 4")
    reader = gm.open(pack.path).games.to_arrow(batch_size=2)
    reader.read_next_batch()
    with pytest.raises(gm.FormatError, match=r"`white_elo` is declared INT and holds something else.*'much'"):
        reader.read_all()


def test_packs_elsewhere_are_read_alike(tmp_path: Path) -> None:
    pack, place = chess(tmp_path), gm.stores.Memory("arrow-of-packs")
    for file in Path(pack.path).iterdir():
        place[file.name] = file.read_bytes()
    assert pa.table(gm.open("memory://arrow-of-packs")) == pa.table(pack)


@pytest.mark.parametrize(
    "dtype",
    ["?", "i1", "<u8", ">i4", "<f2", "<f8", "S5", "V3", "U4", "<c8", "(2,3)<f4", [("a", "<i2"), ("b", "S2", 2)]],
)
def test_every_type_of_a_field_has_one_of_arrow(dtype: Any) -> None:
    values = np.frombuffer(np.random.default_rng(2).integers(65, 90, 4096, np.uint8).tobytes(), np.uint8)
    scalar = np.dtype(dtype)
    if scalar.base.kind == "U":
        made: Any = np.array(["ab", "äö", ""], scalar)
    elif scalar.base.kind == "b":
        made = np.array([True, False, True])
    else:
        made = np.frombuffer(values.tobytes()[: 3 * scalar.itemsize], np.dtype([("x", scalar)]))["x"]
    found = column(made)
    found.validate(full=True)
    assert len(found) == 3
    if scalar.kind == "c":
        assert found.to_pylist() == [[one.real, one.imag] for one in made.tolist()]
    elif scalar.names:
        assert found.to_pylist() == [{"a": int(one["a"]), "b": list(one["b"])} for one in made]
    else:
        assert found.to_pylist() == [
            one.item() if one.ndim == 0 and scalar.kind == "V" else one.tolist() for one in made
        ]


def test_numbers_that_lie_one_after_another_are_not_copied() -> None:
    values = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    found = column(values)
    while pa.types.is_fixed_size_list(found.type):
        found = found.flatten()
    assert found.buffers()[1].address == values.ctypes.data


def test_without_pyarrow_the_extra_is_named(tmp_path: Path) -> None:
    pack = rows(tmp_path)
    program = (
        "import sys, gristmill as gm\n"
        "assert 'pyarrow' not in sys.modules\n"
        "sys.modules['pyarrow'] = None\n"
        f"pack = gm.open({pack.path!r})\n"
        "try:\n"
        "    pack.to_arrow()\n"
        "except gm.MissingPackageError as error:\n"
        "    assert 'pip install gristmill[arrow]' in str(error), error\n"
        "else:\n"
        "    raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_polars_takes_a_selection(pack: Any) -> None:
    pl = pytest.importorskip("polars")
    frames = pl.DataFrame(pack)
    assert (len(frames), frames.columns) == (len(pack), pack.to_arrow().schema.names)
    assert pl.DataFrame(pack.games)["id"].to_list() == pack.game_ids


def test_duckdb_asks_a_selection(pack: Any) -> None:
    duckdb = pytest.importorskip("duckdb")
    games = pack.games
    sql = "SELECT game_id, count(*) FROM pack JOIN games ON id = game_id GROUP BY game_id ORDER BY game_id"
    assert games is not None
    assert duckdb.sql(sql).fetchall() == [(one, pack.frames(i)) for i, one in enumerate(pack.game_ids)]


def test_pandas_takes_a_selection(pack: Any) -> None:
    pd = pytest.importorskip("pandas")
    frames = pack.to_arrow(columns=["frame", "game_id"]).read_pandas()
    assert isinstance(frames, pd.DataFrame)
    assert frames["frame"].tolist() == list(range(len(pack)))
    assert len(pd.DataFrame.from_arrow(pack)) == len(pack)
