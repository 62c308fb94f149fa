//! One struct per stage kind, with the field names of the lc0 trainer where it has them (spec lc0 §1).
//! Pure data: defaults and shape only; what fits together is judged by `pipeline`.

use std::path::PathBuf;

use gristmill_format::g2048::value::ValueField;
use serde::{Deserialize, Serialize};

use super::chunks::{ChunkUnpackerConfig, ShufflingChunkPoolConfig, SimpleChunkExtractorConfig};
use super::g2048::G2048EncoderConfig;
use super::rescorer::ChunkRescorerConfig;

/// What a full queue does with a new item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Overflow {
    /// Wait for room (the default).
    #[default]
    Block,
    /// Discard the new item, and count it.
    DropNew,
    /// Discard the oldest item, and count it.
    KeepNewest,
}

/// A stage's output: its name and how many items may wait in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct QueueConfig {
    /// Name of the output; empty for the only one.
    pub name: String,
    /// Items that may wait.
    pub queue_capacity: usize,
    /// What happens when it is full.
    pub overflow_behavior: Overflow,
}

impl Default for QueueConfig {
    fn default() -> Self {
        QueueConfig { name: String::new(), queue_capacity: 4, overflow_behavior: Overflow::Block }
    }
}

/// Finds the files of a directory, then watches it (§1.1).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct FilePathProviderConfig {
    /// The directory, scanned recursively.
    pub directory: PathBuf,
    /// Whether files that appear later are taken too. Absent: they are, but a directory without any game is an error;
    /// `true` waits for the first game.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub watch: Option<bool>,
    /// Seconds between full rescans, for file systems without change notices.
    pub rescan_seconds: f64,
    /// Where the files go.
    pub output: QueueConfig,
}

impl Default for FilePathProviderConfig {
    fn default() -> Self {
        FilePathProviderConfig {
            directory: PathBuf::new(),
            watch: None,
            rescan_seconds: 60.0,
            output: QueueConfig::default(),
        }
    }
}

/// The record version a loader expects; `AUTO` reads what the records say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum FrameFormat {
    /// Whatever the records say (the default).
    #[default]
    #[serde(rename = "AUTO")]
    Auto,
    /// Version 6 records only.
    V6TrainingData,
    /// Version 7 records only.
    V7TrainingData,
}

/// Turns files into chunk sources (§1.2).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChunkSourceLoaderConfig {
    /// Maximum number of threads that index containers at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Record version to insist on.
    pub frame_format: FrameFormat,
    /// Where the sources go.
    pub output: QueueConfig,
}

/// What a split goes by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SplitBy {
    /// The name that a game had as a file, wherever it lies now (the default).
    #[default]
    Name,
    /// The name of the file that it lies in and its number there, as before there was a choice.
    File,
}

impl SplitBy {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            SplitBy::Name => "name",
            SplitBy::File => "file",
        }
    }
}

/// Deals chunks to named outputs by a fixed hash of their names (§1.3).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChunkSourceSplitterConfig {
    /// The outputs, parallel to `weight`.
    pub output: Vec<QueueConfig>,
    /// Their shares.
    pub weight: Vec<u64>,
    /// What decides the output of a chunk.
    pub by: SplitBy,
    /// Folds that what the first two outputs have together is dealt to: the second gets `fold`, the first the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub folds: Option<u64>,
    /// Which fold, from 0; goes with `folds`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fold: Option<u64>,
}

/// Passes on the chess games that break none of its rules; the others give no rows and are counted by rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ChunkValidatorConfig {
    /// Maximum number of chunks being judged at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// The rules, by name; `default` and `all` stand for several, `-name` takes one out again.
    pub rules: Vec<String>,
    /// Where the chunks go.
    pub output: QueueConfig,
}

impl Default for ChunkValidatorConfig {
    fn default() -> Self {
        ChunkValidatorConfig { threads: None, rules: vec!["default".to_owned()], output: QueueConfig::default() }
    }
}

/// What a join does when one of its inputs has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Exhausted {
    /// Leave it out and share its weight among the others (the default).
    #[default]
    Drop,
    /// Start its passes again.
    Restart,
    /// End the output.
    Stop,
}

/// Joins streams of frames: each frame comes from a seeded weighted choice of input (§1.9).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct JoinPositionsConfig {
    /// Weights parallel to the stage's inputs; equal when empty.
    pub weight: Vec<f64>,
    /// What happens when an input ends.
    pub exhausted: Exhausted,
    /// Where the frames go.
    pub output: QueueConfig,
}

/// A reservoir: emits a random frame of those it holds and keeps the new one in its place (§1.8).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ShufflingFrameSamplerConfig {
    /// Factor of the reservoir's size; existing configs mean one reservoir per thread.
    pub threads: usize,
    /// Frames held per thread; the whole reservoir is the product.
    pub reservoir_size_per_thread: usize,
    /// Whether what it still holds at the end of the stream is emitted, shuffled.
    pub drain: bool,
    /// Where the frames go.
    pub output: QueueConfig,
}

impl Default for ShufflingFrameSamplerConfig {
    fn default() -> Self {
        ShufflingFrameSamplerConfig {
            threads: 1,
            reservoir_size_per_thread: 1_000_000,
            drain: true,
            output: QueueConfig::default(),
        }
    }
}

/// What becomes of the rows left over when the stream ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LastBatch {
    /// A last, smaller batch (the default).
    #[default]
    Keep,
    /// Nothing.
    Drop,
    /// A full batch whose missing rows are zero; `Batch.rows` tells how many are real.
    Pad,
}

/// What makes rows of tensors of frames; each task has one.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EncoderConfig {
    /// Chess records to planes, policy and values (the default).
    #[default]
    Chess,
    /// 2048 step rows to exponents and targets; `tensors` is ignored.
    G2048(G2048EncoderConfig),
    /// Steps of packed demonstrations to their fields, or those that `tensors` names.
    Fields,
}

impl EncoderConfig {
    /// Reads JSON; an unknown key is refused with the nearest known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> crate::Result<Self> {
        super::parse::from_json(text)
    }

    /// The field of the values beside rows that it makes targets of, if it does.
    pub fn aims_at(&self) -> Option<ValueField> {
        match self {
            EncoderConfig::G2048(config) if config.value_targets.is_some() => {
                Some(config.value_field.map(Into::into).unwrap_or_default())
            }
            _ => None,
        }
    }
}

/// Encodes frames into batches of tensors (§1.10, §3).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TensorGeneratorConfig {
    /// Maximum number of encode tasks at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threads: Option<usize>,
    /// Rows per batch.
    pub batch_size: usize,
    /// What makes rows of tensors of frames.
    pub encoder: EncoderConfig,
    /// The tensors, in order: `planes`, `planes:f16`, `planes:u8`, `planes:bits`, `probs`, `values`, `legal`, `ids`, ...
    pub tensors: Vec<String>,
    /// What becomes of the last partial batch.
    pub last_batch: LastBatch,
    /// Where the batches go.
    pub output: QueueConfig,
}

impl Default for TensorGeneratorConfig {
    fn default() -> Self {
        TensorGeneratorConfig {
            threads: None,
            batch_size: 1024,
            encoder: EncoderConfig::default(),
            tensors: ["planes", "probs", "values"].map(String::from).to_vec(),
            last_batch: LastBatch::Keep,
            output: QueueConfig::default(),
        }
    }
}

/// One stage: a name, the outputs it reads, and exactly one kind.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each field is the config of the kind it names")]
pub struct StageConfig {
    pub name: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub input: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file_path_provider: Option<FilePathProviderConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_source_loader: Option<ChunkSourceLoaderConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_source_splitter: Option<ChunkSourceSplitterConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffling_chunk_pool: Option<ShufflingChunkPoolConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub simple_chunk_extractor: Option<SimpleChunkExtractorConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_validator: Option<ChunkValidatorConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_rescorer: Option<ChunkRescorerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk_unpacker: Option<ChunkUnpackerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub join_positions: Option<JoinPositionsConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shuffling_frame_sampler: Option<ShufflingFrameSamplerConfig>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tensor_generator: Option<TensorGeneratorConfig>,
}

/// The kind of a stage, in flow order.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs, reason = "each variant is the kind its config names")]
pub enum StageKind<'a> {
    FilePathProvider(&'a FilePathProviderConfig),
    ChunkSourceLoader(&'a ChunkSourceLoaderConfig),
    ChunkSourceSplitter(&'a ChunkSourceSplitterConfig),
    ShufflingChunkPool(&'a ShufflingChunkPoolConfig),
    SimpleChunkExtractor(&'a SimpleChunkExtractorConfig),
    ChunkValidator(&'a ChunkValidatorConfig),
    ChunkRescorer(&'a ChunkRescorerConfig),
    ChunkUnpacker(&'a ChunkUnpackerConfig),
    JoinPositions(&'a JoinPositionsConfig),
    ShufflingFrameSampler(&'a ShufflingFrameSamplerConfig),
    TensorGenerator(&'a TensorGeneratorConfig),
}

impl StageKind<'_> {
    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            StageKind::FilePathProvider(_) => "file_path_provider",
            StageKind::ChunkSourceLoader(_) => "chunk_source_loader",
            StageKind::ChunkSourceSplitter(_) => "chunk_source_splitter",
            StageKind::ShufflingChunkPool(_) => "shuffling_chunk_pool",
            StageKind::SimpleChunkExtractor(_) => "simple_chunk_extractor",
            StageKind::ChunkValidator(_) => "chunk_validator",
            StageKind::ChunkRescorer(_) => "chunk_rescorer",
            StageKind::ChunkUnpacker(_) => "chunk_unpacker",
            StageKind::JoinPositions(_) => "join_positions",
            StageKind::ShufflingFrameSampler(_) => "shuffling_frame_sampler",
            StageKind::TensorGenerator(_) => "tensor_generator",
        }
    }
}

impl StageConfig {
    /// Its kind; an error when none or several are set.
    pub fn kind(&self) -> crate::Result<StageKind<'_>> {
        let mut kinds = [
            self.file_path_provider.as_ref().map(StageKind::FilePathProvider),
            self.chunk_source_loader.as_ref().map(StageKind::ChunkSourceLoader),
            self.chunk_source_splitter.as_ref().map(StageKind::ChunkSourceSplitter),
            self.shuffling_chunk_pool.as_ref().map(StageKind::ShufflingChunkPool),
            self.simple_chunk_extractor.as_ref().map(StageKind::SimpleChunkExtractor),
            self.chunk_validator.as_ref().map(StageKind::ChunkValidator),
            self.chunk_rescorer.as_ref().map(StageKind::ChunkRescorer),
            self.chunk_unpacker.as_ref().map(StageKind::ChunkUnpacker),
            self.join_positions.as_ref().map(StageKind::JoinPositions),
            self.shuffling_frame_sampler.as_ref().map(StageKind::ShufflingFrameSampler),
            self.tensor_generator.as_ref().map(StageKind::TensorGenerator),
        ]
        .into_iter()
        .flatten();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => Err(crate::Error::stage(&self.name, "has no kind; set exactly one, such as `chunk_unpacker`")),
            (Some(_), Some(_)) => Err(crate::Error::stage(&self.name, "has several kinds; set exactly one")),
        }
    }
}
