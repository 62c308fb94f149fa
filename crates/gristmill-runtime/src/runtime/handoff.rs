//! Finished items -> the consumer: a bounded queue that closes, with the three overflow policies.
//! Producers never wait here (they ask for room first); only the consumer does. Counts puts, gets and drops.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Duration;

use super::metrics::Load;
use super::sync::{Condvar, Mutex, MutexGuard};

/// What a full queue does with a new item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenFull {
    /// The producer holds the item back until there is room.
    Block,
    /// The new item is dropped.
    DropNew,
    /// The oldest item is dropped.
    KeepNewest,
}

/// What [`Handoff::take`] found.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken<T> {
    /// The next item.
    Item(T),
    /// Nothing within the time allowed.
    Nothing,
    /// Closed, and everything was taken.
    Closed,
}

/// Counters of a queue since it was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Items offered and stored or dropped.
    pub put: u64,
    /// Items taken.
    pub got: u64,
    /// Items dropped because the queue was full.
    pub dropped: u64,
    /// Items waiting now.
    pub waiting: usize,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    counts: Counts,
    closed: bool,
}

/// A bounded queue from the river to one or more consumers; first in, first out.
#[derive(Debug)]
pub struct Handoff<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
    waited: Load,
    capacity: usize,
    when_full: WhenFull,
}

impl<T> Handoff<T> {
    /// A queue of at least one item.
    pub fn new(capacity: usize, when_full: WhenFull) -> Self {
        let state = State { items: VecDeque::new(), counts: Counts::default(), closed: false };
        let (arrived, waited, capacity) = (Condvar::new(), Load::default(), capacity.max(1));
        Handoff { state: Mutex::new(state), arrived, waited, capacity, when_full }
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maximum number of items that may wait.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// What happens to an item offered to a full queue.
    pub fn when_full(&self) -> WhenFull {
        self.when_full
    }

    /// Offers an item. It comes back when the queue is closed, or full and blocking;
    /// whatever the policy dropped is counted.
    pub fn offer(&self, item: T) -> Result<(), T> {
        let mut state = self.lock();
        if state.closed {
            return Err(item);
        }
        if state.items.len() >= self.capacity {
            match self.when_full {
                WhenFull::Block => return Err(item),
                WhenFull::DropNew => {
                    state.counts.put += 1;
                    state.counts.dropped += 1;
                    return Ok(());
                }
                WhenFull::KeepNewest => {
                    state.items.pop_front();
                    state.counts.dropped += 1;
                }
            }
        }
        state.counts.put += 1;
        state.items.push_back(item);
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// Takes the next item, waiting up to `wait` (for ever when `None`, not at all when zero).
    pub fn take(&self, wait: Option<Duration>) -> Taken<T> {
        let mut state = self.lock();
        if state.items.is_empty() && !state.closed && wait != Some(Duration::ZERO) {
            state = self.waited.lasting(|| self.wait(state, wait));
        }
        if let Some(item) = state.items.pop_front() {
            state.counts.got += 1;
            return Taken::Item(item);
        }
        if state.closed { Taken::Closed } else { Taken::Nothing }
    }

    /// Waits until there is an item, the queue is closed, or `wait` is over (never, if `None`). It waits on if another consumer takes the
    /// item first; the time does not begin again.
    fn wait<'a>(&self, state: MutexGuard<'a, State<T>>, wait: Option<Duration>) -> MutexGuard<'a, State<T>> {
        let waits = |state: &mut State<T>| state.items.is_empty() && !state.closed;
        match wait {
            None => self.arrived.wait_while(state, waits).unwrap_or_else(PoisonError::into_inner),
            Some(wait) => self.arrived.wait_timeout_while(state, wait, waits).unwrap_or_else(PoisonError::into_inner).0,
        }
    }

    /// Whether at most half of the items that may wait do: a consumer wakes producers then, and not each time that it takes an item, since
    /// to wake a thread takes its own time.
    pub fn is_half_empty(&self) -> bool {
        2 * self.lock().items.len() <= self.capacity
    }

    /// Closes the queue: nothing more can be offered, what waits can still be taken.
    pub fn close(&self) {
        self.lock().closed = true;
        self.arrived.notify_all();
    }

    /// Whether it is closed: nothing more will come, though something may still wait.
    pub fn is_closed(&self) -> bool {
        self.lock().closed
    }

    /// The counters.
    pub fn counts(&self) -> Counts {
        let state = self.lock();
        Counts { waiting: state.items.len(), ..state.counts }
    }

    /// Nanoseconds that consumers waited for items.
    pub fn waited_ns(&self) -> u64 {
        self.waited.nanos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(queue: &Handoff<u32>) -> Vec<u32> {
        std::iter::from_fn(|| match queue.take(Some(Duration::ZERO)) {
            Taken::Item(item) => Some(item),
            _ => None,
        })
        .collect()
    }

    /// A queue as other trainers have it: capacity 3, puts 1..5.
    #[test]
    fn each_policy_keeps_what_it_says() {
        for (policy, kept, dropped, refused) in [
            (WhenFull::Block, vec![1, 2, 3], 0, 2),
            (WhenFull::DropNew, vec![1, 2, 3], 2, 0),
            (WhenFull::KeepNewest, vec![3, 4, 5], 2, 0),
        ] {
            let queue = Handoff::new(3, policy);
            let returned = (1..=5).filter(|i| queue.offer(*i).is_err()).count();
            assert_eq!(returned, refused, "{policy:?}");
            let counts = queue.counts();
            assert_eq!((counts.put, counts.dropped, counts.waiting), (5 - refused as u64, dropped, 3), "{policy:?}");
            assert_eq!(drain(&queue), kept, "{policy:?}");
            assert_eq!(queue.counts().got, 3);
        }
    }

    #[test]
    fn producers_are_needed_once_half_of_the_queue_is_taken() {
        for (capacity, enough) in [(1, 1), (2, 2), (4, 3), (5, 3)] {
            let queue = Handoff::new(capacity, WhenFull::Block);
            let needed = |queue: &Handoff<usize>| queue.is_half_empty();
            for waiting in 0..capacity {
                assert_eq!(needed(&queue), waiting < enough, "{waiting} of {capacity}");
                queue.offer(waiting).unwrap();
            }
            assert!(!needed(&queue), "it is full");
        }
    }

    #[test]
    fn a_closed_queue_gives_what_it_holds_and_wakes_those_who_wait() {
        let queue = Handoff::new(2, WhenFull::Block);
        queue.offer(1).unwrap();
        std::thread::scope(|scope| {
            let waiter = scope.spawn(|| (queue.take(None), queue.take(None)));
            std::thread::sleep(Duration::from_millis(20));
            queue.close();
            assert_eq!(waiter.join().unwrap(), (Taken::Item(1), Taken::Closed));
        });
        assert_eq!(queue.offer(2), Err(2));
        assert_eq!(queue.take(Some(Duration::ZERO)), Taken::Closed);
    }

    #[test]
    fn each_item_is_taken_once_by_many_consumers() {
        let queue = Handoff::new(1000, WhenFull::Block);
        let taken = std::thread::scope(|scope| {
            let consumers: Vec<_> = (0..4)
                .map(|_| {
                    scope.spawn(|| {
                        let mut mine = Vec::new();
                        while let Taken::Item(item) = queue.take(None) {
                            mine.push(item);
                        }
                        mine
                    })
                })
                .collect();
            (0..1000).for_each(|i| queue.offer(i).unwrap());
            queue.close();
            let mut all: Vec<u32> = consumers.into_iter().flat_map(|c| c.join().unwrap()).collect();
            all.sort_unstable();
            all
        });
        assert_eq!(taken, (0..1000).collect::<Vec<_>>());
    }
}
