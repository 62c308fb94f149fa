//! Some worlds of the simulated mill, in the ordinary suite; more by `make sim` and `make soak`.
#![allow(clippy::print_stdout, reason = "it says how many worlds it ran")]

use gristmill_sim::case::Case;
use gristmill_sim::coverage::{Coverage, Fault};
use gristmill_sim::rows;
use gristmill_sim::run::run;
use gristmill_sim::scenario::Scenario;

/// Worlds that are run, which takes some seconds without optimization.
const WORLDS: u64 = 300;

fn kept() -> impl Iterator<Item = u64> {
    include_str!("../seeds.txt").lines().filter_map(|line| line.split('#').next()?.trim().parse().ok())
}

#[test]
fn batches_are_what_the_pages_say_whatever_fails() {
    let mut coverage = Coverage::default();
    let mut batches = 0;
    for seed in kept().chain(0..WORLDS) {
        let outcome = run(&Scenario::new(seed));
        assert_eq!(outcome.failure, None, "replay it by: make sim SEED={seed}");
        coverage.merge(&outcome.coverage);
        batches += outcome.batches;
    }
    let (met, of) = coverage.pairs();
    println!("{WORLDS} worlds, {batches} batches compared, {met} of {of} pairs of fault and state met");
    assert!(batches > WORLDS, "worlds that give batches");
}

#[test]
fn rows_are_where_the_pages_say_for_every_rank_of_every_start() {
    let (mut batches, mut coverage) = (0, Coverage::default());
    for seed in kept().chain(0..3 * WORLDS) {
        let outcome = rows::scenario::Scenario::new(seed).run();
        assert_eq!(outcome.failure, None, "replay it by: make sim SEED={seed}");
        coverage.merge(&outcome.coverage);
        batches += outcome.batches;
    }
    println!("{batches} batches compared");
    assert!(batches > 3 * WORLDS && coverage.of(Fault::Broken) > 0 && coverage.of(Fault::Crashed) > 0);
}

/// A process crashes while it writes a line of the journal and of the ledger: wherever that line is torn, the next process
/// resumes from the state, or begins again without one, and the same batches follow.
#[test]
fn a_line_may_be_torn_at_every_byte() {
    let watched = (0..).map(Scenario::new).find(|s| s.watch && !s.ledger && s.stop_at.is_none() && s.batches > 4);
    let base = Scenario { crashes: vec![1, 2], batches: 4, ..watched.expect("a world that watches") };
    for torn in 0..250 {
        for (begins_again, ledger) in [(false, true), (true, false)] {
            let scenario = Scenario { torn, begins_again, ledger, ..base.clone() };
            assert_eq!(run(&scenario).failure, None, "{scenario:?}");
        }
    }
}

#[test]
fn one_number_is_one_run() {
    for seed in 0..5 {
        let [one, other] = [0, 1].map(|_| run(&Scenario::new(seed)));
        assert_eq!((one.steps, one.batches, one.coverage), (other.steps, other.batches, other.coverage));
    }
}
