"""What is said of loading rows of a pack -> the configuration of a loader of rows."""

from __future__ import annotations

import json
import os
from typing import Any

from gristmill.chess import Tensors
from gristmill.packs import kinds
from gristmill.packs.encoders import Steps
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.trajectories import Fields

#: What rows are loaded with where nothing else is said: loaders of streams take no other.
DEFAULTS: dict[str, Any] = {
    "batch_size": 1024,
    "epochs": None,
    "apart": True,
    "shuffle": "rows",
    "sampling": None,
    "last_batch": "keep",
    "seed": None,
    "threads": None,
    "queue_capacity": 4,
}


def encoder_config(source: Rows | Games, encoder: Steps | Tensors | Fields | None) -> dict[str, Any]:
    """What a configuration says of the encoder; it has to be of the kind that fits."""
    if isinstance(source, Games):
        return kinds.encoder_config(source, encoder)
    if not isinstance(encoder, Steps):
        raise TypeError(f"rows need an encoder, such as gristmill.g2048.HardMove(); found {encoder!r}")
    return {"encoder": encoder.to_config()}


def no_source(given: object) -> str:
    """What is said of a source that no loader takes."""
    if isinstance(given, str | os.PathLike):
        advice = "open it by gristmill.open, or make a configuration by gristmill.presets"
    elif hasattr(given, "lengths"):
        advice = "gristmill.PairLoader and StepLoader take demonstrations in files; gristmill.pack makes a pack of them"
    else:
        advice = "gristmill.open gives these, gristmill.presets configurations"
    return f"expected a configuration, or rows or games of a pack, found {type(given).__name__}: {advice}"


def advice(text: str) -> str:
    """What to do for more batches than there are, by a configuration in JSON."""
    config = json.loads(text)
    stages = (stage.get("simple_chunk_extractor") for stage in config.get("stage", ()))
    asked = max((stage.get("epochs", 1) for stage in stages if stage), default=config.get("epochs"))
    told = "all epochs" if asked is None else f"all epochs (epochs={asked})"
    return f"{told} are over: a loop would do nothing; set a larger epochs=, or make a new loader"
