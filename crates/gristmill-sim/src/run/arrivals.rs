//! A folder that changes -> whether every file came in that must, in the time that it may take, and whether the loader waits for files.
//! Goes by the journal and the oracle alone.

use std::collections::BTreeSet;

use super::{Found, Run, journal};
use crate::case::PATIENCE;
use crate::coverage::Fault;
use crate::memory;
use crate::oracle::File;
use crate::world::World;

/// Polls for notices, 20 ms each, within which every file comes in that is there and can be read. A listing that lacked a folder is made
/// again after twice as long each time, so this is more than twice the polls in which folders may be away.
const COMES: u64 = 1_000;

/// As many where a listing was an older one: a minute to the next regular listing, and what that takes.
const COMES_LATE: u64 = 4_000;

/// Polls between two batches while files are awaited: a second.
const SECOND: u64 = 50;

/// Polls for notices, 20 ms each, within which the loader must list a folder after notices were lost.
const LOOKS: u64 = 100;

impl Run<'_> {
    /// Returns whether the journal has every sound file of a watched folder. Does not check runs that crash or crashed, and returns true for them:
    /// a process that resumes first makes all draws that the journal covers. Only then it takes in new files, which may take long.
    pub(super) fn all_came(&self) -> Found<bool> {
        let s = self.scenario;
        // If the limit has a `max_diff`, files wait for draws, and may wait long.
        let waits = !s.crashes.is_empty()
            || self.crashed
            || self.publishes.is_some()
            || s.limit.is_some_and(|[.., max]| max.is_finite());
        let Some(folder) = self.folder.as_ref().filter(|_| s.watch && !waits) else { return Ok(true) };
        let (first, later) = journal::read(&folder.join(s.of_rank("journal")), &self.disk)?;
        // A file that got another name is the file that it was, and has the same key.
        let known: BTreeSet<&str> = first.iter().chain(later.iter().map(|later| &later.file)).map(File::key).collect();
        let stream = self.stream();
        let lacks = |file: &File| !known.contains(file.key()) && stream.takes(file);
        let files = self.disk.names().into_iter().map(|name| File::of(&name, &self.disk.now(&name)));
        let missing = files.filter(lacks).map(|file| file.name().to_owned()).next();
        let most = if self.disk.coverage().of(Fault::Stale) > 0 { COMES_LATE } else { COMES };
        match missing {
            Some(name) if self.mended.is_some_and(|mended| self.disk.polls() > mended + most) => {
                Err(format!("{name} did not come in within {most} polls"))
            }
            missing => Ok(missing.is_none()),
        }
    }

    /// Lets the search run for a second once all troubles have ended, for a step before that. The consumer takes nothing.
    pub(super) fn searches(&self, world: &World) {
        let until = self.disk.polls() + if self.mended.is_some() { SECOND } else { 1 };
        world.hungers(false);
        for _ in 0..PATIENCE {
            if self.disk.polls() >= until {
                return;
            }
            world.step();
        }
    }

    /// Checks that the loader lists the folder after notices were lost, long before its next regular listing.
    pub(super) fn lists_what_was_lost(&self, world: &World) -> Found<()> {
        for _ in 0..PATIENCE {
            match self.disk.polls_since_loss() {
                None => return Ok(()),
                Some(polls) if polls > LOOKS => {
                    return Err(format!("notices were lost, and in {LOOKS} polls the loader did not list the folder"));
                }
                Some(_) => world.step(),
            }
        }
        Err(format!(
            "notices were lost, and in {PATIENCE} steps the loader neither listed the folder nor polled {LOOKS} times"
        ))
    }

    /// Whether a row of the next batch cannot be drawn with the files that came: a lane has none, since they left before they came
    /// in, or a limit waits.
    pub(super) fn waits_for_files(&self) -> Found<bool> {
        let s = self.scenario;
        let stream = self.stream();
        let files: Vec<File> = self.disk.names().iter().map(|name| File::of(name, &self.disk.now(name))).collect();
        let lacks = s.limit.is_some() || !stream.feeds(&files);
        Ok(s.watch && lacks && !self.has_next()?)
    }

    /// Whether the pages have all rows of the next batch, with the files that the journal says were taken in. `false` without a journal.
    pub(super) fn has_next(&self) -> Found<bool> {
        let s = self.scenario;
        let Some(folder) = self.folder.as_ref().filter(|_| s.watch) else { return Ok(false) };
        let (first, later) = journal::read(&folder.join(s.of_rank("journal")), &self.disk)?;
        let most = (self.got.len() + 1) * s.share();
        Ok(memory::aside(|| self.stream().rows(&first, &later, most)).0.len() == most)
    }
}
