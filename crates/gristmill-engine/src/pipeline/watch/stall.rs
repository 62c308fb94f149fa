//! Who waits for whom, of one output: the time within its calls is the loader's, divided by what the batch lacked; the time
//! between them is the trainer's. Measures only while a consumer waits; decides nothing and delays nothing.

use std::cell::RefCell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_runtime::runtime::cores::{Spent, major_faults};
use gristmill_runtime::runtime::metrics::Counter;
use gristmill_runtime::runtime::scheduler::{Lane, Time};

/// What a batch lacked that a consumer waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) enum Cause {
    /// Its stored bytes.
    Storage,
    /// Rows of a table, read and put together.
    Gather,
    /// Chunks decoded, and sent through the passes.
    Decode,
    /// Rows copied into their slots.
    Copy,
    /// Rows written as tensors.
    Encode,
    /// Nothing: it was on its way from one thread to another.
    Handoff,
    /// A core: threads were ready to run, and others had the cores.
    Core,
    /// Games or rows to mix with: the first scan, the first game, the reservoir.
    Pool,
    /// New games: the pool's limit allows no more draws until some come.
    Arrivals,
}

/// All of them, as totals list them.
pub(in crate::pipeline) const CAUSES: [(Cause, &str); 9] = [
    (Cause::Storage, "storage"),
    (Cause::Gather, "gather"),
    (Cause::Decode, "decode"),
    (Cause::Copy, "copy"),
    (Cause::Encode, "encode"),
    (Cause::Handoff, "handoff"),
    (Cause::Core, "core"),
    (Cause::Pool, "pool"),
    (Cause::Arrivals, "arrivals"),
];

/// Those that workers do.
const WORK: [Cause; 4] = [Cause::Gather, Cause::Decode, Cause::Copy, Cause::Encode];

/// What a batch lacks at a moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) enum Lack {
    /// This.
    Of(Cause),
    /// A thread to work on it: what the workers do instead is the cause.
    Worker,
}

/// Threads of each lane that run a task now, of all outputs of a loader.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Crowd([AtomicUsize; 2]);

/// Nanoseconds of each kind of work since the start, in the order of [`WORK`].
pub(in crate::pipeline) type Work = [u64; 4];

/// Nanoseconds: those of the trainer, then those of each cause.
pub(in crate::pipeline) type Totals = [u64; 1 + CAUSES.len()];

/// A thread reads what it got of the cores each time that its tasks took this long.
const STRIP: Duration = Duration::from_millis(1);

/// What the tasks of a lane took: the time until they were done, how much of it they had no core, and waited for the disk.
#[derive(Debug, Default)]
struct Ran {
    wall: Counter,
    held_up: Counter,
    blocked: Counter,
}

/// Totals of [`Ran`].
type Mark = [u64; 3];

#[derive(Debug, Default)]
struct State {
    /// When the first batch was wanted, and when it ended.
    first: Option<Duration>,
    ended: Option<Duration>,
    /// Consumers that wait.
    waiters: usize,
    /// Since when the batch lacks this.
    since: Duration,
    lack: Option<Lack>,
    /// What is not divided yet, by cause, and for a thread.
    raw: [u64; CAUSES.len()],
    workers: u64,
    /// What was waited in all.
    waited: u64,
    divided: [u64; CAUSES.len()],
    marks: [Mark; 2],
    work: Work,
}

/// Of one output.
#[derive(Debug)]
pub(in crate::pipeline) struct Stall {
    time: Time,
    crowd: Arc<Crowd>,
    hungry: AtomicUsize,
    ran: [Ran; 2],
    state: Mutex<State>,
}

/// A wait of a consumer: what its thread had got of the cores when it began.
#[derive(Debug)]
pub(in crate::pipeline) struct Wait(Spent);

thread_local! {
    static STRIPS: RefCell<[Strip; 2]> = RefCell::default();
}

/// What a thread did since it read last what it got.
#[derive(Debug, Clone, Copy, Default)]
struct Strip {
    wall: Duration,
    last: Option<Spent>,
    faults: u64,
}

fn place(lane: Lane) -> usize {
    usize::from(lane == Lane::Work)
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

impl Stall {
    /// Of an output that has not begun.
    pub(in crate::pipeline) fn new(time: Time, crowd: Arc<Crowd>) -> Self {
        Stall { time, crowd, hungry: AtomicUsize::new(0), ran: Default::default(), state: Mutex::default() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a consumer waits now.
    pub(in crate::pipeline) fn is_hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Whether no thread of a lane runs a task.
    pub(in crate::pipeline) fn is_idle(&self, lane: Lane) -> bool {
        self.crowd.0[place(lane)].load(Ordering::Relaxed) == 0
    }

    /// Runs a task of a lane, if there is one, and notes what it took.
    pub(in crate::pipeline) fn task(&self, lane: Lane, run: impl FnOnce() -> bool) -> bool {
        let busy = Busy::new(&self.crowd.0[place(lane)]);
        STRIPS.with_borrow_mut(|strips| _ = strips[place(lane)].last.get_or_insert_with(|| self.time.spent()));
        let before = self.time.now();
        let ran = run();
        drop(busy);
        if ran {
            let took = self.time.now().saturating_sub(before);
            STRIPS.with_borrow_mut(|strips| {
                let strip = &mut strips[place(lane)];
                strip.wall += took;
                if strip.wall >= STRIP {
                    self.note(lane, strip);
                }
            });
        }
        ran
    }

    fn note(&self, lane: Lane, strip: &mut Strip) {
        let now = self.time.spent();
        let last = strip.last.replace(now).unwrap_or(now);
        let wall = nanos(std::mem::take(&mut strip.wall));
        let [ran, held_up] =
            [(now.ran, last.ran), (now.held_up, last.held_up)].map(|(now, last)| nanos(now.saturating_sub(last)));
        let wall = wall.max(ran.saturating_add(held_up));
        let mut blocked = wall - ran.saturating_add(held_up).min(wall);
        // Asking why costs more than asking whether.
        if lane == Lane::Work && now != Spent::default() && blocked > wall / 4 {
            let faults = major_faults();
            if std::mem::replace(&mut strip.faults, faults) == faults {
                blocked = 0;
            }
        } else {
            blocked = 0;
        }
        let of = &self.ran[place(lane)];
        of.wall.add(wall);
        of.held_up.add(held_up);
        of.blocked.add(blocked);
    }

    /// A consumer wants a batch; it waited `before` already, until there was a loader to ask.
    pub(in crate::pipeline) fn wanted(&self, before: impl FnOnce() -> Duration) {
        let mut state = self.state();
        if state.first.is_none() {
            let before = before();
            state.first = Some(self.time.now().saturating_sub(before));
            state.waited += nanos(before);
            state.divided[Cause::Pool as usize] += nanos(before);
        }
    }

    /// A consumer begins to wait for a batch that lacks this.
    pub(in crate::pipeline) fn begin(&self, lack: Lack) -> Wait {
        let mut state = self.state();
        let now = self.time.now();
        if state.waiters == 0 {
            (state.since, state.lack) = (now, Some(lack));
        }
        state.waiters += 1;
        self.hungry.store(state.waiters, Ordering::Relaxed);
        drop(state);
        Wait(self.time.spent())
    }

    /// The batch lacks something else now.
    pub(in crate::pipeline) fn turn(&self, lack: Lack) {
        let mut state = self.state();
        if state.waiters > 0 {
            state.pass(self.time.now());
            state.lack = Some(lack);
        }
    }

    /// A consumer waits no more.
    pub(in crate::pipeline) fn end(&self, wait: &Wait, work: Work) {
        let spent = self.time.spent();
        let mut state = self.state();
        state.pass(self.time.now());
        state.waiters = state.waiters.saturating_sub(1);
        self.hungry.store(state.waiters, Ordering::Relaxed);
        // Its own thread may have had no core to take what was there.
        let held_up = nanos(spent.held_up.saturating_sub(wait.0.held_up)).min(state.raw[Cause::Handoff as usize]);
        state.raw[Cause::Handoff as usize] -= held_up;
        state.raw[Cause::Core as usize] += held_up;
        state.divide(self.marks(), work);
    }

    /// There are no more batches.
    pub(in crate::pipeline) fn over(&self) {
        let now = self.time.now();
        self.state().ended.get_or_insert(now);
    }

    fn marks(&self) -> [Mark; 2] {
        [0, 1].map(|lane| {
            let of: &Ran = &self.ran[lane];
            [of.wall.get(), of.held_up.get(), of.blocked.get()]
        })
    }

    /// What was waited so far, until this moment.
    pub(in crate::pipeline) fn totals(&self, work: Work) -> Totals {
        let state = self.state();
        let now = self.time.now();
        let mut copy = State { marks: state.marks, work: state.work, divided: state.divided, ..State::default() };
        (copy.raw, copy.workers, copy.waited) = (state.raw, state.workers, state.waited);
        (copy.since, copy.lack, copy.waiters) = (state.since, state.lack, state.waiters);
        let span = state.first.map_or(Duration::ZERO, |first| state.ended.unwrap_or(now).saturating_sub(first));
        drop(state);
        if copy.waiters > 0 {
            copy.pass(now);
        }
        copy.divide(self.marks(), work);
        let mut totals = [0; 1 + CAUSES.len()];
        totals[0] = nanos(span).saturating_sub(copy.waited);
        for (i, total) in totals[1..].iter_mut().enumerate() {
            *total = copy.divided[i] + copy.raw[i];
        }
        totals
    }
}

impl State {
    /// The time since the last turn is that of what the batch lacked.
    fn pass(&mut self, now: Duration) {
        let passed = nanos(now.saturating_sub(self.since));
        self.since = now;
        self.waited += passed;
        match self.lack {
            Some(Lack::Of(cause)) => self.raw[cause as usize] += passed,
            Some(Lack::Worker) => self.workers += passed,
            None => {}
        }
    }

    /// Divides what was waited by what the threads did and got meanwhile. What no task has ended of waits for one.
    fn divide(&mut self, marks: [Mark; 2], work: Work) {
        let mut did: Work = std::array::from_fn(|i| work[i].saturating_sub(self.work[i]));
        if did.iter().sum::<u64>() == 0 {
            did = work;
        }
        let all = did.iter().sum::<u64>();
        if all > 0 {
            for (cause, did) in WORK.into_iter().zip(did) {
                self.raw[cause as usize] += part(self.workers, did, all);
            }
            (self.workers, self.work) = (0, work);
        } else {
            // Threads were busy with other outputs from the first batch on.
            self.raw[Cause::Decode as usize] += std::mem::take(&mut self.workers);
        }
        for (lane, causes) in [(0, &[Cause::Storage][..]), (1, &WORK[..])] {
            let [wall, held_up, blocked] = std::array::from_fn(|i| marks[lane][i].saturating_sub(self.marks[lane][i]));
            if wall == 0 {
                continue;
            }
            self.marks[lane] = marks[lane];
            for cause in causes {
                let raw = std::mem::take(&mut self.raw[*cause as usize]);
                let held_up = part(raw, held_up, wall).min(raw);
                let blocked = part(raw, blocked, wall).min(raw - held_up);
                self.divided[Cause::Core as usize] += held_up;
                self.divided[Cause::Storage as usize] += blocked;
                self.divided[*cause as usize] += raw - held_up - blocked;
            }
        }
        for cause in [Cause::Handoff, Cause::Core, Cause::Pool] {
            self.divided[cause as usize] += std::mem::take(&mut self.raw[cause as usize]);
        }
    }
}

/// `of` times `a / b`.
fn part(of: u64, a: u64, b: u64) -> u64 {
    u64::try_from(u128::from(of) * u128::from(a) / u128::from(b.max(1))).unwrap_or(u64::MAX)
}

/// Counts a thread among those that run a task, until it is dropped: a task may break off.
struct Busy<'a>(&'a AtomicUsize);

impl<'a> Busy<'a> {
    fn new(count: &'a AtomicUsize) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Busy(count)
    }
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gristmill_runtime::runtime::scheduler::{Crew, Rounds, Scheduler, Signal, Tasks};

    /// What time it is and what the one thread got of the cores, as a test says.
    #[derive(Debug, Default)]
    struct Said(Mutex<(Duration, Spent)>);

    impl Said {
        /// Time passes: milliseconds on a core, without one although one was wanted, and asleep.
        fn pass(&self, ran: u64, held_up: u64, slept: u64) {
            let mut said = self.0.lock().unwrap();
            said.0 += Duration::from_millis(ran + held_up + slept);
            said.1.ran += Duration::from_millis(ran);
            said.1.held_up += Duration::from_millis(held_up);
        }
    }

    impl Crew for Said {
        fn staff(&self, _: Lane, _: usize, _: &Arc<[Arc<dyn Tasks>]>, _: Arc<Signal>) {}

        fn rounds(&self, _: &str, _: Rounds) {}

        fn now(&self) -> Duration {
            self.0.lock().unwrap().0
        }

        fn spent(&self) -> Spent {
            self.0.lock().unwrap().1
        }
    }

    /// Milliseconds of the trainer and of each cause, where a consumer takes 10 ms between calls and waits for what passes in
    /// tasks of the workers and of the readers.
    fn found(lack: Lack, worked: [u64; 3], read: [u64; 3], work: Work) -> Vec<u64> {
        STRIPS.take();
        let said = Arc::new(Said::default());
        let stall = Stall::new(Scheduler::of(Some(Arc::clone(&said) as Arc<dyn Crew>)).time(), Arc::default());
        stall.wanted(|| Duration::ZERO);
        said.pass(10, 0, 0);
        let wait = stall.begin(lack);
        for (lane, [ran, held_up, slept]) in [(Lane::Work, worked), (Lane::Read, read)] {
            assert!(!stall.task(lane, || false), "nothing to do takes no time");
            assert!(stall.task(lane, || {
                said.pass(ran, held_up, slept);
                true
            }));
        }
        let during = stall.totals(work);
        stall.end(&wait, work);
        assert_eq!(stall.totals(work), during, "a wait is seen while it lasts");
        stall.over();
        said.pass(99, 0, 0);
        assert_eq!(stall.totals(work), during, "nothing is waited for after the end");
        during.iter().map(|ns| ns / 1_000_000).collect()
    }

    #[test]
    fn time_without_a_core_is_taken_off_the_work_and_off_the_storage() {
        let decode = Lack::Of(Cause::Decode);
        assert_eq!(found(decode, [40, 0, 0], [0; 3], [0; 4]), [10, 0, 0, 40, 0, 0, 0, 0, 0, 0]);
        assert_eq!(found(decode, [10, 30, 0], [0; 3], [0; 4]), [10, 0, 0, 10, 0, 0, 0, 30, 0, 0]);
        // What sleeps wants no core.
        assert_eq!(found(decode, [10, 0, 30], [0; 3], [0; 4]), [10, 0, 0, 40, 0, 0, 0, 0, 0, 0]);
        let storage = Lack::Of(Cause::Storage);
        assert_eq!(found(storage, [0; 3], [1, 9, 30], [0; 4]), [10, 31, 0, 0, 0, 0, 0, 9, 0, 0]);
        assert_eq!(found(Lack::Of(Cause::Pool), [10, 30, 0], [0; 3], [0; 4]), [10, 0, 0, 0, 0, 0, 0, 0, 40, 0]);
    }

    #[test]
    fn where_workers_are_busy_it_is_what_they_do() {
        assert_eq!(found(Lack::Worker, [40, 0, 0], [0; 3], [1, 2, 0, 5]), [10, 0, 5, 10, 0, 25, 0, 0, 0, 0]);
        assert_eq!(found(Lack::Worker, [20, 20, 0], [0; 3], [0, 0, 0, 8]), [10, 0, 0, 0, 0, 20, 0, 20, 0, 0]);
    }

    #[test]
    fn turns_divide_a_wait_and_a_consumer_may_lack_a_core_itself() {
        let said = Arc::new(Said::default());
        let stall = Stall::new(Scheduler::of(Some(Arc::clone(&said) as Arc<dyn Crew>)).time(), Arc::default());
        stall.turn(Lack::Worker);
        stall.wanted(|| Duration::from_millis(7));
        let wait = stall.begin(Lack::Of(Cause::Storage));
        said.pass(0, 0, 20);
        stall.turn(Lack::Of(Cause::Handoff));
        said.pass(0, 4, 1);
        stall.end(&wait, [0; 4]);
        assert!(!stall.is_hungry() && stall.is_idle(Lane::Work));
        let found = stall.totals([0; 4]).map(|ns| ns / 1_000_000);
        assert_eq!(found, [0, 20, 0, 0, 0, 0, 1, 4, 7, 0]);
    }
}
