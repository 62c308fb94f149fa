//! What must hold in every order of threads: no thread sleeps for ever, and no item is taken twice or lost.
//! No wait ends by its time here. So a thread that nobody wakes is a deadlock. Shuttle prints its schedule, which can be replayed.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use gristmill_models::in_order::InOrder;
use gristmill_models::runtime::arena::Arena;
use gristmill_models::runtime::handoff::{Handoff, Taken, WhenFull};
use gristmill_models::runtime::scheduler::{Lane, Scheduler, Tasks};
use gristmill_models::runtime::sheet::SheetPool;
use shuttle::scheduler::{DfsScheduler, PctScheduler, RandomScheduler};
use shuttle::sync::Mutex;
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::{Config, Runner, thread};

/// Number of orders that each of three schedulers tries: random orders, orders with few changes of threads, and depth first.
const ORDERS: usize = 600;

fn holds(model: impl Fn() + Send + Sync + 'static) {
    let model = Arc::new(model);
    let mut config = Config::new();
    config.silence_warnings = true;
    let run = |model: Arc<dyn Fn() + Send + Sync>| move || model();
    Runner::new(RandomScheduler::new_from_seed(1, ORDERS), config.clone()).run(run(model.clone()));
    Runner::new(PctScheduler::new_from_seed(1, 3, ORDERS), config.clone()).run(run(model.clone()));
    Runner::new(DfsScheduler::new(Some(ORDERS), false), config).run(run(model));
}

fn all_of<T: 'static + Send>(queue: &Handoff<T>, wait: Option<Duration>) -> Vec<T> {
    std::iter::from_fn(|| match queue.take(wait) {
        Taken::Item(item) => Some(item),
        Taken::Closed => None,
        Taken::Nothing => panic!("no wait ends by its time"),
    })
    .collect()
}

#[test]
fn each_item_is_taken_once_and_every_consumer_ends() {
    holds(|| {
        let queue = Arc::new(Handoff::new(10, WhenFull::Block));
        let consumers = [None, Some(Duration::from_secs(1))].map(|wait| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || all_of(&queue, wait))
        });
        (0..3).for_each(|i| queue.offer(i).expect("room"));
        queue.close();
        let mut all: Vec<i32> = consumers.into_iter().flat_map(|consumer| consumer.join().unwrap()).collect();
        all.sort_unstable();
        assert_eq!(all, [0, 1, 2]);
    });
}

#[test]
fn an_item_wakes_one_who_waits_though_others_came_before_it() {
    holds(|| {
        let queue = Arc::new(Handoff::new(10, WhenFull::Block));
        let consumers = [(); 2].map(|()| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || assert!(matches!(queue.take(None), Taken::Item(_))))
        });
        (0..2).for_each(|i| queue.offer(i).expect("room"));
        consumers.into_iter().for_each(|consumer| consumer.join().unwrap());
    });
}

#[test]
fn an_item_that_is_offered_while_the_queue_closes_is_taken_or_comes_back() {
    holds(|| {
        let queue = Arc::new(Handoff::new(1, WhenFull::KeepNewest));
        let producer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || (0..2).filter(|i| queue.offer(*i).is_err()).count())
        };
        let consumer = {
            let queue = Arc::clone(&queue);
            thread::spawn(move || all_of(&queue, None).len())
        };
        queue.close();
        let (refused, taken) = (producer.join().unwrap(), consumer.join().unwrap());
        assert_eq!(refused + taken + queue.counts().dropped as usize, 2);
    });
}

/// The numbers below `end`. A free worker offers the next number. If the queue has no room, a worker offers that number again.
struct Numbers {
    next: Mutex<usize>,
    end: usize,
    queue: Handoff<usize>,
}

impl Tasks for Numbers {
    fn run(&self, lane: Lane) -> bool {
        let mut next = self.next.lock().unwrap();
        if lane == Lane::Read || *next == self.end || self.queue.offer(*next).is_err() {
            return false;
        }
        *next += 1;
        if *next == self.end {
            self.queue.close();
        }
        true
    }

    fn panicked(&self, what: &str) {
        unreachable!("{what}");
    }
}

#[test]
fn room_in_a_full_queue_wakes_a_worker() {
    holds(|| {
        let numbers = Arc::new(Numbers { next: Mutex::new(0), end: 3, queue: Handoff::new(1, WhenFull::Block) });
        let scheduler = Scheduler::new();
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([numbers.clone() as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, 2, &tasks).unwrap();
        for i in 0..3 {
            assert_eq!(numbers.queue.take(None), Taken::Item(i));
            scheduler.signal().notify_one(Lane::Work);
        }
        assert_eq!(numbers.queue.take(None), Taken::Closed);
        assert!(scheduler.stop().is_empty());
    });
}

/// Pieces of work that the test adds. A worker reports each piece that it has done.
struct Pieces {
    left: AtomicUsize,
    done: Handoff<()>,
}

impl Tasks for Pieces {
    fn run(&self, lane: Lane) -> bool {
        let took = lane == Lane::Work
            && self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok();
        if took {
            self.done.offer(()).expect("room");
        }
        took
    }

    fn panicked(&self, what: &str) {
        unreachable!("{what}");
    }
}

#[test]
fn a_signal_wakes_whoever_sleeps_or_is_about_to() {
    holds(|| {
        let pieces = Arc::new(Pieces { left: AtomicUsize::new(0), done: Handoff::new(9, WhenFull::Block) });
        let scheduler = Scheduler::new();
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([pieces.clone() as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, 1, &tasks).unwrap();
        for _ in 0..2 {
            pieces.left.fetch_add(1, Ordering::SeqCst);
            scheduler.signal().notify(Lane::Work);
            assert_eq!(pieces.done.take(None), Taken::Item(()));
        }
        assert!(scheduler.stop().is_empty());
    });
}

#[test]
fn a_stop_wakes_every_thread_that_sleeps_or_is_about_to() {
    holds(|| {
        let pieces = Arc::new(Pieces { left: AtomicUsize::new(0), done: Handoff::new(9, WhenFull::Block) });
        let scheduler = Scheduler::new();
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([pieces as Arc<dyn Tasks>]);
        scheduler.staff(Lane::Work, 2, &tasks).unwrap();
        scheduler.staff(Lane::Read, 1, &tasks).unwrap();
        scheduler.rounds("watch", Box::new(|| Some(Duration::MAX))).unwrap();
        assert!(scheduler.stop().is_empty());
    });
}

#[test]
fn results_come_in_order_though_no_more_wait_than_a_window_has() {
    holds(|| {
        let made = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&made);
        let make = move |i| {
            count.fetch_add(1, Ordering::SeqCst);
            i
        };
        let mut results = InOrder::start(3, 12, Arc::default(), make).unwrap();
        for i in 0..12 {
            assert_eq!(results.next().unwrap(), Some(i));
            // Three threads have a window of eight results.
            assert!(made.load(Ordering::SeqCst) <= i + 1 + 8);
        }
        assert_eq!(results.next().unwrap(), None);
    });
}

#[test]
fn results_that_nobody_wants_any_more_hold_nobody() {
    holds(|| {
        let mut results = InOrder::start(2, 100, Arc::default(), |i| i).unwrap();
        assert_eq!(results.next().unwrap(), Some(0));
    });
}

/// Runs each of `all` in a thread of its own. Returns how many of them end without a panic.
fn successes<const N: usize>(all: [impl FnOnce() + Send + 'static; N]) -> usize {
    let threads = all.map(|one| thread::spawn(move || catch_unwind(AssertUnwindSafe(one)).is_ok()));
    threads.into_iter().map(|one| one.join().unwrap()).filter(|well| *well).count()
}

#[test]
fn a_row_of_a_sheet_is_written_by_one_thread() {
    holds(|| {
        let sheet = Arc::new(SheetPool::new(2, vec![8], 0).take().unwrap());
        let writers = [(0, 2), (1, 1)].map(|(first, count)| {
            let sheet = Arc::clone(&sheet);
            move || sheet.write(first, count, |_| thread::yield_now())
        });
        assert_eq!(successes(writers), 1);
    });
}

#[test]
fn a_slot_of_an_arena_is_written_by_one_thread_and_read_by_one() {
    holds(|| {
        let arena = Arc::new(Arena::new(1, 64).unwrap());
        let same = |work: fn(&Arena)| {
            let arena = Arc::clone(&arena);
            successes([(); 2].map(|()| {
                let arena = Arc::clone(&arena);
                move || work(&arena)
            }))
        };
        assert_eq!(same(|arena| arena.fill(0, |_| thread::yield_now())), 1);
        assert_eq!(same(|arena| arena.drain(&[0], |_| thread::yield_now())), 1);
        arena.fill(0, |_| ());
        assert_eq!(same(|arena| arena.discard(0)), 1);
    });
}

#[test]
fn a_shared_sheet_stays_as_it_is_until_the_last_holder_lets_go() {
    holds(|| {
        let pool = SheetPool::new(1, vec![1], 1);
        let holders: Vec<_> = (1..=3)
            .flat_map(|number| {
                let sheet = pool.take().unwrap();
                sheet.write(0, 1, |columns| columns[0].fill(number));
                let shared = pool.share(sheet);
                [Arc::clone(&shared), shared].map(|held| {
                    thread::spawn(move || {
                        thread::yield_now();
                        assert_eq!(held.column(0, 1), [number]);
                    })
                })
            })
            .collect();
        holders.into_iter().for_each(|holder| holder.join().unwrap());
    });
}

#[test]
fn a_pool_keeps_no_more_sheets_than_it_may() {
    holds(|| {
        let pool = SheetPool::new(1, vec![1], 1);
        let sheets = [(); 2].map(|()| pool.take().unwrap());
        let holders = sheets.map(|sheet| {
            sheet.write(0, 1, |columns| columns[0].fill(7));
            let shared = pool.share(sheet);
            thread::spawn(move || drop(shared))
        });
        holders.into_iter().for_each(|holder| holder.join().unwrap());
        // A sheet that the pool kept still has its bytes. A new sheet is zero.
        let kept =
            [(); 2].map(|()| pool.share(pool.take().unwrap())).iter().filter(|new| new.column(0, 1) == [7]).count();
        assert!(kept <= 1, "{kept} sheets were kept");
    });
}
