//! Paths -> distributions: results, lengths, plies, men, visits, weights, policies of the start, versions, bytes.
//! Bad chunks are counted and left out; `verify` says what is wrong with them.

mod counting;
mod demo;
mod g2048;
mod look;
mod part;
mod start;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use gristmill_engine::error::{Error, Result};
use serde::{Deserialize, Serialize};

use self::counting::Counting;
use self::look::{Hands, look};
use self::part::{Input, Part};
use super::in_order::InOrder;
use crate::inputs::{Inputs, OwnFile};
use crate::shares::Portion;
use crate::word::{self, Word};

pub use crate::work::Counts;

pub use demo::DemoStats;
pub use g2048::{GapBar, Gaps, StepStats, ValuationStats};
pub use gristmill_engine::runtime::numbers::Numbers;
pub use gristmill_engine::runtime::spread::{Bar, Share, ShareBar, Spread};
pub use part::share;
pub(crate) use part::{JOB, commit};
pub use start::{StartMove, StartPolicy};

/// What the games at some paths are like.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
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
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty", deserialize_with = "word::map")]
    pub kinds: BTreeMap<Word, Counts>,
}

/// Games by result.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
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

/// Weights are counted in millionths.
const MILLION: f32 = 1e6;

/// Counts every chunk and frame at or below `paths`. It calls `progress` for each file.
///
/// Errors: `Config`, `Stopped`, and what else is no fault of the data; `Format`, of `Io`, for a path where nothing is.
pub fn stats(paths: &[PathBuf], options: &StatsOptions, progress: &mut dyn FnMut(&Stats)) -> Result<Stats> {
    Ok(count(&Inputs::there(paths)?, Portion::Whole, options, progress)?.stats())
}

/// Counts what of some inputs is in a portion.
fn count(inputs: &Inputs, portion: Portion, options: &StatsOptions, progress: &mut dyn FnMut(&Stats)) -> Result<Part> {
    crate::in_order::check(options.workers)?;
    let mut counting = Counting::new(options);
    for (number, ((path, listing), own)) in (0..).zip(inputs.paths.iter().zip(inputs.own(portion))) {
        counting.at(Input::files(number));
        let listing = match listing {
            Ok(listing) => listing,
            Err(e) => {
                counting.bad_file(e);
                progress(counting.so_far());
                continue;
            }
        };
        let (count, files, hands) = (own.files.len(), Arc::<[OwnFile]>::from(own.files), Hands::default());
        let workers = options.workers.min(count.max(1));
        let ahead = files.clone();
        let work = move |i: usize| look(&ahead[i].file, &hands);
        let flow = InOrder::start(workers, count, options.stop.clone(), work);
        let mut flow = flow.map_err(|e| Error::path(path, &e))?;
        for file in &*files {
            let Some(looked) = flow.next()? else { break };
            counting.take(looked, file)?;
            progress(counting.so_far());
        }
        drop(flow);
        for (pack, place) in own.packs {
            counting.at(Input::pack(number, pack as u64));
            counting.pack(&listing.packs[pack], place, options)?;
            progress(counting.so_far());
        }
        counting.at(Input::unlisted(number));
        for unlisted in &listing.unlisted {
            counting.unlisted(unlisted);
            progress(counting.so_far());
        }
    }
    Ok(counting.part())
}
