//! Sorted, disjoint ranges of row numbers <-> the rows they hold, counted from 0: which rows of a table are meant.
//! Memory follows the number of ranges, never the number of rows.

/// Ranges of rows, in order, none touching the next.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Intervals {
    starts: Vec<u64>,
    /// Rows in the ranges before each, and behind the last.
    before: Vec<u64>,
}

impl Intervals {
    /// All rows below `len`.
    pub fn all(len: u64) -> Self {
        let mut all = Intervals::default();
        all.push(0, len);
        all
    }

    /// Adds rows `start..end` behind the ranges so far; joins what touches.
    ///
    /// Panics when the rows do not lie behind the last range.
    pub fn push(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        let reached = self.ends().last();
        assert!(reached.is_none_or(|reached| start >= reached), "ranges are added in order");
        if reached == Some(start) {
            self.before.pop();
        } else {
            self.starts.push(start);
        }
        if self.before.is_empty() {
            self.before.push(0);
        }
        let first = self.starts.last().copied().unwrap_or(start);
        let so_far = self.before.last().copied().unwrap_or(0);
        self.before.push(so_far + (end - first));
    }

    /// How many rows there are.
    pub fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many ranges there are.
    pub fn ranges(&self) -> usize {
        self.starts.len()
    }

    /// The number of row `i` of those that are meant. `i` must be below [`Intervals::len`].
    pub fn row(&self, i: u64) -> u64 {
        debug_assert!(i < self.len());
        let range = match self.starts.len() {
            1 => 0,
            _ => self.before.partition_point(|before| *before <= i) - 1,
        };
        self.starts[range] + (i - self.before[range])
    }

    /// Whether row `number` is one of those that are meant.
    pub fn contains(&self, number: u64) -> bool {
        let Some(range) = self.starts.partition_point(|start| *start <= number).checked_sub(1) else { return false };
        number - self.starts[range] < self.before[range + 1] - self.before[range]
    }

    fn ends(&self) -> impl DoubleEndedIterator<Item = u64> {
        self.iter().map(|(_, end)| end)
    }

    /// The ranges: first row, and the row behind the last.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (u64, u64)> {
        self.starts.iter().zip(self.before.windows(2)).map(|(start, before)| (*start, start + (before[1] - before[0])))
    }

    /// The rows from place `from` to place `to`, counted among those that are meant.
    #[must_use]
    pub fn slice(&self, from: u64, to: u64) -> Intervals {
        let mut part = Intervals::default();
        for ((start, end), before) in self.iter().zip(&self.before) {
            let place = |at: u64| start + at.saturating_sub(*before).min(end - start);
            part.push(place(from), place(to));
        }
        part
    }

    /// The rows that are in both.
    #[must_use]
    pub fn intersect(&self, other: &Intervals) -> Intervals {
        let mut both = Intervals::default();
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(&(a, b)), Some(&(c, d))) = (left.peek(), right.peek()) {
            both.push(a.max(c), b.min(d));
            if b <= d {
                left.next().map(drop)
            } else {
                right.next().map(drop)
            };
        }
        both
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(ranges: &[(u64, u64)]) -> Intervals {
        let mut made = Intervals::default();
        ranges.iter().for_each(|(start, end)| made.push(*start, *end));
        made
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
        assert!(of(&[]).is_empty() && Intervals::all(0).is_empty());
    }

    proptest! {
        #[test]
        fn intersections_are_those_of_sets(a in prop::collection::vec((0u64..40, 0u64..9), 0..6),
                                           b in prop::collection::vec((0u64..40, 0u64..9), 0..6)) {
            let rows = |gaps: &[(u64, u64)]| -> Vec<(u64, u64)> {
                gaps.iter().scan(0, |at, (gap, len)| { let start = *at + gap; *at = start + len; Some((start, *at)) }).collect()
            };
            let set = |ranges: &[(u64, u64)]| -> std::collections::BTreeSet<u64> {
                ranges.iter().flat_map(|(start, end)| *start..*end).collect()
            };
            let (a, b) = (rows(&a), rows(&b));
            let both = of(&a).intersect(&of(&b));
            let expected: Vec<u64> = set(&a).intersection(&set(&b)).copied().collect();
            prop_assert_eq!((0..both.len()).map(|i| both.row(i)).collect::<Vec<_>>(), expected);
        }
    }
}
