//! Drawn chunks -> which of them are handed out: Hanse sampling, use counts, and what the position cache keeps.
//! A fold in the order of draws over weights that were found elsewhere; what it decided can be taken back draw by draw.

use std::collections::VecDeque;

use gristmill_runtime::runtime::seed::Key;
use serde::{Deserialize, Serialize};

use super::cache::{self, Cache, CacheRules, CacheState, Found, Lost};
use super::places::Places;

/// Draws in a row that may be rejected before it is said that nothing will ever be taken.
const HOPELESS: u64 = 1 << 20;

/// The chance of a drawn chunk to be handed out.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Chance {
    /// Every chunk is handed out.
    Always,
    /// `min(1, frames / threshold)^gamma`; the weight of a chunk is its number of frames.
    Length {
        /// Frames of a chunk that is always taken.
        threshold: u64,
        /// Exponent.
        gamma: f64,
    },
    /// `(weight / largest weight drawn so far)^gamma`.
    Weight {
        /// Exponent.
        gamma: f64,
    },
}

impl Chance {
    /// The chance of a chunk of this weight, beside the largest.
    pub fn of(self, weight: f32, largest: f32) -> f64 {
        let (share, gamma) = match self {
            Chance::Always => return 1.0,
            Chance::Length { threshold, gamma } => ((f64::from(weight) / threshold as f64).min(1.0), gamma),
            Chance::Weight { .. } if largest <= 0.0 => return 1.0,
            Chance::Weight { gamma } => (f64::from(weight) / f64::from(largest), gamma),
        };
        if gamma == 1.0 { share } else { share.powf(gamma) }
    }

    /// Whether it depends on what is in the chunk.
    pub fn needs_weight(self) -> bool {
        self != Chance::Always
    }
}

/// One draw that is to be decided on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the draw.
    pub draw: u64,
    /// Place of the chunk in the pool.
    pub place: u64,
    /// First place of the pool's window at this draw.
    pub floor: u64,
}

/// What becomes of a draw.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Not handed out this time; its use count is untouched.
    Rejected,
    /// As [`Decision::Rejected`], after so long a run of rejections that none will ever be taken.
    Hopeless,
    /// Handed out.
    Taken {
        /// How often it was handed out before.
        use_count: u16,
        /// Whether the cache holds the position of this use.
        cached: bool,
        /// How many of the next uses the cache is to keep.
        keep: u32,
        /// What the cache held in vain.
        lost: Vec<Lost>,
    },
}

/// Counts since the start.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[allow(missing_docs, reason = "named as the metrics are")]
pub struct AcceptCounts {
    pub taken: u64,
    pub rejected: u64,
    pub cache_hits: u64,
    pub cache_misses: u64,
    pub mismatched_use_counts: u64,
    pub newly_cached: u64,
    pub dropped_cache_positions: u64,
    pub chunk_source_not_found: u64,
}

/// What is known of a chunk's contents: facts, which change how fast a decision is made and never which.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Contents {
    /// Frames; 0 where not known.
    pub frames: u32,
    /// Weight.
    pub weight: f32,
}

#[derive(Debug, Clone)]
struct Standing {
    largest: f32,
    /// The draw after the last that was taken.
    since: u64,
    uses: Places<u16>,
    cache: Option<Cache>,
}

#[derive(Debug, Clone, Copy)]
enum Change {
    Used(u64),
    Largest(f32),
    Since(u64),
    Cache(cache::Change),
}

/// Decides on the draws of a pool, in their order.
#[derive(Debug, Clone)]
pub struct Accept {
    key: Key,
    chance: Chance,
    prefetch: u32,
    standing: Standing,
    known: Places<Option<Contents>>,
    /// Changes with the draws that made them.
    log: VecDeque<(u64, Change)>,
    /// Where the window began, from which draw on.
    floors: VecDeque<(u64, u64)>,
    counts: AcceptCounts,
}

/// Where an [`Accept`] stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptState {
    /// Largest weight drawn so far.
    pub largest: f32,
    /// The draw after the last that was taken.
    pub since: u64,
    /// Place of the first use count.
    pub start: u64,
    /// How often each chunk was handed out.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub uses: Vec<u16>,
    /// The position cache, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache: Option<CacheState>,
}

impl Accept {
    /// Decides by `chance`, with draws of `key`, and plans a cache where one has rules.
    pub fn new(key: Key, chance: Chance, cache: Option<CacheRules>) -> Self {
        let standing = Standing { largest: 0.0, since: 0, uses: Places::new(0), cache: cache.map(Cache::new) };
        Accept {
            key: key.of(b"accept", 0),
            chance,
            prefetch: cache.map_or(0, |rules| rules.prefetch),
            standing,
            known: Places::new(None),
            log: VecDeque::new(),
            floors: VecDeque::new(),
            counts: AcceptCounts::default(),
        }
    }

    /// What is known of the contents of a chunk; a decision that [needs](Chance::needs_weight) the weight waits for it.
    pub fn known(&self, place: u64) -> Option<Contents> {
        self.known.get(place)
    }

    /// Remembers what was found in a chunk; whether nothing was known of it.
    pub fn learn(&mut self, place: u64, contents: Contents) -> bool {
        let is_new = self.known(place).is_none();
        self.known.set(place, Some(contents));
        is_new
    }

    /// Whether the decision on a chunk has to wait until its weight is known.
    pub fn waits_for(&self, place: u64) -> bool {
        self.chance.needs_weight() && self.known(place).is_none()
    }

    /// Decides on the next draw. Its weight must be known, if it is needed.
    pub fn decide(&mut self, candidate: Candidate) -> Decision {
        let Candidate { draw, place, floor } = candidate;
        if self.floors.back().is_none_or(|(_, last)| *last < floor) {
            self.floors.push_back((draw, floor));
        }
        let weight = self.known(place).map_or(0.0, |contents| contents.weight);
        if weight > self.standing.largest {
            self.log.push_back((draw, Change::Largest(self.standing.largest)));
            self.standing.largest = weight;
        }
        let chance = self.chance.of(weight, self.standing.largest);
        if chance < 1.0 && self.key.at(draw).unit() >= chance {
            self.counts.rejected += 1;
            let in_a_row = (draw + 1).saturating_sub(self.standing.since);
            return if in_a_row >= HOPELESS { Decision::Hopeless } else { Decision::Rejected };
        }
        self.counts.taken += 1;
        let use_count = self.standing.uses.get(place);
        let next = use_count.wrapping_add(1);
        self.standing.uses.set(place, next);
        self.log.push_back((draw, Change::Used(place)));
        self.log.push_back((draw, Change::Since(self.standing.since)));
        self.standing.since = draw + 1;
        let Some(cache) = &mut self.standing.cache else {
            return Decision::Taken { use_count, cached: false, keep: 0, lost: Vec::new() };
        };
        let (mut changes, mut lost, mut keep) = (Vec::new(), Vec::new(), 0);
        self.counts.chunk_source_not_found += cache.lose_below(floor, draw, &mut changes, &mut lost);
        let found = cache.take(place, draw, &mut changes, &mut lost);
        if found == Found::Hit {
            self.counts.cache_hits += 1;
        } else {
            keep = cache.keep(place, next, draw, chance, &mut changes);
            self.counts.cache_misses += 1;
            self.counts.mismatched_use_counts += u64::from(found == Found::Early);
            self.counts.newly_cached += u64::from(keep);
            self.counts.dropped_cache_positions += u64::from(self.prefetch - keep);
        }
        self.log.extend(changes.into_iter().map(|change| (draw, Change::Cache(change))));
        Decision::Taken { use_count, cached: found == Found::Hit, keep, lost }
    }

    /// Counts since the start.
    pub fn counts(&self) -> AcceptCounts {
        self.counts
    }

    /// Whether there is a cache.
    pub fn caches(&self) -> bool {
        self.standing.cache.is_some()
    }

    /// Positions that the cache holds.
    pub fn cached(&self) -> u64 {
        self.standing.cache.as_ref().map_or(0, Cache::held)
    }

    /// Forgets how to take back what was decided before `draw`.
    pub fn forget_before(&mut self, draw: u64) {
        while self.log.front().is_some_and(|(at, _)| *at < draw) {
            self.log.pop_front();
        }
        while self.floors.get(1).is_some_and(|(at, _)| *at <= draw) {
            self.floors.pop_front();
        }
        if let Some((_, floor)) = self.floors.front() {
            self.standing.uses.forget_below(*floor);
            self.known.forget_below(*floor);
        }
    }

    /// Where it stood before it decided on `draw`, which must not have been forgotten.
    pub fn state_before(&self, draw: u64) -> AcceptState {
        let mut standing = self.standing.clone();
        for (_, change) in self.log.iter().rev().take_while(|(at, _)| *at >= draw) {
            match *change {
                Change::Used(place) => standing.uses.set(place, standing.uses.get(place).wrapping_sub(1)),
                Change::Largest(old) => standing.largest = old,
                Change::Since(old) => standing.since = old,
                Change::Cache(change) => standing.cache.iter_mut().for_each(|cache| cache.undo(change)),
            }
        }
        let (start, uses) = standing.uses.parts();
        let cache = standing.cache.as_ref().map(Cache::state);
        AcceptState { largest: standing.largest, since: standing.since, start, uses, cache }
    }

    /// Resumes from a state. `None` when it does not fit.
    pub fn restore(&mut self, state: &AcceptState) -> Option<()> {
        let standing = &mut self.standing;
        match (&mut standing.cache, &state.cache) {
            (Some(cache), Some(saved)) => cache.restore(saved)?,
            (None, None) => {}
            _ => return None,
        }
        standing.uses = Places::from_parts(state.start, state.uses.clone(), 0);
        self.known = Places::from_parts(state.start, Vec::new(), None);
        (standing.largest, standing.since) = (state.largest, state.since);
        Some(())
    }
}

#[cfg(test)]
mod tests;
