//! A log of sources -> draws: admits what the log brings at numbered draws, and draws from the pool or the pass.
//! Never looks at a chunk's bytes; which source is which is kept here, so that draws are small numbers.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use gristmill_format::source::Span;
use serde::{Deserialize, Serialize};

use super::anchors::Anchors;
use super::plan::{BranchPlan, DrawPlan};
use super::roster::{Recorded, Roster};
use crate::config::{ExtractOrder, KeyOrder};
use crate::error::{Error, Result};
use crate::runtime::seed::Key;
use crate::stage::extract::{Extract, ExtractState};
use crate::stage::load::Source;
use crate::stage::pool::{Pool, PoolState};
use crate::stage::{ChunkRef, Draw};

/// A source that a branch may draw from.
#[derive(Debug, Clone)]
struct Member {
    id: u64,
    /// Its chunks on this side of the split.
    chunks: u32,
    /// Kept open where opening costs something (a container's index).
    open: Option<Arc<Source>>,
}

/// The sources of a branch. Shared between copies of a drawer until one of them admits another.
#[derive(Debug, Clone, Default)]
struct Members {
    list: Vec<Member>,
    by_id: HashMap<u64, u32>,
}

#[derive(Debug, Clone)]
enum Drawing {
    Pool(Pool),
    Extract(Extract),
}

/// One admission after the first: before draw `at`, source `id` came, in place of `old` if that is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Admission {
    pub(super) at: u64,
    pub(super) id: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) old: Option<u64>,
}

/// What a drawer needs to go on from draw `at`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct DrawerState {
    pub(super) at: u64,
    /// Ids of the sources of the window (all of them, for an extractor), oldest first.
    pub(super) sources: Vec<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pool: Option<PoolState>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extract: Option<ExtractState>,
}

/// Draws chunks for one branch.
#[derive(Debug, Clone)]
pub(super) struct Drawer {
    plan: Arc<BranchPlan>,
    key: Key,
    members: Arc<Members>,
    drawing: Drawing,
    /// Number of the next draw.
    at: u64,
}

impl Drawer {
    /// The first admission: the newest sources of the first scan, as many as the window holds (spec lc0 §1.4.2).
    ///
    /// Errors: none; a container that cannot be indexed is left out, the log counts it.
    pub(super) fn first(
        plan: &Arc<BranchPlan>,
        root: u64,
        log: &Roster,
        files: &[Recorded],
        anchors: &Anchors,
        stop: &AtomicBool,
    ) -> Self {
        let key = Key::new(root, &plan.stage);
        let mut order: Vec<&Recorded> = files.iter().collect();
        if plan.key_order == KeyOrder::Bytes {
            order.sort_by_key(|file| (crate::key::of_name(&file.name), &file.name));
        }
        let mut kept = Vec::new();
        let most = match plan.draw {
            DrawPlan::Pool { size } => size,
            DrawPlan::Extract { .. } => u64::MAX,
        };
        let mut total = 0;
        for file in order.iter().rev() {
            // Indexing many containers takes long: a stop need not wait for it.
            if total >= most || stop.load(Ordering::Relaxed) {
                break;
            }
            let Ok(source) = log.open(file.id) else { continue };
            let chunks = side(plan, &source);
            total += chunks.len() as u64;
            if !chunks.is_empty() {
                kept.push((file.id, source, chunks));
            }
        }
        kept.reverse();
        let drawing = match plan.draw {
            DrawPlan::Pool { size } => Drawing::Pool(Pool::new(key, size)),
            DrawPlan::Extract { .. } => Drawing::Extract(Extract::new(Vec::new(), None, 0)),
        };
        let mut drawer = Drawer { plan: Arc::clone(plan), key, members: Arc::default(), drawing, at: 0 };
        let mut list = Vec::new();
        for (id, source, chunks) in kept {
            if let Some(mut anchor) = anchors.of(&plan.stage) {
                let after = plan.key_order.compare(&source.key, &anchor.key).is_gt();
                anchor.found(&source.key, chunks.len() as u64, after);
            }
            let member = drawer.join(id, source, chunks.len());
            match &mut drawer.drawing {
                Drawing::Pool(pool) => pool.admit(member, chunks),
                Drawing::Extract(_) => list.extend(chunks.into_iter().map(|chunk| ChunkRef { source: member, chunk })),
            }
        }
        if let DrawPlan::Extract { order, epochs } = plan.draw {
            let shuffle = (order == ExtractOrder::Shuffled).then_some(key);
            drawer.drawing = Drawing::Extract(Extract::new(list, shuffle, epochs));
        }
        drawer
    }

    fn join(&mut self, id: u64, source: Arc<Source>, chunks: usize) -> u32 {
        let untouched = source.chunks.locate(0).is_some_and(|(span, _)| span == Span::WHOLE);
        let members = Arc::make_mut(&mut self.members);
        let member = u32::try_from(members.list.len()).unwrap_or(u32::MAX);
        members.by_id.insert(id, member);
        members.list.push(Member {
            id,
            chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
            open: (!untouched).then_some(source),
        });
        member
    }

    /// Takes a source in as the newest, in place of `old` if that is set; tells how many chunks it has on this side.
    /// An extractor takes nothing in: its passes are over what the first scan found.
    pub(super) fn admit(&mut self, id: u64, source: &Arc<Source>, old: Option<u64>) -> Option<u64> {
        if self.members.by_id.contains_key(&id) || matches!(self.drawing, Drawing::Extract(_)) {
            return None;
        }
        let superseded = old.and_then(|id| self.members.by_id.get(&id).copied());
        let chunks = side(&self.plan, source);
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
        Some(number as u64)
    }

    /// The next draw; `None` when a pass has ended or there is nothing to draw.
    pub(super) fn draw(&mut self) -> Option<Draw> {
        let draw = match &mut self.drawing {
            Drawing::Pool(pool) => pool.draw(),
            Drawing::Extract(extract) => extract.draw(),
        }?;
        self.at += 1;
        Some(draw)
    }

    /// Starts the passes of an extractor again. A pool never ends.
    pub(super) fn restart(&mut self) {
        if let Drawing::Extract(extract) = &mut self.drawing {
            extract.restart();
        }
    }

    /// Whether it ends by itself.
    pub(super) fn ends(&self) -> bool {
        matches!(self.drawing, Drawing::Extract(_))
    }

    /// Number of the next draw.
    pub(super) fn at(&self) -> u64 {
        self.at
    }

    /// Id and, where it is kept open, the source of a draw.
    pub(super) fn source(&self, at: ChunkRef) -> (u64, Option<Arc<Source>>) {
        let member = &self.members.list[at.source as usize];
        (member.id, member.open.clone())
    }

    /// The chunk at a place of the pool, while it is in the window.
    pub(super) fn chunk_at(&self, place: u64) -> Option<ChunkRef> {
        match &self.drawing {
            Drawing::Pool(pool) => pool.chunk_at(place),
            Drawing::Extract(_) => None,
        }
    }

    /// Chunks that can be drawn in one pass.
    pub(super) fn live(&self) -> u64 {
        match &self.drawing {
            Drawing::Pool(pool) => pool.live(),
            Drawing::Extract(extract) => extract.chunks(),
        }
    }

    /// Sources, chunks and capacity of the window, chunks ever admitted, and passes begun after the first.
    pub(super) fn gauges(&self) -> [u64; 5] {
        match &self.drawing {
            Drawing::Pool(pool) => {
                [pool.sources().len() as u64, pool.chunks(), pool.capacity(), pool.total(), pool.passes()]
            }
            Drawing::Extract(extract) => {
                let chunks = extract.chunks();
                [self.members.list.len() as u64, chunks, chunks, chunks, u64::from(extract.state().epoch)]
            }
        }
    }

    /// What it needs to go on.
    pub(super) fn state(&self) -> DrawerState {
        let id = |member: u32| self.members.list[member as usize].id;
        match &self.drawing {
            Drawing::Pool(pool) => DrawerState {
                at: self.at,
                sources: pool.sources().map(id).collect(),
                pool: Some(pool.state(|member| u64::from(self.members.list[member as usize].chunks))),
                extract: None,
            },
            Drawing::Extract(extract) => DrawerState {
                at: self.at,
                sources: self.members.list.iter().map(|m| m.id).collect(),
                pool: None,
                extract: Some(extract.state()),
            },
        }
    }

    /// A drawer that goes on from a state.
    ///
    /// Errors: `Format` for a source that cannot be opened, `State` when the chunks no longer fit.
    pub(super) fn restore(
        plan: &Arc<BranchPlan>,
        root: u64,
        log: &Roster,
        anchors: &Anchors,
        state: &DrawerState,
    ) -> Result<Self> {
        let mut drawer = Drawer::first(plan, root, log, &[], anchors, &AtomicBool::new(false));
        let mut sources = Vec::new();
        for &id in &state.sources {
            let source = log.open(id)?;
            anchors.seen(&plan.stage, &source.key);
            let chunks = side(plan, &source);
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

/// The chunks of a source on this side of the split.
fn side(plan: &BranchPlan, source: &Source) -> Vec<u32> {
    let all = 0..u32::try_from(source.len()).unwrap_or(u32::MAX);
    match &plan.side {
        Some(side) => all.filter(|&i| side.holds(&source.key, u64::from(i))).collect(),
        None => all.collect(),
    }
}
