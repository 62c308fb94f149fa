//! A running chain -> a small description of where it stands, and back: references and counters, never a frame's bytes.
//! Taken at the last delivered batch without stopping the stream; what was made ahead of it is made again.

use std::collections::BTreeMap;

use gristmill_format::encode::Provenance;
use serde::{Deserialize, Serialize};

use super::branch::Branch;
use super::chain::{Chain, Inner, Refill};
use super::drawer::{Admission, Drawer, DrawerState};
use super::fold::{Held, Mark};
use super::plan::Plan;
use super::roster::Recorded;
use crate::config::{DataLoaderConfig, FilePathProviderConfig};
use crate::error::{Error, Result};
use crate::stage::pool::{AcceptState, Anchor, Lost};

/// The part of a config that changes batches: no paths, threads, windows, queues or bounds; of tables, which there are.
pub(super) fn fingerprint(config: &DataLoaderConfig, plan: &Plan) -> serde_json::Value {
    let mut config = DataLoaderConfig {
        seed: None,
        threads: None,
        io_threads: None,
        memory: None,
        quarantine: None,
        journal: None,
        replay: false,
        index: None,
        ..config.clone()
    };
    for stage in &mut config.stage {
        if let Some(files) = &mut stage.file_path_provider {
            *files = FilePathProviderConfig::default();
        }
        if let Some(rescorer) = &mut stage.chunk_rescorer {
            (rescorer.threads, rescorer.output.queue_capacity) = (None, 0);
            let [tables, policies] = plan.reads(&stage.name).map(|hash| hash.map(|hash| format!("{hash:016x}")));
            (rescorer.syzygy_paths, rescorer.policy_directory) = (tables.unwrap_or_default(), policies.map(Into::into));
        }
        if let Some(unpacker) = &mut stage.chunk_unpacker {
            unpacker.threads = None;
        }
        if let Some(pool) = &mut stage.shuffling_chunk_pool {
            (pool.chunk_loading_threads, pool.source_ingestion_threads, pool.caching_threads) = (None, None, None);
        }
        if let Some(tensors) = &mut stage.tensor_generator {
            (tensors.threads, tensors.output.queue_capacity) = (None, 0);
        }
    }
    serde_json::to_value(config).unwrap_or_default()
}

/// Reads a state and compares it with a config.
///
/// Errors: `State` with what differs.
pub(super) fn parse(text: &str, config: &DataLoaderConfig, plan: &Plan) -> Result<LoaderState> {
    let state: LoaderState = serde_json::from_str(text).map_err(|e| Error::State(e.to_string()))?;
    if state.gristmill_state != VERSION {
        return Err(Error::State(format!("version {} is not {VERSION}", state.gristmill_state)));
    }
    let mut differences = Vec::new();
    compare("", &state.config, &fingerprint(config, plan), &mut differences);
    if config.seed.is_some_and(|seed| seed != state.seed) {
        differences.push(format!("seed: saved {}, configured {:?}", state.seed, config.seed));
    }
    if differences.is_empty() { Ok(state) } else { Err(Error::State(differences.join("; "))) }
}

fn compare(at: &str, saved: &serde_json::Value, now: &serde_json::Value, differences: &mut Vec<String>) {
    use serde_json::Value::{Array, Null, Object};
    match (saved, now) {
        _ if saved == now => {}
        (Object(a), Object(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let (a, b) = (a.get(key).unwrap_or(&Null), b.get(key).unwrap_or(&Null));
                compare(&format!("{at}.{key}"), a, b, differences);
            }
        }
        (Array(a), Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                compare(&format!("{at}[{i}]"), a, b, differences);
            }
        }
        _ => differences.push(format!("{}: saved {saved}, configured {now}", at.trim_start_matches('.'))),
    }
}

/// Version of the state; raised whenever its meaning changes.
pub(super) const VERSION: u32 = 1;

/// The state of a whole loader (docs/format/state.md).
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LoaderState {
    pub(super) gristmill_state: u32,
    /// The part of the config that changes batches.
    pub(super) config: serde_json::Value,
    pub(super) seed: u64,
    /// Per loader stage: every file that is known, under its lasting id.
    pub(super) files: BTreeMap<String, Vec<Recorded>>,
    /// Per alias.
    pub(super) outputs: BTreeMap<String, ChainState>,
    /// Chunk anchors, per pool.
    #[serde(default)]
    pub(super) anchors: BTreeMap<String, Anchor>,
}

/// The state of one output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ChainState {
    /// Number of the next batch.
    batch: u64,
    /// Ordinal of the next joined row, and the weights left.
    join: (u64, Vec<f64>),
    /// Draws that the reservoir made.
    reservoir_draws: u64,
    /// What the reservoir holds: branch, source, chunk, frame of each slot, flattened.
    reservoir: Vec<u64>,
    branches: Vec<BranchState>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct BranchState {
    /// Draw whose rows come next, and how many of them were taken.
    head: u64,
    taken: usize,
    /// The drawer as it was at some draw at or before `head`; absent before the first scan was in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    drawer: Option<DrawerState>,
    /// Admissions from there on.
    admissions: Vec<Admission>,
    /// What was decided on the draws before `head`, where not every one is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    accept: Option<AcceptState>,
}

impl Chain {
    /// Where the chain stood after the last delivered batch.
    pub(super) fn state(&self) -> ChainState {
        let inner = self.lock();
        let mark = inner.fold.delivered.clone();
        let held = inner.fold.held_at_mark();
        let branches = inner.branches.iter().enumerate().map(|(b, branch)| {
            let (head, taken) = mark.branches.get(b).copied().unwrap_or_default();
            let copy = branch.snapshots.iter().rev().find(|copy| copy.at() <= head).or(branch.drawer.as_ref()).cloned();
            let admissions = branch.admissions.iter().chain(&branch.replay);
            let from = copy.as_ref().map_or(0, Drawer::at);
            let admissions = admissions.filter(|a| a.at >= from).cloned().collect();
            (
                copy,
                BranchState {
                    head,
                    taken,
                    drawer: None,
                    admissions,
                    accept: branch.accept.as_ref().map(|accept| accept.state_before(head)),
                },
            )
        });
        let branches: Vec<(Option<Drawer>, BranchState)> = branches.collect();
        drop(inner);
        let row = |row: Held| [u64::from(row.branch), row.from.source, row.from.chunk.into(), row.from.frame.into()];
        ChainState {
            batch: mark.batch,
            join: mark.join,
            reservoir_draws: mark.draws,
            reservoir: held.into_iter().flat_map(row).collect(),
            branches: branches
                .into_iter()
                .map(|(copy, state)| BranchState { drawer: copy.map(|drawer| drawer.state()), ..state })
                .collect(),
        }
    }

    /// Takes a state over before anything ran. The rows of the reservoir are read again by the workers.
    ///
    /// Errors: `State` where the state and the plan or files do not fit.
    pub(super) fn restore(&self, state: &ChainState) -> Result<()> {
        let unfit = |what: &str| Error::State(format!("output `{}`: {what}", self.plan.alias));
        let mut inner = self.lock();
        if state.branches.len() != inner.branches.len() {
            return Err(unfit("it joins another number of inputs"));
        }
        if !state.reservoir.len().is_multiple_of(4) || state.reservoir.len() / 4 > self.plan.reservoir.1 {
            return Err(unfit("its reservoir is larger than the configured one"));
        }
        for (branch, saved) in inner.branches.iter_mut().zip(&state.branches) {
            let Some(drawer_state) = &saved.drawer else { continue };
            let anchors = &self.shared.anchors;
            let mut drawer = Drawer::restore(&branch.plan, self.shared.root, &branch.roster, anchors, drawer_state)?;
            let mut admissions = saved.admissions.iter().cloned().collect::<std::collections::VecDeque<_>>();
            branch.snapshots.push_back(drawer.clone());
            while drawer.at() < saved.head {
                while let Some(next) = admissions.pop_front_if(|next| next.at <= drawer.at()) {
                    let source = branch.roster.open(next.id)?;
                    drawer.admit(next.id, &source, next.old);
                    anchors.seen(&branch.plan.stage, &source.key);
                    branch.admissions.push_back(next);
                }
                if drawer.draw().is_none() {
                    drawer.restart();
                    if drawer.draw().is_none() {
                        return Err(unfit("its draws cannot be made again: there is nothing to draw"));
                    }
                }
            }
            (branch.head, branch.taken) = (saved.head, saved.taken);
            branch.replay = admissions;
            branch.drawer = Some(drawer);
        }
        let mut refills: BTreeMap<(usize, u64, u32), Refill> = BTreeMap::new();
        let mut refill = |branch: usize, source, chunk, with: &mut dyn FnMut(&mut Refill)| {
            let new = || Refill { branch, source, chunk, rows: Vec::new(), cached: Vec::new() };
            with(refills.entry((branch, source, chunk)).or_insert_with(new));
        };
        let mut held = Vec::with_capacity(state.reservoir.len() / 4);
        for row in state.reservoir.chunks_exact(4) {
            let number = |n: u64| u32::try_from(n).map_err(|_| unfit("a reservoir row is out of range"));
            let (branch, chunk, frame) = (number(row[0])?, number(row[2])?, number(row[3])?);
            if branch as usize >= inner.branches.len() {
                return Err(unfit("a reservoir row belongs to no input"));
            }
            let Some(slot) = inner.fold.free.pop() else { return Err(unfit("its reservoir does not fit")) };
            let from = Provenance { source: row[1], chunk, frame };
            held.push(Held { slot, branch, from });
            refill(branch as usize, row[1], chunk, &mut |refill| refill.rows.push((frame, slot)));
        }
        for (b, saved) in state.branches.iter().enumerate() {
            let Inner { branches, fold, .. } = &mut *inner;
            let Branch { accept, drawer, .. } = &mut branches[b];
            let (Some(accept), Some(drawer)) = (accept, drawer) else { continue };
            let Some(decided) = &saved.accept else { return Err(unfit("it lacks what was decided on draws")) };
            accept.restore(decided).ok_or_else(|| unfit("its position cache does not fit the configured one"))?;
            for (place, kept) in decided.cache.iter().flat_map(|cache| &cache.kept) {
                // A chunk that has left the window by now gives up what is kept of it at the next draw.
                let Some(at) = drawer.chunk_at(*place) else { continue };
                let rows = Lost { place: *place, first: kept.first, left: kept.left }.rows();
                for row in rows {
                    let Some(slot) = fold.free.pop() else { return Err(unfit("its position cache does not fit")) };
                    refill(b, drawer.source(at).0, at.chunk, &mut |refill| refill.cached.push((row, slot)));
                }
            }
        }
        inner
            .fold
            .join
            .restore(state.join.0, &state.join.1)
            .ok_or_else(|| unfit("it has another number of weights"))?;
        let branches = state.branches.iter().map(|saved| (saved.head, saved.taken)).collect();
        let mark = Mark { batch: state.batch, join: state.join.clone(), draws: state.reservoir_draws, branches };
        inner.fold.restore(mark, held, self.plan.batch_size);
        inner.refills = refills.into_values().collect();
        Ok(())
    }
}
