//! The loader of rows by number that people hold: starts and stops its threads, hands out batches, says where it stands.
//! The same calls as the loader of streams; where it stands is a number, so that any place is as near as the first.

mod sent;
mod take;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use gristmill_packs::demos::pairs::Pairs;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::metrics::Rates;
use gristmill_runtime::runtime::scheduler::{Crew, Lane, Scheduler, Tasks};
use gristmill_runtime::sink::http::Pages;
use gristmill_runtime::table::{IndexInput, Pick};
use gristmill_stages::config::IndexConfig;

use super::assembly::{Assembly, Scratch};
use super::feed::{Feed, Shared};
use super::lookup::Lookup;
use super::mixed::sources;
use super::noted::begin;
use super::plan::Plan;
use super::rehearse::Fetches;
use super::state::IndexState;
use super::status::{metrics, status, totals};
use super::weighted::Sampler;
use crate::pipeline::ledger::{Book, By};
use crate::pipeline::loader::Output;
use crate::pipeline::plan::encoder::fingerprint_of_rows;
use crate::pipeline::resume::papers::{Paper, Papers};
use crate::pipeline::resume::saved;
use crate::pipeline::watch::certified::Certified;
use crate::pipeline::watch::metrics::Metrics;
use crate::pipeline::watch::serve::{endpoint, failed};
use crate::pipeline::watch::status::{CertificateStatus, RunState};

/// Threads that fetch what a table elsewhere is read from. They claim blocks in the order of batches, so a few that wait for single blocks
/// must not hold back those that would fetch the next group.
const READERS: usize = 16;

/// The shortest time between two samples of the totals for rates; a request for a batch takes one.
const SAMPLE: Duration = Duration::from_millis(250);

/// Rows of a table in, batches out. Shared freely between threads.
pub struct IndexLoader {
    config: IndexConfig,
    input: IndexInput,
    assembly: Arc<Assembly>,
    /// What of the encoder decides its rows, for states.
    encoding: serde_json::Value,
    sampler: Option<Arc<Sampler>>,
    outputs: Vec<Output>,
    /// What is in which batch, but for what is drawn.
    plan: Plan,
    made_in: u32,
    root: OnceLock<u64>,
    /// The ledger on this machine.
    papers: OnceLock<Arc<Papers>>,
    running: OnceLock<Running>,
    certified: Certified,
    control: Mutex<Control>,
    crew: Option<Arc<dyn Crew>>,
}

#[derive(Default)]
struct Control {
    /// Number of the first batch.
    first: u64,
    /// The pass that batches begin some rows later in, and how many.
    late: Option<(u64, u64)>,
    /// How it came there.
    by: Option<By>,
    stopped: bool,
    detached: Vec<String>,
}

struct Running {
    scheduler: Scheduler,
    feed: Arc<Feed>,
    rates: Arc<Mutex<Rates>>,
}

impl std::fmt::Debug for IndexLoader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IndexLoader")
            .field("outputs", &self.outputs)
            .field("input", &self.input)
            .finish_non_exhaustive()
    }
}

impl IndexLoader {
    /// Checks a config against the rows. Nothing runs yet.
    ///
    /// Errors: `Config` with the field, `Unfit` for an encoder that needs what the rows do not have, `Path` and `Format`
    /// for a tokenizer, for rows whose games are not where a view looks for them, and for a game that cannot be weighed where
    /// rows are drawn by weight.
    pub fn new(input: IndexInput, config: IndexConfig) -> Result<Self> {
        let assembly = Assembly::new(&input, &config.encoder, &config.tensors, config.view.as_ref())?;
        let encoding = fingerprint_of_rows(&config.encoder, &config.tensors);
        IndexLoader::with(input, assembly, encoding, config)
    }

    /// Checks a config against rows of several packs, which lie one after another and are mixed by weight: `config.mix` has the
    /// weights, each 1 where it has none.
    ///
    /// Errors: as [`IndexLoader::new`]; `Format` for packs whose records or names of valuations differ; `Config` for weights that
    /// are not those of the sources, and for a source that has no rows.
    pub fn of_several(inputs: Vec<IndexInput>, mut config: IndexConfig) -> Result<Self> {
        let (input, lens) = IndexInput::chained(inputs)?;
        let assembly = Assembly::new(&input, &config.encoder, &config.tensors, config.view.as_ref())?;
        config.mix = Some(sources(config.mix.take(), &lens, assembly.rows())?);
        let encoding = fingerprint_of_rows(&config.encoder, &config.tensors);
        IndexLoader::with(input, assembly, encoding, config)
    }

    /// Checks a config, of which the encoder does not matter, against pairs; `identity` is a hash of what they are,
    /// `encoding` what decides their values.
    ///
    /// Errors: `Config` with the field.
    pub fn of_pairs(
        pairs: &Arc<Pairs>,
        (identity, encoding): (u64, serde_json::Value),
        config: IndexConfig,
    ) -> Result<Self> {
        let input = pairs.input(identity);
        let assembly = Assembly::of(&input, Arc::<Pairs>::clone(pairs))?;
        IndexLoader::with(input, assembly, encoding, config)
    }

    fn with(input: IndexInput, assembly: Assembly, encoding: serde_json::Value, config: IndexConfig) -> Result<Self> {
        let plan = Plan::new(&config, config.seed.unwrap_or(0), Arc::clone(assembly.rows()))?;
        let sampler = Sampler::new(&input, assembly.rows(), &config)?.map(Arc::new);
        let root = OnceLock::new();
        if let Some(seed) = config.seed {
            let _ = root.set(seed);
        }
        Ok(IndexLoader {
            sampler,
            outputs: vec![Output {
                alias: String::new(),
                batch_size: plan.batch_rows(),
                tensors: assembly.outputs().to_vec(),
            }],
            plan,
            encoding,
            made_in: std::process::id(),
            root,
            papers: OnceLock::new(),
            running: OnceLock::new(),
            certified: Certified::default(),
            control: Mutex::default(),
            crew: None,
            config,
            input,
            assembly: Arc::new(assembly),
        })
    }

    /// The same loader, with a crew that does all its work and says what time it is.
    #[must_use]
    pub fn within(mut self, crew: Arc<dyn Crew>) -> Self {
        self.crew = Some(crew);
        self
    }

    /// The config, with the seed that is used once it has started.
    pub fn config(&self) -> IndexConfig {
        IndexConfig { seed: self.root.get().copied(), ..self.config.clone() }
    }

    /// The one output; its batch size is this rank's.
    pub fn outputs(&self) -> &[Output] {
        &self.outputs
    }

    /// Rows of an epoch, of all ranks together: those that the view leaves out are not among them.
    pub fn rows(&self) -> u64 {
        self.plan.selected()
    }

    /// How many batches there are in all epochs, with those that are left out; none when there is no end.
    pub fn batches(&self) -> Option<u64> {
        self.plan.batches()
    }

    /// Batches of a pass, with those that are left out, where each pass has its own.
    pub fn pass_batches(&self) -> Option<u64> {
        self.plan.per_pass()
    }

    /// Number of the batch that comes next; none when all were delivered.
    pub fn upcoming(&self) -> Option<u64> {
        let (position, (pass, rows)) = (self.position(), self.control().late.unwrap_or_default());
        let next = self.plan.clone().late(pass, rows).beyond(position);
        self.batches().is_none_or(|batches| next < batches).then_some(next)
    }

    /// How many of the batches from `first` to the one before `end` are not left out.
    pub fn given(&self, first: u64, end: u64) -> u64 {
        let left_out =
            self.plan.skips().before(end).into_iter().map(|(from, to)| to.min(end).saturating_sub(from.max(first)));
        end.saturating_sub(first).saturating_sub(left_out.sum())
    }

    /// How many passes ended with batches that were given since the start.
    pub fn passes_ended(&self) -> u64 {
        let (Some(batches), Ok(())) = (self.pass_batches(), self.here()) else { return 0 };
        let pass = |batch| self.plan.beyond(batch) / batches;
        let position = self.position();
        pass(position).saturating_sub(pass(self.control().first))
    }

    /// Refuses the name of any output but the one there is.
    pub(in crate::pipeline) fn known(&self, alias: &str) -> Result<()> {
        if alias.is_empty() {
            return Ok(());
        }
        Err(Error::UnknownAlias { alias: alias.to_owned(), known: "only the nameless one".to_owned() })
    }

    fn control(&self) -> MutexGuard<'_, Control> {
        self.control.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn here(&self) -> Result<()> {
        let used_in = std::process::id();
        if used_in == self.made_in { Ok(()) } else { Err(Error::Forked { made_in: self.made_in, used_in }) }
    }

    /// Starts the threads; does nothing when they run already.
    ///
    /// Errors: `Stopped` after a stop, `Config` when there are no threads, `Forked`.
    pub fn start(&self) -> Result<()> {
        self.running().map(|_| ())
    }

    fn running(&self) -> Result<&Running> {
        self.here()?;
        let control = self.control();
        if control.stopped {
            return Err(Error::Stopped);
        }
        if let Some(running) = self.running.get() {
            return Ok(running);
        }
        let papers = self.papers()?;
        let plan = Plan::new(&self.config, self.root(), Arc::clone(self.assembly.rows()))?;
        let (pass, rows) = control.late.unwrap_or_default();
        let plan = plan.sampled(self.sampler.clone()).late(pass, rows);
        let ledger = papers.ledger.as_ref().map(Paper::path);
        let (by, first) = (control.by.unwrap_or(By::Start), control.first);
        let begin = || begin(&self.config, &self.input, (self.root(), &plan), (by, first));
        let book = ledger.map(|path| Book::open(path, begin()?)).transpose()?;
        papers.send()?;
        let scheduler = Scheduler::of(self.crew.clone());
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        let workers = self.config.threads.unwrap_or_else(cores).clamp(1, 1024);
        let shared = Shared {
            signal: scheduler.signal(),
            time: scheduler.time(),
            stop: scheduler.stop_flag(),
            workers,
            capacity: self.config.queue_capacity.clamp(1, 1 << 16),
            book,
        };
        let feed = Arc::new(Feed::new(plan, Arc::clone(&self.assembly), shared, control.first)?);
        let tasks: Arc<[Arc<dyn Tasks>]> = Arc::new([Arc::clone(&feed) as Arc<dyn Tasks>]);
        let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
        scheduler.staff(Lane::Work, workers, &tasks).map_err(failed)?;
        let readers = if self.assembly.table().is_near() { 1 } else { READERS };
        scheduler.staff(Lane::Read, readers, &tasks).map_err(failed)?;
        sent::begin(papers, &scheduler, &feed)?;
        Ok(self.running.get_or_init(|| Running { scheduler, feed, rates: Arc::default() }))
    }

    /// Stops the threads within a second; does nothing the second time. Returns the names of those that hang in the
    /// operating system and were left behind.
    pub fn stop(&self) -> Vec<String> {
        if self.here().is_err() {
            return Vec::new();
        }
        let mut control = self.control();
        control.stopped = true;
        if let Some(running) = self.running.get() {
            running.feed.close();
            if let Some(book) = running.feed.book() {
                book.close();
            }
            control.detached = running.scheduler.stop();
        }
        if let Some(papers) = self.papers.get() {
            papers.release();
        }
        control.detached.clone()
    }

    /// Number of the next batch.
    fn position(&self) -> u64 {
        match self.running.get() {
            Some(running) => running.feed.delivered(),
            None => self.control().first,
        }
    }

    fn state_at(&self, batch: u64) -> IndexState {
        let standing = (batch, self.plan.skips(), self.plan.per_pass());
        IndexState::new(&self.config, self.root(), &self.input, self.encoding.clone(), standing)
    }

    /// Where the loader stands after the batches delivered so far, as JSON text. The same for every rank.
    ///
    /// Errors: `Forked`; `Path` for a ledger that cannot be written.
    pub fn state(&self) -> Result<String> {
        Ok(self.stands(None)?.to_json())
    }

    /// Writes [`IndexLoader::state`] as the file `path`, or as a step into the folder `path`: durable when it returns, and at no
    /// moment half written. Every rank may call it; it is the same for all, and rank 0 writes it.
    ///
    /// Errors: `Forked`, `Path`.
    pub fn save(&self, path: &Path) -> Result<()> {
        let state = self.stands(Some(path))?;
        if self.config.rank > 0 {
            return Ok(());
        }
        saved::write(path, &state.to_json(), None, state.batch)?;
        self.saved()
    }

    /// Takes over what was saved at `path`; the loader must not have started.
    ///
    /// Errors: `Path`, and as [`IndexLoader::restore`]; `State` for a folder in which nothing was saved.
    pub fn load(&self, path: &Path) -> Result<()> {
        self.restore(&saved::first(path)?).map_err(|e| e.of_state(path))
    }

    /// Takes a state over; the loader must not have started.
    ///
    /// Errors: `State` with the difference to this config or these rows, or when the loader has started; `Forked`.
    pub fn restore(&self, text: &str) -> Result<()> {
        self.here()?;
        let mut control = self.control();
        if self.running.get().is_some() {
            return Err(Error::State("the loader has started; restore into a new one".into()));
        }
        let expected = IndexState::new(
            &self.config,
            0,
            &self.input,
            self.encoding.clone(),
            (0, self.plan.skips(), self.plan.per_pass()),
        );
        let saved = IndexState::parse(text, &expected, &self.config, (self.plan.skips(), self.alike()))?;
        if *self.root.get_or_init(|| saved.seed) != saved.seed {
            return Err(Error::State(format!("it was made with another seed: {}", saved.seed)));
        }
        control.first = self.reachable(saved.batch)?;
        control.by = Some(By::State);
        Ok(())
    }

    /// Which row stands where, as this rank has them.
    ///
    /// Errors: `Forked`.
    pub fn lookup(&self) -> Result<Lookup> {
        self.here()?;
        let lookup = Lookup::new(&self.config, self.root(), Arc::clone(self.assembly.rows()), self.sampler.clone())?;
        Ok(lookup.at(self.position()))
    }

    /// What fetching its rows asks for, where they are elsewhere and were not read into memory.
    ///
    /// Errors: as [`IndexLoader::lookup`] and [`Lookup::fetches`].
    pub fn fetches(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Fetches>> {
        if self.input.table.is_near() {
            return Ok(None);
        }
        let mut scratch = Scratch::default();
        let mut read = |picks: &[Pick]| self.assembly.read_for(picks, &mut scratch);
        self.lookup()?.fetched(&self.input, self.assembly.steps(), &mut read, goes_on).map(Some)
    }

    /// Goes to batch `batch` before the start, at no cost.
    ///
    /// Errors: `State` after the last batch, or when the loader has started; `Forked`.
    pub fn seek(&self, batch: u64) -> Result<()> {
        self.here()?;
        let mut control = self.control();
        if self.running.get().is_some() {
            return Err(Error::State("the loader has started; seek in a new one".into()));
        }
        control.first = self.reachable(batch)?;
        control.by = Some(By::Seek);
        Ok(())
    }

    /// Goes to a row of a pass, whose batches then begin there, and where none is left to the next pass; at no cost, before the
    /// start. Only where each pass has batches of its own.
    ///
    /// Errors: `State` where there is no such row, or when the loader has started; `Forked`.
    pub fn seek_row(&self, pass: u64, row: u64) -> Result<()> {
        self.here()?;
        let mut control = self.control();
        if self.running.get().is_some() {
            return Err(Error::State("the loader has started; seek in a new one".into()));
        }
        let (rows, size) = (self.rows(), self.config.batch_size as u64);
        let Some(per_pass) = self.plan.per_pass().filter(|_| row < rows) else {
            return Err(Error::State(format!("row {row} of pass {pass}; a pass has {rows}")));
        };
        let beyond = || Error::State(format!("pass {pass} is further than 64 bits count"));
        let first = pass.checked_mul(per_pass).and_then(|first| first.checked_add(row / size)).ok_or_else(beyond)?;
        control.first = self.plan.clone().late(pass, row % size).beyond(self.reachable(first)?);
        control.late = (!row.is_multiple_of(size)).then_some((pass, row % size));
        control.by = Some(By::Seek);
        Ok(())
    }

    /// The batch up to which it changes nothing how passes end.
    fn alike(&self) -> u64 {
        let (rows, size) = (self.rows(), self.config.batch_size as u64);
        if rows.is_multiple_of(size) { u64::MAX } else { rows / size }
    }

    fn reachable(&self, batch: u64) -> Result<u64> {
        match self.batches() {
            Some(batches) if batch > batches => {
                Err(Error::State(format!("batch {batch} of {batches}; raise epochs, or start again")))
            }
            _ if batch.checked_mul(self.config.batch_size as u64).is_none() => {
                Err(Error::State(format!("batch {batch} is further than 64 bits count")))
            }
            _ => Ok(batch),
        }
    }

    /// Which rank this is, of how many.
    pub(in crate::pipeline) fn ranks(&self) -> (u64, u64) {
        (self.config.rank, self.config.world_size)
    }

    /// Keeps what a certificate says of it; the status document has it.
    pub fn certified(&self, certificate: CertificateStatus) {
        self.certified.keep(certificate);
    }

    /// What the loader did so far and in the last second. Empty before the start and in a forked child.
    pub fn metrics(&self) -> Metrics {
        let running = self.here().ok().and_then(|()| self.running.get());
        running.map(|running| metrics(&running.feed, &running.rates, self.root(), self.ranks())).unwrap_or_default()
    }

    /// Serves `/metrics` (Prometheus text) and `/status` (docs/format/status.md) at `address` until the loader stops; starts
    /// it. An address that other machines can reach needs a token. Returns where it listens.
    ///
    /// Errors: `Config` for an address that cannot be bound or a token that is missing or too simple, and as
    /// [`IndexLoader::start`].
    pub fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr> {
        let endpoint = endpoint(address, token)?;
        let running = self.running()?;
        let bound = endpoint.address();
        let (stop, feed, rates) =
            (running.scheduler.stop_flag(), Arc::clone(&running.feed), Arc::clone(&running.rates));
        let (root, ranks, certified) = (self.root(), self.ranks(), self.certified.clone());
        let serve = move || {
            let text = || metrics(&feed, &rates, root, ranks).prometheus();
            let document = |_| {
                let state = match () {
                    () if stop.load(Ordering::Relaxed) => RunState::Stopped,
                    () if feed.ended() => RunState::Ended,
                    () => RunState::Running,
                };
                serde_json::to_string(&status(&feed, &rates, root, (state, &certified))).unwrap_or_default()
            };
            endpoint.serve(&stop, &Pages { metrics: &text, status: &document });
        };
        running.scheduler.spawn("metrics-http", serve).map_err(|e| failed(address, &e))?;
        Ok(bound)
    }
}

impl Drop for IndexLoader {
    fn drop(&mut self) {
        self.stop();
    }
}

#[cfg(test)]
mod tests;
