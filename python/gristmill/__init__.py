"""Game records in, shuffled training batches out: fast, reproducible, resumable.

    import gristmill as gm

    loader = gm.DataLoader(gm.presets.lc0("games/", pool=50_000, batch_size=1024, seed=1))
    for batch in loader:
        step(batch["planes"], batch["probs"], batch["values"])

No machine-learning framework is imported here; arrays go to JAX and PyTorch through DLPack.

`dir(gristmill)` has what programs begin with. Exceptions, options of stages and what calls return are attributes, too;
their homes are `gristmill.errors`, `gristmill.config`, `gristmill.packs`, `gristmill.loaders` and `gristmill.jobs`.
"""

from importlib import import_module as _import_module
from warnings import warn as _warn

from gristmill import chess, config, demos, envs, errors, g2048, pairs, presets, safe_pickle, views
from gristmill.config import (
    ChunkRescorerConfig,
    ChunkSourceLoaderConfig,
    ChunkSourceSplitterConfig,
    ChunkUnpackerConfig,
    ChunkValidatorConfig,
    DataLoaderConfig,
    DedupWindowConfig,
    FilePathProviderConfig,
    JoinPositionsConfig,
    LaterWeights,
    PositionSamplingConfig,
    QueueConfig,
    RateLimitConfig,
    ShufflingChunkPoolConfig,
    ShufflingFrameSamplerConfig,
    SimpleChunkExtractorConfig,
    StageConfig,
    TensorGeneratorConfig,
    WindowLawConfig,
)
from gristmill.demos import Demos, PairLoader, StepLoader, load_dataset_dict, load_wds_datasets
from gristmill.errors import (
    AliasError,
    ConfigError,
    EncoderError,
    EndOfStream,
    ForkedError,
    FormatError,
    GristmillError,
    MissingPackageError,
    SharesError,
    StageError,
    StateError,
    StoppedError,
)
from gristmill.jobs.converting import Converted, ConvertedDemos, ConvertedGames, ToldGames, convert
from gristmill.jobs.examining import Diagnosis, doctor
from gristmill.jobs.generating import Made, generate
from gristmill.jobs.looking import Verification, stats, verify
from gristmill.jobs.packing import (
    Checksummed,
    Merged,
    Packed,
    Recovered,
    Recovery,
    Remark,
    Skipped,
    Valued,
    checksum,
    merge,
    pack,
    recover,
    value_rows,
)
from gristmill.jobs.part import Share
from gristmill.jobs.rewriting import filter, rescore, split  # noqa: A004  (as the command is called)
from gristmill.jobs.sharing import Shares, ShareStatus, commit, shares
from gristmill.jobs.viewing import View, view
from gristmill.loaders.batch import Batch
from gristmill.loaders.certificate import Certificate
from gristmill.loaders.loader import DataLoader
from gristmill.loaders.outputs import ChunkAnchor, Output, TensorSpec
from gristmill.loaders.resuming import resume
from gristmill.loaders.sampling import Blocks, Hanse
from gristmill.loaders.states import OldestNeeded, Vanished, merge_states
from gristmill.packs.games import Games
from gristmill.packs.packed import Duplicate, Duplicates, LineageStep, Mark
from gristmill.packs.rows import Rows
from gristmill.packs.selection import Split, ThreeWaySplit
from gristmill.packs.source import Source, open  # noqa: A004  (gristmill.open is the public name)
from gristmill.packs.trajectories import Fields, Trajectories
from gristmill.packs.window import newest_rows
from gristmill.records.arrays import Array
from gristmill.records.layout import Layout
from gristmill.records.writing import Writer, symmetric

#: The version of the package; `unknown` where it is read from its folder, without an installation.
__version__: str

__all__ = [
    "AliasError",
    "Array",
    "Batch",
    "Blocks",
    "Certificate",
    "Checksummed",
    "ChunkAnchor",
    "ChunkRescorerConfig",
    "ChunkSourceLoaderConfig",
    "ChunkSourceSplitterConfig",
    "ChunkUnpackerConfig",
    "ChunkValidatorConfig",
    "ConfigError",
    "Converted",
    "ConvertedDemos",
    "ConvertedGames",
    "DataLoader",
    "DataLoaderConfig",
    "DedupWindowConfig",
    "Demos",
    "Diagnosis",
    "Duplicate",
    "Duplicates",
    "EncoderError",
    "EndOfStream",
    "Fields",
    "FilePathProviderConfig",
    "ForkedError",
    "FormatError",
    "Games",
    "GristmillError",
    "Hanse",
    "JoinPositionsConfig",
    "LaterWeights",
    "Layout",
    "LineageStep",
    "Made",
    "Mark",
    "Merged",
    "MissingPackageError",
    "OldestNeeded",
    "Output",
    "Packed",
    "PairLoader",
    "PositionSamplingConfig",
    "QueueConfig",
    "RateLimitConfig",
    "Recovered",
    "Recovery",
    "Remark",
    "Rows",
    "Share",
    "ShareStatus",
    "Shares",
    "SharesError",
    "ShufflingChunkPoolConfig",
    "ShufflingFrameSamplerConfig",
    "SimpleChunkExtractorConfig",
    "Skipped",
    "Source",
    "Split",
    "StageConfig",
    "StageError",
    "StateError",
    "StepLoader",
    "StoppedError",
    "TensorGeneratorConfig",
    "TensorSpec",
    "ThreeWaySplit",
    "ToldGames",
    "Trajectories",
    "Valued",
    "Vanished",
    "Verification",
    "View",
    "WindowLawConfig",
    "Writer",
    "__version__",
    "checksum",
    "chess",
    "commit",
    "config",
    "convert",
    "demos",
    "doctor",
    "envs",
    "errors",
    "filter",
    "g2048",
    "generate",
    "load_dataset_dict",
    "load_wds_datasets",
    "merge",
    "merge_states",
    "newest_rows",
    "open",
    "pack",
    "pairs",
    "presets",
    "recover",
    "rescore",
    "resume",
    "safe_pickle",
    "shares",
    "split",
    "stats",
    "symmetric",
    "value_rows",
    "verify",
    "view",
    "views",
]

#: Modules that are imported at their first use.
_LATE = ("compat", "jax", "ray", "torch")

#: What programs begin with.
_BEGIN = [
    "Array",
    "Batch",
    "Blocks",
    "DataLoader",
    "DataLoaderConfig",
    "Demos",
    "EndOfStream",
    "Fields",
    "Games",
    "GristmillError",
    "Hanse",
    "Layout",
    "PairLoader",
    "Rows",
    "Source",
    "StepLoader",
    "Trajectories",
    "checksum",
    "convert",
    "generate",
    "load_dataset_dict",
    "load_wds_datasets",
    "merge",
    "merge_states",
    "open",
    "pack",
    "recover",
    "resume",
    "stats",
    "value_rows",
    "verify",
    "view",
    "chess",
    "config",
    "demos",
    "envs",
    "errors",
    "g2048",
    "pairs",
    "presets",
    "safe_pickle",
    "views",
]


def __dir__() -> list[str]:
    return sorted([*_BEGIN, *_LATE, "__doc__", "__version__"])


def __getattr__(name: str) -> object:
    if name == "__version__":
        # What reads the metadata of packages takes longer to import than all of this.
        metadata = _import_module("importlib.metadata")
        try:
            globals()[name] = metadata.version("gristmill")
        except metadata.PackageNotFoundError:
            globals()[name] = "unknown"
        return globals()[name]
    if name == "Step":
        _warn("`Step` is called `LineageStep` now", DeprecationWarning, stacklevel=2)
        return LineageStep
    if name not in _LATE:
        raise AttributeError(f"module 'gristmill' has no attribute {name!r}")
    try:
        return _import_module(f"gristmill.{name}")
    except ImportError as error:
        # For `hasattr` and for what looks at every name.
        raise AttributeError(f"gristmill.{name} needs a package that is not installed: {error}") from error
