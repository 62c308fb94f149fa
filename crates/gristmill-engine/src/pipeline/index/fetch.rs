//! Which batches of a table that is elsewhere were fetched, and which are fetched next: those that the plan says come soonest.
//! Counts batches; the requests are the table's, made by readers, so that no worker waits for a network. Which batches share requests
//! is decided by their numbers alone, so that a plan knows it beforehand.

use std::collections::BTreeMap;
use std::ops::Range;

use gristmill_runtime::error::Error;

/// Batches that are fetched ahead of those that wait for the consumer.
const AHEAD: u64 = 64;

/// Batches that a reader fetches at once, at most: enough that neighbours share requests.
const AT_ONCE: u64 = 8;

/// How far fetching is.
#[derive(Debug, Default)]
pub(super) struct Fetched {
    /// The first batch of all.
    first: u64,
    /// The next batch that nobody fetches yet.
    next: u64,
    /// All batches below are there.
    below: u64,
    /// Ranges beyond `below` that are there, by their first.
    done: BTreeMap<u64, u64>,
    /// Ranges that could not be fetched.
    failed: Vec<(Range<u64>, Error)>,
}

impl Fetched {
    /// Nothing is fetched from batch `first` on.
    pub(super) fn from(first: u64) -> Self {
        Fetched { first, next: first, below: first, ..Fetched::default() }
    }

    /// The batches that are fetched now, none where enough is; `delivered` is the consumer's next batch, `end` follows the last.
    pub(super) fn begin(&mut self, delivered: u64, end: Option<u64>) -> Option<Range<u64>> {
        let range = self.next..(self.next + self.at_once()).min(end.unwrap_or(u64::MAX));
        (!range.is_empty() && self.take(&range, delivered)).then_some(range)
    }

    /// The first batch that no reader has begun to fetch.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The most batches that a reader fetches next. The consumer waits for the first batches; later batches share requests.
    pub(super) fn at_once(&self) -> u64 {
        (self.next - self.first).clamp(1, AT_ONCE)
    }

    /// Begins to fetch the batches of `range`, the next ones. Returns `false` if enough is fetched, or while the first batch is on its way:
    /// everybody waits for that batch, and others would take a part of the network. `delivered` is the consumer's next batch.
    pub(super) fn take(&mut self, range: &Range<u64>, delivered: u64) -> bool {
        let waits = self.next > self.first && !self.has(self.first);
        if waits || range.end > delivered.saturating_add(AHEAD) {
            return false;
        }
        self.next = range.end;
        true
    }

    /// Says that batches were fetched, or that they could not be.
    pub(super) fn end(&mut self, range: Range<u64>, error: Option<Error>) {
        if let Some(error) = error {
            self.failed.push((range.clone(), error));
        }
        self.done.insert(range.start, range.end);
        while let Some(end) = self.done.remove(&self.below) {
            self.below = end;
        }
    }

    /// Whether a batch is there, or was given up.
    pub(super) fn has(&self, batch: u64) -> bool {
        batch < self.below
    }

    /// Why a batch is not there.
    pub(super) fn error(&self, batch: u64) -> Option<Error> {
        self.failed.iter().find(|(range, _)| range.contains(&batch)).map(|(_, error)| error.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_there_in_order_whoever_fetches_them_first() {
        let mut fetched = Fetched::from(10);
        assert_eq!(fetched.begin(10, Some(30)), Some(10..11));
        assert!(fetched.begin(10, Some(30)).is_none(), "the first one comes alone");
        fetched.end(10..11, None);
        let ranges: Vec<Range<u64>> = std::iter::from_fn(|| fetched.begin(10, Some(30))).collect();
        assert_eq!(ranges, [11..12, 12..14, 14..18, 18..26, 26..30]);
        fetched.end(12..14, Some(Error::Stopped));
        assert!(fetched.has(10) && !fetched.has(11) && !fetched.has(12), "an earlier one is missing");
        fetched.end(11..12, None);
        assert!(fetched.has(13) && !fetched.has(14));
        assert!(fetched.error(12).is_some() && fetched.error(11).is_none());
        let mut endless = Fetched::from(0);
        endless.begin(0, None).into_iter().for_each(|range| endless.end(range, None));
        while endless.begin(0, None).is_some() {}
        assert_eq!(endless.next, AHEAD);
        assert!(endless.begin(AT_ONCE - 1, None).is_none(), "fewer would share requests");
        assert_eq!(endless.begin(AT_ONCE, None), Some(AHEAD..AHEAD + AT_ONCE), "the consumer took some");
    }
}
