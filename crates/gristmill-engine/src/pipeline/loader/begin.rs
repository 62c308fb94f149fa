//! A loader that has not started -> the scans of its run: a new one, one that resumes, one that begins again by its ledger.
//! Holds the journal from here on; draws nothing.

use std::sync::Arc;

use gristmill_runtime::error::Result;
use gristmill_runtime::runtime::seed::fresh_root;
use gristmill_stages::config::DataLoaderConfig;

use super::DataLoader;
use crate::pipeline::ledger::Book;
use crate::pipeline::loader::launch::{Launch, own_journal};
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::resume::papers::{Paper, Papers};
use crate::pipeline::resume::recall::Recall;
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::resume::vanished::Missing;

/// A config whose journal and ledger are files of this machine, and their way to where the user named them.
pub(super) struct Local {
    pub(super) config: DataLoaderConfig,
    pub(super) papers: Arc<Papers>,
}

impl DataLoader {
    /// The seed that the ledger has of a run that died before its first save, and so begins again.
    fn noted_seed(&self) -> Option<u64> {
        let ledger = self.papers.get()?.papers.ledger.as_ref()?;
        Book::seed(ledger.path()).ok().flatten()
    }

    /// Sends what journal and ledger have.
    ///
    /// Errors: as [`Papers::send`].
    pub(super) fn send(&self) -> Result<()> {
        self.papers.get().map_or(Ok(()), |local| local.papers.send())
    }

    /// Journal and ledger, as files of this machine; those of a bucket are fetched the first time.
    ///
    /// Errors: as [`Paper::written`] and [`Paper::read`].
    pub(super) fn local(&self) -> Result<&Local> {
        if let Some(local) = self.papers.get() {
            return Ok(local);
        }
        let config = &self.config;
        let Ranks { rank, world, .. } = Ranks::of(config)?;
        let reads = config.replay || self.sight.is_some();
        let journal = config.journal.as_deref().map(|place| match reads {
            true => Paper::read(place),
            false => Paper::written(place, "journal", (rank.into(), world.into())),
        });
        let ledger = config.ledger.as_deref().filter(|_| !reads);
        let ledger = ledger.map(|place| Paper::written(place, "ledger", (rank.into(), world.into())));
        let papers = Papers { journal: journal.transpose()?, ledger: ledger.transpose()? };
        let path = |paper: &Option<Paper>| paper.as_ref().map(|paper| paper.path().to_owned());
        let config =
            DataLoaderConfig { journal: path(&papers.journal), ledger: path(&papers.ledger), ..config.clone() };
        Ok(self.papers.get_or_init(|| Local { config, papers: Arc::new(papers) }))
    }

    /// Starts the scans of a new run, or of one that resumes.
    pub(super) fn launch(&self, restore: Option<(Arc<LoaderState>, Missing)>) -> Result<Launch> {
        let config = &self.local()?.config;
        let journal = own_journal(config, self.sight)?;
        let recall = Recall::new(config, &self.plan, restore)?;
        let seed = recall.seed.or_else(|| self.noted_seed());
        let root = *self.root.get_or_init(|| seed.unwrap_or_else(fresh_root));
        let shared = (Arc::clone(&self.anchors), self.certified.clone(), self.world.as_ref());
        Launch::new(config, (&self.plan, self.sight), root, (recall, journal), shared)
    }
}
