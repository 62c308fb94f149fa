//! The rows of `stage::kinds` -> a configuration of a stage, and what its kind says of itself.
//! Names no kind; what one does is in its own file.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::chunks::{ChunkUnpackerConfig, ShufflingChunkPoolConfig, SimpleChunkExtractorConfig};
use super::rescorer::ChunkRescorerConfig;
use super::stages::{
    ChunkSourceLoaderConfig, ChunkSourceSplitterConfig, FilePathProviderConfig, TensorGeneratorConfig,
};
use crate::options::{Opt, Options};
use crate::stage::join::JoinPositionsConfig;
use crate::stage::kinds::stage_rows;
use crate::stage::sample::ShufflingFrameSamplerConfig;
use crate::stage::validate::ChunkValidatorConfig;
use crate::stage::{PassStage, QueueConfig, Queues, RowStage};

/// What flows on an edge. References may have many readers; bytes have one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Item {
    /// Names of files.
    File,
    /// Sources of chunks.
    Source,
    /// Games.
    Chunk,
    /// Positions.
    Frame,
    /// Positions that an unpacker foresees for its pool's cache.
    CacheRequest,
    /// Tensors.
    Batch,
}

impl Item {
    /// Whether many may read it.
    pub fn is_reference(self) -> bool {
        matches!(self, Item::File | Item::Source)
    }

    /// Its name in errors, in the plural.
    pub fn name(self) -> &'static str {
        match self {
            Item::File => "files",
            Item::Source => "chunk sources",
            Item::Chunk => "chunks",
            Item::Frame => "frames",
            Item::CacheRequest => "cache requests",
            Item::Batch => "batches",
        }
    }
}

/// Makes of each row a field of [`StageConfig`], a variant of [`StageKind`], and what both say of it.
macro_rules! stages {
    ($($name:ident: $kind:ident($config:ty) $(as $role:ident)?,
        [$($reads:ident),*] -> [$($queue:ident: $gives:ident),*];)*) => {
        /// One stage: a name, the outputs it reads, and exactly one kind.
        #[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        #[allow(missing_docs, reason = "each field is the config of the kind it names")]
        pub struct StageConfig {
            pub name: String,
            #[serde(skip_serializing_if = "Vec::is_empty")]
            pub input: Vec<String>,
            $(#[serde(skip_serializing_if = "Option::is_none")]
            pub $name: Option<$config>,)*
        }

        /// The kind of a stage, in flow order.
        #[derive(Debug, Clone, Copy, PartialEq)]
        #[allow(missing_docs, reason = "each variant is the kind its config names")]
        pub enum StageKind<'a> {
            $($kind(&'a $config),)*
        }

        impl StageConfig {
            /// Every kind by name, with its options.
            pub const KINDS: &'static [(&'static str, &'static [Opt])] =
                &[$((stringify!($name), <$config as Options>::OPTIONS),)*];

            /// All kinds that are set.
            fn kinds(&self) -> impl Iterator<Item = StageKind<'_>> {
                [$(self.$name.as_ref().map(StageKind::$kind),)*].into_iter().flatten()
            }
        }

        impl<'a> StageKind<'a> {
            /// Its name in a configuration.
            pub fn name(self) -> &'static str {
                match self {
                    $(StageKind::$kind(_) => stringify!($name),)*
                }
            }

            /// What it does to rows, where that is what it is.
            pub fn row_stage(self) -> Option<Arc<dyn RowStage>> {
                match self {
                    $(StageKind::$kind(config) => role!(rows config $($role)?),)*
                }
            }

            /// What it does to whole chunks, where that is what it is.
            pub fn pass_stage(self) -> Option<&'a dyn PassStage> {
                match self {
                    $(StageKind::$kind(config) => role!(chunks config $($role)?),)*
                }
            }

            /// What its inputs carry, in order.
            pub fn reads(self) -> &'static [Item] {
                match self {
                    $(StageKind::$kind(_) => &[$(Item::$reads),*],)*
                }
            }

            /// Its outputs, and what each gives.
            pub fn outputs(self) -> Vec<(&'a QueueConfig, Item)> {
                match self {
                    $(StageKind::$kind(config) => {
                        let mut outputs = Vec::new();
                        $(outputs.extend(config.$queue.queues().map(|queue| (queue, Item::$gives)));)*
                        outputs
                    })*
                }
            }
        }
    };
}

/// What the word after a row's configuration means: a step over rows, a pass over chunks, or neither.
macro_rules! role {
    (rows $config:ident step) => {
        Some(Arc::new($config.clone()) as Arc<dyn RowStage>)
    };
    (chunks $config:ident pass) => {
        Some($config as &dyn PassStage)
    };
    ($of:ident $config:ident $($other:ident)?) => {{
        let _ = $config;
        None
    }};
}

stage_rows!(stages);

impl StageConfig {
    /// Its kind; an error when none or several are set.
    pub fn kind(&self) -> gristmill_runtime::Result<StageKind<'_>> {
        let mut kinds = self.kinds();
        match (kinds.next(), kinds.next()) {
            (Some(kind), None) => Ok(kind),
            (None, _) => Err(gristmill_runtime::Error::stage(
                &self.name,
                "has no kind; set exactly one, such as `chunk_unpacker`",
            )),
            (Some(_), Some(_)) => {
                Err(gristmill_runtime::Error::stage(&self.name, "has several kinds; set exactly one"))
            }
        }
    }
}
