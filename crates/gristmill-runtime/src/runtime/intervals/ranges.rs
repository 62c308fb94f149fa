//! Rows as ranges, first row and sums of lengths: small where rows lie together, found by bisection.
//! Ranges are in order and none touches the next.

#[derive(Debug, Clone, Default)]
pub(super) struct Ranges {
    starts: Vec<u64>,
    /// Rows in the ranges before each, and after the last.
    before: Vec<u64>,
}

impl Ranges {
    pub(super) fn push(&mut self, start: u64, end: u64) {
        if self.end() == Some(start) {
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

    pub(super) fn len(&self) -> u64 {
        self.before.last().copied().unwrap_or(0)
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len()
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.starts.first().copied()
    }

    pub(super) fn end(&self) -> Option<u64> {
        let (last, [.., before, behind]) = (self.starts.last()?, &self.before[..]) else { return None };
        Some(last + (behind - before))
    }

    pub(super) fn row(&self, i: u64) -> u64 {
        let range = match self.starts.len() {
            1 => 0,
            _ => self.before.partition_point(|before| *before <= i) - 1,
        };
        self.starts[range] + (i - self.before[range])
    }

    pub(super) fn rank(&self, row: u64) -> u64 {
        let Some(range) = self.starts.partition_point(|start| *start < row).checked_sub(1) else { return 0 };
        let before = self.before[range];
        before + (row - self.starts[range]).min(self.before[range + 1] - before)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.starts.iter().zip(self.before.windows(2)).map(|(start, before)| (*start, start + (before[1] - before[0])))
    }

    pub(super) fn intersect(&self, other: &Ranges) -> Ranges {
        let mut both = Ranges::default();
        let (mut left, mut right) = (self.iter().peekable(), other.iter().peekable());
        while let (Some(&(a, b)), Some(&(c, d))) = (left.peek(), right.peek()) {
            if a.max(c) < b.min(d) {
                both.push(a.max(c), b.min(d));
            }
            if b <= d {
                left.next().map(drop)
            } else {
                right.next().map(drop)
            };
        }
        both
    }

    /// The gaps before, between and after the ranges, up to `end`.
    pub(super) fn gaps(&self, end: u64) -> Ranges {
        let mut gaps = Ranges::default();
        let mut at = 0;
        for (start, behind) in self.iter().chain([(end, end)]) {
            if at < start.min(end) {
                gaps.push(at, start.min(end));
            }
            at = behind;
        }
        gaps
    }
}
