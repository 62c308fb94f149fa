//! What an earlier run left behind -> files under their lasting ids, and where each output goes on.
//! Either a saved state or the journal of a run that is replayed; or nothing, for a fresh run.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::chain::Chain;
use super::drawer::Admission;
use super::roster::{Event, PastFiles};
use super::state::LoaderState;
use crate::config::DataLoaderConfig;
use crate::error::{Error, Result};
use crate::runtime::journal::Journal;

/// The past of a run.
#[derive(Debug, Default)]
pub(super) struct Recall {
    pub(super) seed: Option<u64>,
    state: Option<Arc<LoaderState>>,
    /// Per loader stage: its files, from a journal.
    files: BTreeMap<String, PastFiles>,
    /// Per pool: its admissions, from a journal.
    admissions: BTreeMap<String, VecDeque<Admission>>,
}

impl Recall {
    /// Reads what the config and the caller point to.
    ///
    /// Errors: `Path` for an unreadable journal, `State` when both a state and a replay are asked for.
    pub(super) fn new(config: &DataLoaderConfig, state: Option<Arc<LoaderState>>) -> Result<Self> {
        let (true, Some(path)) = (config.replay, &config.journal) else {
            return Ok(Recall { seed: state.as_ref().map(|state| state.seed), state, ..Recall::default() });
        };
        if state.is_some() {
            return Err(Error::State(
                "a replay begins at the beginning; restore into a loader that does not replay".into(),
            ));
        }
        let mut recall = Recall::default();
        for event in Journal::read::<Event>(path).map_err(|e| Error::path(path, &e))? {
            match event {
                Event::Seed(seed) => recall.seed = Some(seed),
                Event::Initial { loader, files } => {
                    recall.files.insert(loader, PastFiles { files, fixed: true, ..PastFiles::default() });
                }
                Event::Admit { pool, loader, file, admission } => {
                    let past = recall.files.entry(loader).or_default();
                    if past.later.insert(file.id) {
                        past.files.push(file);
                    }
                    recall.admissions.entry(pool).or_default().push_back(admission);
                }
            }
        }
        Ok(recall)
    }

    /// The files of a loader stage; `None` in a fresh run.
    pub(super) fn files(&self, loader: &str) -> Option<PastFiles> {
        match &self.state {
            Some(state) => {
                state.files.get(loader).map(|files| PastFiles { files: files.clone(), ..PastFiles::default() })
            }
            None => self.files.get(loader).cloned(),
        }
    }

    /// Whether anything is to be put into the chains once the first scan is in.
    pub(super) fn waits_for_scan(&self) -> bool {
        self.state.is_some() || !self.files.is_empty()
    }

    /// Puts a chain where it is to begin.
    pub(super) fn put_into(&self, chain: &Chain) -> Result<()> {
        if let Some(saved) = self.state.as_ref().and_then(|state| state.outputs.get(&chain.plan.alias)) {
            return chain.restore(saved);
        }
        for branch in &mut chain.lock().branches {
            branch.counts_again = true;
            branch.replay = self.admissions.get(&branch.plan.stage).cloned().unwrap_or_default();
        }
        Ok(())
    }
}
