//! The loader that people hold: starts and stops the river, hands out batches by alias, says where it stands.
//! A thin shell: what flows is decided by the plan, in what order by the chains.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gristmill_format::encode::TensorSpec;

use super::chain::{Chain, Shared};
use super::metrics::{Metrics, Observer};
use super::output::Batch;
use super::plan::{LogPlan, Plan, plan};
use super::recall::Recall;
use super::roster::{Event, Roster, SharedJournal};
use super::state::{LoaderState, VERSION, fingerprint};
use super::verdict::Verdicts;
use super::{budget, state};
use crate::config::{DataLoaderConfig, FrameFormat};
use crate::error::{Error, Result};
use crate::facts::Facts;
use crate::runtime::handoff::Taken;
use crate::runtime::journal::Journal;
use crate::runtime::scheduler::{Lane, Scheduler, Tasks};
use crate::runtime::seed::fresh_root;
use crate::sink::prometheus::Endpoint;
use crate::stage::discover::Search;
use crate::stage::load::{LogSpec, SourceLog};
use crate::store::{DirStore, Store};

/// Threads that only read, unless the config says otherwise.
const READERS: usize = 2;

/// How often totals are sampled for rates.
const SAMPLE: Duration = Duration::from_millis(250);

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
    /// The name it is asked for by; empty for the only one.
    pub alias: String,
    /// Rows per batch.
    pub batch_size: usize,
    /// The tensors, in order.
    pub tensors: Vec<TensorSpec>,
}

/// What exists only while the loader runs.
struct Running {
    scheduler: Scheduler,
    observer: Observer,
}

/// Chess games in, batches out. Shared freely between threads.
pub struct DataLoader {
    config: DataLoaderConfig,
    plan: Plan,
    outputs: Vec<Output>,
    made_in: u32,
    root: OnceLock<u64>,
    running: OnceLock<Running>,
    /// Held while starting, stopping or restoring; holds a state that waits for the start.
    control: Mutex<Control>,
}

#[derive(Default)]
struct Control {
    restore: Option<LoaderState>,
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
        let output = |chain: &super::plan::ChainPlan| -> Result<Output> {
            let encoder = gristmill_format::chess::ChessEncoder::new(&chain.outputs)
                .map_err(|e| Error::field(&chain.stage, "tensors", e.detail()))?;
            let tensors = gristmill_format::encode::Encoder::outputs(&encoder).to_vec();
            Ok(Output { alias: chain.alias.clone(), batch_size: chain.batch_size, tensors })
        };
        let outputs = plan.chains.iter().map(output).collect::<Result<Vec<_>>>()?;
        let root = OnceLock::new();
        if let Some(seed) = config.seed {
            let _ = root.set(seed);
        }
        Ok(DataLoader {
            config,
            plan,
            outputs,
            made_in: std::process::id(),
            root,
            running: OnceLock::new(),
            control: Mutex::default(),
        })
    }

    /// The config, with the seed that the run uses once it has started.
    pub fn config(&self) -> DataLoaderConfig {
        DataLoaderConfig { seed: self.root.get().copied(), ..self.config.clone() }
    }

    /// The outputs.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    fn control(&self) -> MutexGuard<'_, Control> {
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
        self.running().map(|_| ())
    }

    fn running(&self) -> Result<&Running> {
        self.here()?;
        let mut control = self.control();
        if control.stopped {
            return Err(Error::Stopped);
        }
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let running = self.build(control.restore.as_ref())?;
        control.restore = None;
        Ok(self.running.get_or_init(|| running))
    }

    fn build(&self, restore: Option<&LoaderState>) -> Result<Running> {
        let recall = Recall::new(&self.config, restore)?;
        let root = *self.root.get_or_init(|| recall.seed.unwrap_or_else(fresh_root));
        if recall.seed.is_some_and(|seed| seed != root) {
            return Err(Error::State(format!("it was made with another seed than {root}")));
        }
        let verdicts = Arc::new(Verdicts::new(self.config.bad_chunks, self.config.quarantine.as_deref())?);
        let journal = match &self.config.journal {
            Some(path) if !self.config.replay => {
                Some(Arc::new(Mutex::new(Journal::create(path).map_err(|e| Error::path(path, &e))?)))
            }
            _ => None,
        };
        let scheduler = Scheduler::new();
        let rosters = self.rosters(&scheduler, &recall)?;
        let workers = budget::workers(&self.config);
        let shared = Shared {
            root,
            workers,
            limits: budget::limits(&self.config),
            signal: scheduler.signal(),
            stop: scheduler.stop_flag(),
            verdicts: Arc::clone(&verdicts),
            journal: journal.clone(),
        };
        let chain = |chain: &super::plan::ChainPlan| Chain::new(chain.clone(), shared.clone(), &rosters).map(Arc::new);
        let chains = self.plan.chains.iter().map(chain).collect::<Result<Vec<_>>>()?;
        if let Some(journal) = &journal {
            await_scans(&rosters)?;
            write_first(journal, root, &rosters)?;
        }
        if recall.waits_for_scan() {
            await_scans(&rosters)?;
            for chain in &chains {
                recall.put_into(chain)?;
            }
        }
        let tasks: Arc<[Arc<dyn Tasks>]> = chains.iter().map(|chain| Arc::clone(chain) as Arc<dyn Tasks>).collect();
        let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
        scheduler.staff(Lane::Work, workers, &tasks).map_err(failed)?;
        let readers = self.config.io_threads.unwrap_or(READERS).clamp(1, 256);
        scheduler.staff(Lane::Read, readers, &tasks).map_err(failed)?;
        let observer = Observer { root, chains, rosters, verdicts, rates: Arc::default() };
        let (stop, sampler) = (scheduler.stop_flag(), observer.clone());
        let sample = move || {
            while !stop.load(Ordering::Relaxed) {
                sampler.sample();
                std::thread::sleep(SAMPLE);
            }
        };
        scheduler.spawn("metrics", sample).map_err(failed)?;
        Ok(Running { scheduler, observer })
    }

    fn rosters(&self, scheduler: &Scheduler, recall: &Recall<'_>) -> Result<Vec<Arc<Roster>>> {
        let one = |(provider, log): (usize, &LogPlan)| -> Result<Arc<Roster>> {
            let store: Arc<dyn Store> = Arc::new(DirStore::new(&log.directory)?);
            let find = Search {
                store: Arc::clone(&store),
                watch: log.watch && !self.config.replay,
                rescan: log.rescan,
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
                facts: self.facts(&log.directory),
            };
            let signal = scheduler.signal();
            let spawn = |name: &str, body: Box<dyn FnOnce() + Send>| {
                // A thread that cannot be started shows as a log that ends at once: no chunk will come.
                let _ = scheduler.spawn(name, body);
            };
            let source_log = SourceLog::start(spec, &spawn, Arc::new(move || signal.notify()));
            Ok(Arc::new(Roster::new(log.stage.clone(), source_log, recall.files(&log.stage))))
        };
        self.plan.logs.iter().enumerate().map(one).collect()
    }

    /// The side index of a directory; a lost or unwritable one costs time only.
    fn facts(&self, directory: &Path) -> Option<Arc<Facts>> {
        let folder = match &self.config.index {
            Some(path) if path.as_os_str() == "off" => return None,
            Some(path) => path.clone(),
            None => Facts::default_folder()?,
        };
        Facts::open(&folder, directory).ok().map(Arc::new)
    }

    /// The next batch of an output, waiting up to `wait` (for ever when `None`); starts the loader if needed.
    ///
    /// Errors: `UnknownAlias`, `Stopped`, `Forked`, and whatever the stream itself reports at this place.
    pub fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        let running = self.running()?;
        let Some(chain) = running.observer.chains.iter().find(|chain| chain.plan.alias == alias) else {
            let known: Vec<String> = self.outputs.iter().map(|output| format!("`{}`", output.alias)).collect();
            return Err(Error::UnknownAlias { alias: alias.to_owned(), known: known.join(", ") });
        };
        match chain.next(wait) {
            Taken::Item(Ok(batch)) => Ok(Next::Batch(batch)),
            Taken::Item(Err(error)) => Err(error),
            Taken::Nothing => Ok(Next::Pending),
            Taken::Closed if self.control().stopped => Err(Error::Stopped),
            Taken::Closed => Ok(Next::End),
        }
    }

    /// Stops the river within a second; does nothing the second time. Returns the names of threads that
    /// hang in the operating system and were left behind.
    pub fn stop(&self) -> Vec<String> {
        if self.here().is_err() {
            return Vec::new();
        }
        let mut control = self.control();
        control.stopped = true;
        if let Some(running) = self.running.get() {
            running.observer.chains.iter().for_each(|chain| chain.handoff.close());
            control.detached = running.scheduler.stop();
            running.observer.sample();
        }
        control.detached.clone()
    }

    /// What the river did so far and in the last second; the last values stay after a stop.
    pub fn metrics(&self) -> Metrics {
        self.running.get().map(|running| running.observer.metrics()).unwrap_or_default()
    }

    /// Serves the metrics as Prometheus text at `/metrics` of `address`, such as `127.0.0.1:9100`; starts the loader.
    /// Returns where it listens.
    ///
    /// Errors: `Config` for an address that cannot be bound, and as [`DataLoader::start`].
    pub fn serve_metrics(&self, address: &str) -> Result<SocketAddr> {
        let running = self.running()?;
        let failed = |e: std::io::Error| Error::config("metrics", format!("cannot listen on {address}: {e}"));
        let endpoint = Endpoint::bind(address).map_err(failed)?;
        let bound = endpoint.address().ok_or_else(|| failed(std::io::ErrorKind::AddrNotAvailable.into()))?;
        let (stop, observer) = (running.scheduler.stop_flag(), running.observer.clone());
        let serve = move || endpoint.serve(&stop, || observer.metrics().prometheus());
        running.scheduler.spawn("metrics-http", serve).map_err(failed)?;
        Ok(bound)
    }

    /// Where the loader stands after the batches delivered so far, as JSON text.
    ///
    /// Errors: as [`DataLoader::start`], which it calls when nothing runs yet.
    pub fn state(&self) -> Result<String> {
        let stopped = self.control().stopped;
        let running = match self.running.get() {
            Some(running) if stopped => running,
            _ => self.running()?,
        };
        let ready = running.observer.rosters.iter().filter(|roster| roster.ready());
        let state = LoaderState {
            gristmill_state: VERSION,
            config: fingerprint(&self.config),
            seed: self.root.get().copied().unwrap_or_default(),
            files: ready.map(|roster| (roster.loader.clone(), roster.files())).collect(),
            outputs: running.observer.chains.iter().map(|chain| (chain.plan.alias.clone(), chain.state())).collect(),
        };
        serde_json::to_string(&state).map_err(|e| Error::State(e.to_string()))
    }

    /// Takes a state over; the loader must not have started. What does not fit the files is found at the start.
    ///
    /// Errors: `State` with the difference to this config, or when the loader has started.
    pub fn restore(&self, text: &str) -> Result<()> {
        let mut control = self.control();
        if self.running.get().is_some() {
            return Err(Error::State("the loader has started; restore into a new one".into()));
        }
        let saved = state::parse(text, &self.config)?;
        let known: BTreeMap<&str, ()> = self.outputs.iter().map(|output| (output.alias.as_str(), ())).collect();
        if !saved.outputs.keys().map(String::as_str).eq(known.into_keys()) {
            return Err(Error::State("it has other outputs than this config".into()));
        }
        control.restore = Some(saved);
        Ok(())
    }

    /// Name, relative to its directory, of the file with a provenance id.
    pub fn source_path(&self, id: u64) -> Option<String> {
        self.running.get()?.observer.rosters.iter().find_map(|roster| roster.name(id))
    }
}

impl Drop for DataLoader {
    fn drop(&mut self) {
        self.stop();
    }
}

fn await_scans(rosters: &[Arc<Roster>]) -> Result<()> {
    for roster in rosters {
        while !roster.ready() {
            if roster.log().ended() && !roster.ready() {
                let message = "the first scan did not complete".into();
                return Err(Error::Stage { stage: roster.loader.clone(), message });
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
    Ok(())
}

fn write_first(journal: &SharedJournal, root: u64, rosters: &[Arc<Roster>]) -> Result<()> {
    let mut events = vec![Event::Seed(root)];
    events.extend(rosters.iter().map(|r| Event::Initial { loader: r.loader.clone(), files: r.files() }));
    let mut journal = journal.lock().unwrap_or_else(PoisonError::into_inner);
    let path = journal.path().to_owned();
    journal.append(&events).map_err(|e| Error::path(path, &e))
}
