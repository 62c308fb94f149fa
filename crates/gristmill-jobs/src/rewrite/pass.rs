//! Chunk passes of the river, one after another -> a rewrite of files.
//! Adds nothing to what they do.

use std::sync::Arc;

use gristmill_engine::stage::{ChunkPass, Passed};
use gristmill_format::chess::{Version, layout_v6};
use gristmill_format::source::Chunk;
use gristmill_format::{Error, Kind, Result};

use super::recast::stored_version;
use super::{Fate, Rewrite};

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

    /// Records of versions before V6 were read as V6, and go out as what the passes saw.
    fn chunk(&self, stored: &[u8], chunk: &mut Chunk, count: &mut dyn FnMut(&str, u64)) -> Result<Fate> {
        let mut fate = Fate::Keep;
        for pass in &self.passes {
            if pass.run_by_name(chunk, count)? == Passed::Changed {
                fate = Fate::Write;
            }
        }
        let stays_v6 = chunk.layout.as_deref() == Some(layout_v6());
        if stays_v6 && stored_version(stored)?.is_some_and(|version| version.number() < Version::V6.number()) {
            count("frames_to_v6", chunk.frames as u64);
            fate = Fate::Write;
        }
        Ok(fate)
    }

    fn ends_on(&self, fault: &Error) -> bool {
        matches!(fault.kind(), Kind::Refused(name) if self.ending.contains(&name))
    }
}
