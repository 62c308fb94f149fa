//! Chunk passes of the river, one after another -> a rewrite of files.
//! Adds nothing to what they do.

use std::sync::Arc;

use gristmill_format::Result;
use gristmill_format::source::Chunk;

use super::{Fate, Rewrite};
use crate::stage::{ChunkPass, Passed};

/// Sends each chunk through passes, as a loader does.
#[derive(Debug)]
pub struct Passes {
    settings: serde_json::Value,
    passes: Vec<Arc<dyn ChunkPass>>,
}

impl Passes {
    /// The passes in order; `settings` names command and settings.
    pub fn new(settings: serde_json::Value, passes: Vec<Arc<dyn ChunkPass>>) -> Self {
        Passes { settings, passes }
    }
}

impl Rewrite for Passes {
    fn settings(&self) -> serde_json::Value {
        self.settings.clone()
    }

    fn chunk(&self, chunk: &mut Chunk, count: &mut dyn FnMut(&'static str, u64)) -> Result<Fate> {
        let mut fate = Fate::Keep;
        for pass in &self.passes {
            let names = pass.counts();
            if pass.run(chunk, &mut |i, n| count(names[i], n))? == Passed::Changed {
                fate = Fate::Write;
            }
        }
        Ok(fate)
    }
}
