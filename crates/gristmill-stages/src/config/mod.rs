//! What a loader is to do, as data: the same names in TOML, JSON, Python dataclasses and lc0 text-protobuf.
//! Read and checked here, turned into a running river by `pipeline`; nothing here opens a file of games.

mod chunks;
mod g2048;
mod index;
mod json;
mod kinds;
mod overlay;
pub mod parse;
pub mod proto;
mod rescorer;
mod sampling;
mod size;
mod skip;
mod stages;
mod text;
mod tree;
mod view;

pub use chunks::{
    CacheQuota, ChunkUnpackerConfig, ExtractOrder, HanseForm, KeyOrder, PositionSamplingConfig,
    ShufflingChunkPoolConfig, SimpleChunkExtractorConfig,
};
pub use g2048::{
    Augmentation, BoardForm, DrawnOn, EdgeForm, G2048EncoderConfig, G2048Target, ValueOf, ValueTarget, WholeNumbers,
};
pub use index::{IndexConfig, MixConfig, Reweighted, Shuffle};
pub use kinds::{Item, StageConfig, StageKind};
pub use rescorer::ChunkRescorerConfig;
pub use sampling::{HanseSamplingConfig, PositionChoice};
pub use size::MemorySize;
pub use skip::Skip;
pub use stages::{
    ChunkSourceLoaderConfig, ChunkSourceSplitterConfig, EncoderConfig, FilePathProviderConfig, FrameFormat, LastBatch,
    SplitBy, TensorGeneratorConfig,
};
pub use text::TextForm;
pub use view::{Longer, Pad, View};

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::options::options;
pub use crate::stage::join::{Exhausted, JoinPositionsConfig, LaterWeights};
pub use crate::stage::pool::{RateLimitConfig, WindowLawConfig};
pub use crate::stage::sample::ShufflingFrameSamplerConfig;
pub use crate::stage::validate::ChunkValidatorConfig;
pub use crate::stage::{Overflow, QueueConfig};

/// What happens when a file cannot be read now (no permission, a folder away, no descriptor left, a fault of the disk), and
/// still not after some tries. Never changes a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IoErrors {
    /// The stream waits, says for what, and tries on until it can be read (the default).
    #[default]
    Wait,
    /// The stream ends with the error.
    Raise,
}

/// What happens when a chunk is bad (truncated, corrupt, vanished, wrong version, ...).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadChunks {
    /// Count it and continue (the default).
    #[default]
    Skip,
    /// Count it, append it to the `quarantine` report, and continue.
    Quarantine,
    /// Raise the error from `get_next`, at the same place of the stream in every run.
    Raise,
}

options! {
    /// A whole loader: named stages, the outputs they feed, and what holds for all of them.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct DataLoaderConfig {
        /// The stages; one may refer to another that is listed later.
        batches stage: Vec<StageConfig>,
        /// The outputs: `alias:stage.output`, alias and output optional.
        batches output: Vec<String>,
        /// Root of every random draw; drawn once, logged and saved when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart seed: Option<u64>,
        /// Worker threads; the number of cores when absent. Never changes a batch.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// Threads that only read files; 2 when absent. Never changes a batch.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed io_threads: Option<usize>,
        /// Most memory for reservoirs, windows and batches, such as `"2GiB"`.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed memory: Option<MemorySize>,
        /// Maximum number of bytes one decoded chunk may take; a larger one is a bad chunk. 8 MiB when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches max_chunk_bytes: Option<MemorySize>,
        /// Maximum number of bytes, stored and unpacked, of a file that is read whole; `memory` counts ten times as much. Such files
        /// are refused when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches max_solid_bytes: Option<MemorySize>,
        /// What happens when a chunk is bad.
        speed bad_chunks: BadChunks,
        /// What happens when a file cannot be read. Never changes a batch.
        speed io_errors: IoErrors,
        /// JSON-lines report of quarantined chunks (with `bad_chunks = "quarantine"`).
        #[serde(skip_serializing_if = "Option::is_none")]
        place quarantine: Option<PathBuf>,
        /// Write-ahead log of arrivals, as JSON lines.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart journal: Option<PathBuf>,
        /// Take the arrivals from the journal instead of from the directories.
        apart replay: bool,
        /// Folder, best on the file system of the games, where files are held that a state may need, for when they go away.
        #[serde(skip_serializing_if = "Option::is_none")]
        place spill: Option<PathBuf>,
        /// Maximum number of bytes that each rank holds there; 16 GiB when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed spill_limit: Option<MemorySize>,
        /// Lanes that the chunks are dealt to, each a small loader of its own; 1 when absent. As many ranks as divide it can
        /// share the stream, and a run can resume with another number of them.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches lanes: Option<u32>,
        /// Which of the ranks this process is, from 0; 0 when absent. Never changes a batch of all ranks together.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart rank: Option<u32>,
        /// How many ranks share each batch; divides the lanes and every `batch_size`. 1 when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart world_size: Option<u32>,
        /// Batches to leave out, such as `18200..18350` or, of several outputs, `train:18200..18350`. All others keep their
        /// numbers and bytes.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        apart skip: Vec<Skip>,
        /// Ledger of what was delivered, which `gristmill verify-run` reads; several ranks write one each beside it.
        #[serde(skip_serializing_if = "Option::is_none")]
        apart ledger: Option<PathBuf>,
        /// Folder of the side index; the user's cache folder when absent, `"off"` for none.
        #[serde(skip_serializing_if = "Option::is_none")]
        place index: Option<PathBuf>,
    }
}
