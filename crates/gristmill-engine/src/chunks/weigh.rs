//! What the games and positions of a chunk pack weigh, from the fields that weighers read: no board or policy is decoded.
//! Sums are remembered for as long as the pack is open.

use std::sync::{Arc, PoisonError};

use gristmill_format::Result;
use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Weigher, total};

use super::open::ChunkPack;
use crate::table::Weighed;

impl ChunkPack {
    /// What each game weighs, weighed now; NaN for one that cannot be.
    fn weigh_all(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
        let (mut chunk, mut weights) = (Chunk::default(), Vec::new());
        let each = (0..self.games()).map(|game| {
            if let Some(weight) = weigher.uniform() {
                let frames = self.frames(game).map_or(0, |(_, frames)| frames as usize);
                return total(std::iter::repeat_n(weight, frames));
            }
            let weighed = self.weights(game, weigher, &mut chunk, &mut weights);
            if weighed.is_ok() { total(weights.iter().copied()) } else { f32::NAN }
        });
        each.collect()
    }
}

impl Weighed for ChunkPack {
    fn chunk_at(&self, row: u64) -> u64 {
        self.game_of(row).unwrap_or_default()
    }

    fn rows_of(&self, chunk: u64) -> (u64, u64) {
        self.frames(chunk).map_or((0, 0), |(first, frames)| (first, first + frames))
    }

    fn totals(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
        let mut known = self.sums.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(weigher.id()).or_insert_with(|| self.weigh_all(weigher)))
    }

    fn weights(&self, game: u64, weigher: &dyn Weigher, scratch: &mut Chunk, out: &mut Vec<f32>) -> Result<()> {
        self.judged(game, scratch)?;
        weigher.weigh(scratch, out)
    }
}
