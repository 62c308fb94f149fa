//! The window of the newest chunks and the draws from it: what is in it, how often each was drawn, what is left.
//! A chunk that a newer one pushes out is forgotten; one that arrives joins the pass that is under way.

use std::collections::{HashSet, VecDeque};

use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use super::{Undrawn, Window};
use crate::stage::{ChunkRef, Draw};

/// The source number of an entry whose source was superseded: it keeps its place and is never drawn.
const GONE: u32 = u32::MAX;

/// The newest chunks, as many as the window holds, drawn without repetition within a pass.
#[derive(Debug, Clone)]
pub struct Pool {
    key: Key,
    window: Window,
    /// Ordinal of the first entry; ordinals only grow.
    start: u64,
    entries: VecDeque<ChunkRef>,
    uses: VecDeque<u16>,
    /// Sources of the window, oldest first, with how many of their chunks are still in it.
    sources: VecDeque<(u32, u64)>,
    /// Entries that can be drawn at all.
    live: u64,
    undrawn: Undrawn,
    passes: u64,
    draws: u64,
}

/// What a pool needs to resume, without its entries: those follow from the sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolState {
    /// Ordinal of the first entry.
    pub start: u64,
    /// Chunks of the first source that were already pushed out.
    pub evicted_of_first: u64,
    /// Use counts of all entries.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub uses: Vec<u16>,
    /// Ordinals still to be drawn, as runs: gap, length, gap, length, ... from `start`.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub undrawn: Vec<u64>,
    /// Entries whose source was superseded, as offsets from `start`.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub gone: Vec<u64>,
    /// Passes begun after the first.
    pub passes: u64,
    /// Draws made.
    pub draws: u64,
}

impl Pool {
    /// An empty pool: of a number of chunks, or with a window that grows.
    pub fn new(key: Key, window: impl Into<Window>) -> Self {
        Pool {
            key,
            window: window.into(),
            start: 0,
            entries: VecDeque::new(),
            uses: VecDeque::new(),
            sources: VecDeque::new(),
            live: 0,
            undrawn: Undrawn::default(),
            passes: 0,
            draws: 0,
        }
    }

    /// Counts `passed` chunks that came before any it holds and are in no window. For an empty pool only.
    pub fn begin(&mut self, passed: u64) {
        self.start = passed;
        self.undrawn.advance(passed);
    }

    /// Appends the chunks of a source as the newest ones and pushes out what no longer fits.
    pub fn admit(&mut self, source: u32, chunks: impl IntoIterator<Item = u32>) {
        let before = self.entries.len() as u64;
        for chunk in chunks {
            self.undrawn.insert(self.end());
            self.entries.push_back(ChunkRef { source, chunk });
            self.uses.push_back(0);
        }
        let added = self.entries.len() as u64 - before;
        self.live += added;
        if added > 0 {
            self.sources.push_back((source, added));
        }
        let most = self.window.after(self.end());
        while self.entries.len() as u64 > most {
            self.evict();
        }
        self.undrawn.advance(self.start);
    }

    fn evict(&mut self) {
        let Some(entry) = self.entries.pop_front() else { return };
        self.uses.pop_front();
        self.undrawn.remove(self.start);
        self.start += 1;
        self.live -= u64::from(entry.source != GONE);
        if let Some(front) = self.sources.front_mut() {
            front.1 -= 1;
            if front.1 == 0 {
                self.sources.pop_front();
            }
        }
    }

    /// Never draws from `source` again: a newer file took its place.
    pub fn supersede(&mut self, source: u32) {
        for (i, entry) in self.entries.iter_mut().enumerate().filter(|(_, e)| e.source == source) {
            entry.source = GONE;
            self.undrawn.remove(self.start + i as u64);
            self.live -= 1;
        }
    }

    /// Draws the next chunk; begins a new pass when this one is over. `None` while there is nothing to draw.
    pub fn draw(&mut self) -> Option<Draw> {
        if self.live == 0 {
            return None;
        }
        if self.undrawn.is_empty() {
            self.passes += 1;
            self.undrawn.clear();
            for (i, _) in self.entries.iter().enumerate().filter(|(_, e)| e.source != GONE) {
                self.undrawn.insert(self.start + i as u64);
            }
        }
        let k = self.key.at(self.draws).below(self.undrawn.len());
        let at = self.undrawn.take(k)?;
        self.draws += 1;
        let i = usize::try_from(at - self.start).ok()?;
        let use_count = self.uses[i];
        self.uses[i] = use_count.wrapping_add(1);
        Some(Draw { at: self.entries[i], use_count, place: at, floor: self.start })
    }

    /// The chunk at a place, while it is in the window and can be drawn.
    pub fn chunk_at(&self, place: u64) -> Option<ChunkRef> {
        let entry = self.entries.get(usize::try_from(place.checked_sub(self.start)?).ok()?)?;
        (entry.source != GONE).then_some(*entry)
    }

    fn end(&self) -> u64 {
        self.start + self.entries.len() as u64
    }

    /// Chunks in the window.
    pub fn chunks(&self) -> u64 {
        self.entries.len() as u64
    }

    /// Chunks in the window that can be drawn.
    pub fn live(&self) -> u64 {
        self.live
    }

    /// Sources of the window that were not superseded, and how many chunks in it are `bad`.
    pub fn census(&self, bad: &HashSet<ChunkRef>) -> [u64; 2] {
        let sources: HashSet<u32> = bad.iter().map(|chunk| chunk.source).collect();
        let (mut start, mut live, mut lost) = (0, 0, 0);
        for (source, chunks) in &self.sources {
            let end = start + usize::try_from(*chunks).unwrap_or(usize::MAX);
            live += u64::from(self.entries.get(start).is_some_and(|entry| entry.source != GONE));
            if sources.contains(source) {
                lost += self.entries.range(start..end).filter(|entry| bad.contains(entry)).count() as u64;
            }
            start = end;
        }
        [live, lost]
    }

    /// Maximum number of chunks that the window holds now.
    pub fn capacity(&self) -> u64 {
        self.window.after(self.end())
    }

    /// Chunks that ever came: those that were admitted, and those that it began with.
    pub fn total(&self) -> u64 {
        self.end()
    }

    /// Passes begun after the first.
    pub fn passes(&self) -> u64 {
        self.passes
    }

    /// The sources of the window, oldest first.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = u32> + '_ {
        self.sources.iter().map(|(source, _)| *source)
    }

    /// What it needs to resume. `size_of` tells how many chunks a source gave when it was admitted.
    pub fn state(&self, size_of: impl Fn(u32) -> u64) -> PoolState {
        let evicted = self.sources.front().map_or(0, |(source, left)| size_of(*source) - left);
        let mut undrawn = Vec::new();
        let mut inside = false;
        for i in 0..self.entries.len() as u64 {
            let here = self.undrawn.contains(self.start + i);
            if undrawn.is_empty() || here != inside {
                if undrawn.is_empty() && here {
                    undrawn.push(0);
                }
                undrawn.push(0);
                inside = here;
            }
            if let Some(run) = undrawn.last_mut() {
                *run += 1;
            }
        }
        let gone = self.entries.iter().enumerate().filter(|(_, e)| e.source == GONE).map(|(i, _)| i as u64);
        PoolState {
            start: self.start,
            evicted_of_first: evicted,
            uses: self.uses.iter().copied().collect(),
            undrawn,
            gone: gone.collect(),
            passes: self.passes,
            draws: self.draws,
        }
    }

    /// Takes a state over an empty pool: `sources` are those of the window, oldest first, with their chunks.
    /// `None` when the state does not fit them.
    pub fn restore(&mut self, state: &PoolState, sources: Vec<(u32, Vec<u32>)>) -> Option<()> {
        let mut fresh = Pool::new(self.key, self.window);
        fresh.start = state.start.checked_sub(state.evicted_of_first)?;
        for (source, chunks) in sources {
            fresh.admit(source, chunks);
        }
        (fresh.start..state.start).for_each(|_| fresh.evict());
        if fresh.start != state.start || fresh.entries.len() != state.uses.len() {
            return None;
        }
        fresh.uses = state.uses.iter().copied().collect();
        fresh.undrawn.clear();
        let mut at = state.start;
        for pair in state.undrawn.chunks(2) {
            at = at.checked_add(pair[0])?;
            let run = pair.get(1).copied().unwrap_or(0);
            if at.checked_add(run)? > fresh.end() {
                return None;
            }
            (at..at + run).for_each(|i| fresh.undrawn.insert(i));
            at += run;
        }
        for offset in &state.gone {
            fresh.entries.get_mut(usize::try_from(*offset).ok()?)?.source = GONE;
            fresh.undrawn.remove(state.start + offset);
            fresh.live -= 1;
        }
        (fresh.passes, fresh.draws) = (state.passes, state.draws);
        *self = fresh;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn pool(size: u64, sources: &[(u32, u32)]) -> Pool {
        let mut pool = Pool::new(Key::new(1, "pool"), size);
        sources.iter().for_each(|&(source, chunks)| pool.admit(source, 0..chunks));
        pool
    }

    #[test]
    fn a_pass_gives_each_chunk_of_the_window_once_and_counts_uses() {
        let mut pool = pool(20, &[(0, 15), (1, 10), (2, 5)]);
        assert_eq!((pool.chunks(), pool.total(), pool.sources().len()), (20, 30, 3));
        for pass in 0..3u16 {
            let drawn: Vec<Draw> = (0..20).map(|_| pool.draw().unwrap()).collect();
            assert!(drawn.iter().all(|d| d.use_count == pass));
            let chunks: BTreeSet<(u32, u32)> = drawn.iter().map(|d| (d.at.source, d.at.chunk)).collect();
            assert_eq!(chunks.len(), 20);
            assert!(chunks.iter().all(|c| c.0 > 0 || c.1 >= 10), "the oldest ten are out: {chunks:?}");
        }
        assert_eq!(pool.passes(), 2);
    }

    #[test]
    fn arrivals_join_the_pass_under_way_and_push_out_the_oldest() {
        let mut pool = pool(10, &[(0, 10)]);
        let first: BTreeSet<u32> = (0..4).map(|_| pool.draw().unwrap().at.chunk).collect();
        pool.admit(1, 0..3);
        let left = pool.undrawn.len();
        let rest: Vec<ChunkRef> = (0..left).map(|_| pool.draw().unwrap().at).collect();
        assert_eq!((pool.passes(), pool.undrawn.len()), (0, 0), "all within the first pass");
        assert_eq!(rest.iter().filter(|c| c.source == 1).count(), 3);
        let old: BTreeSet<u32> = rest.iter().filter(|c| c.source == 0).map(|c| c.chunk).collect();
        let expected: BTreeSet<u32> = (3..10).filter(|c| !first.contains(c)).collect();
        assert_eq!(old, expected, "what was drawn before or pushed out does not come again");
    }

    #[test]
    fn a_superseded_source_is_never_drawn_again() {
        let mut pool = pool(10, &[(0, 3), (1, 3)]);
        pool.supersede(0);
        assert_eq!(pool.live(), 3);
        assert!((0..9).all(|_| pool.draw().unwrap().at.source == 1));
        pool.supersede(1);
        assert_eq!(pool.draw(), None);
        assert_eq!(Pool::new(Key::new(0, ""), 5).draw(), None);
    }

    #[test]
    fn a_census_counts_neither_superseded_sources_nor_their_bad_chunks() {
        let mut pool = pool(8, &[(0, 3), (1, 4), (2, 3)]);
        let bad = [(0, 1), (0, 2), (1, 3), (2, 0), (2, 9)].map(|(source, chunk)| ChunkRef { source, chunk });
        assert_eq!(pool.census(&HashSet::new()), [3, 0]);
        assert_eq!(pool.census(&HashSet::from(bad)), [3, 3], "one of the first source has left the window");
        pool.supersede(0);
        assert_eq!(pool.census(&HashSet::from(bad)), [2, 2]);
    }

    #[test]
    fn draws_are_uniform_over_positions_of_a_pass() {
        let mut seen = BTreeMap::new();
        for seed in 0..6000 {
            let mut pool = Pool::new(Key::new(seed, "p"), 6);
            pool.admit(0, 0..6);
            *seen.entry((pool.draw().unwrap().at.chunk, pool.draw().unwrap().at.chunk)).or_insert(0u32) += 1;
        }
        let expected = 200.0;
        let chi: f64 = seen.values().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
        assert_eq!(seen.len(), 30);
        assert!(chi < 58.3, "29 degrees of freedom, p = 0.001: {chi}");
    }

    #[test]
    fn a_restored_pool_draws_on_as_the_original_would() {
        let sizes = [4u32, 7, 2, 9, 5];
        let mut original = pool(16, &[(0, 4), (1, 7), (2, 2), (3, 9)]);
        for step in 0..60 {
            if step == 20 {
                original.supersede(2);
            }
            if step == 40 {
                original.admit(4, 0..5);
            }
            let state = original.state(|s| u64::from(sizes[s as usize]));
            let text = serde_json::to_string(&state).unwrap();
            let mut copy = Pool::new(Key::new(1, "pool"), 16);
            let sources = original.sources().map(|s| (s, (0..sizes[s as usize]).collect())).collect();
            copy.restore(&serde_json::from_str(&text).unwrap(), sources).unwrap();
            let mut ahead = original.clone();
            let expected: Vec<_> = (0..40).map(|_| ahead.draw()).collect();
            assert_eq!((0..40).map(|_| copy.draw()).collect::<Vec<_>>(), expected, "step {step}");
            original.draw();
        }
    }

    #[test]
    fn a_pool_counts_chunks_that_came_before_it() {
        let mut pool = Pool::new(Key::new(1, "pool"), 3);
        pool.begin(5000);
        pool.admit(0, 0..2);
        pool.admit(1, 0..0);
        pool.admit(2, 0..2);
        assert_eq!((pool.total(), pool.chunks(), pool.capacity(), pool.live()), (5004, 3, 3, 3));
        assert_eq!(pool.sources().collect::<Vec<_>>(), [0, 2], "a source without chunks is none");
        let drawn: BTreeSet<u64> = (0..3).map(|_| pool.draw().unwrap()).map(|draw| draw.place).collect();
        assert_eq!((drawn, pool.draw().unwrap().floor), (BTreeSet::from([5001, 5002, 5003]), 5001));
    }

    #[test]
    fn the_chunk_at_a_place_is_there_until_it_is_pushed_out_or_superseded() {
        let mut pool = pool(5, &[(0, 4), (1, 3)]);
        let at = |pool: &Pool, place| pool.chunk_at(place).map(|chunk| (chunk.source, chunk.chunk));
        assert_eq!(
            [1, 2, 3, 6, 7].map(|place| at(&pool, place)),
            [None, Some((0, 2)), Some((0, 3)), Some((1, 2)), None]
        );
        pool.supersede(1);
        assert_eq!([2, 3, 4, 6].map(|place| at(&pool, place)), [Some((0, 2)), Some((0, 3)), None, None]);
        assert_eq!((pool.live(), pool.undrawn.len()), (2, 2));
        pool.admit(2, 0..4);
        assert_eq!((pool.live(), pool.undrawn.len()), (4, 4), "the superseded one that is left is neither");
    }

    #[test]
    fn a_state_that_does_not_fit_its_sources_changes_nothing() {
        let mut original = pool(4, &[(0, 3), (1, 3)]);
        original.draw();
        original.supersede(0);
        let state = original.state(|_| 3);
        let sources = || vec![(0, vec![0, 1, 2]), (1, vec![0, 1, 2])];
        let fits = |state: &PoolState, sources| {
            let mut copy = Pool::new(Key::new(1, "pool"), 4);
            let fits = copy.restore(state, sources).is_some();
            assert_eq!(copy.total(), if fits { 6 } else { 0 });
            fits.then_some(copy)
        };
        let copy = fits(&state, sources()).unwrap();
        assert_eq!((copy.live(), copy.undrawn.len(), copy.passes()), (3, original.undrawn.len(), 0));
        assert_eq!(copy.state(|_| 3), state);
        assert!(fits(&state, sources()[..1].to_vec()).is_none() && fits(&state, sources()[1..].to_vec()).is_none());
        for wrong in [
            PoolState { uses: vec![0; 3], ..state.clone() },
            PoolState { start: 1, ..state.clone() },
            PoolState { evicted_of_first: 3, ..state.clone() },
            PoolState { undrawn: vec![0, 5], ..state.clone() },
            PoolState { undrawn: vec![4, 1], ..state.clone() },
            PoolState { undrawn: vec![1, u64::MAX], ..state.clone() },
            PoolState { undrawn: vec![u64::MAX, 1], ..state.clone() },
            PoolState { gone: vec![4], ..state.clone() },
        ] {
            assert!(fits(&wrong, sources()).is_none(), "{wrong:?}");
        }
        assert!(fits(&PoolState { undrawn: vec![0, 4], gone: vec![], ..state.clone() }, sources()).is_some());
        let copy = fits(&PoolState { undrawn: vec![0, 4], gone: vec![1], ..state }, sources()).unwrap();
        let drawn = [2, 3, 4, 5].map(|place| copy.undrawn.contains(place));
        assert_eq!(drawn, [true, false, true, true], "what is gone is not drawn, whatever else the state says");
    }
}
