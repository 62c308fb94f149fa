//! Units in order -> their files: opens sources ahead of the work, puts answers into tars and files, publishes.
//! Runs on the caller's thread; it alone renames.

use std::collections::{HashSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_engine::error::{Error, Result};
use gristmill_engine::store::Store;
use gristmill_engine::store::files::is_folder;
use gristmill_engine::store::publish::{Staged, withdraw};
use gristmill_format::container::tar::TarWriter;
use gristmill_format::source::Span;

use super::line::{Answer, Line, Order, Outcome};
use super::plan::{Target, Unit};
use super::{Done, Fate, MESSAGES, RewriteOptions};
use crate::files::is_unreadable;
use crate::files::{self, Found};
use crate::work::Opened;

/// Chunks on their way, for each thread.
const AHEAD: usize = 4;

/// Chunks between two words about progress.
const TOLD: u64 = 64;

/// A unit whose files are published.
pub(super) struct Finished {
    pub(super) unit: Arc<Unit>,
    pub(super) done: Done,
    pub(super) faults: Vec<String>,
    pub(super) published: Vec<PathBuf>,
}

/// A unit on its way.
struct Open {
    finished: Finished,
    /// Numbers of its orders that are not taken yet.
    left: std::ops::Range<u64>,
    /// Member names of its orders, in order; empty for a target that is no tar.
    members: VecDeque<String>,
    /// The tar of each side that has one, and what goes into each first.
    tars: Vec<Option<TarWriter<Staged>>>,
    licences: Vec<(String, Vec<u8>)>,
}

/// The units on their way.
pub(super) struct Writer {
    line: Arc<Line>,
    outs: Vec<PathBuf>,
    root: PathBuf,
    dry_run: bool,
    ahead: u64,
    next: u64,
    taken: u64,
    open: VecDeque<Open>,
}

impl Writer {
    pub(super) fn new(line: Arc<Line>, options: &RewriteOptions, threads: usize) -> Self {
        let path = &options.path;
        let root = if is_folder(path).unwrap_or(true) { Some(path.as_path()) } else { path.parent() };
        Writer {
            line,
            outs: options.outs(),
            root: root.unwrap_or(path).to_owned(),
            dry_run: options.dry_run,
            ahead: (threads * AHEAD) as u64 + 1,
            next: 0,
            taken: 0,
            open: VecDeque::new(),
        }
    }

    /// Opens the sources of a unit and orders the work on their chunks; waits for earlier ones where too many are on
    /// their way, and tells `seen` how many chunks are done. `false` when `stop` came before its end: then the unit is
    /// forgotten.
    ///
    /// Errors: `Path`, and what ends the run.
    pub(super) fn begin(
        &mut self,
        store: &dyn Store,
        unit: &Arc<Unit>,
        stop: &AtomicBool,
        seen: &mut dyn FnMut(u64),
    ) -> Result<bool> {
        let first = self.next;
        let finished =
            Finished { unit: Arc::clone(unit), done: Done::default(), faults: Vec::new(), published: Vec::new() };
        let tars = self.outs.iter().map(|_| None).collect();
        let (members, licences) = (VecDeque::new(), Vec::new());
        self.open.push_back(Open { finished, left: first..first, members, tars, licences });
        if let (Target::Folder(name), false) = (&unit.target, self.dry_run) {
            self.outs.iter().try_for_each(|out| withdraw(&out.join(name)))?;
        }
        for stat in &unit.sources {
            let path = self.root.join(&*stat.name).display().to_string();
            match files::open(store, &stat.name, path.clone(), false) {
                Found::File(file) => {
                    if !self.order(Arc::new(file), unit, stop, seen)? {
                        self.open.pop_back();
                        self.line.forget(first);
                        return Ok(false);
                    }
                }
                // Its content is unknown: the ledger must not list it as done.
                Found::Fault(e) if is_unreadable(&e) => return Err(e.into()),
                Found::Fault(e) => self.newest().damage(&e),
                // `open` gives these for folders only.
                Found::Other | Found::Pack(_) | Found::Unlisted(_) => {}
            }
        }
        Ok(true)
    }

    fn newest(&mut self) -> &mut Open {
        self.open.back_mut().expect("a unit was begun")
    }

    fn order(&mut self, file: Arc<Opened>, unit: &Unit, stop: &AtomicBool, seen: &mut dyn FnMut(u64)) -> Result<bool> {
        for fault in file.source.faults() {
            self.newest().damage(&fault.clone().in_source(&file.path));
        }
        if !matches!(unit.target, Target::File(_)) {
            self.newest().licences.extend(file.licences());
        }
        let mut names = HashSet::new();
        for chunk in 0..file.source.len() {
            if stop.load(Ordering::Relaxed) {
                return Ok(false);
            }
            // A name of its own for each member, whatever the tar calls them.
            let base = file.member(chunk).map(|name| name.rsplit('/').next().unwrap_or(name).to_owned());
            let whole = file.source.locate(chunk).is_some_and(|(span, _)| span == Span::WHOLE);
            // Games of a text have no names: they get those of self-play.
            let numbered = format!("training.{chunk}.gz");
            let full = match file.member(chunk) {
                Some(name) => name.to_owned(),
                None if whole => file.source.describe().key.clone(),
                None => numbered.clone(),
            };
            let base = base.or((!whole).then_some(numbered));
            let name = match &unit.target {
                Target::File(name) => Some(name.clone()),
                Target::Tar(_) => None,
                Target::Folder(folder) => {
                    let base = base.filter(|name| names.insert(name.clone())).unwrap_or(format!("chunk-{chunk}.gz"));
                    Some(format!("{folder}/{base}"))
                }
            };
            if matches!(unit.target, Target::Tar(_)) {
                self.newest().members.push_back(full);
            }
            self.line.put(self.next, Order { file: Arc::clone(&file), chunk, name });
            self.next += 1;
            self.newest().left.end = self.next;
            self.relieve()?;
            if chunk > 0 && self.taken.is_multiple_of(TOLD) {
                seen(self.taken);
            }
        }
        Ok(true)
    }

    /// Takes answers until no more than a window is on its way.
    fn relieve(&mut self) -> Result<()> {
        while self.on_their_way() > self.ahead {
            self.take_one()?;
        }
        Ok(())
    }

    fn on_their_way(&self) -> u64 {
        self.open.iter().map(|open| open.left.end - open.left.start).sum()
    }

    /// Takes the oldest answer that is outstanding.
    fn take_one(&mut self) -> Result<()> {
        let Some(open) = self.open.iter_mut().find(|open| !open.left.is_empty()) else { return Ok(()) };
        let answer = self.line.take(open.left.start)?;
        open.left.start += 1;
        self.taken += 1;
        open.take(answer, &self.outs, self.dry_run)
    }

    /// The oldest unit, published, if it is complete; with `all`, waits until it is.
    ///
    /// Errors: `Path`; `Stage` when a worker broke off.
    pub(super) fn settle(&mut self, all: bool) -> Result<Option<Finished>> {
        let whole = |open: &Open| open.left.is_empty();
        while all && self.open.front().is_some_and(|open| !whole(open)) {
            self.take_one()?;
        }
        self.relieve()?;
        if !self.open.front().is_some_and(whole) {
            return Ok(None);
        }
        let Some(open) = self.open.pop_front() else { return Ok(None) };
        open.finish(&self.outs, self.dry_run).map(Some)
    }

    /// Forgets what was begun; nothing of it stays on the disk.
    pub(super) fn abandon(&mut self) {
        self.line.forget(0);
        self.open.clear();
    }
}

impl Open {
    fn damage(&mut self, e: &gristmill_format::Error) {
        *self.finished.done.damaged.entry(e.kind().name().to_owned()).or_default() += 1;
        self.note(e);
    }

    fn note(&mut self, e: &gristmill_format::Error) {
        if self.finished.faults.len() < MESSAGES {
            self.finished.faults.push(e.to_string());
        }
    }

    fn take(&mut self, answer: Answer, outs: &[PathBuf], dry_run: bool) -> Result<()> {
        let member = self.members.pop_front();
        let done = &mut self.finished.done;
        done.chunks += 1;
        done.bytes_in += answer.stored;
        done.frames_in += answer.frames_in;
        for (name, n) in answer.counts {
            *done.counts.entry(name).or_default() += n;
        }
        let (fate, bytes, staged) = match answer.outcome {
            Outcome::Out { fate, bytes, staged } => (fate, bytes, staged),
            Outcome::Dropped(e) => {
                *done.dropped.entry(e.kind().name().to_owned()).or_default() += 1;
                return Ok(());
            }
            Outcome::Damaged(e) => {
                self.damage(&e);
                return Ok(());
            }
            Outcome::Failed(e) => return Err(e),
        };
        done.frames_out += answer.frames_out;
        match fate {
            Fate::Keep => done.kept += 1,
            Fate::Write => done.changed += 1,
        }
        if dry_run {
            return Ok(());
        }
        match (staged, member, &self.finished.unit.target) {
            (Some(staged), ..) => self.publish(staged),
            (None, Some(member), Target::Tar(name)) => {
                let placed = |e: gristmill_format::Error| Error::Format(e.in_source(name));
                let tar = match &mut self.tars[answer.side] {
                    Some(tar) => tar,
                    none => {
                        let tar = none.insert(TarWriter::new(Staged::within(outs[answer.side].join(name))?));
                        for (licence, text) in &self.licences {
                            tar.append(licence, text).map_err(placed)?;
                        }
                        tar
                    }
                };
                tar.append(&member, &bytes).map(drop).map_err(|e| placed(e.in_member(&member)))
            }
            (None, ..) => Ok(()),
        }
    }

    fn publish(&mut self, staged: Staged) -> Result<()> {
        self.finished.published.push(staged.path().to_owned());
        self.finished.done.bytes_out += staged.publish()?;
        self.finished.done.files_out += 1;
        Ok(())
    }

    /// Publishes the tars, puts licences beside games that came out of a tar, and takes back what an earlier run left under names that get nothing now.
    fn finish(mut self, outs: &[PathBuf], dry_run: bool) -> Result<Finished> {
        for tar in std::mem::take(&mut self.tars).into_iter().flatten() {
            let mut staged = tar.finish()?;
            staged.seal()?;
            self.publish(staged)?;
        }
        let unit = Arc::clone(&self.finished.unit);
        if let (Target::Folder(name), false) = (&unit.target, dry_run) {
            for (licence, text) in std::mem::take(&mut self.licences) {
                let base = licence.rsplit('/').next().unwrap_or(&licence);
                // Where none of its games went there is nothing to license.
                for folder in outs.iter().map(|out| out.join(name)).filter(|folder| folder.is_dir()) {
                    let mut staged = Staged::new(folder.join(base))?;
                    staged.append(&text)?;
                    staged.seal()?;
                    self.publish(staged)?;
                }
            }
        } else if !dry_run {
            for path in outs.iter().map(|out| out.join(unit.target.name())) {
                if !self.finished.published.contains(&path) {
                    withdraw(&path)?;
                }
            }
        }
        Ok(self.finished)
    }
}
