//! What a loader says of its streams: which files it waits for, before its start or while it runs, and whether a pass is over.
//! Says so; decides nothing about a stream.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use gristmill_runtime::error::{Error, Result};
use gristmill_stages::config::IoErrors;

use super::DataLoader;
use crate::pipeline::draw::outage::IoErrorCounts;

/// How often a start is tried that cannot begin now.
pub(super) const START_POLL: Duration = Duration::from_millis(50);

/// Whether what refuses a start may pass: there is no descriptor left, or the disk or its network fails. Folders that are not
/// there or may not be read are reported at once.
pub(super) fn may_pass(error: &Error) -> bool {
    use std::io::ErrorKind::{NotConnected, StaleNetworkFileHandle};
    // EMFILE and EIO have no kind of their own.
    let unnamed = std::io::Error::from_raw_os_error(24).kind();
    matches!(error, Error::Path { kind, .. } if [unnamed, StaleNetworkFileHandle, NotConnected].contains(kind))
}

/// How long consumers waited for a start, until it is counted.
#[derive(Debug, Default)]
pub(super) struct Begun(AtomicU64);

impl Begun {
    pub(super) fn add(&self, time: Duration) {
        self.0.fetch_add(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// All of it, once.
    pub(super) fn take(&self) -> Duration {
        Duration::from_nanos(self.0.swap(0, Ordering::Relaxed))
    }
}

impl DataLoader {
    /// How many passes over its files ended with batches of an output that were given since the start: a batch ends a pass
    /// that completes its rows. Streams that draw from a pool, join several inputs or have one pass alone count none.
    pub fn passes_ended(&self, alias: &str) -> u64 {
        let chains = self.runs_here().map_or(&[][..], |running| &running.observer.chains);
        chains.iter().find(|chain| chain.plan.alias == alias).map_or(0, |chain| chain.passes_ended())
    }

    /// Counts the oldest batch of an output as delivered that was taken and does not count yet; nothing where there is none.
    ///
    /// Errors: `Path` where the ledger or the journal cannot be written; it does not count then.
    pub fn count(&self, alias: &str) -> Result<()> {
        let chains = self.runs_here().map_or(&[][..], |running| &running.observer.chains);
        chains.iter().find(|chain| chain.plan.alias == alias).map_or(Ok(()), |chain| chain.count())
    }

    /// What becomes of its streams where files cannot be read.
    pub fn io_policy(&self) -> IoErrors {
        self.config.io_errors
    }

    /// What could not be read since the start was begun, and what waits for it now.
    pub fn io_errors(&self) -> IoErrorCounts {
        if self.here().is_err() {
            return IoErrorCounts::default();
        }
        if let Some(running) = self.running.get() {
            return running.observer.outages.counts();
        }
        let control = self.lock();
        match (&control.launch, &control.refused) {
            (Some(launch), _) => launch.io_errors(),
            (None, Some(why)) => IoErrorCounts { waiting: 1, latest: vec![why.clone()], ..IoErrorCounts::default() },
            (None, None) => IoErrorCounts::default(),
        }
    }
}
