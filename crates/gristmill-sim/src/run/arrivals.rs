//! A folder that changes -> whether every file came in that must, in the time that it may take, and whether the loader waits for files.
//! Goes by the journal and the oracle alone.

use std::collections::BTreeSet;

use super::{Found, Run};
use crate::case::PATIENCE;
use crate::coverage::Fault;
use crate::disk::Disk;
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
        if self.folder.is_none() || !s.watch || waits {
            return Ok(true);
        }
        let (stream, mut all) = (self.stream(), true);
        for (number, (directory, disk)) in self.directories()?.iter().zip(self.disks()).enumerate() {
            // A file that got another name is the file that it was, and has the same key. One that was gone at first is to come again.
            let came = directory.first.iter().filter(|file| !file.chunks.is_empty());
            let came = came.chain(directory.later.iter().map(|later| &later.file));
            let known: BTreeSet<&str> = came.map(File::key).collect();
            let lacks = |file: &File| !known.contains(file.key()) && stream.takes(file);
            let files = disk.names().into_iter().map(|name| File::of(&name, &disk.now(&name)));
            let Some(missing) = files.filter(lacks).map(|file| file.name.clone()).next() else { continue };
            let most = if disk.coverage().of(Fault::Stale) > 0 { COMES_LATE } else { COMES };
            if self.mended.is_some_and(|mended| disk.polls() > mended[number] + most) {
                return Err(format!("{missing} did not come in within {most} polls"));
            }
            all = false;
        }
        Ok(all)
    }

    /// Lets the search run for a second once all troubles have ended, for a step before that. The consumer takes nothing.
    pub(super) fn searches(&self, world: &World) {
        let more = if self.mended.is_some() { SECOND } else { 1 };
        let until: Vec<u64> = self.disks().map(|disk| disk.polls() + more).collect();
        world.hungers(false);
        for _ in 0..PATIENCE {
            if self.disks().zip(&until).all(|(disk, until)| disk.polls() >= *until) {
                return;
            }
            world.step();
        }
    }

    /// Checks that the loader lists a folder after notices were lost, long before its next regular listing.
    pub(super) fn lists_what_was_lost(&self, world: &World) -> Found<()> {
        for _ in 0..PATIENCE {
            match self.disks().filter_map(Disk::polls_since_loss).max() {
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
        let feeds = |disk: &Disk| {
            let files = disk.names().into_iter().map(|name| File::of(&name, &disk.now(&name)));
            stream.feeds(&files.collect::<Vec<_>>())
        };
        let lacks = s.limit.is_some() || !self.disks().all(feeds);
        Ok(s.watch && lacks && !self.has_next()?)
    }

    /// Whether the pages have all rows of the next batch, with the files that the journal says were taken in. `false` without a journal.
    pub(super) fn has_next(&self) -> Found<bool> {
        let s = self.scenario;
        if self.folder.is_none() || !s.watch {
            return Ok(false);
        }
        let directories = self.directories()?;
        let most = (self.got.len() + 1) * s.share();
        Ok(memory::aside(|| self.stream().rows(&directories, most)).0.len() == most)
    }
}
