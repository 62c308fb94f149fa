//! Things that went wrong without ending anything: counted by kind, the latest kept in words.
//! Bounded: never grows with the number of faults.

use std::collections::{BTreeMap, VecDeque};

use gristmill_format::Error;

/// How many messages are kept.
const KEPT: usize = 16;

/// Counts by kind, and the latest messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Faults {
    counts: BTreeMap<&'static str, u64>,
    /// With their kinds.
    last: VecDeque<(&'static str, String)>,
}

impl Faults {
    /// Counts one fault of `kind`, a short stable word.
    pub fn add(&mut self, kind: &'static str, message: impl Into<String>) {
        *self.counts.entry(kind).or_default() += 1;
        self.keep(kind, message.into());
    }

    /// Counts a typed error under the name of its kind.
    pub fn error(&mut self, e: &Error) {
        self.add(e.kind().name(), e.to_string());
    }

    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Faults) {
        for (kind, n) in &other.counts {
            *self.counts.entry(kind).or_default() += n;
        }
        for (kind, message) in &other.last {
            self.keep(kind, message.clone());
        }
    }

    /// How often a fault of `kind` was counted.
    pub fn count(&self, kind: &str) -> u64 {
        self.counts.get(kind).copied().unwrap_or(0)
    }

    /// All faults together.
    pub fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Kinds and counts, by name of the kind.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.counts.iter().map(|(kind, n)| (*kind, *n))
    }

    /// The latest messages, oldest first.
    pub fn messages(&self) -> impl Iterator<Item = &str> {
        self.last.iter().map(|(_, message)| message.as_str())
    }

    /// The latest message of a kind, unless too many others came after it to keep it.
    pub fn latest(&self, kind: &str) -> Option<&str> {
        self.last.iter().rev().find(|(of, _)| *of == kind).map(|(_, message)| message.as_str())
    }

    fn keep(&mut self, kind: &'static str, message: String) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((kind, message));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_has_its_own_latest_message() {
        let mut faults = Faults::default();
        faults.add("symlink_loop", "a/loop: a link to a folder above it");
        faults.add("name_not_utf8", "a/n?: the name is not UTF-8");
        assert_eq!(faults.latest("symlink_loop"), Some("a/loop: a link to a folder above it"));
        assert_eq!(faults.latest("name_not_utf8"), Some("a/n?: the name is not UTF-8"));
        assert_eq!(faults.latest("permission"), None);
    }
}
