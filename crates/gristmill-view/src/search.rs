//! A pack -> its repeated games. A thread searches for them when a reader of the pages asks, and ends with the view. Only the
//! request that starts the search waits for it, and only a moment; the search writes nothing.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use gristmill_engine::pack_table::PackTable;
use gristmill_engine::runtime::scheduler::Scheduler;
use gristmill_jobs::dedup::{Duplicates, dedup};
use gristmill_jobs::mark::MarkOptions;

/// How long the request that starts the search waits, so that a small pack needs no second page.
const MOMENT: Duration = Duration::from_millis(200);

/// The progress of a search.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    /// No reader has asked for it.
    Unasked,
    /// The number of games read, and of all games.
    Reads(u64, u64),
    /// The groups that it found.
    Found(Arc<Duplicates>),
    /// Why it failed, for people.
    Failed(String),
}

/// The search in one pack.
pub(crate) struct Search {
    shared: Arc<(Mutex<Progress>, Condvar)>,
    /// Dropping it ends the threads.
    threads: Scheduler,
}

impl Default for Search {
    fn default() -> Self {
        Search { shared: Arc::new((Mutex::new(Progress::Unasked), Condvar::new())), threads: Scheduler::new() }
    }
}

impl Search {
    /// Its progress.
    pub(crate) fn progress(&self) -> Progress {
        lock(&self.shared.0).clone()
    }

    /// Starts the search in `pack`, unless it runs or is over, and returns its progress.
    pub(crate) fn ask(&self, pack: &Arc<dyn PackTable>) -> Progress {
        let mut progress = lock(&self.shared.0);
        if matches!(*progress, Progress::Unasked | Progress::Failed(_)) {
            *progress = Progress::Reads(0, pack.game_ids().len() as u64);
            let (pack, shared) = (Arc::clone(pack), Arc::clone(&self.shared));
            let mut options = MarkOptions { stop: self.threads.stop_flag(), ..MarkOptions::new("") };
            options.workers = options.workers.div_ceil(2);
            let look = move || {
                let mut seen = |done, all| *lock(&shared.0) = Progress::Reads(done, all);
                let found = dedup(&pack, &options, &mut seen);
                *lock(&shared.0) = match found {
                    Ok(found) => Progress::Found(Arc::new(found)),
                    Err(e) => Progress::Failed(e.to_string()),
                };
                shared.1.notify_all();
            };
            if let Err(e) = self.threads.spawn("view-duplicates", look) {
                *progress = Progress::Failed(format!("no thread could be started: {e}"));
            }
            let reads = |progress: &mut Progress| matches!(progress, Progress::Reads(..));
            let waited = self.shared.1.wait_timeout_while(progress, MOMENT, reads);
            progress = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        progress.clone()
    }
}

fn lock(progress: &Mutex<Progress>) -> MutexGuard<'_, Progress> {
    progress.lock().unwrap_or_else(PoisonError::into_inner)
}
