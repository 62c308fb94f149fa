//! What the games and positions of a chunk pack weigh, from the fields that weighers read: no board or policy is decoded.
//! Sums by the pack's own rule are in its database; others are weighed once and kept beside it.

use std::sync::{Arc, PoisonError};

use gristmill_format::Result;
use gristmill_format::source::Chunk;
use gristmill_format::weigh::{Weigher, total};

use super::chess::{WEIGHER, WEIGHT};
use super::manifest::Manifest;
use super::metadata::Games;
use super::open::ChunkPack;
use super::sums;
use crate::pack::METADATA;
use crate::table::Weighed;

impl ChunkPack {
    /// What each game weighs: from memory of any kind, else weighed now; NaN for a game that cannot be.
    fn sums(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
        if let Some(weight) = weigher.uniform() {
            let frames = |game| self.frames(game).map_or(0, |(_, frames)| frames as usize);
            return (0..self.games()).map(|game| total(std::iter::repeat_n(weight, frames(game)))).collect();
        }
        let own = (weigher.id() == WEIGHER.id()).then(|| self.packed_sums().ok().flatten()).flatten();
        let kept = || sums::read(self.folder(), self.identity(), weigher.id(), self.games() as usize).map(Arc::from);
        own.or_else(kept).unwrap_or_else(|| {
            let found = self.weigh_all(weigher);
            if found.iter().all(|sum| !sum.is_nan()) {
                sums::keep(self.folder(), self.identity(), weigher.id(), &found);
            }
            found
        })
    }

    fn weigh_all(&self, weigher: &dyn Weigher) -> Arc<[f32]> {
        let (mut chunk, mut weights) = (Chunk::default(), Vec::new());
        let each = (0..self.games()).map(|game| {
            let weighed = self.weights(game, weigher, &mut chunk, &mut weights);
            if weighed.is_ok() { total(weights.iter().copied()) } else { f32::NAN }
        });
        each.collect()
    }

    /// What the database says that each game weighs; none where it does not say it of just these games.
    fn packed_sums(&self) -> crate::Result<Option<Arc<[f32]>>> {
        let manifest = Manifest::read(self.folder())?;
        let said = manifest.files.iter().map(|file| (file.name.clone(), file.index_xxh3.clone()));
        if !said.eq(self.checksums().map(|(name, hash)| (name, format!("{hash:016x}")))) {
            return Ok(None);
        }
        let sums = Games::open(&self.folder().join(METADATA))?.column(WEIGHT)?;
        Ok((sums.len() as u64 == self.games()).then(|| sums.into_iter().map(|sum| sum as f32).collect()))
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
