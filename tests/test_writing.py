"""Games of one's own, written while they are played: by many processes, some of which are killed; refused by field."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from games_of_records import COLUMNS, FACTS, ROW, game

import gristmill as gm

#: Writes games `first` to `first + count - 1` into a folder; says `written` after each. Then waits, or ends.
PROGRAM = """
import sys
import gristmill as gm
from games_of_records import FACTS, ROW, game
folder, first, count, way = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
writer = gm.Writer(folder, ROW, facts=FACTS, file_bytes=int(sys.argv[5]))
for i in range(first, first + count):
    writer.write(game(i), elo=i)
    print("written", flush=True)
if way == "close":
    writer.close()
else:
    sys.stdin.read()
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Any]:
    """Starts writers, and ends those that are left."""
    running = []

    def begin(folder: Path, first: int, count: int, way: str, file_bytes: int = 1 << 20) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", PROGRAM, str(folder), str(first), str(count), way, str(file_bytes)]
        env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "made")}
        one = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env)
        running.append(one)
        return one

    yield begin
    for one in running:
        one.kill()
        one.communicate()


def numbers(folder: Path, pack: Path) -> list[int]:
    """Which games there are: the number of each one's first row, over 100. Every row is that of its game."""
    gm.pack(folder, pack)
    found = []
    for records in gm.open(pack).games:
        i = int(records["number"][0]) // 100
        np.testing.assert_array_equal(np.asarray(records), game(i))
        found.append(i)
    return sorted(found)


def test_what_is_written_is_there_in_order(tmp_path: Path) -> None:
    with gm.Writer(tmp_path / "games", ROW, columns=COLUMNS, facts=FACTS, file_bytes=1500) as writer:
        for i in range(20):
            fields: Any = game(i) if i % 2 else {name: game(i)[name] for name in ROW.names or ()}
            writer.write(fields, elo=i, who=f"player {i}")
        assert writer.recovered == 0
    files = sorted(os.listdir(tmp_path / "games"))
    assert len(files) > 3
    assert files[0] == "games-000000.records"
    source = gm.open(tmp_path / "games" / files[0])
    assert (source.format, source.layout.dtype) == ("records", ROW)
    np.testing.assert_array_equal(np.asarray(source[1]), game(1))
    gm.pack(tmp_path / "games", tmp_path / "pack")
    pack = gm.open(tmp_path / "pack")
    assert [int(records["number"][0]) for records in pack.games] == [100 * i for i in range(20)]
    assert pack.where("elo >= 5 AND who != 'player 7' AND result = 1").num_games == len(
        [i for i in range(5, 20) if i != 7 and i % 3 == 2]
    )


def test_a_file_is_seen_when_it_is_flushed(tmp_path: Path) -> None:
    writer = gm.Writer(tmp_path, ROW)
    writer.write(game(1))
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    writer.flush()
    assert os.listdir(tmp_path) == ["games-000000.records"]
    writer.write(game(2))
    writer.close()
    writer.close()
    assert sorted(os.listdir(tmp_path)) == ["games-000000.records", "games-000001.records"]
    with pytest.raises(ValueError, match="finished"):
        writer.write(game(3))


def test_many_processes_write_into_one_folder(tmp_path: Path, start: Any) -> None:
    writers = [start(tmp_path / "games", 30 * i, 30, "close", 2000) for i in range(4)]
    for writer in writers:
        writer.communicate()
        assert writer.returncode == 0
    assert numbers(tmp_path / "games", tmp_path / "pack") == list(range(120))


@pytest.mark.parametrize("after", [1, 2, 7])
def test_a_killed_writer_leaves_whole_games(tmp_path: Path, start: Any, after: int) -> None:
    killed, living = start(tmp_path / "games", 0, after, "wait"), start(tmp_path / "games", 50, 5, "wait")
    for one, count in ((killed, after), (living, 5)):
        assert [one.stdout.readline() for _ in range(count)] == ["written\n"] * count
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    # The file of the one that lives stays its own.
    with gm.Writer(tmp_path / "games", ROW, facts=FACTS) as writer:
        assert writer.recovered == after
        writer.write(game(90))
    assert numbers(tmp_path / "games", tmp_path / "first") == [*range(after), 90]
    living.send_signal(signal.SIGKILL)
    living.wait()
    assert numbers(tmp_path / "games", tmp_path / "all") == [*range(after), *range(50, 55), 90]


def test_a_game_that_was_cut_is_left_out_and_those_before_it_stay(tmp_path: Path) -> None:
    with gm.Writer(tmp_path / "made", ROW) as writer:
        ends = []
        for i in range(3):
            writer.write(game(i))
            ends.append((tmp_path / "made" / ".games-000000.records").stat().st_size)
    whole = (tmp_path / "made" / "games-000000.records").read_bytes()
    for cut in (ends[0], ends[0] + 1, ends[0] + 20, ends[1] - 1, ends[1], ends[2] - 1):
        folder = tmp_path / f"cut-{cut}"
        folder.mkdir()
        (folder / ".games-000000.records").write_bytes(whole[:cut])
        assert numbers(folder, tmp_path / f"pack-{cut}") == list(range(sum(end <= cut for end in ends)))
    (tmp_path / "shown").mkdir()
    (tmp_path / "shown" / "games-000000.records").write_bytes(whole[: ends[1] + 9])
    done = gm.pack(tmp_path / "shown", tmp_path / "shown-pack")
    assert done.runs == 2
    assert "game 2 is cut: 9 bytes of 16" in done.skipped[0].detail


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
def test_a_forked_process_begins_a_file_of_its_own(tmp_path: Path) -> None:
    program = (
        "import os, sys\nimport gristmill as gm\nfrom games_of_records import ROW, game\n"
        "writer = gm.Writer(sys.argv[1], ROW)\nwriter.write(game(0))\nchild = os.fork()\n"
        "writer.write(game(2 if child else 1))\nwriter.close()\n"
        "if child:\n    assert os.waitpid(child, 0)[1] == 0\n"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(__file__).parent / "made")}
    subprocess.run([sys.executable, "-W", "ignore", "-c", program, str(tmp_path / "games")], check=True, env=env)
    assert numbers(tmp_path / "games", tmp_path / "pack") == [0, 1, 2]


def without(name: str) -> dict[str, Any]:
    return {field: game(1)[field] for field in ROW.names or () if field != name}


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (without("value"), r"game 0: `value`: missing: no field `value`; there are board, policy, number"),
        ({**without(""), "more": [1]}, r"`more`: unsupported: a field `more`; expected board, policy"),
        ({**without("board"), "board": np.zeros((4, 4, 3))}, r"`board`: wrong_size: an array \(4, 4, 3\); expected"),
        (
            {**without("board"), "board": np.full((4, 3, 4), 0.5)},
            r"unsupported: values of float64; expected int8",
        ),
        ({**without("board"), "board": np.full((4, 3, 4), 300)}, r"row 0 has 300, which int8 cannot hold"),
        ({**without("number"), "number": np.zeros(3, int)}, r"`number`: wrong_size: an array \(3,\); expected \(4,\)"),
        ({**without("number"), "number": 3}, r"`number`: wrong_size: one value int64; expected an array"),
        (np.zeros(3), r"expected a structured array of one axis, found float64"),
        (np.zeros(0, ROW), r"empty: a game without rows"),
    ],
)
def test_a_game_that_does_not_fit_is_refused_with_its_field(tmp_path: Path, wrong: Any, says: str) -> None:
    with gm.Writer(tmp_path / "games", ROW) as writer:
        with pytest.raises(gm.FormatError, match=says):
            writer.write(wrong)
        writer.write(game(5))
    assert numbers(tmp_path / "games", tmp_path / "pack") == [5]


def test_facts_and_layouts_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with gm.Writer(tmp_path / "games", ROW, facts={"elo": int, "share": float}) as writer:
        for facts, says in (
            ({"elo": "strong"}, r"`elo`: out_of_range: 'strong'; expected int or None"),
            ({"ello": 3}, r"a fact `ello`; declared are elo, share"),
            ({"elo": 1 << 70}, r"fact `elo` is Real"),
        ):
            with pytest.raises(gm.FormatError, match=says):
                writer.write(game(0), **facts)
        writer.write(game(1), elo=np.int32(7), share=1)
    for layout, options, says in (
        ([("a", "O")], {}, r"`a`|`\|O`"),
        ([("a", [("b", "i1")])], {}, "field `a` is a record itself"),
        (ROW, {"columns": ["board"]}, "field `board` is not one number"),
        (ROW, {"columns": {"id": "value"}}, "column `id` is there already"),
        (ROW, {"facts": {"a b": int}}, "column `a b` is no name"),
        (ROW, {"identity": ["bord"]}, "there is no field `bord`; there are board, policy"),
    ):
        with pytest.raises((gm.FormatError, ValueError), match=says):
            gm.Writer(tmp_path / "games", layout, **options)
    with pytest.raises(TypeError, match="expected a structured dtype"):
        gm.Writer(tmp_path / "games", "f4")
    with pytest.raises(gm.ConfigError, match="file_bytes"):
        gm.Writer(tmp_path / "games", ROW, file_bytes=0)


def test_rows_become_the_images_that_draws_choose() -> None:
    rows: npt.NDArray[Any] = np.arange(12).reshape(4, 3)
    draw = np.array([0, 1, 2**64 - 1, 4], np.uint64)
    turned = gm.symmetric(rows, draw, [lambda some: some, lambda some: some[:, ::-1]])
    np.testing.assert_array_equal(turned, [[0, 1, 2], [5, 4, 3], [8, 7, 6], [9, 10, 11]])
    np.testing.assert_array_equal(rows, np.arange(12).reshape(4, 3))
    with pytest.raises(ValueError, match="has the shape"):
        gm.symmetric(rows, draw, [lambda some: some[:, :2]])
    with pytest.raises(ValueError, match="a draw for each row"):
        gm.symmetric(rows, draw[:2], [lambda some: some])
