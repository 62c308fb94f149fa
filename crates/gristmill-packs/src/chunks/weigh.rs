//! What the games and positions of a chunk pack weigh, from the fields that weighers read: no board or policy is decoded.
//! Sums are read from beside the chunk files; those of other rules are weighed once, and kept there.

use std::sync::{Arc, PoisonError};

use gristmill_format::Result;
use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Weigher, total};
use gristmill_runtime::table::Weighed;

use super::open::{ChunkPack, File};
use super::sums;

impl ChunkPack {
    /// What each game weighs: from memory of any kind, else weighed now; NaN for a game that cannot be.
    fn sums(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
        if let Some(weight) = weigher.uniform() {
            let frames = |game| self.frames(game).map_or(0, |(_, frames)| frames as usize);
            return (0..self.games()).map(|game| total(std::iter::repeat_n(weight, frames(game)))).collect();
        }
        self.files.iter().flat_map(|file| file.sums(weigher)).collect()
    }
}

impl File {
    /// As [`ChunkPack::sums`], of the games of this file. Where the folder cannot be written to, they are weighed again next time.
    fn sums(&self, weigher: &dyn Weigher) -> Vec<f32> {
        if let Some(kept) = sums::read(self.path(), self.index(), weigher.id()) {
            return kept;
        }
        let found: Vec<f32> = self.weigh(weigher).map(|sum| sum.unwrap_or(f32::NAN)).collect();
        if found.iter().all(|sum| !sum.is_nan()) {
            let _ = sums::write(self.path(), self.index().identity(), weigher.id(), &found);
        }
        found
    }

    /// What each game weighs, from its bytes.
    pub(crate) fn weigh(&self, weigher: &dyn Weigher) -> impl Iterator<Item = Result<f32>> {
        let (mut chunk, mut weights) = (Chunk::default(), Vec::new());
        (0..self.index().len()).map(move |game| {
            self.judged(game, &mut chunk)?;
            weigher.weigh(&chunk, &mut weights)?;
            Ok(total(weights.iter().copied()))
        })
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
        Arc::clone(known.entry(weigher.id()).or_insert_with(|| self.sums(weigher)))
    }

    fn weights(&self, game: u64, weigher: &dyn Weigher, scratch: &mut Chunk, out: &mut Vec<f32>) -> Result<()> {
        self.judged(game, scratch)?;
        weigher.weigh(scratch, out)
    }
}
