//! `make sim`: runs worlds, kept seeds first, prints failures and one line of JSON at the end. Judges nothing by itself.

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use gristmill_sim::coverage::Coverage;
use gristmill_sim::run::run;
use gristmill_sim::scenario::Scenario;
use gristmill_sim::shrink::shrink;

/// Seeds that failed once: they run first.
const KEPT: &str = include_str!("../seeds.txt");

/// Runs that shrinking may take.
const TRIES: usize = 400;

/// Processor time of this process, all threads.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

fn main() -> ExitCode {
    let mut out = std::io::stdout().lock();
    let kept = KEPT.lines().filter_map(|line| line.split('#').next()?.trim().parse::<u64>().ok());
    // One seed alone is a replay; with a number of runs it is where they begin.
    let (seed, runs) = (number("SEED"), number("RUNS"));
    let seeds: Vec<u64> = match (seed, runs) {
        (Some(seed), None) => vec![seed],
        (seed, runs) => kept.chain((seed.unwrap_or(0)..).take(runs.unwrap_or(2000) as usize)).collect(),
    };
    let first_failure = number("FIRST_FAILURE").is_some();
    let (mut failures, mut coverage, mut batches, mut done, mut unsignalled) = (0, Coverage::default(), 0, 0u64, 0);
    let before = processor();
    for seed in &seeds {
        let scenario = Scenario::new(*seed);
        let outcome = run(&scenario);
        coverage.merge(&outcome.coverage);
        batches += outcome.batches;
        done += 1;
        unsignalled += outcome.unsignalled;
        if let Some(failure) = &outcome.failure {
            failures += 1;
            _ = writeln!(out, "seed {seed}: {failure}");
            if first_failure {
                break;
            }
            let (small, outcome) = shrink(&scenario, TRIES);
            _ = writeln!(out, "  replay: make sim SEED={seed}\n  smallest: {}", outcome.failure.unwrap_or_default());
            _ = writeln!(out, "  {small:?}");
        }
    }
    let seconds = (processor() - before).as_secs_f64().max(1e-6);
    let (met, of) = coverage.pairs();
    let line = serde_json::json!({
        "runs": done,
        "failures": failures,
        "runs_per_cpu_second": (done as f64 / seconds * 10.0).round() / 10.0,
        "seed": seeds.last(),
        "batches": batches,
        "unsignalled": unsignalled,
        "pairs": met,
        "pairs_of": of,
        "unmet": coverage.unmet(),
    });
    _ = writeln!(out, "{line}");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
