//! A configuration, and perhaps a state -> which frames the batches of its stream hold, past or future. Its plan runs; what
//! does not decide is not read. What depends on files that may still arrive is refused.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gristmill_format::encode::Provenance;
use gristmill_format::source::Chunk;
use gristmill_packs::kinds;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::sql::SqlValue;
use gristmill_stages::config::{DataLoaderConfig, Skip};
use serde::Serialize;

use super::{DataLoader, Next};
use crate::pipeline::plan::DrawPlan;
use crate::pipeline::plan::budget::limits;
use crate::pipeline::plan::sight::{Reads, origins, see};
use crate::pipeline::resume::journals::{Files, History, family};
use crate::pipeline::resume::papers::Paper;
use crate::pipeline::resume::state::{self, LoaderState};

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct SightOptions {
    /// The output; empty for the only one.
    pub output: String,
    /// The first batch.
    pub first: u64,
    /// What of the chunks is read.
    pub reads: Reads,
}

/// Where a row of a batch of a stream comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Origin {
    /// The file, below its directory.
    pub file: String,
    /// The game in that file, from 0.
    pub game: u64,
    /// What the file calls that game, where it has names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub member: Option<String>,
    /// The position in the game, from 0.
    pub ply: u64,
}

/// The frames of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenBatch {
    /// Its number.
    pub number: u64,
    /// Where its rows come from, in order.
    pub rows: Vec<Provenance>,
}

/// The longest wait between two calls of `goes_on`.
const SLICE: Duration = Duration::from_millis(50);

/// Draws of each pool and lane below which no file that arrives can change anything.
type Known = BTreeMap<(String, Option<u32>), u64>;

/// A stream that is only planned, batch by batch: the origins of its rows, without their bytes.
pub struct Sight {
    loader: DataLoader,
    output: String,
    /// Absent where no file can arrive.
    known: Option<Known>,
    /// The journal, as long as it is read.
    _journal: Option<Paper>,
}

impl Sight {
    /// Plans the stream of a configuration from a batch on: resumed from a state, given as its text or that of all its
    /// parts, or else from its beginning, with the arrivals of its journal.
    ///
    /// Errors: `Config` for a batch before the state, an unknown seed or no such output; as [`DataLoader::new`] and
    /// [`DataLoader::restore`].
    pub fn new(config: &DataLoaderConfig, state: Option<&str>, options: &SightOptions) -> Result<Self> {
        let paper = config.journal.as_deref().map(Paper::read).transpose()?;
        let journal = paper.as_ref().map(Paper::path);
        let journal = journal.filter(|path| family(path).is_ok_and(|files| !files.is_empty()));
        let saved = state.map(state::read).transpose()?;
        let mut config = DataLoaderConfig {
            ledger: None,
            quarantine: None,
            journal: journal.map(std::path::Path::to_owned),
            replay: state.is_none() && journal.is_some(),
            skip: saved.as_ref().map(left_out).unwrap_or_default(),
            ..config.clone()
        };
        if state.is_none() && journal.is_none() && config.seed.is_none() {
            return Err(Error::config("seed", "it was drawn by the run; give a state of it, its journal or its seed"));
        }
        let files = config.stage.iter_mut().filter_map(|stage| stage.file_path_provider.as_mut());
        let watched = files.fold(false, |watched, files| watched | files.watch.replace(false).unwrap_or(true));
        let mut loader = DataLoader::new(config)?;
        if !loader.outputs.iter().any(|output| output.alias == options.output) {
            let known: Vec<&str> = loader.outputs.iter().map(|output| output.alias.as_str()).collect();
            let text = format!("there is no output `{}`; expected one of: {}", options.output, known.join(", "));
            return Err(Error::config("output", text));
        }
        if let Some(text) = state {
            loader.restore(text)?;
        }
        let next = saved.as_ref().and_then(|saved| saved.outputs.get(&options.output)).map_or(0, |output| output.batch);
        if options.first < next {
            let text = format!(
                "batch {} lies before the state, which resumes with batch {next}; give an earlier state, or none to \
                 begin at the beginning",
                options.first
            );
            return Err(Error::config("batch", text));
        }
        let known = if watched { Some(known(&loader, saved.as_ref())?) } else { None };
        see(&mut loader.plan, options.first);
        loader.sight = Some(options.reads);
        Ok(Sight { loader, output: options.output.clone(), known, _journal: paper })
    }

    /// The next batch; `None` at the end of the stream. Calls `goes_on` now and then while it waits.
    ///
    /// Errors: `Stage` for a batch that depends on files that may still arrive, and for chunks whose frames were never
    /// counted; `Stopped` where `goes_on` says no; as the stream itself.
    pub fn next_batch(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<SeenBatch>> {
        let batch = loop {
            match self.loader.next(&self.output, Some(SLICE))? {
                Next::Batch(batch) => break batch,
                Next::Pending if goes_on() => {}
                Next::Pending => return Err(Error::Stopped),
                Next::End => return Ok(None),
            }
        };
        self.check(batch.number)?;
        let rows = origins(batch.columns[0].bytes(), batch.rows).collect();
        Ok(Some(SeenBatch { number: batch.number, rows }))
    }

    /// Refuses the batch that was taken last where it depends on draws beyond those that are known.
    fn check(&self, batch: u64) -> Result<()> {
        let Some(known) = &self.known else { return Ok(()) };
        let running = self.loader.runs_here();
        let chain = running.and_then(|r| r.observer.chains.iter().find(|chain| chain.plan.alias == self.output));
        let Some(inner) = chain.map(|chain| chain.lock()) else { return Ok(()) };
        for (branch, (head, taken)) in inner.branches.iter().zip(&inner.fold.delivered.branches) {
            let lane = branch.plan.lane.map(|lane| lane.index);
            let known = known.get(&(branch.plan.stage.clone(), lane)).copied().unwrap_or(0);
            let draws = drawn(&(*head, *taken));
            if draws > known {
                let text = format!(
                    "batch {batch} takes {draws} draws, and files that arrive may change all from draw {known} on: give the \
                     journal of the run, or a later state"
                );
                return Err(Error::stage(&branch.plan.stage, text));
            }
        }
        Ok(())
    }

    /// The games that its output draws from at a time, and those that there are, as far as pools do not hold all of them.
    pub fn window(&self) -> (u64, u64) {
        let running = self.loader.runs_here();
        let Some(chain) = running.and_then(|r| r.observer.chains.iter().find(|chain| chain.plan.alias == self.output))
        else {
            return (0, 0);
        };
        let (mut games, mut full) = (0, false);
        for (branch, totals) in chain.lock().branches.iter_mut().zip(&chain.branch_totals) {
            let Some(drawer) = &branch.drawer else { continue };
            let [_, chunks, capacity, ..] = drawer.gauges(&totals.dropped(), &mut branch.census);
            games += chunks;
            full |= matches!(branch.plan.draw, DrawPlan::Pool { .. }) && chunks >= capacity;
        }
        let files = self.loader.metrics();
        let files = files.of_kind("chunk_source_loader").flat_map(|stage| &stage.gauges);
        let files: u64 = files.filter(|gauge| gauge.name == "files").map(|gauge| gauge.value).sum();
        (games, if full { games.max(files) } else { games })
    }

    /// How many games were drawn for the batches that were taken, over all branches; a function of these batches alone.
    pub fn draws(&self) -> u64 {
        let running = self.loader.runs_here();
        let chain = running.and_then(|r| r.observer.chains.iter().find(|chain| chain.plan.alias == self.output));
        chain.map_or(0, |chain| chain.lock().fold.delivered.branches.iter().map(drawn).sum())
    }

    /// Where a row comes from, in words.
    pub fn origin(&self, row: Provenance) -> Origin {
        let rosters = self.loader.runs_here().map(|running| &running.observer.rosters);
        let mut rosters = rosters.into_iter().flatten();
        let source = rosters.find_map(|roster| roster.name(row.source).and(roster.open(row.source).ok()));
        let member = source.and_then(|source| Some(source.chunks.locate(row.chunk as usize)?.1?.to_owned()));
        let file = self.loader.source_path(row.source).unwrap_or_default();
        Origin { file, game: row.chunk.into(), member, ply: row.frame.into() }
    }

    /// Reads the game of a row, and returns its class: the value that a pack of such games has in its class column. None for games of
    /// a kind that has no classes.
    ///
    /// Errors: those of reading and decoding the game.
    pub fn class(&self, row: Provenance) -> Result<Option<SqlValue>> {
        let rosters = self.loader.runs_here().map(|running| &running.observer.rosters);
        let roster = rosters.into_iter().flatten().find(|roster| roster.name(row.source).is_some());
        let Some(source) = roster.map(|roster| roster.open(row.source)).transpose()? else { return Ok(None) };
        let Some(codec) = kinds::of(source.chunks.describe().kind)?.codec() else { return Ok(None) };
        if codec.class_column().is_none() {
            return Ok(None);
        }
        let (mut bytes, mut game, limits) = (Vec::new(), Chunk::default(), limits(&self.loader.config));
        source.fetch(row.chunk as usize, &limits, &mut bytes)?;
        source.decode(row.chunk as usize, &bytes, &limits, &mut game)?;
        Ok(codec.class(&game)?)
    }

    /// What stands for the file of a row in the ledger.
    pub fn file_hash(&self, row: Provenance) -> u64 {
        let running = self.loader.runs_here();
        let chain = running.and_then(|r| r.observer.chains.iter().find(|chain| chain.plan.alias == self.output));
        chain.map_or(0, |chain| chain.file_hash(row.source))
    }
}

impl DataLoader {
    /// Plans the stream of this loader, as this rank has it: past batches by replaying its journal or its seed, later
    /// ones from where it stands. The loader need not have started, and runs on undisturbed.
    ///
    /// Errors: as [`Sight::new`] and [`DataLoader::state`].
    pub fn sight(&self, options: &SightOptions) -> Result<Sight> {
        let state = match self.runs_here() {
            Some(_) => Some(Arc::new(self.stands(None)?)),
            None => self.lock().restore.as_ref().map(|(state, _)| Arc::clone(state)),
        };
        let seed = state.as_ref().map(|state| state.seed);
        let config = DataLoaderConfig { seed: self.config().seed.or(seed), ..self.config() };
        let comes = |state: &Arc<LoaderState>| {
            state.outputs.get(&options.output).is_some_and(|output| output.batch <= options.first)
        };
        let text = state.filter(comes).map(|state| state.to_json()).transpose();
        Sight::new(&config, text.map_err(|e| Error::State(e.to_string()))?.as_deref(), options)
    }
}

/// Draws of a branch up to a mark: those whose rows were all taken, and the one of which some were.
fn drawn((head, taken): &(u64, usize)) -> u64 {
    head + u64::from(*taken > 0)
}

/// The batches that a state says were left out.
fn left_out(saved: &LoaderState) -> Vec<Skip> {
    let of = |(alias, (first, end)): (&String, (u64, u64))| Skip { output: Some(alias.clone()), first, end };
    let outputs = saved.outputs.iter();
    outputs.flat_map(|(alias, output)| output.skipped.iter().map(move |range| (alias, *range))).map(of).collect()
}

/// What a journal and a state tell for certain.
fn known(loader: &DataLoader, saved: Option<&LoaderState>) -> Result<Known> {
    let mut known = match &loader.config.journal {
        Some(path) => History::read(path, Files::new())?.reached,
        None => Known::new(),
    };
    let Some(saved) = saved else { return Ok(known) };
    for chain in &loader.plan.chains {
        let Some(output) = saved.outputs.get(&chain.alias) else { continue };
        for (b, branch) in chain.branches.iter().enumerate() {
            let lane = branch.lane.map(|lane| lane.index);
            let state = output.lanes.get(&lane.unwrap_or(0)).and_then(|lane| lane.branches.get(b % chain.inputs()));
            let reached = known.entry((branch.stage.clone(), lane)).or_default();
            *reached = state.map_or(0, |state| state.drawn).max(*reached);
        }
    }
    Ok(known)
}
