"""Exact resumes through the checkpoints of accelerate and Fabric, and passes of streams in trainers."""

import os
import socket
import subprocess
import sys
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
    """Batches after which a run is saved: in the midst of a pass, at its end, after it."""
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


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_accelerate_resumes_a_prepared_loader_with_a_state(
    make: Callable[[], Any], tmp_path: Path, workers: int
) -> None:
    accelerate = pytest.importorskip("accelerate")
    pytest.importorskip("torchdata.stateful_dataloader")
    from gristmill import torch as adapter

    def prepared() -> tuple[Any, Any]:
        keeps = accelerate.DataLoaderConfiguration(use_stateful_dataloader=True)
        accelerator = accelerate.Accelerator(cpu=True, dataloader_config=keeps)
        feed = make()
        if workers and isinstance(feed._loader, gm.PairLoader):
            feed = adapter.DataLoader(feed._loader, num_workers=workers)
        return accelerator, accelerator.prepare(feed)

    whole = passes(make())
    given = [batch for one in whole for batch in one]
    for at in stops(whole):
        first, feed = prepared()
        assert run_until(feed, at) == given[:at]
        first.save_state(str(tmp_path / str(at)))
        if at == 1:
            # The run that continues takes its state again.
            run_until(feed, 2)
            first.load_state(str(tmp_path / str(at)))
            assert run_until(feed, 2) == given[at : at + 2]
        second, again = prepared()
        second.load_state(str(tmp_path / str(at)))
        rest: list[list[Any]] = []
        while len(rest) < len(given) - at:
            rest += [shown(batch) for batch in again]
        assert rest[: len(given) - at] == given[at:], at


def test_torch_accelerate_may_not_count_passes_anew(tmp_path: Path) -> None:
    accelerate = pytest.importorskip("accelerate")
    pytest.importorskip("torchdata.stateful_dataloader")
    from gristmill import torch as adapter

    keeps = accelerate.DataLoaderConfiguration(use_stateful_dataloader=True)
    loader = gm.PairLoader(columns([30], shape=(1,)), gm.pairs.Windows(1), batch_size=4, seed=1)
    for dataset in (loader, adapter.BatchStream(loader)):
        plain = torch.utils.data.DataLoader(dataset, batch_size=None, collate_fn=adapter.convert)
        accelerator = accelerate.Accelerator(cpu=True, dataloader_config=keeps)
        with pytest.raises(gm.ConfigError, match=r"prepare gristmill\.torch\.DataLoader"):
            next(iter(accelerator.prepare(plain)))
    # Without a state it counts right: from the first pass on.
    fed = accelerate.Accelerator(cpu=True).prepare(adapter.DataLoader(loader))
    assert [shown(batch) for batch in fed] == passes(adapter.DataLoader(_beginning(loader)), 1)[0]


def _beginning(loader: gm.PairLoader) -> gm.PairLoader:
    loader.set_epoch(0)
    return loader


SHARED_TWICE = """
import sys
sys.path.insert(0, {folder!r})
import accelerate, gristmill as gm, gristmill.torch
from packs2048 import make_rows, write_pack
from pathlib import Path
from steps_in_memory import columns
accelerator = accelerate.Accelerator(cpu=True)
assert accelerator.num_processes == 2
rows = gm.open(Path({data!r}))
for loader in (
    gm.PairLoader(columns([30], shape=(1,)), gm.pairs.Windows(1), batch_size=4, seed=1),
    gm.DataLoader(rows, encoder=gm.g2048.Steps(), batch_size=48, seed=1),
):
    feed = gristmill.torch.DataLoader(loader)
    try:
        next(iter(accelerator.prepare(feed)))
    except gm.ConfigError as error:
        print(error)
    # A loop over the loader itself gives each rank its own.
    print(len(next(iter(feed))["target" if "target" in next(iter(feed)) else "step_index"]))
"""


def test_torch_accelerate_may_not_share_rows_that_ranks_share(tmp_path: Path) -> None:
    pytest.importorskip("accelerate")
    pack = write_pack(tmp_path / "rows", make_rows(6))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    program = SHARED_TWICE.format(folder=str(Path(__file__).parent / "made"), data=str(pack))
    runs = []
    for rank in range(2):
        ranks = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
        env = {**os.environ, **ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "ACCELERATE_USE_CPU": "true"}
        line = [sys.executable, "-W", "ignore", "-c", program]
        runs.append(subprocess.Popen(line, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True))
    said = [run.communicate(timeout=250) for run in runs]
    assert [run.returncode for run in runs] == [0, 0], said
    for out, _ in said:
        refused, pairs, again, steps = out.splitlines()
        assert refused == again
        assert "what the others have would be lost" in refused
        assert (pairs, steps) == ("2", "24")


@pytest.mark.parametrize("stop", range(4))
def test_torch_lightning_counts_a_batch_that_it_took_ahead_as_not_given(
    make: Callable[[], Any], tmp_path: Path, stop: int
) -> None:
    lightning = pytest.importorskip("lightning")

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self, seen: list[list[Any]]) -> None:
            super().__init__()
            self.layer, self.seen = torch.nn.Linear(1, 1), seen

        def training_step(self, batch: Any, _: int) -> Any:
            self.seen.append(shown(batch))
            return self.layer(torch.ones(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    def trainer(**options: Any) -> Any:
        quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
        return lightning.Trainer(default_root_dir=tmp_path, **quiet, **options)

    whole = passes(make())
    given, saved = [batch for one in whole for batch in one], stops(whole)[stop]
    callback = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=saved, save_top_k=-1)
    seen: list[list[Any]] = []
    feed = make()
    trainer(max_epochs=EPOCHS, max_steps=saved, callbacks=[callback]).fit(Model(seen), feed)
    assert seen == given[:saved]
    (checkpoint,) = tmp_path.glob("*.ckpt")
    again: list[list[Any]] = []
    trainer(max_epochs=EPOCHS, enable_checkpointing=False).fit(Model(again), make(), ckpt_path=str(checkpoint))
    assert seen + again == given
    # The same loader, too: nothing that was taken ahead is lost.
    rest: list[list[Any]] = []
    while len(rest) < len(given) - saved:
        rest += [shown(batch) for batch in feed]
    assert rest[: len(given) - saved] == given[saved:]


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
