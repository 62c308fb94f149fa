//! `rescore`: the same games with better targets, through the rescorer of the loaders.

use std::sync::Arc;

use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_engine::rescorer::{Extras, prepare};
use gristmill_engine::stage::rescore::Rescore as Rescoring;
use gristmill_jobs::rewrite::{Container, Passes};
use serde_json::json;

use super::rewrite;
use crate::args::rewrite::Rescore;
use crate::failure::{Failure, Result};
use crate::report::{self, rewriting};

/// Refusals that are no fault of a game: the run ends there, and resumes once the tables are whole.
const TABLE_FAULTS: &[&str] = &["missing_table", "corrupt_table"];

pub(crate) fn run(args: &Rescore) -> Result<()> {
    let mut syzygy_paths = Vec::new();
    for path in &args.syzygy {
        match path.to_str() {
            Some(text) if !text.is_empty() => syzygy_paths.push(text),
            _ => return Err(Failure::Usage(format!("--syzygy: `{}` is no name of a directory", path.display()))),
        }
    }
    let config = ChunkRescorerConfig {
        syzygy_paths: syzygy_paths.join(","),
        allow_missing_tables: args.allow_missing_tables,
        dist_temp: args.dist_temp,
        dist_offset: args.dist_offset,
        dtz_boost: args.dtz_boost,
        new_input_format: args.new_input_format.map_or(-1, |format| i32::try_from(format).unwrap_or(i32::MAX)),
        deblunder_threshold: args.deblunder_threshold,
        deblunder_width: args.deblunder_width,
        st_q_theta: args.st_q_theta,
        policy_directory: args.policies.clone(),
        compat: args.compat.clone(),
        ..ChunkRescorerConfig::default()
    };
    let prepared = prepare("", &config, Extras { keep_v6: args.keep_v6, drop_flagged: true })?;
    if let (Some(syzygy), false) = (&prepared.syzygy, args.rewriting.json) {
        report::note(&rewriting::tables(syzygy));
    }
    // Where tables and policies lie is no matter, but which they are: another set is another work.
    let [tables, policies] = prepared.reads();
    let compat = config.named_compat();
    let placeless = ChunkRescorerConfig { syzygy_paths: String::new(), policy_directory: None, compat, ..config };
    let settings = json!({
        "rescore": placeless, "keep_v6": args.keep_v6, "tables": tables, "policies": policies
    });
    let passes = Passes::new(settings, vec![Arc::new(Rescoring::new(prepared.rescorer))]).ending_on(TABLE_FAULTS);
    rewrite::run(&args.rewriting, vec![args.rewriting.out.clone()], Container::Same, Arc::new(passes))
}
