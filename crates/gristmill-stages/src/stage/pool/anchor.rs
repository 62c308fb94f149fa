//! The chunk anchor of a pool: a file to count from, and how many chunks came after it.
//! Counts arrivals and changes no draw.

use serde::{Deserialize, Serialize};

/// A source key and the chunks that came since.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Anchor {
    /// The key; empty before one was set.
    pub key: String,
    /// Chunks of the sources that came after it.
    pub since: u64,
    /// Key of the newest source of the pool.
    #[serde(skip)]
    pub newest: Option<String>,
}

impl Anchor {
    /// A source of the first scan; `after` tells whether its key is above the anchor's.
    pub fn found(&mut self, key: &str, chunks: u64, after: bool) {
        self.since += if after { chunks } else { 0 };
        self.newest = Some(key.to_owned());
    }

    /// A source that came later. The count starts again when it is the anchor's own.
    pub fn arrived(&mut self, key: &str, chunks: u64) {
        self.since = if key == self.key { 0 } else { self.since + chunks };
        self.newest = Some(key.to_owned());
    }

    /// Counts a rewritten file that had `before` chunks: only those beyond them are new. Its place in the order of
    /// arrival stays what it was.
    pub fn replaced(&mut self, chunks: u64, before: u64) {
        self.since += chunks.saturating_sub(before);
    }

    /// Counts from the newest source on; returns how many chunks had come since the old anchor.
    pub fn reset(&mut self) -> u64 {
        if let Some(newest) = &self.newest {
            self.key.clone_from(newest);
        }
        std::mem::take(&mut self.since)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first_scan(key: &str) -> Anchor {
        let mut anchor = Anchor { key: key.to_owned(), ..Anchor::default() };
        for (name, chunks) in [("source_a", 20), ("source_b", 15), ("source_c", 10)] {
            anchor.found(name, chunks, name > key);
        }
        anchor
    }

    #[test]
    fn the_first_scan_counts_what_lies_beyond_the_anchor() {
        assert_eq!(["", "source_b", "source_bb", "z"].map(|key| first_scan(key).since), [45, 10, 10, 0]);
    }

    #[test]
    fn arrivals_count_until_the_anchor_itself_comes() {
        let mut anchor = first_scan("source_d");
        assert_eq!(anchor.since, 0);
        anchor.arrived("source_cc", 7);
        assert_eq!(anchor.since, 7);
        anchor.arrived("source_d", 9);
        assert_eq!(anchor.since, 0);
        anchor.arrived("source_e", 3);
        anchor.arrived("source_a2", 2);
        assert_eq!(anchor.since, 5, "in the order of arrival, whatever the names");
    }

    #[test]
    fn what_is_written_over_counts_for_what_it_has_more_of() {
        let mut anchor = first_scan("source_c");
        anchor.arrived("source_d", 10);
        anchor.replaced(15, 10);
        anchor.replaced(15, 15);
        anchor.replaced(3, 15);
        assert_eq!((anchor.since, anchor.newest.as_deref()), (15, Some("source_d")));
        anchor.reset();
        anchor.replaced(20, 15);
        assert_eq!(anchor.since, 5, "the anchor itself grows");
    }

    #[test]
    fn a_reset_tells_the_count_before_it_and_takes_the_newest_key() {
        let mut anchor = first_scan("");
        assert_eq!((anchor.reset(), anchor.key.as_str(), anchor.since), (45, "source_c", 0));
        anchor.arrived("source_b9", 4);
        assert_eq!((anchor.reset(), anchor.key.as_str()), (4, "source_b9"));
        let mut empty = Anchor { key: "x".into(), ..Anchor::default() };
        assert_eq!((empty.reset(), empty.key.as_str()), (0, "x"), "without a source it stays");
    }
}
