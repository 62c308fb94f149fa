//! Which faults met which states of which part of the chain: counted, merged and named. Decides nothing.

use std::collections::BTreeMap;

/// What the store did against the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// A file could not be read: a fault of the disk.
    Broken,
    /// A file could not be read: permission was lost.
    Forbidden,
    /// The folder was away.
    Away,
    /// An open or a read was refused for the moment, as of a server with too much to do.
    Throttled,
    /// The clock of the machine stood before the times of files.
    ClockBack,
    /// Fewer bytes came than were asked for.
    Short,
    /// A listing was one of before.
    Stale,
    /// A listing had files twice.
    Repeated,
    /// Notices were lost.
    HintsLost,
    /// Notices came twice.
    HintsDoubled,
    /// A file arrived.
    Arrived,
    /// A file arrived in two parts.
    Grew,
    /// A file was replaced by another of the same size, and in some worlds of the same time.
    Replaced,
    /// A file vanished.
    Vanished,
    /// A file was renamed.
    Renamed,
    /// The process ended without a word.
    Crashed,
    /// The loader was stopped.
    Stopped,
    /// The consumer took nothing for a while.
    Stalled,
}

/// Every fault.
pub const FAULTS: [Fault; 18] = [
    Fault::Broken,
    Fault::Forbidden,
    Fault::Away,
    Fault::Throttled,
    Fault::ClockBack,
    Fault::Short,
    Fault::Stale,
    Fault::Repeated,
    Fault::HintsLost,
    Fault::HintsDoubled,
    Fault::Arrived,
    Fault::Grew,
    Fault::Replaced,
    Fault::Vanished,
    Fault::Renamed,
    Fault::Crashed,
    Fault::Stopped,
    Fault::Stalled,
];

/// Where the chain was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Stage {
    /// Nothing was found so far.
    #[default]
    Scanning,
    /// The scan was in, no batch was given.
    Filling,
    /// Batches were given.
    Running,
    /// As before, and a state had been put back.
    Resumed,
}

/// Every such state.
pub const STAGES: [Stage; 4] = [Stage::Scanning, Stage::Filling, Stage::Running, Stage::Resumed];

/// How often each fault met each state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<(Fault, Stage), u64>);

impl Coverage {
    /// A fault met a state.
    pub fn met(&mut self, fault: Fault, stage: Stage) {
        *self.0.entry((fault, stage)).or_default() += 1;
    }

    /// Adds what another run met.
    pub fn merge(&mut self, other: &Coverage) {
        for (pair, n) in &other.0 {
            *self.0.entry(*pair).or_default() += n;
        }
    }

    /// How often a fault met any state.
    pub fn of(&self, fault: Fault) -> u64 {
        self.0.iter().filter(|((of, _), _)| *of == fault).map(|(_, n)| n).sum()
    }

    /// How many pairs were met, of how many.
    pub fn pairs(&self) -> (usize, usize) {
        (self.0.len(), FAULTS.len() * STAGES.len())
    }

    /// The pairs that were not met.
    pub fn unmet(&self) -> Vec<String> {
        let all = FAULTS.iter().flat_map(|fault| STAGES.iter().map(move |stage| (*fault, *stage)));
        all.filter(|pair| !self.0.contains_key(pair)).map(|(fault, stage)| format!("{fault:?} {stage:?}")).collect()
    }
}
