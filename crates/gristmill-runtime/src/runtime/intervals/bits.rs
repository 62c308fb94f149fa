//! Rows as bits with sums beside them: 1.13 bits for each row between the first and the last, whatever pattern they make.
//! A row is counted in constant time and found by a short bisection.

/// Words that have one sum.
const BLOCK: usize = 8;

/// Rows of a word and of a block.
const WORD: u64 = 64;
const BLOCK_ROWS: u64 = WORD * BLOCK as u64;

/// Rows that are in, from one noted block to the next.
const NOTED: u64 = 4096;

#[derive(Debug, Clone, Default)]
pub(super) struct Bits {
    /// The word that `words` begins with: a multiple of [`BLOCK`].
    base: u64,
    words: Vec<u64>,
    /// Rows in before each block.
    before: Vec<u64>,
    /// The block that every [`NOTED`]th row is in.
    noted: Vec<u32>,
    len: u64,
    ranges: usize,
}

impl Bits {
    /// No rows, of which the first will be `first` or after it.
    pub(super) fn from(first: u64) -> Self {
        Bits { base: first / BLOCK_ROWS * BLOCK as u64, ..Bits::default() }
    }

    /// Bytes that rows from `first` to `end` take.
    pub(super) fn bytes(first: u64, end: u64) -> u64 {
        (end / BLOCK_ROWS + 1 - first / BLOCK_ROWS) * (8 * BLOCK as u64 + 8)
    }

    /// Adds rows after those that are in.
    pub(super) fn push(&mut self, start: u64, end: u64) {
        let mut at = start;
        while at < end {
            let word = at / WORD;
            while self.base + self.words.len() as u64 <= word {
                self.append(0);
            }
            let behind = end.min((word + 1) * WORD);
            let mask = (u64::MAX >> (WORD - (behind - at))) << (at % WORD);
            self.set(mask);
            at = behind;
        }
    }

    /// Adds a word after the last.
    pub(super) fn append(&mut self, rows: u64) {
        if self.words.len().is_multiple_of(BLOCK) {
            self.before.push(self.len);
        }
        self.words.push(0);
        self.set(rows);
    }

    /// Sets bits of the last word, after those that are set in it.
    fn set(&mut self, rows: u64) {
        let Some((last, rest)) = self.words.split_last_mut() else { return };
        let carried = rest.last().map_or(0, |word| word >> 63);
        let begin = |word: u64| (word & !(word << 1 | carried)).count_ones() as usize;
        let begun = begin(*last);
        *last |= rows;
        self.ranges += begin(*last);
        self.ranges -= begun;
        self.len += u64::from(rows.count_ones());
        let block = (self.before.len() - 1) as u32;
        while (self.noted.len() as u64) * NOTED < self.len {
            self.noted.push(block);
        }
    }

    pub(super) fn len(&self) -> u64 {
        self.len
    }

    pub(super) fn count(&self) -> usize {
        self.ranges
    }

    /// Number of the first word, and of the one after the last.
    pub(super) fn span(&self) -> (u64, u64) {
        (self.base, self.base + self.words.len() as u64)
    }

    /// A word by its number; empty beyond those that there are.
    pub(super) fn word(&self, number: u64) -> u64 {
        let at = number.checked_sub(self.base).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| self.words.get(at)).copied().unwrap_or(0)
    }

    /// The row after the last.
    pub(super) fn end(&self) -> Option<u64> {
        let (at, word) = self.words.iter().enumerate().rev().find(|(_, word)| **word != 0)?;
        Some((self.base + at as u64 + 1) * WORD - u64::from(word.leading_zeros()))
    }

    pub(super) fn row(&self, i: u64) -> u64 {
        let note = (i / NOTED) as usize;
        let (low, high) =
            (self.noted[note] as usize, self.noted.get(note + 1).map_or(self.before.len(), |n| *n as usize + 1));
        let block = low + self.before[low..high].partition_point(|before| *before <= i) - 1;
        let mut left = (i - self.before[block]) as u32;
        for (at, word) in self.words.iter().enumerate().skip(block * BLOCK) {
            if left < word.count_ones() {
                return (self.base + at as u64) * WORD + u64::from(nth(*word, left));
            }
            left -= word.count_ones();
        }
        (self.base + self.words.len() as u64) * WORD
    }

    pub(super) fn rank(&self, row: u64) -> u64 {
        let Some(at) = (row / WORD).checked_sub(self.base) else { return 0 };
        if at >= self.words.len() as u64 {
            return self.len;
        }
        let (at, below) = (at as usize, (1u64 << (row % WORD)) - 1);
        let block = at / BLOCK;
        let whole: u32 = self.words[block * BLOCK..at].iter().map(|word| word.count_ones()).sum();
        self.before[block] + u64::from(whole + (self.words[at] & below).count_ones())
    }

    /// The ranges that the rows make.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let mut at = 0;
        let end = self.words.len() as u64 * WORD;
        std::iter::from_fn(move || {
            let start = self.next(at, 0).filter(|start| *start < end)?;
            at = self.next(start, u64::MAX).unwrap_or(end);
            Some((self.base * WORD + start, self.base * WORD + at))
        })
    }

    /// The first bit from `at` on that is set, where `flip` is 0; that is not, where it is all ones. Counted from the first
    /// word.
    fn next(&self, at: u64, flip: u64) -> Option<u64> {
        let first = (at / WORD) as usize;
        let mut word = (self.words.get(first)? ^ flip) & (u64::MAX << (at % WORD));
        let mut number = first;
        while word == 0 {
            number += 1;
            word = self.words.get(number)? ^ flip;
        }
        Some(number as u64 * WORD + u64::from(word.trailing_zeros()))
    }
}

/// Place of set bit `n`, from 0. `n` must be below the number of set bits.
fn nth(word: u64, n: u32) -> u32 {
    let (mut left, mut at) = (n, 0);
    let mut rest = word;
    loop {
        let ones = (rest & 0xFF).count_ones();
        if left < ones {
            break;
        }
        left -= ones;
        rest >>= 8;
        at += 8;
    }
    for _ in 0..left {
        rest &= rest - 1;
    }
    at + rest.trailing_zeros()
}
