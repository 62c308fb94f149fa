"""`DataLoader` over demonstrations: files, arrays, pairs, several with weights; what it cannot take, it names."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack
from steps_in_memory import columns
from test_demos_writer import META, frames

import gristmill as gm
from gristmill.demos import write_frames

DYNAMICS = gm.pairs.TemporalOffset("dynamics", 2)


def shard(folder: Path) -> gm.Demos:
    (path,) = write_frames(folder / "demos.tar", META, frames([7, 1, 5, 3]))
    demos: gm.Demos = gm.open(path)
    return demos


def plain(batches: Any) -> list[dict[str, Any]]:
    return [{name: np.asarray(value).tolist() for name, value in batch.items()} for batch in batches]


def acts(batches: Any) -> list[int]:
    return [act for batch in batches for act in batch["acts"].tolist()]


def test_steps_of_files_have_every_field_and_each_once_a_pass(tmp_path: Path) -> None:
    demos = shard(tmp_path)
    loader = gm.DataLoader(demos, batch_size=5, seed=1)
    assert {tensor.name for tensor in loader.outputs[""].tensors} == set(demos.layout.names)
    for epoch in range(3):
        assert loader.epoch == epoch
        batches = list(loader)
        assert [batch.rows for batch in batches] == [5, 5, 5, 1]
        assert len(loader) == 4
        assert [batch.number for batch in batches] == list(range(4 * epoch, 4 * epoch + 4))
        assert all(isinstance(batch, gm.Batch) for batch in batches)
    assert (loader.num_rows, loader.num_batches) == (16, None)
    drop = gm.DataLoader(demos, batch_size=5, seed=1, last_batch="drop", epochs=2)
    assert ([b.rows for b in drop], [b.rows for b in drop], drop.num_batches) == ([5] * 3, [5] * 3, 6)
    with pytest.raises(gm.EndOfStream, match=r"epochs=2"):
        list(drop)


def test_a_pack_and_the_files_it_was_made_of_give_the_same_steps(tmp_path: Path) -> None:
    demos = shard(tmp_path)
    gm.pack(tmp_path / "demos.tar", tmp_path / "pack")
    options: dict[str, Any] = {"encoder": gm.Fields(["acts", "dones"]), "batch_size": 16, "shuffle": False}
    packed, files = (gm.DataLoader(source, **options).get_next() for source in (gm.open(tmp_path / "pack"), demos))
    assert plain([packed]) == plain([files])
    assert packed.names == files.names


def test_pairs_are_those_of_a_pair_loader() -> None:
    one, other = columns([30, 12]), columns([20], 100)
    for source, options in (
        (one, {}),
        ([one, other], {"weights": [3, 1]}),
        ([one, other], {"exhausted": "stop", "nominal_length": 24}),
    ):
        expected = gm.PairLoader(source, DYNAMICS, batch_size=8, seed=3, **options)
        found = gm.DataLoader(source, pairs=DYNAMICS, batch_size=8, seed=3, last_batch="drop", **options)
        for _ in range(2):
            assert plain(found) == plain(batch.asdict() for batch in expected)
    named = gm.DataLoader({"b": one, "a": other}, weights={"a": 1, "b": 3}, pairs=DYNAMICS, batch_size=8, seed=3)
    listed = gm.DataLoader([one, other], weights=[3, 1], encoder=DYNAMICS, batch_size=8, seed=3)
    made = gm.DataLoader([DYNAMICS.over(data) for data in (one, other)], weights=[3, 1], batch_size=8, seed=3)
    assert plain(named) == plain(listed) == plain(made)
    with pytest.raises(TypeError, match=r"weights of \['a', 'c'\]; expected those of \['a', 'b'\]"):
        gm.DataLoader({"b": one, "a": other}, weights={"a": 1, "c": 3})


def test_arrays_slices_functions_and_beside_steps() -> None:
    data = columns([9, 6], infos=[{"frame": i} for i in range(15)])
    steps = gm.DataLoader(data, encoder=gm.pairs.GAIL, batch_size=6, seed=2)
    batch = steps.get_next()
    assert batch["infos"] == [{"frame": act} for act in batch["acts"].tolist()]
    assert batch["dones"].dtype == bool

    def neighbours(steps: Any) -> Any:
        before = None
        for step in steps:
            if before is not None:
                yield {"context": before, "target": step["obs"], "traj_ts_ids": [0, step["frame"]]}
            before = None if step["dones"] else step["obs"]

    assert sum(batch.rows for batch in gm.DataLoader(data, pairs=neighbours, batch_size=4)) == 13
    arrays = {name: data.column(name) for name in ("obs", "acts", "dones")}
    assert sorted(acts(gm.DataLoader(arrays, batch_size=4))) == list(range(15))


def test_a_state_at_every_batch_resumes_steps_and_brings_its_seed() -> None:
    data = columns([9, 6])
    whole = gm.DataLoader(data, batch_size=4)
    assert whole.seed is None
    passes = [acts([batch]) for _ in range(2) for batch in whole]
    seed = whole.seed
    assert seed is not None
    for at in range(9):
        first = gm.DataLoader(data, batch_size=4, seed=seed)
        for _ in range(at):
            first.get_next()
        again = gm.DataLoader(data, batch_size=4)
        again.load_state_dict(first.state_dict())
        assert again.seed in (None, seed)
        rest = [acts([batch]) for _ in range(2 - at // 4) for batch in again]
        assert rest == passes[at:]
        sought = gm.DataLoader(data, batch_size=4, seed=seed)
        sought.seek(at)
        assert [acts([batch]) for batch in sought] == passes[at : (at // 4 + 1) * 4] or at == 8
    with pytest.raises(gm.StateError):
        gm.DataLoader(columns([9, 7]), batch_size=4).load_state_dict(first.state_dict())


def test_steps_have_ranks_metrics_and_travel(tmp_path: Path) -> None:
    data = columns([9, 7])
    alone = [sorted(acts([batch])) for batch in gm.DataLoader(data, batch_size=4, seed=5)]
    ranks = [gm.DataLoader(data, batch_size=4, seed=5, rank=rank, world_size=2) for rank in range(2)]
    assert [(loader.rank, loader.world_size) for loader in ranks] == [(0, 2), (1, 2)]
    shares = [[acts([batch]) for batch in loader] for loader in ranks]
    assert [sorted(a + b) for a, b in zip(*shares, strict=True)] == alone
    first = gm.DataLoader(data, batch_size=4, seed=5)
    first.seek(2)
    sent = pickle.loads(pickle.dumps(first))
    assert [sorted(acts([batch])) for batch in sent] == alone[2:]
    assert sent.metrics(flat=True)["uptime_seconds"] >= 0
    first.save(tmp_path / "state")
    again = gm.DataLoader(data, batch_size=4)
    again.load(tmp_path / "state")
    assert [sorted(acts([batch])) for batch in again] == alone[2:]


def test_threads_make_steps_ahead_and_change_none() -> None:
    data = columns([30, 12])
    options: dict[str, Any] = {"pairs": gm.pairs.UniformOffset(1, 5), "batch_size": 8, "seed": 3}
    alone = gm.DataLoader(data, threads=1, queue_capacity=2, **options)
    expected = [plain(alone) for _ in range(2)]
    assert [plain(loader) for loader in [gm.DataLoader(data, threads=4, **options)] for _ in range(2)] == expected
    with gm.DataLoader(data, threads=2, **options) as loader:
        first = loader.get_next(timeout=60)
        assert plain([first]) == expected[0][:1]
        seen = loader.xray(0)
        assert [[row["trajectory"], row["step"]] for row in seen] == first["traj_ts_ids"].tolist()
        assert seen[3:4] == loader.xray(0, 3)
    with pytest.raises(gm.StoppedError):
        loader.get_next()
    assert loader.state_dict()["batch"] == 1, "where it stood stays known"
    with pytest.raises(gm.AliasError):
        gm.DataLoader(data, **options).get_next("train")
    with pytest.raises(gm.ConfigError, match="there is no batch 10"):
        gm.DataLoader(data, epochs=2, **options).xray(10)


def test_what_no_loader_takes_is_named_with_what_does(tmp_path: Path) -> None:
    rows, steps = gm.open(write_pack(tmp_path / "rows", make_rows(6))), columns([9, 6])
    (tmp_path / "more").mkdir()
    demos = shard(tmp_path / "more")
    stream = gm.presets.lc0(tmp_path)
    refused: list[tuple[Any, dict[str, Any], str]] = [
        (None, {}, "found NoneType: gristmill.open gives these"),
        ("games/", {}, "found str: open it by gristmill.open"),
        (tmp_path, {}, "found PosixPath: open it by gristmill.open"),
        ([tmp_path, steps], {}, "found PosixPath: open it by gristmill.open"),
        (b"games", {}, "found bytes"),
        ([rows, steps], {}, "cannot be fed together: packs are mixed with packs, demonstrations with demonstrations"),
        ([rows, demos], {"encoder": gm.g2048.Steps()}, "cannot be fed together: packs are mixed with packs"),
        ([stream, demos], {}, "cannot be fed together: a stream draws from several folders"),
        (rows, {"weights": [1]}, "`weights` belongs to several sources"),
        (stream, {"pairs": DYNAMICS}, "`pairs` belongs to demonstrations"),
        (steps, {"pairs": DYNAMICS, "encoder": DYNAMICS}, "both say what a row is"),
        (DYNAMICS.over(steps), {"pairs": DYNAMICS}, "pairs that were made already"),
        (steps, {"encoder": gm.g2048.Steps()}, "demonstrations take gristmill.Fields"),
        (steps, {"view": gm.views.Window(1)}, "`view` belongs to streams and rows of packs"),
        (steps, {"shuffle": gm.Blocks()}, "steps are shuffled or not"),
    ]
    for source, options, expected in refused:
        with pytest.raises(TypeError, match=expected):
            gm.DataLoader(source, **options)
    with pytest.raises(gm.ConfigError, match="no data set"):
        gm.DataLoader([])
    with pytest.raises(gm.ConfigError, match="data sets have other fields"):
        gm.DataLoader([steps, columns([5], extra=np.zeros(5))])


def test_jax_takes_steps_as_they_are() -> None:
    jax = pytest.importorskip("jax")
    import gristmill.jax as adapter

    data = columns([9, 6], infos=[{"frame": i} for i in range(15)])
    loader = gm.DataLoader(data, encoder=gm.pairs.Steps(("obs", "acts", "infos")), batch_size=4, seed=2)
    batches = list(adapter.batches(loader))
    assert sorted(act for batch in batches for act in batch["acts"].tolist()) == list(range(15))
    assert all(isinstance(batch["obs"], jax.Array) for batch in batches)
    assert batches[0]["infos"] == [{"frame": act} for act in batches[0]["acts"].tolist()]


def test_torch_takes_steps_and_resumes() -> None:
    torch = pytest.importorskip("torch")
    import gristmill.torch as adapter

    data = columns([9, 6], infos=[{"frame": i} for i in range(15)])

    def make() -> gm.DataLoader:
        return gm.DataLoader(data, encoder=gm.pairs.GAIL, batch_size=4, seed=2)

    expected = [batch["acts"].tolist() for batch in make()]
    assert [batch["acts"].tolist() for batch in adapter.batches(make())] == expected
    feed = adapter.DataLoader(make(), num_workers=2)
    begun = iter(feed)
    first = next(begun)
    assert isinstance(first["obs"], torch.Tensor)
    assert first["infos"] == [{"frame": act} for act in first["acts"].tolist()]
    state = feed.state_dict()
    assert [batch["acts"].tolist() for batch in begun] == expected[1:]
    again = adapter.DataLoader(make())
    again.load_state_dict(state)
    assert [batch["acts"].tolist() for batch in again] == expected[1:]
    again.load_state_dict(state)
    assert [batch["acts"].tolist() for batch in again] == expected[1:], "a loader that ran starts again"
    options = {"num_workers": 2, "collate_fn": adapter.convert, "multiprocessing_context": "spawn"}
    taking_turns = torch.utils.data.DataLoader(make(), batch_size=None, **options)
    assert [batch["acts"].tolist() for batch in taking_turns] == expected


def test_batches_of_pairs_are_left_out_joined_and_noted(tmp_path: Path) -> None:
    data = [columns([9, 6]), columns([7], 100)]
    options: dict[str, Any] = {"pairs": gm.pairs.UniformOffset(1, 3), "batch_size": 4, "seed": 3, "weights": [2, 1]}
    loader = gm.DataLoader(data, **options)
    whole = [plain([batch]) for _ in range(2) for batch in loader]
    skipping = gm.DataLoader(data, skip=[(1, 3)], **options)
    kept = [(batch.number, plain([batch])) for batch in skipping]
    assert kept == [(number, whole[number]) for number in (0, 3, 4)]
    with pytest.raises(gm.StateError, match="left out"):
        gm.DataLoader(data, **options).load_state_dict(skipping.state_dict())

    joined = gm.DataLoader(data, joined=True, epochs=2, **options)
    rows = [row for batch in joined for row in np.asarray(batch["traj_ts_ids"]).tolist()]
    apart = [row for batch in whole for row in batch[0]["traj_ts_ids"]]
    assert rows == apart
    assert joined.num_batches == -(-len(apart) // 4)

    noted = gm.DataLoader(data, ledger=tmp_path / "ledger", epochs=2, **options)
    assert plain([noted.get_next()]) == whole[0]
    state = noted.state_dict()
    assert plain([noted.get_next()]) == whole[1]
    noted.stop()
    again = gm.DataLoader(data, ledger=tmp_path / "ledger", epochs=2, **options)
    again.load_state_dict(state)
    rest = [plain([batch]) for _ in range(2) for batch in again]
    assert rest == whole[1:]
    again.stop()
    text = (tmp_path / "ledger").read_text()
    assert text.count('"begin"') == 2
    assert '"mix":{' in text
    with pytest.raises(FileExistsError):
        gm.DataLoader(data, ledger=tmp_path / "ledger", epochs=2, **options).start()


def test_a_state_of_a_pair_loader_is_taken_over() -> None:
    data = columns([9, 6])
    old = gm.PairLoader(data, DYNAMICS, batch_size=4, seed=3, drop_last=False)
    whole = [plain([batch.asdict()]) for batch in old]
    for at in range(len(whole)):
        pairs = gm.PairLoader(data, DYNAMICS, batch_size=4, seed=3, drop_last=False)
        pairs.load_state_dict(old.state_at(0, 4 * at))
        loader = gm.DataLoader(data, pairs=DYNAMICS, batch_size=4)
        loader.load_state_dict(pairs.state_dict())
        assert [plain([batch]) for batch in loader] == whole[at:]
    late = gm.DataLoader(data, pairs=DYNAMICS, batch_size=4, ledger="ledger")
    late.load_state_dict(old.state_at(0, 3))
    with pytest.raises(gm.StateError, match="a ledger counts whole ones"):
        late.start()
    for other in (gm.DataLoader(columns([9, 7]), pairs=DYNAMICS, batch_size=4), gm.DataLoader(data, batch_size=4)):
        with pytest.raises(gm.StateError):
            other.load_state_dict(gm.DataLoader(data, pairs=DYNAMICS, batch_size=4, seed=3).state_dict())
