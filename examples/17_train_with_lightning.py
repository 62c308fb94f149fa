"""Fit a value head in Lightning, whose checkpoints have the state of the loader: what resumes is the same to the bit.

pip install gristmill[torch] lightning
python examples/17_train_with_lightning.py [games/]
"""

import os
import sys
import tempfile

import lightning
import torch

import gristmill as gm
import gristmill.torch

STEPS = 200


class Results(lightning.LightningModule):
    """The result of a game by a linear head of the twelve planes of men."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.losses = torch.nn.Linear(12 * 64, 1), list[float]()

    def training_step(self, batch: dict[str, torch.Tensor], _: int) -> torch.Tensor:
        planes = gristmill.torch.expand(batch)["planes"][:, :12].flatten(1)
        loss = torch.nn.functional.mse_loss(torch.tanh(self.head(planes))[:, 0], batch["values"][:, 0, 0])
        self.losses.append(loss.item())
        return loss

    def configure_optimizers(self) -> torch.optim.Optimizer:
        return torch.optim.SGD(self.parameters(), lr=0.05)


def fit(config: gm.DataLoaderConfig, folder: str, steps: int, checkpoint: str | None = None) -> list[float]:
    """Trains up to a step, from the beginning or from a checkpoint; the losses."""
    lightning.seed_everything(1, verbose=False)
    words = {"accelerator": "cpu", "enable_progress_bar": False, "enable_model_summary": False, "logger": False}
    trainer = lightning.Trainer(max_steps=steps, default_root_dir=folder, enable_checkpointing=False, **words)
    model = Results()
    with gm.DataLoader(config) as loader:
        # Lightning keeps the state of this feed in its checkpoints, after the last batch that a step took.
        feed = gristmill.torch.DataLoader(loader, length=STEPS)
        trainer.fit(model, feed, ckpt_path=checkpoint, weights_only=False)
        trainer.save_checkpoint(os.path.join(folder, f"{steps}.ckpt"))
    return model.losses


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    tensors = ["planes:packed", "values"]
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1, tensors=tensors)
    with tempfile.TemporaryDirectory() as folder:
        losses = fit(config, folder, STEPS)
        fit(config, folder, 50)
        resumed = fit(config, folder, STEPS, os.path.join(folder, "50.ckpt"))
        print("resumed from step 50, the losses are the same:", resumed == losses[50:])
    first, last = sum(losses[:20]) / 20, sum(losses[-20:]) / 20
    print(f"mean loss of the first 20 steps {first:.4f}, of the last 20 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
