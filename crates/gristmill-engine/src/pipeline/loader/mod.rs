//! The loader that people hold: starts and stops the river, hands out batches by alias, says where it stands.
//! A thin shell: what flows is decided by the plan, in what order by the chains.

mod begin;
pub(in crate::pipeline) mod launch;
mod look;
pub(in crate::pipeline) mod output;
mod waits;
mod watched;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use begin::Local;
use gristmill_format::encode::TensorSpec;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::events::{Event, Level};
use gristmill_runtime::runtime::handoff::{Taken, WhenFull};
use gristmill_runtime::store::World;
use gristmill_stages::config::{DataLoaderConfig, IoErrors};
use waits::{Begun, START_POLL, may_pass};

use crate::pipeline::draw::anchors::{Anchors, ControlReply, ControlRequest};
use crate::pipeline::draw::event::SharedJournal;
use crate::pipeline::loader::launch::{Launch, Running};
use crate::pipeline::loader::output::Batch;
use crate::pipeline::plan::budget;
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::plan::sight::Reads;
use crate::pipeline::plan::{ChainPlan, DrawPlan, Plan, plan};
use crate::pipeline::resume::envelope::{Of, VERSION};
use crate::pipeline::resume::journals::{JournalMark, latest};
use crate::pipeline::resume::needed::OldestNeeded;
use crate::pipeline::resume::state::{ChainState, LoaderState, Part, fingerprint};
use crate::pipeline::resume::vanished::{Missing, Vanished};
use crate::pipeline::resume::{saved, state};
use crate::pipeline::watch::certified::Certified;
use crate::pipeline::watch::notices;

pub use look::{Origin, SeenBatch, Sight, SightOptions};

/// How often a start looks whether the first scan is in.
const SCAN_POLL: Duration = Duration::from_millis(2);

/// What [`DataLoader::next`] found.
#[derive(Debug)]
pub enum Next {
    /// The next batch.
    Batch(Batch),
    /// Nothing within the time allowed.
    Pending,
    /// The stream has ended.
    End,
}

/// One output of a loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// Its name in calls; empty for the only one.
    pub alias: String,
    /// Rows per batch.
    pub batch_size: usize,
    /// The tensors, in order.
    pub tensors: Vec<TensorSpec>,
}

/// Chess games in, batches out. Shared freely between threads.
pub struct DataLoader {
    config: DataLoaderConfig,
    plan: Plan,
    /// Which chunks are read where the stream is only planned.
    sight: Option<Reads>,
    /// Where it runs, if not on this machine's threads and files.
    world: Option<Arc<dyn World>>,
    outputs: Vec<Output>,
    made_in: u32,
    root: OnceLock<u64>,
    anchors: Arc<Anchors>,
    certified: Certified,
    /// Journal and ledger on this machine.
    papers: OnceLock<Local>,
    running: OnceLock<Running>,
    /// How long consumers waited for the start.
    starting: Begun,
    /// Held while starting, stopping or restoring; holds a state that waits for the start.
    control: Mutex<Control>,
}

#[derive(Default)]
struct Control {
    restore: Option<(Arc<LoaderState>, Missing)>,
    /// A start that waits for the first scan.
    launch: Option<Launch>,
    /// Why a start could not begin, which is tried again.
    refused: Option<String>,
    stopped: bool,
    detached: Vec<String>,
}

impl std::fmt::Debug for DataLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DataLoader").field("outputs", &self.outputs).finish_non_exhaustive()
    }
}

impl DataLoader {
    /// Checks a config and plans what it says. Nothing runs yet.
    ///
    /// Errors: `Config` naming stage and field.
    pub fn new(config: DataLoaderConfig) -> Result<Self> {
        let plan = plan(&config)?;
        budget::check(&plan, config.memory, budget::workers(&config), &budget::limits(&config))?;
        if config.replay && config.journal.is_none() {
            return Err(Error::config("replay", "replaying needs the `journal` of an earlier run"));
        }
        if config.spill_limit.is_some() && config.spill.is_none() {
            return Err(Error::config("spill_limit", "it bounds the `spill` folder; set that, too"));
        }
        if config.ledger.is_some()
            && let Some(chain) = plan.chains.iter().find(|chain| chain.when_full != WhenFull::Block)
        {
            let text = "a ledger cannot answer for batches that a full queue drops; use BLOCK";
            return Err(Error::field(&chain.stage, "overflow_behavior", text));
        }
        let output = |chain: &crate::pipeline::plan::ChainPlan| Output {
            alias: chain.alias.clone(),
            batch_size: chain.batch_size,
            tensors: chain.encoder.outputs().to_vec(),
        };
        let outputs = plan.chains.iter().map(output).collect();
        let root = OnceLock::new();
        if let Some(seed) = config.seed {
            let _ = root.set(seed);
        }
        let pools =
            plan.chains.iter().flat_map(|chain| &chain.branches).filter(|b| matches!(b.draw, DrawPlan::Pool { .. }));
        Ok(DataLoader {
            anchors: Arc::new(Anchors::new(pools.map(|branch| branch.stage.clone()))),
            certified: Certified::default(),
            config,
            plan,
            sight: None,
            world: None,
            outputs,
            made_in: std::process::id(),
            root,
            papers: OnceLock::new(),
            running: OnceLock::new(),
            starting: Begun::default(),
            control: Mutex::default(),
        })
    }

    /// [`DataLoader::new`], over a world of its own: it has the files of all directories, does all work and says what time it is.
    /// Journal, ledger and report stay files of this machine.
    ///
    /// Errors: as there.
    pub fn within(config: DataLoaderConfig, world: Arc<dyn World>) -> Result<Self> {
        let mut loader = Self::new(config)?;
        loader.world = Some(world);
        Ok(loader)
    }

    /// The config, with the seed that the run uses once it has started.
    pub fn config(&self) -> DataLoaderConfig {
        DataLoaderConfig { seed: self.root.get().copied(), ..self.config.clone() }
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    fn lock(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn here(&self) -> Result<()> {
        let used_in = std::process::id();
        if used_in == self.made_in { Ok(()) } else { Err(Error::Forked { made_in: self.made_in, used_in }) }
    }

    /// Starts the river; does nothing when it runs already. With a state, a journal or a replay it
    /// returns once the first scan is in.
    ///
    /// Errors: `Stopped` after a stop, `Path` for a directory or journal, `State` for a state that does not fit.
    pub fn start(&self) -> Result<()> {
        self.running(None).map(|_| ())
    }

    /// [`DataLoader::start`], for as long as `wait` at most; whether it has started.
    ///
    /// Errors: as there.
    pub fn start_within(&self, wait: Duration) -> Result<bool> {
        self.running(Instant::now().checked_add(wait)).map(|running| running.is_some())
    }

    /// The running river; starts it if need be. `None` when that takes longer than until `deadline`.
    fn running(&self, deadline: Option<Instant>) -> Result<Option<&Running>> {
        self.here()?;
        loop {
            let mut control = self.lock();
            if control.stopped {
                return Err(Error::Stopped);
            }
            if let Some(running) = self.running.get() {
                return Ok(Some(running));
            }
            let launch = match control.launch.take() {
                Some(launch) => Some(launch),
                None => match self.launch(control.restore.clone()) {
                    Err(error) if self.config.io_errors == IoErrors::Wait && may_pass(&error) => {
                        control.refused = Some(error.to_string());
                        None
                    }
                    made => Some(made?),
                },
            };
            let Some(mut launch) = launch else {
                drop(control);
                if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                    return Ok(None);
                }
                std::thread::sleep(START_POLL);
                continue;
            };
            control.refused = None;
            if launch.scanned()? {
                let local = self.local()?;
                let running = launch.finish(&local.config)?;
                running.sends(&local.papers)?;
                control.restore = None;
                return Ok(Some(self.running.get_or_init(|| running)));
            }
            control.launch = Some(launch);
            drop(control);
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            std::thread::sleep(SCAN_POLL);
        }
    }

    /// The running river; what a consumer waits for it is noted.
    fn begun(&self, deadline: Option<Instant>) -> Result<Option<&Running>> {
        if self.running.get().is_some() {
            return self.running(deadline);
        }
        let before = Instant::now();
        let running = self.running(deadline);
        self.starting.add(before.elapsed());
        running
    }

    /// The next batch of an output, waiting up to `wait` (for ever when `None`); starts the loader if needed.
    ///
    /// Errors: `UnknownAlias`, `Stopped`, `Forked`, and whatever the stream itself reports at this place.
    pub fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.take(alias, wait, true)
    }

    /// [`DataLoader::next`]; the batch counts as delivered `at_once`, or when [`DataLoader::count`] says so.
    pub fn take(&self, alias: &str, wait: Option<Duration>, at_once: bool) -> Result<Next> {
        let deadline = wait.and_then(|wait| Instant::now().checked_add(wait));
        let Some(running) = self.begun(deadline)? else { return Ok(Next::Pending) };
        let Some(chain) = running.observer.chains.iter().find(|chain| chain.plan.alias == alias) else {
            let known: Vec<String> = self.outputs.iter().map(|output| format!("`{}`", output.alias)).collect();
            return Err(Error::UnknownAlias { alias: alias.to_owned(), known: known.join(", ") });
        };
        chain.stall.wanted(|| self.starting.take());
        match chain.next(wait, at_once) {
            Taken::Item(Ok(batch)) => Ok(Next::Batch(batch)),
            Taken::Item(Err(error)) => Err(error),
            Taken::Nothing => Ok(Next::Pending),
            Taken::Closed if self.lock().stopped => Err(Error::Stopped),
            Taken::Closed => {
                // What was found last is reported before the end is.
                running.observer.notice();
                if let (Some(book), Some(end)) = (&running.book, chain.end()) {
                    book.ended(alias, end)?;
                }
                Ok(Next::End)
            }
        }
    }

    /// Stops the river within a second; does nothing the second time. Returns the names of threads that
    /// hang in the operating system and were left behind.
    pub fn stop(&self) -> Vec<String> {
        if self.here().is_err() {
            return Vec::new();
        }
        let mut control = self.lock();
        let first = !std::mem::replace(&mut control.stopped, true);
        control.launch = None;
        if let Some(running) = self.running.get() {
            if first {
                running.observer.events.add(Event::new(Level::Info, "stopped", "the loader was stopped"));
            }
            running.observer.chains.iter().for_each(|chain| chain.close());
            // Before the threads end, one of which sends the ledger to where it belongs.
            if let Some(book) = &running.book {
                book.close();
            }
            control.detached = running.scheduler.stop();
            running.observer.close();
            if let Some(journal) = &running.journal {
                journal.lock().unwrap_or_else(PoisonError::into_inner).close();
            }
        }
        if let Some(local) = self.papers.get() {
            local.papers.release();
        }
        control.detached.clone()
    }

    /// What it runs without, because it may be missing and is: a line for each, with the stage.
    pub fn warnings(&self) -> Vec<String> {
        let line = |(stage, lack): (&str, &str)| {
            format!("stage `{stage}`: {lack}; what these tables do not answer stays as it is")
        };
        self.plan.lacks().into_iter().map(line).collect()
    }

    /// What runs in this process. A forked child sees nothing, and takes no lock that a lost thread may hold.
    fn runs_here(&self) -> Option<&Running> {
        self.here().ok().and_then(|()| self.running.get())
    }

    /// Where the loader stands after the batches delivered so far, as JSON text.
    ///
    /// Errors: as [`DataLoader::start`], which it calls when nothing runs yet.
    pub fn state(&self) -> Result<String> {
        self.stands(None)?.to_json()
    }

    /// Writes [`DataLoader::state`] to disk: as the file `path`; where several ranks share the stream into the folder
    /// `path`, a file for each rank. Durable when it returns, and at no moment half written. Each rank calls it after the
    /// same step; the step before is kept until all have.
    ///
    /// Errors: as [`DataLoader::state`], and `Path`.
    pub fn save(&self, path: &Path) -> Result<()> {
        let state = self.stands(Some(path))?;
        let text = state.to_json()?;
        let running = self.running.get();
        running.and_then(|running| running.observer.spill.as_ref()).map_or(Ok(()), |spill| spill.force())?;
        saved::write(path, &text, state.part, state.step())?;
        if let Some(book) = running.and_then(|running| running.book.as_ref())
            && book.saved()?
        {
            self.send()?;
        }
        running.map_or(Ok(()), |running| running.observer.saved(&state))
    }

    /// Takes over what was saved at `path`, by however many ranks; the loader must not have started.
    ///
    /// Errors: `Path`, and as [`DataLoader::restore`].
    pub fn load(&self, path: &Path, missing: Missing) -> Result<()> {
        self.restore_with(&saved::read(path)?, missing).map_err(|e| e.of_state(path))
    }

    /// `to`: where the state is about to be saved.
    fn stands(&self, to: Option<&Path>) -> Result<LoaderState> {
        self.here()?;
        let stopped = self.lock().stopped;
        let running = match self.running.get() {
            Some(running) if stopped => running,
            _ => self.running(None)?.ok_or(Error::Stopped)?,
        };
        let Ranks { rank, world, .. } = Ranks::of(&self.config)?;
        // In this order: the chains, read after the journal, have all that it says; and the files have all that the
        // chains know.
        let settle = |journal: &SharedJournal| {
            let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
            journal.settle().map_err(|e| Error::path(journal.path(), &e))
        };
        let _whole = running.observer.whole();
        let own = running.journal.as_ref().map(settle).transpose()?;
        let own = own.filter(|place| place.lines > 0).map(|place| JournalMark::new(rank, world, place));
        let outputs: BTreeMap<_, _> =
            running.observer.chains.iter().map(|chain| (chain.plan.alias.clone(), chain.state())).collect();
        let ready = running.observer.rosters.iter().filter(|roster| roster.ready());
        let mut state = LoaderState {
            gristmill_state: VERSION,
            of: Of::Stream,
            config: fingerprint(&self.config, &self.plan),
            seed: self.root.get().copied().unwrap_or_default(),
            part: (world > 1).then_some(Part { rank, world_size: world }),
            files: ready.map(|roster| (roster.loader.clone(), roster.files())).collect(),
            outputs,
            anchors: self.anchors.all(),
            oldest_needed: BTreeMap::new(),
            journals: latest(own.into_iter().chain(running.marks.iter().cloned())),
        };
        if let Some(book) = &running.book {
            let to = to.map(|path| saved::file(path, state.part, state.step())).transpose()?;
            let at = |(alias, output): (&String, &ChainState)| (alias.clone(), output.batch);
            book.state(state.outputs.iter().map(at).collect(), to.as_deref())?;
        }
        running.observer.made(&mut state);
        self.send()?;
        Ok(state)
    }

    /// The oldest file of each loader stage that the loader may still need, or a run that resumes from the state that
    /// it saved last, or from the one that it resumed from. Older files may be deleted; states that are kept elsewhere
    /// say by themselves what they need. Nothing is known of a stage that is not there: before its first scan is in.
    pub fn oldest_needed(&self) -> BTreeMap<String, OldestNeeded> {
        self.runs_here().map(|running| running.observer.oldest_needed()).unwrap_or_default()
    }

    /// Asks every pool for its chunk anchor, or changes it; before the start, while it runs and after it.
    ///
    /// Errors: `Forked`.
    pub fn control(&self, request: &ControlRequest) -> Result<Vec<ControlReply>> {
        self.here()?;
        let replies = self.anchors.control(request);
        if let (Some(running), false) = (self.running.get(), *request == ControlRequest::QueryChunkAnchor) {
            replies.iter().for_each(|reply| notices::anchored(&running.observer.events, reply, request));
        }
        Ok(replies)
    }

    /// Takes a state over, or the parts of all ranks as a list; the loader must not have started. What does not fit the files is found at the start.
    ///
    /// Errors: `State` with the difference to this config, or when the loader has started; `Forked`.
    pub fn restore(&self, text: &str) -> Result<()> {
        self.restore_with(text, Missing::Refuse)
    }

    /// [`DataLoader::restore`], with what is to be done where files that the state needs are gone.
    ///
    /// Errors: as there.
    pub fn restore_with(&self, text: &str, missing: Missing) -> Result<()> {
        self.here()?;
        let mut control = self.lock();
        if self.running.get().is_some() {
            return Err(Error::State("the loader has started; restore into a new one".into()));
        }
        if missing == Missing::Spill && self.config.spill.is_none() {
            return Err(Error::config("spill", "there is no spill folder to take missing files from; set one"));
        }
        let saved = state::parse(text, &self.config, &self.plan)?;
        self.check_lanes(&saved)?;
        let known: BTreeMap<&str, ()> = self.outputs.iter().map(|output| (output.alias.as_str(), ())).collect();
        if !saved.outputs.keys().map(String::as_str).eq(known.into_keys()) {
            return Err(Error::State("it has other outputs than this config".into()));
        }
        self.anchors.restore(&saved.anchors);
        control.restore = Some((Arc::new(saved), missing));
        Ok(())
    }

    /// The files that a restored run does without ([`Missing::Skip`]); known once it has started.
    pub fn vanished(&self) -> Vec<Vanished> {
        let here = |running: &Running| running.observer.vanished.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.runs_here().map(here).unwrap_or_default()
    }

    /// Refuses a state that lacks lanes of this rank.
    fn check_lanes(&self, saved: &LoaderState) -> Result<()> {
        let lanes = |chain: &ChainPlan| chain.lanes.iter().map(|lane| lane.lane.map_or(0, |lane| lane.index)).collect();
        for (chain, output) in self.plan.chains.iter().filter_map(|c| Some((c, saved.outputs.get(&c.alias)?))) {
            let missing: Vec<u32> = Vec::into_iter(lanes(chain)).filter(|l| !output.lanes.contains_key(l)).collect();
            if let (Some(lane), Some(part)) = (missing.first(), saved.part) {
                let Part { rank, world_size } = part;
                return Err(Error::State(format!(
                    "it is the part of rank {rank} of {world_size} and lacks lane {lane}: give the parts of all ranks"
                )));
            }
        }
        Ok(())
    }

    /// Name, relative to its directory, of the file with a provenance id; `None` once it was forgotten.
    pub fn source_path(&self, id: u64) -> Option<String> {
        self.runs_here()?.observer.rosters.iter().find_map(|roster| roster.name(id))
    }
}

impl Drop for DataLoader {
    fn drop(&mut self) {
        self.stop();
    }
}
