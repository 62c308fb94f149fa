//! The threads: workers that decode and encode, readers that only wait for storage, and the odd watcher.
//! Takes anything that can `run` one task at a time; knows nothing of what the tasks do. The one file that spawns.

use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};

use super::cores::{Spent, give_way};
use super::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use super::sync::{Condvar, Mutex, MutexGuard, thread};

/// Which threads a task belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// Waits for storage.
    Read,
    /// Uses the processor.
    Work,
}

/// Something with tasks to run.
pub trait Tasks: Send + Sync {
    /// Runs the most urgent runnable task of `lane` to its end; `false` when there is none.
    fn run(&self, lane: Lane) -> bool;

    /// A task panicked with the message `what`: those that wait for its result must get an error.
    fn panicked(&self, what: &str);
}

/// What a thread does again and again: one round without a pause, and how long to pause after it; `None` when it has ended.
pub type Rounds = Box<dyn FnMut() -> Option<Duration> + Send>;

/// Takes the place of threads and of the clock: who decides which task runs next, and what time it is. The simulated mill does.
pub trait Crew: Send + Sync + Debug {
    /// Takes over tasks that `count` threads of a lane would run, which sleep by this signal.
    fn staff(&self, lane: Lane, count: usize, tasks: &Arc<[Arc<dyn Tasks>]>, signal: Arc<Signal>);

    /// Takes over what a thread of this name would do in rounds.
    fn rounds(&self, name: &str, rounds: Rounds);

    /// Time since some beginning; never goes back.
    fn now(&self) -> Duration;

    /// The thread that calls holds no lock and works for a while: others may run meanwhile.
    fn works(&self) {}

    /// What the thread that calls got of the cores: here every thread has one of its own.
    fn spent(&self) -> Spent {
        Spent::default()
    }
}

/// What time it is: that of this machine, or what a crew says.
#[derive(Debug, Clone)]
pub struct Time {
    began: Instant,
    crew: Option<Arc<dyn Crew>>,
}

impl Time {
    /// Time since some beginning.
    pub fn now(&self) -> Duration {
        self.crew.as_ref().map_or_else(|| self.began.elapsed(), |crew| crew.now())
    }

    /// Tells a crew that the calling thread holds no lock and works for a while. Does nothing if threads of this machine do the work.
    pub fn works(&self) {
        if let Some(crew) = &self.crew {
            crew.works();
        }
    }

    /// What the calling thread got of the cores so far.
    pub fn spent(&self) -> Spent {
        self.crew.as_ref().map_or_else(super::cores::spent, |crew| crew.spent())
    }
}

/// Runs one task, `false` when there is none; a panic ends the task, not the thread.
pub fn guarded(tasks: &dyn Tasks, lane: Lane) -> bool {
    catch_unwind(AssertUnwindSafe(|| tasks.run(lane))).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        tasks.panicked(text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message"));
        true
    })
}

/// A counter per lane that its sleeping threads watch: it moves whenever a task of the lane may be runnable.
#[derive(Debug, Default)]
pub struct Signal {
    read: Watched,
    work: Watched,
}

#[derive(Debug, Default)]
struct Watched {
    count: Mutex<u64>,
    moved: Condvar,
    sleepers: AtomicUsize,
}

impl Signal {
    fn lane(&self, lane: Lane) -> &Watched {
        match lane {
            Lane::Read => &self.read,
            Lane::Work => &self.work,
        }
    }

    /// How often it moved in a lane; threads sleep while it does not.
    pub fn seen(&self, lane: Lane) -> u64 {
        *self.lane(lane).lock()
    }

    /// Wakes the sleeping threads of a lane to look again.
    pub fn notify(&self, lane: Lane) {
        let watched = self.lane(lane);
        *watched.lock() += 1;
        if watched.sleepers.load(Ordering::SeqCst) > 0 {
            watched.moved.notify_all();
        }
    }

    /// Wakes one sleeping thread of a lane: one task may be runnable, and the thread that begins it signals at once if there are more. So
    /// no thread without a task takes the core of a consumer that takes a batch.
    pub fn notify_one(&self, lane: Lane) {
        let watched = self.lane(lane);
        *watched.lock() += 1;
        if watched.sleepers.load(Ordering::SeqCst) > 0 {
            watched.moved.notify_one();
        }
    }

    /// Wakes everybody.
    pub fn notify_all(&self) {
        self.notify(Lane::Read);
        self.notify(Lane::Work);
    }
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, u64> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until the counter is no longer `seen`, at most for `most`.
    fn sleep(&self, seen: u64, most: Duration) {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let guard = self.lock();
        let _woken =
            self.moved.wait_timeout_while(guard, most, |now| *now == seen).unwrap_or_else(PoisonError::into_inner);
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Longest sleep between two looks, so that nothing can be missed for longer.
const NAP: Duration = Duration::from_millis(200);

/// Longest wait for threads when stopping; a thread still running then is detached and named.
const STOP_WAIT: Duration = Duration::from_millis(900);

#[derive(Debug, Default)]
struct Roll {
    running: Mutex<Vec<String>>,
    left: Condvar,
    stops: Condvar,
}

/// The threads of one loader.
#[derive(Debug)]
pub struct Scheduler {
    signal: Arc<Signal>,
    stop: Arc<AtomicBool>,
    roll: Arc<Roll>,
    time: Time,
}

impl Default for Scheduler {
    fn default() -> Self {
        Self::new()
    }
}

impl Scheduler {
    /// A scheduler without threads.
    pub fn new() -> Self {
        Scheduler::of(None)
    }

    /// The same; or one that never has any, because a crew does their work.
    pub fn of(crew: Option<Arc<dyn Crew>>) -> Self {
        let time = Time { began: Instant::now(), crew };
        Scheduler { signal: Arc::default(), stop: Arc::default(), roll: Arc::default(), time }
    }

    /// The clock that tasks go by.
    pub fn time(&self) -> Time {
        self.time.clone()
    }

    /// What tasks use to say that there may be more to do.
    pub fn signal(&self) -> Arc<Signal> {
        Arc::clone(&self.signal)
    }

    /// Set once the loader stops; long tasks look at it.
    pub fn stop_flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.stop)
    }

    /// Starts one named thread that ends by itself or when the stop flag is set.
    /// Errors: the system has no more threads, or a crew takes their place.
    pub fn spawn(&self, name: &str, body: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        if self.time.crew.is_some() {
            return Err(std::io::Error::new(std::io::ErrorKind::Unsupported, "this runs without threads"));
        }
        let roll = Arc::clone(&self.roll);
        let own = name.to_owned();
        roll.running.lock().unwrap_or_else(PoisonError::into_inner).push(own.clone());
        let entry = Leave { roll: Arc::clone(&roll), name: own };
        thread::Builder::new().name(format!("gm-{name}")).spawn(move || {
            let _entry = entry;
            give_way();
            body();
        })?;
        Ok(())
    }

    /// Starts one named thread that goes through rounds until they end. A stop ends a pause, and the round that follows is the last.
    ///
    /// Errors: the system has no more threads.
    pub fn rounds(&self, name: &str, mut rounds: Rounds) -> std::io::Result<()> {
        if let Some(crew) = &self.time.crew {
            crew.rounds(name, rounds);
            return Ok(());
        }
        let (roll, stop) = (Arc::clone(&self.roll), self.stop_flag());
        self.spawn(name, move || {
            let mut ends = false;
            while let Some(pause) = rounds()
                && !ends
            {
                let running = roll.running.lock().unwrap_or_else(PoisonError::into_inner);
                let pauses = |_: &mut Vec<String>| !stop.load(Ordering::SeqCst);
                let _over =
                    roll.stops.wait_timeout_while(running, pause, pauses).unwrap_or_else(PoisonError::into_inner);
                ends = stop.load(Ordering::SeqCst);
            }
        })
    }

    /// Starts `count` threads that run the tasks of `lane`.
    pub fn staff(&self, lane: Lane, count: usize, tasks: &Arc<[Arc<dyn Tasks>]>) -> std::io::Result<()> {
        if let Some(crew) = &self.time.crew {
            crew.staff(lane, count, tasks, self.signal());
            return Ok(());
        }
        for i in 0..count {
            let (tasks, signal, stop) = (Arc::clone(tasks), self.signal(), self.stop_flag());
            let name = format!("{}-{i}", if lane == Lane::Read { "read" } else { "work" });
            self.spawn(&name, move || {
                let watched = signal.lane(lane);
                loop {
                    // Reads the count of signals before the flag and the tasks: a later signal ends the sleep.
                    let seen = *watched.lock();
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let turn = (0..tasks.len()).map(|k| &tasks[(i + k) % tasks.len()]);
                    if !turn.fold(false, |ran, group| ran | guarded(&**group, lane)) {
                        watched.sleep(seen, NAP);
                    }
                }
            })?;
        }
        Ok(())
    }

    /// Tells all threads to end and waits for them, at most a second.
    /// Returns the names of those still running (a hung read): they are detached.
    pub fn stop(&self) -> Vec<String> {
        self.stop.store(true, Ordering::SeqCst);
        self.signal.notify_all();
        let running = self.roll.running.lock().unwrap_or_else(PoisonError::into_inner);
        self.roll.stops.notify_all();
        let waited = self.roll.left.wait_timeout_while(running, STOP_WAIT, |names| !names.is_empty());
        waited.unwrap_or_else(PoisonError::into_inner).0.clone()
    }
}

impl Drop for Scheduler {
    /// Threads of a start that failed half-way end by themselves. Takes no lock: in a forked child one may be held
    /// by a thread that does not exist there.
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

struct Leave {
    roll: Arc<Roll>,
    name: String,
}

impl Drop for Leave {
    fn drop(&mut self) {
        let mut running = self.roll.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = running.iter().position(|name| *name == self.name) {
            running.swap_remove(at);
        }
        drop(running);
        self.roll.left.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Count {
        left: AtomicUsize,
        done: AtomicUsize,
    }

    impl Tasks for Count {
        fn run(&self, lane: Lane) -> bool {
            let took = lane == Lane::Work
                && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok();
            self.done.fetch_add(usize::from(took), Ordering::SeqCst);
            took
        }

        fn panicked(&self, what: &str) {
            unreachable!("{what}");
        }
    }

    #[test]
    fn tasks_run_once_each_and_a_signal_wakes_sleepers() {
        let count = Arc::new(Count::default());
        let scheduler = Scheduler::new();
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([count.clone() as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, 3, &tasks).unwrap();
        scheduler.staff(Lane::Read, 1, &tasks).unwrap();
        for _ in 0..50 {
            count.left.store(20, Ordering::SeqCst);
            scheduler.signal().notify(Lane::Work);
            while count.left.load(Ordering::SeqCst) > 0 {
                std::thread::yield_now();
            }
        }
        assert!(scheduler.stop().is_empty());
        assert_eq!(count.done.load(Ordering::SeqCst), 1000);
        assert!(scheduler.stop().is_empty(), "stopping twice is harmless");
    }

    #[derive(Default)]
    struct Fragile {
        tries: AtomicUsize,
        told: Mutex<Vec<String>>,
    }

    impl Tasks for Fragile {
        fn run(&self, _: Lane) -> bool {
            let n = self.tries.fetch_add(1, Ordering::SeqCst);
            assert!(n != 1, "task {n} broke");
            n < 3
        }

        fn panicked(&self, what: &str) {
            self.told.lock().unwrap().push(what.to_owned());
        }
    }

    #[test]
    fn a_panicking_task_is_told_and_its_thread_goes_on() {
        let fragile = Arc::new(Fragile::default());
        let scheduler = Scheduler::new();
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([fragile.clone() as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, 1, &tasks).unwrap();
        while fragile.tries.load(Ordering::SeqCst) < 4 {
            std::thread::yield_now();
        }
        assert!(scheduler.stop().is_empty());
        assert_eq!(*fragile.told.lock().unwrap(), ["task 1 broke"]);
    }

    #[test]
    fn a_stop_ends_the_pause_between_rounds_and_the_last_one_runs() {
        let scheduler = Scheduler::new();
        let rounds = Arc::new(AtomicUsize::new(0));
        let ran = Arc::clone(&rounds);
        let round = move || {
            ran.fetch_add(1, Ordering::SeqCst);
            Some(Duration::from_secs(3600))
        };
        scheduler.rounds("hourly", Box::new(round)).unwrap();
        while rounds.load(Ordering::SeqCst) == 0 {
            std::thread::yield_now();
        }
        assert!(scheduler.stop().is_empty());
        assert_eq!(rounds.load(Ordering::SeqCst), 2);
    }

    #[test]
    fn a_hung_thread_is_named_and_left_behind() {
        let scheduler = Scheduler::new();
        let release = Arc::new(AtomicBool::new(false));
        let held = Arc::clone(&release);
        scheduler
            .spawn("hung-read", move || {
                while !held.load(Ordering::SeqCst) {
                    std::thread::sleep(Duration::from_millis(5));
                }
            })
            .unwrap();
        assert_eq!(scheduler.stop(), ["hung-read"]);
        release.store(true, Ordering::SeqCst);
        while !scheduler.stop().is_empty() {}
    }
}
