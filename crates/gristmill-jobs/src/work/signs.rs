//! What the content of chunks shows as a whole: values that never change, ends, results, scales, and who each game is.
//! Filled by the kinds, file by file; takes memory for what differs, and for a line on each game of one file.

use std::collections::BTreeMap;

use super::findings::{Fault, Verification};

/// A chunk or row is no data of a game at all where fewer frames than this were alike.
pub(crate) const MANY: u64 = 64;

/// What was seen of a value that should change.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen {
    /// How often.
    pub(crate) count: u64,
    /// A hash of the first.
    first: u64,
    /// The first in words.
    pub(crate) shown: String,
    /// Whether another one was seen.
    pub(crate) varies: bool,
}

/// Who a game is, and where in its file.
#[derive(Debug, Clone)]
pub(crate) struct Met {
    /// The key of the game and of its images.
    pub(crate) key: u128,
    /// Which image it is.
    pub(crate) image: u8,
    /// A hash of its records.
    pub(crate) records: u64,
    /// Its chunk; of a pack of rows, its id.
    pub(crate) chunk: u64,
    /// The member that it is, where files have names for them.
    pub(crate) member: Option<Box<str>>,
}

/// The signs of a file, or of several.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    /// What is wrong with single chunks.
    pub(crate) found: Verification,
    /// Values that should change, by name.
    pub(crate) values: BTreeMap<String, Seen>,
    /// Games by result.
    pub(crate) results: BTreeMap<&'static str, u64>,
    /// The least and the largest number of fields that have a scale.
    pub(crate) scales: BTreeMap<String, (f64, f64)>,
    /// The records of the file, where each file may have its own.
    pub(crate) layout: Option<String>,
    /// The games.
    pub(crate) games: Vec<Met>,
}

impl Signs {
    /// Notes a value that should change; `shown` is called for the first.
    pub(crate) fn value(&mut self, name: &str, bytes: &[u8], shown: impl FnOnce() -> String) {
        let hash = xxhash_rust::xxh3::xxh3_64(bytes);
        match self.values.get_mut(name) {
            Some(seen) => {
                seen.count += 1;
                seen.varies |= seen.first != hash;
            }
            None => {
                let seen = Seen { count: 1, first: hash, shown: shown(), varies: false };
                self.values.insert(name.to_owned(), seen);
            }
        }
    }

    /// Notes whether a frame is like all that say nothing, which `shown` tells: one that is not is enough.
    pub(crate) fn always(&mut self, name: &str, holds: bool, shown: &str) {
        self.value(name, &[], || shown.to_owned());
        if let Some(seen) = self.values.get_mut(name) {
            seen.varies |= !holds;
        }
    }

    /// Notes a number of a field that has a scale.
    pub(crate) fn scale(&mut self, name: &str, number: f64) {
        if !number.is_finite() {
            return;
        }
        match self.scales.get_mut(name) {
            Some((low, high)) => (*low, *high) = (low.min(number), high.max(number)),
            None => _ = self.scales.insert(name.to_owned(), (number, number)),
        }
    }

    /// Notes the result of a game.
    pub(crate) fn result(&mut self, name: &'static str) {
        *self.results.entry(name).or_default() += 1;
    }

    /// Notes what is wrong with a chunk; only the first of each check are kept.
    pub(crate) fn add(&mut self, fault: Fault) {
        self.found.add(0, fault);
    }

    /// Takes in the signs of a later file, but for its layout, scales and games, which are compared file by file.
    pub(crate) fn absorb(&mut self, later: Signs) {
        self.found.absorb(0, later.found);
        for (name, seen) in later.values {
            match self.values.get_mut(&name) {
                Some(known) => {
                    known.count += seen.count;
                    known.varies |= seen.varies || known.first != seen.first;
                }
                None => _ = self.values.insert(name, seen),
            }
        }
        for (name, count) in later.results {
            *self.results.entry(name).or_default() += count;
        }
    }
}
