//! A run -> what it came to, and whether it took more memory than it promises or kept some of it. Measures one run of a process at a time:
//! other threads must not allocate meanwhile.

use std::sync::atomic::{AtomicUsize, Ordering};

use peak_alloc::PeakAlloc;

use crate::case::{Case, Outcome};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// The most bytes that were taken before the last comparison.
static MOST: AtomicUsize = AtomicUsize::new(0);

/// Runs a case, and measures the memory of those that promise something.
pub fn run<C: Case>(case: &C) -> Outcome {
    let Some(promise) = case.promise() else { return case.run() };
    let before = MEMORY.current_usage();
    MOST.store(before, Ordering::Relaxed);
    MEMORY.reset_peak_usage();
    let mut outcome = case.run();
    if outcome.failure.is_some() {
        return outcome;
    }
    let kept = MEMORY.current_usage().saturating_sub(before);
    let most = MOST.load(Ordering::Relaxed).max(MEMORY.peak_usage()).saturating_sub(before) as u64;
    let most = most.saturating_sub(outcome.noted);
    outcome.failure = match kept {
        0 if most <= promise => None,
        0 => Some(format!("a run took {most} bytes of memory, and promises {promise}")),
        kept => Some(format!("a run kept {kept} bytes of memory when it was over")),
    };
    outcome
}

/// Compares something. What that takes at most is not counted.
pub(crate) fn aside<T>(compare: impl FnOnce() -> T) -> T {
    MOST.fetch_max(MEMORY.peak_usage(), Ordering::Relaxed);
    let compared = compare();
    MEMORY.reset_peak_usage();
    compared
}
