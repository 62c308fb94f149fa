//! What the passes did, counted by name, and how often each table was missing.
//! Numbers only.

use std::collections::BTreeMap;

use crate::chess::syzygy::{Material, TableKind};

macro_rules! counts {
    ($($(#[doc = $doc:literal])* $count:ident = $name:literal,)*) => {
        /// Something that passes count.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Count {
            $($(#[doc = $doc])* $count,)*
        }

        /// The names of what is counted; `docs/guide/rescoring.md` says what each means.
        pub const COUNTS: &[&str] = &[$($name,)*];
    };
}

counts! {
    /// Frames whose policy was replaced by one of another game.
    Policies = "policies_substituted",
    /// Frames whose result a tablebase changed.
    Results = "results_by_tablebase",
    /// Frames whose policy was reshaped.
    Reshaped = "policies_reshaped",
    /// Frames whose policy gives more to the moves that win fastest.
    Boosted = "policies_boosted",
    /// Frames of old data that got plies left.
    PliesFilled = "plies_left_filled",
    /// Frames whose plies left a tablebase changed.
    Plies = "plies_left_by_tablebase",
    /// Moves taken for blunders.
    Blunders = "blunders",
    /// Frames whose result or plies left changed because of a blunder.
    Deblundered = "frames_deblundered",
    /// Frames written in another input format.
    Converted = "frames_converted",
    /// Frames that became V7.
    Widened = "frames_to_v7",
    /// Frames left out because they were flagged for deletion.
    Dropped = "frames_dropped",
    /// Positions that the tablebase answered for.
    Probes = "probes",
    /// Answers that were not had because a table is missing.
    MissingTables = "missing_tables",
    /// Answers that were not had because a table is damaged.
    CorruptTables = "corrupt_tables",
}

/// Counts of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally {
    counts: [u64; COUNTS.len()],
    missing: BTreeMap<(Material, TableKind), u64>,
}

impl Tally {
    pub(super) fn add(&mut self, count: Count, n: u64) {
        self.counts[count as usize] += n;
    }

    /// Counts a missing table that a position needed.
    pub(super) fn miss(&mut self, material: Material, kind: TableKind) {
        *self.missing.entry((material, kind)).or_default() += 1;
    }

    /// The missing tables that positions needed, such as `missing:KQvK.rtbw`, and how often each was the first
    /// that an answer lacked. Their sum is the count `missing_tables`.
    pub fn missing(&self) -> impl Iterator<Item = (String, u64)> {
        self.missing.iter().map(|((material, kind), n)| (format!("missing:{material}.{}", kind.extension()), *n))
    }

    /// The counts, in order of [`COUNTS`].
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// The count of this name; `None` where there is none.
    pub fn get(&self, name: &str) -> Option<u64> {
        COUNTS.iter().position(|known| *known == name).map(|i| self.counts[i])
    }

    /// Whether records were changed, or left out.
    pub fn changed(&self) -> bool {
        self.counts[..Count::Probes as usize].iter().any(|n| *n > 0)
    }
}
