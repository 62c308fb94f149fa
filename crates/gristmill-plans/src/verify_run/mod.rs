//! The ledgers of a run and the pack that it read -> whether each row of the plan was delivered exactly once to the training
//! that survived, across all crashes and changes of ranks; else which were not. Says what it proves and what it cannot.

mod coverage;
mod digests;
mod stream;

use std::path::PathBuf;

use gristmill_engine::config::{DataLoaderConfig, IndexConfig};
use gristmill_engine::error::{Error, Result};
use gristmill_engine::pipeline::ledger::{Account, Begin, By, Kept, PlanOf, Process};
use gristmill_engine::pipeline::{Lookup, Origin, PlacedRow};
use gristmill_engine::selection::Selection;
use serde::Serialize;

use crate::selected::{self, RowPlace};
use coverage::{Share, faults};

pub use coverage::Stretch;
pub use digests::{EpochDigest, WrongRecord};

/// What to verify.
#[derive(Debug, Clone)]
pub struct VerifyRunOptions {
    /// Ledgers: `PATH` with those of all ranks beside it, or folders of them.
    pub ledgers: Vec<PathBuf>,
    /// What its records are held against.
    pub against: Against,
    /// Name at most this many rows.
    pub max_rows: usize,
}

/// What the records of a run are held against.
#[derive(Debug, Clone, Default)]
pub enum Against {
    /// Nothing: no digest is compared, and no row named.
    #[default]
    Nothing,
    /// The pack whose rows it read.
    Pack(PathBuf),
    /// The configuration of the stream that it read, which is run again without its bytes.
    Stream(Box<DataLoaderConfig>),
}

/// What was found.
#[derive(Debug, Clone, Serialize)]
pub struct RunVerification {
    /// Whether nothing speaks against the run.
    pub ok: bool,
    /// Ledgers that were read.
    pub ledgers: usize,
    /// Processes that wrote them.
    pub processes: usize,
    /// How often the run was started.
    pub starts: u64,
    /// Per output.
    pub outputs: Vec<OutputVerification>,
    /// What is proven.
    pub proven: Vec<String>,
    /// What is not.
    pub unproven: Vec<String>,
}

/// What was found of one output.
#[derive(Debug, Clone, Serialize)]
pub struct OutputVerification {
    /// Its alias; empty for the only one.
    pub output: String,
    /// Batches below this were delivered by all ranks, but for what is listed.
    pub until: u64,
    /// How many there are in all; none where that is not known, or there is no end.
    pub of: Option<u64>,
    /// Whether the run has come to its end.
    pub complete: bool,
    /// Batches that were left out on purpose: first, and the one after the last.
    pub skipped: Vec<(u64, u64)>,
    /// What no rank delivered.
    pub missing: Vec<Stretch>,
    /// What was delivered more than once.
    pub twice: Vec<Stretch>,
    /// Starts from states that no process gave out: what was trained on then is not known.
    pub unfounded: Vec<Unfounded>,
    /// Shares of batches that were delivered to a training that did not survive, and again later.
    pub discarded_batches: u64,
    /// Records whose frames are not those of the plan.
    pub wrong_records: Vec<WrongRecord>,
    /// From where on records of a stream were not held against its plan, and why.
    pub not_compared: Option<NotCompared>,
    /// Digests of the epochs, where a pack was given.
    pub epochs: Vec<EpochDigest>,
    /// Some of the rows that are missing or came more than once.
    pub rows: Vec<NamedRow>,
}

/// A start from a state that no process gave out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unfounded {
    /// The start.
    pub start: u64,
    /// The batch that it resumes with.
    pub from: u64,
    /// The batch of the last state that a process gave out before `from`: the batches between are in doubt.
    pub last_state: Option<u64>,
}

/// Batches that could not be held against the plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NotCompared {
    /// The first.
    pub from: u64,
    /// Why.
    pub why: String,
}

/// Where a row comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Place {
    /// A row of a pack.
    Row(RowPlace),
    /// A frame of a stream.
    Frame(Origin),
}

/// A row that is missing, or came more than once.
#[derive(Debug, Clone, Serialize)]
pub struct NamedRow {
    /// `missing` or `twice`.
    pub fault: &'static str,
    /// Number of the batch.
    pub batch: u64,
    /// The row in it, of all ranks together.
    pub row: usize,
    /// Passes completed before it; of rows of a pack.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub epoch: Option<u64>,
    /// Where it comes from.
    #[serde(flatten)]
    pub place: Place,
}

/// The plan of a run of rows, as its ledger says it.
struct RowsPlan {
    lookup: Lookup,
    selected: Option<Selection>,
    rows: u64,
}

impl RowsPlan {
    fn new(process: &Process, against: &Against) -> Result<Option<Self>> {
        let PlanOf::Rows { config, data, rows, selection, .. } = &process.begin.plan else {
            let text = "the run read a stream, which is held against its configuration";
            return if matches!(against, Against::Pack(_)) { Err(Error::config("pack", text)) } else { Ok(None) };
        };
        let pack = match against {
            Against::Nothing => None,
            Against::Pack(pack) => Some(pack),
            Against::Stream(_) => {
                return Err(Error::config("config", "the run read rows of a pack, which is what it is held against"));
            }
        };
        let config = IndexConfig::from_json(&config.to_string())?;
        let seed = config.seed.unwrap_or_default();
        let selected = pack.map(|pack| selected::again(pack, selection, data)).transpose()?;
        let lookup = match &selected {
            Some(selected) => Lookup::of(&config, seed, &selected::input(selected, selection)?)?,
            None => Lookup::counted(&config, seed, *rows)?,
        };
        Ok(Some(RowsPlan { lookup, selected, rows: *rows }))
    }

    /// The plan of one process, or of all ranks of its start.
    fn lookup(&self, process: &Process, alone: bool) -> Result<Lookup> {
        let begin = &process.begin;
        let PlanOf::Rows { epochs, last_batch, .. } = begin.plan else {
            return Err(Error::State("it is of a stream".to_owned()));
        };
        let ranks = if alone { (begin.rank, begin.world_size) } else { (0, 1) };
        self.lookup.as_rank(epochs, last_batch, ranks)
    }
}

/// Told how many batches of an output were held against the plan, and of how many.
pub type Progress<'a> = &'a mut dyn FnMut(u64, u64);

/// Verifies a run.
///
/// Errors: `Path` for a ledger that is damaged or cannot be read; `State` for ledgers of different runs, none, another pack, or
/// another configuration; as the pack's opening, and the start of a stream.
pub fn verify_run(options: &VerifyRunOptions, progress: Progress<'_>) -> Result<RunVerification> {
    let account = Account::read(&options.ledgers)?;
    let plan = RowsPlan::new(&account.processes[0], &options.against)?;
    let outputs = account.outputs();
    let outputs = outputs.iter().map(|output| verify_output(&account, output, plan.as_ref(), options, progress));
    let outputs = outputs.collect::<Result<Vec<_>>>()?;
    let (proven, unproven) = words(&outputs, plan.as_ref(), matches!(options.against, Against::Stream(_)));
    Ok(RunVerification {
        ok: outputs.iter().all(OutputVerification::is_sound),
        ledgers: account.files.len(),
        processes: account.processes.len(),
        starts: account.processes.iter().map(|process| process.begin.order).max().unwrap_or(0),
        outputs,
        proven,
        unproven,
    })
}

impl OutputVerification {
    fn is_sound(&self) -> bool {
        self.missing.is_empty()
            && self.twice.is_empty()
            && self.unfounded.is_empty()
            && self.wrong_records.is_empty()
            && self.epochs.iter().all(|epoch| !epoch.differs)
    }
}

fn verify_output(
    account: &Account,
    output: &str,
    plan: Option<&RowsPlan>,
    options: &VerifyRunOptions,
    progress: Progress<'_>,
) -> Result<OutputVerification> {
    let (kept, discarded) = account.kept(output);
    let share = |kept: &Kept| {
        let begin = &account.processes[kept.process].begin;
        Share { first: kept.first, end: kept.end, rank: begin.rank, world: begin.world_size }
    };
    let shares: Vec<Share> = kept.iter().map(share).collect();
    let latest: Vec<(usize, &Process)> = account.latest().collect();
    let Some((_, last)) = latest.last().copied() else { return Err(Error::State("it has no process".to_owned())) };
    let skipped = last.begin.skip.get(output).cloned().unwrap_or_default();
    // How far each rank of the latest start came; one that is not there has not begun.
    let from = last.begin.from.get(output).copied().unwrap_or(0);
    let reached = |rank: u64| {
        let own = latest.iter().filter(|(_, process)| process.begin.rank == rank).map(|(p, _)| *p);
        let ends = own.flat_map(|p| kept.iter().filter(move |kept| kept.process == p).map(|kept| kept.end));
        ends.max().unwrap_or(from)
    };
    let until = (0..last.begin.world_size).map(reached).min().unwrap_or(from);
    let (missing, twice) = faults(&shares, &skipped, until);
    let behind = skipped.iter().find(|(first, end)| (*first..*end).contains(&until)).map_or(until, |(_, end)| *end);
    let (mut wrong_records, mut not_compared, mut epochs) = (Vec::new(), None, Vec::new());
    let (mut rows, mut of) = (Vec::new(), None);
    let listed = [("missing", &missing), ("twice", &twice)];
    if let Some(plan) = plan {
        let whole = plan.lookup(last, false)?;
        of = whole.batches();
        if plan.selected.is_some() {
            (wrong_records, epochs) = digests::compare((account, output), plan, &whole, &skipped, progress)?;
        }
        for (fault, all) in listed {
            rows.extend(named(plan, &whole, fault, all, options.max_rows - rows.len())?);
        }
    } else {
        let ended = |process: &Process| process.ended.iter().find(|(name, _)| name == output).map(|(_, batch)| *batch);
        let ends: Vec<Option<u64>> = latest.iter().map(|(_, process)| ended(process)).collect();
        of = ends.iter().all(Option::is_some).then(|| ends.first().copied().flatten()).flatten().or(of);
        if let Against::Stream(config) = &options.against {
            let compared = stream::compare((account, output), config, &listed, options.max_rows, progress)?;
            (wrong_records, not_compared, rows) = (compared.wrong_records, compared.not_compared, compared.rows);
        }
    }
    Ok(OutputVerification {
        output: output.to_owned(),
        until,
        of,
        complete: of.is_some_and(|of| behind >= of),
        skipped,
        missing,
        twice,
        unfounded: unfounded(account, output),
        discarded_batches: discarded.iter().map(|kept| kept.end - kept.first).sum(),
        wrong_records,
        not_compared,
        epochs,
        rows,
    })
}

/// Starts of an output from states that no process gave out.
fn unfounded(account: &Account, output: &str) -> Vec<Unfounded> {
    let given = account.processes.iter().flat_map(|process| {
        // A process that died just after it had saved its first state could not note that any more.
        process.states.iter().chain(process.saving.iter().map(|(at, _)| at))
    });
    let states: Vec<u64> = given.filter_map(|at| at.get(output).copied()).collect();
    let begins = account.processes.iter().map(|process| &process.begin).filter(|begin| begin.by == By::State);
    let lacks = |begin: &Begin| {
        let from = *begin.from.get(output)?;
        let last_state = states.iter().copied().filter(|at| *at <= from).max();
        (last_state != Some(from)).then_some(Unfounded { start: begin.order, from, last_state })
    };
    let mut found: Vec<Unfounded> = begins.filter_map(lacks).collect();
    found.sort_unstable_by_key(|unfounded| (unfounded.start, unfounded.from));
    found.dedup();
    found
}

/// The first rows of some stretches, with their places.
fn named(plan: &RowsPlan, whole: &Lookup, fault: &'static str, all: &[Stretch], most: usize) -> Result<Vec<NamedRow>> {
    let Some(selected) = &plan.selected else { return Ok(Vec::new()) };
    let batches = all.iter().flat_map(|stretch| (stretch.first..stretch.end).map(move |batch| (stretch, batch)));
    let rows = batches.flat_map(|(stretch, batch)| {
        (0..whole.rows(batch)).filter(|row| stretch.has(*row as u64)).map(move |row| (batch, row))
    });
    let name = |(batch, row): (u64, usize)| {
        let place = |placed: PlacedRow| {
            let (epoch, place) = (Some(placed.epoch), Place::Row(selected::place(selected, placed.row)));
            NamedRow { fault, batch, row, epoch, place }
        };
        Ok(whole.row(batch, row)?.map(place))
    };
    rows.take(most).map(name).filter_map(Result::transpose).collect()
}

/// What all of it proves, and what not.
fn words(outputs: &[OutputVerification], plan: Option<&RowsPlan>, stream: bool) -> (Vec<String>, Vec<String>) {
    let (mut proven, mut unproven) = (Vec::new(), Vec::new());
    for found in outputs {
        let of = if found.output.is_empty() { String::new() } else { format!("output {}: ", found.output) };
        let whole = found.missing.is_empty() && found.twice.is_empty() && found.unfounded.is_empty();
        if whole {
            proven.push(format!("{of}each batch below {} was delivered by all ranks exactly once", found.until));
        }
        if !found.complete {
            let tail = "a process that was killed may have delivered up to 64 batches more, which no state counts";
            unproven.push(format!("{of}that the run has come to its end; {tail}"));
        }
        match plan {
            Some(plan) if plan.selected.is_some() => {
                if whole && found.is_sound() {
                    proven.push(format!("{of}what was delivered are the rows of the plan, by their digests"));
                }
            }
            Some(_) => {
                unproven.push(format!("{of}that the rows were those of the plan: give the pack to compare digests"))
            }
            None => match (&found.not_compared, stream) {
                (_, false) => {
                    let text = "that the frames were those of the plan: give the configuration to compare digests";
                    unproven.push(format!("{of}{text}"));
                }
                (Some(NotCompared { from, why }), true) => {
                    unproven.push(format!("{of}that the frames from batch {from} on were those of the plan: {why}"));
                }
                (None, true) if whole && found.is_sound() => {
                    proven.push(format!("{of}what was delivered are the frames of the plan, by their digests"));
                }
                (None, true) => {}
            },
        }
    }
    (proven, unproven)
}
