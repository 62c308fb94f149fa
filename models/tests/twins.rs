//! A twin that threads fill together: each block is fetched once, an error ends only those who asked for the fetch, nobody waits for ever.

use std::sync::Arc;

use gristmill_format::source::ReadAt;
use gristmill_format::{Error, Kind, Result};
use gristmill_models::store::{BLOCK, Twin};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::atomic::{AtomicUsize, Ordering};
use shuttle::{Config, Runner, thread};

const ORDERS: usize = 60;

fn holds(model: impl Fn() + Send + Sync + Copy + 'static) {
    let mut config = Config::new();
    config.silence_warnings = true;
    Runner::new(RandomScheduler::new_from_seed(1, ORDERS), config.clone()).run(model);
    Runner::new(PctScheduler::new_from_seed(1, 3, ORDERS), config).run(model);
}

/// Some blocks of zeros; counts reads, of which the first may fail.
#[derive(Debug)]
struct Elsewhere {
    blocks: u64,
    reads: AtomicUsize,
    fails: usize,
}

impl ReadAt for Elsewhere {
    fn len(&self) -> Result<u64> {
        Ok(self.blocks * BLOCK)
    }

    fn read_at(&self, _: u64, buf: &mut [u8]) -> Result<usize> {
        if self.reads.fetch_add(1, Ordering::SeqCst) < self.fails {
            return Err(Error::new(Kind::Io(std::io::ErrorKind::Other), "the first read"));
        }
        Ok(buf.len())
    }
}

fn elsewhere(blocks: u64, fails: usize) -> (Arc<Elsewhere>, Arc<Twin>) {
    let from = Arc::new(Elsewhere { blocks, reads: AtomicUsize::new(0), fails });
    let twin = Arc::new(Twin::new(from.clone()).unwrap());
    (from, twin)
}

/// How many of the pieces of work on the twin end well.
fn well<const N: usize>(twin: &Arc<Twin>, work: [fn(&Twin) -> Result<()>; N]) -> usize {
    let threads = work.map(|work| {
        let twin = Arc::clone(twin);
        thread::spawn(move || work(&twin).is_ok())
    });
    threads.into_iter().map(|thread| thread.join().unwrap()).filter(|well| *well).count()
}

fn range(first: u64, behind: u64) -> (u64, u64) {
    (first * BLOCK, behind * BLOCK)
}

#[test]
fn each_block_is_fetched_once_and_is_there_for_all_who_asked() {
    holds(|| {
        let (from, twin) = elsewhere(2, 0);
        let one = |twin: &Twin| twin.have(&[range(0, 1)]);
        let both = |twin: &Twin| {
            twin.have(&[range(0, 2)])?;
            assert_eq!(twin.there()?, [0b11], "what was asked for is there");
            Ok(())
        };
        assert_eq!(well(&twin, [both, one, |twin| twin.have(&[range(0, 1), range(1, 2)])]), 3);
        assert_eq!(twin.there().unwrap(), [0b11]);
        let reads = from.reads.load(Ordering::SeqCst);
        // Neighbours that nobody has yet come in one read.
        assert!((1..=2).contains(&reads), "{reads} reads of two blocks");
        assert_eq!(well(&twin, [one]), 1);
        assert_eq!(from.reads.load(Ordering::SeqCst), reads);
    });
}

#[test]
fn those_who_claim_in_crossed_orders_wait_for_nobody_who_waits() {
    holds(|| {
        let (_, twin) = elsewhere(2, 0);
        let ahead = |twin: &Twin| twin.claim_and_bring(&[range(0, 1), range(1, 2)]);
        let back = |twin: &Twin| twin.claim_and_bring(&[range(1, 2), range(0, 1)]);
        assert_eq!(well(&twin, [ahead, back]), 2);
        assert_eq!(twin.there().unwrap(), [0b11]);
    });
}

#[test]
fn an_error_ends_who_fetched_and_others_fetch_for_themselves() {
    holds(|| {
        let (_, twin) = elsewhere(1, 1);
        let one = |twin: &Twin| twin.have(&[range(0, 1)]);
        assert_eq!(well(&twin, [one, one, |twin| twin.claim_and_bring(&[range(0, 1)])]), 2);
        assert_eq!(twin.there().unwrap(), [0b1]);
    });
}

#[test]
fn what_is_fetched_again_is_missing_meanwhile_and_there_at_the_end() {
    holds(|| {
        let (_, twin) = elsewhere(1, 0);
        let again = |twin: &Twin| twin.again(&[range(0, 1)]);
        assert_eq!(well(&twin, [|twin: &Twin| twin.have(&[range(0, 1)]), again, again]), 3);
        twin.have(&[range(0, 1)]).unwrap();
        assert_eq!(twin.there().unwrap(), [0b1]);
    });
}
