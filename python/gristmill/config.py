"""What a loader is to do, as dataclasses: the names, defaults and rules of the engine's own configuration.

Every class mirrors one table of the TOML form. `None` means "not set: the engine decides". Values are checked
by the engine when a config is read, written or run, never here.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias

from gristmill import _gristmill
from gristmill.errors import ConfigError
from gristmill.options.arguments import named_fields
from gristmill.records.drawing import table

#: A path, as text or as a path object.
Path: TypeAlias = str | os.PathLike[str]

#: Batches `first` to `end - 1` of an uninterrupted run; as text `"18200..18350"`, of several outputs
#: `"train:18200..18350"`.
Skip: TypeAlias = tuple[int, int] | str


@named_fields
@dataclass
class QueueConfig:
    """A stage's output: its name and how many items may wait in it."""

    name: str = ""
    queue_capacity: int = 4
    overflow_behavior: Literal["BLOCK", "DROP_NEW", "KEEP_NEWEST"] = "BLOCK"


@named_fields
@dataclass
class FilePathProviderConfig:
    """Finds the files of a directory, then watches it. `events` names a queue, `"sqs://NAME"` (docs/guide/buckets.md).

    With `watch=True` it also waits where there is no game at all yet; without a value that is an error.
    """

    directory: Path = ""
    watch: bool | None = None
    rescan_seconds: float = 60.0
    events: str | None = None
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ChunkSourceLoaderConfig:
    """Turns files into chunk sources."""

    threads: int | None = None
    frame_format: Literal["AUTO", "V6TrainingData", "V7TrainingData"] = "AUTO"
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ChunkSourceSplitterConfig:
    """Deals chunks to named outputs by a fixed hash of the names that they had as files.

    With `by="file"` the file that a chunk lies in and its number there decide, as before there was a choice. What the
    first two outputs have together is dealt to `folds` folds, if set: the second gets `fold`, the first the others.
    """

    output: list[QueueConfig] = field(default_factory=list)
    weight: list[int] = field(default_factory=list)
    by: Literal["name", "file"] = "name"
    folds: int | None = None
    fold: int | None = None


@named_fields
@dataclass
class PositionSamplingConfig:
    """What a frame weighs: `default_weight`, or by difference focus where one of the first two is set."""

    diff_focus_q_weight: float | None = None
    diff_focus_pol_scale: float | None = None
    diff_focus_alpha: float = 1.0
    diff_focus_beta: float = 0.0
    diff_focus_gamma: float = 1.0
    diff_focus_tau: float = 1.0
    default_weight: float = 1.0


@named_fields
@dataclass
class WindowLawConfig:
    """A window that grows with the number of chunks that came, by the law of `gm.newest_rows` (docs/guide/flow.md).

    Of `n` chunks the window has all up to `least`, then `least * (1 + slope * ((n / least) ** power - 1) / power)`,
    rounded down, and never more than the pool's `chunk_pool_size`. `slope` and `power` are above 0 and at most 1.
    """

    least: int
    slope: float = 0.4
    power: float = 0.75


@named_fields
@dataclass
class RateLimitConfig:
    """How many draws a pool makes for each chunk that comes (docs/guide/flow.md).

    A draw waits while `chunks * samples_per_insert - draws` would fall below `min_diff`, or `min_size_to_sample` chunks
    have not come; with `max_diff` a new file waits while one more chunk would bring that difference above it.
    """

    samples_per_insert: float
    min_size_to_sample: int = 1
    min_diff: float = 0.0
    max_diff: float | None = None


@named_fields
@dataclass
class ShufflingChunkPoolConfig:
    """Keeps the newest chunks and hands them out shuffled, each once per pass.

    With `hanse_sampling_threshold` a drawn chunk is handed out with a chance that grows with its weight or length;
    with `cachehit_output` it keeps positions of the next uses. `window_law` lets the window grow up to
    `chunk_pool_size`, `rate_limit` makes draws wait for new chunks.
    """

    chunk_pool_size: int = 100_000
    window_law: WindowLawConfig | None = None
    rate_limit: RateLimitConfig | None = None
    source_ingestion_threads: int | None = None
    chunk_loading_threads: int | None = None
    key_order: Literal["natural", "bytes"] = "natural"
    hanse_sampling_threshold: int | None = None
    hanse_sampling_gamma: float = 1.0
    hanse_sampling_form: Literal["weight", "length"] = "weight"
    position_sampling: PositionSamplingConfig | None = None
    position_cache_size: int | None = None
    cache_quota: Literal["documented", "compat"] = "documented"
    cache_lookahead: int = 1
    caching_threads: int | None = None
    output: QueueConfig = field(default_factory=QueueConfig)
    cachehit_output: QueueConfig | None = None


@named_fields
@dataclass
class SimpleChunkExtractorConfig:
    """Whole passes over what the first scan found, then the end: for validation."""

    order: Literal["sequential", "shuffled"] = "sequential"
    epochs: int = 1
    key_order: Literal["natural", "bytes"] = "natural"
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ChunkValidatorConfig:
    """Passes on the chess games that break none of its rules; the others give no rows and are counted by rule."""

    threads: int | None = None
    rules: list[str] = field(default_factory=lambda: ["default"])
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ChunkRescorerConfig:
    """Mends chess games: results and plies left by tablebase, policies, blunders, input format, V6 to V7."""

    threads: int | None = None
    syzygy_paths: str = ""
    dist_temp: float = 1.0
    dist_offset: float = 0.0
    dtz_boost: float = 0.0
    new_input_format: int = -1
    deblunder_threshold: float | None = None
    deblunder_width: float | None = None
    gaviota_paths: str | None = None
    st_q_theta: float = 0.8333333
    allow_missing_tables: bool = False
    policy_directory: Path | None = None
    compat: list[str] = field(default_factory=list)
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ChunkUnpackerConfig:
    """Selects positions of each chunk, other ones at each use. Exactly one of rate and count."""

    threads: int | None = None
    position_sampling_rate: float | None = None
    position_count: int | None = None
    position_sampling: PositionSamplingConfig | None = None
    prefetch_count: int | None = None
    output: QueueConfig = field(default_factory=QueueConfig)
    prefetch_output: QueueConfig | None = None


@named_fields
@dataclass
class LaterWeights:
    """Weights of a join from a frame on, which counts the frames that it gave, of all lanes."""

    frame: int
    weight: list[float]


@named_fields
@dataclass
class JoinPositionsConfig:
    """Joins streams of frames: each frame comes from a seeded, weighted choice of input.

    `later` has the weights that follow `weight`, in ascending order of their frames (docs/guide/flow.md).
    """

    weight: list[float] = field(default_factory=list)
    later: list[LaterWeights] = field(default_factory=list)
    exhausted: Literal["drop", "restart", "stop"] = "drop"
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class DedupWindowConfig:
    """Drops a position that was among the last `window` that came, dropped ones included."""

    window: int = 100_000
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class ShufflingFrameSamplerConfig:
    """A reservoir: emits a random frame of those it holds and keeps the new one in its place."""

    threads: int = 1
    reservoir_size_per_thread: int = 1_000_000
    drain: bool = True
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class TensorGeneratorConfig:
    """Encodes frames into batches of tensors."""

    threads: int | None = None
    batch_size: int = 1024
    encoder: str | dict[str, Any] = "chess"
    tensors: list[str] = field(default_factory=lambda: ["planes", "probs", "values"])
    last_batch: Literal["keep", "drop", "pad"] = "keep"
    output: QueueConfig = field(default_factory=QueueConfig)


@named_fields
@dataclass
class StageConfig:
    """One stage: a name, the outputs it reads (`stage` or `stage.output`), and exactly one kind."""

    name: str = ""
    input: list[str] = field(default_factory=list)
    file_path_provider: FilePathProviderConfig | None = None
    chunk_source_loader: ChunkSourceLoaderConfig | None = None
    chunk_source_splitter: ChunkSourceSplitterConfig | None = None
    shuffling_chunk_pool: ShufflingChunkPoolConfig | None = None
    simple_chunk_extractor: SimpleChunkExtractorConfig | None = None
    chunk_validator: ChunkValidatorConfig | None = None
    chunk_rescorer: ChunkRescorerConfig | None = None
    chunk_unpacker: ChunkUnpackerConfig | None = None
    join_positions: JoinPositionsConfig | None = None
    dedup_window: DedupWindowConfig | None = None
    shuffling_frame_sampler: ShufflingFrameSamplerConfig | None = None
    tensor_generator: TensorGeneratorConfig | None = None


@named_fields
@dataclass
class DataLoaderConfig:
    """A whole loader: named stages, the outputs they feed (`alias:stage.output`), and what holds for all of them."""

    stage: list[StageConfig] = field(default_factory=list)
    output: list[str] = field(default_factory=list)
    seed: int | None = None
    threads: int | None = None
    io_threads: int | None = None
    memory: str | int | None = None
    max_chunk_bytes: str | int | None = None
    max_solid_bytes: str | int | None = None
    bad_chunks: Literal["skip", "quarantine", "raise"] = "skip"
    io_errors: Literal["wait", "raise"] = "wait"
    quarantine: Path | None = None
    journal: Path | None = None
    replay: bool = False
    spill: Path | None = None
    spill_limit: str | int | None = None
    lanes: int | None = None
    rank: int | None = None
    world_size: int | None = None
    #: Batches to leave out: `(18200, 18350)`, the end not included, or `"train:18200..18350"` of several outputs.
    skip: Sequence[Skip] | None = None
    ledger: Path | None = None
    index: Path | None = None

    #: The text that this was read from, and whether that was TOML, for the places of faults.
    _text: ClassVar[tuple[str, bool] | None] = None

    def _repr_html_(self) -> str:
        """The stages in order, with what each reads and what it was set to; then what holds for all."""
        rows: list[tuple[str, str, str, str]] = []
        for stage in self.stage:
            kind = next((kind for kind in STAGE_KINDS if getattr(stage, kind) is not None), "")
            values = plain(getattr(stage, kind)) if kind else {}
            values.pop("output", None)
            rows.append((stage.name, kind, ", ".join(stage.input), _listed(values)))
        rest = {name: value for name, value in self.to_dict().items() if name not in ("stage", "output")}
        caption = f"DataLoaderConfig: outputs {', '.join(self.output)}; {_listed(rest) or 'nothing else is set'}"
        return table(caption, ("stage", "kind", "reads", "options"), rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain dictionaries and lists, without what is not set."""
        return plain(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Reads what `to_dict` or a TOML or JSON parser gives; unknown keys raise `ConfigError`."""
        return cls.from_json(to_json(values))

    def to_json(self) -> str:
        """JSON text."""
        return to_json(self.to_dict())

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Reads JSON text; unknown keys raise `ConfigError` with the nearest known one."""
        values = json.loads(_gristmill.check_config(text))
        stages = [_stage(stage) for stage in values.pop("stage")]
        return cls(stage=stages, **values)

    def to_toml(self) -> str:
        """TOML text, as `gristmill feed` reads it."""
        return _gristmill.config_to_toml(self.to_json())

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Reads TOML text; unknown keys come with the nearest known one.

        Raises:
            ConfigError: with line, column, stage and field. A loader made of the config says where in this text
                a fault lies, too.
        """
        config = cls.from_json(_gristmill.config_from_toml(text))
        vars(config)["_text"] = (text, True)
        return config

    def to_textproto(self) -> str:
        """The protobuf text of existing Lc0 trainers: `data_loader { stage { ... } ... }`.

        Raises:
            ConfigError: something that protobuf cannot hold, such as an empty list of tensors.
        """
        return _gristmill.config_to_textproto(self.to_json())

    @classmethod
    def from_textproto(cls, text: str) -> Self:
        """Reads the protobuf text of a whole training configuration, of which only `data_loader` counts, or of the
        loader's message alone. Absent fields mean what they mean to the Lc0 trainer.

        Raises:
            ConfigError: with line, column, stage and field. A loader made of the config says where in this text
                a fault lies, too.
        """
        config = cls.from_json(_gristmill.config_from_textproto(text))
        vars(config)["_text"] = (text, False)
        return config

    def overlaid(self, path: Path) -> Self:
        """The configuration with what a file sets laid over it: TOML where its name ends so, else protobuf text.

        Plain values and lists replace what is here, tables are laid over field by field, stages by their names. A stage
        that is not here is added where the file says what it reads.

        Raises:
            ConfigError: with line, column, stage and field in that file.
            OSError: it cannot be read.
        """
        with open(path, encoding="utf-8") as file:
            text = file.read()
        toml = os.fspath(path).endswith(".toml")
        try:
            return self.from_json(_gristmill.overlay_config(self.to_json(), text, toml))
        except ConfigError as error:
            text = f"{os.fspath(path)}: {error}"
            raise ConfigError(
                text, stage=error.stage, field=error.field, line=error.line, column=error.column
            ) from None

    def to_proto_bytes(self) -> bytes:
        """A serialized `lczero.training.DataLoaderConfig` message. Raises like `to_textproto`."""
        return _gristmill.config_to_proto_bytes(self.to_json())

    @classmethod
    def from_proto_bytes(cls, message: bytes) -> Self:
        """Reads a serialized `lczero.training.DataLoaderConfig` message.

        Raises:
            ConfigError: the bytes are no such message, or have fields that are not known.
        """
        return cls.from_json(_gristmill.config_from_proto_bytes(message))

    def locate(self, error: ConfigError) -> ConfigError:
        """The error with line and column in the text that this config was read from; itself if that was no text."""
        if self._text is None or error.line is not None:
            return error
        line, column = _gristmill.place_in_text(*self._text, error.stage, error.field)
        message = f"line {line}, column {column}: {error}"
        return ConfigError(message, stage=error.stage, field=error.field, line=line, column=column)


#: The config class of each stage kind, in flow order.
STAGE_KINDS: Mapping[str, type[Any]] = {
    "file_path_provider": FilePathProviderConfig,
    "chunk_source_loader": ChunkSourceLoaderConfig,
    "chunk_source_splitter": ChunkSourceSplitterConfig,
    "shuffling_chunk_pool": ShufflingChunkPoolConfig,
    "simple_chunk_extractor": SimpleChunkExtractorConfig,
    "chunk_validator": ChunkValidatorConfig,
    "chunk_rescorer": ChunkRescorerConfig,
    "chunk_unpacker": ChunkUnpackerConfig,
    "join_positions": JoinPositionsConfig,
    "dedup_window": DedupWindowConfig,
    "shuffling_frame_sampler": ShufflingFrameSamplerConfig,
    "tensor_generator": TensorGeneratorConfig,
}

#: The config class of each table within a stage kind.
PARTS: Mapping[str, type[Any]] = {
    "output": QueueConfig,
    "cachehit_output": QueueConfig,
    "prefetch_output": QueueConfig,
    "position_sampling": PositionSamplingConfig,
    "window_law": WindowLawConfig,
    "rate_limit": RateLimitConfig,
    "later": LaterWeights,
}


def plain(config: Any) -> dict[str, Any]:
    """The fields of a config as plain dictionaries and lists, without what is not set."""
    return dataclasses.asdict(config, dict_factory=_set_items)


def _listed(values: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in values.items())


def to_json(values: Mapping[str, Any] | list[Mapping[str, Any]]) -> str:
    """JSON text of plain values, NumPy scalars and paths."""
    try:
        return json.dumps(values, default=_plain, allow_nan=False)
    except ValueError as error:
        raise ConfigError(f"a number is infinite or not a number: {error}") from None


def _plain(value: object) -> object:
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, Mapping):
        return dict(value)
    item = getattr(value, "item", None)
    if callable(item):
        return item()
    raise ConfigError(f"{value!r} ({type(value).__name__}) cannot stand in a configuration")


def _set_items(items: list[tuple[str, Any]]) -> dict[str, Any]:
    return {name: value for name, value in items if value is not None}


def _stage(values: dict[str, Any]) -> StageConfig:
    kinds = {name: _kind(kind, values[name]) for name, kind in STAGE_KINDS.items() if name in values}
    return StageConfig(**{**values, **kinds})


def _kind(kind: type[Any], values: dict[str, Any]) -> Any:
    return kind(**{name: _part(name, value) for name, value in values.items()})


def _part(name: str, value: Any) -> Any:
    part = PARTS.get(name)
    if part is None:
        return value
    return [part(**one) for one in value] if isinstance(value, list) else part(**value)
