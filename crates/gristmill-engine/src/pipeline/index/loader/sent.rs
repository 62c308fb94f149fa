//! The ledger that a loader of rows writes -> where the user named it: a file of this machine, or segments in a bucket.
//! Knows nothing of what the ledger says.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::scheduler::Scheduler;
use gristmill_runtime::runtime::seed::fresh_root;

use super::{Feed, IndexLoader, IndexState};
use crate::pipeline::ledger::Book;
use crate::pipeline::resume::papers::{Paper, Papers};
use crate::pipeline::resume::saved;

impl IndexLoader {
    /// The seed of the run.
    pub(super) fn root(&self) -> u64 {
        // A run that died before its first save begins again with the seed that its ledger has.
        let ledger = || self.papers().ok().and_then(|papers| papers.ledger.as_ref());
        let noted = || ledger().and_then(|ledger| Book::seed(ledger.path()).ok().flatten());
        *self.root.get_or_init(|| noted().unwrap_or_else(fresh_root))
    }

    /// Where the loader stands; the ledger notes that a state was taken, or is about to be saved in `to`.
    pub(super) fn stands(&self, to: Option<&Path>) -> Result<IndexState> {
        self.here()?;
        let state = self.state_at(self.position());
        if let Some(book) = self.running.get().and_then(|running| running.feed.book()) {
            let to = to.map(|path| saved::file(path, None, state.batch)).transpose()?;
            book.state(BTreeMap::from([(String::new(), state.batch)]), to.as_deref())?;
        }
        self.papers.get().map_or(Ok(()), |papers| papers.send())?;
        Ok(state)
    }

    /// The state that was to be saved is there.
    pub(super) fn saved(&self) -> Result<()> {
        let book = self.running.get().and_then(|running| running.feed.book());
        if book.map_or(Ok(false), Book::saved)? {
            self.papers.get().map_or(Ok(()), |papers| papers.send())?;
        }
        Ok(())
    }

    /// The ledger, as a file of this machine; one of a bucket is fetched the first time.
    ///
    /// Errors: as [`Paper::written`].
    pub(super) fn papers(&self) -> Result<&Arc<Papers>> {
        if let Some(papers) = self.papers.get() {
            return Ok(papers);
        }
        let rank = (self.config.rank, self.config.world_size);
        let ledger = self.config.ledger.as_deref().map(|place| Paper::written(place, "ledger", rank));
        let papers = Papers { journal: None, ledger: ledger.transpose()? };
        Ok(self.papers.get_or_init(|| Arc::new(papers)))
    }
}

/// Sends the ledger as it grows.
///
/// Errors: `Config` when there are no threads.
pub(super) fn begin(papers: &Arc<Papers>, scheduler: &Scheduler, feed: &Arc<Feed>) -> Result<()> {
    let (stop, feed) = (scheduler.stop_flag(), Arc::clone(feed));
    let told = move |why: String| feed.book().into_iter().for_each(|book| book.unsent(&why));
    let Some(rounds) = papers.rounds(move || stop.load(Ordering::Relaxed), told) else { return Ok(()) };
    let failed = |e: std::io::Error| Error::config("threads", format!("no thread could be started: {e}"));
    scheduler.rounds("segments", rounds).map_err(failed)
}
