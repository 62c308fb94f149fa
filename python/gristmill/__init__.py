"""Game records in, shuffled training batches out: fast, reproducible, resumable.

    import gristmill as gm

    loader = gm.DataLoader(gm.presets.lc0("games/", pool=50_000, batch_size=1024, seed=1))
    for batch in loader:
        step(batch["planes"], batch["probs"], batch["values"])

No machine-learning framework is imported here; arrays go to JAX and PyTorch through DLPack.
"""

from importlib.metadata import PackageNotFoundError as _NotFound
from importlib.metadata import version as _version

from gristmill import chess, config, demos, envs, errors, g2048, pairs, presets, safe_pickle, views
from gristmill.arrays import Array
from gristmill.batch import Batch
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
    PositionSamplingConfig,
    QueueConfig,
    ShufflingChunkPoolConfig,
    ShufflingFrameSamplerConfig,
    SimpleChunkExtractorConfig,
    StageConfig,
    TensorGeneratorConfig,
)
from gristmill.converting import Converted, ConvertedDemos, ConvertedGames, convert
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
    StageError,
    StateError,
    StoppedError,
)
from gristmill.games import Games
from gristmill.generating import Made, generate
from gristmill.layout import Layout
from gristmill.loader import DataLoader
from gristmill.looking import Verification, stats, verify
from gristmill.outputs import ChunkAnchor, Output, TensorSpec
from gristmill.packed import Duplicate, Duplicates, Mark, Step
from gristmill.packing import (
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
from gristmill.rows import Rows
from gristmill.sampling import Blocks, Hanse
from gristmill.selection import Split, ThreeWaySplit
from gristmill.source import Source, open  # noqa: A004  (gristmill.open is the public name)
from gristmill.states import OldestNeeded, Vanished, merge_states
from gristmill.trajectories import Fields, Trajectories

try:
    #: The version of the package.
    __version__ = _version("gristmill")
except _NotFound:
    # Read from its folder, without an installation.
    __version__ = "unknown"

__all__ = [
    "AliasError",
    "Array",
    "Batch",
    "Blocks",
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
    "Layout",
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
    "Recovered",
    "Recovery",
    "Remark",
    "Rows",
    "ShufflingChunkPoolConfig",
    "ShufflingFrameSamplerConfig",
    "SimpleChunkExtractorConfig",
    "Skipped",
    "Source",
    "Split",
    "StageConfig",
    "StageError",
    "StateError",
    "Step",
    "StepLoader",
    "StoppedError",
    "TensorGeneratorConfig",
    "TensorSpec",
    "ThreeWaySplit",
    "Trajectories",
    "Valued",
    "Vanished",
    "Verification",
    "__version__",
    "checksum",
    "chess",
    "config",
    "convert",
    "demos",
    "envs",
    "errors",
    "g2048",
    "generate",
    "load_dataset_dict",
    "load_wds_datasets",
    "merge",
    "merge_states",
    "open",
    "pack",
    "pairs",
    "presets",
    "recover",
    "safe_pickle",
    "stats",
    "value_rows",
    "verify",
    "views",
]
