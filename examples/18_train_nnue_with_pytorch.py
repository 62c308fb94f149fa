"""Fit a small NNUE with PyTorch: sparse features of both sides, one EmbeddingBag, a layer for each bucket of men.

pip install gristmill[torch]
python examples/18_train_nnue_with_pytorch.py [chess-pack/]
"""

import os
import sys
import tempfile

import torch

import gristmill as gm
import gristmill.torch

#: Numbers that the first layer makes of each side's features, and layers after it: one for each bucket of men.
WIDTH, BUCKETS = 64, 8

VIEWS = ("halfkav2_hm_stm", "halfkav2_hm_nstm")


class Network(torch.nn.Module):
    """The expected result of the side to move."""

    def __init__(self) -> None:
        super().__init__()
        self.features = torch.nn.EmbeddingBag(gm.chess.FEATURES[VIEWS[0]], WIDTH, mode="sum")
        torch.nn.init.normal_(self.features.weight, std=0.1)
        self.bias = torch.nn.Parameter(torch.full((WIDTH,), 0.5))
        self.stacks = torch.nn.Linear(2 * WIDTH, BUCKETS)

    def forward(self, batch: dict[str, torch.Tensor]) -> torch.Tensor:
        sides = [self.features(*gristmill.torch.sparse(batch, view)) + self.bias for view in VIEWS]
        results = self.stacks(torch.cat(sides, 1).clamp(0, 1))
        return torch.sigmoid(results.gather(1, batch["men_bucket"][:, None].long())[:, 0])


def main(pack: str = "example-nnue") -> None:
    if not os.path.isdir(pack):
        with tempfile.TemporaryDirectory() as games:
            gm.generate("chess", games, games=200, seed=1)
            gm.pack(games, pack)
    torch.manual_seed(1)
    network = Network()
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    encoder = gm.chess.Tensors([*VIEWS, "men_bucket", "winner"])
    losses = []
    with gm.DataLoader(gm.open(pack), encoder=encoder, batch_size=256, epochs=4, seed=1) as loader:
        for number, batch in enumerate(gristmill.torch.batches(loader)):
            expected = batch["winner"][:, 0] + batch["winner"][:, 1] / 2
            loss = torch.nn.functional.mse_loss(network(batch), expected)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
            if number % 20 == 0:
                print(number, losses[-1])
    first, last = sum(losses[:10]) / 10, sum(losses[-10:]) / 10
    print(f"mean loss of the first 10 steps {first:.4f}, of the last 10 {last:.4f}")


if __name__ == "__main__":
    main(*sys.argv[1:])
