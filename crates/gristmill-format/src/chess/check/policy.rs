//! The probabilities of one record -> their sum, which moves they mark as legal, and what is wrong with that.
//! Most entries are -1: whole runs of them are passed over at once.

use super::{Rule, Tell};
use crate::chess::frame::Frame;
use crate::chess::policy;
use crate::chess::record::{POLICY, at};

/// How far the sum of a policy may be from 1.
const SUM_TOLERANCE: f64 = 0.01;

/// A set of policy indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::chess) struct Indices([u64; POLICY.div_ceil(64)]);

impl Indices {
    pub(in crate::chess) const NONE: Indices = Indices([0; POLICY.div_ceil(64)]);

    pub(in crate::chess) fn add(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }

    pub(in crate::chess) fn has(&self, i: usize) -> bool {
        self.0.get(i / 64).is_some_and(|word| word >> (i % 64) & 1 != 0)
    }

    /// How many indices are in one of the two only.
    pub(super) fn distance(&self, other: &Indices) -> u32 {
        self.0.iter().zip(&other.0).map(|(here, there)| (here ^ there).count_ones()).sum()
    }

    /// The first index that is here and not in `other`, and how many there are.
    fn beyond(&self, other: &Indices) -> Option<(usize, u32)> {
        let mut left = self.0.iter().zip(&other.0).map(|(here, there)| here & !there).enumerate();
        let (word, bits) = left.find(|(_, bits)| *bits != 0)?;
        Some((
            64 * word + bits.trailing_zeros() as usize,
            bits.count_ones() + left.map(|(_, b)| b.count_ones()).sum::<u32>(),
        ))
    }
}

/// What the probabilities say.
pub(super) struct Marks {
    /// Entries of 0 and more.
    pub(super) legal: Indices,
    /// Entries above 0.
    positive: Indices,
}

/// Entries that are checked together, and parts of them.
const RUN: usize = 64;
const PART: usize = 8;

/// Bits of -1.
const ILLEGAL: u32 = (-1.0f32).to_bits();

fn words(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word))
}

fn all_illegal(bytes: &[u8]) -> bool {
    words(bytes).fold(0, |other, word| other | word ^ ILLEGAL) == 0
}

/// Gives every probability of `frame` that is not exactly -1 to `take`, with its index.
#[inline]
pub(in crate::chess) fn each_marked(frame: Frame<'_>, mut take: impl FnMut(usize, f32)) {
    for (run, bytes) in frame.probability_bytes().chunks(4 * RUN).enumerate() {
        if all_illegal(bytes) {
            continue;
        }
        for (part, bytes) in bytes.chunks(4 * PART).enumerate() {
            if all_illegal(bytes) {
                continue;
            }
            let first = run * RUN + part * PART;
            let mut left = words(bytes).enumerate().fold(0u32, |set, (i, word)| set | u32::from(word != ILLEGAL) << i);
            while left != 0 {
                let i = left.trailing_zeros() as usize;
                take(first + i, frame.probability(first + i));
                left &= left - 1;
            }
        }
    }
}

/// Reads the policy of `frame`, and tells what is wrong with its values and their sum.
pub(super) fn read(frame: Frame<'_>, tell: &mut Tell<'_>) -> Marks {
    let mut marks = Marks { legal: Indices::NONE, positive: Indices::NONE };
    let (mut sum, mut legal) = (0.0f64, 0u32);
    let mut wrong = None;
    each_marked(frame, |i, p| {
        if (0.0..=1.0 + super::field::ROUNDING).contains(&p) {
            marks.legal.add(i);
            if p > 0.0 {
                marks.positive.add(i);
            }
            sum += f64::from(p);
            legal += 1;
        } else if !p.is_nan() {
            wrong = wrong.or(Some((i, p)));
        }
    });
    if let Some((i, p)) = wrong {
        tell.breach(Rule::PolicyValues, at::PROBABILITIES + 4 * i, || {
            format!("probability {i} is {p}; expected -1 for an illegal move, else 0 to 1")
        });
    }
    if legal == 0 {
        tell.breach(Rule::PolicyValues, at::PROBABILITIES, || "no move is legal: every probability is negative".into());
    } else if (sum - 1.0).abs() > SUM_TOLERANCE {
        tell.breach(Rule::PolicySum, at::PROBABILITIES, || {
            format!("the {legal} probabilities sum to {sum:.4}; expected 1 within 0.01")
        });
    }
    marks
}

impl Marks {
    /// Tells where the marks differ from the legal moves.
    pub(super) fn judge(&self, frame: Frame<'_>, legal: &Indices, tell: &mut Tell<'_>) {
        // Data of the first versions has 0 for illegal moves.
        let upgraded = frame.visits() == 0;
        let marked = if upgraded { &self.positive } else { &self.legal };
        if let Some((i, n)) = marked.beyond(legal) {
            tell.breach(Rule::PolicyMoves, at::PROBABILITIES + 4 * i, || {
                format!("probability {i} ({}) is {}, but the move is illegal; {n} such", name(i), frame.probability(i))
            });
        }
        if let Some((i, n)) = legal.beyond(&self.legal).filter(|_| !upgraded) {
            tell.breach(Rule::PolicyMoves, at::PROBABILITIES + 4 * i, || {
                format!("probability {i} ({}) marks a legal move as illegal; {n} such", name(i))
            });
        }
    }
}

/// Tells whether the best and the played move are moves at all and legal.
pub(super) fn judge_indices(frame: Frame<'_>, legal: &Indices, tell: &mut Tell<'_>) {
    // Data upgraded from an older version (no visits) has no move indices.
    if frame.visits() == 0 {
        return;
    }
    for (rule, offset, index) in [
        (Rule::PlayedIdx, at::PLAYED_IDX, usize::from(frame.played_idx())),
        (Rule::BestIdx, at::BEST_IDX, usize::from(frame.best_idx())),
    ] {
        if index >= POLICY {
            tell.breach(rule, offset, || format!("{rule} is {index}; expected 0 to {}", POLICY - 1));
        } else if !legal.has(index) {
            tell.breach(rule, offset, || format!("{rule} is {index} ({}), which is illegal here", name(index)));
        }
    }
}

/// A policy index in letters, as the side to move sees the stored board.
pub(super) fn name(index: usize) -> String {
    let entry = u16::try_from(index).ok().and_then(policy::entry);
    entry.map_or_else(|| "no move".to_owned(), |entry| entry.to_string())
}
