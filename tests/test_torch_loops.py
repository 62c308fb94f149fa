"""PyTorch, Lightning, Fabric, accelerate and torchdata over streams, packs and pairs: no batch is lost."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from packs2048 import make_rows, write_pack
from steps_in_memory import columns

import gristmill as gm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

EPOCHS = 3
#: Batches of an epoch of the endless stream.
LENGTH = 5


class KilledError(Exception):
    """The run ends here."""


@pytest.fixture(params=["stream", "pack", "games", "pairs"])
def make(request: pytest.FixtureRequest, tmp_path: Path, games: Path) -> Callable[[], Any]:
    """Makes a loader of one kind, always the same one."""
    if request.param == "stream":
        config = gm.presets.lc0(
            games, pool=10, reservoir=40, batch_size=16, seed=1, index="off", watch=False, tensors=["ids"]
        )
        return lambda: gm.DataLoader(config)
    if request.param == "games":
        gm.pack(games, tmp_path / "games-pack")
        pack = gm.open(tmp_path / "games-pack")
        tensors = gm.chess.Tensors(["ids"])
        return lambda: gm.DataLoader(pack, encoder=tensors, batch_size=48, seed=1)
    if request.param == "pack":
        rows = gm.open(write_pack(tmp_path / "rows", make_rows(6)))
        return lambda: gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=48, seed=1)
    return lambda: gm.PairLoader(columns([30], shape=(1,)), gm.pairs.Windows(1), batch_size=4, seed=1)


def shown(batch: Any) -> list[Any]:
    """What tells a batch from all others."""
    name = next(name for name in ("ids", "step_index", "target") if name in batch)
    found: list[Any] = batch[name].flatten().tolist()
    return found


def fed(loader: Any, workers: int = 0) -> Any:
    from gristmill import torch as adapter

    length: dict[str, Any] = {"length": LENGTH} if isinstance(loader, gm.DataLoader) and loader.num_rows is None else {}
    return adapter.DataLoader(loader, num_workers=workers, **length)


def expected(make: Callable[[], Any]) -> list[list[Any]]:
    feed = fed(make())
    passes = [[shown(batch) for batch in feed] for _ in range(EPOCHS)]
    assert [len(one) for one in passes] == [len(feed)] * EPOCHS
    assert len(feed) > 3
    return [batch for one in passes for batch in one]


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_loops_give_each_epoch_its_pass(make: Callable[[], Any], workers: int) -> None:
    whole = expected(make)
    length = len(fed(make()))
    for at in (1, length - 1, length, length + 2):
        first = fed(make(), workers)
        seen: list[list[Any]] = []
        while len(seen) < at:
            for batch in first:
                seen.append(shown(batch))
                if len(seen) == at:
                    break
        state = first.state_dict()
        again = fed(make(), workers)
        again.load_state_dict(state)
        seen += [shown(batch) for batch in again]
        assert seen == whole[: len(seen)]
        assert len(seen) > at


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("saved", [3, 8])
def test_torch_lightning_goes_on_without_losing_a_batch(
    make: Callable[[], Any], workers: int, saved: int, tmp_path: Path
) -> None:
    lightning = pytest.importorskip("lightning")
    seen: list[list[Any]] = []

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self, seen: list[list[Any]], killed_after: int | None = None) -> None:
            super().__init__()
            self.layer, self.seen, self.killed_after = torch.nn.Linear(1, 1), seen, killed_after

        def training_step(self, batch: Any, _: int) -> Any:
            if len(self.seen) == self.killed_after:
                raise KilledError
            self.seen.append(shown(batch))
            return self.layer(torch.ones(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def trainer(**options: Any) -> Any:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
        return lightning.Trainer(max_epochs=EPOCHS, default_root_dir=tmp_path, **quiet, **options)

    whole = expected(make)
    trainer(enable_checkpointing=False).fit(Model(seen), fed(make(), workers))
    assert seen == whole
    callback = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=saved, save_top_k=-1)
    seen = []
    with pytest.raises(KilledError):
        trainer(callbacks=[callback]).fit(Model(seen, saved + 1), fed(make(), workers))
    (checkpoint,) = tmp_path.glob("*.ckpt")
    again: list[list[Any]] = []
    trainer(enable_checkpointing=False).fit(Model(again), fed(make(), workers), ckpt_path=str(checkpoint))
    assert seen[:saved] + again == whole


def test_torch_fabric_gives_each_epoch_its_pass(make: Callable[[], Any]) -> None:
    lightning = pytest.importorskip("lightning")
    fabric = lightning.Fabric(accelerator="cpu", devices=1)
    feed = fabric.setup_dataloaders(fed(make()))
    assert [shown(batch) for _ in range(EPOCHS) for batch in feed] == expected(make)


def test_torch_accelerate_gives_each_epoch_its_pass(make: Callable[[], Any]) -> None:
    accelerate = pytest.importorskip("accelerate")
    feed = accelerate.Accelerator(cpu=True).prepare(fed(make()))
    assert [shown(batch) for _ in range(EPOCHS) for batch in feed] == expected(make)


def test_torchdata_takes_a_loader_and_resumes_it(make: Callable[[], Any]) -> None:
    stateful = pytest.importorskip("torchdata.stateful_dataloader")
    from gristmill import torch as adapter

    def feed() -> Any:
        return stateful.StatefulDataLoader(make(), batch_size=None, collate_fn=adapter.convert)

    whole = expected(make)[:4]
    first = iter(running := feed())
    seen = [shown(next(first)) for _ in range(3)]
    state = running.state_dict()
    again = feed()
    again.load_state_dict(state)
    rest = iter(again)
    assert seen + [shown(next(rest)) for _ in range(1)] == whole


@pytest.mark.parametrize("method", ["", "fork", "spawn"])
def test_torch_takes_a_loader_as_it_is(make: Callable[[], Any], method: str) -> None:
    from gristmill import torch as adapter

    workers: dict[str, Any] = {"num_workers": 2, "multiprocessing_context": method} if method else {}
    plain = torch.utils.data.DataLoader(make(), batch_size=None, collate_fn=adapter.convert, **workers)
    batches = iter(plain)
    assert [shown(next(batches)) for _ in range(4)] == expected(make)[:4]
    del batches


def test_torch_samplers_take_frames_of_any_selection(tmp_path: Path, games: Path) -> None:
    from gristmill import torch as adapter

    rows = gm.open(write_pack(tmp_path / "rows", make_rows(6))).split(0.4).train
    gm.pack(games, tmp_path / "games-pack")
    pack = gm.open(tmp_path / "games-pack").games[2:8]
    for source, encoder in ((rows, gm.g2048.Steps()), (pack, gm.chess.Tensors(["ids"]))):
        dataset = adapter.SelectionDataset(source, encoder)
        assert len(dataset) == source.num_frames
        one = dataset[3]
        name = "ids" if "ids" in one else "step_index"
        for workers in (0, 2):
            feed = torch.utils.data.DataLoader(dataset, batch_size=32, num_workers=workers)
            found = torch.cat([batch[name] for batch in feed])
            assert torch.equal(found, dataset[list(range(len(dataset)))][name])
        assert torch.equal(found[3], one[name])
        shuffled = torch.utils.data.DataLoader(dataset, batch_size=32, shuffle=True)
        assert sum(len(batch[name]) for batch in shuffled) == len(dataset)
        assert np.array_equal(dataset[-1][name], found[-1])
        with pytest.raises(IndexError):
            dataset[len(dataset)]


def test_torch_feeding_refuses_what_is_the_loaders(make: Callable[[], Any]) -> None:
    from gristmill import torch as adapter

    with pytest.raises(TypeError, match="`shuffle` is the loader's"):
        adapter.DataLoader(make(), shuffle=True)
