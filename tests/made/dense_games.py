"""Chess games in a pack, and loaders of their dense planes."""

from pathlib import Path
from typing import Any

import gristmill as gm


def packed(folder: Path) -> Any:
    """A pack of 40 games in a folder."""
    gm.generate("chess", folder / "games", games=40, seed=3)
    gm.pack(folder / "games", folder / "pack")
    return gm.open(folder / "pack")


def dense(games: Any, epochs: int = 2) -> gm.DataLoader:
    """A loader of whole batches of 256 positions, policy and values beside the planes."""
    encoder = gm.chess.Tensors(["planes", "probs", "values"])
    return gm.DataLoader(games, encoder=encoder, batch_size=256, epochs=epochs, seed=1, last_batch="drop")
