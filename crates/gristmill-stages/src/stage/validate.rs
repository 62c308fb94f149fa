//! Chunk -> the same chunk, or a refusal that names the first rule that its game breaks.
//! Changes no byte; every game is judged alone.

use std::ops::ControlFlow;
use std::sync::Arc;

use gristmill_format::chess::check::{self, Breach, REFUSED_BY, Rules};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};
use serde::{Deserialize, Serialize};

use super::{ChunkPass, Pass, PassStage, Passed, QueueConfig};
use crate::options::options;

options! {
    /// Passes on the chess games that break none of its rules; the others give no rows and are counted by rule.
    #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(deny_unknown_fields, default)]
    pub struct ChunkValidatorConfig {
        /// Maximum number of chunks being judged at once.
        #[serde(skip_serializing_if = "Option::is_none")]
        speed threads: Option<usize>,
        /// The rules, by name; `default` and `all` stand for several, `-name` takes one out again.
        batches rules: Vec<String>,
        /// Where the chunks go.
        table output: QueueConfig,
    }
}

impl Default for ChunkValidatorConfig {
    fn default() -> Self {
        ChunkValidatorConfig { threads: None, rules: vec!["default".to_owned()], output: QueueConfig::default() }
    }
}

impl PassStage for ChunkValidatorConfig {
    fn pass(&self, stage: &str) -> gristmill_runtime::error::Result<Pass> {
        let refused = |e: Error| gristmill_runtime::error::Error::field(stage, "rules", e.detail());
        let pass = Arc::new(Validate::new(Rules::parse(&self.rules).map_err(refused)?));
        Ok(Pass { pass, reads: [None; 2], lacks: Vec::new(), threads: self.threads })
    }
}

/// Lets chess games through that break none of its rules.
#[derive(Debug, Clone, Copy)]
pub struct Validate {
    rules: Rules,
}

impl Validate {
    /// A validator by these rules.
    pub fn new(rules: Rules) -> Self {
        Validate { rules }
    }
}

impl ChunkPass for Validate {
    /// Games refused, by rule.
    fn counts(&self) -> &[&'static str] {
        REFUSED_BY
    }

    /// Errors: `Refused` by the rule of the first breach, with its frame and byte; `Unsupported` for other records
    /// than V6 and V7.
    fn run(&self, chunk: &mut Chunk, count: &mut dyn FnMut(usize, u64)) -> Result<Passed> {
        let mut first: Option<Breach> = None;
        check::check(chunk, self.rules, &mut |breach| {
            first = Some(breach);
            ControlFlow::Break(())
        })?;
        let Some(Breach { rule, frame, offset, reason }) = first else { return Ok(Passed::Unchanged) };
        count(rule as usize, 1);
        let size = chunk.layout.as_ref().map_or(0, |layout| layout.size());
        Err(Error::new(Kind::Refused(rule.name()), reason).in_frame(frame).at_byte((frame * size + offset) as u64))
    }
}
