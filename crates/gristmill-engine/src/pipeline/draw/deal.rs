//! A source -> its chunks on a side of the split, dealt to lanes; and what the first scan gives each lane.
//! A function of names and numbers: opens nothing, draws nothing.

use std::sync::Arc;

use gristmill_stages::config::SplitBy;
use gristmill_stages::stage::lane::lane_of;
use gristmill_stages::stage::load::Source;
use gristmill_stages::stage::pool::Window;
use gristmill_stages::stage::split::original;

use crate::pipeline::plan::{BranchPlan, DrawPlan};

/// What the first scan gives one lane, newest first.
pub(in crate::pipeline) struct First {
    /// Its window, and the chunks found so far.
    window: Window,
    found: u64,
    /// Chunks that are older than all of the window, where they count.
    pub(in crate::pipeline) passed: u64,
    /// Sources of the window with their chunks in this lane, newest first.
    pub(in crate::pipeline) kept: Vec<(u64, Arc<Source>, Vec<u32>)>,
    /// Keys of sources with their chunks in all lanes, for the anchor. Indexes of containers that only count are let go.
    counts: bool,
    pub(in crate::pipeline) counted: Vec<(String, u64)>,
}

impl First {
    /// Nothing yet, of the window of a lane.
    pub(in crate::pipeline) fn of(plan: &BranchPlan) -> Self {
        let window = match plan.draw {
            DrawPlan::Pool { window, .. } => window,
            DrawPlan::Extract { .. } => Window::from(u64::MAX),
        };
        First { window, found: 0, passed: 0, kept: Vec::new(), counts: plan.counts_anchor, counted: Vec::new() }
    }

    /// Whether it needs no more sources. A window that grows needs the number of all chunks.
    pub(in crate::pipeline) fn is_full(&self) -> bool {
        self.holds_most() && !self.window.grows()
    }

    fn holds_most(&self) -> bool {
        self.found >= self.window.most()
    }

    /// Takes the chunks of a source, of `all` that it has in all lanes, while there is room.
    pub(in crate::pipeline) fn take(&mut self, id: u64, source: &Arc<Source>, chunks: Vec<u32>, all: u64) {
        if self.is_full() {
            return;
        }
        if self.counts && all > 0 {
            self.counted.push((source.key.clone(), all));
        }
        if !chunks.is_empty() && !self.holds_most() {
            self.kept.push((id, Arc::clone(source), chunks.clone()));
        }
        self.found += chunks.len() as u64;
    }

    /// Without the sources that a window that grows does not hold yet.
    pub(in crate::pipeline) fn cut(mut self) -> Self {
        if self.window.grows() {
            let (most, mut held) = (self.window.after(self.found), 0);
            let needed = |(_, _, chunks): &(u64, Arc<Source>, Vec<u32>)| {
                let is_needed = held < most;
                held += if is_needed { chunks.len() as u64 } else { 0 };
                is_needed
            };
            self.kept.retain(needed);
            self.passed = self.found - held;
        }
        self
    }
}

/// The first `len` chunks of a source on this side of the split, in all lanes.
fn side<'a>(plan: &'a BranchPlan, source: &'a Source, len: usize) -> impl Iterator<Item = u32> + 'a {
    let all = 0..u32::try_from(len).unwrap_or(u32::MAX);
    all.filter(|&i| {
        let Some((side, by)) = &plan.side else { return true };
        let member = match by {
            SplitBy::Name => source.chunks.locate(i as usize).and_then(|(_, member)| member),
            SplitBy::File => None,
        };
        let (key, index) = original(&source.key, member, u64::from(i));
        side.holds(key, index)
    })
}

/// The chunks of a source that a branch draws from.
pub(in crate::pipeline) fn own(plan: &BranchPlan, source: &Source) -> Vec<u32> {
    let in_lane = |i: &u32| plan.lane.is_none_or(|lane| lane_of(&source.key, u64::from(*i), lane.of) == lane.index);
    side(plan, source, source.len()).filter(in_lane).collect()
}

/// How many of the first `len` chunks of a source are on a branch's side of the split, in all lanes. Chunks beyond its end
/// count by its name.
pub(in crate::pipeline) fn of_side(plan: &BranchPlan, source: &Source, len: usize) -> u64 {
    side(plan, source, len).count() as u64
}

/// The chunks of a source for each of some lanes of one input, and how many there are in all lanes.
pub(in crate::pipeline) fn deal(plans: &[Arc<BranchPlan>], source: &Source) -> (Vec<Vec<u32>>, u64) {
    let mut dealt = vec![Vec::new(); plans.len()];
    let Some((plan, lane)) = plans.first().and_then(|plan| Some((plan, plan.lane?))) else {
        let all: Vec<u32> = plans.first().map_or_else(Vec::new, |plan| own(plan, source));
        let number = all.len() as u64;
        return (vec![all], number);
    };
    let mut place = vec![usize::MAX; lane.of as usize];
    for (at, index) in plans.iter().enumerate().filter_map(|(at, plan)| Some((at, plan.lane?.index))) {
        place[index as usize] = at;
    }
    let mut all = 0;
    for chunk in side(plan, source, source.len()) {
        all += 1;
        if let Some(own) = dealt.get_mut(place[lane_of(&source.key, u64::from(chunk), lane.of) as usize]) {
            own.push(chunk);
        }
    }
    (dealt, all)
}
