//! Sorted, disjoint ranges of row numbers <-> the rows they hold, counted from 0: which rows of a table are meant.
//! Few long ranges are kept as such, many short ones as bits: memory follows the smaller, and no answer tells which it is.

mod bits;
mod ranges;

use std::borrow::Cow;

use xxhash_rust::xxh3::Xxh3;

use bits::Bits;
use ranges::Ranges;

/// Fewer ranges than this stay ranges.
const FEW: usize = 1024;

/// Bytes of a range.
const RANGE_BYTES: u64 = 16;

/// Ranges of rows, in order, none touching the next.
#[derive(Debug, Clone)]
pub struct Intervals(Form);

#[derive(Debug, Clone)]
enum Form {
    Ranges(Ranges),
    Bits(Bits),
}

impl Default for Intervals {
    fn default() -> Self {
        Intervals(Form::Ranges(Ranges::default()))
    }
}

impl PartialEq for Intervals {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.ranges() == other.ranges() && self.iter().eq(other.iter())
    }
}

impl Eq for Intervals {}

impl Intervals {
    /// All rows below `len`.
    pub fn all(len: u64) -> Self {
        let mut all = Intervals::default();
        all.push(0, len);
        all
    }

    /// Adds rows `start..end` after the ranges so far; joins what touches.
    ///
    /// Panics when the rows do not lie after the last range.
    pub fn push(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        match &mut self.0 {
            Form::Ranges(ranges) => {
                assert!(ranges.end().is_none_or(|reached| start >= reached), "ranges are added in order");
                ranges.push(start, end);
                if is_many(ranges) {
                    self.0 = Form::Bits(to_bits(ranges));
                }
            }
            Form::Bits(bits) => {
                debug_assert!(bits.end().is_none_or(|reached| start >= reached), "ranges are added in order");
                bits.push(start, end);
            }
        }
    }

    /// How many rows there are.
    pub fn len(&self) -> u64 {
        match &self.0 {
            Form::Ranges(ranges) => ranges.len(),
            Form::Bits(bits) => bits.len(),
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        match &self.0 {
            Form::Ranges(ranges) => ranges.count(),
            Form::Bits(bits) => bits.count(),
        }
    }

    /// The number of row `i` of those that are meant. `i` must be below [`Intervals::len`].
    pub fn row(&self, i: u64) -> u64 {
        debug_assert!(i < self.len());
        match &self.0 {
            Form::Ranges(ranges) => ranges.row(i),
            Form::Bits(bits) => bits.row(i),
        }
    }

    /// Replaces each place by the row there, as [`Intervals::row`] finds it.
    pub fn rows(&self, places: &mut [u64]) {
        match self.whole() {
            Some(whole) => places.iter_mut().for_each(|place| *place += whole.start),
            None => places.iter_mut().for_each(|place| *place = self.row(*place)),
        }
    }

    /// The rows that are meant, where they are one range without a gap.
    pub fn whole(&self) -> Option<std::ops::Range<u64>> {
        let (first, behind) = if self.is_empty() { (0, 0) } else { (self.row(0), self.row(self.len() - 1) + 1) };
        (behind - first == self.len()).then_some(first..behind)
    }

    /// How many of the rows that are meant have a number below `row`.
    pub fn rank(&self, row: u64) -> u64 {
        match &self.0 {
            Form::Ranges(ranges) => ranges.rank(row),
            Form::Bits(bits) => bits.rank(row),
        }
    }

    /// Whether row `row` is one of those that are meant.
    pub fn contains(&self, row: u64) -> bool {
        self.rank(row.saturating_add(1)) > self.rank(row)
    }

    /// The rows from place `from` to place `to`, counted among those that are meant.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Intervals {
        let mut span = Intervals::default();
        let to = to.min(self.len());
        if from < to {
            span.push(self.row(from), self.row(to - 1) + 1);
        }
        self.intersect(&span)
    }

    /// The ranges: first row, and the row after the last.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        let (ranges, bits) = match &self.0 {
            Form::Ranges(ranges) => (Some(ranges.iter()), None),
            Form::Bits(bits) => (None, Some(bits.iter())),
        };
        ranges.into_iter().flatten().chain(bits.into_iter().flatten())
    }

    /// The rows that are in both.
    #[must_use]
    pub fn intersect(&self, other: &Intervals) -> Intervals {
        match (&self.0, &other.0) {
            (Form::Ranges(ours), Form::Ranges(theirs)) => Intervals(Form::Ranges(ours.intersect(theirs))).settled(),
            _ => self.by_words(other, |ours, theirs| ours & theirs),
        }
    }

    /// The rows that are not in `other`.
    #[must_use]
    pub fn without(&self, other: &Intervals) -> Intervals {
        match (&self.0, &other.0) {
            (Form::Ranges(ours), Form::Ranges(theirs)) => {
                let gaps = theirs.gaps(ours.end().unwrap_or(0));
                Intervals(Form::Ranges(ours.intersect(&gaps))).settled()
            }
            _ => self.by_words(other, |ours, theirs| ours & !theirs),
        }
    }

    /// Adds the ranges to a hash, first row and the row after the last as little-endian u64.
    pub fn hash_into(&self, hash: &mut Xxh3) {
        let mut bytes = Vec::with_capacity(4096);
        for (start, end) in self.iter() {
            bytes.extend_from_slice(&start.to_le_bytes());
            bytes.extend_from_slice(&end.to_le_bytes());
            if bytes.len() == 4096 {
                hash.update(&bytes);
                bytes.clear();
            }
        }
        hash.update(&bytes);
    }

    /// Rows of ours that `keep` says, from a word of ours and one of theirs.
    fn by_words(&self, other: &Intervals, keep: impl Fn(u64, u64) -> u64) -> Intervals {
        let (ours, theirs) = (self.bits(), other.bits());
        let (from, to) = ours.span();
        let mut kept = Bits::from(from * 64);
        (from..to).for_each(|word| kept.append(keep(ours.word(word), theirs.word(word))));
        Intervals(Form::Bits(kept)).settled()
    }

    fn bits(&self) -> Cow<'_, Bits> {
        match &self.0 {
            Form::Ranges(ranges) => Cow::Owned(to_bits(ranges)),
            Form::Bits(bits) => Cow::Borrowed(bits),
        }
    }

    /// The same rows in the form that takes less.
    fn settled(self) -> Self {
        match self.0 {
            Form::Ranges(ranges) if is_many(&ranges) => Intervals(Form::Bits(to_bits(&ranges))),
            Form::Bits(bits) => {
                let (from, to) = bits.span();
                if bits.count() > FEW && bits.count() as u64 * RANGE_BYTES * 2 > (to - from) * 8 {
                    return Intervals(Form::Bits(bits));
                }
                let mut ranges = Ranges::default();
                bits.iter().for_each(|(start, end)| ranges.push(start, end));
                Intervals(Form::Ranges(ranges))
            }
            form => Intervals(form),
        }
    }
}

/// Whether bits would take half of what ranges do.
fn is_many(ranges: &Ranges) -> bool {
    let bits = || Bits::bytes(ranges.first().unwrap_or(0), ranges.end().unwrap_or(0));
    ranges.count() > FEW && ranges.count() as u64 * RANGE_BYTES > 2 * bits()
}

fn to_bits(ranges: &Ranges) -> Bits {
    let mut bits = Bits::from(ranges.first().unwrap_or(0));
    ranges.iter().for_each(|(start, end)| bits.push(start, end));
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn of(ranges: &[(u64, u64)]) -> Intervals {
        let mut made = Intervals::default();
        ranges.iter().for_each(|(start, end)| made.push(*start, *end));
        made
    }

    fn as_bits(rows: &Intervals) -> Intervals {
        Intervals(Form::Bits(rows.bits().into_owned()))
    }

    #[test]
    fn what_touches_is_joined_and_rows_are_found() {
        let rows = of(&[(2, 2), (3, 5), (5, 6), (9, 10)]);
        assert_eq!((rows.ranges(), rows.len()), (2, 4));
        assert_eq!((0..4).map(|i| rows.row(i)).collect::<Vec<_>>(), [3, 4, 5, 9]);
        assert_eq!(rows.iter().collect::<Vec<_>>(), [(3, 6), (9, 10)]);
        assert_eq!((0..12).filter(|row| rows.contains(*row)).collect::<Vec<_>>(), [3, 4, 5, 9]);
        assert_eq!(rows.slice(1, 4).iter().collect::<Vec<_>>(), [(4, 6), (9, 10)]);
        assert!(rows.slice(2, 2).is_empty() && rows.slice(0, 9) == rows);
        assert_eq!(
            [(0, 4), (0, 3), (3, 4), (2, 2)].map(|(from, to)| rows.slice(from, to).whole()),
            [None, Some(3..6), Some(9..10), Some(0..0)]
        );
        assert!(of(&[]).is_empty() && Intervals::all(0).is_empty());
    }

    #[test]
    fn every_other_row_of_many_takes_little_more_than_a_bit() {
        let (first, last) = (1_000_000_007u64, 1_000_300_007);
        let rows = of(&(first..last).step_by(2).map(|row| (row, row + 1)).collect::<Vec<_>>());
        let Form::Bits(bits) = &rows.0 else { panic!("{} ranges are kept as ranges", rows.ranges()) };
        let (from, to) = bits.span();
        assert!((to - from) * 64 <= last - first + 1024, "{from} {to}");
        assert_eq!((rows.len(), rows.ranges()), (150_000, 150_000));
        for i in (0..150_000).step_by(997).chain([149_999]) {
            assert_eq!(rows.row(i), first + 2 * i);
            assert_eq!((rows.rank(first + 2 * i), rows.rank(first + 2 * i + 1)), (i, i + 1));
        }
        assert_eq!((rows.rank(0), rows.rank(u64::MAX)), (0, 150_000));
        let mut later = rows.clone();
        later.push(last + 5000, last + 9000);
        assert_eq!((later.row(150_000), later.len(), later.ranges()), (last + 5000, 154_000, 150_001));
        let few = rows.intersect(&of(&[(first + 10, first + 14)]));
        assert!(matches!(few.0, Form::Ranges(_)));
        assert_eq!(few, of(&[(first + 10, first + 11), (first + 12, first + 13)]));
    }

    proptest! {
        #[test]
        fn rows_are_those_of_sets_in_either_form(a in prop::collection::vec((0u64..90, 0u64..99), 0..9),
                                                 b in prop::collection::vec((0u64..90, 0u64..99), 0..9),
                                                 offset in prop::sample::select(vec![0u64, 500, 1 << 40])) {
            let rows = |gaps: &[(u64, u64)]| -> Vec<(u64, u64)> {
                gaps.iter().scan(offset, |at, (gap, len)| { let start = *at + gap; *at = start + len; Some((start, *at)) }).collect()
            };
            let set = |ranges: &[(u64, u64)]| -> BTreeSet<u64> {
                ranges.iter().flat_map(|(start, end)| *start..*end).collect()
            };
            let (a, b) = (rows(&a), rows(&b));
            let all = |rows: &Intervals| {
                let mut all: Vec<u64> = (0..rows.len()).collect();
                rows.rows(&mut all);
                assert_eq!(all, (0..rows.len()).map(|i| rows.row(i)).collect::<Vec<_>>());
                all
            };
            let both: Vec<u64> = set(&a).intersection(&set(&b)).copied().collect();
            let rest: Vec<u64> = set(&a).difference(&set(&b)).copied().collect();
            for ours in [of(&a), as_bits(&of(&a))] {
                for theirs in [of(&b), as_bits(&of(&b))] {
                    prop_assert_eq!(&all(&ours.intersect(&theirs)), &both);
                    prop_assert_eq!(&all(&ours.without(&theirs)), &rest);
                    prop_assert_eq!(ours == theirs, set(&a) == set(&b));
                }
                prop_assert_eq!(ours.iter().collect::<Vec<_>>(), of(&a).iter().collect::<Vec<_>>());
                prop_assert_eq!(ours.ranges(), of(&a).ranges());
                for row in offset..offset + 40 {
                    prop_assert_eq!(ours.rank(row), set(&a).range(..row).count() as u64);
                }
                let digest = |rows: &Intervals| { let mut hash = Xxh3::new(); rows.hash_into(&mut hash); hash.digest() };
                prop_assert_eq!(digest(&ours), digest(&of(&a)));
            }
        }
    }
}
