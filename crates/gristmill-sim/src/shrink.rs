//! A run that fails -> a smaller one that fails: one thing less at a time. Tries each, keeps what fails.

use crate::case::{Case, Outcome};
use crate::memory;

/// What sort of failure it is: its first words, without numbers.
fn sort(failure: &str) -> String {
    failure.chars().filter(|c| !c.is_ascii_digit()).take(18).collect()
}

/// The smallest failing run that is found by taking one thing away at a time, in at most `tries` runs; and how it fails.
pub fn shrink<C: Case>(case: &C, tries: usize) -> (C, Outcome) {
    let (mut best, mut outcome, mut left) = (case.clone(), memory::run(case), tries);
    'again: loop {
        for other in best.smaller() {
            if left == 0 {
                break 'again;
            }
            left -= 1;
            let found = memory::run(&other);
            if found.failure.as_deref().map(sort) == outcome.failure.as_deref().map(sort) {
                (best, outcome) = (other, found);
                continue 'again;
            }
        }
        break;
    }
    (best, outcome)
}
