"""Fit a value head with PyTorch: tensors over the loader's own memory, and a checkpoint that resumes to the bit.

pip install gristmill[torch]
python examples/09_train_with_pytorch.py [games/]
"""

import os
import sys

import torch

import gristmill as gm
import gristmill.torch

STEPS = 300


def main(directory: str = "example-games") -> None:
    if not os.path.isdir(directory):
        gm.generate("chess", directory, games=100, seed=1)
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(12 * 64, 1), torch.nn.Tanh())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    config = gm.presets.lc0(directory, pool=1000, reservoir=4096, batch_size=256, seed=1)
    losses = []
    with gm.DataLoader(config) as loader:
        for number, batch in zip(range(STEPS), gristmill.torch.batches(loader), strict=False):
            predicted = model(batch["planes"][:, :12]).squeeze(1)
            loss = torch.nn.functional.mse_loss(predicted, batch["values"][:, 0, 0])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number % 20 == 0:
                print(number, losses[-1])
        checkpoint = {"model": model.state_dict(), "loader": loader.state_dict()}
    first, last = sum(losses[:20]) / 20, sum(losses[-20:]) / 20
    print(f"mean loss of the first 20 steps {first:.4f}, of the last 20 {last:.4f}")

    resumed = gm.DataLoader(config)
    resumed.load_state_dict(checkpoint["loader"])
    with resumed:
        print("resumes with batch", resumed.get_next().number)


if __name__ == "__main__":
    main(*sys.argv[1:])
