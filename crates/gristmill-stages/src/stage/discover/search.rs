//! A Store's list and its watch -> changes for the registry to judge, until it is stopped.
//! Reads no file to list it, takes hints only as hints, and never stops watching silently: what it cannot see it lists.

use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use gristmill_format::Kind;
use gristmill_format::detect::detect;
use gristmill_runtime::store::{Change, Discover, Faults, FileStat, Hint, Store, Take, Watch};

use super::registry::{Registry, by_key};

/// How often hints are taken.
const POLL: Duration = Duration::from_millis(20);

/// Rounds between two checks of a file that may be incomplete: 200 ms.
const SETTLE: u64 = 10;

/// As long, as a time.
const SETTLED: Duration = Duration::from_millis(200);

/// Rounds after which a file of the first scan is taken although it still grows, where no watch would see it later: 5
/// s.
const PATIENCE: u64 = 250;

/// Rounds after which a known file that is not under its name any more has left: 1 s. A program that writes a file
/// again may delete it first.
const GONE: u64 = 50;

/// Kinds of faults of a first listing for which it is made again: folders that cannot be read now, and may hold files. A folder
/// without permission is left out, like `lost+found`.
const PASSING: [&str; 3] = ["io", "mount_lost", "away"];

/// Listings before a search that does not wait ends without a scan: two seconds.
const LISTINGS: u32 = 3;

/// Fewest rounds between two listings where one is wanted before its time: 1 s. Twice as many after each that lacks a folder.
const PAUSE: u64 = 50;

/// What to look for.
#[derive(Debug, Clone)]
pub struct Search {
    /// Where.
    pub store: Arc<dyn Store>,
    /// Whether to continue after the first scan.
    pub watch: bool,
    /// Time between whole listings while watching.
    pub rescan: Duration,
    /// Names that an earlier run had: of several names of one file, they are the ones that count.
    pub expected: HashSet<String>,
    /// Whether the first scan waits for folders that cannot be read now; else it ends without one.
    pub waits: bool,
    /// Ends the search, within some 20 ms (a listing that hangs in the system excepted).
    pub stop: Arc<AtomicBool>,
}

impl Search {
    /// The search as rounds for a thread.
    pub fn ready(self) -> Discover {
        Box::new(move |take: Take| {
            let mut found = Discovery::new(self, take);
            Box::new(move || found.round().then_some(POLL))
        })
    }
}

/// Runs the search: the first scan, then changes until it is stopped, or only the scan when not watching.
pub fn run(search: &Search, take: &mut dyn FnMut(Change)) {
    let mut found = Discovery::new(search.clone(), take);
    while found.round() {
        thread::sleep(POLL);
    }
}

/// What a search does next.
enum Phase {
    /// Lists after `rest` rounds more, having listed this number of times.
    Listing { tries: u32, rest: u64 },
    /// Waits until the files of the first listing, of which these are complete, do not grow any more.
    Settling(Vec<FileStat>, Faults),
    /// Sees what changes.
    Following,
}

/// A file that may still be growing.
struct Unsettled {
    then: FileStat,
    due: u64,
    /// Kind of the error of the last check, if it may pass.
    away: Option<&'static str>,
}

struct Discovery<T: FnMut(Change)> {
    search: Search,
    phase: Phase,
    /// What was reported of listings that lacked a folder, since the last one that did not.
    told: Faults,
    /// Rounds since the last listing.
    since_list: u64,
    /// Rounds after the last listing in which the next one comes before its time: notices were lost, or led to what could not be
    /// read, or that listing lacks a folder.
    soon: Option<u64>,
    /// Whether files may have got other names without a notice: some were lost, or came while the folder was away. `sure` is the
    /// round from which on a listing has told.
    unsure: bool,
    sure: u64,
    registry: Registry,
    /// Files that may still be growing, as they were at the last check.
    unsettled: BTreeMap<Arc<str>, Unsettled>,
    /// Names that known files had, and when they are looked for again.
    leaving: BTreeMap<Arc<str>, u64>,
    round: u64,
    /// Names that no format claims.
    skipped: HashSet<Box<str>>,
    watch: Option<Box<dyn Watch>>,
    take: T,
}

impl<T: FnMut(Change)> Discovery<T> {
    fn new(search: Search, take: T) -> Self {
        Discovery {
            registry: Registry::new(search.store.clone(), search.stop.clone()),
            search,
            phase: Phase::Listing { tries: 0, rest: 0 },
            told: Faults::default(),
            since_list: 0,
            soon: None,
            unsure: false,
            sure: 0,
            unsettled: BTreeMap::new(),
            leaving: BTreeMap::new(),
            round: 0,
            skipped: HashSet::new(),
            watch: None,
            take,
        }
    }

    /// One round, without a pause in it; whether there is another.
    fn round(&mut self) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Following) {
            Phase::Listing { tries, rest: 0 } => self.list_whole(tries + 1),
            Phase::Listing { tries, rest } => {
                self.phase = Phase::Listing { tries, rest: rest - 1 };
                !self.stopped()
            }
            Phase::Settling(mut files, faults) => {
                self.round += 1;
                files.extend(self.take_settled());
                self.settled(files, faults)
            }
            Phase::Following => self.follow(),
        }
    }

    /// Rounds between two regular listings.
    fn rescan(&self) -> u64 {
        u64::try_from(self.search.rescan.as_millis() / POLL.as_millis()).unwrap_or(u64::MAX / 2).clamp(1, u64::MAX / 2)
    }

    fn stopped(&self) -> bool {
        self.search.stop.load(Ordering::Relaxed)
    }

    fn fault(&mut self, kind: &'static str, message: String) {
        (self.take)(Change::Fault { kind, message });
    }

    /// Replaces the watch by a new one. The old one ends only when the new one is there, so nothing is missed.
    fn watch_anew(&mut self) {
        if !self.search.watch {
            return;
        }
        match self.search.store.watch() {
            Ok(watch) => self.watch = watch,
            Err(e) => {
                self.watch = None;
                self.fault("watch", format!("{e}; changes are found by listing only"));
            }
        }
    }

    /// Lists everything; `None` when stopped.
    fn list(&mut self) -> Option<(Vec<FileStat>, Faults)> {
        let mut files = Vec::new();
        let mut refused = Faults::default();
        self.skipped.clear();
        let (stop, skipped) = (&self.search.stop, &mut self.skipped);
        let mut faults = self.search.store.list(&mut |file| {
            match claimed(&file.name) {
                Ok(true) => files.push(file),
                verdict => {
                    if let Err(e) = verdict {
                        refused.error(&e);
                    }
                    skipped.insert((&*file.name).into());
                }
            }
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        faults.merge(&refused);
        (!self.stopped()).then_some((files, faults))
    }

    /// The first listing: made again while parts of the tree cannot be read. A run would never know of what it lacks.
    fn list_whole(&mut self, tries: u32) -> bool {
        if tries == 1 {
            // Watched first and listed second: what changes in between is seen twice rather than never.
            self.watch_anew();
        }
        let Some((files, faults)) = self.list() else { return false };
        if !self.lacks(&faults) {
            // One that was changed a moment ago must prove that it does not grow.
            let young = |file: &FileStat| self.search.store.is_young(file, SETTLED);
            let (recent, files): (Vec<_>, Vec<_>) = files.into_iter().partition(young);
            let unsettled = |then: FileStat| (then.name.clone(), Unsettled { then, due: SETTLE, away: None });
            self.unsettled = recent.into_iter().map(unsettled).collect();
            return self.settled(files, faults);
        }
        self.phase = Phase::Listing { tries, rest: PAUSE - 1 };
        (self.search.waits || tries < LISTINGS) && !self.stopped()
    }

    /// Whether a listing lacks a folder that cannot be read now. Reports each kind of fault once, until a listing lacks none.
    fn lacks(&mut self, faults: &Faults) -> bool {
        let kinds = PASSING.into_iter().filter(|kind| faults.count(kind) > 0);
        let new: Vec<&'static str> = kinds.clone().filter(|kind| self.told.count(kind) == 0).collect();
        let lacks = kinds.count() > 0;
        for kind in new {
            let why = faults.latest(kind).unwrap_or("a folder");
            self.fault(kind, format!("{why}; all is listed again until it can be read"));
        }
        match lacks {
            true => self.told.merge(faults),
            false => self.told = Faults::default(),
        }
        lacks
    }

    fn listed(&mut self, faults: Faults) {
        let (skipped, duplicates) = (self.skipped.len() as u64, self.registry.duplicates());
        (self.take)(Change::Listed { skipped, duplicates, growing: self.unsettled.len() as u64, faults });
    }

    /// Goes on to the scan with the files of the first listing that are complete, once no other grows. Those that do are taken
    /// when they are complete or, without a watch, after a while as they are. Those that cannot be read now are waited for, as folders are.
    fn settled(&mut self, mut files: Vec<FileStat>, faults: Faults) -> bool {
        let rounds = if self.search.watch { 2 * SETTLE } else { PATIENCE };
        let away = self.unsettled.iter().find_map(|(name, file)| Some((file.away?, Arc::clone(name))));
        let away = away.filter(|_| self.search.waits && self.round >= rounds);
        let waits = self.round < rounds || away.is_some();
        if let Some((kind, name)) = away.filter(|_| self.round == rounds) {
            self.fault(
                kind,
                format!("{name}: whether it still grows cannot be read; the first scan waits until it can"),
            );
        }
        if !self.unsettled.is_empty() && !self.stopped() && waits {
            self.phase = Phase::Settling(files, faults);
            return true;
        }
        if !self.search.watch {
            for (name, file) in std::mem::take(&mut self.unsettled) {
                self.fault("growing", format!("{name}: it still grows, and is taken as it is now"));
                files.push(file.then);
            }
        }
        let files = self.registry.scan(files, &self.search.expected);
        self.report_unread();
        if self.stopped() {
            return false;
        }
        if self.sees_moves() {
            // From the first draw on, a file that is not there may have been moved.
            self.search.store.readings().looked();
        }
        // A short stream may have ended in the moment after it has its files: what could not be read is known by then.
        self.listed(faults);
        (self.take)(Change::Scanned(files));
        self.search.watch && self.follow()
    }

    /// Sees what changed since the round before.
    fn follow(&mut self) -> bool {
        if self.stopped() {
            return false;
        }
        let rescan = self.rescan();
        let mut hints = Vec::new();
        self.round += 1;
        self.since_list += 1;
        if let Some(watch) = &mut self.watch {
            watch.poll(&mut hints);
        }
        for hint in hints {
            match hint {
                Hint::Closed(name) => self.closed(&name),
                Hint::Seen(name) => self.seen(&name),
                Hint::Left(name) => {
                    if self.registry.has(&name) {
                        self.leaving.insert(name.into(), self.round + GONE);
                    }
                }
                Hint::Blind(reason) => self.fault("unwatched", reason),
                Hint::Lost(reason) => {
                    (self.soon, self.unsure) = (Some(PAUSE), true);
                    self.fault("watch", reason);
                }
            }
            if self.stopped() {
                return false;
            }
        }
        if self.since_list >= self.soon.map_or(rescan, |soon| soon.min(rescan)) {
            self.since_list = 0;
            self.list_again();
        }
        self.settle();
        self.part();
        match self.sees_moves() {
            true if self.unsure || self.round < self.sure => {}
            true => self.search.store.readings().looked(),
            false => self.search.store.readings().ended(),
        }
        true
    }

    fn sees_moves(&self) -> bool {
        self.watch.as_ref().is_some_and(|watch| watch.sees_moves())
    }

    /// Stat of a file that a hint names, if a format claims it and it is there. Where it cannot be read, a listing looks for it soon.
    fn look(&mut self, name: &str) -> Option<FileStat> {
        match claimed(name) {
            Ok(true) => match self.search.store.stat(name) {
                Ok(file) => Some(file),
                Err(e) => {
                    self.soon = self.soon.or(Some(PAUSE).filter(|_| e.kind().is_of_reading()));
                    self.unsure |= e.kind() == Kind::Away;
                    None
                }
            },
            Ok(false) => {
                self.skipped.insert(name.into());
                None
            }
            Err(e) => {
                if self.skipped.insert(name.into()) {
                    self.fault(e.kind().name(), e.in_source(name).to_string());
                }
                None
            }
        }
    }

    fn closed(&mut self, name: &str) {
        self.unsettled.remove(name);
        if let Some(file) = self.look(name) {
            self.observe(&file, true);
        }
    }

    fn seen(&mut self, name: &str) {
        if let Some(file) = self.look(name)
            && !self.registry.knows(&file)
        {
            self.unsettled.insert(file.name.clone(), Unsettled { then: file, due: self.round + SETTLE, away: None });
        }
    }

    fn observe(&mut self, file: &FileStat, closed: bool) {
        if let Some(change) = self.registry.observe(file, closed) {
            (self.take)(change);
        }
        self.report_unread();
    }

    /// Reports files that could not be read to compare them with others.
    fn report_unread(&mut self) {
        for e in self.registry.unread() {
            self.fault(e.kind().name(), format!("{e}; it counts as a file of its own, unlike any other"));
        }
    }

    /// Lists everything again; what is not known as it is must first prove that it does not grow.
    fn list_again(&mut self) {
        self.watch_anew();
        let before = self.soon.take();
        let Some((files, faults)) = self.list() else { return };
        if self.lacks(&faults) {
            self.soon = Some(before.map_or(PAUSE, |rounds| 2 * rounds.min(self.rescan())));
        }
        // What a listing found is taken once it has settled. If the whole folder is away, nothing tells what its files are called by now.
        if std::mem::replace(&mut self.unsure, faults.count("away") > 0) {
            self.sure = self.round + SETTLE;
        }
        let listed: HashSet<Arc<str>> = files.iter().map(|file| file.name.clone()).collect();
        for file in files {
            if !self.registry.knows(&file) {
                let due = self.round + SETTLE;
                self.unsettled.entry(file.name.clone()).or_insert(Unsettled { then: file, due, away: None });
            }
        }
        for name in self.registry.lacking(&listed) {
            self.leaving.entry(name).or_insert(self.round + GONE);
        }
        self.listed(faults);
    }

    /// Says which known files have left, and forgets those that nobody needs any more.
    fn part(&mut self) {
        let due: Vec<Arc<str>> =
            self.leaving.iter().filter(|(_, due)| **due <= self.round).map(|(name, _)| name.clone()).collect();
        for name in due {
            match self.search.store.stat(&name) {
                // Looked for again: it may be a folder that is away.
                Err(e) if e.kind().is_of_reading() => _ = self.leaving.insert(name, self.round + GONE),
                Err(_) => {
                    self.leaving.remove(&name);
                    self.registry.leave(&name).into_iter().for_each(&mut self.take);
                }
                // Back, or another: notices and listings say which.
                Ok(_) => _ = self.leaving.remove(&name),
            }
        }
        for (number, name) in self.search.store.readings().take_gone() {
            self.registry.gone(number, &name).into_iter().for_each(&mut self.take);
        }
        for number in self.search.store.readings().take_forgotten() {
            if let Some(name) = self.registry.forget(number) {
                self.seen(&name);
            }
        }
    }

    /// Takes the files that did not change since the last check, in key order.
    fn settle(&mut self) {
        let mut settled = self.take_settled();
        settled.sort_unstable_by(by_key);
        for file in settled {
            if self.stopped() {
                return;
            }
            self.observe(&file, false);
        }
    }

    /// The files that did not change since the last check.
    fn take_settled(&mut self) -> Vec<FileStat> {
        let mut settled = Vec::new();
        let (store, round) = (&self.search.store, self.round);
        self.unsettled.retain(|name, file| {
            if file.due > round {
                return true;
            }
            let now = match store.stat(name) {
                Ok(now) => now,
                // Checked again: it may be a folder that is away.
                Err(e) if e.kind().is_of_reading() => {
                    (file.due, file.away) = (round + SETTLE, PASSING.into_iter().find(|kind| *kind == e.kind().name()));
                    return true;
                }
                Err(_) => return false,
            };
            let grows = now != file.then;
            if grows {
                *file = Unsettled { then: now, due: round + SETTLE, away: None };
            } else {
                settled.push(now);
            }
            grows
        });
        settled
    }
}

/// Whether a format claims a file of this name; a refusal with advice for what is recognised and cannot be read.
fn claimed(name: &str) -> gristmill_format::Result<bool> {
    detect(name, &[]).map(|format| format.is_some()).map_err(|e| e.in_source(name))
}

#[cfg(test)]
mod tests;
