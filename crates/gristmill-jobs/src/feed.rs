//! A loader -> its batches, taken as fast as they come and measured: the consumer when there is no trainer.
//! Looks at no byte of a batch unless it is to be written.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{Batch, Engine, Metrics, Next, Waits};
use serde::Serialize;

use super::meter::{self, Meter, Moment};
use super::npy;

/// How to take batches.
#[derive(Debug, Clone, Default)]
pub struct FeedOptions {
    /// Stop after this many batches; absent: at the end of the stream.
    pub batches: Option<u64>,
    /// Stop this many seconds after the first batch, when there are a few; absent: at the end of the stream.
    pub seconds: Option<f64>,
    /// Take this output only; absent: all outputs in turn.
    pub output: Option<String>,
    /// Write every batch into this folder, one `.npy` file per tensor.
    pub folder: Option<PathBuf>,
    /// Replace files that are in that folder.
    pub overwrite: bool,
}

/// Why no more batches were taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    /// The wanted number of batches was taken.
    Batches,
    /// The stream ended.
    End,
    /// The wanted time was over.
    Time,
    /// `stop` was set.
    Stopped,
}

/// What was fed.
#[derive(Debug, Clone, Serialize)]
pub struct Fed {
    /// Batches taken.
    pub batches: u64,
    /// Real rows in them.
    pub frames: u64,
    /// Bytes of their tensors.
    pub bytes: u64,
    /// Frames after the first batch per second between the first and the last batch; absent below two batches.
    pub frames_per_second: Option<f64>,
    /// Processor time of the process between the first and the last batch, over the frames after the first batch.
    pub cpu_us_per_frame: Option<f64>,
    /// Bytes of tensors per frame.
    pub bytes_per_frame: Option<f64>,
    /// Seconds from the start to the first batch.
    pub first_batch_seconds: Option<f64>,
    /// Seconds from the start to the end.
    pub seconds: f64,
    /// Most memory the process ever had resident, in bytes.
    pub peak_rss: Option<u64>,
    /// The root seed of the stream, once it has started.
    pub seed: Option<u64>,
    /// Chunks that could not be used.
    pub bad_chunks: u64,
    /// Items that full queues dropped, as their configuration allows.
    pub dropped: u64,
    /// Share of the time after the first batch in which a batch was waited for.
    pub stall: f64,
    /// What limited then: what batches lacked the longest, or `trainer` where they were ready. Empty below two batches.
    pub limited_by: String,
    /// What each stage did.
    pub metrics: Metrics,
    /// Why it ended.
    pub ended: Ended,
}

/// How long to wait for a batch before reading `stop` again.
const GLANCE: Duration = Duration::from_millis(100);

/// Batches that are taken at least, however long that takes.
const FEW: u64 = 8;

/// Takes batches until there are enough, the time is over, the stream ends, or `stop` is set, and stops the loader.
/// It calls `progress` after every batch, and now and then while none comes.
///
/// Errors: what the loader raises; `Path` when a batch cannot be written, of kind `AlreadyExists` where its file is there.
pub fn feed(
    loader: &dyn Engine,
    options: &FeedOptions,
    stop: &AtomicBool,
    progress: &mut dyn FnMut(&Fed),
) -> Result<Fed> {
    let result = take(loader, options, stop, progress);
    loader.stop();
    result
}

fn take(loader: &dyn Engine, options: &FeedOptions, stop: &AtomicBool, progress: &mut dyn FnMut(&Fed)) -> Result<Fed> {
    let mut aliases: Vec<String> = match &options.output {
        Some(alias) => vec![alias.clone()],
        None => loader.outputs().iter().map(|output| output.alias.clone()).collect(),
    };
    if let Some(folder) = &options.folder {
        std::fs::create_dir_all(folder).map_err(|e| Error::path(folder, &e))?;
    }
    let mut tape = Tape::new();
    let wanted = options.batches.unwrap_or(u64::MAX);
    let mut turn = 0;
    while !aliases.is_empty() && tape.fed.batches < wanted {
        if options.seconds.is_some_and(|seconds| tape.lasted(seconds)) {
            tape.fed.ended = Ended::Time;
            break;
        }
        if stop.load(Ordering::Relaxed) {
            tape.fed.ended = Ended::Stopped;
            break;
        }
        turn %= aliases.len();
        match loader.next(&aliases[turn], Some(GLANCE))? {
            Next::Batch(batch) => {
                tape.record(&batch, || loader.metrics().waits);
                write(options, &aliases[turn], &batch)?;
                turn += 1;
            }
            Next::Pending => turn += 1,
            Next::End => drop(aliases.remove(turn)),
        }
        progress(&tape.fed);
    }
    if tape.fed.batches == wanted {
        tape.fed.ended = Ended::Batches;
    }
    Ok(tape.end(loader.metrics()))
}

fn write(options: &FeedOptions, alias: &str, batch: &Batch) -> Result<()> {
    let Some(folder) = &options.folder else { return Ok(()) };
    let alias = if alias.is_empty() { String::new() } else { format!("{}-", alias.replace('/', "_")) };
    for column in &batch.columns {
        let name = format!("{alias}batch-{:06}-{}.npy", batch.number, column.name().replace('/', "_"));
        if !options.overwrite && folder.join(&name).exists() {
            let there =
                std::io::Error::new(std::io::ErrorKind::AlreadyExists, "it is there already; --overwrite replaces it");
            return Err(Error::path(folder.join(name), &there));
        }
        npy::write(folder, &name, column.dtype(), column.shape(), column.bytes())?;
    }
    Ok(())
}

/// Notes when batches came.
struct Tape {
    meter: Meter,
    start: Moment,
    first: Option<(Moment, u64, Waits)>,
    last: Moment,
    fed: Fed,
}

impl Tape {
    fn new() -> Self {
        let meter = Meter::default();
        let start = meter.now();
        let fed = Fed {
            batches: 0,
            frames: 0,
            bytes: 0,
            frames_per_second: None,
            cpu_us_per_frame: None,
            bytes_per_frame: None,
            first_batch_seconds: None,
            seconds: 0.0,
            peak_rss: None,
            seed: None,
            bad_chunks: 0,
            dropped: 0,
            stall: 0.0,
            limited_by: String::new(),
            metrics: Metrics::default(),
            ended: Ended::End,
        };
        Tape { meter, start, first: None, last: start, fed }
    }

    fn record(&mut self, batch: &Batch, waits: impl FnOnce() -> Waits) {
        let now = self.meter.now();
        let fed = &mut self.fed;
        fed.batches += 1;
        fed.frames += batch.rows as u64;
        fed.bytes += batch.columns.iter().map(|column| column.bytes().len() as u64).sum::<u64>();
        fed.seconds = now.wall - self.start.wall;
        self.last = now;
        let Some((first, frames, _)) = &self.first else {
            fed.first_batch_seconds = Some(fed.seconds);
            self.first = Some((now, fed.frames, waits()));
            return;
        };
        let between = (fed.frames - frames) as f64;
        fed.frames_per_second = Some(between / (now.wall - first.wall).max(1e-9));
        fed.cpu_us_per_frame = Some((now.cpu - first.cpu) * 1e6 / between.max(1.0));
    }

    /// Whether this number of seconds passed since the first batch, and a few batches came.
    fn lasted(&self, seconds: f64) -> bool {
        let first = self.first.as_ref().filter(|_| self.fed.batches >= FEW);
        first.is_some_and(|(first, ..)| self.last.wall - first.wall >= seconds)
    }

    fn end(mut self, metrics: Metrics) -> Fed {
        self.fed.seconds = self.meter.now().wall - self.start.wall;
        self.fed.bytes_per_frame = (self.fed.frames > 0).then(|| self.fed.bytes as f64 / self.fed.frames as f64);
        self.fed.peak_rss = meter::peak_rss();
        self.fed.seed = metrics.seed;
        self.fed.bad_chunks = metrics.bad_chunks.chunks;
        self.fed.dropped = metrics.stages.iter().filter_map(|stage| stage.queue.as_ref()).map(|q| q.dropped).sum();
        if let Some((_, _, before)) = self.first.filter(|_| self.fed.batches > 1) {
            let after = metrics.waits.since(&before);
            (self.fed.stall, self.fed.limited_by) = (after.stall_since_start, after.limited_by_since_start);
        }
        self.fed.metrics = metrics;
        self.fed
    }
}
