//! Numbered pieces of work -> their results, in order, made by many threads ahead of the reader, which is one of them.
//! At most a window of them is under way or waits, so that memory is bounded by the size of a result.

use std::collections::VecDeque;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use crate::error::{Error, Result};
use crate::runtime::scheduler::{Lane, Scheduler, Signal, Tasks, guarded};
use crate::runtime::sync::atomic::{AtomicBool, Ordering};
use crate::runtime::sync::{Condvar, Mutex, MutexGuard};
use crate::sql::ended;

/// How long the reader sleeps before it looks whether it should stop.
const LOOK: Duration = Duration::from_millis(100);

/// Refuses a number of threads that no job takes.
///
/// Errors: `Config`.
pub fn check(workers: usize) -> Result<()> {
    match workers {
        1..=256 => Ok(()),
        _ => Err(Error::config("workers", format!("{workers} threads; expected 1 to 256"))),
    }
}

/// What threads work with, one at a time, and use again: buffers, decoders.
#[derive(Debug)]
pub struct Hands<T>(Mutex<Vec<T>>);

impl<T> Default for Hands<T> {
    fn default() -> Self {
        Hands(Mutex::default())
    }
}

impl<T: Default> Hands<T> {
    /// One that waits, or a new one.
    pub fn take(&self) -> T {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).pop().unwrap_or_default()
    }

    /// Gives one back.
    pub fn put(&self, hand: T) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(hand);
    }

    /// Works with one.
    pub fn with<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let mut hand = self.take();
        let done = work(&mut hand);
        self.put(hand);
        done
    }
}

/// The results of `make(0)`, `make(1)`, …, one after another.
pub struct InOrder<R: Send + 'static> {
    board: Arc<Board<R>>,
    scheduler: Scheduler,
    stop: Arc<AtomicBool>,
}

struct Board<R> {
    make: Box<dyn Fn(usize) -> R + Send + Sync>,
    count: usize,
    window: usize,
    state: Mutex<State<R>>,
    ready: Condvar,
    signal: Arc<Signal>,
}

struct State<R> {
    /// Results from number `base` on; none where a thread is at it.
    results: VecDeque<Option<R>>,
    base: usize,
    broken: Option<String>,
}

impl<R: Send + 'static> InOrder<R> {
    /// Lets `workers` threads, that which reads the results among them, do `count` pieces of work.
    ///
    /// Errors: the system has no more threads.
    pub fn start(
        workers: usize,
        count: usize,
        stop: Arc<AtomicBool>,
        make: impl Fn(usize) -> R + Send + Sync + 'static,
    ) -> std::io::Result<Self> {
        let scheduler = Scheduler::new();
        let state = Mutex::new(State { results: VecDeque::new(), base: 0, broken: None });
        let (make, signal) = (Box::new(make), scheduler.signal());
        let board = Arc::new(Board { make, count, window: 2 * workers + 2, state, ready: Condvar::new(), signal });
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([board.clone() as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, workers - 1, &tasks)?;
        Ok(InOrder { board, scheduler, stop })
    }

    /// The next result; `None` after the last.
    ///
    /// Errors: `Stopped`; `Stage` when a thread panicked.
    #[allow(clippy::should_implement_trait, reason = "it may fail, and the reader waits")]
    pub fn next(&mut self) -> Result<Option<R>> {
        loop {
            if self.stop.load(Ordering::Relaxed) || ended() {
                return Err(Error::Stopped);
            }
            let mut state = self.board.lock();
            if let Some(what) = &state.broken {
                return Err(Error::Stage { stage: "worker".into(), message: what.clone() });
            }
            if state.base == self.board.count {
                return Ok(None);
            }
            if let Some(result) = state.results.pop_front_if(|result| result.is_some()) {
                state.base += 1;
                drop(state);
                self.board.signal.notify(Lane::Work);
                return Ok(result);
            }
            drop(state);
            if !guarded(&*self.board, Lane::Work) {
                let state = self.board.lock();
                let waits =
                    |state: &mut State<R>| state.broken.is_none() && state.results.front().is_none_or(Option::is_none);
                let _woken = self.board.ready.wait_timeout_while(state, LOOK, waits);
            }
        }
    }
}

impl<R: Send + 'static> Drop for InOrder<R> {
    fn drop(&mut self) {
        let _hung = self.scheduler.stop();
    }
}

impl<R> Board<R> {
    fn lock(&self) -> MutexGuard<'_, State<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<R: Send> Tasks for Board<R> {
    fn run(&self, _: Lane) -> bool {
        let mut state = self.lock();
        let number = state.base + state.results.len();
        if number == self.count || state.results.len() == self.window {
            return false;
        }
        state.results.push_back(None);
        drop(state);
        let result = (self.make)(number);
        let mut state = self.lock();
        let at = number - state.base;
        if let Some(place) = state.results.get_mut(at) {
            *place = Some(result);
        }
        self.ready.notify_all();
        true
    }

    fn panicked(&self, what: &str) {
        self.lock().broken = Some(what.to_owned());
        self.ready.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_come_in_order_and_a_panic_is_told() {
        for workers in [1, 4] {
            let mut squares = InOrder::start(workers, 500, Arc::default(), |i| i * i).unwrap();
            let all: Vec<usize> = std::iter::from_fn(|| squares.next().unwrap()).collect();
            assert!(all.iter().copied().eq((0..500).map(|i| i * i)));
            let mut fragile = InOrder::start(workers, 9, Arc::default(), |i| assert!(i < 5, "piece {i}")).unwrap();
            let told = std::iter::from_fn(|| fragile.next().transpose()).find_map(|result| result.err());
            assert!(told.unwrap().to_string().contains("piece "));
        }
    }

    #[test]
    fn a_stop_ends_it() {
        let stop = Arc::new(AtomicBool::new(true));
        let mut none = InOrder::start(1, 5, stop, |i| i).unwrap();
        assert!(matches!(none.next(), Err(Error::Stopped)));
    }
}
