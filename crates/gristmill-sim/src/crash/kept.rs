//! A process that keeps something for the next one -> every disk that a crash of it, or a refusal of the disk, may leave, and what its
//! judge says of each. What is kept, and how it is judged, is said elsewhere: of twins, side indexes and training.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use super::disturbed::Disturbed;
use super::log::{Crash, Log, Loss, Op};
use super::process::{Deed, Ended, traced};
use super::record::{Failing, Recorded};
use super::tree::Tree;
use crate::case::{Case, Outcome, folder};
use crate::chooser::Chooser;
use crate::less::Less;

type Found<T> = Result<T, String>;

/// What a process keeps, and how to judge what a crash left of it.
pub trait Keeps: Deed + Clone + PartialEq + Debug {
    /// What tells its choices from those of others of one number.
    const PURPOSE: u64;

    /// What its judge has to know that no disk says.
    type Known;

    /// Some such process.
    fn drawn(chooser: &mut Chooser) -> Self;

    /// Writes what is there before.
    fn prepare(&self, root: &Path) -> Found<Self::Known>;

    /// Whether what is there is right: for the next process, which may do with it what it likes.
    fn judge(&self, root: &Path, known: &Self::Known, left: &Left<'_>) -> Found<()>;

    /// Such processes that do less.
    fn less(&self) -> Vec<Self>;
}

/// What a crash left.
pub struct Left<'a> {
    /// The disk.
    pub(super) tree: &'a Tree,
    /// Names that were made before the crash, whether they lasted or not.
    pub(super) made: Vec<PathBuf>,
    /// Whether all is from one process.
    pub(super) is_of_one: bool,
    /// Whether the machine crashed, too: what was not forced may be lost.
    pub(super) lost: bool,
}

/// A whole run.
#[derive(Debug, Clone, PartialEq)]
pub struct Kept<D> {
    /// The program that does it: `PROGRAM job NAME HOW ROOT DEED`.
    pub program: PathBuf,
    /// What is done.
    pub deed: D,
    /// What disturbs it.
    pub disturbed: Disturbed,
    /// Further crashes: around each change, and in the midst of each that writes, at this number of its bytes at most.
    pub everywhere: u64,
}

fn of_disk(e: impl std::fmt::Display) -> String {
    format!("the disk of the simulation: {e}")
}

impl<D: Keeps> Kept<D> {
    /// The run of a number.
    pub fn new(seed: u64, program: &Path) -> Self {
        let mut chooser = Chooser::new(seed).apart(D::PURPOSE);
        let c = &mut chooser;
        Kept {
            program: program.to_owned(),
            deed: D::drawn(c),
            disturbed: Disturbed::drawn(c, (4, 12), 3),
            everywhere: 0,
        }
    }

    fn whole(&self, outcome: &mut Outcome) -> Found<()> {
        let folder = folder().map_err(of_disk)?;
        let root = folder.path();
        let known = &self.deed.prepare(root).map_err(|e| format!("what is there before: {e}"))?;
        let done = self.traced(root, None, false)?;
        let log = done.log;
        self.judge((root, known), (&log.end(), false), &[&log.ops]).map_err(|e| format!("undisturbed: {e}"))?;
        for crash in self.disturbed.crashes.iter().chain(&log.everywhere(self.everywhere)) {
            outcome.disks += 1;
            self.crash((root, known), &log, crash).map_err(|e| format!("{crash:?}: {e}"))?;
        }
        for refusal in &self.disturbed.refusals {
            outcome.disks += 1;
            log.before.put(root).map_err(of_disk)?;
            let refused = self.traced(root, Some(&refusal.of(log.ops.len())), false)?;
            let said = |e| format!("{refusal:?}, {}: {e}", refused.failed.clone().unwrap_or_default());
            self.judge((root, known), (&refused.log.end(), false), &[&refused.log.ops]).map_err(said)?;
        }
        Ok(())
    }

    /// Does it in a process of its own, which must not end otherwise than by its own word.
    fn traced(&self, root: &Path, failing: Option<&Failing>, again: bool) -> Found<Recorded> {
        let done = traced(&self.deed, (&self.program, root), failing, again)?;
        let refused = done.failed.is_some() && done.code == i32::from(Ended::CODES[0]);
        if done.code == 0 || refused {
            return Ok(done);
        }
        let failed = done.failed.unwrap_or_else(|| "no refusal".to_owned());
        Err(format!("the process ended with {} after {failed}: {}", done.code, done.said.trim()))
    }

    fn crash(&self, (root, known): (&Path, &D::Known), log: &Log, crash: &Crash) -> Found<()> {
        let (left, first) = (log.after(crash), &log.ops[..log.place(crash)]);
        let lost = crash.loss != Loss::Nothing;
        left.put(root).map_err(of_disk)?;
        if !self.disturbed.twice {
            return self.judge((root, known), (&left, lost), &[first]);
        }
        let second = self.traced(root, None, true)?.log;
        let left = second.after(crash);
        left.put(root).map_err(of_disk)?;
        let after = |e: String| format!("after the second crash: {e}");
        self.judge((root, known), (&left, lost), &[first, &second.ops[..second.place(crash)]]).map_err(after)
    }

    fn judge(&self, (root, known): (&Path, &D::Known), (tree, lost): (&Tree, bool), ops: &[&[Op]]) -> Found<()> {
        let created = |op: &Op| match op {
            Op::Create(name, _) => Some(name.clone()),
            _ => None,
        };
        let made = ops.iter().flat_map(|ops| ops.iter()).filter_map(created).collect();
        self.deed.judge(root, known, &Left { tree, made, is_of_one: ops.len() == 1, lost })
    }
}

impl<D: Keeps> Case for Kept<D> {
    fn run(&self) -> Outcome {
        let mut outcome = Outcome::default();
        outcome.failure = self.whole(&mut outcome).err();
        outcome
    }

    fn smaller(&self) -> Vec<Self> {
        let mut less = Less::of(self);
        self.disturbed.less().into_iter().for_each(|disturbed| less.push(|s| s.disturbed = disturbed));
        self.deed.less().into_iter().for_each(|deed| less.push(|s| s.deed = deed));
        less.found()
    }
}
