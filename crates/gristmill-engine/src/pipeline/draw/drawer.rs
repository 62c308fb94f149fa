//! A log of sources -> draws: admits what the log brings at numbered draws, and draws from the pool or the pass.
//! Never looks at a chunk's bytes; which source is which is kept here, so that draws are small numbers.

pub(in crate::pipeline) mod first;

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use gristmill_format::source::Span;
use gristmill_runtime::error::{Error, Result};
use gristmill_runtime::runtime::seed::Key;
use gristmill_stages::config::ExtractOrder;
use gristmill_stages::stage::extract::{Extract, ExtractState};
use gristmill_stages::stage::load::Source;
use gristmill_stages::stage::pool::{Limit, Pool, PoolState};
use gristmill_stages::stage::{ChunkRef, Draw};
use serde::{Deserialize, Serialize};

use crate::pipeline::draw::anchors::Anchors;
use crate::pipeline::draw::deal::own;
use crate::pipeline::draw::roster::Roster;
use crate::pipeline::plan::ranks::key;
use crate::pipeline::plan::{BranchPlan, DrawPlan};

/// A source that a branch may draw from.
#[derive(Debug, Clone)]
struct Member {
    id: u64,
    /// Its chunks on this side of the split.
    chunks: u32,
    /// Kept open where opening costs something (a container's index).
    open: Option<Arc<Source>>,
}

/// The sources of a branch, numbered as they came, without those that have left the window. Shared between copies of a drawer
/// until one of them admits another.
#[derive(Debug, Clone, Default)]
struct Members {
    /// Number of the first of the list.
    first: u32,
    list: VecDeque<Member>,
    by_id: HashMap<u64, u32>,
}

impl Members {
    fn of(&self, number: u32) -> &Member {
        &self.list[(number - self.first) as usize]
    }

    fn join(&mut self, member: Member) -> u32 {
        let number = u32::try_from(self.joined()).unwrap_or(u32::MAX);
        self.by_id.insert(member.id, number);
        self.list.push_back(member);
        number
    }

    /// How many ever joined.
    fn joined(&self) -> u64 {
        u64::from(self.first) + self.list.len() as u64
    }

    /// Forgets those below a number.
    fn forget_before(&mut self, number: u32) {
        while let Some(member) = self.list.pop_front_if(|_| self.first < number) {
            if self.by_id.get(&member.id) == Some(&self.first) {
                self.by_id.remove(&member.id);
            }
            self.first += 1;
        }
    }
}

/// What was counted in a window, and of which: it is counted again when chunks come, are written over or are dropped.
#[derive(Debug, Clone, Copy, Default)]
pub(in crate::pipeline) struct Census {
    of: [u64; 3],
    sources: u64,
    lost: u64,
}

#[derive(Debug, Clone)]
enum Drawing {
    Pool(Pool),
    Extract(Extract),
}

/// One admission after the first: before draw `at`, source `id` came, in place of `old` if that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::pipeline) struct Admission {
    pub(in crate::pipeline) at: u64,
    pub(in crate::pipeline) id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) old: Option<u64>,
    /// How many chunks came with it.
    pub(in crate::pipeline) chunks: u32,
}

/// What a drawer needs to resume from draw `at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(in crate::pipeline) struct DrawerState {
    pub(in crate::pipeline) at: u64,
    /// Ids of the sources of the window (all of them, for an extractor), oldest first.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub(in crate::pipeline) sources: Vec<u64>,
    /// How many chunks each of them gave.
    #[serde(with = "gristmill_runtime::runtime::packed")]
    pub(in crate::pipeline) chunks: Vec<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) pool: Option<PoolState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(in crate::pipeline) extract: Option<ExtractState>,
}

impl DrawerState {
    /// Its sources, with how many of their chunks can still be drawn: those of a replaced file cannot.
    pub(in crate::pipeline) fn live(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        let (mut end, gone) = (0u64, self.pool.as_ref().map_or(&[][..], |pool| &pool.gone));
        let mut evicted = self.pool.as_ref().map_or(0, |pool| pool.evicted_of_first);
        self.sizes().map(move |(id, chunks)| {
            let left = u64::from(chunks).saturating_sub(std::mem::take(&mut evicted));
            let start = end;
            end = start.saturating_add(left);
            let before = |offset: u64| gone.partition_point(|at| *at < offset) as u64;
            (id, left.saturating_sub(before(end).saturating_sub(before(start))))
        })
    }

    /// Its sources, with how many chunks each gave.
    fn sizes(&self) -> impl Iterator<Item = (u64, u32)> + '_ {
        self.sources.iter().copied().zip(self.chunks.iter().copied())
    }
}

/// Draws chunks for one branch.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct Drawer {
    plan: Arc<BranchPlan>,
    key: Key,
    members: Arc<Members>,
    drawing: Drawing,
    /// Number of the next draw.
    at: u64,
}

impl Drawer {
    fn new(plan: &Arc<BranchPlan>, root: u64) -> Self {
        let key = key(root, &plan.stage, plan.lane);
        let drawing = match plan.draw {
            DrawPlan::Pool { window, .. } => Drawing::Pool(Pool::new(key, window)),
            DrawPlan::Extract { .. } => Drawing::Extract(Extract::new(Vec::new(), None, 0)),
        };
        Drawer { plan: Arc::clone(plan), key, members: Arc::default(), drawing, at: 0 }
    }

    fn join(&mut self, id: u64, source: Arc<Source>, chunks: usize) -> u32 {
        let untouched = source.chunks.locate(0).is_some_and(|(span, _)| span == Span::WHOLE);
        Arc::make_mut(&mut self.members).join(Member {
            id,
            chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
            open: (!untouched).then_some(source),
        })
    }

    /// Takes a source in as the newest, in place of `old` if that is set; tells how many chunks it has on this side.
    /// An extractor takes nothing in: its passes are over what the first scan found.
    pub(in crate::pipeline) fn admit(&mut self, id: u64, source: &Arc<Source>, old: Option<u64>) -> Option<u64> {
        if self.has(id) || matches!(self.drawing, Drawing::Extract(_)) {
            return None;
        }
        let superseded = old.and_then(|id| self.members.by_id.get(&id).copied());
        let chunks = own(&self.plan, source);
        if chunks.is_empty() && superseded.is_none() {
            return None;
        }
        let number = chunks.len();
        let member = self.join(id, Arc::clone(source), number);
        let Drawing::Pool(pool) = &mut self.drawing else { return None };
        if let Some(old) = superseded {
            pool.supersede(old);
        }
        pool.admit(member, chunks);
        self.close(superseded);
        Some(number as u64)
    }

    /// Whether a source is in the window, or was superseded there.
    pub(in crate::pipeline) fn has(&self, id: u64) -> bool {
        self.members.by_id.contains_key(&id)
    }

    /// Lets go of sources of which nothing can be drawn any more: those that left the window, and the open file of one more.
    fn close(&mut self, superseded: Option<u32>) {
        let Drawing::Pool(pool) = &self.drawing else { return };
        let oldest = pool.sources().next();
        let members = Arc::make_mut(&mut self.members);
        if let Some(superseded) = superseded {
            members.list[(superseded - members.first) as usize].open = None;
        }
        members.forget_before(oldest.unwrap_or(u32::MAX));
    }

    /// Takes in place of a source that is gone as many chunks as it had: they are drawn and found missing.
    fn join_lost(&mut self, id: u64, chunks: u32) -> u32 {
        Arc::make_mut(&mut self.members).join(Member { id, chunks, open: None })
    }

    /// [`Drawer::admit`] of a source that is gone by now.
    pub(in crate::pipeline) fn admit_lost(&mut self, admission: &Admission) {
        if self.has(admission.id) {
            return;
        }
        let superseded = admission.old.and_then(|id| self.members.by_id.get(&id).copied());
        let member = self.join_lost(admission.id, admission.chunks);
        let Drawing::Pool(pool) = &mut self.drawing else { return };
        if let Some(old) = superseded {
            pool.supersede(old);
        }
        pool.admit(member, 0..admission.chunks);
        self.close(superseded);
    }

    fn limit(&self) -> Option<(&Pool, Limit)> {
        match (&self.drawing, &self.plan.draw) {
            (Drawing::Pool(pool), DrawPlan::Pool { limit: Some(limit), .. }) => Some((pool, *limit)),
            _ => None,
        }
    }

    /// Whether the next draw waits for more chunks to come: its number, and how many came.
    pub(in crate::pipeline) fn awaits_arrivals(&self) -> Option<[u64; 2]> {
        let (pool, limit) = self.limit()?;
        (pool.live() > 0 && !limit.draws(pool.total(), self.at)).then(|| [self.at, pool.total()])
    }

    /// Whether new files wait for more draws.
    pub(in crate::pipeline) fn holds_arrivals(&self) -> bool {
        self.limit().is_some_and(|(pool, limit)| !limit.admits(pool.total(), self.at))
    }

    /// The next draw; `None` when a pass has ended, there is nothing to draw, or the limit does not allow it yet.
    pub(in crate::pipeline) fn draw(&mut self) -> Option<Draw> {
        if self.awaits_arrivals().is_some() {
            return None;
        }
        let draw = match &mut self.drawing {
            Drawing::Pool(pool) => pool.draw(),
            Drawing::Extract(extract) => extract.draw(),
        }?;
        self.at += 1;
        Some(draw)
    }

    /// Starts the passes of an extractor again. A pool never ends.
    pub(in crate::pipeline) fn restart(&mut self) {
        if let Drawing::Extract(extract) = &mut self.drawing {
            extract.restart();
        }
    }

    /// Whether it ends by itself.
    pub(in crate::pipeline) fn ends(&self) -> bool {
        matches!(self.drawing, Drawing::Extract(_))
    }

    /// Number of the next draw.
    pub(in crate::pipeline) fn at(&self) -> u64 {
        self.at
    }

    /// Id and, where it is kept open, the source of a draw.
    pub(in crate::pipeline) fn source(&self, at: ChunkRef) -> (u64, Option<Arc<Source>>) {
        let member = self.members.of(at.source);
        (member.id, member.open.clone())
    }

    /// Ids of the sources that it may draw from, oldest first.
    pub(in crate::pipeline) fn sources(&self) -> Vec<u64> {
        let id = |member: u32| self.members.of(member).id;
        match &self.drawing {
            Drawing::Pool(pool) => pool.sources().map(id).collect(),
            Drawing::Extract(_) => self.members.list.iter().map(|member| member.id).collect(),
        }
    }

    /// The chunk at a place of the pool, while it is in the window.
    pub(in crate::pipeline) fn chunk_at(&self, place: u64) -> Option<ChunkRef> {
        match &self.drawing {
            Drawing::Pool(pool) => pool.chunk_at(place),
            Drawing::Extract(_) => None,
        }
    }

    /// Sources ever taken in that have chunks here.
    pub(in crate::pipeline) fn joined(&self) -> u64 {
        self.members.joined()
    }

    /// Chunks that can be drawn in one pass.
    pub(in crate::pipeline) fn live(&self) -> u64 {
        match &self.drawing {
            Drawing::Pool(pool) => pool.live(),
            Drawing::Extract(extract) => extract.chunks(),
        }
    }

    /// Sources and chunks of the window that were not written over and are not among `dropped`, its capacity, chunks ever
    /// admitted, and passes begun after the first.
    pub(in crate::pipeline) fn gauges(&self, dropped: &HashSet<(u64, u32)>, last: &mut Census) -> [u64; 5] {
        match &self.drawing {
            Drawing::Pool(pool) => {
                let member =
                    |(id, chunk): &(u64, u32)| Some(ChunkRef { source: *self.members.by_id.get(id)?, chunk: *chunk });
                let of = [pool.total(), pool.live(), dropped.len() as u64];
                if last.of != of {
                    let [sources, lost] = match pool.live() == pool.chunks() && dropped.is_empty() {
                        true => [pool.sources().len() as u64, 0],
                        false => pool.census(&dropped.iter().filter_map(member).collect()),
                    };
                    *last = Census { of, sources, lost };
                }
                let Census { sources, lost, .. } = *last;
                [sources, pool.live().saturating_sub(lost), pool.capacity(), pool.total(), pool.passes()]
            }
            Drawing::Extract(extract) => {
                let chunks = extract.chunks();
                [self.members.list.len() as u64, chunks, chunks, chunks, u64::from(extract.state().epoch)]
            }
        }
    }

    /// What it needs to resume.
    pub(in crate::pipeline) fn state(&self) -> DrawerState {
        let size = |member: u32| self.members.of(member).chunks;
        match &self.drawing {
            Drawing::Pool(pool) => DrawerState {
                at: self.at,
                sources: self.sources(),
                chunks: pool.sources().map(size).collect(),
                pool: Some(pool.state(|member| u64::from(size(member)))),
                extract: None,
            },
            Drawing::Extract(extract) => DrawerState {
                at: self.at,
                sources: self.sources(),
                chunks: self.members.list.iter().map(|m| m.chunks).collect(),
                pool: None,
                extract: Some(extract.state()),
            },
        }
    }

    /// A drawer that resumes from a state, without the sources that are `lost`.
    ///
    /// Errors: `Format` for a source that cannot be opened, `State` when the chunks no longer fit.
    pub(in crate::pipeline) fn restore(
        plan: &Arc<BranchPlan>,
        root: u64,
        log: &Roster,
        anchors: &Anchors,
        state: &DrawerState,
        lost: &dyn Fn(u64) -> bool,
    ) -> Result<Self> {
        let mut drawer = Drawer::new(plan, root);
        let mut sources = Vec::new();
        for (id, chunks) in state.sizes() {
            if lost(id) {
                sources.push((drawer.join_lost(id, chunks), (0..chunks).collect()));
                continue;
            }
            let source = log.open(id)?;
            anchors.seen(&plan.stage, &source.key);
            let chunks = own(plan, &source);
            sources.push((drawer.join(id, source, chunks.len()), chunks));
        }
        let unfit = || Error::State(format!("stage `{}`: its files hold other chunks than they did", plan.stage));
        match (&mut drawer.drawing, &state.pool, state.extract, &plan.draw) {
            (Drawing::Pool(pool), Some(saved), None, _) => pool.restore(saved, sources).ok_or_else(unfit)?,
            (Drawing::Extract(extract), None, Some(saved), DrawPlan::Extract { order, epochs }) => {
                let all =
                    |(source, chunks): (u32, Vec<u32>)| chunks.into_iter().map(move |chunk| ChunkRef { source, chunk });
                let shuffle = (*order == ExtractOrder::Shuffled).then_some(drawer.key);
                *extract = Extract::new(sources.into_iter().flat_map(all).collect(), shuffle, *epochs);
                extract.restore(saved);
            }
            _ => return Err(unfit()),
        }
        drawer.at = state.at;
        Ok(drawer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pipeline::loader::launch::tests::still::{Still, games, options};
    use crate::preset::{Lc0Preset, lc0};

    #[test]
    fn members_that_left_the_window_are_forgotten_unless_they_came_again() {
        let mut members = Members::default();
        let member = |id| Member { id, chunks: 1, open: None };
        assert_eq!([5, 6, 5].map(|id| members.join(member(id))), [0, 1, 2]);
        members.forget_before(1);
        assert_eq!((members.joined(), members.of(1).id, members.by_id.get(&5)), (3, 6, Some(&2)));
        members.forget_before(2);
        assert_eq!((members.list.len(), members.by_id.get(&6), members.of(2).id), (1, None, 5));
        members.forget_before(u32::MAX);
        assert_eq!((members.joined(), members.by_id.len(), members.join(member(9))), (3, 0, 3));
    }

    #[test]
    fn chunks_that_were_evicted_or_written_over_are_not_live() {
        let of = |pool: Option<PoolState>| {
            let (sources, chunks) = (vec![7, 8, 9], vec![5, 4, 3]);
            DrawerState { at: 0, sources, chunks, pool, extract: None }.live().collect::<Vec<_>>()
        };
        assert_eq!(of(None), [(7, 5), (8, 4), (9, 3)]);
        let (uses, undrawn, gone) = (Vec::new(), Vec::new(), vec![0, 3, 6, 9]);
        let pool = PoolState { start: 0, evicted_of_first: 2, uses, undrawn, gone, passes: 0, draws: 0 };
        assert_eq!(of(Some(pool)), [(7, 2), (8, 2), (9, 2)]);
    }

    #[test]
    fn a_source_is_taken_in_once_and_its_chunks_are_found_while_the_window_has_them() {
        let folder = tempfile::tempdir().unwrap();
        games(folder.path(), 1, 6, None);
        let still = Still::new(&lc0(&Lc0Preset { pool: 2, ..options(&[folder.path()]) }).unwrap()).begun();
        let source = |id| still.roster().open(id).unwrap();
        let mut drawer = still.chain().lock().branches[0].drawer.clone().unwrap();
        assert_eq!((drawer.has(5), drawer.admit(5, &source(5), None)), (true, None));
        assert_eq!([0, 1, 2, 3].map(|id| drawer.admit(id, &source(id), None)), [Some(1); 4]);
        assert_eq!((drawer.sources(), drawer.has(5)), (vec![2, 3], false));
        // The window has left sources behind: numbers in it do not begin at 0.
        assert_eq!(drawer.admit(4, &source(4), Some(3)), Some(1));
        assert_eq!((drawer.live(), drawer.joined()), (1, 7));
        let draw = drawer.draw().unwrap();
        assert_eq!((drawer.chunk_at(draw.place), drawer.chunk_at(0)), (Some(draw.at), None));
    }
}
