//! A set of chunk ordinals within a sliding range: add at the end, forget at the front, take the k-th.
//! One bit per chunk; `take` scans block counts, 1 220 of them for a window of five million.

use std::collections::VecDeque;

const WORDS: usize = 64;
const BITS: u64 = 64 * WORDS as u64;

#[derive(Debug, Clone)]
struct Block {
    words: [u64; WORDS],
    count: u32,
}

/// The ordinals that are still to be drawn in this pass.
#[derive(Debug, Clone, Default)]
pub struct Undrawn {
    /// Ordinal of the first bit; a multiple of [`BITS`].
    base: u64,
    blocks: VecDeque<Block>,
    len: u64,
}

impl Undrawn {
    /// How many are in the set.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn split(&self, ordinal: u64) -> Option<(usize, usize, u64)> {
        let at = ordinal.checked_sub(self.base)?;
        let block = usize::try_from(at / BITS).ok().filter(|b| *b < self.blocks.len())?;
        Some((block, (at % BITS / 64) as usize, 1 << (at % 64)))
    }

    /// Adds an ordinal; it must not lie below the range. Adding twice is the same as once.
    pub fn insert(&mut self, ordinal: u64) {
        if self.blocks.is_empty() {
            self.base = ordinal / BITS * BITS;
        }
        debug_assert!(ordinal >= self.base);
        while self.base + self.blocks.len() as u64 * BITS <= ordinal {
            self.blocks.push_back(Block { words: [0; WORDS], count: 0 });
        }
        if let Some((block, word, bit)) = self.split(ordinal) {
            let block = &mut self.blocks[block];
            if block.words[word] & bit == 0 {
                block.words[word] |= bit;
                block.count += 1;
                self.len += 1;
            }
        }
    }

    /// Whether the ordinal is in the set.
    pub fn contains(&self, ordinal: u64) -> bool {
        self.split(ordinal).is_some_and(|(block, word, bit)| self.blocks[block].words[word] & bit != 0)
    }

    /// Removes an ordinal, if it is there.
    pub fn remove(&mut self, ordinal: u64) {
        if let Some((block, word, bit)) = self.split(ordinal) {
            let block = &mut self.blocks[block];
            if block.words[word] & bit != 0 {
                block.words[word] &= !bit;
                block.count -= 1;
                self.len -= 1;
            }
        }
    }

    /// Forgets the blocks that end at or below `ordinal`, and every ordinal that is still in them.
    pub fn advance(&mut self, ordinal: u64) {
        while !self.blocks.is_empty() && self.base + BITS <= ordinal {
            if let Some(block) = self.blocks.pop_front() {
                self.len -= u64::from(block.count);
            }
            self.base += BITS;
        }
    }

    /// Removes and returns the `k`-th smallest ordinal, counted from 0; `None` beyond the end.
    pub fn take(&mut self, k: u64) -> Option<u64> {
        let mut left = k;
        let mut at = 0;
        while left >= u64::from(self.blocks.get(at)?.count) {
            left -= u64::from(self.blocks[at].count);
            at += 1;
        }
        let block = &mut self.blocks[at];
        for (i, word) in block.words.iter_mut().enumerate() {
            let ones = u64::from(word.count_ones());
            if left >= ones {
                left -= ones;
                continue;
            }
            let mut rest = *word;
            (0..left).for_each(|_| rest &= rest - 1);
            let bit = u64::from(rest.trailing_zeros());
            *word &= !(1 << bit);
            block.count -= 1;
            self.len -= 1;
            return Some(self.base + at as u64 * BITS + i as u64 * 64 + bit);
        }
        None
    }

    /// Removes everything.
    pub fn clear(&mut self) {
        *self = Undrawn::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn it_takes_memory_for_its_range_alone() {
        let mut set = Undrawn::default();
        let first = 1000 * BITS + 5;
        set.insert(first);
        assert_eq!((set.base, set.blocks.len()), (1000 * BITS, 1), "nothing for what lies before the first");
        set.insert(first + BITS);
        set.advance(first + BITS - 6);
        assert_eq!((set.len(), set.blocks.len()), (2, 2), "the first block is not yet passed as a whole");
        set.advance(first + BITS - 5);
        assert_eq!((set.len(), set.blocks.len(), set.take(0)), (1, 1, Some(first + BITS)), "it is, with what it had");
    }

    proptest! {
        /// Against a plain set: inserts at the end, takes of the k-th, removals, a moving front.
        #[test]
        fn behaves_as_a_sorted_set(start in 0u64..20_000, steps in proptest::collection::vec((0u8..4, 0u64..10_000), 1..300)) {
            let (mut set, mut model) = (Undrawn::default(), BTreeSet::new());
            let (mut front, mut end) = (start, start);
            for (what, n) in steps {
                match what {
                    0 => for _ in 0..n % 3000 {
                        set.insert(end);
                        model.insert(end);
                        end += 1;
                    },
                    1 if !model.is_empty() => {
                        let k = n % model.len() as u64;
                        let expected = model.iter().nth(k as usize).copied();
                        prop_assert_eq!(set.take(k), expected);
                        model.remove(&expected.unwrap());
                    }
                    2 => {
                        set.remove(front + n);
                        model.remove(&(front + n));
                    }
                    _ => {
                        let to = (front + n % 5000).min(end);
                        (front..to).for_each(|i| { set.remove(i); model.remove(&i); });
                        set.advance(to);
                        front = to;
                    }
                }
                prop_assert_eq!(set.len(), model.len() as u64);
                prop_assert_eq!(set.contains(front), model.contains(&front));
                prop_assert_eq!(set.take(model.len() as u64), None);
            }
        }
    }
}
