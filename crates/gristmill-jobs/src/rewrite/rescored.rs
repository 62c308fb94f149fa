//! The settings of the stage that rescores -> a rewrite of files by it. Settings name tables and policies by what they are, not by where
//! they lie: the same job may read them elsewhere.

use std::sync::Arc;

use gristmill_engine::config::{ChunkRescorerConfig, QueueConfig};
use gristmill_engine::error::Result;
use gristmill_engine::rescorer::{Extras, prepare};
use gristmill_engine::stage::rescore::Rescore;
use gristmill_engine::tablebase::Syzygy;
use serde_json::json;

use super::Passes;

/// Refusals that are no fault of a game: the run ends there, and resumes once the tables are whole.
const TABLE_FAULTS: &[&str] = &["missing_table", "corrupt_table"];

/// Opens tables and policies, and makes the rewrite that asks them; the tables, for people to read of them.
///
/// Errors: `Config` with the setting; `Format` for a damaged table or policy; `Path`.
pub fn rescored(config: &ChunkRescorerConfig, keep_v6: bool) -> Result<(Passes, Option<Syzygy>)> {
    let prepared = prepare("", config, Extras { keep_v6, drop_flagged: true })?;
    let [tables, policies] = prepared.reads();
    let placeless = ChunkRescorerConfig {
        syzygy_paths: String::new(),
        policy_directory: None,
        compat: config.named_compat(),
        threads: None,
        output: QueueConfig::default(),
        ..config.clone()
    };
    let settings = json!({ "rescore": placeless, "keep_v6": keep_v6, "tables": tables, "policies": policies });
    let passes = Passes::new(settings, vec![Arc::new(Rescore::new(prepared.rescorer))]).ending_on(TABLE_FAULTS);
    Ok((passes, prepared.syzygy))
}
