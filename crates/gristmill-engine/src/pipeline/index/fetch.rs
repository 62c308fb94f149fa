//! Which batches of a table that is elsewhere were fetched, and which are fetched next: those that the plan says come soonest.
//! Counts batches; the requests are the table's, made by readers, so that no worker waits for a network. Numbers and sizes of batches
//! alone decide which of them share requests, so that a plan knows it beforehand.

use std::collections::BTreeMap;
use std::ops::Range;

use gristmill_runtime::error::Error;
use gristmill_runtime::table::FrameTable;

/// Batches that a reader fetches at once, at least: enough that neighbours share requests.
const AT_ONCE: u64 = 8;

/// How many times as many batches are fetched ahead of those that wait for the consumer.
const AHEAD: u64 = 8;

/// How many groups of shuffled blocks are fetched ahead, at least. Nearly each batch of a group needs all of its blocks, which one reader
/// brings. So each of several readers brings a group while the consumer goes through one.
const GROUPS_AHEAD: u64 = 4;

/// Bytes that a reader fetches at once. Small batches of fewer bytes would wait for the latency of a network, however fast it is.
const BYTES_AT_ONCE: u64 = 4 << 20;

/// The most batches that a reader fetches at once.
const MOST_AT_ONCE: u64 = 512;

/// How many batches that read `rows` rows of a table a reader fetches at once, at most, if the cache keeps the files whole: [`AT_ONCE`] of a
/// table without files. A block that cannot be read fails the batches that are fetched with it.
pub(super) fn at_once(table: &dyn FrameTable, rows: usize) -> u64 {
    let bytes: u64 = table.files().iter().filter_map(|file| file.far_bytes()).sum();
    if bytes == 0 {
        return AT_ONCE;
    }
    let of_batch = u128::from(bytes) * rows as u128 / u128::from(table.len().max(1));
    (u128::from(BYTES_AT_ONCE) / of_batch.max(1)).clamp(AT_ONCE.into(), MOST_AT_ONCE.into()) as u64
}

/// How far fetching is.
#[derive(Debug)]
pub(super) struct Fetched {
    /// Batches that a reader fetches at once, at most.
    most: u64,
    /// How many batches are fetched before the consumer needs them, at most.
    ahead: u64,
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
        let (most, ahead) = (AT_ONCE, AHEAD * AT_ONCE);
        Fetched { most, ahead, first, next: first, below: first, done: BTreeMap::new(), failed: Vec::new() }
    }

    /// Lets a reader fetch up to `most` batches at once.
    pub(super) fn by(self, most: u64) -> Self {
        Fetched { most, ahead: self.ahead.max(AHEAD * most), ..self }
    }

    /// Fetches [`GROUPS_AHEAD`] groups ahead if they have more batches. `group` is the number of batches of a group.
    pub(super) fn past_groups(self, group: u64) -> Self {
        Fetched { ahead: self.ahead.max(group.saturating_mul(GROUPS_AHEAD)), ..self }
    }

    /// The batches that are fetched now, none where enough is; `delivered` is the consumer's next batch, `end` follows the last.
    pub(super) fn begin(&mut self, delivered: u64, end: Option<u64>) -> Option<Range<u64>> {
        let range = self.following(end);
        (!range.is_empty() && self.take(&range, delivered)).then_some(range)
    }

    /// Whether [`Fetched::begin`] would begin to fetch batches.
    pub(super) fn is_due(&self, delivered: u64, end: Option<u64>) -> bool {
        let range = self.following(end);
        !range.is_empty() && self.may_take(&range, delivered)
    }

    fn following(&self, end: Option<u64>) -> Range<u64> {
        self.next..(self.next + self.at_once()).min(end.unwrap_or(u64::MAX))
    }

    /// The first batch that no reader has begun to fetch.
    pub(super) fn next(&self) -> u64 {
        self.next
    }

    /// The most batches that a reader fetches next. The consumer waits for the first batches; later batches share requests.
    pub(super) fn at_once(&self) -> u64 {
        (self.next - self.first).clamp(1, self.most)
    }

    /// Begins to fetch the batches of `range`, the next ones. Returns `false` if enough is fetched, or while the first batch is on its way:
    /// everybody waits for that batch, and others would take a part of the network. `delivered` is the consumer's next batch.
    pub(super) fn take(&mut self, range: &Range<u64>, delivered: u64) -> bool {
        let takes = self.may_take(range, delivered);
        if takes {
            self.next = range.end;
        }
        takes
    }

    fn may_take(&self, range: &Range<u64>, delivered: u64) -> bool {
        let waits = self.next > self.first && !self.has(self.first);
        !waits && range.end <= delivered.saturating_add(self.ahead)
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
    use std::path::Path;

    use gristmill_format::layout::{Layout, Scalar};
    use gristmill_runtime::store::{MemoryStore, Residence};
    use gristmill_runtime::table::{FileTable, Part};

    use super::*;

    #[test]
    fn batches_are_there_in_order_whoever_fetches_them_first() {
        let mut fetched = Fetched::from(10);
        assert_eq!(fetched.begin(10, Some(30)), Some(10..11));
        assert!(fetched.begin(10, Some(30)).is_none(), "the first one comes alone");
        fetched.end(10..11, None);
        assert!(fetched.is_due(10, Some(30)) && !fetched.is_due(10, Some(11)));
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
        let ahead = AHEAD * AT_ONCE;
        assert_eq!(endless.next, ahead);
        assert!(endless.begin(AT_ONCE - 1, None).is_none(), "fewer would share requests");
        assert_eq!(endless.begin(AT_ONCE, None), Some(ahead..ahead + AT_ONCE), "the consumer took some");
    }

    #[test]
    fn more_small_batches_than_large_ones_share_requests() {
        let layout = Layout::packed(&[("bytes", Scalar::U8, &[1024])]).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let (far, here) = (Path::new("memory://fetch/rows"), folder.path().join("rows"));
        MemoryStore::named("fetch").write("rows", vec![1; 1 << 20]);
        std::fs::write(&here, vec![1; 1 << 20]).unwrap();
        let table = |path: &Path| {
            let parts = vec![Part { path: path.to_owned(), offset: 0, rows: 1024 }];
            FileTable::open(layout.clone(), parts, Residence::Mapped).unwrap()
        };
        // 64 rows are 64 KiB, and 4 MiB are fetched at once.
        assert_eq!([1, 64, 100, 1024].map(|rows| at_once(&table(far), rows)), [MOST_AT_ONCE, 64, 40, AT_ONCE]);
        assert_eq!(at_once(&table(&here), 64), AT_ONCE, "nothing is fetched of a file of this machine");
    }

    #[test]
    fn eight_times_as_much_is_fetched_ahead_as_at_once() {
        let mut fetched = Fetched::from(0).by(32);
        fetched.begin(0, None).into_iter().for_each(|range| fetched.end(range, None));
        let mut most = 0;
        while let Some(range) = fetched.begin(0, None) {
            most = most.max(range.end - range.start);
        }
        assert_eq!((most, fetched.next()), (32, 8 * 32));
    }

    #[test]
    fn the_next_groups_of_blocks_come_while_the_consumer_goes_through_one() {
        for (group, ahead) in [(100, 400), (5, AHEAD * AT_ONCE), (u64::MAX, 10_000)] {
            let mut fetched = Fetched::from(0).past_groups(group);
            fetched.begin(0, None).into_iter().for_each(|range| fetched.end(range, None));
            while fetched.begin(0, Some(10_000)).is_some() {}
            assert!((ahead - AT_ONCE..=ahead).contains(&fetched.next()), "{group}: {}", fetched.next());
        }
    }
}
