//! Some worlds of the simulated mill, in the ordinary suite; more by `make sim` and `make soak`.
#![allow(clippy::print_stdout, reason = "it says how many worlds it ran")]

use std::path::{Path, PathBuf};
use std::process::Command;

use gristmill_sim::case::Case;
use gristmill_sim::coverage::{Coverage, pairs, pairs_of_rows};
use gristmill_sim::crash::disturbed::{Disturbed, Refusal};
use gristmill_sim::crash::facts::Learning;
use gristmill_sim::crash::kept::{Keeps, Kept};
use gristmill_sim::crash::log::{Crash, Loss};
use gristmill_sim::crash::run::can_trace;
use gristmill_sim::crash::scenario::Scenario as Jobs;
use gristmill_sim::crash::task::{Task, Verb};
use gristmill_sim::crash::training::Training;
use gristmill_sim::crash::twins::Reading;
use gristmill_sim::rows;
use gristmill_sim::run::run;
use gristmill_sim::scenario::{Scenario, aim};
use gristmill_sim::steering::Steering;

/// Worlds of streams that are run. With those of rows, three for each, they are 20 000, which take some 114 s of the CPU.
const WORLDS: u64 = 5000;

/// Worlds of jobs, each of some real processes.
const JOBS: u64 = 8;

fn kept() -> impl Iterator<Item = u64> {
    include_str!("../seeds.txt").lines().filter_map(|line| line.split('#').next()?.trim().parse().ok())
}

#[test]
fn batches_are_what_the_pages_say_whatever_fails() {
    let (mut coverage, mut steering) = (Coverage::default(), Steering::default());
    let mut batches = 0;
    let mut goes_well = |number: u64, coverage: &mut Coverage| {
        let outcome = run(&Scenario::new(number));
        assert_eq!(outcome.failure, None, "replay it by: make sim SEED={number}");
        coverage.merge(&outcome.coverage);
        batches += outcome.batches;
    };
    kept().for_each(|number| goes_well(number, &mut Coverage::default()));
    for seed in 0..WORLDS {
        let number = steering.number(seed, &coverage);
        goes_well(number, &mut coverage);
    }
    let unmet = coverage.unmet(pairs()).len();
    println!(
        "{WORLDS} worlds, {batches} batches compared, {unmet} of {} pairs of fault and state not met",
        pairs().count()
    );
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
    assert!(batches > 3 * WORLDS);
    assert_eq!(coverage.unmet(pairs_of_rows()), []);
}

/// Two directories are joined in two lanes: whichever batch a process ends after, another resumes with the same batches.
#[test]
fn joined_directories_resume_after_every_batch() {
    let many = (0..).map(Scenario::new).filter(|s| !s.second.is_empty() && s.lanes == 2);
    let plain =
        many.map(|s| Scenario { deeds: Vec::new(), aim: None, crashes: Vec::new(), stop_at: None, batches: 8, ..s });
    let (watched, others): (Vec<_>, Vec<_>) = plain.take(60).filter(|s| run(s).batches == 8).partition(|s| s.watch);
    assert!(watched.len() > 2 && others.len() > 2, "{} and {}", watched.len(), others.len());
    for base in watched.iter().take(3).chain(others.iter().take(3)) {
        for batch in 0..7 {
            let scenario = Scenario { crashes: vec![batch, batch + 1], ..base.clone() };
            let outcome = run(&scenario);
            assert_eq!(outcome.failure, None, "{scenario:?}");
            // One that watches takes batches until all files came.
            assert!(outcome.batches == 8 || base.watch && outcome.batches > 8, "{scenario:?}");
        }
    }
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

/// As many worlds meet more pairs of a fault and a state if some of them aim at what none met.
#[test]
fn steered_worlds_meet_more() {
    let [mut plain, mut steered] = [0, 1].map(|_| Coverage::default());
    let mut steering = Steering::default();
    for seed in 1000..1150 {
        plain.merge(&run(&Scenario::new(seed)).coverage);
        let number = steering.number(seed, &steered);
        steered.merge(&run(&Scenario::new(number)).coverage);
    }
    let [plain, steered] = [plain, steered].map(|coverage| coverage.unmet(pairs()).len());
    println!("{steered} of {} pairs not met, {plain} without steering", pairs().count());
    assert!(steered + 10 < plain, "{steered} and {plain}");
}

#[test]
fn one_number_is_one_run() {
    let aiming = pairs().take(3).filter_map(|pair| aim::number(7, pair));
    for seed in (0..5).chain(aiming) {
        let [one, other] = [0, 1].map(|_| run(&Scenario::new(seed)));
        assert_eq!((one.steps, one.batches, one.coverage), (other.steps, other.batches, other.coverage));
    }
}

/// What runs tasks, where it was built and the system lets a process be traced.
fn program() -> Option<&'static Path> {
    let program = Path::new(env!("CARGO_BIN_EXE_gristmill-sim"));
    match (program.exists(), can_trace()) {
        (true, true) => return Some(program),
        (true, false) => println!("skipped: the system lets no process be traced"),
        (false, _) => println!("skipped: there is no {}", program.display()),
    }
    None
}

/// Jobs that change files, on disks that lose, tear and refuse what they write: by some seeds.
#[test]
fn a_pack_is_the_old_one_or_the_new_one_whatever_a_crash_leaves() {
    let Some(program) = program() else { return };
    let mut disks = 0;
    for seed in 0..JOBS {
        let outcome = Jobs::new(seed, program).run();
        assert_eq!(outcome.failure, None, "replay it by: make sim SEED={seed}");
        disks += outcome.disks;
    }
    println!("{disks} disks that a crash or a refusal left");
}

/// The machine crashes after every fourth change that packing makes, and loses all that was not forced. A pack whose manifest
/// was staged before its database was on the disk lost runs so.
#[test]
fn a_machine_may_crash_after_any_change() {
    let Some(program) = program() else { return };
    let crashes = (0..200).step_by(4).map(|at| Crash { at, torn: 0, loss: Loss::All }).collect();
    let disturbed = Disturbed { crashes, ..Disturbed::default() };
    let outcome = Jobs { disturbed, ..packing(program) }.run();
    assert_eq!(outcome.failure, None);
}

/// The disk refuses every fifth change. A log that SQLite could not fold in was published so, and a mode that it could not
/// write or commit made other bytes.
#[test]
fn no_refusal_of_the_disk_is_silent() {
    let Some(program) = program() else { return };
    let refusals = (0..200).step_by(5).map(|at| Refusal { at, stays: false, error: 28 }).collect();
    let disturbed = Disturbed { refusals, ..Disturbed::default() };
    let outcome = Jobs { disturbed, ..packing(program) }.run();
    assert_eq!(outcome.failure, None);
}

/// Some worlds of one kind, and one in which a crash comes around every change and at `everywhere` bytes of each write.
fn keeps<D: Keeps>(seeds: std::ops::Range<u64>, everywhere: u64) {
    let Some(program) = program() else { return };
    let mut disks = 0;
    for seed in seeds.clone() {
        let mut world = Kept::<D>::new(seed, program);
        if seed == seeds.start {
            (world.everywhere, world.disturbed.twice) = (everywhere, false);
        }
        let outcome = world.run();
        assert_eq!(outcome.failure, None, "replay it by: make sim SEED={seed}");
        disks += outcome.disks;
    }
    println!("{disks} disks that a crash or a refusal left");
}

/// Whatever a crash left of the twin of a file: what was torn or lost is fetched again, and no byte is wrong. Other processes read it, too.
#[test]
fn a_twin_gives_no_wrong_byte_whatever_a_crash_leaves() {
    keeps::<Reading>(1..12, 3);
    // Two small files in a cache with room for one.
    keeps::<Reading>(31_662_000..31_662_001, 0);
}

/// Crashes at every byte of a side index among them.
#[test]
fn a_side_index_says_nothing_that_is_not_so_whatever_a_crash_leaves() {
    keeps::<Learning>(3..5, u64::MAX);
}

/// States, ledgers and journals. Ledgers with a line that the machine had not written were refused, the name of a new journal was
/// lost, of two watched directories, and a journal of zeros alone was taken for a file of someone else.
#[test]
fn a_training_resumes_and_its_ledger_proves_each_batch_once_whatever_a_crash_leaves() {
    keeps::<Training>(1..4, 2);
    keeps::<Training>(224..225, 0);
    keeps::<Training>(30_017_000..30_017_001, 0);
}

/// Two ranks died while they saved the first state of their run, and the ledger refused the next one. One rank ended, and the other removed
/// the last step that both had.
#[test]
fn ranks_resume_from_a_whole_step_or_begin_again_whatever_a_crash_leaves() {
    keeps::<Training>(31..32, 2);
    keeps::<Training>(39..40, 0);
    keeps::<Training>(20057..20058, 0);
    keeps::<Training>(44_786_000..44_786_001, 0);
}

/// What `make sim-planted` and `make models-planted` plant has to fit the sources as they are.
#[test]
fn every_planted_fault_can_be_planted() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let all = |folder: &str| -> Vec<PathBuf> {
        std::fs::read_dir(root.join(folder)).unwrap().map(|entry| entry.unwrap().path()).collect()
    };
    let (of_worlds, of_locks) = (all("crates/gristmill-sim/planted"), all("models/planted"));
    assert!(of_worlds.len() > 60 && of_locks.len() > 15, "{} and {}", of_worlds.len(), of_locks.len());
    let patches = of_worlds.into_iter().chain(of_locks);
    let fits = |patch: &Path| Command::new("git").args(["apply", "--check"]).arg(patch).current_dir(root).status();
    let unfit: Vec<PathBuf> = patches.filter(|patch| !fits(patch).unwrap().success()).collect();
    assert_eq!(unfit, Vec::<PathBuf>::new(), "write them again from the sources");
}

/// Three games become a pack, undisturbed.
fn packing(program: &Path) -> Jobs {
    let task = Task { verb: Verb::Pack, boards: false, games: 1, shard_rows: None, checkpoint_rows: 5, workers: 1 };
    Jobs { seed: 0, program: program.to_owned(), task, disturbed: Disturbed::default() }
}
