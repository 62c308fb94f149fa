//! A configuration -> throughput on one and two threads, the ceilings measured in the same run, and the bottleneck.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use gristmill_engine::config::{DataLoaderConfig, StageKind};
use gristmill_engine::error::Result;
use gristmill_engine::pipeline::DataLoader;
use serde::Serialize;

use super::ceiling::Sample;
use super::feed::{self, Fed, FeedOptions};

/// How to measure.
#[derive(Debug, Clone)]
pub struct BenchOptions {
    /// Batches taken in each run, the first not counted.
    pub batches: u64,
    /// The numbers of threads to try.
    pub threads: Vec<usize>,
    /// Passes over the sample for the ceilings; the best counts.
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
}

/// What was measured.
#[derive(Debug, Clone, Serialize)]
pub struct Bench {
    /// One run for each number of threads.
    pub runs: Vec<Run>,
    /// Microseconds a frame for inflating alone, on one thread.
    pub inflate_us: f64,
    /// Microseconds a frame for encoding alone, on one thread.
    pub encode_us: f64,
    /// Frames a second that inflating and encoding alone would give on one thread.
    pub ceiling: f64,
    /// Frames a second of the first run over the ceiling, when that run has one thread.
    pub of_ceiling: Option<f64>,
    /// Processor time a frame of inflating and encoding alone over that of the first run: what `of_ceiling` would be
    /// if nothing else ran on the machine.
    pub of_ceiling_cpu: Option<f64>,
    /// Frames a second of the last run over those of the first.
    pub speedup: Option<f64>,
    /// Bytes of tensors a frame.
    pub bytes_per_frame: Option<f64>,
    /// What batches lacked the longest in the first run, as it was measured; `trainer` where they were ready.
    pub bottleneck: String,
}

/// Runs `config` with each number of threads and measures the ceilings. `progress` gets the current step.
///
/// Errors: what the loader raises, or no readable game.
pub fn bench(
    config: &DataLoaderConfig,
    options: &BenchOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&str),
) -> Result<Bench> {
    let (folders, tensors) = inputs(config);
    progress("inflating and encoding alone");
    let sample = Sample::of(&folders)?;
    let inflate_us = sample.inflate_us(options.passes)?;
    let encode_us = sample.encode_us(&tensors, options.passes)?;
    let mut runs = Vec::new();
    for &threads in &options.threads {
        progress(&format!("the whole river, {threads} threads"));
        let loader = DataLoader::new(DataLoaderConfig { threads: Some(threads), ..config.clone() })?;
        let take = FeedOptions { batches: Some(options.batches), ..FeedOptions::default() };
        let fed = feed::feed(&loader, &take, stop, &mut |_| ())?;
        let cores_busy = fed.cpu_us_per_frame.zip(fed.frames_per_second).map(|(us, rate)| us * rate / 1e6);
        runs.push(Run { threads, fed, cores_busy });
    }
    let ceiling = 1e6 / (inflate_us + encode_us);
    let rate = |run: Option<&Run>| run.and_then(|run| run.fed.frames_per_second);
    let first = runs.first();
    Ok(Bench {
        inflate_us,
        encode_us,
        ceiling,
        of_ceiling: rate(first.filter(|run| run.threads == 1)).map(|rate| rate / ceiling),
        of_ceiling_cpu: first.and_then(|run| run.fed.cpu_us_per_frame).map(|us| (inflate_us + encode_us) / us),
        speedup: rate(runs.last()).zip(rate(first)).map(|(last, first)| last / first),
        bytes_per_frame: first.and_then(|run| run.fed.bytes_per_frame),
        bottleneck: first.map(|run| run.fed.limited_by.clone()).unwrap_or_default(),
        runs,
    })
}

/// The folders a configuration reads, and the tensors of its first output.
fn inputs(config: &DataLoaderConfig) -> (Vec<PathBuf>, Vec<String>) {
    let (mut folders, mut tensors) = (Vec::new(), Vec::new());
    for stage in &config.stage {
        match stage.kind() {
            Ok(StageKind::FilePathProvider(files)) => folders.push(files.directory.clone()),
            Ok(StageKind::TensorGenerator(batch)) if tensors.is_empty() => tensors = batch.tensors.clone(),
            _ => {}
        }
    }
    (folders, tensors)
}
