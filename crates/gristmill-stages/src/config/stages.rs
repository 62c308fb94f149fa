//! The stages where a stream begins and ends: files, sources, sides, batches; with the field names of the lc0 trainer.
//! Pure data: defaults and shape only; what fits together is judged by `pipeline`.

use std::fmt;
use std::path::PathBuf;

use gristmill_format::g2048::value::ValueField;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

use super::g2048::G2048EncoderConfig;
use crate::options::options;
use crate::stage::QueueConfig;

options! {
    /// Finds the files of a directory, then watches it.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct FilePathProviderConfig {
        /// The directory, scanned recursively.
        place directory: PathBuf,
        /// Whether files that appear later are taken too. Absent: they are, but a directory without any game is an error;
        /// `true` waits for the first game.
        #[serde(skip_serializing_if = "Option::is_none")]
        place watch: Option<bool>,
        /// Seconds between full rescans, for file systems without change notices.
        place rescan_seconds: f64,
        /// The queue, `sqs://NAME`, that a bucket sends events of its objects to: new files are found as the events come, and by
        /// rescans all the same.
        #[serde(skip_serializing_if = "Option::is_none")]
        place events: Option<String>,
        /// Where the files go.
        place output: QueueConfig,
    }
}

impl Default for FilePathProviderConfig {
    fn default() -> Self {
        FilePathProviderConfig {
            directory: PathBuf::new(),
            watch: None,
            rescan_seconds: 60.0,
            events: None,
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

options! {
    /// Turns files into chunk sources.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ChunkSourceLoaderConfig {
        /// Maximum number of threads that index containers at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// Record version to insist on.
        batches frame_format: FrameFormat,
        /// Where the sources go.
        table output: QueueConfig,
    }
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

options! {
    /// Deals chunks to named outputs by a fixed hash of their names.
    #[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ChunkSourceSplitterConfig {
        /// The outputs, parallel to `weight`.
        table output: Vec<QueueConfig>,
        /// Their shares.
        batches weight: Vec<u64>,
        /// What decides the output of a chunk.
        batches by: SplitBy,
        /// Folds that what the first two outputs have together is dealt to: the second gets `fold`, the first the others.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches folds: Option<u64>,
        /// Which fold, from 0; goes with `folds`.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches fold: Option<u64>,
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
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EncoderConfig {
    /// Chess records to planes, policy and values (the default).
    #[default]
    Chess,
    /// 2048 step rows to exponents and targets; `tensors` is ignored.
    G2048(G2048EncoderConfig),
    /// Steps of packed demonstrations to their fields, or those that `tensors` names.
    Fields,
    /// The encoder of the kind of frames of this name, with its usual tensors or those that `tensors` names.
    #[serde(untagged)]
    Of(String),
}

/// What has a configuration of its own.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Configured {
    G2048(G2048EncoderConfig),
}

impl<'de> Deserialize<'de> for EncoderConfig {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Found;
        impl<'de> Visitor<'de> for Found {
            type Value = EncoderConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of an encoder, or one with its options")
            }

            fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<EncoderConfig, E> {
                Ok(match name {
                    "chess" => EncoderConfig::Chess,
                    "fields" => EncoderConfig::Fields,
                    "g2048" => EncoderConfig::G2048(G2048EncoderConfig::default()),
                    other => EncoderConfig::Of(other.to_owned()),
                })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<EncoderConfig, A::Error> {
                let Configured::G2048(config) = Configured::deserialize(MapAccessDeserializer::new(map))?;
                Ok(EncoderConfig::G2048(config))
            }
        }
        from.deserialize_any(Found)
    }
}

impl EncoderConfig {
    /// Reads JSON; an unknown key is refused with the nearest known one.
    ///
    /// Errors: `Config`.
    pub fn from_json(text: &str) -> gristmill_runtime::Result<Self> {
        super::parse::options(text)
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

options! {
    /// Encodes frames into batches of tensors.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct TensorGeneratorConfig {
        /// Maximum number of encode tasks at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// Rows per batch.
        batches batch_size: usize,
        /// What makes rows of tensors of frames.
        batches encoder: EncoderConfig,
        /// The tensors, in order: `planes`, `planes:f16`, `planes:u8`, `planes:bits`, `probs`, `values`, `legal`, `ids`, ...
        batches tensors: Vec<String>,
        /// What becomes of the last partial batch.
        batches last_batch: LastBatch,
        /// Where the batches go.
        table output: QueueConfig,
    }
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
