"""What other processes are sent: data by its place and selection, loaders that do not run yet, collate functions."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack, write_tokenizer
from test_demos_writer import META, frames

import gristmill as gm
from gristmill.demos import write_frames

PASS: dict[str, Any] = {"epochs": 1, "batch_size": 16, "seed": 1, "threads": 1, "index": "off"}


def there_and_back(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def elsewhere(value: Any, program: str, folder: Path) -> str:
    """What a new process prints that reads `value` from a pickle and runs a program with it."""
    (folder / "sent.pickle").write_bytes(pickle.dumps(value))
    text = f"import pickle, sys\nvalue = pickle.load(open({str(folder / 'sent.pickle')!r}, 'rb'))\n{program}"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=False, cwd="/")
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.fixture
def pack(games: Path, tmp_path: Path) -> Any:
    gm.pack(games, tmp_path / "pack")
    return gm.open(tmp_path / "pack")


def test_games_are_sent_by_place_and_selection(pack: Any, tmp_path: Path) -> None:
    train, val = pack.split(0.4)
    some = (pack.games[2:7], pack.games[2:7].where("frames > 20"), pack.games[3:3], pack[5:40], pack[5:40].games[1:])
    for games in (pack, train, val, pack.where("frames > 20"), *some):
        found = there_and_back(games)
        assert found.game_ids == games.game_ids
        assert found.num_frames == games.num_frames
        numbers = np.arange(games.num_frames)
        assert found.take(numbers).tobytes() == games.take(numbers).tobytes()
    assert len(pickle.dumps(val)) < 2000
    assert elsewhere(val, "print(type(value).__name__, value.game_ids)", tmp_path) == f"Games {val.game_ids}"


def test_rows_are_sent_by_place_and_selection(tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "pack", make_rows(6)))
    train, val = rows.split(val_runs=rows.run_ids[1:3])
    for chosen in (rows, train, val, rows.where("steps > 3")):
        found = there_and_back(chosen)
        assert found.run_ids == chosen.run_ids
        assert found.take(np.arange(len(chosen))).tobytes() == chosen.take(np.arange(len(chosen))).tobytes()


def test_frames_that_are_selected_within_games_are_sent(pack: Any, tmp_path: Path) -> None:
    rows = gm.open(write_pack(tmp_path / "rows", make_rows(6)))
    rows.mark("late", "step_index > 3")
    pack.mark("early", "ply < 9")
    filtered = rows.filter(step_index=(1, 20))
    some: list[Any] = [
        filtered,
        rows[5:77],
        rows[5:77][10:40],
        filtered.split(0.4).val,
        filtered.folds(3)[1].train,
        rows.where("steps > 3").marked("late")[3:],
        pack.marked("early"),
        pack.without("early").where("frames > 20"),
        pack.marked("early").games[2:5].split(val_games=pack.game_ids[2:4]).train,
    ]
    for chosen in some:
        found = there_and_back(chosen)
        assert type(found) is type(chosen)
        numbers = np.arange(chosen.num_frames)
        assert len(numbers)
        assert found.take(numbers).tobytes() == chosen.take(numbers).tobytes()
        assert len(pickle.dumps(chosen)) < 4000
    program = "print(value.num_frames, value.take([0])['step_index'].tolist())"
    assert elsewhere(some[5], program, tmp_path) == f"{some[5].num_frames} {some[5].take([0])['step_index'].tolist()}"
    sent = pickle.dumps(rows.marked("late"))
    rows.mark("late", "step_index > 5", replace=True)
    with pytest.raises(gm.StateError, match="has changed"):
        pickle.loads(sent)


def test_demonstrations_are_sent_by_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = frames([7, 1, 5])
    write_frames(tmp_path / "demos.tar", META, known)
    monkeypatch.chdir(tmp_path)
    opened = [gm.open("demos.tar"), gm.open("demos.tar", columns="columns"), gm.open("demos.tar")[1:]]
    for demos in opened:
        program = "print(value.lengths, value.column('rews').tolist(), len(value.extras(1)['infos']))"
        told = f"{demos.lengths} {demos.column('rews').tolist()} {demos.lengths[1]}"
        assert elsewhere(demos, program, tmp_path) == told
    folder = tmp_path / "data/processed/demos/dm_control/finger-spin"
    write_frames(folder / "demos.tar", META, known)
    (part,) = gm.load_wds_datasets([{}], root=tmp_path).datasets
    assert there_and_back(part).lengths == part.lengths
    write_frames(tmp_path / "in/demos.tar", META, known)
    gm.pack(tmp_path / "in", tmp_path / "packed")
    packed = gm.open(tmp_path / "packed")
    for trajectories in (packed, packed.games[1:3]):
        assert there_and_back(trajectories).column("rews").tolist() == trajectories.column("rews").tolist()


def test_sources_are_sent_by_place(games: Path, tmp_path: Path) -> None:
    source = gm.open(sorted(games.iterdir())[0])
    assert elsewhere(source, "print(len(value), value.num_frames)", tmp_path) == f"{len(source)} {source.num_frames}"


def test_data_that_was_changed_meanwhile_is_not_taken_for_what_was_sent(tmp_path: Path) -> None:
    write_frames(tmp_path / "demos.tar", META, frames([7, 1, 5]))
    sent = pickle.dumps(gm.open(tmp_path / "demos.tar"))
    write_frames(tmp_path / "demos.tar", META, frames([7, 1]), overwrite=True)
    with pytest.raises(gm.StateError, match=r"demos\.tar has changed: 13 frames were meant .* now there are 8"):
        pickle.loads(sent)
    (tmp_path / "demos.tar").unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(sent)


def test_loaders_that_do_not_run_are_sent_with_where_they_stand(pack: Any, games: Path, tmp_path: Path) -> None:
    def of_pack() -> gm.DataLoader:
        return gm.DataLoader(pack.games[2:9], batch_size=16, epochs=2, joined=True, seed=3)

    def of_stream() -> gm.DataLoader:
        return gm.DataLoader(gm.presets.lc0(games, **PASS))

    makers: list[Callable[[], gm.DataLoader]] = [of_pack, of_stream]
    for make in makers:
        expected = [batch["planes"].copy() for batch in make()]
        first = make()
        taken = [first.get_next()["planes"].copy() for _ in range(3)]
        state = first.state_dict()
        with pytest.raises(TypeError, match="send its state_dict"):
            pickle.dumps(first)
        behind = make()
        behind.load_state_dict(state)
        first.save(tmp_path / "state.json")
        loaded = make()
        loaded.load(tmp_path / "state.json")
        for rest in (there_and_back(make()), there_and_back(behind), there_and_back(loaded)):
            found = [batch["planes"].copy() for batch in rest]
            whole = found if len(found) == len(expected) else taken + found
            assert len(whole) == len(expected)
            assert all(map(np.array_equal, whole, expected))
    sought = of_pack()
    sought.seek(4)
    assert next(iter(there_and_back(sought))).number == 4


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning", "ignore:.*fork.*:RuntimeWarning")
@pytest.mark.filterwarnings("ignore:'set_vital' is deprecated:UserWarning")
def test_torch_collate_functions_go_to_workers_of_any_kind(tmp_path: Path, method: str) -> None:
    torch = pytest.importorskip("torch")
    from gristmill import torch as adapter

    rows = make_rows(6)
    folder = write_pack(tmp_path / "pack", rows)
    tokenizer = write_tokenizer(tmp_path / "tokenizer.json")
    collates = [
        adapter.make_collate_macroxue(folder, tokenizer, rotate=True, flip=True, seed=7),
        adapter.make_collate_steps(gm.open(folder), "binned_ev"),
        adapter.make_collate_steps(gm.open(folder), "hard_move"),
    ]
    for collate in collates if method == "spawn" else collates[:1]:
        loader = torch.utils.data.DataLoader(
            range(len(rows)), batch_size=50, collate_fn=collate, num_workers=1, multiprocessing_context=method
        )
        for number, batch in enumerate(loader):
            known = collate(range(len(rows))[50 * number : 50 * number + 50])
            assert list(batch) == list(known)
            assert all(torch.equal(v, known[n]) if torch.is_tensor(v) else v == known[n] for n, v in batch.items())
