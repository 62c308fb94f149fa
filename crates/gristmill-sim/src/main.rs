//! `make sim`: runs worlds, of streams and of rows by turns and now and then of jobs, kept seeds first, prints failures and one line of
//! JSON at the end. `job ...` is one process of a world of jobs. Judges nothing by itself.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use gristmill_sim::case::Case;
use gristmill_sim::coverage::{Coverage, Pair, pairs, pairs_of_rows};
use gristmill_sim::crash::facts::Learning;
use gristmill_sim::crash::kept::Kept;
use gristmill_sim::crash::scenario::Scenario as Jobs;
use gristmill_sim::crash::training::Training;
use gristmill_sim::crash::twins::Reading;
use gristmill_sim::shrink::shrink;
use gristmill_sim::steering::Steering;
use gristmill_sim::{crash, memory, rows, scenario};

/// Seeds that failed once: they run first.
const KEPT: &str = include_str!("../seeds.txt");

/// Runs that shrinking may take.
const TRIES: usize = 400;

/// Of this number of seeds one makes a world of jobs, too, and one of what a process keeps, by turns, unless `JOBS` says another: they
/// start real processes.
const OF_JOBS: u64 = 100;

/// Processor time of this process, all threads.
fn processor() -> Duration {
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or(0))
}

fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.trim().parse().ok()
}

/// What all runs came to.
#[derive(Default)]
struct Sum {
    runs: u64,
    failures: u64,
    batches: u64,
    disks: u64,
    unsignalled: u64,
    streams: Coverage,
    rows: Coverage,
}

impl Sum {
    /// Runs a case, and says and shrinks what failed, unless one failure is enough. Whether it went well.
    fn add<C: Case>(&mut self, (case, seed): (&C, u64), out: &mut impl Write, first_failure: bool) -> bool {
        let outcome = memory::run(case);
        if C::OF_ROWS { &mut self.rows } else { &mut self.streams }.merge(&outcome.coverage);
        self.batches += outcome.batches;
        self.disks += outcome.disks;
        self.runs += 1;
        self.unsignalled += outcome.unsignalled;
        let Some(failure) = &outcome.failure else { return true };
        self.failures += 1;
        _ = writeln!(out, "seed {seed}: {failure}");
        if !first_failure {
            let (small, outcome) = shrink(case, TRIES);
            _ = writeln!(out, "  replay: make sim SEED={seed}\n  smallest: {}", outcome.failure.unwrap_or_default());
            _ = writeln!(out, "  {small:?}");
        }
        false
    }
}

fn main() -> ExitCode {
    let words: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if words.first().is_some_and(|word| word == Path::new("job")) {
        let (code, why) = crash::process::run(&words);
        if !why.is_empty() {
            _ = writeln!(std::io::stderr(), "{why}");
        }
        return code;
    }
    let mut out = std::io::stdout().lock();
    let kept: Vec<u64> = KEPT.lines().filter_map(|line| line.split('#').next()?.trim().parse().ok()).collect();
    // One seed alone is a replay; with a number of runs it is where they begin.
    let (seed, runs) = (number("SEED"), number("RUNS"));
    let seeds: Vec<u64> = match (seed, runs) {
        (Some(seed), None) => vec![seed],
        (seed, runs) => {
            kept.iter().copied().chain((seed.unwrap_or(0)..).take(runs.unwrap_or(2000).div_ceil(2) as usize)).collect()
        }
    };
    let first_failure = number("FIRST_FAILURE").is_some();
    let replays = seed.is_some() && runs.is_none();
    let of_jobs = number("JOBS").unwrap_or(OF_JOBS).max(1);
    let program = std::env::current_exe().ok().filter(|_| crash::run::can_trace());
    let is_kept = |seed: u64| replays || kept.contains(&seed);
    let (mut sum, mut steering) = (Sum::default(), Steering::default());
    let before = processor();
    for seed in &seeds {
        let number = if is_kept(*seed) { *seed } else { steering.number(*seed, &sum.streams) };
        let stream = sum.add((&scenario::Scenario::new(number), number), &mut out, first_failure);
        let rows = sum.add((&rows::scenario::Scenario::new(*seed), *seed), &mut out, first_failure);
        let jobs = match program.as_ref().filter(|_| replays || seed.is_multiple_of(of_jobs)) {
            Some(program) => {
                let turn = |i: u64| replays || seed / of_jobs % 3 == i;
                let mut well = sum.add((&Jobs::new(*seed, program), *seed), &mut out, first_failure);
                if turn(0) {
                    well &= sum.add((&Kept::<Reading>::new(*seed, program), *seed), &mut out, first_failure);
                }
                if turn(1) {
                    well &= sum.add((&Kept::<Learning>::new(*seed, program), *seed), &mut out, first_failure);
                }
                if turn(2) {
                    well &= sum.add((&Kept::<Training>::new(*seed, program), *seed), &mut out, first_failure);
                }
                well
            }
            None => true,
        };
        if first_failure && !(stream && rows && jobs) {
            break;
        }
    }
    let seconds = (processor() - before).as_secs_f64().max(1e-6);
    let named = |of: &'static str| move |(fault, state): Pair| format!("{of}{fault:?} {state:?}");
    let mut unmet: Vec<String> = sum.streams.unmet(pairs()).into_iter().map(named("")).collect();
    unmet.extend(sum.rows.unmet(pairs_of_rows()).into_iter().map(named("rows: ")));
    let pairs = pairs().count() + pairs_of_rows().count();
    let line = serde_json::json!({
        "runs": sum.runs,
        "failures": sum.failures,
        "runs_per_cpu_second": (sum.runs as f64 / seconds * 10.0).round() / 10.0,
        "seed": seeds.last(),
        "batches": sum.batches,
        "disks": program.as_ref().map(|_| sum.disks),
        "unsignalled": sum.unsignalled,
        "pairs": pairs - unmet.len(),
        "pairs_of": pairs,
        "unmet": unmet,
    });
    _ = writeln!(out, "{line}");
    if sum.failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
