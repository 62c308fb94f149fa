//! What a state may still need, now or after a run resumes from it -> the oldest such file of each loader stage.
//! Whatever is older may be deleted. Names too much rather than too little; deletes nothing itself.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use gristmill_stages::config::KeyOrder;
use serde::{Deserialize, Serialize};

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::branch::Branch;
use crate::pipeline::draw::drawer::Drawer;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::resume::state::LoaderState;

/// The oldest file that a loader stage may still need.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OldestNeeded {
    /// Its name below its directory.
    pub name: String,
    /// Its key: the name without folders.
    pub key: String,
    /// How keys are ordered from oldest to newest: as the pools have it that draw from the stage.
    pub key_order: KeyOrder,
}

impl OldestNeeded {
    fn of(name: &str, key_order: KeyOrder) -> Self {
        OldestNeeded { name: name.to_owned(), key: gristmill_runtime::key::of_name(name).to_owned(), key_order }
    }

    /// Whether a file of this name is older, so that no state needs it.
    pub fn may_delete(&self, name: &str) -> bool {
        self.key_order.older(name, &self.name).is_lt()
    }
}

/// The older of the files that two parts of one state need.
pub(in crate::pipeline) fn both(a: OldestNeeded, b: OldestNeeded) -> OldestNeeded {
    if a.may_delete(&b.name) { b } else { a }
}

/// States that are kept: of a run that several ranks share, a crash while they save leaves the one before.
const KEPT: usize = 2;

/// Ids of sources in ascending order, each once.
pub(in crate::pipeline) type Ids = Vec<u64>;

/// States that were made and may be saved yet.
const MADE: usize = 4;

/// Files needed by the last saved states, by the one resumed from, and by the last made; unknown for a state that was made
/// before the first scan.
#[derive(Debug, Clone, Default)]
pub(in crate::pipeline) struct Kept {
    saved: Arc<Mutex<VecDeque<Option<Ids>>>>,
    made: Arc<Mutex<VecDeque<Option<Ids>>>>,
}

fn push(states: &Mutex<VecDeque<Option<Ids>>>, state: &LoaderState, most: usize) {
    let mut states = states.lock().unwrap_or_else(PoisonError::into_inner);
    states.push_back(state.needs());
    while states.len() > most {
        states.pop_front();
    }
}

fn all(states: &Mutex<VecDeque<Option<Ids>>>) -> Option<Ids> {
    let mut all = Vec::new();
    for ids in states.lock().unwrap_or_else(PoisonError::into_inner).iter() {
        all.extend_from_slice(ids.as_deref()?);
    }
    Some(all)
}

impl Kept {
    /// Takes note of a state that is on disk.
    pub(in crate::pipeline) fn add(&self, state: &LoaderState) {
        push(&self.saved, state, KEPT);
    }

    /// Takes note of a state that may be saved.
    pub(in crate::pipeline) fn made(&self, state: &LoaderState) {
        push(&self.made, state, MADE);
    }

    /// Those and what `chains` need. `None` while that is not known.
    pub(in crate::pipeline) fn with(&self, chains: &[Arc<Chain>]) -> Option<Ids> {
        let mut all = all(&self.saved)?;
        chains.iter().try_for_each(|chain| chain.needs(&mut all))?;
        Some(each_once(all))
    }

    /// Whether [`Kept::with_made`] is known.
    pub(in crate::pipeline) fn is_known(&self, chains: &[Arc<Chain>]) -> bool {
        let known = |states: &Mutex<VecDeque<Option<Ids>>>| {
            states.lock().unwrap_or_else(PoisonError::into_inner).iter().all(Option::is_some)
        };
        known(&self.saved) && known(&self.made) && chains.iter().all(|chain| chain.has_begun())
    }

    /// Those, what the states need that were made last, and what arrivals replace that were not taken in yet.
    pub(in crate::pipeline) fn with_made(&self, chains: &[Arc<Chain>]) -> Option<Ids> {
        let mut ids = self.with(chains)?;
        ids.extend(all(&self.made)?);
        for chain in chains {
            let inner = chain.lock();
            let waiting = inner.branches.iter().flat_map(Branch::not_taken);
            ids.extend(waiting.filter_map(|(_, old)| old));
        }
        Some(each_once(ids))
    }
}

fn each_once(mut ids: Ids) -> Ids {
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// The oldest of some sources, by loader stage.
pub(in crate::pipeline) fn oldest(
    chains: &[Arc<Chain>],
    rosters: &[Arc<Roster>],
    ids: &[u64],
) -> BTreeMap<String, OldestNeeded> {
    let branches = || chains.iter().flat_map(|chain| &chain.plan.branches);
    let of = |(log, roster): (usize, &Arc<Roster>)| {
        let mut orders = branches().filter(|branch| branch.log == log).map(|branch| branch.key_order);
        // Where pools differ, one order is as good as another, as long as all compare by it.
        let order = orders.next().filter(|first| orders.all(|order| order == *first)).unwrap_or_default();
        let names = ids.iter().filter(|id| roster.log().owns(**id)).filter_map(|id| roster.name(*id));
        let name = names.min_by(|a, b| order.older(a, b))?;
        Some((roster.loader.clone(), OldestNeeded::of(&name, order)))
    };
    rosters.iter().enumerate().filter_map(of).collect()
}

impl Chain {
    /// Whether each input has its first scan.
    fn has_begun(&self) -> bool {
        self.lock().branches.iter().all(|branch| branch.drawer.is_some() || !branch.snapshots.is_empty())
    }

    /// Adds the sources that the chain's states may need, from the last delivered batch on. `None` before the first scan.
    fn needs(&self, ids: &mut Ids) -> Option<()> {
        let inner = self.lock();
        for branch in &inner.branches {
            let oldest = branch.snapshots.front().or(branch.drawer.as_ref());
            ids.extend(oldest.map(Drawer::sources)?);
            ids.extend(branch.admissions.iter().chain(&branch.replay).map(|admission| admission.id));
            ids.extend(branch.not_taken().into_iter().map(|(id, _)| id));
        }
        ids.extend(inner.fold.sources());
        Some(())
    }
}

impl LoaderState {
    /// The sources that a run that resumes from it may need. `None` for a state that was taken before the first scan
    /// was in.
    pub(in crate::pipeline) fn needs(&self) -> Option<Ids> {
        let mut ids = Vec::new();
        for lane in self.outputs.values().flat_map(|output| output.lanes.values()) {
            lane.held().for_each(|held| ids.extend_from_slice(&held.sources));
            for branch in &lane.branches {
                ids.extend_from_slice(&branch.drawer.as_ref()?.sources);
                ids.extend(branch.admissions.iter().map(|admission| admission.id));
                ids.extend(branch.waiting.iter().map(|(id, _)| id));
            }
        }
        Some(each_once(ids))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::loader::launch::tests::still::{Still, games, options};
    use crate::preset::{Lc0Preset, lc0};

    #[test]
    fn age_is_by_key_then_by_name() {
        let oldest = OldestNeeded::of("b/training.100.gz", KeyOrder::Natural);
        assert_eq!(oldest.key, "training.100.gz");
        assert!(oldest.may_delete("z/training.99.gz") && oldest.may_delete("a/training.100.gz"));
        assert!(!oldest.may_delete("b/training.100.gz") && !oldest.may_delete("a/training.101.gz"));
        let by_bytes = OldestNeeded::of("training.100.gz", KeyOrder::Bytes);
        assert!(!by_bytes.may_delete("training.99.gz"));
        let older = OldestNeeded::of("training.20.gz", KeyOrder::Natural);
        assert_eq!(both(oldest.clone(), older.clone()), older);
        assert_eq!(both(older.clone(), oldest), older);
    }

    /// A state of one lane that reads these sources now, admitted this one and waits for that one; before the first scan without any.
    fn state(sources: Option<&str>, admitted: u64, waits: u64) -> LoaderState {
        let drawer = sources.map(|sources| serde_json::json!({"at": 9, "sources": sources, "chunks": "AQ"}));
        let branch = serde_json::json!({
            "head": 9, "taken": 0, "drawn": 9, "admissions": [{"at": 9, "id": admitted, "chunks": 1}],
            "waiting": [[waits, null]], "drawer": drawer,
        });
        let reservoir = serde_json::json!({"inputs": "", "sources": "", "rows": ""});
        let lane =
            serde_json::json!({"join": [0, [1.0]], "reservoir_draws": 0, "reservoir": reservoir, "branches": [branch]});
        serde_json::from_value(serde_json::json!({
            "gristmill_state": 4, "of": "stream", "config": {}, "seed": 1, "files": {},
            "outputs": {"": {"batch": 3, "lanes": {"0": lane}}},
        }))
        .unwrap()
    }

    #[test]
    fn the_last_two_saved_states_and_the_last_four_made_need_their_files() {
        let kept = Kept::default();
        assert_eq!((kept.with(&[]), kept.with_made(&[])), (Some(vec![]), Some(vec![])));
        assert_eq!(state(Some("AA"), 5, 3).needs(), Some(vec![0, 3, 5]));
        for (admitted, waits) in [(11, 10), (5, 3), (3, 7)] {
            kept.add(&state(Some("AA"), admitted, waits));
        }
        let saved = vec![0, 3, 5, 7];
        assert_eq!((kept.with(&[]), kept.with_made(&[])), (Some(saved.clone()), Some(saved.clone())));
        (20..25).for_each(|id| kept.made(&state(Some("AA"), id, id + 10)));
        let made: Ids = saved.iter().copied().chain(21..25).chain(31..35).collect();
        assert_eq!((kept.with(&[]), kept.with_made(&[])), (Some(saved.clone()), Some(made)));
        kept.made(&state(None, 1, 2));
        assert_eq!((kept.with(&[]), kept.with_made(&[])), (Some(saved), None), "nobody knows what it needs");
        kept.add(&state(None, 1, 2));
        assert_eq!(kept.with(&[]), None);
        (0..4).for_each(|_| kept.made(&state(Some("AA"), 1, 2)));
        (0..2).for_each(|_| kept.add(&state(Some("AA"), 1, 2)));
        assert_eq!(kept.with_made(&[]), Some(vec![0, 1, 2]), "the state before the scan is none of the last");
    }

    /// The oldest file of each stage, where these pools compare names by bytes.
    fn oldest_by(options: &Lc0Preset, by_bytes: &[&str]) -> Vec<String> {
        let mut config = lc0(options).unwrap();
        for stage in config.stage.iter_mut().filter(|stage| by_bytes.contains(&stage.name.as_str())) {
            stage.shuffling_chunk_pool.as_mut().unwrap().key_order = KeyOrder::Bytes;
        }
        let still = Still::new(&config);
        still.search();
        assert!(still.rosters().iter().all(|roster| roster.ready()));
        let ids: Ids = still.rosters().iter().flat_map(|roster| roster.files()).map(|file| file.id).collect();
        oldest(still.chains(), still.rosters(), &ids).into_values().map(|oldest| oldest.name).collect()
    }

    #[test]
    fn the_oldest_file_is_by_the_order_of_the_pools_that_draw_from_it() {
        let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        [&one, &two].into_iter().for_each(|folder| games(folder.path(), 9, 2, None));
        let (natural, bytes) = ("training.9.gz", "training.10.gz");
        let both = options(&[one.path(), two.path()]);
        assert_eq!(oldest_by(&both, &["pool"]), [bytes, natural]);
        let split = Lc0Preset { split: vec![("a".into(), 1), ("b".into(), 1)], ..options(&[one.path()]) };
        assert_eq!(oldest_by(&split, &["pool_a", "pool_b"]), [bytes]);
        assert_eq!(oldest_by(&split, &["pool_b"]), [natural], "they differ");
    }
}
