//! Chunk -> the same chunk, with what an encoder wants to know of each record's place in its game.
//! Knows no game: the encoder writes it.

use std::sync::Arc;

use gristmill_format::Result;
use gristmill_format::encode::Encoder;
use gristmill_format::source::Chunk;

use super::{ChunkPass, Passed};

/// Completes chunks for an encoder.
#[derive(Debug, Clone)]
pub struct Complete {
    encoder: Arc<dyn Encoder>,
}

impl Complete {
    /// For `encoder`, if it wants that.
    pub fn new(encoder: &Arc<dyn Encoder>) -> Option<Self> {
        encoder.is_completed().then(|| Complete { encoder: Arc::clone(encoder) })
    }
}

impl ChunkPass for Complete {
    /// Errors: as the encoder's.
    fn run(&self, chunk: &mut Chunk, _count: &mut dyn FnMut(usize, u64)) -> Result<Passed> {
        self.encoder.complete(chunk)?;
        Ok(Passed::Changed)
    }
}
