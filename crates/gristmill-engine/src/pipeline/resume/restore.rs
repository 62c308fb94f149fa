//! A running chain -> where it stands at the last delivered batch, and back, without stopping the stream.
//! What was made ahead of that batch is made again; frames are read again from their files.

use std::collections::VecDeque;

use gristmill_format::encode::Provenance;
use gristmill_runtime::error::{Error, Result};
use gristmill_stages::stage::load::SourceLog;
use gristmill_stages::stage::pool::Lost as Uncached;
use gristmill_stages::stage::{Row, Standing};

use crate::pipeline::chain::fold::Mark;
use crate::pipeline::chain::refill::{Chunks, Refills, Unread};
use crate::pipeline::chain::{Chain, Inner};
use crate::pipeline::draw::branch::Branch;
use crate::pipeline::draw::drawer::Drawer;
use crate::pipeline::draw::passes::Passes;
use crate::pipeline::resume::state::{BranchState, ChainState, HeldRows, LaneState};
use crate::pipeline::resume::vanished::Lost;

/// At most this many draws are made again: many times more than lie between two copies of the largest window.
const MOST_AGAIN: u64 = 1 << 28;

impl Chain {
    /// Where the chain stood after the last delivered batch.
    pub(in crate::pipeline) fn state(&self) -> ChainState {
        let inner = self.lock();
        let mark = inner.fold.delivered.clone();
        let later = inner.fold.later();
        let passes = inner.fold.passes.as_ref().map(|passes| passes.before(mark.passes));
        let branches: Vec<(Option<Drawer>, BranchState)> = inner
            .branches
            .iter()
            .enumerate()
            .map(|(b, branch)| {
                let (head, taken) = mark.branches.get(b).copied().unwrap_or_default();
                let copies = branch.snapshots.iter().rev();
                let copy = copies.clone().find(|copy| copy.at() <= head).or(branch.drawer.as_ref()).cloned();
                let drawn = branch.drawer.as_ref().map_or(0, Drawer::at);
                let from = copy.as_ref().map_or(0, Drawer::at);
                let admissions = branch.admissions.iter().chain(&branch.replay).filter(|a| a.at >= from).cloned();
                let (admissions, waiting) = (admissions.collect(), branch.not_taken());
                let gone = branch.gone.iter().filter(|(id, _)| branch.roster.knows(*id)).copied().collect();
                let accept = branch.accept.as_ref().map(|accept| accept.state_before(head));
                (copy, BranchState { head, taken, drawn, drawer: None, admissions, waiting, gone, accept })
            })
            .collect();
        drop(inner);
        let whole = |(copy, state): (Option<Drawer>, _)| BranchState { drawer: copy.map(|copy| copy.state()), ..state };
        let mut branches = branches.into_iter().map(whole);
        let inputs = self.plan.inputs();
        let lanes = self.plan.lanes.iter().zip(later).enumerate().map(|(l, (plan, later))| {
            let mut standings = later.into_iter().map(|later| later());
            let join = standings.next().unwrap_or_default();
            let named = self.plan.steps.iter().zip(standings);
            let steps = named.map(|(step, standing)| (step.stage.as_str(), step.kind, standing));
            let branches = branches.by_ref().take(inputs).collect();
            let first = u32::try_from(l * inputs).unwrap_or(u32::MAX);
            (plan.lane.map_or(0, |lane| lane.index), LaneState::of(branches, first, &join, steps))
        });
        let skipped = self.plan.skips.before(mark.batch);
        ChainState { batch: mark.batch, skipped, passes, lanes: lanes.collect() }
    }

    /// Takes a state over before anything ran. The rows of the reservoirs are read again while the chain runs, or before it does.
    ///
    /// What is `lost` is left out. Errors: `State` where the state and the plan or files do not fit.
    pub(in crate::pipeline) fn restore(&self, state: &ChainState, lost: &Lost) -> Result<()> {
        let unfit = |what: &str| Error::State(format!("output `{}`: {what}", self.plan.alias));
        let mut inner = self.lock();
        let inputs = self.plan.inputs();
        let mut unread = Unread::default();
        let mut mark = Mark { batch: state.batch, ..Mark::default() };
        let mut standings = Vec::new();
        for (l, plan) in self.plan.lanes.iter().enumerate() {
            let index = plan.lane.map_or(0, |lane| lane.index);
            let saved = state.lanes.get(&index).ok_or_else(|| unfit(&format!("it lacks lane {index}")))?;
            if saved.branches.len() != inputs {
                return Err(unfit("it joins another number of inputs"));
            }
            for ((b, branch), saved) in inner.branches.iter_mut().enumerate().skip(l * inputs).zip(&saved.branches) {
                self.restore_branch(branch, saved, &|id| lost.has(b, id))?;
            }
            let mut lane = vec![Standing { own: saved.join(), rows: Vec::new() }];
            for step in &self.plan.steps {
                let lacks = || unfit(&format!("it lacks stage `{}`", step.stage));
                let (own, rows) = saved.step(&step.stage, step.kind).ok_or_else(lacks)?;
                if rows.len() > step.slots(plan) {
                    return Err(unfit(&format!("stage `{}` holds more rows than it is configured to", step.stage)));
                }
                lane.push(Standing { own, rows: self.hold(&mut inner, l * inputs, rows, (lost, &mut unread))? });
            }
            standings.push(lane);
            for (b, saved) in (l * inputs..).zip(&saved.branches) {
                self.restore_accepted(&mut inner, b, saved, &mut unread)?;
            }
            mark.branches.extend(saved.branches.iter().map(|saved| (saved.head, saved.taken)));
        }
        if inner.fold.passes.is_some() {
            let head = mark.branches.first().map_or(0, |(head, _)| *head);
            let passes = Passes::resumed(state.passes.as_ref(), head, &inner.branches[0]);
            (mark.passes, inner.fold.passes) = (passes.known(), Some(passes));
        }
        inner.fold.restore(mark, standings, self.plan.batch_size).map_err(|what| unfit(&what))?;
        let refills = self.refills(&inner, unread.by_chunk());
        self.reads_again(&mut inner, refills);
        Ok(())
    }

    /// How rows are read again. The chain is still until then where what it decides depends on their bytes, and where a file has to be
    /// read whole for each chunk: in any other order than that of files it would be read many times.
    fn refills(&self, inner: &Inner, chunks: Chunks) -> Refills {
        let caches = chunks.has_cached();
        if self.shared.sight.is_some() && !caches && !self.plan.reads_positions() {
            self.fill_blindly(chunks.all_rows());
            return Refills::default();
        }
        let is_solid = |name: String| SourceLog::is_solid(&name);
        let solid =
            chunks.files().any(|(branch, source)| inner.branches[branch].roster.name(source).is_some_and(is_solid));
        Refills::new(chunks, caches || solid || self.plan.reads_positions())
    }

    /// Makes the draws of a branch again, up to the saved one.
    fn restore_branch(&self, branch: &mut Branch, saved: &BranchState, lost: &dyn Fn(u64) -> bool) -> Result<()> {
        branch.waiting.clone_from(&saved.waiting);
        branch.gone.clone_from(&saved.gone);
        let mut admissions = saved.admissions.iter().cloned().collect::<VecDeque<_>>();
        let Some(drawer_state) = &saved.drawer else {
            branch.replay = admissions;
            return Ok(());
        };
        let anchors = &self.shared.anchors;
        let (plan, root) = (&branch.plan, self.shared.root);
        let mut drawer = Drawer::restore(plan, root, &branch.roster, anchors, drawer_state, lost)?;
        branch.snapshots.push_back(drawer.clone());
        if saved.head.saturating_sub(drawer.at()) > MOST_AGAIN {
            let text = format!("{} draws lie between its copy of the draws and its next one", saved.head - drawer.at());
            return Err(Error::State(format!(
                "output `{}`: {text}; no loader saves that: it is damaged",
                self.plan.alias
            )));
        }
        // Of files that came before the very draw of the copy, the copy had taken in all up to the last one that it has. Those of them
        // that it lacks have left the window again.
        let at_copy = admissions.iter().take_while(|next| next.at <= drawer.at());
        let made = at_copy.enumerate().filter(|(_, next)| drawer.has(next.id)).last().map_or(0, |(i, _)| i + 1);
        for next in admissions.drain(..made) {
            if drawer.has(next.id) && !lost(next.id) {
                anchors.seen(&branch.plan.stage, &branch.roster.open(next.id)?.key);
            }
            branch.admissions.push_back(next);
        }
        while drawer.at() < saved.head {
            while let Some(next) = admissions.pop_front_if(|next| next.at <= drawer.at()) {
                if lost(next.id) {
                    drawer.admit_lost(&next);
                    branch.admissions.push_back(next);
                    continue;
                }
                let source = branch.roster.open(next.id)?;
                drawer.admit(next.id, &source, next.old);
                anchors.seen(&branch.plan.stage, &source.key);
                branch.admissions.push_back(next);
            }
            if drawer.draw().is_none() {
                drawer.restart();
                if drawer.draw().is_none() {
                    let text = "its draws cannot be made again: there is nothing to draw";
                    return Err(Error::State(format!("output `{}`: {text}", self.plan.alias)));
                }
            }
        }
        (branch.head, branch.taken) = (saved.head, saved.taken);
        branch.replay = admissions;
        branch.drawer = Some(drawer);
        Ok(())
    }

    /// Slots for the rows of a reservoir, which are to be read again.
    fn hold(
        &self,
        inner: &mut Inner,
        first: usize,
        saved: &HeldRows,
        (lost, unread): (&Lost, &mut Unread),
    ) -> Result<Vec<Row>> {
        let unfit = |what: &str| Error::State(format!("output `{}`: {what}", self.plan.alias));
        let row = |row: Option<(u32, Provenance)>| {
            let (input, from) = row.ok_or_else(|| unfit("a reservoir row has no source"))?;
            if input as usize >= self.plan.inputs() {
                return Err(unfit("a reservoir row belongs to no input"));
            }
            let (b, branch) = (first + input as usize, first as u32 + input);
            if lost.has(b, from.source) {
                return Ok(None);
            }
            let Some(slot) = inner.fold.free.pop() else { return Err(unfit("its reservoir does not fit")) };
            unread.row((branch, from.source, from.chunk, from.frame), slot);
            Ok(Some(Row { slot, branch, from }))
        };
        saved.rows().map(row).filter_map(Result::transpose).collect()
    }

    /// Takes over what was decided on the draws of branch `b`, and what its cache held.
    fn restore_accepted(&self, inner: &mut Inner, b: usize, saved: &BranchState, unread: &mut Unread) -> Result<()> {
        let unfit = |what: &str| Error::State(format!("output `{}`: {what}", self.plan.alias));
        let Inner { branches, fold, .. } = inner;
        let Branch { accept, drawer, .. } = &mut branches[b];
        let (Some(accept), Some(drawer)) = (accept, drawer) else { return Ok(()) };
        let Some(decided) = &saved.accept else { return Err(unfit("it lacks what was decided on draws")) };
        accept.restore(decided).ok_or_else(|| unfit("its position cache does not fit the configured one"))?;
        for (place, kept) in decided.cache.iter().flat_map(|cache| &cache.kept) {
            // A chunk that has left the window by now gives up what is kept of it at the next draw.
            let Some(at) = drawer.chunk_at(*place) else { continue };
            for row in (Uncached { place: *place, first: kept.first, left: kept.left }).rows() {
                let Some(slot) = fold.free.pop() else { return Err(unfit("its position cache does not fit")) };
                unread.cached((b as u32, drawer.source(at).0, at.chunk), row, slot);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
