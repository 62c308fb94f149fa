//! What disturbs a process: crashes, and changes that its disk refuses. One number -> which, and fewer of them. Runs nothing.

use super::log::{Crash, Loss};
use super::record::Failing;
use crate::chooser::Chooser;
use crate::less::Less;

/// Changes of a disk that the system refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refusal {
    /// The first that fails; modulo as many as there are.
    pub at: u64,
    /// Whether all that come after it fail, too.
    pub stays: bool,
    /// The error of the system.
    pub error: i32,
}

/// No space, an error of the disk, a file system that became read only.
const ERRORS: [i32; 3] = [libc::ENOSPC, libc::EIO, libc::EROFS];

impl Refusal {
    /// Some refusal.
    pub(super) fn drawn(c: &mut Chooser) -> Self {
        Refusal { at: c.bits(), stays: c.once_in(2), error: c.of(&ERRORS) }
    }

    /// The calls that fail of a process that makes `ops` changes.
    pub(super) fn of(&self, ops: usize) -> Failing {
        let first = self.at % ops.max(1) as u64;
        Failing { calls: first..if self.stays { u64::MAX } else { first + 1 }, error: self.error }
    }
}

/// Everything that disturbs a process, each time from its beginning.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disturbed {
    /// Crashes.
    pub crashes: Vec<Crash>,
    /// Whether the process after each crash crashes as well, at the same share of its changes.
    pub twice: bool,
    /// What is refused.
    pub refusals: Vec<Refusal>,
}

impl Disturbed {
    /// From `crashes.0` to `crashes.1` crashes, and fewer than `refusals` refusals.
    pub(super) fn drawn(c: &mut Chooser, crashes: (u64, u64), refusals: u64) -> Self {
        Disturbed {
            crashes: (0..c.within(crashes.0, crashes.1)).map(|_| Crash::drawn(c)).collect(),
            twice: c.once_in(4),
            refusals: (0..c.below(refusals)).map(|_| Refusal::drawn(c)).collect(),
        }
    }

    /// All that are one thing smaller.
    pub(super) fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        less.push(|s| s.refusals.clear());
        less.push(|s| s.crashes.clear());
        less.push(|s| s.twice = false);
        (0..self.crashes.len()).for_each(|i| less.push(|s| _ = s.crashes.remove(i)));
        (0..self.refusals.len()).for_each(|i| less.push(|s| _ = s.refusals.remove(i)));
        (0..self.crashes.len()).for_each(|i| less.push(|s| s.crashes[i].torn = 0));
        (0..self.crashes.len()).for_each(|i| less.push(|s| s.crashes[i].loss = Loss::Nothing));
        less.found()
    }
}
