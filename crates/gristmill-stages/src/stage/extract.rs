//! Sources -> draws, in whole passes: every chunk once per epoch, in order or permuted, then the end.
//! For validation: nothing is left out, nothing comes twice, and the order is known.

use std::sync::Arc;

use gristmill_runtime::runtime::permute::Permutation;
use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use crate::stage::{ChunkRef, Draw};

/// Whole passes over a fixed list of chunks.
#[derive(Debug, Clone)]
pub struct Extract {
    chunks: Arc<[ChunkRef]>,
    shuffle: Option<Key>,
    epochs: u32,
    at: ExtractState,
    order: Option<Permutation>,
}

/// Where a pass stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ExtractState {
    /// Passes completed.
    pub epoch: u32,
    /// Chunks drawn in this pass.
    pub position: u64,
}

impl Extract {
    /// `epochs` passes over `chunks`, permuted by a key of each epoch's own when `shuffle` is given.
    pub fn new(chunks: Vec<ChunkRef>, shuffle: Option<Key>, epochs: u32) -> Self {
        let mut extract = Extract { chunks: chunks.into(), shuffle, epochs, at: ExtractState::default(), order: None };
        extract.reorder();
        extract
    }

    fn reorder(&mut self) {
        let n = self.chunks.len() as u64;
        self.order = self.shuffle.map(|key| Permutation::new(key.of(b"epoch", u64::from(self.at.epoch)), n));
    }

    /// The next chunk; `None` after the last pass. The use count is the number of the pass.
    pub fn draw(&mut self) -> Option<Draw> {
        if self.at.position == self.chunks.len() as u64 && !self.chunks.is_empty() {
            self.at = ExtractState { epoch: self.at.epoch + 1, position: 0 };
            self.reorder();
        }
        if self.at.epoch >= self.epochs || self.chunks.is_empty() {
            return None;
        }
        let i = self.order.as_ref().map_or(self.at.position, |order| order.apply(self.at.position));
        self.at.position += 1;
        let use_count = u16::try_from(self.at.epoch % 65_536).unwrap_or(0);
        Some(Draw { at: self.chunks[usize::try_from(i).ok()?], use_count, place: i, floor: 0 })
    }

    /// Chunks of one pass.
    pub fn chunks(&self) -> u64 {
        self.chunks.len() as u64
    }

    /// Starts all its passes again from the beginning.
    pub fn restart(&mut self) {
        self.restore(ExtractState::default());
    }

    /// Where it stands.
    pub fn state(&self) -> ExtractState {
        self.at
    }

    /// Resumes from a saved state.
    pub fn restore(&mut self, state: ExtractState) {
        self.at = state;
        self.reorder();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chunks(n: u32) -> Vec<ChunkRef> {
        (0..n).map(|chunk| ChunkRef { source: 0, chunk }).collect()
    }

    fn all(mut extract: Extract) -> Vec<u32> {
        std::iter::from_fn(|| extract.draw()).map(|d| d.at.chunk).collect()
    }

    #[test]
    fn passes_are_whole_and_end() {
        assert_eq!(all(Extract::new(chunks(4), None, 2)), [0, 1, 2, 3, 0, 1, 2, 3]);
        assert!(all(Extract::new(chunks(0), None, 2)).is_empty());
        let shuffled = all(Extract::new(chunks(50), Some(Key::new(1, "e")), 2));
        let (first, second) = shuffled.split_at(50);
        assert_ne!(first, second, "another order in each epoch");
        for pass in [first, second] {
            let mut sorted = pass.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn it_goes_on_from_any_state() {
        let whole = all(Extract::new(chunks(9), Some(Key::new(2, "e")), 3));
        let mut original = Extract::new(chunks(9), Some(Key::new(2, "e")), 3);
        for drawn in 0..=whole.len() {
            let mut copy = Extract::new(chunks(9), Some(Key::new(2, "e")), 3);
            copy.restore(original.state());
            assert_eq!(all(copy), whole[drawn..]);
            original.draw();
        }
    }
}
