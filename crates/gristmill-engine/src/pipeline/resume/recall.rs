//! What an earlier run left behind -> files under their lasting ids, and where each output resumes.
//! A saved state, and what its journal tells of the time after it; the journal of a run that is replayed, or that never
//! saved a state; or nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::journal::Opening;
use gristmill_stages::config::DataLoaderConfig;
use gristmill_stages::stage::load::{Source, SourceLog};

use crate::pipeline::chain::Chain;
use crate::pipeline::draw::drawer::Admission;
use crate::pipeline::draw::event::Event;
use crate::pipeline::draw::left::has_left;
use crate::pipeline::draw::outage::{Outages, of_reading};
use crate::pipeline::draw::roster::{PastFiles, Roster};
use crate::pipeline::plan::Plan;
use crate::pipeline::plan::ranks::Ranks;
use crate::pipeline::resume::journals::{self, Earlier, Files, History, JournalMark, latest};
use crate::pipeline::resume::needed::Kept;
use crate::pipeline::resume::state::LoaderState;
use crate::pipeline::resume::vanished::{Lost, Missing, Vanished};

/// The past of a run.
#[derive(Debug)]
pub(in crate::pipeline) struct Recall {
    pub(in crate::pipeline) seed: Option<u64>,
    state: Option<Arc<LoaderState>>,
    missing: Missing,
    history: History,
    replay: bool,
    /// How its own journal is begun.
    pub(in crate::pipeline) opening: Opening,
}

/// Opened containers, and the ids of other opened files, by lasting id.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct Containers(HashMap<u64, Option<Arc<Source>>>);

impl Recall {
    /// Reads what the config and the caller point to.
    ///
    /// Errors: `Path` for an unreadable journal, `State` when both a state and a replay are given, or when the journal
    /// is of another run.
    pub(in crate::pipeline) fn new(
        config: &DataLoaderConfig,
        plan: &Plan,
        past: Option<(Arc<LoaderState>, Missing)>,
    ) -> Result<Self> {
        let (state, missing) = past.map_or((None, Missing::Refuse), |(state, missing)| (Some(state), missing));
        let read = |files: &Files| match &config.journal {
            Some(path) if state.is_some() || config.replay => History::read(path, files.clone()),
            _ => Ok(History { files: files.clone(), ..History::default() }),
        };
        let Ranks { rank, world, .. } = Ranks::of(config)?;
        let own = config.journal.as_ref().map(|path| journals::of_rank(path, rank.into(), world.into()));
        let again = |own: &PathBuf| if own.exists() { Opening::Again } else { Opening::New };
        let opening = own.as_ref().map_or(Opening::New, again);
        let recall = |seed, state, history| Recall { seed, state, missing, history, replay: config.replay, opening };
        let Some(state) = &state else {
            if let Some(path) = config.journal.as_ref().filter(|_| !config.replay) {
                let loaders: Vec<&str> = plan.logs.iter().map(|log| log.stage.as_str()).collect();
                let Earlier { run, opening } = Earlier::of(path, Ranks::of(config)?, &loaders)?;
                let Some(history) = run else {
                    return Ok(Recall { opening, ..recall(None, None, History::default()) });
                };
                let other = history.seed.zip(config.seed).filter(|(told, configured)| told != configured);
                if let Some((told, configured)) = other {
                    let text = format!(
                        "it tells of a run with seed {told}, not {configured}: begin that one again with its seed, or take \
                         another journal"
                    );
                    return Err(Error::config("journal", text));
                }
                history.check_splits(config)?;
                return Ok(Recall { opening, ..recall(history.seed, None, history) });
            }
            let history = read(&Files::new())?;
            history.check_splits(config)?;
            if config.replay && history.first.is_empty() {
                let text = "there is nothing to replay: it has no first scan".to_owned();
                return Err(Error::config("journal", text));
            }
            if config.replay && !history.agreed {
                let text = "the ranks that wrote it found different files first; their run resumes from a state only";
                return Err(Error::config("replay", text));
            }
            return Ok(recall(history.seed, None, history));
        };
        if config.replay {
            return Err(Error::State(
                "a replay begins at the beginning; restore into a loader that does not replay".into(),
            ));
        }
        let history = read(&state.files)?;
        if history.seed.is_some_and(|seed| seed != state.seed) {
            return Err(Error::State("its seed is not that of the journal: they are of different runs".into()));
        }
        history.check_splits(config)?;
        if let Some(path) = &config.journal {
            history.check_reached(path, state)?;
        }
        Ok(recall(Some(state.seed), Some(Arc::clone(state)), history))
    }

    /// The files of a loader stage; `None` in a fresh run.
    pub(in crate::pipeline) fn files(&self, loader: &str) -> Option<PastFiles> {
        let files = self.history.files.get(loader)?.clone();
        let next = self.history.next(loader);
        if self.state.is_some() {
            return Some(PastFiles { files, next, ..PastFiles::default() });
        }
        let first = self.history.first.get(loader);
        let later = files.iter().map(|file| file.id).filter(|id| first.is_none_or(|first| !first.contains(id)));
        Some(PastFiles { later: later.collect(), files, fixed: self.replay, next })
    }

    /// The events that this process writes first to the journal that it appends to: its files, under this run's ids, and what its state
    /// says was read of them.
    pub(in crate::pipeline) fn untold(&self, own: &Path) -> Vec<Event> {
        self.history.untold(own)
    }

    /// What the state that the run resumes from needs, if it does.
    pub(in crate::pipeline) fn kept(&self) -> Kept {
        let kept = Kept::default();
        self.state.iter().for_each(|state| kept.add(state));
        kept
    }

    /// Whether the run resumes from a state.
    pub(in crate::pipeline) fn goes_on(&self) -> bool {
        self.state.is_some()
    }

    /// How the run begins, for people.
    pub(in crate::pipeline) fn how(&self) -> &'static str {
        match (self.goes_on(), self.history.files.is_empty(), self.replay) {
            (true, ..) => "started where an earlier run stood",
            (false, true, _) => "started",
            (false, false, true) => "started to replay a journal",
            (false, false, false) => "started again from the beginning, as the journal tells",
        }
    }

    /// Per output, the batch that comes next, where the run resumes from a state.
    pub(in crate::pipeline) fn next_batches(&self) -> Option<BTreeMap<String, u64>> {
        let outputs = &self.state.as_ref()?.outputs;
        Some(outputs.iter().map(|(alias, output)| (alias.clone(), output.batch)).collect())
    }

    /// How far the journals of ranks of another number reached.
    pub(in crate::pipeline) fn marks(&self, config: &DataLoaderConfig) -> Vec<JournalMark> {
        let known = self.state.iter().flat_map(|state| state.journals.iter().cloned());
        let Ok(Ranks { world, .. }) = Ranks::of(config) else { return Vec::new() };
        let read = config.journal.iter().flat_map(|path| self.history.marks(path, world));
        latest(known.filter(|mark| mark.world_size != world).chain(read))
    }

    /// The batch that an output resumes with.
    pub(in crate::pipeline) fn first_batch(&self, alias: &str) -> u64 {
        self.state.as_ref().and_then(|state| state.outputs.get(alias)).map_or(0, |output| output.batch)
    }

    /// Whether anything is to be put into the chains once the first scan is in.
    pub(in crate::pipeline) fn waits_for_scan(&self) -> bool {
        self.state.is_some() || !self.history.files.is_empty()
    }

    /// Files of which journals tell that came after the state, or after the first scan, and of which they do not tell that a
    /// branch took them in: somebody else did, or found them and ended before anybody could. With what each replaces. None of those that
    /// are `gone`, which nobody took in either: what has their bytes now is no file that was taken.
    fn untaken(&self, roster: &Roster, told: &VecDeque<Admission>, gone: &HashSet<u64>) -> Vec<(u64, Option<u64>)> {
        let loader = &roster.loader;
        let Some(files) = self.history.files.get(loader).filter(|_| !self.replay) else { return Vec::new() };
        let first = || self.history.first.get(loader).into_iter().flatten().copied();
        let lacked = || self.history.gone.get(loader).into_iter().flatten().flat_map(|gone| &gone.files).copied();
        let mut taken: HashSet<u64> = match self.state.as_ref().and_then(|state| state.files.get(loader)) {
            Some(files) => files.iter().map(|file| file.id).collect(),
            // The state is of before the first scan: without a journal all that is there belongs to it.
            None if self.state.is_some() && !self.history.first.contains_key(loader) => return Vec::new(),
            None => first().chain(lacked()).collect(),
        };
        taken.extend(told.iter().map(|admission| admission.id));
        if files.iter().all(|file| taken.contains(&file.id)) {
            return Vec::new();
        }
        let there: HashSet<u64> = taken.difference(gone).map(|id| roster.of_same_file(*id)).collect();
        taken.extend(gone);
        let admissions = self.history.admissions.values().flatten();
        let replaced: HashMap<u64, u64> = admissions.filter_map(|told| Some((told.id, told.old?))).collect();
        let mut names: HashMap<&str, u64> = HashMap::new();
        let mut untaken = Vec::new();
        for file in files {
            let before = names.insert(&file.name, file.id).filter(|before| !roster.is_there(*before));
            // One that has left since may be one that the run before had forgotten.
            let is_new = !taken.contains(&file.id) && !there.contains(&file.id) && roster.lacks(file.id).is_none();
            if is_new && roster.of_same_file(file.id) == file.id {
                untaken.push((file.id, replaced.get(&file.id).copied().or(before)));
            }
        }
        untaken
    }

    /// Opens what [`Recall::put_into`] opens of a chain; `false` while some of it cannot be read.
    ///
    /// Errors: the error of a read where the stream does not wait.
    pub(in crate::pipeline) fn opens(&self, chain: &Chain, outages: &Outages, opened: &mut Containers) -> Result<bool> {
        let Some(saved) = self.state.as_ref().and_then(|state| state.outputs.get(&chain.plan.alias)) else {
            return Ok(true);
        };
        let inner = chain.lock();
        let inputs = chain.plan.inputs();
        for (l, plan) in chain.plan.lanes.iter().enumerate() {
            let Some(saved) = saved.lanes.get(&plan.lane.map_or(0, |lane| lane.index)) else { continue };
            for (branch, saved) in inner.branches.iter().skip(l * inputs).zip(&saved.branches).take(inputs) {
                let window = saved.drawer.iter().flat_map(|drawer| drawer.sources.iter().copied());
                let later = saved.admissions.iter().filter(|later| later.at < saved.head).map(|later| later.id);
                for id in window.chain(later) {
                    if opened.0.contains_key(&id) {
                        continue;
                    }
                    if outages.rests(id) {
                        return Ok(false);
                    }
                    let source = branch.roster.open(id);
                    if branch.roster.missed(id, &source) {
                        outages.rest(id);
                        return Ok(false);
                    }
                    if let Some(refused) = source.as_ref().err().and_then(of_reading) {
                        outages.failed(id, refused)?;
                        return Ok(false);
                    }
                    outages.over(id, source.is_ok());
                    if let Some(error) = source.as_ref().err().filter(|e| has_left(e) || matches!(e, Error::State(_))) {
                        branch.roster.lose(id, error);
                    }
                    opened.0.insert(id, source.ok().filter(|source| !SourceLog::holds_one(&source.key)));
                }
            }
        }
        Ok(true)
    }

    /// Puts a chain where it is to begin; returns the files that it does without.
    pub(in crate::pipeline) fn put_into(&self, chain: &Chain) -> Result<Vec<Vanished>> {
        let saved = self.state.as_ref().and_then(|state| state.outputs.get(&chain.plan.alias));
        let mut vanished = Vec::new();
        if let Some(saved) = saved {
            let lost = Lost::of(chain, saved);
            if self.missing != Missing::Skip {
                lost.refuse()?;
            }
            chain.restore(saved, &lost)?;
            vanished = lost.by_file();
        }
        let inputs = chain.plan.inputs();
        for (b, branch) in chain.lock().branches.iter_mut().enumerate() {
            let lane = branch.plan.lane.map(|lane| lane.index);
            let of = (branch.plan.stage.clone(), lane);
            let told = self.history.admissions.get(&of).cloned().unwrap_or_default();
            branch.reached = self.history.reached.get(&of).copied().unwrap_or(0);
            // What is new stands after all that: several journals could not tell which came first at the same draw.
            branch.not_before = branch.reached.max(told.back().map_or(0, |last| last.at + 1));
            if branch.drawer.is_none() {
                branch.gone.extend(self.history.gone(&branch.roster.loader, &of).map(|id| (id, None)));
            }
            branch.gone.retain(|(id, _)| told.iter().all(|told| told.id != *id));
            let gone = branch.gone.iter().map(|(id, _)| *id).collect();
            let untaken = self.untaken(&branch.roster, &told, &gone);
            let Some(saved) = saved else {
                (branch.begins_again, branch.replay, branch.waiting) = (true, told, untaken);
                continue;
            };
            // What the journal tells of the time after the state was taken happens again.
            let Some(saved) = saved.lanes.get(&lane.unwrap_or(0)).and_then(|lane| lane.branches.get(b % inputs)) else {
                continue;
            };
            let later = told.into_iter().filter(|told| told.at >= saved.drawn && !saved.admissions.contains(told));
            branch.missing = self.missing;
            let made = branch.replay.iter().filter(|next| saved.drawer.is_some() && next.at <= saved.drawn);
            branch.counted = made.count();
            branch.replay.extend(later);
            let again: BTreeSet<u64> = branch.replay.iter().map(|admission| admission.id).collect();
            branch.waiting.retain(|(id, _)| !again.contains(id));
            branch.waiting.extend(untaken);
        }
        // Their holders may release them before the draws that need them come.
        for branch in &chain.lock().branches {
            let told = branch.replay.iter().map(|admission| admission.id);
            told.chain(branch.waiting.iter().map(|(id, _)| *id)).for_each(|id| branch.roster.hold(id));
        }
        chain.hold_refills();
        Ok(vanished)
    }
}

#[cfg(test)]
mod tests;
