//! A plan -> a running loader: logs, chains, threads, and whatever an earlier run left put back in its place.
//! Works in two steps, so that no caller waits for a scan while holding a lock.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use gristmill_format::Kind;
use gristmill_packs::kinds::{self, packs::codec_of};
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::facts::Facts;
use gristmill_runtime::runtime::events::{Event as Noted, Events, Level};
use gristmill_runtime::runtime::journal::{self, Journal};
use gristmill_runtime::runtime::scheduler::{Crew, Lane, Rounds, Scheduler, Tasks};
use gristmill_runtime::store::place::resolved;
use gristmill_runtime::store::publish::sync_folder;
use gristmill_runtime::store::{self, Spill, World, newest};
use gristmill_stages::config::{BadChunks, DataLoaderConfig, FrameFormat, IoErrors, SplitBy};
use gristmill_stages::stage::discover::Search;
use gristmill_stages::stage::load::{LogSpec, Solids, SourceLog};

use crate::pipeline::chain::{Chain, Shared};
use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::event::{Event, SharedJournal};
use crate::pipeline::draw::outage::{IoErrorCounts, Outages};
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::draw::verdict::Verdicts;
use crate::pipeline::ledger::{Begin, Book, By, PlanOf};
use crate::pipeline::plan::budget;
use crate::pipeline::plan::flow::flow;
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::plan::sight::Reads;
use crate::pipeline::plan::{ChainPlan, LogPlan, Plan};
use crate::pipeline::resume::journals::{self, JournalMark};
use crate::pipeline::resume::papers::Papers;
use crate::pipeline::resume::recall::{Containers, Recall};
use crate::pipeline::resume::state::fingerprint;
use crate::pipeline::watch::certified::Certified;
use crate::pipeline::watch::history::History;
use crate::pipeline::watch::metrics::Observer;
use crate::pipeline::watch::notices;

/// Threads that only read, unless the config says otherwise.
const READERS: usize = 2;

/// Maximum number of bytes that are held for states, unless the config says otherwise.
const SPILL_LIMIT: u64 = 16 << 30;

/// How often totals are sampled for rates.
const SAMPLE: Duration = Duration::from_millis(100);

/// How many times as long as it takes to forget files passes before it is done again: it looks at each row that is held.
const FORGETS: u32 = 50;

/// What exists only while the loader runs.
pub(in crate::pipeline) struct Running {
    pub(in crate::pipeline) scheduler: Scheduler,
    pub(in crate::pipeline) observer: Observer,
    pub(in crate::pipeline) book: Option<Arc<Book>>,
    pub(in crate::pipeline) journal: Option<SharedJournal>,
    /// How far the journals of ranks of another number reached.
    pub(in crate::pipeline) marks: Vec<JournalMark>,
}

impl Running {
    /// Sends journal and ledger to where they belong, now and as they grow.
    ///
    /// Errors: as [`Papers::send`]; `Config` when there are no threads.
    pub(in crate::pipeline) fn sends(&self, papers: &Arc<Papers>) -> Result<()> {
        papers.send()?;
        let (stop, events) = (self.scheduler.stop_flag(), Arc::clone(&self.observer.events));
        let told = move |why: String| events.add(Noted::new(Level::Warning, "unsent", why));
        let Some(rounds) = papers.rounds(move || stop.load(Ordering::Relaxed), told) else { return Ok(()) };
        let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
        self.scheduler.rounds("segments", rounds).map_err(failed)
    }
}

/// A start under way: the directories are being scanned.
pub(in crate::pipeline) struct Launch {
    scheduler: Scheduler,
    observer: Observer,
    recall: Recall,
    /// What a state needs, opened before it is put back.
    opened: Containers,
    journal: Option<SharedJournal>,
    book: Option<Arc<Book>>,
}

/// The journal that this process writes, if it writes one; from here on no other process does.
///
/// Errors: `Path`, also where another loader has it.
pub(in crate::pipeline) fn own_journal(config: &DataLoaderConfig, sight: Option<Reads>) -> Result<Option<Journal>> {
    let Some(path) = config.journal.as_ref().filter(|_| !config.replay && sight.is_none()) else { return Ok(None) };
    let Ranks { rank, world, .. } = Ranks::of(config)?;
    let path = journals::of_rank(path, rank.into(), world.into());
    Journal::hold(&path).map(Some).map_err(|e| Error::path(&path, &e))
}

impl Launch {
    /// Starts the scans and lays out the chains; nothing is drawn yet.
    ///
    /// Errors: `Path` for a directory, journal or report, `State` for a seed that does not fit.
    pub(in crate::pipeline) fn new(
        config: &DataLoaderConfig,
        (plan, sight): (&Plan, Option<Reads>),
        root: u64,
        (recall, journal): (Recall, Option<Journal>),
        (anchors, certified, within): (Arc<Anchors>, Certified, Option<&Arc<dyn World>>),
    ) -> Result<Self> {
        if recall.seed.is_some_and(|seed| seed != root) {
            return Err(Error::State(format!("it was made with another seed than {root}")));
        }
        let events = Arc::new(Events::default());
        notices::lacking(&events, plan);
        let report = config.quarantine.as_deref();
        // Who only looks has no use for errors in between.
        let policy = if sight.is_some() { BadChunks::Skip } else { config.bad_chunks };
        let verdicts = Arc::new(Verdicts::new(policy, report, Arc::clone(&events))?);
        let scheduler = Scheduler::of(within.map(|world| Arc::clone(world) as Arc<dyn Crew>));
        // Who only looks wants an answer, and can ask again.
        let io_errors = if sight.is_some() { IoErrors::Raise } else { config.io_errors };
        let outages = Arc::new(Outages::new(io_errors, Arc::clone(&events), scheduler.time()));
        let limit = config.spill_limit.map_or(SPILL_LIMIT, |limit| limit.0);
        let Ranks { rank, world, .. } = Ranks::of(config)?;
        let spill = config.spill.as_ref().map(|folder| Spill::open(folder, (rank, world), limit).map(Arc::new));
        let spill = spill.transpose()?;
        let rosters = rosters(config, plan, (&scheduler, within), &recall, (spill.as_ref(), io_errors, &outages))?;
        let journal = journal.map(|journal| Arc::new(Mutex::new(journal.to_open(recall.opening))));
        let book = match &config.ledger {
            Some(path) if !config.replay => Some(Arc::new(Book::open(path, begin(config, plan, root, &recall)?)?)),
            _ => None,
        };
        let shared = Shared {
            root,
            workers: budget::workers(config),
            limits: budget::limits(config),
            signal: scheduler.signal(),
            time: scheduler.time(),
            crowd: Arc::default(),
            stop: scheduler.stop_flag(),
            verdicts: Arc::clone(&verdicts),
            outages: Arc::clone(&outages),
            events: Arc::clone(&events),
            journal: journal.clone(),
            anchors,
            book: book.clone(),
            beside: budget::beside(plan, config.memory, budget::workers(config), &budget::limits(config)),
            sight,
        };
        let chain = |chain: &ChainPlan| Chain::new(chain.clone(), shared.clone(), &rosters).map(Arc::new);
        let chains = plan.chains.iter().map(chain).collect::<Result<Vec<_>>>()?;
        let observer = Observer {
            root,
            chains,
            rosters,
            verdicts,
            outages,
            kept: recall.kept(),
            whole: Arc::default(),
            spill,
            vanished: Arc::default(),
            notices: Arc::default(),
            rates: Arc::default(),
            history: Arc::new(Mutex::new(History::new(config)?)),
            events,
            flow: flow(config)?.into(),
            book: book.clone(),
            certified,
            stop: scheduler.stop_flag(),
            ranks: Ranks::of(config)?,
            readers: config.io_threads.unwrap_or(READERS).clamp(1, 256),
        };
        Ok(Launch { scheduler, observer, recall, opened: Containers::default(), journal, book })
    }

    /// Whether [`Launch::finish`] can go ahead: at once, unless files of an earlier run are to be found again or
    /// written down.
    ///
    /// Errors: `Stage` when a scan ended without a result; the error of a read where the stream does not wait.
    pub(in crate::pipeline) fn scanned(&mut self) -> Result<bool> {
        if self.journal.is_none() && !self.recall.waits_for_scan() {
            return Ok(true);
        }
        for roster in &self.observer.rosters {
            if !roster.ready() {
                return roster.unscanned().map_or(Ok(false), Err);
            }
        }
        for chain in &self.observer.chains {
            if !self.recall.opens(chain, &self.observer.outages, &mut self.opened)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// What cannot be read now, and was needed so far.
    pub(in crate::pipeline) fn io_errors(&self) -> IoErrorCounts {
        self.observer.outages.counts()
    }

    /// Puts an earlier run's state in place and sets the threads to work.
    ///
    /// Errors: `State` for files that are gone or changed, `Path` for the journal, `Config` when there are no threads.
    pub(in crate::pipeline) fn finish(self, config: &DataLoaderConfig) -> Result<Running> {
        let Launch { scheduler, observer, recall, opened: _opened, journal, book } = self;
        if recall.waits_for_scan() {
            for chain in &observer.chains {
                let vanished = recall.put_into(chain)?;
                notices::vanished(&observer.events, &vanished);
                observer.vanished.lock().unwrap_or_else(PoisonError::into_inner).extend(vanished);
            }
        }
        // A start that fails before this leaves no journal behind.
        if let Some(journal) = &journal {
            write_first(journal, config, &observer, &recall)?;
        }
        let chains = observer.chains.iter();
        let tasks: Arc<[Arc<dyn Tasks>]> = chains.map(|chain| Arc::clone(chain) as Arc<dyn Tasks>).collect();
        let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
        scheduler.staff(Lane::Work, budget::workers(config), &tasks).map_err(failed)?;
        scheduler.staff(Lane::Read, observer.readers, &tasks).map_err(failed)?;
        let (stop, time, sampler, mut due) =
            (scheduler.stop_flag(), scheduler.time(), observer.clone(), Duration::ZERO);
        let sample = move || {
            if stop.load(Ordering::Relaxed) {
                return None;
            }
            sampler.sample();
            sampler.notice();
            let begun = time.now();
            if begun >= due {
                sampler.forget();
                let now = time.now();
                due = now + FORGETS * now.saturating_sub(begun);
            }
            Some(SAMPLE)
        };
        scheduler.rounds("metrics", Box::new(sample)).map_err(failed)?;
        notices::started(&observer, budget::workers(config), recall.how());
        let marks = recall.marks(config);
        Ok(Running { scheduler, observer, book, journal, marks })
    }
}

fn rosters(
    config: &DataLoaderConfig,
    plan: &Plan,
    (scheduler, world): (&Scheduler, Option<&Arc<dyn World>>),
    recall: &Recall,
    (spill, io_errors, outages): (Option<&Arc<Spill>>, IoErrors, &Arc<Outages>),
) -> Result<Vec<Arc<Roster>>> {
    let solids = config.max_solid_bytes.map(|most| Solids::new(most.0));
    let one = |(provider, log): (usize, &LogPlan)| -> Result<Arc<Roster>> {
        let place = resolved(&log.directory).map_err(|e| e.in_stage(&log.files))?;
        // What cannot be read yet is reported, and tried again, where its chunks are.
        let encoders = config.stage.iter().filter_map(|stage| Some(&stage.tensor_generator.as_ref()?.encoder));
        let codec = if world.is_some() { Ok(None) } else { codec_of(&place) };
        // A stream of a pack in a bucket reads the version that is there when it starts.
        let place = match &codec {
            Ok(Some(_)) => newest(&place).map_err(|e| e.in_stage(&log.files))?.into_owned().into(),
            _ => place,
        };
        let fits = codec.and_then(|codec| codec.map_or(Ok(()), |codec| kinds::fed_by(codec.name(), encoders)));
        if let Err(e) = fits.or_else(|e| if e.kind() == Kind::Unsupported { Err(e) } else { Ok(()) }) {
            let text = format!("{}: {}", log.directory.display(), e.detail());
            return Err(Error::field(&log.files, "directory", text));
        }
        let watch = log.watch && !config.replay;
        let events = log.events.as_deref().filter(|_| watch);
        let store = world
            .map_or_else(|| store::place::open_noticed(&place, events), |world| world.open(&place))
            .map_err(|e| e.in_stage(&log.files))?;
        let find = Search {
            store: Arc::clone(&store),
            watch,
            rescan: log.rescan,
            expected: recall.files(&log.stage).into_iter().flat_map(|past| past.files).map(|file| file.name).collect(),
            waits: io_errors == IoErrors::Wait,
            stop: scheduler.stop_flag(),
        };
        let spec = LogSpec {
            store,
            find: find.ready(),
            provider: u16::try_from(provider).map_err(|_| Error::config("stage", "too many directories"))?,
            version: match log.frame_format {
                FrameFormat::Auto => None,
                FrameFormat::V6TrainingData => Some(6),
                FrameFormat::V7TrainingData => Some(7),
            },
            fits: kinds::streams,
            facts: facts(config, &place),
            solids: solids.clone(),
            waits: log.waits && !config.replay,
        };
        let signal = scheduler.signal();
        let spawn = |name: &str, rounds: Rounds| {
            // A thread that cannot be started shows as a log that ends at once: no chunk will come.
            let _ = scheduler.rounds(name, rounds);
        };
        let source_log = SourceLog::start(spec, &spawn, Arc::new(move || signal.notify_all()));
        let with = (spill.cloned(), Arc::clone(outages));
        Ok(Arc::new(Roster::new(log.stage.clone(), source_log, recall.files(&log.stage), with)))
    };
    plan.logs.iter().enumerate().map(one).collect()
}

/// What the ledger records of this process.
fn begin(config: &DataLoaderConfig, plan: &Plan, root: u64, recall: &Recall) -> Result<Begin> {
    let Ranks { rank, world, .. } = Ranks::of(config)?;
    let by = if recall.goes_on() { By::State } else { By::Start };
    let from = plan.chains.iter().map(|chain| (chain.alias.clone(), recall.first_batch(&chain.alias))).collect();
    let skip = plan.chains.iter().map(|chain| (chain.alias.clone(), chain.skips.before(u64::MAX)));
    let skip = skip.filter(|(_, skip)| !skip.is_empty()).collect();
    let plan = PlanOf::Stream { config: fingerprint(config, plan), seed: root };
    Ok(Begin::new((rank.into(), world.into()), by, from, skip, plan))
}

/// The side index of a directory; a lost or unwritable one costs time only.
fn facts(config: &DataLoaderConfig, directory: &Path) -> Option<Arc<Facts>> {
    let folder = match &config.index {
        Some(path) if path.as_os_str() == "off" => return None,
        Some(path) => path.clone(),
        None => Facts::default_folder()?,
    };
    Facts::open(&folder, directory).ok().map(Arc::new)
}

/// Opens the journal and, where it has no line of this run yet, writes the events that all others rest on.
fn write_first(journal: &SharedJournal, config: &DataLoaderConfig, observer: &Observer, recall: &Recall) -> Result<()> {
    let seed = observer.root;
    let mut events = vec![recall.next_batches().map_or(Event::Seed(seed), |at| Event::From { seed, at })];
    let splits = journals::splits(config).filter(|(_, by)| *by != SplitBy::File);
    events.extend(splits.map(|(stage, by)| Event::Split { stage: stage.to_owned(), by }));
    for roster in &observer.rosters {
        let (loader, mut files) = (roster.loader.clone(), roster.files());
        if !recall.goes_on() {
            let first = roster.first_files();
            let ids: BTreeSet<u64> = first.iter().map(|file| file.id).collect();
            files.retain(|file| !ids.contains(&file.id));
            events.push(Event::Initial { loader: loader.clone(), files: first });
        }
        if recall.goes_on() || !files.is_empty() {
            events.push(Event::Known { loader, files });
        }
    }
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    let tells = recall.opening == journal::Opening::Again;
    let written = match tells {
        true => journal.open().and_then(|()| {
            let untold = recall.untold(journal.path());
            if untold.is_empty() { Ok(()) } else { journal.append(&untold) }
        }),
        false => journal.append(&events),
    };
    written.map_err(|e| Error::path(journal.path(), &e))?;
    // A file that was made lasts with its name, before a draw that its lines tell of.
    if tells { Ok(()) } else { sync_folder(journal.path().parent().unwrap_or(Path::new(""))) }
}

#[cfg(test)]
pub(in crate::pipeline) mod tests;
