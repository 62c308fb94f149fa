//! Chunk -> the same game with better targets, as V7 records, or the reason why it cannot be trusted.
//! Knows no other game and no use of this one; tables are only read.

use gristmill_format::Result;
use gristmill_format::chess::rescore::{COUNTS, Rescorer, Tally};
use gristmill_format::source::Chunk;

use super::{ChunkPass, Passed};

/// Sends chess games through a rescorer.
#[derive(Debug, Clone)]
pub struct Rescore {
    rescorer: Rescorer,
}

impl Rescore {
    /// A stage around `rescorer`.
    pub fn new(rescorer: Rescorer) -> Self {
        Rescore { rescorer }
    }
}

fn passed(tally: &Tally) -> Passed {
    if tally.changed() { Passed::Changed } else { Passed::Unchanged }
}

impl ChunkPass for Rescore {
    /// What the passes changed, and the probes of the tablebase.
    fn counts(&self) -> &[&'static str] {
        COUNTS
    }

    /// Errors: as those of the rescorer.
    fn run(&self, chunk: &mut Chunk, count: &mut dyn FnMut(usize, u64)) -> Result<Passed> {
        let tally = self.rescorer.run(chunk)?;
        for (i, n) in tally.counts().iter().enumerate().filter(|(_, n)| **n > 0) {
            count(i, *n);
        }
        Ok(passed(&tally))
    }

    /// Counts each table that was missing, too.
    ///
    /// Errors: as those of the rescorer.
    fn run_by_name(&self, chunk: &mut Chunk, count: &mut dyn FnMut(&str, u64)) -> Result<Passed> {
        let tally = self.rescorer.run(chunk)?;
        for (name, n) in COUNTS.iter().zip(tally.counts()).filter(|(_, n)| **n > 0) {
            count(name, *n);
        }
        tally.missing().for_each(|(name, n)| count(&name, n));
        Ok(passed(&tally))
    }
}
