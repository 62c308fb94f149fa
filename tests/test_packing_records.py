"""Packs of games of one's own: from arrays and tables; selected, marked, fed, resumed as any pack; refused by place."""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from games_of_records import COLUMNS, FACTS, ROW, game, games, packed
from test_convert_demos import binary

import gristmill as gm

COUNT = 40
ROWS = sum(len(game(i)) for i in range(COUNT))


@pytest.fixture(scope="module")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return packed(tmp_path_factory.mktemp("records") / "pack", COUNT)


def flipped(rows: npt.NDArray[Any]) -> npt.NDArray[Any]:
    return rows[..., ::-1]


def test_games_come_back_with_columns_and_facts(pack: Any) -> None:
    assert (pack.kind, pack.num_games, pack.num_frames, pack.layout.dtype) == ("records", COUNT, ROWS, ROW)
    for i, records in enumerate(pack.games):
        np.testing.assert_array_equal(np.asarray(records), game(i))
    assert pack.where("elo = 1007").num_games == 1
    assert pack.where("elo IS NULL").num_games == COUNT // 5
    assert pack.where("who = 'player 2' AND result = ?", -1).num_games == len(
        [i for i in range(COUNT) if i % 5 and i % 4 == 2 and i % 3 == 0]
    )
    assert pack.where("plies = 103").num_games == 1


def test_fields_are_tensors_with_their_types(pack: Any) -> None:
    batch = next(iter(gm.DataLoader(pack, batch_size=16, seed=1)))
    assert {name: (array.dtype.str, array.shape) for name, array in batch.items()} == {
        "board": ("|i1", (16, 3, 4)),
        "policy": ("<f4", (16, 4)),
        "value": ("<f4", (16,)),
        "number": ("<i8", (16,)),
    }
    for k in range(16):
        i, row = divmod(int(batch["number"][k]), 100)
        for name in ROW.names or ():
            np.testing.assert_array_equal(batch[name][k], game(i)[name][row])


def test_epochs_are_exact_and_resume_after_every_batch(pack: Any) -> None:
    def loader() -> gm.DataLoader:
        return gm.DataLoader(pack, encoder=gm.Fields(["number", "draw"]), batch_size=29, epochs=2, joined=True, seed=3)

    whole = loader()
    batches, states = [], [whole.state_dict()]
    for batch in whole:
        batches.append((np.array(batch["number"]), np.array(batch["draw"])))
        states.append(whole.state_dict())
    numbers = np.concatenate([number for number, _ in batches])
    first = np.sort(numbers[:ROWS])
    np.testing.assert_array_equal(first, np.sort(np.concatenate([game(i)["number"] for i in range(COUNT)])))
    np.testing.assert_array_equal(first, np.sort(numbers[ROWS:]))
    for at, state in enumerate(states[:-1]):
        again = loader()
        again.load_state_dict(state)
        rest = [(np.array(batch["number"]), np.array(batch["draw"])) for batch in again]
        assert len(rest) == len(batches) - at
        for (number, draw), (number_then, draw_then) in zip(rest, batches[at:], strict=True):
            np.testing.assert_array_equal(number, number_then)
            np.testing.assert_array_equal(draw, draw_then)


def test_copied_fields_are_those_that_an_encoder_makes_and_are_resumed_and_counted(tmp_path: Path) -> None:
    pack, fields = packed(tmp_path / "pack", COUNT), ["number", "policy"]

    def loader(*drawn: str, **options: Any) -> gm.DataLoader:
        names = gm.Fields([*fields, *drawn])
        return gm.DataLoader(pack, encoder=names, batch_size=29, epochs=2, joined=True, seed=3, **options)

    def columns(batch: gm.Batch) -> list[npt.NDArray[Any]]:
        return [np.array(batch[name]) for name in fields]

    # `draw` is no part of a record: an encoder makes these batches.
    encoded = [columns(batch) for batch in loader("draw")]
    whole = loader(ledger=tmp_path / "ledger")
    states = [whole.state_dict()]
    for batch, expected in zip(whole, encoded, strict=True):
        for found, column in zip(columns(batch), expected, strict=True):
            np.testing.assert_array_equal(found, column)
        states.append(whole.state_dict())
    for at, state in enumerate(states[:-1]):
        again = loader(threads=1 + at % 2)
        again.load_state_dict(state)
        for batch, expected in zip(again, encoded[at:], strict=True):
            for found, column in zip(columns(batch), expected, strict=True):
                np.testing.assert_array_equal(found, column)
    whole.stop()
    words = ["verify-run", str(tmp_path / "ledger"), "--pack", str(tmp_path / "pack"), "--json"]
    done = subprocess.run([binary(), *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done
    output = json.loads(done.stdout)["outputs"][0]
    assert (output["complete"], output["wrong_records"]) == (True, [])
    assert [epoch["delivered"] for epoch in output["epochs"]] == [ROWS, ROWS]


def test_symmetries_are_drawn_by_seed_row_and_epoch(pack: Any) -> None:
    def turned(seed: int, threads: int, epochs: int = 1) -> dict[tuple[int, int], bool]:
        names = gm.Fields(["board", "policy", "number", "draw"])
        loader = gm.DataLoader(
            pack, encoder=names, batch_size=32, epochs=epochs, joined=True, seed=seed, threads=threads
        )
        found: dict[tuple[int, int], bool] = {}
        for batch in loader:
            images = [lambda rows: rows, flipped]
            board = gm.symmetric(batch["board"], batch["draw"], images)
            policy = gm.symmetric(batch["policy"], batch["draw"], images)
            for k, number in enumerate(np.asarray(batch["number"]).tolist()):
                i, row = divmod(number, 100)
                is_turned = bool(batch["draw"][k] % np.uint64(2))
                as_it_was = game(i)[row]
                for made, was in ((board[k], as_it_was["board"]), (policy[k], as_it_was["policy"])):
                    np.testing.assert_array_equal(made, flipped(was) if is_turned else was)
                epoch = int((number, 0) in found)
                found[number, epoch] = is_turned
        return found

    one = turned(1, 1, 2)
    assert one == turned(1, 2, 2)
    share = np.mean([one[number, 0] for number, epoch in one if epoch == 0])
    assert 0.3 < share < 0.7
    assert any(one[number, 0] != one[number, 1] for number, _ in one)
    assert one != turned(2, 1, 2)


def test_splits_marks_filters_and_duplicates(tmp_path: Path) -> None:
    pack = packed(tmp_path / "pack", COUNT)
    split = pack.split(0.25, seed=1)
    ids = [int(records["number"][0]) for side in (split.train, split.val) for records in side.games]
    assert sorted(ids) == [100 * i for i in range(COUNT)]
    assert split.val.num_games > 0
    mark = pack.mark("won", "value > 0 OR number < 3")
    wanted = {int(n) for i in range(COUNT) for n in game(i)["number"][(game(i)["value"] > 0) | (game(i)["number"] < 3)]}
    marked = pack.marked("won")
    assert mark.name == "won"
    assert marked.num_frames == len(wanted)
    numbers = [
        int(n) for batch in gm.DataLoader(marked, batch_size=64, epochs=1, seed=1) for n in np.asarray(batch["number"])
    ]
    assert set(numbers) == wanted
    assert len(numbers) == len(wanted)

    def doubled() -> Iterator[Any]:
        for i in range(6):
            yield game(i)
        # The same boards, and nothing else of the same.
        again = game(2)
        again["value"], again["number"] = 0.5, 7
        yield again

    gm.pack(doubled(), tmp_path / "doubled", identity=["board"])
    gm.pack(doubled(), tmp_path / "apart")
    found = gm.open(tmp_path / "doubled").duplicates()
    assert [[one.id for one in group] for group in found.groups] == [[2, 6]]
    assert gm.open(tmp_path / "apart").duplicates().groups == []


def test_packs_grow_merge_and_are_verified(tmp_path: Path) -> None:
    packed(tmp_path / "pack", 10)
    more = gm.pack(games(14), tmp_path / "pack", columns=COLUMNS, facts=FACTS, identity=["board"], existing="append")
    assert (more.known, more.runs) == (10, 14)
    packed(tmp_path / "other", 3)
    merged = gm.merge([tmp_path / "other", tmp_path / "pack"], tmp_path / "merged")
    assert (merged.runs, merged.known) == (14, 3)
    pack = gm.open(tmp_path / "merged")
    assert pack.where("elo >= 1011").num_games == 3
    found = gm.verify(tmp_path / "merged")
    assert found.ok, found
    again = gm.pack(pack.where("result = 1"), tmp_path / "won")
    won = gm.open(tmp_path / "won")
    assert again.runs == won.num_games == pack.where("result = 1").num_games
    assert won.where("elo IS NOT NULL").num_games == pack.where("result = 1 AND elo IS NOT NULL").num_games
    gm.pack([game(1)], tmp_path / "bare")
    with pytest.raises(gm.ConfigError, match="pack them apart"):
        gm.merge([tmp_path / "bare", tmp_path / "pack"], tmp_path / "none")
    left = gm.pack([np.zeros(3, [("other", "i1")])], tmp_path / "bare", existing="append")
    assert left.runs == 1
    assert "pack them apart" in left.skipped[0].detail


def test_a_stream_takes_files_and_packs_by_declared_fields(tmp_path: Path) -> None:
    with gm.Writer(tmp_path / "games", ROW, file_bytes=4000) as writer:
        for i in range(12):
            writer.write(game(i))
    fields = ["board:i8[3,4]", "number:i64"]
    config = gm.presets.lc0(tmp_path / "games", encoder="fields", tensors=fields, epochs=1, batch_size=8, seed=1)
    numbers = [int(n) for batch in gm.DataLoader(config) for n in np.asarray(batch["number"])]
    assert sorted(numbers) == [int(n) for i in range(12) for n in game(i)["number"]]


def test_tables_become_packs(tmp_path: Path) -> None:
    rows = np.concatenate([game(i) for i in range(9)])
    which = np.concatenate([np.full(len(game(i)), i) for i in range(9)])
    arrays: dict[str, Any] = {name: rows[name] for name in ROW.names or ()}
    np.savez(tmp_path / "x.npz", game_id=which, **arrays)
    with open(tmp_path / "x.jsonl", "w") as file:
        for k, record in enumerate(rows):
            line = {name: record[name].tolist() for name in ROW.names or ()}
            file.write(json.dumps({"game_id": int(which[k]), "elo": 1000 + int(which[k]), **line}) + "\n")
    gm.pack(tmp_path / "x.npz", tmp_path / "npz", columns=COLUMNS)
    gm.pack(tmp_path / "x.jsonl", tmp_path / "jsonl", layout=ROW, columns=COLUMNS, facts={"elo": int})
    for name in ("npz", "jsonl"):
        pack = gm.open(tmp_path / name)
        assert pack.num_games == 9
        assert pack.where("result = 1").num_games == 3
        for i, records in enumerate(pack.games):
            np.testing.assert_array_equal(np.asarray(records).astype(ROW), game(i))
    assert gm.open(tmp_path / "jsonl").where("elo = 1004").num_games == 1
    np.savez(tmp_path / "runs.npz", **arrays)
    gm.pack(tmp_path / "runs.npz", tmp_path / "runs")
    assert [len(records) for records in gm.open(tmp_path / "runs").games] == [len(rows)]


def test_parquet_becomes_a_pack(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows = np.concatenate([game(i) for i in range(4)])
    which = np.concatenate([np.full(len(game(i)), f"g{i}") for i in range(4)])
    table = pa.table({"value": rows["value"], "policy": list(rows["policy"]), "number": rows["number"]})
    number = np.unique(which, return_inverse=True)[1]
    parquet.write_table(table.append_column("match", pa.array(number)), tmp_path / "x.parquet")
    gm.pack(tmp_path / "x.parquet", tmp_path / "pack", game="match")
    pack = gm.open(tmp_path / "pack")
    assert pack.num_games == 4
    for i, records in enumerate(pack.games):
        np.testing.assert_array_equal(np.asarray(records)["policy"], game(i)["policy"])


def refused(tmp_path: Path, **options: Any) -> str:
    with pytest.raises((gm.FormatError, gm.ConfigError, TypeError)) as error:
        gm.pack(options.pop("input"), tmp_path / "none", **options)
    assert not (tmp_path / "none").exists()
    assert not list(tmp_path.glob(".none*"))
    return str(error.value)


def test_tables_and_games_that_do_not_fit_are_refused_with_their_place(tmp_path: Path) -> None:
    np.savez(tmp_path / "short.npz", a=np.zeros(5), b=np.zeros(4))
    assert "short.npz: `b`: wrong_size: an array (4,); `a` has 5 rows" in refused(
        tmp_path, input=tmp_path / "short.npz"
    )
    np.savez(tmp_path / "apart.npz", a=np.zeros(5), game_id=[1, 1, 2, 1, 1])
    said = refused(tmp_path, input=tmp_path / "apart.npz")
    assert "apart.npz: `game_id`: unsupported: rows of game 1 are not together: row 3" in said
    np.savez(tmp_path / "wide.npz", a=[1, 300, 3], game_id=[1, 2, 2])
    said = refused(tmp_path, input=tmp_path / "wide.npz", layout=[("a", "i1")])
    assert "wide.npz: game 1, from row 1 on: `a`: out_of_range: row 0 has 300, which int8 cannot hold" in said
    assert "there are a, game_id" in refused(tmp_path, input=tmp_path / "wide.npz", layout=[("b", "i1")])
    assert "there are a, game_id" in refused(tmp_path, input=tmp_path / "wide.npz", game="match")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a": 2, "b": 3}\n')
    assert "bad.jsonl: `b`: missing: line 2" in refused(tmp_path, input=tmp_path / "bad.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"a": 1}\n{"a": \n')
    assert "line 2 is no JSON" in refused(tmp_path, input=tmp_path / "bad.jsonl")
    (tmp_path / "bad.jsonl").write_text("[" * 100_000)
    assert "line 1 is no JSON" in refused(tmp_path, input=tmp_path / "bad.jsonl")
    (tmp_path / "bad.npz").write_bytes(b"PK\x03\x04 and no more")
    assert "corrupt" in refused(tmp_path, input=tmp_path / "bad.npz", layout=[("a", "i1")])
    assert "put one game in a list" in refused(tmp_path, input=game(1), layout=ROW)
    assert "there is no game in it" in refused(tmp_path, input=iter([]), layout=ROW)
    assert "game 1: `policy`: missing" in refused(tmp_path, input=[game(0), {"board": [1]}], layout=ROW)
    with gm.Writer(tmp_path / "folder", ROW) as writer:
        writer.write(game(0))
    assert "says itself what it is" in refused(tmp_path, input=tmp_path / "folder", layout=ROW)


def test_damaged_files_lose_no_other_game(tmp_path: Path) -> None:
    with gm.Writer(tmp_path / "games", ROW) as writer:
        for i in range(6):
            writer.write(game(i))
    file = tmp_path / "games" / "games-000000.records"
    bytes_ = bytearray(file.read_bytes())
    at = bytes_.index(game(3).tobytes())
    bytes_[at + 5] ^= 1
    file.write_bytes(bytes_)
    done = gm.pack(tmp_path / "games", tmp_path / "pack")
    assert done.runs == 5
    assert "does not have its checksum" in done.skipped[0].detail
    assert done.skipped[0].file == "games-000000.records/3"
    chunks = tmp_path / "pack" / "games-00000.chunks"
    stored = bytearray(chunks.read_bytes())
    stored[stored.index(game(4).tobytes())] ^= 1
    shutil.copytree(tmp_path / "pack", tmp_path / "damaged")
    (tmp_path / "damaged" / "games-00000.chunks").write_bytes(stored)
    assert not gm.verify(tmp_path / "damaged").ok
    with pytest.raises(gm.FormatError, match=r"do not have their checksum") as error:
        gm.open(tmp_path / "damaged").take(np.arange(20))
    assert error.value.chunk == 3


def test_the_command_packs_tables(tmp_path: Path) -> None:
    arrays: dict[str, Any] = {name: game(3)[name] for name in ROW.names or ()}
    np.savez(tmp_path / "x.npz", match=np.zeros(len(game(3)), int), elo=np.full(len(game(3)), 1700), **arrays)
    words = ["pack", "--input", str(tmp_path / "x.npz"), "--output", str(tmp_path / "pack"), "--game", "match"]
    words += ["--columns", "result=last:value", "--facts", "elo=int", "--identity", "board,number"]
    done = subprocess.run(
        [sys.executable, "-m", "gristmill", *words], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert "holds 1 games of 6 rows" in done.stdout + done.stderr
    assert gm.open(tmp_path / "pack").where("elo = 1700 AND result = -1").num_games == 1
    bad = subprocess.run(
        [sys.executable, "-m", "gristmill", *words[:-1], "bord"], capture_output=True, text=True, check=False
    )
    assert bad.returncode != 0
    assert "bord" in bad.stderr
