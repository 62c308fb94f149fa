//! A run -> what it came to, and whether it took more memory than it promises or kept some of it. Measures one run of a process at a time:
//! other threads must not allocate meanwhile.

use peak_alloc::PeakAlloc;

use crate::case::{Case, Outcome};

#[global_allocator]
static MEMORY: PeakAlloc = PeakAlloc;

/// Runs a case, and measures the memory of those that promise something.
pub fn run<C: Case>(case: &C) -> Outcome {
    let Some(promise) = case.promise() else { return case.run() };
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    let mut outcome = case.run();
    if outcome.failure.is_some() {
        return outcome;
    }
    let kept = MEMORY.current_usage().saturating_sub(before);
    let most = MEMORY.peak_usage().saturating_sub(before) as u64;
    outcome.failure = match kept {
        0 if most <= promise => None,
        0 => Some(format!("a run took {most} bytes of memory, and promises {promise}")),
        kept => Some(format!("a run kept {kept} bytes of memory when it was over")),
    };
    outcome
}
