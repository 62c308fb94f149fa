//! A run that fails -> a smaller one that fails: fewer deeds, crashes, files, boards and batches. Tries each, keeps what fails.

use crate::run::{Outcome, run};
use crate::scenario::Scenario;

/// Every scenario that is one thing smaller.
fn smaller(of: &Scenario) -> Vec<Scenario> {
    let mut found = Vec::new();
    let mut push = |change: &dyn Fn(&mut Scenario)| {
        let mut other = of.clone();
        change(&mut other);
        if other != *of {
            found.push(other);
        }
    };
    push(&|s| s.deeds.clear());
    push(&|s| s.crashes.clear());
    push(&|s| s.stop_at = None);
    push(&|s| s.stale_state = false);
    push(&|s| s.ledger = false);
    push(&|s| s.begins_again = false);
    push(&|s| s.torn = 0);
    (0..of.deeds.len()).for_each(|i| push(&|s| _ = s.deeds.remove(i)));
    (0..of.crashes.len()).for_each(|i| push(&|s| _ = s.crashes.remove(i)));
    (1..of.files.len()).for_each(|i| push(&|s| _ = s.files.remove(i)));
    (0..of.files.len()).for_each(|i| push(&|s| s.files[i].boards = s.files[i].boards.div_ceil(2)));
    (0..of.files.len()).for_each(|i| push(&|s| s.files[i].damage = None));
    push(&|s| s.batches = s.batches.div_ceil(2));
    push(&|s| s.reservoir /= 2);
    push(&|s| s.epochs = 1);
    push(&|s| s.lanes = 1);
    push(&|s| s.threads = (1, 1));
    found
}

/// What sort of failure it is: its first words, without numbers.
fn sort(failure: &str) -> String {
    failure.chars().filter(|c| !c.is_ascii_digit()).take(18).collect()
}

/// The smallest failing run that is found by taking one thing away at a time, in at most `tries` runs; and how it fails.
pub fn shrink(scenario: &Scenario, tries: usize) -> (Scenario, Outcome) {
    let (mut best, mut outcome, mut left) = (scenario.clone(), run(scenario), tries);
    'again: loop {
        for other in smaller(&best) {
            if left == 0 {
                break 'again;
            }
            left -= 1;
            let found = run(&other);
            if found.failure.as_deref().map(sort) == outcome.failure.as_deref().map(sort) {
                (best, outcome) = (other, found);
                continue 'again;
            }
        }
        break;
    }
    (best, outcome)
}
