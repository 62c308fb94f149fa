//! Paths -> distributions: results, lengths, plies, men, visits, weights, policies of the start, versions, bytes.
//! Bad chunks are counted and left out; `verify` says what is wrong with them.

mod demo;
mod g2048;
mod look;
mod numbers;
mod start;
mod tally;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use gristmill_format::Result as FormatResult;
use gristmill_format::chess::weight::DiffFocus;
use gristmill_format::chess::{Frame, Version};
use gristmill_format::container::salvage;
use gristmill_format::demo::source::DemoFile;
use gristmill_format::source::{Chunk, ChunkSource};
use serde::Serialize;

use self::demo::DemoCounting;
use self::g2048::{LogTally, StepCounting};
use self::look::{Hands, Looked, look};
use self::start::Start;
use self::tally::Tally;
use super::files::{self, Closed, Found};
use super::in_order::InOrder;
use super::pack::is_unreadable;
use crate::work::Opened;

pub use crate::work::Counts;

pub use demo::DemoStats;
pub use g2048::{GapBar, Gaps, StepStats, ValuationStats};
pub use numbers::Numbers;
pub use start::{StartMove, StartPolicy};
pub use tally::{Bar, Share, ShareBar, Spread};

/// What the games at some paths are like.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Stats {
    /// Data files.
    pub files: u64,
    /// Files that are of no known format.
    pub skipped: u64,
    /// Files and folders that are damaged, and files of demonstrations with something after their end.
    pub bad_files: u64,
    /// Files, folders and chunks that the system refused to read: their content is unknown.
    pub unreadable: u64,
    /// Why, of the first.
    pub first_unreadable: Option<String>,
    /// Chunks, bad ones included.
    pub chunks: u64,
    /// Chunks that could not be decoded.
    pub bad_chunks: u64,
    /// Frames.
    pub frames: u64,
    /// Bytes of the good chunks as stored.
    pub stored_bytes: u64,
    /// Bytes of their records, as they were before any upgrade.
    pub inflated_bytes: u64,
    /// Games by result, as white sees it.
    pub results: Results,
    /// Games that were adjudicated.
    pub adjudicated: u64,
    /// Games that hit the maximum length.
    pub maximum_length: u64,
    /// Plies per game.
    pub length: Spread,
    /// Ply of each position in its game, counted from 0.
    pub plies: Spread,
    /// Positions by men on the board.
    pub men: BTreeMap<u32, u64>,
    /// Search visits per position; upgraded data, which has none, is left out.
    pub visits: Spread,
    /// Legal moves per position.
    pub legal_moves: Spread,
    /// What positions weigh by difference focus; those whose network value is not recorded are left out.
    pub weights: Share,
    /// Positions whose network value is not recorded: they have no weight of their own.
    pub unweighed: u64,
    /// The policies of the start position, taken together.
    pub start: StartPolicy,
    /// Frames by stored record version.
    pub versions: BTreeMap<u32, u64>,
    /// Frames by input format.
    pub input_formats: BTreeMap<u32, u64>,
    /// The 2048 games among them; what stands above of games is of chess.
    pub g2048: Option<StepStats>,
    /// The demonstrations among them; what stands above of games is of chess.
    pub demos: Option<DemoStats>,
    /// What else there is, by the name of its kind.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub kinds: BTreeMap<&'static str, Counts>,
}

/// Games by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Results {
    /// White won.
    pub white: u64,
    /// Draws.
    pub draw: u64,
    /// Black won.
    pub black: u64,
}

/// How positions are weighed: the two factors of difference focus; the rest is 1, 0, 1, and no ceiling
/// below 1.
#[derive(Debug, Clone)]
pub struct StatsOptions {
    /// Weight of the difference in value.
    pub q_weight: f32,
    /// Weight of the difference in policy.
    pub pol_scale: f32,
    /// Worker threads for packs and logs of 2048, from 1 on. Changes nothing in the result.
    pub workers: usize,
    /// Set from another thread to end early.
    pub stop: Arc<AtomicBool>,
}

impl Default for StatsOptions {
    /// 6 and 3.5, the values of the published examples; one worker per core.
    fn default() -> Self {
        let workers = std::thread::available_parallelism().map_or(1, usize::from);
        StatsOptions { q_weight: 6.0, pol_scale: 3.5, workers, stop: Arc::default() }
    }
}

impl StatsOptions {
    fn rule(&self) -> DiffFocus {
        let StatsOptions { q_weight, pol_scale, .. } = *self;
        DiffFocus { q_weight, pol_scale, alpha: 1.0, beta: 0.0, gamma: 1.0, tau: 1.0, unknown: 1.0 }
    }
}

/// Weights are counted in millionths.
const MILLION: f32 = 1e6;

#[derive(Debug)]
struct Counting {
    stats: Stats,
    rule: DiffFocus,
    length: Tally,
    plies: Tally,
    visits: Tally,
    legal: Tally,
    weights: Tally,
    start: Start,
    stored: Vec<u8>,
    tag: Vec<u8>,
    chunk: Chunk,
    steps: StepCounting,
    demos: DemoCounting,
}

/// Counts every chunk and frame at or below `paths`. It calls `progress` for each file.
///
/// Errors: `Config`, `Stopped`, and what else is no fault of the data.
pub fn stats(paths: &[PathBuf], options: &StatsOptions, progress: &mut dyn FnMut(&Stats)) -> Result<Stats> {
    crate::in_order::check(options.workers)?;
    let mut counting = Counting::new(options.rule());
    for path in paths {
        let listing = match files::list(path) {
            Ok(listing) => listing,
            Err(e) => {
                counting.bad_file(&e);
                progress(&counting.stats);
                continue;
            }
        };
        let (count, files, hands) = (listing.files.len(), Arc::<[Closed]>::from(listing.files), Hands::default());
        let workers = options.workers.min(count.max(1));
        let ahead = files.clone();
        let work = move |i: usize| look(&ahead[i], &hands);
        let flow = InOrder::start(workers, count, options.stop.clone(), work);
        let mut flow = flow.map_err(|e| Error::path(path, &e))?;
        for file in &*files {
            let Some(looked) = flow.next()? else { break };
            counting.take(looked, file)?;
            progress(&counting.stats);
        }
        drop(flow);
        for folder in listing.packs {
            counting.pack(&folder, options)?;
            progress(&counting.stats);
        }
        for unlisted in listing.unlisted {
            if unlisted.is_unreadable() {
                counting.unread(unlisted.count, unlisted.latest);
            } else {
                counting.stats.bad_files += unlisted.count;
            }
            progress(&counting.stats);
        }
    }
    Ok(counting.finish())
}

impl Counting {
    fn new(rule: DiffFocus) -> Self {
        Counting {
            stats: Stats::default(),
            rule,
            length: Tally::default(),
            plies: Tally::default(),
            visits: Tally::default(),
            legal: Tally::default(),
            weights: Tally::default(),
            start: Start::default(),
            stored: Vec::new(),
            tag: Vec::new(),
            chunk: Chunk::default(),
            steps: StepCounting::default(),
            demos: DemoCounting::default(),
        }
    }

    fn finish(self) -> Stats {
        Stats {
            length: self.length.spread(),
            plies: self.plies.spread(),
            visits: self.visits.spread(),
            legal_moves: self.legal.spread(),
            weights: self.weights.spread().scaled(f64::from(MILLION)),
            start: self.start.policy(),
            g2048: self.steps.finish(),
            demos: self.demos.finish(),
            ..self.stats
        }
    }

    /// Takes in what a thread made of a file; counts here what it left alone.
    fn take(&mut self, looked: Looked, file: &Closed) -> Result<()> {
        match looked {
            Looked::Log(log) => {
                self.stats.files += 1;
                self.log(log.map(|log| *log));
            }
            Looked::Other => match file.open() {
                Found::File(file) => self.file(&file)?,
                Found::Fault(e) => self.bad_file(&e),
                Found::Other | Found::Pack(_) | Found::Unlisted(_) => self.stats.skipped += 1,
            },
        }
        Ok(())
    }

    fn log(&mut self, log: gristmill_format::Result<LogTally>) {
        self.stats.chunks += 1;
        match log {
            Ok(log) => {
                self.stats.frames += log.rows();
                self.stats.stored_bytes += log.stored_bytes;
                self.stats.inflated_bytes += log.text_bytes;
                self.steps.log(log);
            }
            Err(e) => self.bad_chunk(&e),
        }
    }

    fn bad_file(&mut self, e: &gristmill_format::Error) {
        if is_unreadable(e) { self.unread(1, e.to_string()) } else { self.stats.bad_files += 1 }
    }

    fn bad_chunk(&mut self, e: &gristmill_format::Error) {
        if is_unreadable(e) { self.unread(1, e.to_string()) } else { self.stats.bad_chunks += 1 }
    }

    /// Counts what could not be read, which is no damage.
    fn unread(&mut self, count: u64, why: String) {
        self.stats.unreadable += count;
        self.stats.first_unreadable.get_or_insert(why);
    }

    fn file(&mut self, file: &Opened) -> Result<()> {
        self.stats.files += 1;
        file.kind.count(file, self)
    }

    /// Counts a file of demonstrations, of `size` bytes.
    fn demonstrations(&mut self, size: u64, file: &DemoFile) {
        let all = file.trajectories();
        self.stats.chunks += file.len() as u64;
        self.stats.frames += all.frames() as u64;
        self.stats.stored_bytes += size;
        self.stats.inflated_bytes += (all.frames() * all.layout().map_or(0, |layout| layout.size())) as u64;
        self.demos.file(file);
    }

    /// Counts a pack of 2048 games.
    fn pack(&mut self, folder: &Path, options: &StatsOptions) -> Result<()> {
        match self.steps.pack(folder, options.workers, &options.stop) {
            Ok(counted) => {
                self.stats.files += counted.files;
                self.stats.chunks += counted.games;
                self.stats.frames += counted.rows;
                self.stats.stored_bytes += counted.bytes;
                self.stats.inflated_bytes += counted.bytes;
            }
            Err(Error::Format(e)) => self.bad_file(&e),
            Err(e @ Error::Path { .. }) => self.unread(1, e.to_string()),
            Err(e) => return Err(e),
        }
        Ok(())
    }

    fn game(&mut self) -> Result<()> {
        let frames = self.chunk.frames as u64;
        let stored_version = self.tag.first_chunk::<4>().map_or(0, |tag| u32::from_le_bytes(*tag));
        let record = Version::from_number(stored_version).map_or(0, |version| version.bytes() as u64);
        *self.stats.versions.entry(stored_version).or_default() += frames;
        self.stats.frames += frames;
        self.stats.stored_bytes += self.stored.len() as u64;
        self.stats.inflated_bytes += frames * record;
        self.length.add(frames);
        for i in 0..self.chunk.frames {
            let frame = Frame::new(self.chunk.record(i))?;
            *self.stats.input_formats.entry(frame.input_format_value()).or_default() += 1;
            if frame.visits() > 0 {
                self.visits.add(u64::from(frame.visits()));
            }
            self.plies.add(i as u64);
            self.legal.add(frame.probabilities().filter(|p| *p >= 0.0).count() as u64);
            // The newest board is the first thirteen planes; the last of them marks repetitions.
            let men: u32 = (0..12).map(|plane| frame.plane(plane).count_ones()).sum();
            *self.stats.men.entry(men).or_default() += 1;
            if frame.orig_q().is_nan() {
                self.stats.unweighed += 1;
            } else {
                self.weights.add((self.rule.weight(&frame) * MILLION).round() as u64);
            }
            self.start.add(&frame);
        }
        let last = Frame::new(self.chunk.record(self.chunk.frames - 1))?;
        self.stats.ending(last);
        Ok(())
    }
}

impl crate::work::Counting for Counting {
    fn games(&mut self, file: &Opened) -> Result<()> {
        for i in 0..file.source.len() {
            self.stats.chunks += 1;
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| {
                salvage::inflate_prefix(&self.stored, 4, &mut self.tag)?;
                file.decode(i, &self.stored, &mut self.chunk)
            });
            match decoded {
                Ok(()) => self.game()?,
                Err(e) => self.bad_chunk(&e),
            }
        }
        Ok(())
    }

    fn chunks(&mut self, file: &Opened, count: &mut dyn FnMut(&Chunk, &mut Counts) -> FormatResult<()>) -> Result<()> {
        let counts = self.stats.kinds.entry(file.kind.name()).or_default();
        for i in 0..file.source.len() {
            self.stats.chunks += 1;
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| file.decode(i, &self.stored, &mut self.chunk));
            if let Err(e) = decoded {
                match is_unreadable(&e) {
                    true => {
                        self.stats.unreadable += 1;
                        self.stats.first_unreadable.get_or_insert(e.to_string());
                    }
                    false => self.stats.bad_chunks += 1,
                }
                continue;
            }
            self.stats.frames += self.chunk.frames as u64;
            self.stats.stored_bytes += self.stored.len() as u64;
            self.stats.inflated_bytes += self.chunk.records().len() as u64;
            counts.chunks += 1;
            counts.frames += self.chunk.frames as u64;
            count(&self.chunk, counts)?;
        }
        Ok(())
    }

    fn logs(&mut self, file: &Opened) {
        for i in 0..file.source.len() {
            let decoded = file
                .fetch(i, &mut self.stored)
                .and_then(|()| file.decode(i, &self.stored, &mut self.chunk))
                .map(|()| LogTally::new(&file.path, self.stored.len() as u64, &self.chunk));
            self.log(decoded);
        }
    }

    fn demos(&mut self, file: &Opened) {
        if let Some(demo) = &file.demo {
            self.stats.bad_files += u64::from(!demo.faults().is_empty());
            return self.demonstrations(file.size, demo);
        }
        let key = &file.source.describe().key;
        for i in 0..file.source.len() {
            let decoded = file.fetch(i, &mut self.stored).and_then(|()| {
                file.decode(i, &self.stored, &mut self.chunk)?;
                DemoFile::of_packed(key, &self.stored, &self.chunk)
            });
            match decoded {
                Ok(one) => self.demonstrations(self.stored.len() as u64, &one),
                Err(e) => {
                    self.stats.chunks += 1;
                    self.bad_chunk(&e);
                }
            }
        }
    }
}

impl Stats {
    fn ending(&mut self, last: Frame<'_>) {
        let canonical = last.input_format().is_ok_and(|format| format.is_canonical());
        let black = match canonical {
            true => last.invariance_info() & 1 << 7 != 0,
            false => last.side_to_move_or_enpassant() == 1,
        };
        let white_q = if black { -last.result_q() } else { last.result_q() };
        let results = &mut self.results;
        // Rescored games have fractions; the nearest whole result counts.
        match white_q {
            q if q > 0.5 => results.white += 1,
            q if q < -0.5 => results.black += 1,
            _ => results.draw += 1,
        }
        self.maximum_length += u64::from(last.invariance_info() & 1 << 4 != 0);
        self.adjudicated += u64::from(last.invariance_info() & 1 << 5 != 0);
    }
}
