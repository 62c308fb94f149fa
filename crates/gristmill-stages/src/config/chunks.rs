//! The stages that choose chunks and the positions within them: pool, extractor, unpacker.
//! Pure data: defaults and shape only; what fits together is judged by `pipeline`.

use serde::{Deserialize, Serialize};

use crate::options::options;
use crate::stage::QueueConfig;
use crate::stage::pool::{RateLimitConfig, WindowLawConfig};

/// How file names are ordered from oldest to newest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyOrder {
    /// Runs of digits compare as numbers: `training.99.gz` before `training.100.gz` (the default).
    #[default]
    Natural,
    /// Plain bytes, as existing text-protobuf graphs mean it.
    Bytes,
}

impl KeyOrder {
    /// Compares two keys, older first.
    pub fn compare(self, a: &str, b: &str) -> std::cmp::Ordering {
        match self {
            KeyOrder::Natural => gristmill_runtime::key::natural_cmp(a, b),
            KeyOrder::Bytes => a.cmp(b),
        }
    }

    /// Compares two files by their names below a directory, older first: by key, and of one key by the whole name.
    pub fn older(self, a: &str, b: &str) -> std::cmp::Ordering {
        self.compare(gristmill_runtime::key::of_name(a), gristmill_runtime::key::of_name(b)).then_with(|| a.cmp(b))
    }

    /// Its name in a configuration.
    pub fn name(self) -> &'static str {
        match self {
            KeyOrder::Natural => "natural",
            KeyOrder::Bytes => "bytes",
        }
    }

    /// The order of a name.
    ///
    /// Errors: `Config` for another word.
    pub fn of_name(name: &str) -> gristmill_runtime::Result<Self> {
        let found = [KeyOrder::Natural, KeyOrder::Bytes].into_iter().find(|order| order.name() == name);
        found.ok_or_else(|| {
            gristmill_runtime::Error::config("key_order", format!("`{name}`; expected natural or bytes"))
        })
    }
}

/// How a drawn chunk's chance of being handed out follows from what is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HanseForm {
    /// `(weight / largest weight drawn so far)^gamma`; the threshold only switches it on (the default).
    #[default]
    Weight,
    /// `min(1, frames / threshold)^gamma`.
    Length,
}

/// What a frame weighs: `default_weight`, or where one of the first two is set and the frame has an original
/// value, `min((t * alpha + beta)^gamma, tau)` with `t = (q_weight * |best_q - orig_q| + policy_kld) / (q_weight + pol_scale)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs, reason = "each field is the parameter of the formula that it names")]
pub struct PositionSamplingConfig {
    /// 0 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_focus_q_weight: Option<f32>,
    /// 1 when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff_focus_pol_scale: Option<f32>,
    pub diff_focus_alpha: f32,
    pub diff_focus_beta: f32,
    pub diff_focus_gamma: f32,
    pub diff_focus_tau: f32,
    pub default_weight: f32,
}

impl Default for PositionSamplingConfig {
    fn default() -> Self {
        PositionSamplingConfig {
            diff_focus_q_weight: None,
            diff_focus_pol_scale: None,
            diff_focus_alpha: 1.0,
            diff_focus_beta: 0.0,
            diff_focus_gamma: 1.0,
            diff_focus_tau: 1.0,
            default_weight: 1.0,
        }
    }
}

/// How many of a chunk's positions the cache keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheQuota {
    /// In proportion to the chunk's chance of being handed out, measured by the running mean (the default).
    #[default]
    Documented,
    /// As the lc0 trainer computes it: its running mean is nearly the chunk's own chance, so each gets the same.
    Compat,
}

options! {
    /// Keeps the newest chunks and hands them out shuffled, each once per pass.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ShufflingChunkPoolConfig {
        /// Maximum number of chunks that the window holds.
        batches chunk_pool_size: u64,
        /// How the window grows up to that; it has its full size at once when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches window_law: Option<WindowLawConfig>,
        /// How many draws there are for each chunk that comes; any number when absent.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches rate_limit: Option<RateLimitConfig>,
        /// Accepted for existing configs; indexing has one thread per loader stage.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed source_ingestion_threads: Option<usize>,
        /// Maximum number of chunks being loaded at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed chunk_loading_threads: Option<usize>,
        /// How names are ordered from oldest to newest.
        batches key_order: KeyOrder,
        /// Switches Hanse sampling on where it is above 0; frames of a chunk that is always taken, in the length form.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches hanse_sampling_threshold: Option<u64>,
        /// Exponent of a chunk's chance.
        batches hanse_sampling_gamma: f64,
        /// What a chunk's chance is made of.
        batches hanse_sampling_form: HanseForm,
        /// What a frame weighs, for Hanse sampling by weight.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches position_sampling: Option<PositionSamplingConfig>,
        /// Frames that the position cache holds in all; needs `cachehit_output`.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches position_cache_size: Option<u64>,
        /// How many frames of a chunk the cache keeps.
        batches cache_quota: CacheQuota,
        /// Draws from a chunk's miss to the first draw that may hit what the miss kept; at least 1.
        batches cache_lookahead: u64,
        /// Accepted for existing configs; caching costs no thread.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed caching_threads: Option<usize>,
        /// Where the chunks go.
        table output: QueueConfig,
        /// Where cached frames go; switches the position cache on.
        #[serde(skip_serializing_if = "Option::is_none")]
        table cachehit_output: Option<QueueConfig>,
    }
}

impl Default for ShufflingChunkPoolConfig {
    fn default() -> Self {
        ShufflingChunkPoolConfig {
            chunk_pool_size: 100_000,
            window_law: None,
            rate_limit: None,
            source_ingestion_threads: None,
            chunk_loading_threads: None,
            key_order: KeyOrder::Natural,
            hanse_sampling_threshold: None,
            hanse_sampling_gamma: 1.0,
            hanse_sampling_form: HanseForm::Weight,
            position_sampling: None,
            position_cache_size: None,
            cache_quota: CacheQuota::Documented,
            cache_lookahead: 1,
            caching_threads: None,
            output: QueueConfig::default(),
            cachehit_output: None,
        }
    }
}

/// The order of a sequential pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ExtractOrder {
    /// Sources by key, chunks by index (the default).
    #[default]
    Sequential,
    /// A keyed permutation of all chunks, another one for each pass.
    Shuffled,
}

options! {
    /// Whole passes over what the first scan found, then the end: for validation.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct SimpleChunkExtractorConfig {
        /// The order within a pass.
        batches order: ExtractOrder,
        /// How many passes; at least 1.
        batches epochs: u32,
        /// How names are ordered.
        batches key_order: KeyOrder,
        /// Where the chunks go.
        table output: QueueConfig,
    }
}

impl Default for SimpleChunkExtractorConfig {
    fn default() -> Self {
        SimpleChunkExtractorConfig {
            order: ExtractOrder::Sequential,
            epochs: 1,
            key_order: KeyOrder::Natural,
            output: QueueConfig::default(),
        }
    }
}

options! {
    /// Selects positions of each chunk, other ones at each use. Exactly one of rate and count.
    #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ChunkUnpackerConfig {
        /// Maximum number of chunks being unpacked at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// Share of the positions taken at each use, 0 < rate <= 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches position_sampling_rate: Option<f32>,
        /// Number of positions taken at each use.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches position_count: Option<u32>,
        /// What a frame weighs: with a count, a frame is taken with its share of the chunk's largest weight.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches position_sampling: Option<PositionSamplingConfig>,
        /// Positions of the next uses that go to the pool's cache; needs `prefetch_output` and a count of 1.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches prefetch_count: Option<u32>,
        /// Where the frames go.
        table output: QueueConfig,
        /// Where the positions of the next uses go: an input of the pool.
        #[serde(skip_serializing_if = "Option::is_none")]
        table prefetch_output: Option<QueueConfig>,
    }
}
