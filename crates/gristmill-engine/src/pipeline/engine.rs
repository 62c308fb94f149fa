//! What every loader answers: one that feeds a stream of files and one that feeds rows by number, with the same calls.
//! Hands calls on and decides nothing; an engine that has no say in a matter gives nothing, or says who has.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::events::Event;
use gristmill_runtime::runtime::period::Period;
use gristmill_stages::config::IoErrors;

use crate::pipeline::draw::anchors::{ControlReply, ControlRequest};
use crate::pipeline::draw::outage::IoErrorCounts;
use crate::pipeline::index::{Fetches, IndexLoader, Lookup};
use crate::pipeline::loader::{DataLoader, Next, Output, Sight, SightOptions};
use crate::pipeline::resume::needed::OldestNeeded;
use crate::pipeline::resume::vanished::{Missing, Vanished};
use crate::pipeline::watch::metrics::Metrics;
use crate::pipeline::watch::status::CertificateStatus;

/// Where the rows of batches come from, by the number of a batch, without feeding any.
pub enum Sighted {
    /// Of a stream, which is run again without its bytes.
    Stream(Box<Sight>),
    /// Of rows by number, by their plan.
    Rows(Box<Lookup>),
}

/// What feeds batches. Shared freely between threads; nothing runs before the start.
pub trait Engine: Send + Sync {
    /// Its configuration as JSON, with the seed that is used once it has started.
    fn config(&self) -> String;

    /// Root of every random draw; none until one was drawn.
    fn seed(&self) -> Option<u64>;

    /// Which of how many ranks it feeds.
    fn ranks(&self) -> (u64, u64);

    /// What it delivers.
    fn outputs(&self) -> &[Output];

    /// Starts the threads, once, and waits for at most `wait` until it has started; whether it has.
    ///
    /// Errors: `Stopped` after a stop, `Forked`, and what keeps it from starting.
    fn start_within(&self, wait: Duration) -> Result<bool>;

    /// The next batch of an output, waiting up to `wait` (for ever when `None`); starts the loader if needed.
    ///
    /// Errors: `UnknownAlias`, `Stopped`, `Forked`, and what the data themselves report at this place.
    fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next>;

    /// [`Engine::next`]; a state, a pass and the ledger have the batch when [`Engine::count`] says so.
    ///
    /// Errors: as [`Engine::next`].
    fn take(&self, alias: &str, wait: Option<Duration>) -> Result<Next>;

    /// Counts the oldest batch of an output as delivered that was taken and does not count yet.
    ///
    /// Errors: `Path` where a ledger or a journal cannot be written; it does not count then.
    fn count(&self, alias: &str) -> Result<()>;

    /// Stops the threads within a second. Returns the names of those that hang in the operating system and were left behind.
    fn stop(&self) -> Vec<String>;

    /// What it did so far and in the last second; empty before the start.
    fn metrics(&self) -> Metrics;

    /// What limits it, since the first batch was wanted, and what one more thread, memory or a compact form would bring.
    fn explain(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        self.metrics().explain(cores as u64)
    }

    /// Serves `/metrics` (Prometheus text) and `/status` (docs/format/status.md) until it stops; starts it. Returns where
    /// it listens.
    ///
    /// Errors: `Config` for an address that cannot be bound or a token that is missing or too simple.
    fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr>;

    /// Keeps what a certificate says of the shuffle of an output, in place of an earlier one; the status document has it.
    fn certified(&self, certificate: CertificateStatus);

    /// Where it stands after the batches delivered so far, as JSON text.
    ///
    /// Errors: `Forked`; as the start of a stream.
    fn state(&self) -> Result<String>;

    /// Takes a state over before the start.
    ///
    /// Errors: `State` with what differs, or when it has started.
    fn restore(&self, text: &str, missing: Missing) -> Result<()>;

    /// Writes its state to disk, whole or not at all.
    ///
    /// Errors: `Path`, and as [`Engine::state`].
    fn save(&self, path: &Path) -> Result<()>;

    /// Takes over what was saved, before the start.
    ///
    /// Errors: `Path`, and as [`Engine::restore`].
    fn load(&self, path: &Path, missing: Missing) -> Result<()>;

    /// Plans where rows come from.
    ///
    /// Errors: `Config` for an output or a seed that is not known.
    fn sight(&self, options: &SightOptions) -> Result<Sighted>;

    /// What fetching rows asks for, where they are elsewhere: none of a stream.
    ///
    /// Errors: those of the plan; `Stopped` where `goes_on` says no.
    fn fetches(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Fetches>> {
        let _ = goes_on;
        Ok(None)
    }

    /// How many passes ended with batches of this output that were given since the start.
    fn passes_ended(&self, alias: &str) -> u64;

    /// The pass that the next batch belongs to, from 0, where that is known from its number.
    fn pass(&self) -> Option<u64> {
        None
    }

    /// Batches of that pass without those that are left out; of passes that run on into each other, of all.
    fn length(&self) -> Option<u64> {
        None
    }

    /// Rows of a pass, of all ranks together, where they are counted.
    fn rows(&self) -> Option<u64> {
        None
    }

    /// Batches in all passes, with those that are left out, where there is a known end.
    fn batches(&self) -> Option<u64> {
        None
    }

    /// Goes to a batch before the start.
    ///
    /// Errors: `Unsupported` where only a state leads to a place; `State` after the last batch, or when it has started.
    fn seek(&self, batch: u64) -> Result<()> {
        let _ = batch;
        Err(Error::Unsupported("only a loader of rows can go anywhere; a stream continues from a state".into()))
    }

    /// Goes to a row of a pass before the start; batches of that pass begin there.
    ///
    /// Errors: `Unsupported` where only a state leads to a place; `State` where there is no such row, or when it has started.
    fn seek_row(&self, pass: u64, row: u64) -> Result<()> {
        let _ = (pass, row);
        Err(Error::Unsupported("only a loader of rows can go anywhere; a stream continues from a state".into()))
    }

    /// The configuration of its stages as JSON.
    ///
    /// Errors: `Unsupported` where there are none.
    fn stages(&self) -> Result<String> {
        Err(Error::Unsupported("a loader of rows has no stages; see `seed` and `num_batches`".into()))
    }

    /// What it runs without, because it may be missing and is: a line for each.
    fn warnings(&self) -> Vec<String> {
        Vec::new()
    }

    /// What it waits for because it cannot be read.
    fn waits(&self) -> IoErrorCounts {
        IoErrorCounts::default()
    }

    /// What happened after event number `after`.
    fn events(&self, after: u64) -> Vec<Event> {
        let _ = after;
        Vec::new()
    }

    /// Number of the newest event; 0 before the first.
    fn newest_event(&self) -> u64 {
        0
    }

    /// What happened in the latest complete period of 2^`exponent` seconds, and its age in seconds.
    ///
    /// Errors: `Config` for a period that is too short; `Unsupported` where no periods are kept.
    fn bucket_metrics(&self, exponent: i32, pending: bool) -> Result<(Period, f64)> {
        let _ = (exponent, pending);
        Err(no_periods())
    }

    /// What happened in the last `seconds`, and the seconds that this covers.
    ///
    /// Errors: `Config` for a duration that is negative or no number; `Unsupported` where no periods are kept.
    fn aggregate_metrics(&self, seconds: f64, pending: bool) -> Result<(Period, f64)> {
        let _ = (seconds, pending);
        Err(no_periods())
    }

    /// Asks every pool for its chunk anchor, or changes it; none answers where there is no pool.
    ///
    /// Errors: `Forked`.
    fn control(&self, request: &ControlRequest) -> Result<Vec<ControlReply>> {
        let _ = request;
        Ok(Vec::new())
    }

    /// The files that a restored run does without.
    fn vanished(&self) -> Vec<Vanished> {
        Vec::new()
    }

    /// The oldest file of each loader stage that is still needed.
    fn oldest_needed(&self) -> BTreeMap<String, OldestNeeded> {
        BTreeMap::new()
    }

    /// The file that a source number in the tensor `ids` stands for.
    fn source_path(&self, id: u64) -> Option<String> {
        let _ = id;
        None
    }
}

fn no_periods() -> Error {
    Error::Unsupported("a loader of rows keeps no numbers of periods; see its metrics".into())
}

impl Engine for DataLoader {
    fn config(&self) -> String {
        self.config().to_json()
    }

    fn seed(&self) -> Option<u64> {
        self.config().seed
    }

    fn ranks(&self) -> (u64, u64) {
        let config = self.config();
        (config.rank.unwrap_or(0).into(), config.world_size.unwrap_or(1).into())
    }

    fn outputs(&self) -> &[Output] {
        self.outputs()
    }

    fn start_within(&self, wait: Duration) -> Result<bool> {
        self.start_within(wait)
    }

    fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.next(alias, wait)
    }

    fn take(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.take(alias, wait, false)
    }

    fn count(&self, alias: &str) -> Result<()> {
        self.count(alias)
    }

    fn stop(&self) -> Vec<String> {
        self.stop()
    }

    fn metrics(&self) -> Metrics {
        self.metrics()
    }

    fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr> {
        self.serve_metrics(address, token)
    }

    fn certified(&self, certificate: CertificateStatus) {
        self.certified(certificate);
    }

    fn state(&self) -> Result<String> {
        self.state()
    }

    fn restore(&self, text: &str, missing: Missing) -> Result<()> {
        self.restore_with(text, missing)
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.save(path)
    }

    fn load(&self, path: &Path, missing: Missing) -> Result<()> {
        self.load(path, missing)
    }

    fn sight(&self, options: &SightOptions) -> Result<Sighted> {
        Ok(Sighted::Stream(Box::new(self.sight(options)?)))
    }

    fn passes_ended(&self, alias: &str) -> u64 {
        self.passes_ended(alias)
    }

    fn stages(&self) -> Result<String> {
        Ok(self.config().to_json())
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings()
    }

    fn waits(&self) -> IoErrorCounts {
        if self.io_policy() == IoErrors::Raise { IoErrorCounts::default() } else { self.io_errors() }
    }

    fn events(&self, after: u64) -> Vec<Event> {
        self.events(after)
    }

    fn newest_event(&self) -> u64 {
        self.newest_event()
    }

    fn bucket_metrics(&self, exponent: i32, pending: bool) -> Result<(Period, f64)> {
        self.bucket_metrics(exponent, pending)
    }

    fn aggregate_metrics(&self, seconds: f64, pending: bool) -> Result<(Period, f64)> {
        self.aggregate_metrics(seconds, pending)
    }

    fn control(&self, request: &ControlRequest) -> Result<Vec<ControlReply>> {
        self.control(request)
    }

    fn vanished(&self) -> Vec<Vanished> {
        self.vanished()
    }

    fn oldest_needed(&self) -> BTreeMap<String, OldestNeeded> {
        self.oldest_needed()
    }

    fn source_path(&self, id: u64) -> Option<String> {
        self.source_path(id)
    }
}

impl Engine for IndexLoader {
    fn config(&self) -> String {
        self.config().to_json()
    }

    fn seed(&self) -> Option<u64> {
        self.config().seed
    }

    fn ranks(&self) -> (u64, u64) {
        self.ranks()
    }

    fn outputs(&self) -> &[Output] {
        self.outputs()
    }

    fn start_within(&self, _: Duration) -> Result<bool> {
        self.start().map(|()| true)
    }

    fn next(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.next(alias, wait)
    }

    fn take(&self, alias: &str, wait: Option<Duration>) -> Result<Next> {
        self.take(alias, wait, false)
    }

    fn count(&self, _: &str) -> Result<()> {
        self.count()
    }

    fn stop(&self) -> Vec<String> {
        self.stop()
    }

    fn metrics(&self) -> Metrics {
        self.metrics()
    }

    fn serve_metrics(&self, address: &str, token: Option<&str>) -> Result<SocketAddr> {
        self.serve_metrics(address, token)
    }

    fn certified(&self, certificate: CertificateStatus) {
        self.certified(certificate);
    }

    fn state(&self) -> Result<String> {
        self.state()
    }

    /// A pack is whole or not there, whatever is missing elsewhere.
    fn restore(&self, text: &str, _: Missing) -> Result<()> {
        self.restore(text)
    }

    fn save(&self, path: &Path) -> Result<()> {
        self.save(path)
    }

    fn load(&self, path: &Path, _: Missing) -> Result<()> {
        self.load(path)
    }

    fn sight(&self, options: &SightOptions) -> Result<Sighted> {
        self.known(&options.output)?;
        Ok(Sighted::Rows(Box::new(self.lookup()?)))
    }

    fn fetches(&self, goes_on: &mut dyn FnMut() -> bool) -> Result<Option<Fetches>> {
        self.fetches(goes_on)
    }

    fn passes_ended(&self, _: &str) -> u64 {
        self.passes_ended()
    }

    fn pass(&self) -> Option<u64> {
        Some(self.upcoming()? / self.pass_batches()?)
    }

    fn length(&self) -> Option<u64> {
        let Some(batches) = self.pass_batches() else { return self.batches() };
        let pass = self.pass().unwrap_or(0);
        Some(self.given(pass * batches, (pass + 1) * batches))
    }

    fn rows(&self) -> Option<u64> {
        Some(self.rows())
    }

    fn batches(&self) -> Option<u64> {
        self.batches()
    }

    fn seek(&self, batch: u64) -> Result<()> {
        self.seek(batch)
    }

    fn seek_row(&self, pass: u64, row: u64) -> Result<()> {
        self.seek_row(pass, row)
    }
}
