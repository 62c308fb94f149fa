"""The stream of pairs: how well it is shuffled, what happens to short data sets, where a state resumes."""

import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from steps_in_memory import columns, same, steps_of

import gristmill as gm
from gristmill.demos import get_meta_dict, write_frames
from gristmill.safe_pickle import Instance

ROWS = gm.pairs.Windows(1)


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """No launcher has said anything."""
    for name in ("RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("steps", [1, 2, 3, 7, 1000, 1025])
def test_each_epoch_is_a_permutation_of_its_own(steps: int) -> None:
    def loader(seed: int = 5) -> gm.PairLoader:
        return gm.PairLoader(columns([steps], shape=(1,)), ROWS, batch_size=16, seed=seed, drop_last=False)

    source = loader()
    epochs = [steps_of(source) for _ in range(4)]
    assert all(sorted(epoch) == list(range(steps)) for epoch in epochs)
    assert loader().epoch == 0
    assert steps_of(loader(), 4) == [step for epoch in epochs for step in epoch], "the seed says all"
    if steps >= 7:
        assert len({tuple(epoch) for epoch in epochs}) == 4
        assert steps_of(loader(6)) != epochs[0]


def test_how_far_rows_are_moved() -> None:
    """A uniform permutation moves a row by n / 3 on the mean, keeps no order, and leaves few neighbours together."""
    n = 6000
    source = gm.PairLoader(columns([n], shape=(1,)), ROWS, batch_size=100, seed=11)
    epochs = [np.array(steps_of(source)) for _ in range(3)]
    place = np.arange(n)
    for order in epochs:
        assert abs(np.abs(order - place).mean() / (n / 3) - 1) < 0.03
        assert abs(np.corrcoef(order, place)[0, 1]) < 0.05
        assert (np.abs(np.diff(order)) == 1).sum() < 12
        assert np.abs(np.bincount(order[:600] // 600, minlength=10) - 60).max() < 35, "the first tenth is of all tenths"
    assert abs(np.corrcoef(epochs[0], epochs[1])[0, 1]) < 0.05


def test_weights_change_from_a_batch_on() -> None:
    data = [columns([300]), columns([60], 1000)]
    changing = {0: [1, 1], 5: [0, 1], 40: [1, 0]}
    options: dict[str, Any] = {"batch_size": 10, "seed": 7, "nominal_length": 204, "drop_last": False}
    loader = gm.PairLoader(data, ROWS, weights=changing, **options)
    passes = [steps_of(loader) for _ in range(2)]
    plain = steps_of(gm.PairLoader(data, ROWS, weights=[1, 1], **options))
    assert passes[0][:50] == plain[:50]
    # 21 batches are a pass, the last of them of four rows.
    assert min(passes[0][50:] + passes[1][:190]) >= 1000 > max(passes[1][190:])
    with pytest.raises(gm.StateError, match=r"config\.weights"):
        gm.PairLoader(data, ROWS, weights=[1, 1], **options).load_state_dict(loader.state_dict())
    with pytest.raises(gm.ConfigError, match="leave `exhausted` out"):
        gm.PairLoader(data, ROWS, weights=changing, exhausted="drop", **options)


def test_short_data_sets_start_over_stop_or_are_left_out() -> None:
    def loader(**options: Any) -> gm.PairLoader:
        data = [columns([30], shape=(1,)), columns([600], 1000, shape=(1,)), columns([200], 5000, shape=(1,))]
        return gm.PairLoader(data, ROWS, batch_size=10, weights=[1, 2, 1], seed=7, drop_last=False, **options)

    restarted = steps_of(loader(nominal_length=845))
    assert len(restarted) == 845, "to the row"
    for low, high, share in [(0, 1000, 0.25), (1000, 5000, 0.5), (5000, 9000, 0.25)]:
        assert abs(sum(low <= step < high for step in restarted) / 845 - share) < 0.02
    assert steps_of(loader()) == restarted[:830], "as many rows as there are, by default"

    stopping = loader(exhausted="stop")
    passes = [steps_of(stopping) for _ in range(3)]
    length = len(passes[0])
    assert 100 < length < 150
    for rows in passes:
        assert len(rows) == length == len(set(rows))
        assert sorted(row for row in rows if row < 1000) == list(range(30))
    assert passes[0] != passes[1]
    assert len(stopping) == -(-length // 10)

    dropping = loader(exhausted="drop")
    passes = [steps_of(dropping) for _ in range(3)]
    everything = [*range(30), *range(1000, 1600), *range(5000, 5200)]
    assert all(sorted(rows) == everything for rows in passes), "each row once"
    assert passes[0] != passes[1]
    middle = passes[0][150:600]
    assert abs(sum(row < 5000 for row in middle) / len(middle) - 2 / 3) < 0.03, "the others keep their weights"
    assert steps_of(loader(exhausted="drop", nominal_length=100)) == passes[0][:100]
    with pytest.raises(gm.ConfigError, match=r"831 pairs.*there are 830"):
        loader(exhausted="drop", nominal_length=831)
    with pytest.raises(gm.ConfigError, match="`again`"):
        loader(exhausted="again")


def permutations(folder: Path) -> Path:
    rng = np.random.default_rng(4)
    np.save(folder / "permutations.npy", np.stack([rng.permutation(9) for _ in range(5)]))
    return folder / "permutations.npy"


CONSTRUCTORS = ["Identity", "TemporalOffset", "Reverse", "UniformOffset", "Windows", "FrameStack", "Jigsaw", "Steps"]


@pytest.mark.parametrize("exhausted", ["restart", "stop", "drop"])
@pytest.mark.parametrize("kind", CONSTRUCTORS)
def test_a_state_taken_at_any_batch_gives_the_identical_remainder(tmp_path: Path, kind: str, exhausted: Any) -> None:
    options: dict[str, Any] = {
        "TemporalOffset": {"mode": "inverse_dynamics", "temporal_offset": 2},
        "UniformOffset": {"least": 1, "most": 3},
        "Jigsaw": {"permutation_path": permutations(tmp_path)},
        "Steps": {"names": ("obs", "rews", "dones", "infos")},
    }
    constructor = getattr(gm.pairs, kind)(**options.get(kind, {}))
    infos = [{"at": t} for t in range(13)]

    def loader(rank: int) -> Any:
        data = [columns([7, 1, 5], infos=infos), columns([6, 4], 100)]
        face = gm.StepLoader if kind == "Steps" else gm.PairLoader
        mixed: dict[str, Any] = {"weights": [1, 2], "exhausted": exhausted, "seed": 3, "drop_last": False}
        return face(data, constructor, batch_size=4, rank=rank, world_size=2, **mixed)

    passes = 3
    for rank in range(2):
        first = loader(rank)
        states, batches = [first.state_dict()], []
        for _ in range(passes):
            for batch in first:
                batches.append(batch)
                states.append(first.state_dict())
        assert len(batches) == passes * len(first)
        for taken, state in enumerate(states):
            second = loader(rank)
            second.load_state_dict(json.loads(json.dumps(state)))
            left = [batch for _ in range(passes - second.epoch) for batch in second]
            assert len(left) == len(batches) - taken
            assert all(map(same, left, batches[taken:])), taken


def test_a_run_goes_on_with_another_number_of_ranks_and_another_batch_size() -> None:
    def loader(rank: int, world: int, batch: int) -> gm.PairLoader:
        data = [columns([40], shape=(1,)), columns([25], 100, shape=(1,))]
        options: dict[str, Any] = {"rank": rank, "world_size": world, "seed": 5, "drop_last": False}
        return gm.PairLoader(data, ROWS, batch_size=batch, nominal_length=90, **options)

    expected = steps_of(loader(0, 1, 1), 2)
    found: list[int] = []
    state = loader(0, 1, 1).state_dict()
    for world, batch, rounds in [(2, 6, 4), (3, 15, 2), (1, 7, 9), (4, 8, 100)]:
        ranks = [loader(rank, world, batch) for rank in range(world)]
        for one in ranks:
            one.load_state_dict(state)
        while rounds and len(found) < len(expected):
            for together in zip(*ranks, strict=True):
                rows = [[int(act) for act in share.target] for share in together]
                found += [rows[i % world][i // world] for i in range(sum(map(len, rows)))]
                rounds -= 1
                if rounds == 0:
                    break
        states = [one.state_dict() for one in ranks]
        assert all(one == states[0] for one in states), "one state for all ranks"
        state = states[0]
    assert found == expected


def test_states_of_something_else_are_refused_with_what_differs(tmp_path: Path) -> None:
    def loader(lengths: list[int] | None = None, pairs: Any = ROWS, **options: Any) -> gm.PairLoader:
        data = options.pop("data", None) or [columns(lengths or [7, 6]), columns([9], 100)]
        return gm.PairLoader(data, pairs, batch_size=2, **{"seed": 1, "nominal_length": 20, **options})

    state = loader().state_dict()
    changed = columns([7, 6])
    changed.column("obs")[3, 1, 2, 2] ^= 1
    cases: list[tuple[gm.PairLoader, str]] = [
        (loader(seed=2), r"config\.seed is 1, here 2$"),
        (loader(weights=[1, 3]), r"config\.weights\[1\] is 1\.0, here 3\.0$"),
        (loader(exhausted="drop"), r"config\.exhausted is 'restart', here 'drop'$"),
        (loader(nominal_length=21), r"config\.nominal_length is 20, here 21$"),
        (loader(pairs=gm.pairs.Windows(2)), r"config\.pairs\.size is 1, here 2$"),
        (loader(pairs=gm.pairs.FrameStack(1)), r"config\.pairs\.kind is 'Windows', here 'FrameStack'; .*fill"),
        (loader(prepare=gm.pairs.Prepare(images="float")), r"config\.prepare\.images is 'keep', here 'float'; "),
        (loader([7, 7]), r"data\[0\]\.steps is 13, here 14; data\[0\]\.pairs is 13, here 14; data\[0\]\.hash"),
        (loader([6, 7]), r"^the state belongs to something else: data\[0\]\.hash is '[0-9a-f]{32}', here"),
        (loader(data=[changed, columns([9], 100)]), r": data\[0\]\.hash"),
        (loader(data=[columns([7, 6])]), r"config\.weights is .*; it has 2 data sets, this loader 1$"),
    ]
    for other, words in cases:
        with pytest.raises(gm.StateError, match=words):
            other.load_state_dict(state)
    old = {key: value for key, value in state.items() if key != "checksum"} | {"gristmill_pairs_state": 1}
    loader().load_state_dict(old)
    for bad, words in [
        ({}, "no state of a loader of pairs"),
        ({**state, "gristmill_pairs_state": 3}, "of version 3"),
        ({**state, "gristmill_pairs_state": 1}, "which its version has not"),
        ({**old, "gristmill_pairs_state": 2}, "lacks its checksum: .* take another copy"),
        ({**state, "row": 1}, "its checksum is '[0-9a-f]{16}', .* take another copy"),
        ({**old, "row": 20}, "`row` is 20; expected a number from 0 to 19"),
        ({**old, "row": True}, "`row` is True"),
        ({**old, "pass": -1}, "`pass` is -1"),
        ({**old, "pass": 1 << 70}, "`pass` is"),
        ({**old, "row": 4}, r"`given` is \[0, 0\]; at row 4 of pass 0 it is \[\d, \d\]"),
    ]:
        with pytest.raises(gm.StateError, match=words):
            loader().load_state_dict(bad)
    np.save(tmp_path / "one.npy", np.arange(9)[None])
    np.save(tmp_path / "two.npy", np.arange(9)[None])
    np.save(tmp_path / "three.npy", np.arange(9)[None, ::-1])
    jigsaw = loader(pairs=gm.pairs.Jigsaw(tmp_path / "one.npy")).state_dict()
    loader(pairs=gm.pairs.Jigsaw(tmp_path / "two.npy")).load_state_dict(jigsaw)
    with pytest.raises(gm.StateError, match=r"config\.pairs\.permutations"):
        loader(pairs=gm.pairs.Jigsaw(tmp_path / "three.npy")).load_state_dict(jigsaw)


def test_far_states_are_as_near_as_the_first() -> None:
    def loader() -> gm.PairLoader:
        return gm.PairLoader([columns([7, 6]), columns([9], 100)], ROWS, batch_size=2, weights=[1, 3], seed=1)

    source = loader()
    source.set_epoch(10**15)
    state = source.state_dict()
    assert (state["pass"], state["row"], sum(state["given"])) == (10**15, 0, 22 * 10**15)
    other = loader()
    other.load_state_dict(state)
    assert steps_of(other) == steps_of(source)
    assert other.epoch == 10**15 + 1
    for epoch in (-1, 1 << 60):
        with pytest.raises(gm.ConfigError, match=f"epoch {epoch}; expected 0 to "):
            source.set_epoch(epoch)


@pytest.mark.parametrize("sources", [1, 2])
def test_no_damaged_state_of_pairs_is_taken(tmp_path: Path, sources: int) -> None:
    def loader() -> gm.PairLoader:
        return gm.PairLoader([columns([7, 6]), columns([9], 100)][:sources], ROWS, batch_size=2, seed=1)

    source = loader()
    next(iter(source))
    path = tmp_path / "state.json"
    source.save(path)
    text = path.read_bytes()
    said, other, refused = json.loads(text), loader(), 0
    damaged = [text[:cut] for cut in range(len(text))]
    for at, byte in enumerate(text):
        damaged += [text[:at] + bytes([new]) + text[at + 1 :] for new in (byte ^ 1, byte ^ 16, 0x37)]
        damaged += [text[:at] + text[at + hole :] for hole in (1, 2, 3, 20, 90) if at + hole < len(text)]
    for changed in damaged:
        path.write_bytes(changed)
        try:
            other.load(path)
        except gm.StateError as error:
            refused += "state.json: " in str(error)
        else:
            assert json.loads(changed) == said
    assert refused > 0.95 * len(damaged)
    path.write_bytes(text)
    other.load(path)
    assert steps_of(other) == steps_of(source)


def test_states_are_written_whole_or_not_at_all(tmp_path: Path) -> None:
    source = gm.PairLoader(columns([30]), ROWS, batch_size=4, seed=1)
    next(iter(source))
    path = tmp_path / "state.json"
    path.write_text("before")
    source.save(path)
    assert [file.name for file in tmp_path.iterdir()] == ["state.json"]
    assert json.loads(path.read_text()) == source.state_dict()
    other = gm.PairLoader(columns([30]), ROWS, batch_size=4, seed=1)
    other.load(path)
    assert steps_of(other) == steps_of(source)
    for text in (path.read_text()[:-9], "[]", "\xff"):
        path.write_text(text)
        with pytest.raises(gm.StateError, match=r"state\.json"):
            other.load(path)
    with pytest.raises(FileNotFoundError):
        other.load(tmp_path / "none.json")
    source.save(tmp_path / "new" / "folder" / "state.json")
    with pytest.raises(OSError, match=r"state\.json"):
        source.save(path / "state.json")


def test_ranks_are_found_where_they_stand(monkeypatch: pytest.MonkeyPatch) -> None:
    def ranks(**options: Any) -> tuple[int, int]:
        loader = gm.PairLoader(columns([30]), batch_size=30, **options)
        return loader.rank, loader.world_size

    assert ranks() == (0, 1)
    monkeypatch.setenv("WORLD_SIZE", "3")
    assert ranks() == (0, 1), "one alone says nothing"
    monkeypatch.setenv("RANK", "2")
    assert ranks() == (2, 3)
    assert ranks(rank=1, world_size=5) == (1, 5), "what is given stands"
    assert ranks(world_size=3) == ranks(rank=2) == (2, 3), "one is given, and agrees"
    with pytest.raises(gm.ConfigError, match="world_size 1, but RANK and WORLD_SIZE says rank 2 of 3"):
        ranks(world_size=1)
    monkeypatch.setenv("RANK", "3")
    with pytest.raises(gm.ConfigError, match="rank 3 of 3"):
        ranks()
    monkeypatch.setenv("RANK", "first")
    with pytest.raises(gm.ConfigError, match="are no numbers"):
        ranks()


def test_places_that_contradict_each_other_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A real group of JAX, of one process, in one that a launcher calls the second of two."""
    pytest.importorskip("jax")
    program = """
import socket, jax, numpy as np, gristmill as gm
with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    port = free.getsockname()[1]
jax.distributed.initialize(f"127.0.0.1:{port}", num_processes=1, process_id=0)
data = gm.pairs.Columns([4], {"obs": np.zeros((4, 1)), "dones": np.zeros(4, bool)})
try:
    gm.PairLoader(data, batch_size=1)
except gm.ConfigError as error:
    print(error)
print(gm.PairLoader(data, batch_size=2, rank=1, world_size=2).rank)
"""
    monkeypatch.setenv("RANK", "1")
    monkeypatch.setenv("WORLD_SIZE", "2")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said, rank = done.stdout.splitlines()
    assert "jax.distributed says rank 0 of 1" in said
    assert "RANK and WORLD_SIZE says rank 1 of 2" in said
    assert rank == "1"


def test_loaders_travel_to_other_processes(tmp_path: Path) -> None:
    infos = [{"t": t} for t in range(13)]
    mapped = np.memmap(tmp_path / "obs.bin", np.uint8, "w+", 5, (13, 2, 9, 12))
    data = columns([7, 1, 5], infos=infos)
    mapped[:] = data.column("obs")
    mapped.flush()
    fields = {"obs": mapped, "dones": data.column("dones"), "rest": np.zeros((13, 100_000))}
    source = gm.StepLoader(gm.pairs.Columns([7, 1, 5], fields, infos), gm.pairs.Steps(("obs", "infos")), batch_size=3)
    batches = iter(source)
    next(batches)
    sent = pickle.dumps(source)
    assert len(sent) < 5000, "mapped columns go by name, those that are not used do not go"
    again = pickle.loads(sent)
    left = list(batches)
    assert len(left) == 3
    assert all(map(same, again, left))
    assert again.state_dict() == source.state_dict()


def test_spilled_demonstrations_travel_by_the_names_of_their_files(tmp_path: Path) -> None:
    shape = (2, 9, 12)
    low = np.zeros(shape, np.uint8)
    box = Instance("Box", (), {"low": low, "high": low + 255, "shape": shape, "dtype": np.dtype("u1")})
    data = columns([70, 30], shape=shape)
    rows = [{name: data.column(name)[t] for name in ("obs", "acts", "dones")} for t in range(100)]
    write_frames(tmp_path / "demos.tar.zst", get_meta_dict({}, box, Instance("Discrete", (), {"n": 9})), rows)
    spilled = gm.demos.open_demos(tmp_path / "demos.tar.zst", columns=tmp_path / "columns")
    source = gm.PairLoader(spilled, gm.pairs.TemporalOffset("dynamics"), batch_size=7, seed=2)
    sent = pickle.dumps(source)
    assert len(sent) < 5000
    again = pickle.loads(sent)
    expected = gm.PairLoader(data, gm.pairs.TemporalOffset("dynamics"), batch_size=7, seed=2)
    assert again.state_dict() == source.state_dict() == expected.state_dict()
    for one, two, three in zip(source, again, expected, strict=True):
        assert same(one, two)
        assert same(one, three)
