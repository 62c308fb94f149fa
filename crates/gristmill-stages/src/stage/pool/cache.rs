//! The position cache as plan: which uses of which chunks have their positions kept, and how many more may be.
//! Numbers only; whose bytes lie where is the caller's business. Every change can be taken back.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// How a cache is configured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CacheRules {
    /// Positions in all.
    pub size: u64,
    /// Chunks of the pool.
    pub window: u64,
    /// Maximum number of positions of one chunk.
    pub prefetch: u32,
    /// Draws from a miss to the first draw that may hit what it kept.
    pub lookahead: u64,
    /// Whether quotas follow the lc0 trainer's smoothing, which makes them nearly equal.
    pub compat: bool,
}

/// Uses `first..first + left` of a chunk, kept since a miss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The use that comes next.
    pub first: u16,
    /// How many uses are kept.
    pub left: u32,
    /// The first draw that may hit them.
    pub from: u64,
}

/// What a cache finds for a use of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    Hit,
    Miss,
    /// Kept, but by a miss too shortly before: what is kept no longer fits the use count.
    Early,
}

/// Enough to take a change back.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Change {
    Kept { place: u64, old: Option<Kept> },
    Quota { mean: f64, remainder: f64 },
}

/// Positions that were kept and will not be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Place of the chunk.
    pub place: u64,
    /// First use.
    pub first: u16,
    /// How many.
    pub left: u32,
}

impl Lost {
    /// Each of them: place of the chunk and number of the use.
    pub fn rows(self) -> impl Iterator<Item = (u64, u16)> {
        (0..self.left).map(move |ahead| (self.place, self.first.wrapping_add(ahead as u16)))
    }
}

#[derive(Debug, Clone)]
pub(super) struct Cache {
    rules: CacheRules,
    kept: BTreeMap<u64, Kept>,
    held: u64,
    /// Running mean of the chance of the chunks that missed.
    mean: f64,
    /// Part of a position that the last quotas were short of.
    remainder: f64,
}

/// A cache's part of a state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheState {
    /// What is kept, by place of the chunk.
    pub kept: Vec<(u64, Kept)>,
    /// Running mean of chances.
    pub mean: f64,
    /// Part of a position that the last quotas were short of.
    pub remainder: f64,
}

impl Cache {
    pub(crate) fn new(rules: CacheRules) -> Self {
        Cache { rules, kept: BTreeMap::new(), held: 0, mean: 1.0, remainder: 0.0 }
    }

    /// Positions kept now.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    fn put(&mut self, place: u64, kept: Option<Kept>) -> Option<Kept> {
        let old = match kept {
            Some(kept) => self.kept.insert(place, kept),
            None => self.kept.remove(&place),
        };
        self.held += kept.map_or(0, |kept| u64::from(kept.left));
        self.held -= old.map_or(0, |old| u64::from(old.left));
        old
    }

    /// Looks a use of a chunk up, and takes it out when it is there. What is kept in vain is added to `lost`.
    pub(super) fn take(&mut self, place: u64, draw: u64, log: &mut Vec<Change>, lost: &mut Vec<Lost>) -> Found {
        let Some(kept) = self.kept.get(&place).copied() else { return Found::Miss };
        if draw < kept.from {
            self.put(place, None);
            log.push(Change::Kept { place, old: Some(kept) });
            lost.push(Lost { place, first: kept.first, left: kept.left });
            return Found::Early;
        }
        let rest = Kept { first: kept.first.wrapping_add(1), left: kept.left - 1, ..kept };
        self.put(place, (rest.left > 0).then_some(rest));
        log.push(Change::Kept { place, old: Some(kept) });
        Found::Hit
    }

    /// Reserves room for the uses of a chunk from `first` on, after a miss of a chunk that had this chance; returns for
    /// how many.
    pub(super) fn keep(&mut self, place: u64, first: u16, draw: u64, chance: f64, log: &mut Vec<Change>) -> u32 {
        log.push(Change::Quota { mean: self.mean, remainder: self.remainder });
        let new = if self.rules.compat { 0.99 } else { 0.01 };
        self.mean = (1.0 - new) * self.mean + new * chance;
        let share = chance * self.rules.size as f64 / self.rules.window as f64 / self.mean + self.remainder;
        let share = if share.is_finite() { share } else { 0.0 };
        self.remainder = share.fract();
        let room = (self.rules.size - self.held.min(self.rules.size)).min(u64::from(self.rules.prefetch));
        let left = u32::try_from((share as u64).min(room)).unwrap_or(0);
        if left > 0 {
            let old = self.put(place, Some(Kept { first, left, from: draw.saturating_add(self.rules.lookahead) }));
            log.push(Change::Kept { place, old });
        }
        left
    }

    /// Loses what is kept of chunks that have left the window. Returns how many of them could not be hit yet.
    pub(super) fn lose_below(&mut self, floor: u64, draw: u64, log: &mut Vec<Change>, lost: &mut Vec<Lost>) -> u64 {
        let mut unused = 0;
        while let Some((&place, &kept)) = self.kept.first_key_value().filter(|(place, _)| **place < floor) {
            self.put(place, None);
            log.push(Change::Kept { place, old: Some(kept) });
            lost.push(Lost { place, first: kept.first, left: kept.left });
            unused += u64::from(draw < kept.from);
        }
        unused
    }

    pub(super) fn undo(&mut self, change: Change) {
        match change {
            Change::Kept { place, old } => _ = self.put(place, old),
            Change::Quota { mean, remainder } => (self.mean, self.remainder) = (mean, remainder),
        }
    }

    pub(super) fn state(&self) -> CacheState {
        CacheState {
            kept: self.kept.iter().map(|(place, kept)| (*place, *kept)).collect(),
            mean: self.mean,
            remainder: self.remainder,
        }
    }

    /// Resumes from a state; `None` when it holds more than this cache may.
    pub(super) fn restore(&mut self, state: &CacheState) -> Option<()> {
        *self = Cache { mean: state.mean, remainder: state.remainder, ..Cache::new(self.rules) };
        for (place, kept) in &state.kept {
            let fits = u64::from(kept.left) <= self.rules.size.saturating_sub(self.held);
            if !fits || kept.left == 0 || self.put(*place, Some(*kept)).is_some() {
                return None;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: CacheRules = CacheRules { size: 300, window: 100, prefetch: 8, lookahead: 5, compat: false };

    #[test]
    fn what_a_miss_keeps_is_hit_in_the_order_of_uses_and_then_gone() {
        let (mut cache, mut log, mut lost) = (Cache::new(RULES), Vec::new(), Vec::new());
        assert_eq!(cache.keep(7, 1, 100, 1.0, &mut log), 3);
        assert_eq!(cache.held(), 3);
        assert_eq!(cache.take(8, 105, &mut log, &mut lost), Found::Miss);
        for left in [2, 1, 0] {
            assert_eq!((cache.take(7, 105, &mut log, &mut lost), cache.held()), (Found::Hit, left));
        }
        assert_eq!(cache.take(7, 106, &mut log, &mut lost), Found::Miss);
        assert!(lost.is_empty());
    }

    #[test]
    fn a_draw_within_the_lookahead_spoils_what_is_kept() {
        let (mut cache, mut log, mut lost) = (Cache::new(RULES), Vec::new(), Vec::new());
        cache.keep(7, 1, 100, 1.0, &mut log);
        assert_eq!(cache.take(7, 104, &mut log, &mut lost), Found::Early);
        assert_eq!((cache.held(), &lost[..]), (0, &[Lost { place: 7, first: 1, left: 3 }][..]));
        assert_eq!(cache.take(7, 110, &mut log, &mut lost), Found::Miss);
    }

    #[test]
    fn chunks_that_leave_the_window_lose_what_was_kept() {
        let (mut cache, mut log, mut lost) = (Cache::new(RULES), Vec::new(), Vec::new());
        (5..9).for_each(|place| _ = cache.keep(place, 1, 100 + place, 1.0, &mut log));
        assert_eq!(cache.lose_below(7, 110, &mut log, &mut lost), 1, "the second could not be hit before draw 111");
        assert_eq!(lost.iter().map(|lost| lost.place).collect::<Vec<_>>(), [5, 6]);
        assert_eq!(cache.held(), 6);
    }

    #[test]
    fn what_is_lost_begins_with_the_use_that_comes_next() {
        let (mut cache, mut log, mut lost) = (Cache::new(RULES), Vec::new(), Vec::new());
        assert_eq!(cache.keep(5, u16::MAX - 1, 100, 1.0, &mut log), 3);
        assert_eq!(cache.take(5, 105, &mut log, &mut lost), Found::Hit);
        cache.lose_below(6, 110, &mut log, &mut lost);
        assert_eq!(lost, [Lost { place: 5, first: u16::MAX, left: 2 }]);
        assert_eq!(lost[0].rows().collect::<Vec<_>>(), [(5, u16::MAX), (5, 0)], "numbers of uses start over");
    }

    /// By the document a chunk's quota follows its chance; with the trainer's smoothing all are nearly the same.
    #[test]
    fn quotas_follow_the_chance_or_hardly_do() {
        let kept = |compat| {
            let mut cache = Cache::new(CacheRules { size: 4_000_000, window: 1_000_000, compat, ..RULES });
            let mut sums = [0u32; 2];
            for place in 0..4000u64 {
                let i = (place % 2) as usize;
                let kept = cache.keep(place, 1, place, [0.25, 0.75][i], &mut Vec::new());
                sums[i] += if place < 1000 { 0 } else { kept };
            }
            sums.map(|sum| f64::from(sum) / 1500.0)
        };
        let [rare, often] = kept(false);
        assert!((rare - 2.0).abs() < 0.1 && (often - 6.0).abs() < 0.1, "4 on the mean: {rare} {often}");
        let [rare, often] = kept(true);
        assert!((rare - 4.0).abs() < 0.1 && (often - 4.0).abs() < 0.1, "{rare} {often}");
    }

    #[test]
    fn it_never_holds_more_than_its_size() {
        let mut cache = Cache::new(CacheRules { size: 20, window: 2, ..RULES });
        let kept: Vec<u32> = (0..5).map(|place| cache.keep(place, 1, place, 1.0, &mut Vec::new())).collect();
        assert_eq!((kept, cache.held()), (vec![8, 8, 4, 0, 0], 20));
        let mut none = Cache::new(CacheRules { size: 0, ..RULES });
        assert_eq!(none.keep(1, 1, 1, 1.0, &mut Vec::new()), 0);
        assert_eq!(none.keep(1, 1, 1, 0.0, &mut Vec::new()), 0, "no chance, no quota");
    }

    #[test]
    fn changes_are_taken_back_and_states_restored() {
        let (mut cache, mut log, mut lost) = (Cache::new(RULES), Vec::new(), Vec::new());
        let mut states = vec![(0, cache.state())];
        for draw in 0..60u64 {
            let place = draw * 7 % 12;
            if cache.take(place, draw, &mut log, &mut lost) != Found::Hit {
                cache.keep(place, draw as u16, draw, 0.5, &mut log);
            }
            cache.lose_below(draw / 10, draw, &mut log, &mut lost);
            states.push((log.len(), cache.state()));
        }
        for (len, state) in &states {
            let mut back = cache.clone();
            log[*len..].iter().rev().for_each(|change| back.undo(*change));
            assert_eq!(back.state(), *state);
            let mut restored = Cache::new(RULES);
            restored.restore(state).unwrap();
            assert_eq!((restored.held(), restored.state()), (back.held(), state.clone()));
        }
        let mut small = Cache::new(CacheRules { size: 1, ..RULES });
        assert!(states.iter().any(|(_, state)| small.restore(state).is_none()));
    }
}
