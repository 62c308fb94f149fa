"""Loaders of pairs under the real Lightning: each epoch has its pass, and a resumed run loses no batch."""

from pathlib import Path
from typing import Any

import pytest
from steps_in_memory import columns

import gristmill as gm

torch = pytest.importorskip("torch")
lightning = pytest.importorskip("lightning")
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not hasattr(lightning, "Trainer"), reason="skipped: no whole Lightning"),
]

EPOCHS, BATCHES = 3, 7


class KilledError(Exception):
    """The run ends here."""


def loader() -> gm.PairLoader:
    return gm.PairLoader(columns([30], shape=(1,)), gm.pairs.Windows(1), batch_size=4, seed=1)


def expected() -> list[list[int]]:
    source = loader()
    return [batch.target.tolist() for _ in range(EPOCHS) for batch in source]


def model(seen: list[list[int]], killed_after: int | None = None) -> Any:
    """A model that notes what it is shown."""

    class Model(lightning.LightningModule):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(1, 1)

        def training_step(self, batch: Any, _: int) -> Any:
            if len(seen) == killed_after:
                raise KilledError
            seen.append(batch["target"].tolist())
            return self.layer(torch.ones(1, 1)).sum()

        def configure_optimizers(self) -> Any:
            return torch.optim.SGD(self.parameters(), 0.1)

    return Model()


def trainer(**options: Any) -> Any:
    quiet = {"logger": False, "enable_progress_bar": False, "enable_model_summary": False, "accelerator": "cpu"}
    return lightning.Trainer(max_epochs=EPOCHS, **quiet, **options)


@pytest.mark.parametrize("workers", [0, 2])
def test_torch_lightning_gives_each_epoch_its_pass(workers: int, tmp_path: Path) -> None:
    from gristmill import torch as adapter

    seen: list[list[int]] = []
    trainer(enable_checkpointing=False, default_root_dir=tmp_path).fit(
        model(seen), adapter.DataLoader(loader(), num_workers=workers)
    )
    assert len(seen) == EPOCHS * BATCHES
    assert seen == expected()


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("saved", [3, 10, 13])
def test_torch_lightning_goes_on_from_a_checkpoint_without_losing_a_batch(
    workers: int, saved: int, tmp_path: Path
) -> None:
    from gristmill import torch as adapter

    seen: list[list[int]] = []
    callback = lightning.pytorch.callbacks.ModelCheckpoint(dirpath=tmp_path, every_n_train_steps=saved, save_top_k=-1)
    first = trainer(callbacks=[callback], default_root_dir=tmp_path)
    with pytest.raises(KilledError):
        first.fit(model(seen, killed_after=saved + 1), adapter.DataLoader(loader(), num_workers=workers))
    (checkpoint,) = tmp_path.glob("*.ckpt")
    again: list[list[int]] = []
    second = trainer(enable_checkpointing=False, default_root_dir=tmp_path)
    second.fit(model(again), adapter.DataLoader(loader(), num_workers=workers), ckpt_path=str(checkpoint))
    assert seen[:saved] + again == expected()
