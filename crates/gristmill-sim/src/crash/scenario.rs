//! One number -> a task, the crashes after which it is done again, and the changes that fail while it runs. Runs nothing.

use std::path::{Path, PathBuf};

use super::log::{Crash, Loss};
use super::record::Failing;
use super::task::{Task, Verb};
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

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The number that it is made of.
    pub seed: u64,
    /// The program that does tasks: `PROGRAM job ROOT TASK`.
    pub program: PathBuf,
    /// What is done.
    pub task: Task,
    /// Crashes, each of the task from its beginning.
    pub crashes: Vec<Crash>,
    /// Whether the process after each crash crashes as well, at the same share of its changes.
    pub twice: bool,
    /// What is refused, each time from the beginning.
    pub refusals: Vec<Refusal>,
}

impl Scenario {
    /// The run of a number.
    pub fn new(seed: u64, program: &Path) -> Self {
        let mut chooser = Chooser::new(seed).apart(0x6a6f_6273);
        let c = &mut chooser;
        let verb = match c.below(8) {
            0 | 1 => Verb::Pack,
            2 => Verb::Overwrite,
            3 | 4 => Verb::Append,
            5 | 6 => Verb::Merge(c.once_in(3)),
            _ => Verb::Shares(c.within(1, 3) as u32),
        };
        let task = Task {
            verb,
            boards: c.once_in(3),
            games: c.within(1, 5) as u32,
            shard_rows: c.once_in(2).then(|| c.within(2, 12)),
            checkpoint_rows: c.within(1, 12),
            workers: c.within(1, 2) as usize,
        };
        Scenario {
            seed,
            program: program.to_owned(),
            task,
            crashes: (0..c.within(3, 6)).map(|_| Crash::drawn(c)).collect(),
            twice: c.once_in(4),
            refusals: (0..c.below(6)).map(|_| Refusal::drawn(c)).collect(),
        }
    }

    /// Every run that is one thing smaller.
    pub(super) fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        less.push(|s| s.refusals.clear());
        less.push(|s| s.crashes.clear());
        less.push(|s| s.twice = false);
        (0..self.crashes.len()).for_each(|i| less.push(|s| _ = s.crashes.remove(i)));
        (0..self.refusals.len()).for_each(|i| less.push(|s| _ = s.refusals.remove(i)));
        (0..self.crashes.len()).for_each(|i| less.push(|s| s.crashes[i].torn = 0));
        (0..self.crashes.len()).for_each(|i| less.push(|s| s.crashes[i].loss = Loss::Nothing));
        less.push(|s| s.task.games = 1);
        less.push(|s| s.task.shard_rows = None);
        less.push(|s| s.task.workers = 1);
        less.push(|s| s.task.checkpoint_rows = 100);
        less.found()
    }
}
