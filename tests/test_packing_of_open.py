"""`gristmill.pack` of games and rows that are open: selections of packs, and one file."""

from pathlib import Path

import numpy as np
import pytest
from demo_files import write_imitation
from generated_games import write_games
from packs2048 import make_rows, write_pack

import gristmill as gm


def test_selected_games_of_chess(tmp_path: Path) -> None:
    gm.pack(write_games(tmp_path / "games", 7), tmp_path / "all")
    games = gm.open(tmp_path / "all")
    chosen = games.where("id in (1, 4, 5)")
    done = gm.pack(chosen, tmp_path / "some")
    some = gm.open(tmp_path / "some")
    assert (done.runs, len(some.games), done.skipped) == (3, 3, [])
    for mine, theirs in zip(some.games, chosen.games, strict=True):
        assert mine.tobytes() == theirs.tobytes()
    gm.pack(games, tmp_path / "again")
    assert [game.tobytes() for game in gm.open(tmp_path / "again").games] == [game.tobytes() for game in games.games]
    with pytest.raises(gm.ConfigError, match="no game is selected"):
        gm.pack(games.where("id < 0"), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_file_of_games(tmp_path: Path) -> None:
    path = sorted(write_games(tmp_path / "games", 3).iterdir())[1]
    for i, source in enumerate((path, gm.open(path))):
        assert gm.pack(source, tmp_path / f"{i}").runs == 1
        games = gm.open(tmp_path / f"{i}")
        assert games.games[0].tobytes() == games.layout.records(gm.open(path)[0]).tobytes()


def test_selected_runs_of_2048(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "all", make_rows(4)))
    done = gm.pack(rows, tmp_path / "again")
    again = gm.open(tmp_path / "again")
    assert done.rows == len(rows)
    np.testing.assert_array_equal(again.take(np.arange(len(again)))["board"], rows.take(np.arange(len(rows)))["board"])
    ids = rows.run_ids[1:3]
    some = rows.where(f"id in ({ids[0]}, {ids[1]})")
    assert gm.pack(some, tmp_path / "some").runs == 2
    made = gm.open(tmp_path / "some")
    np.testing.assert_array_equal(made.take(np.arange(len(made)))["board"], some.take(np.arange(len(some)))["board"])
    with pytest.raises(gm.ConfigError, match="some steps of these games are selected and others are not"):
        gm.pack(rows[:5], tmp_path / "none")
    with pytest.raises(gm.ConfigError, match="append does not go with rows of a pack"):
        gm.pack(rows, tmp_path / "again", existing="append")


def test_steps_of_demonstrations_are_stored_as_they_are_where_that_is_asked_for(tmp_path: Path) -> None:
    obs = np.repeat(np.arange(12, dtype=np.uint8), 4 * 300).reshape(12, 4, 300)
    demos = gm.demos.from_arrays([5, 7], {"obs": obs, "acts": np.arange(12)})
    assert gm.pack(demos, tmp_path / "zstd").codec is None
    assert gm.pack(demos, tmp_path / "raw", codec="raw", dry_run=True).codec == "raw"
    assert gm.pack(demos, tmp_path / "raw", codec="raw").codec == "raw"
    assert gm.pack(tmp_path / "raw", tmp_path / "packed", codec="zstd").codec == "zstd"
    packs = {name: gm.open(tmp_path / name) for name in ("zstd", "raw", "packed")}
    size = {name: (tmp_path / name / "games-00000.chunks").stat().st_size for name in packs}
    assert max(size["zstd"], size["packed"]) < 3600 < size["raw"]
    rows = np.array([11, 0, 5, 4, 5])
    for pack in packs.values():
        taken = pack.take(rows)
        np.testing.assert_array_equal(taken["obs"], obs[rows])
        np.testing.assert_array_equal(taken["acts"], rows)
        with gm.DataLoader(pack, batch_size=6, shuffle=False, threads=2) as loader:
            np.testing.assert_array_equal(np.concatenate([np.array(batch["obs"]) for batch in loader]), obs)


def test_a_codec_is_refused_where_it_does_not_go(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "rows", make_rows(1)))
    table = [np.zeros(3, [("board", "i1", 4)])]
    games: list[tuple[object, str]] = [(write_games(tmp_path / "games", 1), "games of chess"), (rows, "codec")]
    for source, says in [*games, (table, "is for demonstrations")]:
        with pytest.raises(gm.ConfigError, match=says) as refused:
            gm.pack(source, tmp_path / "none", codec="raw")
        assert refused.value.field == "codec"
        assert not (tmp_path / "none").exists()
    with pytest.raises(gm.ConfigError, match="`lz4`") as refused:
        gm.pack(tmp_path / "games", tmp_path / "none", codec="lz4")  # type: ignore[arg-type]
    assert refused.value.field == "codec"


def test_a_folder_of_files_with_readers_of_their_own(tmp_path: Path) -> None:
    """One is what the folder means; of several the error names the calls that open one, and all."""
    folder = tmp_path / "runs"
    folder.mkdir()
    write_imitation(folder / "a.pkl", [2, 6])
    assert gm.open(folder).format == gm.open(folder / "a.pkl").format == "demo.imitation"
    write_imitation(folder / "b.pkl", [3])
    with pytest.raises(gm.FormatError, match=r"2 files of demonstrations.*a\.pkl.*gristmill\.pack\(") as error:
        gm.open(folder)
    assert error.value.kind == "unsupported"
    gm.pack(folder, tmp_path / "pack")
    assert gm.open(tmp_path / "pack").lengths == [2, 6, 3]


def test_a_folder_of_a_real_file_with_a_reader_of_its_own(tmp_path: Path, shared: Path) -> None:
    (tmp_path / "final.npz").symlink_to(shared / "data/demos/imit_cartpole_final.npz")
    assert (len(gm.open(tmp_path)), gm.open(tmp_path).num_frames) == (57, 26964)
