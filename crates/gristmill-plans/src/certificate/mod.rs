//! A pack or the configuration of a stream -> a certificate of its shuffle before the run: what an epoch is made of, and how
//! its batches compare with those of a perfect shuffle. Made from the plan; feeds nothing and changes nothing.

mod advice;
mod fetching;
mod figure;
mod level;
mod rows;
mod stream;

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use gristmill_engine::config::{DataLoaderConfig, IndexConfig, LastBatch};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::{CertificateStatus, Engine, Lookup, Reads, SightOptions, Sighted, promise};
use gristmill_engine::selection::{self, Selection};
use gristmill_engine::store::bucket::{self, Traffic};
use gristmill_engine::store::{self, Residence};
use gristmill_engine::table::FrameTable;
use serde::Serialize;

pub use fetching::{Change, Cost, Epochs, Fetching, Said, Terms};
pub use figure::Figure;
pub use level::Level;

/// What is known of a loader before it feeds anything, and how good its shuffle is (docs/guide/certificate.md).
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Certificate {
    /// `rows` of packs, or a `stream`.
    pub of: &'static str,
    /// The output of a stream; empty for the only one.
    pub output: String,
    /// The worst level of its figures.
    pub level: Level,
    /// Why, in a sentence.
    pub says: String,
    /// What an epoch is made of.
    pub plan: Epoch,
    /// The packs that are mixed, where there are several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<Share>,
    /// What was measured of the shuffle.
    pub figures: Vec<Figure>,
    /// What it was measured on.
    pub sample: Sample,
    /// The smallest changes that make it better, where it is not good.
    pub advice: Vec<String>,
    /// What an epoch costs, where the rows lie in a bucket and were not read into memory.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fetching: Option<Fetching>,
}

/// What an epoch is made of. What is not known is absent: a stream has no end and no number of rows.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Epoch {
    /// Rows of a batch, of all ranks together.
    pub batch_rows: u64,
    /// Ranks that share each batch.
    pub ranks: u64,
    /// Rows of an epoch, of all ranks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows: Option<u64>,
    /// Batches of an epoch; of epochs that run on into each other those that begin in it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batches: Option<u64>,
    /// Rows that no batch of an epoch has: left over at its end and dropped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dropped_rows: Option<u64>,
    /// Rows of an epoch that were in it before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated_rows: Option<u64>,
    /// Games that a stream draws from at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_games: Option<u64>,
    /// Games that lie in its directories now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub games: Option<u64>,
    /// Positions that a use of a game gives, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_use: Option<f64>,
    /// How many rows of a game an epoch has, on average.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rows_per_game: Option<f64>,
    /// The most memory that the loader takes, in bytes: a stream in all; a loader of rows for batches in its queue, in its
    /// workers and in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_bytes: Option<u64>,
    /// Bytes of the files that the loader reads, as they are now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disk_bytes: Option<u64>,
}

/// One of several packs that are mixed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Share {
    /// Its number.
    pub source: usize,
    /// Its folder.
    pub pack: PathBuf,
    /// Its selected rows.
    pub rows: u64,
    /// The share of rows that its weight asks for.
    pub wanted: f64,
    /// The share of the sampled rows that it gave.
    pub realised: f64,
    /// How often an epoch gives each of its rows, on average.
    pub uses: f64,
}

/// What figures were measured on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Batches.
    pub batches: u64,
    /// Their rows.
    pub rows: u64,
}

/// The certificate of rows of packs, as a plan has them; without packs only of what numbers say.
///
/// Errors: `Format` of packs; `Stopped` where `goes_on` says no.
pub fn of_rows(lookup: &Lookup, packs: &[Selection], goes_on: &mut dyn FnMut() -> bool) -> Result<Certificate> {
    let measured = rows::measure(lookup, packs, goes_on)?;
    let mut plan = epoch(lookup, packs, &measured.shares);
    let games: usize = packs.iter().map(|pack| pack.games().len()).sum();
    plan.rows_per_game = (games > 0).then(|| lookup.fed().len() as f64 / games as f64);
    plan.disk_bytes = lying(packs.iter().map(|pack| pack.pack().folder()))?.filter(|_| games > 0);
    let advice = advice::of_rows(lookup, packs, &measured, goes_on)?;
    let (batches, rows) = measured.sample;
    let mix = if packs.len() > 1 { mix(lookup, packs, &measured.shares) } else { Vec::new() };
    let sample = Sample { batches, rows };
    Ok(certificate("rows", String::new(), plan, measured.figures, sample, advice, mix))
}

/// The certificate of an output of a stream over the files that there are.
///
/// Errors: those of the configuration and its files; `Stopped` where `goes_on` says no.
pub fn of_stream(config: &DataLoaderConfig, output: &str, goes_on: &mut dyn FnMut() -> bool) -> Result<Certificate> {
    let planned = stream::planned(config);
    let measured = stream::measure(&planned, output, goes_on)?;
    let (games, there) = measured.window;
    let plan = Epoch {
        batch_rows: measured.batch,
        ranks: config.world_size.unwrap_or(1).into(),
        rows: measured.ended.then_some(measured.sample.1),
        batches: measured.ended.then_some(measured.sample.0),
        window_games: Some(games),
        games: Some(there),
        rows_per_use: Some(measured.uses),
        memory_bytes: Some(promise(config)?),
        disk_bytes: lying(
            planned.stage.iter().filter_map(|stage| Some(&*stage.file_path_provider.as_ref()?.directory)),
        )?,
        ..Epoch::default()
    };
    let advice = advice::of_stream(&planned, &measured);
    let sample = Sample { batches: measured.sample.0, rows: measured.sample.1 };
    Ok(certificate("stream", output.to_owned(), plan, measured.figures, sample, advice, Vec::new()))
}

/// The certificate of a pack that a loader with this configuration feeds; `condition` selects games. Of a pack in a bucket with what
/// an epoch costs on these terms; the cache of this machine stays as it is.
///
/// Errors: as the pack's opening and selecting; `Config` for what cannot be fed; as [`of_rows`].
pub fn of_pack(
    folder: &Path,
    config: &IndexConfig,
    condition: Option<&str>,
    terms: Terms,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Certificate> {
    terms.check()?;
    let traffic = Traffic::of(bucket::counts().into_iter().map(|(_, counts)| counts));
    let pack = selection::open(folder, Residence::Unkept)?;
    let opening = traffic.counts();
    let metadata_bytes = fetching::metadata_bytes(pack.folder())?;
    let all = Selection::all(pack);
    let selected = match condition {
        Some(sql) => all.query(sql, &[])?,
        None => all,
    };
    let input = selected.input();
    let lookup = Lookup::of(config, config.seed.unwrap_or_default(), &input)?;
    let mut made = of_rows(&lookup, std::slice::from_ref(&selected), goes_on)?;
    if !input.table.is_near() {
        let vectors = selected.pack().embeddings();
        let files = [input.table.files(), vectors.map(FrameTable::files).unwrap_or_default()].concat();
        let (opening, ranks) = (Some(opening), config.world_size);
        let known = fetching::Known { files: &files, metadata_bytes, opening, ranks };
        made.fetching = Some(fetching::of(&lookup.fetches(&input, goes_on)?, &known, terms)?);
    }
    Ok(made)
}

/// The certificate of a loader, which its status document has from then on; `selected` are the selected rows of each pack, for a
/// loader of rows, and `terms` those on which a pack in a bucket is fetched.
///
/// Errors: as [`of_rows`] and [`of_stream`].
pub fn of_engine(
    engine: &dyn Engine,
    selected: &[Selection],
    output: &str,
    terms: Terms,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Certificate> {
    terms.check()?;
    let options = SightOptions { output: output.to_owned(), first: 0, reads: Reads::Nothing };
    let made = match engine.stages() {
        Ok(config) => of_stream(&DataLoaderConfig::from_json(&config)?, output, goes_on)?,
        Err(_) => match engine.sight(&options)? {
            Sighted::Rows(lookup) => {
                let mut made = of_rows(&lookup, selected, goes_on)?;
                made.plan.memory_bytes = Some(held(engine, lookup.config()));
                if let Some(fetches) = engine.fetches(goes_on)? {
                    let folders: BTreeSet<&Path> = selected.iter().map(|pack| pack.pack().folder()).collect();
                    let sizes = folders.into_iter().map(fetching::metadata_bytes);
                    let metadata_bytes = sizes.sum::<Result<u64>>()?;
                    let ranks = lookup.config().world_size;
                    let tables: Vec<_> = selected.iter().map(|pack| pack.input().table).collect();
                    let files: Vec<_> = tables.iter().flat_map(|table| table.files()).collect();
                    let known = fetching::Known { files: &files, metadata_bytes, opening: None, ranks };
                    made.fetching = Some(fetching::of(&fetches, &known, terms)?);
                }
                made
            }
            Sighted::Stream(_) => return Err(Error::Unsupported("this loader has no plan to certify".to_owned())),
        },
    };
    let (level, says) = (made.level.to_string(), made.says.clone());
    engine.certified(CertificateStatus { output: output.to_owned(), level, says });
    Ok(made)
}

/// Bytes of all files below some places; a place named twice counts once. None if a part of a place cannot be listed.
fn lying<'a>(places: impl Iterator<Item = &'a Path>) -> Result<Option<u64>> {
    let (mut all, places) = (0, places.collect::<BTreeSet<_>>());
    for place in places {
        let faults = store::open(place)?.list(&mut |file| {
            all += file.size;
            ControlFlow::Continue(())
        });
        if faults.messages().next().is_some() {
            return Ok(None);
        }
    }
    Ok(Some(all))
}

/// Bytes of the batches in the queue, in the workers, and in use.
fn held(engine: &dyn Engine, config: &IndexConfig) -> u64 {
    let cores = || std::thread::available_parallelism().map_or(1, usize::from);
    let batches = config.queue_capacity.saturating_add(config.threads.unwrap_or_else(cores)).saturating_add(1);
    let rows = config.batch_size as u64 / config.world_size.max(1);
    let tensors = engine.outputs().iter().flat_map(|output| &output.tensors);
    let row = tensors.map(|tensor| tensor.row_bytes() as u64).fold(0, u64::saturating_add);
    (batches as u64).saturating_mul(rows).saturating_mul(row)
}

impl Certificate {
    /// Whether the shuffle is at least this good.
    ///
    /// Errors: `Config` in `require`, with the figures that are worse and what mends them.
    pub fn require(&self, level: Level) -> Result<()> {
        if self.level >= level {
            return Ok(());
        }
        let advice = if self.advice.is_empty() { String::new() } else { format!(". {}", self.advice.join(". ")) };
        let text = format!("expected a shuffle that is at least {level}, and it is {}{advice}", self.says);
        Err(Error::config("require", text))
    }
}

fn certificate(
    of: &'static str,
    output: String,
    plan: Epoch,
    figures: Vec<Figure>,
    sample: Sample,
    advice: Vec<String>,
    mix: Vec<Share>,
) -> Certificate {
    let level = figures.iter().map(|figure| figure.level).min().unwrap_or(Level::Good);
    let worse = figures.iter().filter(|figure| figure.level == level && level < Level::Good);
    let worse: Vec<String> =
        worse.map(|f| format!("{} is {:.3}, and {:.3} would be perfect", f.name, f.value, f.perfect)).collect();
    let why = match worse.is_empty() {
        true => "no figure tells it from a perfect shuffle by more than matters".to_owned(),
        false => worse.join("; "),
    };
    Certificate {
        of,
        output,
        level,
        says: format!("{level}: {why}"),
        plan,
        mix,
        figures,
        sample,
        advice,
        fetching: None,
    }
}

/// What an epoch of rows is made of.
fn epoch(lookup: &Lookup, packs: &[Selection], shares: &[f64]) -> Epoch {
    let config = lookup.config();
    let (rows, size) = (lookup.pass_rows(), config.batch_size as u64);
    let drops = config.last_batch == LastBatch::Drop && config.apart;
    let fed = rows_of(packs, lookup);
    let repeated = |(share, (_, of_pack)): (&f64, &(usize, u64))| (share * rows as f64 - *of_pack as f64).max(0.0);
    let repeated = match (lookup.is_drawn(), packs.len() > 1) {
        // What draws repeat is not known before they are made.
        (true, _) => None,
        (false, true) => Some(shares.iter().zip(&fed).map(repeated).sum::<f64>().round() as u64),
        (false, false) => Some(0),
    };
    Epoch {
        batch_rows: size,
        ranks: config.world_size,
        rows: Some(rows),
        batches: Some(if drops { rows / size } else { rows.div_ceil(size) }),
        dropped_rows: Some(if drops { rows % size } else { 0 }),
        repeated_rows: repeated,
        ..Epoch::default()
    }
}

/// Selected rows of each pack, by its number.
fn rows_of(packs: &[Selection], lookup: &Lookup) -> Vec<(usize, u64)> {
    let mut first = 0;
    let mut one = |(number, pack): (usize, &Selection)| {
        let end = first + pack.pack().total();
        let rows = lookup.fed().rank(end) - lookup.fed().rank(first);
        first = end;
        (number, rows)
    };
    packs.iter().enumerate().map(&mut one).collect()
}

fn mix(lookup: &Lookup, packs: &[Selection], shares: &[f64]) -> Vec<Share> {
    let weights = lookup.config().mix.as_ref().map(|mix| mix.weights.clone()).unwrap_or_default();
    let all: f64 = weights.iter().sum();
    let of = |((source, rows), realised): ((usize, u64), &f64)| Share {
        source,
        pack: packs[source].pack().folder().to_owned(),
        rows,
        wanted: weights.get(source).map_or(*realised, |weight| weight / all),
        realised: *realised,
        uses: realised * lookup.pass_rows() as f64 / rows.max(1) as f64,
    };
    rows_of(packs, lookup).into_iter().zip(shares).map(of).collect()
}
