"""What batches are made of, and the options of it -> the engine that feeds them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from gristmill import _gristmill
from gristmill.chess import Tensors
from gristmill.config import DataLoaderConfig, to_json
from gristmill.errors import ConfigError
from gristmill.loaders.ranks import find_rank
from gristmill.loaders.sampling import Blocks, Hanse
from gristmill.loaders.steps import are_arrays, of_steps
from gristmill.options.weights import named, scheduled
from gristmill.packs import kinds
from gristmill.packs.encoders import Steps
from gristmill.packs.games import Games
from gristmill.packs.rows import Rows
from gristmill.packs.trajectories import Fields
from gristmill.pairs import Constructor, PairSet

#: Options that every loader has.
_OF_ALL = ("rank", "world_size", "skip", "ledger")
#: Options of several sources.
_OF_SEVERAL = ("weights", "exhausted", "nominal_length")
#: Options of several data sets, and of what stands together in a row of them.
_OF_STEPS = ("pairs", "weights", "exhausted", "nominal_length", "pad", "prepare")


class Fed(NamedTuple):
    """What feeds a loader."""

    engine: _gristmill.Loader
    #: Which of how many ranks it feeds.
    rank: int
    world_size: int
    #: Of rows, which they are, and how many of how many.
    of: str | None = None
    #: Whether its rows are steps or pairs of data sets, which no encoder makes.
    of_steps: bool = False


def feed(source: object, options: Mapping[str, Any]) -> Fed:
    """The engine over a source, with the options that were given; what was not is as the engine has it.

    Raises:
        TypeError: a source that no loader takes, or an option of another kind of loader.
        ConfigError: options that cannot be, or ranks that contradict each other.
        EncoderError: the rows do not have what the encoder needs.
    """
    given = {name: value for name, value in options.items() if value is not None}
    sources, given = _several(source, given)
    kinds = {_kind(one, given) for one in sources}
    if "steps" in kinds and all(isinstance(one, PairSet) or _are_steps(one) for one in sources):
        kinds = {"steps"}
    if kinds == {"steps"}:
        engine, rank, world_size = of_steps(sources, given)
        return Fed(engine, rank, world_size, ", ".join(map(_shown, sources)), of_steps=True)
    if len(sources) > 1 and kinds != {"rows"}:
        raise TypeError(_no_mixture(kinds))
    mixed = _OF_SEVERAL if len(sources) > 1 else ()
    if other := next((name for name in _OF_STEPS if name in given and name not in mixed), None):
        raise TypeError(_only_of_steps(other, several=bool(mixed)))
    if kinds == {"rows"}:
        return _of_rows(sources, given)
    return _of_stream(sources[0], given)


def _several(source: object, given: dict[str, Any]) -> tuple[list[Any], dict[str, Any]]:
    """The sources one by one, with their weights in the same order."""
    if isinstance(source, Mapping) and source and all(map(_is_source, source.values())):
        if "weights" in given:
            given = {**given, "weights": named(given["weights"], list(source))}
        return list(source.values()), given
    if isinstance(source, list | tuple):
        if not source:
            raise ConfigError("no data set; expected at least one", field="source")
        return list(source), given
    return [source], given


def _is_source(value: object) -> bool:
    return isinstance(value, Games | Rows | PairSet | DataLoaderConfig) or _are_steps(value)


def _are_steps(value: object) -> bool:
    if isinstance(value, Mapping):
        return are_arrays(value)
    return not isinstance(value, Rows) and hasattr(value, "lengths") and hasattr(value, "column")


def _kind(source: object, given: Mapping[str, Any]) -> str:
    """Which engine takes a source: of a pack of trajectories the one of rows, unless pairs are made of them."""
    if isinstance(source, PairSet):
        return "steps"
    if isinstance(source, Games | Rows):
        of_steps = (name for name in _OF_STEPS if name not in _OF_SEVERAL)
        paired = isinstance(given.get("encoder"), Constructor) or any(name in given for name in of_steps)
        return "steps" if paired and _are_steps(source) else "rows"
    if _are_steps(source):
        return "steps"
    if isinstance(source, DataLoaderConfig | Mapping):
        return "stream"
    raise TypeError(_no_source(source))


def _shown(source: object) -> str:
    return f"{len(source)} arrays" if isinstance(source, Mapping) else repr(source)


def _of_rows(sources: list[Games | Rows], given: dict[str, Any]) -> Fed:
    rank, world_size = find_rank(given.pop("rank", None), given.pop("world_size", None))
    encoder = given.pop("encoder", None)
    configs = [_encoder_config(source, encoder) for source in sources]
    if other := next((i for i, config in enumerate(configs) if config != configs[0]), None):
        kinds = f"{sources[0]!r} and {sources[other]!r}"
        raise TypeError(f"{kinds} take other encoders; rows of a batch are made by one")
    mix = {"length" if name == "nominal_length" else name: given.pop(name) for name in _OF_SEVERAL if name in given}
    if "weights" in mix:
        mix["weights"], later = scheduled(mix["weights"], len(sources))
        mix["later"] = [{"batch": batch, "weights": own} for batch, own in later]
    shuffle, sampling, view = (given.pop(name, None) for name in ("shuffle", "sampling", "view"))
    values = {
        **configs[0],
        **({} if not mix else {"mix": mix}),
        # Passes are as many as there are loops.
        "epochs": given.pop("epochs", None),
        "apart": not given.pop("joined", False),
        **_order(shuffle, sampling),
        **({} if view is None else {"view": view.to_config()}),
        **given,
        "rank": rank,
        "world_size": world_size,
    }
    text, shown = to_json(values), ", ".join(map(repr, sources))
    if len(sources) == 1:
        return Fed(_gristmill.Loader.of_rows(sources[0]._compiled, text), rank, world_size, shown)
    several = _gristmill.Loader.of_several([source._compiled for source in sources], text)
    return Fed(several, rank, world_size, shown)


def _order(shuffle: bool | Blocks | None, sampling: Hanse | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if shuffle is not None:
        found["shuffle"] = shuffle.to_config() if isinstance(shuffle, Blocks) else "rows" if shuffle else "off"
    if sampling is not None:
        found["sampling"] = sampling.to_config()
    return found


def _of_stream(source: DataLoaderConfig | Mapping[str, Any], given: dict[str, Any]) -> Fed:
    if other := next((name for name in given if name not in _OF_ALL), None):
        raise TypeError(f"`{other}` belongs to loaders of rows; set it in the configuration instead")
    values = source.to_dict() if isinstance(source, DataLoaderConfig) else source
    rank, world_size = find_rank(given.pop("rank", None), given.pop("world_size", None), values)
    # A stream without lanes has no ranks.
    ranks = {} if world_size == 1 else {"rank": rank, "world_size": world_size}
    if "skip" in given:
        given["skip"] = [*(values.get("skip") or ()), *given["skip"]]
    try:
        return Fed(_gristmill.Loader(to_json({**values, **ranks, **given})), rank, world_size)
    except ConfigError as error:
        if isinstance(source, DataLoaderConfig):
            raise source.locate(error) from None
        raise


def _encoder_config(source: Rows | Games, encoder: Steps | Tensors | Fields | None) -> dict[str, Any]:
    """What a configuration says of the encoder; it has to be of the kind that fits."""
    if isinstance(source, Games):
        return kinds.encoder_config(source, encoder)
    if not isinstance(encoder, Steps):
        raise TypeError(f"rows need an encoder, such as gristmill.g2048.HardMove(); found {encoder!r}")
    return {"encoder": encoder.to_config()}


def _no_source(given: object) -> str:
    """What is said of a source that no loader takes."""
    if isinstance(given, str | os.PathLike):
        advice = "open it by gristmill.open, or make a configuration by gristmill.presets"
    else:
        advice = "gristmill.open gives these, gristmill.presets configurations"
    expected = "a configuration, rows or games of a pack, demonstrations, pairs over them, or several of these"
    return f"expected {expected}, found {type(given).__name__}: {advice}"


def _only_of_steps(option: str, *, several: bool) -> str:
    """What is said of an option of demonstrations for rows of packs."""
    if option in _OF_SEVERAL and not several:
        return f"`{option}` belongs to several sources: packs, or demonstrations; this is one pack"
    return f"`{option}` belongs to demonstrations: trajectories, pairs over them, or several of these"


def _no_mixture(kinds: set[str]) -> str:
    """What is said of several sources of which one loader feeds not all."""
    if "stream" in kinds:
        advice = "a stream draws from several folders by its configuration, each with a weight of its own"
    else:
        advice = "packs are mixed with packs, demonstrations with demonstrations"
    return f"these cannot be fed together: {advice}"


def advice(text: str) -> str:
    """What to do for more batches than there are, by a configuration in JSON."""
    config = json.loads(text)
    stages = (stage.get("simple_chunk_extractor") for stage in config.get("stage", ()))
    asked = max((stage.get("epochs", 1) for stage in stages if stage), default=config.get("epochs"))
    told = "all epochs" if asked is None else f"all epochs (epochs={asked})"
    return f"{told} are over: a loop would do nothing; set a larger epochs=, or make a new loader"
