//! The configuration of the rescorer: fields and defaults of the lc0 trainer's, and our own.
//! Pure data; what the values may be is judged where a rescorer is made of them.

use std::path::PathBuf;

use gristmill_format::chess::InputFormat;
use gristmill_format::chess::rescore::{Compat, HALF_TURN, Quirk};
use gristmill_runtime::error::Result;
use serde::{Deserialize, Serialize};

use super::parse;
use crate::options::options;
use crate::stage::QueueConfig;

options! {
    /// Mends chess games: results and plies left by tablebase, policies, blunders, input format, V6 to V7.
    #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ChunkRescorerConfig {
        /// Maximum number of chunks being rescored at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// Directories with Syzygy tables, between commas or what separates paths on this system; empty for none.
        batches syzygy_paths: String,
        /// Temperature of the policy; above 1 flattens it.
        batches dist_temp: f32,
        /// Added to each probability before the temperature; negative prunes rare moves.
        batches dist_offset: f32,
        /// Shared out among the moves that win fastest by the tablebase, before the temperature.
        batches dtz_boost: f32,
        /// Input format to convert to; -1 keeps what the game has.
        batches new_input_format: i32,
        /// Loss of value by the move played that makes it a blunder; set it together with the width, or neither.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches deblunder_threshold: Option<f32>,
        /// Width around the threshold within which a blunder counts in part.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches deblunder_width: Option<f32>,
        /// Known so that it can be refused by name: Gaviota tables are not supported.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches gaviota_paths: Option<String>,
        /// Decay of the short-term values per ply.
        batches st_q_theta: f32,
        /// Whether tables may be missing or damaged; then what cannot be probed stays as it is, and is counted.
        batches allow_missing_tables: bool,
        /// A directory of games whose policies replace those of the frames that follow the same moves.
        #[serde(skip_serializing_if = "Option::is_none")]
        batches policy_directory: Option<PathBuf>,
        /// Quirks of the lc0 rescorer to reproduce, by name.
        batches compat: Vec<String>,
        /// Where the chunks go.
        table output: QueueConfig,
    }
}

impl Default for ChunkRescorerConfig {
    fn default() -> Self {
        ChunkRescorerConfig {
            threads: None,
            syzygy_paths: String::new(),
            dist_temp: 1.0,
            dist_offset: 0.0,
            dtz_boost: 0.0,
            new_input_format: -1,
            deblunder_threshold: None,
            deblunder_width: None,
            gaviota_paths: None,
            st_q_theta: 0.833_333_3,
            allow_missing_tables: false,
            policy_directory: None,
            compat: Vec::new(),
            output: QueueConfig::default(),
        }
    }
}

impl ChunkRescorerConfig {
    /// Reads JSON; what is not named has its default.
    ///
    /// Errors: `Config` for an unknown field, with the nearest known one, and for a value of another type.
    pub fn from_json(text: &str) -> Result<Self> {
        parse::options(text)
    }

    /// The quirks, as what is compared with other runs names them: how the policy indices of a canonical format are
    /// written is named where it is today's way, and not where it is the one before, as when that needed no name.
    pub fn named_compat(&self) -> Vec<String> {
        let (planes, all) = (Quirk::AsPlanes.name(), "all");
        let mut names = self.compat.clone();
        let canonical = u32::try_from(self.new_input_format).ok().and_then(InputFormat::from_value);
        if canonical.is_some_and(InputFormat::is_canonical) {
            if names.iter().any(|name| name == planes) {
                // `all` was all of them then.
                names = Compat::parse(&names).unwrap_or_default().names().into_iter().map(String::from).collect();
                names.retain(|name| name != planes);
            } else if !names.iter().any(|name| name == HALF_TURN || name == all) {
                names.push(HALF_TURN.to_owned());
            }
        }
        names
    }
}
