//! Worlds of streams and of rows stay within the memory that they promise, and give all of it back. A program of one thread, since it measures
//! the process: the harness of tests has threads of its own.

use gristmill_sim::case::{Case, Outcome};
use gristmill_sim::memory::run;
use gristmill_sim::{rows, scenario};

fn main() {
    for seed in 3000..3100 {
        assert_eq!(run(&scenario::Scenario::new(seed)).failure, None, "replay it by: make sim SEED={seed}");
        assert_eq!(run(&rows::scenario::Scenario::new(seed)).failure, None, "replay it by: make sim SEED={seed}");
    }
    // Each draw of a bad chunk left the memory of a chunk behind.
    let bad = scenario::Scenario { batches: 80, ..scenario::Scenario::new(5_020_069) };
    assert_eq!(run(&bad).failure, None);
    for (promise, bytes, what) in [(100, 200, "took 200"), (1000, 200, "kept 200")] {
        let failure = run(&Keeps { promise, bytes }).failure.unwrap();
        assert!(failure.contains(what), "{failure}");
    }
}

/// A case that takes some bytes, and gives them back only if they are more than it promises.
#[derive(Debug, Clone, PartialEq)]
struct Keeps {
    promise: u64,
    bytes: usize,
}

impl Case for Keeps {
    fn run(&self) -> Outcome {
        let bytes = vec![1_u8; self.bytes];
        if self.bytes as u64 <= self.promise {
            _ = Box::leak(bytes.into_boxed_slice());
        }
        Outcome::default()
    }

    fn promise(&self) -> Option<u64> {
        Some(self.promise)
    }

    fn smaller(&self) -> Vec<Self> {
        Vec::new()
    }
}
