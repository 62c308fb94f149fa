//! One number -> a task, and what disturbs it: crashes after which it is done again, and changes that fail while it runs. Runs nothing.

use std::path::{Path, PathBuf};

use super::disturbed::Disturbed;
use super::task::{Task, Verb};
use crate::chooser::Chooser;
use crate::less::Less;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scenario {
    /// The number that it is made of.
    pub seed: u64,
    /// The program that does tasks: `PROGRAM job ROOT TASK`.
    pub program: PathBuf,
    /// What is done.
    pub task: Task,
    /// What disturbs it.
    pub disturbed: Disturbed,
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
        Scenario { seed, program: program.to_owned(), task, disturbed: Disturbed::drawn(c, (3, 6), 6) }
    }

    /// Every run that is one thing smaller.
    pub(super) fn less(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        self.disturbed.less().into_iter().for_each(|disturbed| less.push(|s| s.disturbed = disturbed));
        less.push(|s| s.task.games = 1);
        less.push(|s| s.task.shard_rows = None);
        less.push(|s| s.task.workers = 1);
        less.push(|s| s.task.checkpoint_rows = 100);
        less.found()
    }
}
