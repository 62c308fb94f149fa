//! The published acceptance cases of a queue, on ours: what is wanted of it, case by case.
//! Batch puts, producer handles and waits for room have no counterpart: tasks ask for room and never wait.

use std::time::Duration;

use gristmill_engine::runtime::handoff::{Counts, Handoff, Taken, WhenFull};

const NOW: Option<Duration> = Some(Duration::ZERO);

fn rest<T>(queue: &Handoff<T>) -> Vec<T> {
    let next = || match queue.take(NOW) {
        Taken::Item(item) => Some(item),
        Taken::Nothing | Taken::Closed => None,
    };
    std::iter::from_fn(next).collect()
}

fn counts(put: u64, got: u64, dropped: u64, waiting: usize) -> Counts {
    Counts { put, got, dropped, waiting }
}

#[test]
fn an_empty_queue_has_its_capacity_and_nothing_else() {
    let queue = Handoff::<u32>::new(7, WhenFull::Block);
    assert_eq!((queue.capacity(), queue.when_full()), (7, WhenFull::Block));
    assert_eq!(queue.counts(), counts(0, 0, 0, 0));
    assert_eq!(queue.take(NOW), Taken::Nothing);
    assert!(!queue.is_closed());
}

#[test]
fn items_wrap_around_in_order_and_need_no_copy() {
    struct OnlyMoved(u32);
    let queue = Handoff::new(3, WhenFull::Block);
    let mut seen = Vec::new();
    for i in 0..10 {
        assert!(queue.offer(OnlyMoved(2 * i)).is_ok());
        assert!(queue.offer(OnlyMoved(2 * i + 1)).is_ok());
        seen.extend(rest(&queue).into_iter().map(|item| item.0));
    }
    assert_eq!(seen, (0..20).collect::<Vec<_>>());
    assert_eq!(queue.counts(), counts(20, 20, 0, 0));
}

#[test]
fn one_item_fills_a_queue_of_one() {
    let queue = Handoff::new(1, WhenFull::Block);
    assert_eq!((queue.offer(1), queue.offer(2)), (Ok(()), Err(2)));
    assert_eq!(queue.take(NOW), Taken::Item(1));
    assert_eq!(queue.offer(3), Ok(()));
    assert_eq!(queue.counts(), counts(2, 1, 0, 1));
}

#[test]
fn a_hundred_items_keep_their_order_between_two_threads() {
    let queue = Handoff::new(4, WhenFull::Block);
    let seen = std::thread::scope(|scope| {
        let consumer = scope.spawn(|| {
            std::iter::from_fn(|| match queue.take(None) {
                Taken::Item(item) => Some(item),
                _ => None,
            })
            .collect::<Vec<u32>>()
        });
        for i in 0..100 {
            while queue.offer(i).is_err() {
                std::thread::yield_now();
            }
        }
        queue.close();
        consumer.join().unwrap()
    });
    assert_eq!(seen, (0..100).collect::<Vec<_>>());
}

#[test]
fn a_closed_queue_refuses_and_drains() {
    for policy in [WhenFull::Block, WhenFull::DropNew, WhenFull::KeepNewest] {
        let queue = Handoff::new(2, policy);
        assert_eq!((queue.offer(1), queue.offer(2)), (Ok(()), Ok(())));
        queue.close();
        queue.close();
        assert!(queue.is_closed());
        assert_eq!(queue.offer(3), Err(3), "{policy:?}");
        assert_eq!(queue.counts(), counts(2, 0, 0, 2));
        assert_eq!((queue.take(None), queue.take(NOW)), (Taken::Item(1), Taken::Item(2)));
        assert_eq!((queue.take(None), queue.take(NOW)), (Taken::Closed, Taken::Closed));
    }
}

#[test]
fn a_full_queue_that_drops_the_new_keeps_the_old() {
    let queue = Handoff::new(3, WhenFull::DropNew);
    (1..=6).for_each(|i| queue.offer(i).unwrap());
    assert_eq!(queue.counts(), counts(6, 0, 3, 3));
    assert_eq!(rest(&queue), [1, 2, 3]);
}

#[test]
fn a_full_queue_that_keeps_the_newest_drops_the_old() {
    let queue = Handoff::new(3, WhenFull::KeepNewest);
    (1..=8).for_each(|i| queue.offer(i).unwrap());
    assert_eq!(queue.counts(), counts(8, 0, 5, 3));
    assert_eq!(rest(&queue), [6, 7, 8]);
    let queue = Handoff::new(2, WhenFull::KeepNewest);
    (1..=5).for_each(|i| queue.offer(i).unwrap());
    assert_eq!((queue.counts().dropped, rest(&queue)), (3, vec![4, 5]));
}

#[test]
fn nothing_is_uncounted_when_threads_overrun_it() {
    for policy in [WhenFull::DropNew, WhenFull::KeepNewest] {
        let queue = Handoff::new(5, policy);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| (0..250).for_each(|i| queue.offer(i).unwrap()));
            }
        });
        let counts = queue.counts();
        assert_eq!((counts.put, counts.waiting), (1000, 5));
        assert_eq!(counts.put, counts.dropped + counts.waiting as u64, "{policy:?}");
    }
}
