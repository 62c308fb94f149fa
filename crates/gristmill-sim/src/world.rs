//! One thread in the place of all: which task of which lane runs next, which round, and what time it is, as a chooser says.
//! Threads sleep here as they do in production, by the signal, so that a wake-up that is lost is seen.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_engine::Result;
use gristmill_engine::runtime::scheduler::{Crew, Lane, Rounds, Signal, Tasks, guarded};
use gristmill_engine::store::{Store, World as Ground};

use crate::chooser::Chooser;
use crate::disk::{Disk, Meanwhile};

/// As long as a thread of the scheduler sleeps at most.
const NAP: Duration = Duration::from_millis(200);

/// Reads that may wait at once, one within the other.
const DEEPEST: usize = 3;

/// A thread of a lane.
struct Staff {
    lane: Lane,
    busy: bool,
    tasks: Arc<[Arc<dyn Tasks>]>,
    signal: Arc<Signal>,
    /// The signal when it went to sleep, and when it wakes by itself.
    asleep: Option<(u64, Duration)>,
}

#[derive(Default)]
struct Inner {
    staff: Vec<Staff>,
    rounds: Vec<(Duration, Option<Rounds>)>,
    now: Duration,
    depth: usize,
    /// Whether the consumer waits for a batch.
    hungry: bool,
    /// Tasks that were found by waking without a signal, while every thread slept and the consumer waited.
    unsignalled: u64,
    broke: Option<String>,
}

/// A simulated machine.
pub struct World {
    inner: Mutex<Inner>,
    chooser: Mutex<Chooser>,
    disk: Arc<Disk>,
    /// Another disk, and its place.
    second: Option<(&'static str, Arc<Disk>)>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl World {
    /// A machine with a disk, and one more at a place.
    pub fn new(chooser: Chooser, disk: Arc<Disk>, second: Option<(&'static str, Arc<Disk>)>) -> Arc<Self> {
        let world = Arc::new(World { inner: Mutex::default(), chooser: Mutex::new(chooser), disk, second });
        let own: Arc<dyn Meanwhile> = Arc::clone(&world) as _;
        let disks = [&world.disk].into_iter().chain(world.second.iter().map(|(_, disk)| disk));
        disks.for_each(|disk| disk.inhabit(Arc::downgrade(&own)));
        world
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn choose<T>(&self, choice: impl FnOnce(&mut Chooser) -> T) -> T {
        choice(&mut self.chooser.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// One step: a task, a round, or time that passes.
    pub fn step(&self) {
        let mut inner = self.lock();
        if self.choose(|chooser| chooser.once_in(400)) {
            inner.now += self.choose(|chooser| Duration::from_millis(chooser.below(3000)));
        }
        let now = inner.now;
        let staff = inner.staff.iter().enumerate().filter(|(_, staff)| staff.is_awake(now)).map(|(i, _)| i);
        let rounds = inner.rounds.iter().enumerate().filter(|(_, (due, of))| of.is_some() && *due <= now);
        let able: Vec<(bool, usize)> = staff.map(|i| (true, i)).chain(rounds.map(|(i, _)| (false, i))).collect();
        match able.get(self.choose(|chooser| chooser.below(able.len() as u64)) as usize) {
            Some((true, i)) => {
                drop(inner);
                self.task(*i);
            }
            Some((false, i)) => {
                let taken = inner.rounds[*i].1.take();
                drop(inner);
                self.round(*i, taken);
            }
            None => {
                let due = inner.rounds.iter().filter(|(_, of)| of.is_some()).map(|(due, _)| *due);
                let wakes = inner.staff.iter().filter_map(|staff| Some(staff.asleep?.1));
                inner.now = due.chain(wakes).min().unwrap_or(now + NAP).max(now);
            }
        }
    }

    fn round(&self, i: usize, rounds: Option<Rounds>) {
        let Some(mut rounds) = rounds else { return };
        match catch_unwind(AssertUnwindSafe(&mut rounds)) {
            Ok(Some(pause)) => {
                let mut inner = self.lock();
                inner.rounds[i] = (inner.now + pause, Some(rounds));
            }
            Ok(None) => {}
            Err(_) => self.lock().broke = Some("what runs in rounds broke off".to_owned()),
        }
    }

    /// Lets one thread of a lane look for a task in every chain, in an order of its own.
    fn task(&self, i: usize) {
        let mut inner = self.lock();
        let now = inner.now;
        let all_sleep = inner.hungry && inner.staff.iter().all(Staff::sleeps);
        let staff = &mut inner.staff[i];
        let (lane, tasks, seen) = (staff.lane, Arc::clone(&staff.tasks), staff.signal.seen(staff.lane));
        let unsignalled = all_sleep && staff.asleep.is_some();
        staff.busy = true;
        staff.asleep = None;
        drop(inner);
        let first = self.choose(|chooser| chooser.below(tasks.len() as u64)) as usize;
        let turn = (0..tasks.len()).map(|k| &tasks[(first + k) % tasks.len()]);
        let ran = turn.fold(false, |ran, group| ran | guarded(&**group, lane));
        let mut inner = self.lock();
        inner.unsignalled += u64::from(ran && unsignalled);
        let Some(staff) = inner.staff.get_mut(i) else { return };
        staff.busy = false;
        if !ran {
            staff.asleep = Some((seen, now + NAP));
        }
    }

    /// Says whether the consumer waits for a batch. Threads may read ahead late, but not where somebody waits for it.
    pub fn hungers(&self, hungry: bool) {
        self.lock().hungry = hungry;
    }

    /// Whether every thread sleeps, and nothing woke it.
    pub fn sleeps(&self) -> bool {
        self.lock().staff.iter().all(Staff::sleeps)
    }

    /// How many tasks were found only because a thread woke by itself.
    pub fn unsignalled(&self) -> u64 {
        self.lock().unsignalled
    }

    /// What broke off outside of tasks.
    pub fn broke(&self) -> Option<String> {
        self.lock().broke.clone()
    }

    /// Whether everything that runs in rounds has ended.
    pub fn is_quiet(&self) -> bool {
        self.lock().rounds.iter().all(|(_, rounds)| rounds.is_none())
    }

    /// Ends all threads at once, as a crash does.
    pub fn clear(&self) {
        let mut inner = self.lock();
        let gone = (std::mem::take(&mut inner.staff), std::mem::take(&mut inner.rounds));
        drop(inner);
        drop(gone);
    }
}

impl Staff {
    /// Whether nothing woke it.
    fn sleeps(&self) -> bool {
        !self.busy && self.asleep.is_some_and(|(seen, _)| self.signal.seen(self.lane) == seen)
    }

    fn is_awake(&self, now: Duration) -> bool {
        !self.busy && self.asleep.is_none_or(|(seen, wakes)| wakes <= now || self.signal.seen(self.lane) != seen)
    }
}

impl Crew for World {
    fn staff(&self, lane: Lane, count: usize, tasks: &Arc<[Arc<dyn Tasks>]>, signal: Arc<Signal>) {
        let one = |_| Staff { lane, busy: false, tasks: Arc::clone(tasks), signal: Arc::clone(&signal), asleep: None };
        self.lock().staff.extend((0..count).map(one));
    }

    fn rounds(&self, _name: &str, rounds: Rounds) {
        let mut inner = self.lock();
        let now = inner.now;
        inner.rounds.push((now, Some(rounds)));
    }

    fn works(&self) {
        self.meanwhile();
    }

    fn now(&self) -> Duration {
        self.lock().now
    }
}

impl Ground for World {
    fn open(&self, place: &Path) -> Result<Arc<dyn Store>> {
        let second = self.second.as_ref().filter(|(own, _)| Path::new(own) == place).map(|(_, disk)| disk);
        Ok(Arc::clone(second.unwrap_or(&self.disk)) as Arc<dyn Store>)
    }
}

impl Meanwhile for World {
    /// Other threads run while one waits for the disk.
    fn meanwhile(&self) {
        let mut inner = self.lock();
        // A round that reads may hold what tasks want.
        if inner.staff.iter().all(|staff| !staff.busy) || inner.depth == DEEPEST {
            return;
        }
        inner.depth += 1;
        drop(inner);
        for _ in 0..self.choose(|chooser| if chooser.once_in(2) { chooser.below(6) } else { 0 }) {
            let inner = self.lock();
            let now = inner.now;
            let able: Vec<usize> = (0..inner.staff.len()).filter(|i| inner.staff[*i].is_awake(now)).collect();
            drop(inner);
            let chosen = self.choose(|chooser| chooser.below(able.len() as u64)) as usize;
            if let Some(i) = able.get(chosen) {
                self.task(*i);
            }
        }
        self.lock().depth -= 1;
    }
}
