//! What a loader says of its streams: which files it waits for, before its start or while it runs, and whether a pass is over.
//! Says so; decides nothing about a stream.

use std::time::Duration;

use gristmill_runtime::error::Error;
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

impl DataLoader {
    /// Whether batch `number`, the last that [`DataLoader::next`] gave of an output, ends one of several passes over its
    /// files: it completes their rows. Streams that draw from a pool or join several inputs have no passes.
    pub fn ends_pass(&self, alias: &str, number: u64) -> bool {
        let chains = self.running.get().map_or(&[][..], |running| &running.observer.chains);
        chains.iter().any(|chain| chain.plan.alias == alias && chain.ends_pass(number))
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
