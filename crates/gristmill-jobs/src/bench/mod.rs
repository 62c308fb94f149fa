//! A configuration or a pack -> throughput on one and more threads, what this machine can do, and each stage as a share of that.
//! Measured in one run; nothing is guessed, and no batch is kept.

mod declared;
mod got;
mod machine;
mod queues;
mod sample;
mod shares;
mod storage;
mod target;

use std::sync::atomic::AtomicBool;

use gristmill_engine::error::Result;
use gristmill_engine::pipeline::Metrics;
use gristmill_engine::runtime::metrics::Profile;
use serde::Serialize;

pub use declared::declare;
pub use machine::{Bandwidth, Gathering, Machine};
pub use queues::Depth;
pub use sample::Inflation;
pub use shares::Stage;
pub use storage::Storage;
pub use target::Target;

use super::feed::{self, Fed, FeedOptions};
use got::Threads;
use queues::Watch;
use sample::Sample;
use shares::{Measured, Shape};
use target::Opened;

/// Threads that had less than this share of the cores were on a busy machine.
const BUSY: f64 = 0.85;

/// Seconds that a run lasts where no number of batches is given, and seconds between two looks at its threads.
const SECONDS: f64 = 1.0;
const LOOK: f64 = 0.05;

/// How to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Batches taken in each run, the first not counted; absent: those of a second.
    pub batches: Option<u64>,
    /// The numbers of threads to try; empty: 1, 2, 4, … up to the cores.
    pub threads: Vec<usize>,
    /// How often inflating alone and encoding alone pass over the sample; the fastest pass counts.
    pub passes: usize,
}

/// One run of the loader.
#[derive(Debug, Clone, Serialize)]
pub struct Run {
    /// Worker threads.
    pub threads: usize,
    /// What came out.
    #[serde(flatten)]
    pub fed: Fed,
    /// Cores busy on average between the first and the last batch.
    pub cores_busy: Option<f64>,
    /// Positions a second over those of the first run.
    pub speedup: Option<f64>,
    /// Share of the time in which threads of the loader wanted a core and others had them; absent where the system does not
    /// count that.
    pub held_up: Option<f64>,
    /// How full its queues were, between the first and the last batch.
    pub queues: Vec<Depth>,
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Bench {
    /// What this machine can do.
    pub machine: Machine,
    /// Each stage and its limit, in flow order. They come from a run of their own, with the threads of the first run, in
    /// which stages count processor time.
    pub stages: Vec<Stage>,
    /// One run for each number of threads.
    pub runs: Vec<Run>,
    /// Microseconds a frame for inflating alone, on one thread; absent where nothing is compressed.
    pub inflate_us: Option<f64>,
    /// Microseconds a frame for encoding alone, on one thread; absent of packs.
    pub encode_us: Option<f64>,
    /// Frames a second that these two alone would give on one thread; absent of packs.
    pub ceiling: Option<f64>,
    /// Frames a second of the first run over the ceiling, when that run has one thread.
    pub of_ceiling: Option<f64>,
    /// Processor time of a frame for inflating and encoding alone, over that of the first run: `of_ceiling` on a machine
    /// where nothing else runs.
    pub of_ceiling_cpu: Option<f64>,
    /// Frames a second of the last run over those of the first.
    pub speedup: Option<f64>,
    /// Bytes of tensors a frame.
    pub bytes_per_frame: Option<f64>,
    /// What batches of the first run waited for the longest; `trainer` where they were ready.
    pub bottleneck: String,
    /// The same in a sentence or two, with what would help.
    pub explains: String,
    /// What makes these figures less than they could be, such as other programs that had the cores.
    pub warnings: Vec<String>,
}

/// Runs `target` with each number of threads, and measures what this machine can do. `progress` gets the current step.
///
/// Errors: what opening it and the loader raise, or no readable game.
pub fn bench(
    target: &Target,
    options: &BenchOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Bench> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    // The system keeps the pages of mapped files: the files of a pack are read before the pack is opened.
    let pieces = target.open()?.pieces();
    let mut storage = storage::measure(&pieces);
    let opened = target.open()?;
    let threads = if options.threads.is_empty() { doubled(cores) } else { options.threads.clone() };
    let (mut shape, sizes) = opened.sizes(&*opened.engine(threads.first().copied().unwrap_or(1))?);
    let (mut inflation, mut encode_us) = (None, None);
    if let Opened::Stream { encoder, folders, .. } = &opened {
        progress("inflating and encoding alone");
        let sample = Sample::of(folders, &**encoder)?;
        (inflation, encode_us) = (sample.inflation(options.passes), Some(sample.encode_us(options.passes)?));
        shape.whole = sample.whole;
        progress("reading the files");
        storage = storage::measure(&sample.units);
    }
    progress("this machine: memory and cores");
    let mut machine = Machine::measure(cores, &sizes)?;
    (machine.inflate, machine.storage) = (inflation, storage);
    let (mut runs, mut stages, mut explains) = (Vec::new(), Vec::new(), String::new());
    for &threads in &threads {
        progress(&format!("the whole loader, {threads} {}", if threads == 1 { "thread" } else { "threads" }));
        let (run, said) = run(&opened, threads, options, stop)?;
        if runs.is_empty() {
            progress("its stages");
            stages = profiled(&opened, threads, options, (&machine, &shape), stop)?;
            explains = said;
        }
        runs.push(run);
    }
    let first: Option<f64> = runs.first().and_then(|run| run.fed.frames_per_second);
    for run in &mut runs {
        run.speedup = run.fed.frames_per_second.zip(first).map(|(rate, first)| rate / first);
    }
    Ok(summed(machine, (stages, explains), runs, encode_us))
}

/// 1, 2, 4, … and the number of cores.
fn doubled(cores: usize) -> Vec<usize> {
    let powers = std::iter::successors(Some(1), |threads| Some(threads * 2));
    powers.take_while(|threads| *threads < cores).chain([cores]).collect()
}

/// Runs a loader, and says in words what limited it.
fn run(opened: &Opened, threads: usize, options: &BenchOptions, stop: &AtomicBool) -> Result<(Run, String)> {
    let engine = opened.engine(threads)?;
    let watch = Watch::begin(&engine)?;
    let (mut first, mut given): (Option<Metrics>, _) = (None, 0);
    let (mut last, mut looked) = (Threads::default(), 0.0);
    let fed = feed::feed(&*engine, &taking(options), stop, &mut |so_far| {
        if so_far.batches > 0 && first.is_none() {
            first = Some(engine.metrics());
            watch.on();
        }
        // The threads are counted while they live: every `LOOK` seconds, at the last batch, and while no batch comes.
        let due = so_far.seconds >= looked + LOOK || Some(so_far.batches) == options.batches;
        if due || std::mem::replace(&mut given, so_far.batches) == so_far.batches {
            (last, looked) = (Threads::now(), so_far.seconds);
        }
    });
    let queues = watch.end();
    let fed = fed?;
    // Waits from the first batch on, as `limited_by` counts them.
    let mut since = fed.metrics.waits.since(&first.unwrap_or_default().waits);
    since.limited_by.clear();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let explains = Metrics { waits: since, ..fed.metrics.clone() }.explain(cores as u64);
    let cores_busy = fed.cpu_us_per_frame.zip(fed.frames_per_second).map(|(us, rate)| us * rate / 1e6);
    Ok((Run { threads, fed, cores_busy, speedup: None, held_up: last.held_up(), queues }, explains))
}

fn taking(options: &BenchOptions) -> FeedOptions {
    let seconds = options.batches.is_none().then_some(SECONDS);
    FeedOptions { batches: options.batches, seconds, ..FeedOptions::default() }
}

/// Runs a loader whose stages count processor time, and gives each stage with its limit.
fn profiled(
    opened: &Opened,
    threads: usize,
    options: &BenchOptions,
    (machine, shape): (&Machine, &Shape),
    stop: &AtomicBool,
) -> Result<Vec<Stage>> {
    let engine = opened.engine(threads)?;
    let (read, mut first): (_, Option<Metrics>) = (got::from_disk(), None);
    let profile = Profile::begin();
    let fed = feed::feed(&*engine, &taking(options), stop, &mut |so_far| {
        if so_far.batches > 0 && first.is_none() {
            first = Some(engine.metrics());
        }
    });
    drop(profile);
    let fed = fed?;
    let from_disk = got::from_disk().zip(read).map_or(0, |(after, before)| after.saturating_sub(before));
    let (first, clock_us) = (first.unwrap_or_default(), fed.frames_per_second.map(|rate| 1e6 / rate));
    let measured = Measured { first: &first, last: &fed.metrics, cpu_us: fed.cpu_us_per_frame, clock_us, from_disk };
    Ok(shares::stages(&measured, machine, shape))
}

fn summed(machine: Machine, (stages, explains): (Vec<Stage>, String), runs: Vec<Run>, encode_us: Option<f64>) -> Bench {
    let inflate_us = machine.inflate.map(|inflate| inflate.bytes_per_frame * 1e6 / inflate.bytes_per_second);
    let alone = encode_us.map(|encode| encode + inflate_us.unwrap_or(0.0));
    let ceiling = alone.map(|us| 1e6 / us);
    let rate = |run: Option<&Run>| run.and_then(|run| run.fed.frames_per_second);
    let first = runs.first();
    let cpu = first.and_then(|run| run.fed.cpu_us_per_frame);
    let warnings = warnings(&machine, &runs);
    Bench {
        inflate_us,
        encode_us,
        ceiling,
        of_ceiling: rate(first.filter(|run| run.threads == 1)).zip(ceiling).map(|(rate, ceiling)| rate / ceiling),
        of_ceiling_cpu: cpu.zip(alone).map(|(us, alone)| alone / us),
        speedup: rate(runs.last()).zip(rate(first)).map(|(last, first)| last / first),
        bytes_per_frame: first.and_then(|run| run.fed.bytes_per_frame),
        bottleneck: first.map(|run| run.fed.limited_by.clone()).unwrap_or_default(),
        explains,
        warnings,
        machine,
        stages,
        runs,
    }
}

/// Says what made the figures lower than this machine allows.
fn warnings(machine: &Machine, runs: &[Run]) -> Vec<String> {
    let mut all = Vec::new();
    let (had, cores) = (machine.cores_had, machine.cores);
    if had < BUSY * cores as f64 {
        all.push(format!(
            "other programs have the cores: {had:.1} of {cores} were had, so that rates by the clock and speedups are too low; \
             processor time and shares are not"
        ));
    }
    let held = |run: &Run| {
        let share = run.held_up.filter(|share| *share > 1.0 - BUSY && run.threads <= cores)?;
        Some(format!("{:.0} % of it in the run of {}", share * 100.0, run.threads))
    };
    let held: Vec<String> = runs.iter().filter_map(held).collect();
    if !held.is_empty() {
        all.push(format!("the loader's threads wanted a core and had none: {}", held.join(", ")));
    }
    if let Some(why) = machine.storage.as_ref().and_then(|storage| storage.remark.as_ref()) {
        all.push(format!("the disk was not measured, only memory: {why}"));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_double_up_to_the_cores() {
        assert_eq!(doubled(1), [1]);
        assert_eq!(doubled(2), [1, 2]);
        assert_eq!(doubled(6), [1, 2, 4, 6]);
        assert_eq!(doubled(8), [1, 2, 4, 8]);
    }
}
