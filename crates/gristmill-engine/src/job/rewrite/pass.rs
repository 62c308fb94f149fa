//! Chunk passes of the river, one after another -> a rewrite of files.
//! Adds nothing to what they do.

use std::sync::Arc;

use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};

use super::{Fate, Rewrite};
use crate::stage::{ChunkPass, Passed};

/// Sends each chunk through passes, as a loader does.
#[derive(Debug)]
pub struct Passes {
    settings: serde_json::Value,
    passes: Vec<Arc<dyn ChunkPass>>,
    ending: &'static [&'static str],
}

impl Passes {
    /// The passes in order; `settings` names command and settings.
    pub fn new(settings: serde_json::Value, passes: Vec<Arc<dyn ChunkPass>>) -> Self {
        Passes { settings, passes, ending: &[] }
    }

    /// The same, where a refusal by one of these names ends the run: it is no fault of the game.
    #[must_use]
    pub fn ending_on(self, names: &'static [&'static str]) -> Self {
        Passes { ending: names, ..self }
    }
}

impl Rewrite for Passes {
    fn settings(&self) -> serde_json::Value {
        self.settings.clone()
    }

    fn chunk(&self, _: &[u8], chunk: &mut Chunk, count: &mut dyn FnMut(&'static str, u64)) -> Result<Fate> {
        let mut fate = Fate::Keep;
        for pass in &self.passes {
            let names = pass.counts();
            if pass.run(chunk, &mut |i, n| count(names[i], n))? == Passed::Changed {
                fate = Fate::Write;
            }
        }
        Ok(fate)
    }

    fn ends_on(&self, fault: &Error) -> bool {
        matches!(fault.kind(), Kind::Refused(name) if self.ending.contains(&name))
    }
}
