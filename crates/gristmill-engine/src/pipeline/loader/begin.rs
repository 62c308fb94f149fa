//! A loader that has not started -> the scans of its run: a new one, one that resumes, one that begins again by its ledger.
//! Holds the journal from here on; draws nothing.

use std::sync::Arc;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::seed::fresh_root;

use super::DataLoader;
use crate::pipeline::ledger::Book;
use crate::pipeline::loader::launch::{Launch, own_journal};
use crate::pipeline::resume::recall::Recall;
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::resume::vanished::Missing;

impl DataLoader {
    /// The seed that the ledger has of a run that died before its first save, and so begins again.
    fn noted_seed(&self) -> Option<u64> {
        let path = self.config.ledger.as_ref().filter(|_| !self.config.replay && self.sight.is_none())?;
        Book::seed(path).ok().flatten()
    }

    /// Starts the scans of a new run, or of one that resumes.
    pub(super) fn launch(&self, restore: Option<(Arc<LoaderState>, Missing)>) -> Result<Launch> {
        let journal = own_journal(&self.config, self.sight)?;
        let recall = Recall::new(&self.config, &self.plan, restore)?;
        let seed = recall.seed.or_else(|| self.noted_seed());
        let root = *self.root.get_or_init(|| seed.unwrap_or_else(fresh_root));
        let shared = (Arc::clone(&self.anchors), self.certified.clone(), self.world.as_ref());
        Launch::new(&self.config, (&self.plan, self.sight), root, (recall, journal), shared)
    }
}
