//! `rescore`: the same games with better targets, through the rescorer of the loaders.

use std::sync::Arc;

use gristmill_engine::config::ChunkRescorerConfig;
use gristmill_jobs::rewrite::{Container, rescored};

use super::rewrite;
use crate::args::rewrite::Rescore;
use crate::failure::{Failure, Result};
use crate::report::{self, rewriting};

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
    let (passes, syzygy) = rescored(&config, args.keep_v6)?;
    if let (Some(syzygy), false) = (&syzygy, args.rewriting.json) {
        report::note(&rewriting::tables(syzygy));
    }
    rewrite::run(&args.rewriting, Vec::new(), Container::Same, Arc::new(passes))
}
