"""Exact resumes through the checkpoints of accelerate and Fabric, and passes of streams in trainers."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from packs2048 import make_rows, write_pack
from steps_in_memory import columns

import gristmill as gm

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore")

EPOCHS = 3
KINDS = ["endless", "passes", "pack", "pairs"]


@pytest.fixture(params=KINDS)
def make(request: pytest.FixtureRequest, tmp_path: Path, games: Path) -> Callable[[], Any]:
    """Makes what a trainer loops over, always the same one."""
    from gristmill import torch as adapter

    stream: dict[str, Any] = {"reservoir": 40, "batch_size": 32, "seed": 1, "index": "off", "tensors": ["ids"]}
    if request.param == "endless":
        config = gm.presets.lc0(games, pool=10, watch=False, **stream)
        return lambda: adapter.DataLoader(gm.DataLoader(config), length=5)
    if request.param == "passes":
        passes = gm.presets.lc0(games, epochs=EPOCHS, **stream)
        return lambda: adapter.DataLoader(gm.DataLoader(passes))
    if request.param == "pack":
        rows = gm.open(write_pack(tmp_path / "rows", make_rows(6)))
        return lambda: adapter.DataLoader(gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=48, seed=1))
    pairs = gm.pairs.Windows(1)
    return lambda: adapter.DataLoader(gm.PairLoader(columns([30], shape=(1,)), pairs, batch_size=4, seed=1))


def shown(batch: Any) -> list[Any]:
    """What tells a batch from all others."""
    name = next(name for name in ("ids", "step_index", "target") if name in batch)
    found: list[Any] = batch[name].flatten().tolist()
    return found


def passes(feed: Any, count: int = EPOCHS) -> list[list[list[Any]]]:
    return [[shown(batch) for batch in feed] for _ in range(count)]


def stops(whole: list[list[list[Any]]]) -> list[int]:
    """Batches after which a run is saved: in the midst of a pass, at its end, behind it."""
    return [1, len(whole[0]) - 1, len(whole[0]), len(whole[0]) + 2]


def run_until(feed: Any, at: int) -> list[list[Any]]:
    """Trains for `at` batches, then leaves the loop; what each batch showed."""
    seen: list[list[Any]] = []
    while len(seen) < at:
        for batch in feed:
            seen.append(shown(batch))
            if len(seen) == at:
                break
    return seen


def test_torch_loops_over_a_stream_give_its_passes(make: Callable[[], Any]) -> None:
    whole = passes(make())
    assert all(len(one) > 3 for one in whole)
    assert len({str(one) for one in whole}) == EPOCHS


def test_torch_lightning_trains_each_pass(make: Callable[[], Any], tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    seen: list[list[list[Any]]] = []

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def on_train_epoch_start(self) -> None:
            seen.append([])

        def training_step(self, batch: Any, _: int) -> Any:
            seen[-1].append(shown(batch))
            return self.layer(torch.ones(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    trainer = lightning.Trainer(max_epochs=EPOCHS, default_root_dir=tmp_path, enable_checkpointing=False, **quiet)
    trainer.fit(Model(), make())
    assert seen == passes(make())


def test_torch_accelerate_saves_and_loads_a_registered_loader(make: Callable[[], Any], tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    whole = passes(make())
    given = [batch for one in whole for batch in one]
    for at in stops(whole):
        first, feed = accelerate.Accelerator(cpu=True), make()
        first.register_for_checkpointing(feed)
        assert run_until(feed, at) == given[:at]
        first.save_state(str(tmp_path / str(at)))
        second, again = accelerate.Accelerator(cpu=True), make()
        second.register_for_checkpointing(again)
        second.load_state(str(tmp_path / str(at)))
        rest: list[list[Any]] = []
        while len(rest) < len(given) - at:
            rest += [shown(batch) for batch in again]
        assert rest[: len(given) - at] == given[at:]


def test_torch_fabric_saves_and_loads_a_loader(make: Callable[[], Any], tmp_path: Path) -> None:
    lightning = pytest.importorskip("lightning")
    whole = passes(make())
    given = [batch for one in whole for batch in one]
    for at in stops(whole):
        fabric = lightning.Fabric(accelerator="cpu", devices=1)
        feed = make()
        assert run_until(fabric.setup_dataloaders(feed), at) == given[:at]
        fabric.save(tmp_path / f"{at}.ckpt", {"feed": feed.state_dict()})
        again = make()
        again.load_state_dict(fabric.load(tmp_path / f"{at}.ckpt")["feed"])
        prepared = fabric.setup_dataloaders(again)
        rest: list[list[Any]] = []
        while len(rest) < len(given) - at:
            rest += [shown(batch) for batch in prepared]
        assert rest[: len(given) - at] == given[at:]
