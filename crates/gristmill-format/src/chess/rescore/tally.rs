//! What the passes did, counted by name.
//! Numbers only.

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
    /// Positions left as they were because a table is missing.
    MissingTables = "missing_tables",
    /// Positions left as they were because a table is damaged.
    CorruptTables = "corrupt_tables",
}

/// Counts of one run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tally([u64; COUNTS.len()]);

impl Tally {
    pub(super) fn add(&mut self, count: Count, n: u64) {
        self.0[count as usize] += n;
    }

    /// The counts, in order of [`COUNTS`].
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// The count of this name; `None` where there is none.
    pub fn get(&self, name: &str) -> Option<u64> {
        COUNTS.iter().position(|known| *known == name).map(|i| self.0[i])
    }

    /// Whether records were changed, or left out.
    pub fn changed(&self) -> bool {
        self.0[..Count::Probes as usize].iter().any(|n| *n > 0)
    }
}
