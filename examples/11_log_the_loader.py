"""Log what the loader does beside the loss: in TensorBoard, in Weights & Biases, or as lines of JSON.

python examples/11_log_the_loader.py [lines | tensorboard | wandb] [games/]
"""

import json
import os
import sys
from collections.abc import Callable

import numpy as np

import gristmill as gm

STEPS, EVERY = 100, 20

Log = Callable[[dict[str, float], int], object]


def to_lines() -> Log:
    file = open("scalars.jsonl", "w", encoding="utf-8")  # noqa: SIM115
    return lambda scalars, step: print(json.dumps({"step": step, **scalars}), file=file, flush=True)


def to_tensorboard() -> Log:
    # torch.utils.tensorboard.SummaryWriter has the same call.
    from tensorboard.summary import Writer

    writer = Writer("runs")

    def log(scalars: dict[str, float], step: int) -> None:
        for name, value in scalars.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    return log


def to_wandb() -> Log:
    import wandb

    run = wandb.init(project="gristmill")
    return lambda scalars, step: run.log(scalars, step=step)


def main(to: str = "lines", directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    log = {"lines": to_lines, "tensorboard": to_tensorboard, "wandb": to_wandb}[to]()
    weights, steps, scalars = np.zeros(64), 0, {}
    with gm.DataLoader(gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1)) as loader:
        for step in range(STEPS):
            batch = loader.get_next()
            own, won = np.asarray(batch["planes"])[:, 0].reshape(-1, 64), np.asarray(batch["values"])[:, 0, 0]
            wrong = np.tanh(own @ weights) - won
            weights -= 0.01 * own.T @ wrong / len(own)
            if step % EVERY == 0:
                scalars = {f"loader/{name}": float(value) for name, value in loader.metrics(flat=True).items()}
                log({"loss": float(np.square(wrong).mean())} | scalars, step)
                steps += 1
    print(f"{len(scalars)} numbers of the loader beside the loss, at {steps} steps")


if __name__ == "__main__":
    main(*sys.argv[1:])
